// Dealing of chunks, records as bytes and back, decisions of homes, and the exchange of pieces.

#include "exec/chunk_homes.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

namespace tailrace {

// --- Dealing.

void ChunkDealing::add(std::size_t field, const ChunkGrid& grid, std::size_t turn,
                       const std::vector<bool>& growing) {
  if (fields_.size() <= field) fields_.resize(field + 1);
  Dealt& dealt = fields_[field];
  dealt.grid = grid;
  dealt.n_chunks = grid.n_chunks();
  dealt.turn = turn % n_ranks_;
  std::uint64_t in_a_row = dealt.n_chunks;
  if (std::count(growing.begin(), growing.end(), true) > 0) {
    // Inner dimensions that grow get a fixed share of 2^60; the first dimension has no limit.
    constexpr unsigned n_bits = 60;
    Shape extents = grid.n_per_dimension();
    unsigned fixed_bits = 0;
    unsigned n_growing = 0;
    in_a_row = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      in_a_row = growing[d] ? 1 : in_a_row * extents[d];
      if (d > 0 && growing[d]) ++n_growing;
      if (d > 0 && !growing[d]) fixed_bits += static_cast<unsigned>(std::bit_width(extents[d]));
    }
    // Odd extents, so that neighbours along the previous dimension are not dealt to the same few
    // homes.
    const unsigned share = (n_bits - std::min(fixed_bits, n_bits)) / (n_growing + 1);
    for (std::size_t d = 1; d < extents.size(); ++d) {
      if (growing[d]) extents[d] = (std::uint64_t{1} << share) - 1;
    }
    dealt.extents = std::move(extents);
  }
  dealt.block = std::max<std::uint64_t>((in_a_row + n_ranks_ - 1) / n_ranks_, 1);
}

std::uint64_t ChunkDealing::number_of(ChunkKey key) const {
  const Dealt& dealt = fields_[key.field];
  if (dealt.extents.empty()) return key.chunk_index;
  const Shape at = dealt.grid.coordinates(key.chunk_index);
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d) number = number * dealt.extents[d] + at[d];
  return number;
}

int ChunkDealing::home_of(ChunkKey key) const {
  const Dealt& dealt = fields_[key.field];
  return static_cast<int>((number_of(key) / dealt.block + dealt.turn) % n_ranks_);
}

void ChunkDealing::for_each_at(int rank, const std::function<void(ChunkKey)>& visit) const {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const Dealt& dealt = fields_[field];
    const std::uint64_t block = static_cast<std::uint64_t>(rank) + n_ranks_ - dealt.turn;
    const std::uint64_t first = block % n_ranks_ * dealt.block;
    const std::uint64_t end = std::min(first + dealt.block, dealt.n_chunks);
    for (std::uint64_t chunk = first; chunk < end; ++chunk) visit({field, chunk});
  }
}

// --- Records as bytes: key, owner, number of shares with a flag for a place, place, shares.

void add_record(ByteWriter& writer, const ChunkRecord& record) {
  const bool placed = record.place.encoded_bytes > 0;
  writer.add(record.key);
  writer.add(static_cast<std::int32_t>(record.owner));
  writer.add(static_cast<std::uint32_t>(record.shares.size() << 1U | (placed ? 1U : 0U)));
  if (placed) writer.add(record.place);
  for (const ChunkShare& share : record.shares) {
    writer.add(static_cast<std::int32_t>(share.rank));
    writer.add(static_cast<std::uint32_t>(share.slabs.size()));
    writer.add(share.n_elements);
    for (const Slab& slab : share.slabs) writer.add(slab);
  }
}

namespace {

/// Bytes of a share without slabs, and of a slab without dimensions.
constexpr std::size_t kShareBytesMin = 16;
constexpr std::size_t kSlabBytesMin = 12;

bool lies_in(const Slab& slab, const Box& chunk) {
  if (slab.rank() != chunk.rank() || slab.count.size() != chunk.rank()) return false;
  if (!slab.stride.empty() && slab.stride.size() != chunk.rank()) return false;
  for (std::size_t d = 0; d < chunk.rank(); ++d) {
    const std::uint64_t first = slab.start[d] - chunk.start[d];
    if (slab.count[d] == 0 || slab.stride_of(d) == 0 || first >= chunk.count[d]) return false;
    const std::uint64_t n_max = (chunk.count[d] - 1 - first) / slab.stride_of(d) + 1;
    if (slab.count[d] > n_max) return false;
  }
  return true;
}

ChunkShare take_share(ByteReader& reader, const Box& chunk, int n_ranks) {
  ChunkShare share;
  share.rank = reader.take<std::int32_t>();
  const auto n_slabs = reader.take<std::uint32_t>();
  share.n_elements = reader.take<std::uint64_t>();
  if (share.rank < 0 || share.rank >= n_ranks) reader.refuse();
  if (!reader.has(n_slabs, kSlabBytesMin)) reader.refuse();
  for (std::uint32_t s = 0; s < n_slabs && reader.good(); ++s) {
    share.slabs.push_back(reader.take_slab());
    if (!lies_in(share.slabs.back(), chunk)) reader.refuse();
  }
  return share;
}

}  // namespace

