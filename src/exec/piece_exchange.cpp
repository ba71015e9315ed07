// Requests for pieces and the answers to them.

#include "exec/piece_exchange.hpp"

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

enum class Kind : std::uint32_t { request = 1, cancel = 2, pieces = 3 };

}  // namespace

PieceExchange::PieceExchange(Comm& comm, std::span<const FieldPlan> plans,
                             const std::map<ChunkKey, std::vector<LocalPart>>& owed,
                             std::function<void(ChunkKey)> arrived)
    : comm_(comm), plans_(plans), owed_(owed), arrived_(std::move(arrived)), n_owed_(owed.size()) {}

void PieceExchange::request(const ChunkJob& job, Buffer& values) {
  awaited_[{job.field, job.chunk_index}] = {&job, &values, job.remote.size()};
  post_request(job, false);
}

void PieceExchange::cancel(const ChunkJob& job) { post_request(job, true); }

void PieceExchange::post_request(const ChunkJob& job, bool cancelled) {
  for (const RemoteParts& remote : job.remote) {
    ByteWriter writer;
    writer.add(cancelled ? Kind::cancel : Kind::request);
    writer.add(static_cast<std::uint64_t>(job.field));
    writer.add(job.chunk_index);
    comm_.post({remote.rank, writer.take()});
  }
}

bool PieceExchange::serve() {
  bool any = false;
  while (std::optional<Message> message = comm_.poll()) {
    any = true;
    ByteReader reader(message->payload);
    const auto kind = reader.take<Kind>();
    ChunkKey key;
    key.field = static_cast<std::size_t>(reader.take<std::uint64_t>());
    key.chunk_index = reader.take<std::uint64_t>();
    if (kind == Kind::pieces) {
      take_pieces(
          *message, key,
          reader.take_bytes(message->payload.size() - sizeof kind - 2 * sizeof(std::uint64_t)));
      continue;
    }
    TAILRACE_CHECK(n_owed_ > 0);
    --n_owed_;
    if (kind == Kind::request) answer(message->peer, key);
  }
  return any;
}

void PieceExchange::answer(int peer, ChunkKey key) {
  const FieldPlan& plan = plans_[key.field];
  ByteWriter writer;
  writer.add(Kind::pieces);
  writer.add(static_cast<std::uint64_t>(key.field));
  writer.add(key.chunk_index);
  if (plan.patches != nullptr) {
    const std::size_t n_before = writer.bytes().size();
    plan.patches->add_pieces(key.chunk_index, writer);
    piece_bytes_ += writer.bytes().size() - n_before;
  }
  for (const LocalPart& part : owed_.at(key)) {
    const PutRecord& put = plan.puts[part.put_index];
    const std::size_t n_bytes = part.box.n_elements() * plan.element_bytes();
    copy_box(part.box, put.box, put.values, part.box, writer.extend(n_bytes), plan.element_bytes());
    piece_bytes_ += n_bytes;
  }
  comm_.post({peer, writer.take()});
}

void PieceExchange::take_pieces(const Message& message, ChunkKey key,
                                std::span<const std::byte> values) {
  const auto found = awaited_.find(key);
  TAILRACE_CHECK(found != awaited_.end());
  Awaited& awaited = found->second;
  const FieldPlan& plan = plans_[key.field];
  const Box target = plan.values_box(key.chunk_index);
  if (plan.patches != nullptr) {
    plan.patches->lay_pieces(key.chunk_index, values, *awaited.values);
  }
  for (const RemoteParts& remote : awaited.job->remote) {
    if (remote.rank != message.peer) continue;
    for (const Box& box : remote.boxes) {
      const std::size_t n_bytes = box.n_elements() * plan.element_bytes();
      TAILRACE_CHECK(n_bytes <= values.size());
      copy_box(box, box, values.data(), target, awaited.values->data(), plan.element_bytes());
      values = values.subspan(n_bytes);
    }
  }
  if (--awaited.n_missing > 0) return;
  awaited_.erase(found);
  arrived_(key);
}

}  // namespace tailrace