Status read_records(const Message& message, const ChunkDealing& dealing, int n_ranks,
                    std::vector<ChunkRecord>& records) {
  ByteReader reader(message.payload, ByteReader::Trust::wary);
  while (!reader.at_end()) {
    ChunkRecord record;
    record.key = reader.take<ChunkKey>();
    record.owner = reader.take<std::int32_t>();
    const auto n_shares = reader.take<std::uint32_t>();
    if (n_shares % 2 != 0) record.place = reader.take<ChunkPlace>();
    if (!dealing.has(record.key) || record.owner < nobody || record.owner >= n_ranks ||
        !reader.has(n_shares / 2, kShareBytesMin)) {
      reader.refuse();
      break;
    }
    const Box chunk = dealing.grid(record.key.field).full_box(record.key.chunk_index);
    for (std::uint32_t s = 0; s < n_shares / 2 && reader.good(); ++s) {
      record.shares.push_back(take_share(reader, chunk, n_ranks));
    }
    records.push_back(std::move(record));
  }
  if (reader.good()) return Status();
  return damaged_message("chunk records", message);
}

Result<std::vector<ChunkRecord>> ChunkMail::exchange(Comm& comm) {
  std::vector<Message> messages;
  messages.reserve(to_peers_.size());
  for (auto& [peer, writer] : to_peers_) messages.push_back({peer, writer.take()});
  to_peers_.clear();
  messages = comm.exchange(std::move(messages));
  std::sort(messages.begin(), messages.end(),
            [](const Message& a, const Message& b) { return a.peer < b.peer; });
  std::vector<ChunkRecord> records;
  for (const Message& message : messages) {
    TAILRACE_TRY(read_records(message, dealing_, comm.n_ranks(), records));
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const ChunkRecord& a, const ChunkRecord& b) { return a.key < b.key; });
  return records;
}

// --- Homes.

int with_most(std::span<const ChunkShare> shares) {
  const auto most = std::max_element(
      shares.begin(), shares.end(),
      [](const ChunkShare& a, const ChunkShare& b) { return a.n_elements < b.n_elements; });
  return most == shares.end() ? nobody : most->rank;
}

namespace {

/// 2^64 divided by the golden ratio. Its multiples modulo 2^64 are spread evenly, and so is every
/// second or third of them.
constexpr std::uint64_t kGoldenPart = 0x9E3779B97F4A7C15U;

}  // namespace

int with_about_most(std::span<const ChunkShare> shares, std::uint64_t turn) {
  std::uint64_t most = 0;
  for (const ChunkShare& share : shares) most = std::max(most, share.n_elements);
  std::vector<int> ranks;
  for (const ChunkShare& share : shares) {
    if (share.n_elements >= most - most / 8) ranks.push_back(share.rank);
  }
  if (ranks.empty()) return nobody;
  const std::uint64_t part = turn * kGoldenPart >> 32U;
  return ranks[part * ranks.size() >> 32U];
}

Result<std::vector<ChunkRecord>> ask_homes(Comm& comm, ChunkMail announced,
                                           const HomePolicy& decide) {
  Result<std::vector<ChunkRecord>> received = announced.exchange(comm);
  ChunkMail replies(announced.dealing());
  const std::size_t n_received = received.ok() ? received->size() : 0;
  for (std::size_t i = 0, next = 0; i < n_received; i = next) {
    ChunkRecord& chunk = (*received)[i];
    for (next = i + 1; next < n_received && (*received)[next].key == chunk.key; ++next) {
      for (ChunkShare& share : (*received)[next].shares) chunk.shares.push_back(std::move(share));
    }
    if (!decide(chunk)) continue;
    for (const ChunkShare& share : chunk.shares) {
      if (share.rank != chunk.owner) replies.add(share.rank, {chunk.key, chunk.owner, {}, {}});
    }
    if (chunk.owner == nobody) continue;
    std::erase_if(chunk.shares, [&](const ChunkShare& share) { return share.rank == chunk.owner; });
    replies.add(chunk.owner, chunk);
  }
  Result<std::vector<ChunkRecord>> answers = replies.exchange(comm);
  return received.ok() ? std::move(answers) : received.status();
}

// --- Requests for pieces, and the replies.

void PieceExchange::request(const ChunkJob& job, Buffer& values) {
  const ChunkKey key{job.field, job.chunk_index};
  notifying_ = &job;
  n_notified_ = 0;
  const auto entry = awaited_.emplace(key, Awaited{&job, &values, 0}).first;
  try {
    for (; n_notified_ < job.remote.size(); ++n_notified_) {
      send_notice(job.remote[n_notified_].rank, Kind::request, key);
      ++entry->second.n_missing;
    }
  } catch (...) {
    if (entry->second.n_missing == 0) awaited_.erase(entry);
    throw;
  }
  notifying_ = nullptr;
}

void PieceExchange::cancel(const ChunkJob& job) {
  if (notifying_ != &job) n_notified_ = 0;
  notifying_ = &job;
  for (; n_notified_ < job.remote.size(); ++n_notified_) {
    send_notice(job.remote[n_notified_].rank, Kind::cancel, {job.field, job.chunk_index});
  }
  notifying_ = nullptr;
}

void PieceExchange::send_notice(int peer, Kind kind, ChunkKey key) {
  ByteWriter writer;
  writer.add(kind);
  writer.add(key);
  comm_.post({peer, writer.take()});
}

Status PieceExchange::serve() {
  Status failure;
  while (message_ || (message_ = comm_.poll())) {
    ByteReader reader(message_->payload);
    const auto kind = reader.take<Kind>();
    const auto key = reader.take<ChunkKey>();
    Status done;
    if (kind == Kind::pieces || kind == Kind::nothing) {
      done = local_part([&] {
        if (kind == Kind::pieces) lay_pieces(message_->peer, key, reader.take_rest());
        return Status();
      });
      message_.reset();
      count_pieces(key);
    } else {
      TAILRACE_CHECK(n_owed_ > 0);
      if (kind == Kind::request) done = answer(message_->peer, key);
      --n_owed_;
      message_.reset();
    }
    if (!done.ok()) failure = std::move(done);
  }
  return failure;
}

/// @throws if the peer could not be sent any reply.
Status PieceExchange::answer(int peer, ChunkKey key) {
  const Status answered = local_part([&] {
    ByteWriter writer;
    writer.add(Kind::pieces);
    writer.add(key);
    const std::size_t n_before = writer.bytes().size();
    TAILRACE_TRY(add_pieces(key, writer));
    const std::size_t n_bytes = writer.bytes().size() - n_before;
    comm_.post({peer, writer.take()});
    piece_bytes_ += n_bytes;
    return Status();
  });
  if (!answered.ok()) send_notice(peer, Kind::nothing, key);
  return answered;
}

Status PieceExchange::add_pieces(ChunkKey key, ByteWriter& writer) const {
  const auto owed = owed_.find(key);
  TAILRACE_CHECK(owed != owed_.end());
  const FieldPlan& plan = plans_[key.field];
  if (plan.patches != nullptr) plan.patches->add_pieces(key.chunk_index, writer);
  for (const LocalPart& part : owed->second) {
    const PutRecord& put = plan.puts[part.put_index];
    std::byte* const to = writer.extend(part.box.n_elements() * plan.element_bytes());
    if (put.source != nullptr) {
      TAILRACE_TRY(put.source->read_part(part.box, part.box, to));
    } else {
      put.copy_to(part.box, part.box, to, plan.element_bytes());
    }
  }
  return Status();
}

void PieceExchange::lay_pieces(int peer, ChunkKey key, std::span<const std::byte> values) {
  const auto found = awaited_.find(key);
  TAILRACE_CHECK(found != awaited_.end());
  const Awaited& awaited = found->second;
  const FieldPlan& plan = plans_[key.field];
  const Box target = plan.values_box(key.chunk_index);
  if (plan.patches != nullptr) {
    plan.patches->lay_pieces(key.chunk_index, peer, values, *awaited.values);
  }
  ByteReader reader(values);
  for (const ChunkShare& remote : awaited.job->remote) {
    if (remote.rank != peer) continue;
    for (const Slab& slab : remote.slabs) {
      const Box box{slab.start, slab.count};
      const auto piece = reader.take_bytes(box.n_elements() * plan.element_bytes());
      copy_box(box, box, piece.data(), target, awaited.values->data(), plan.element_bytes());
    }
  }
}

void PieceExchange::count_pieces(ChunkKey key) {
  const auto found = awaited_.find(key);
  TAILRACE_CHECK(found != awaited_.end());
  if (--found->second.n_missing > 0) return;
  awaited_.erase(found);
  arrived_(key);
}

}  // namespace tailrace
