// The announcement of shared chunks to their homes, and the homes' decisions.

#include "exec/ownership.hpp"
#include "exec/piece_exchange.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/byte_stream.hpp"

namespace tailrace {

namespace {

/// A box of a chunk and the rank that holds it.
struct HeldBox {
  int rank = 0;
  Box box;
};

/// Numbers all chunks of all fields in one row and deals them to home ranks in equal blocks.
class Homes {
 public:
  Homes(std::span<const OwnedField> fields, int n_ranks) {
    for (const OwnedField& field : fields) {
      first_.push_back(n_total_);
      n_total_ += field.grid.n_chunks();
    }
    const auto n = static_cast<std::uint64_t>(n_ranks);
    block_ = std::max<std::uint64_t>((n_total_ + n - 1) / n, 1);
  }
  std::uint64_t number_of(ChunkKey key) const { return first_[key.field] + key.chunk_index; }
  int home_of(ChunkKey key) const { return static_cast<int>(number_of(key) / block_); }
  std::uint64_t block_start(int rank) const {
    return std::min(block_ * static_cast<std::uint64_t>(rank), n_total_);
  }
  ChunkKey key_of(std::uint64_t number) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), number);
    const auto field = static_cast<std::size_t>(after - first_.begin()) - 1;
    return {field, number - first_[field]};
  }

 private:
  std::vector<std::uint64_t> first_;
  std::uint64_t n_total_ = 0;
  std::uint64_t block_ = 1;
};

/// The pseudo-random number of a chunk (splitmix64, Steele et al. 2014).
std::uint64_t chunk_mark(std::uint64_t number) {
  std::uint64_t z = number * 0x9E3779B97F4A7C15U + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// Two of the boxes that overlap, if any do. Sorted along the first dimension, so that disjoint
/// boxes are compared with their neighbours only.
std::optional<std::pair<HeldBox, HeldBox>> find_overlap(std::vector<HeldBox> boxes) {
  if (boxes.size() > 1 && boxes.front().box.rank() == 0) return {{boxes[0], boxes[1]}};
  std::sort(boxes.begin(), boxes.end(),
            [](const HeldBox& a, const HeldBox& b) { return a.box.start[0] < b.box.start[0]; });
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::uint64_t end = boxes[i].box.start[0] + boxes[i].box.count[0];
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].box.start[0] < end; ++j) {
      if (!intersect(boxes[i].box, boxes[j].box).empty()) return {{boxes[i], boxes[j]}};
    }
  }
  return std::nullopt;
}

Status overlap_error(const OwnedField& field, const HeldBox& a, const HeldBox& b) {
  if (field.grid.shape.empty()) {
    return Status(Code::bad_coverage, "field \"" + field.path +
                                          "\" is a scalar and was put by rank " +
                                          std::to_string(a.rank) + " and by rank " +
                                          std::to_string(b.rank) + "; exactly one rank may put it");
  }
  return Status(Code::bad_coverage, "field \"" + field.path +
                                        "\": boxes overlap: " + box_text(a.box) + " of rank " +
                                        std::to_string(a.rank) + " and " + box_text(b.box) +
                                        " of rank " + std::to_string(b.rank));
}

Status hole_error(const OwnedField& field, const Box& chunk, std::uint64_t n_missing) {
  return Status(Code::bad_coverage,
                "field \"" + field.path + "\": " + std::to_string(n_missing) + " of the " +
                    std::to_string(chunk.n_elements()) + " elements of " + box_text(chunk) +
                    " were put by no rank (option holes=on allows that and fills them)");
}

/// One attempt to settle: what this rank holds, whom it tells, what its home chunks come to.
class Settlement {
 public:
  Settlement(Comm& comm, std::span<const OwnedField> fields)
      : comm_(comm), fields_(fields), homes_(fields, comm.n_ranks()) {
    for (std::size_t f = 0; f < fields.size(); ++f) collect_parts(f);
  }

  /// Claim what is wholly held, announce the rest (everything, if `announce_all`), and decide.
  Status settle(bool announce_all) {
    sum_ = 0;
    result_ = Ownership();
    std::map<int, ByteWriter> announcements;
    for (const auto& [key, parts] : parts_) {
      const OwnedField& field = fields_[key.field];
      if (!announce_all && !field.allow_holes && wholly_held(key, parts)) {
        sum_ += chunk_mark(homes_.number_of(key));
        result_.jobs.push_back({key.field, key.chunk_index, parts, {}});
        continue;
      }
      ByteWriter& writer = announcements[homes_.home_of(key)];
      writer.add(static_cast<std::uint64_t>(key.field));
      writer.add(key.chunk_index);
      writer.add(static_cast<std::uint32_t>(parts.size()));
      for (const LocalPart& part : parts) writer.add(part.box);
    }
    const Status judged = judge(comm_.exchange(messages(announcements)), announce_all);
    take_verdicts(comm_.exchange(messages(verdicts_)));
    std::sort(result_.jobs.begin(), result_.jobs.end(), [](const ChunkJob& a, const ChunkJob& b) {
      return ChunkKey{a.field, a.chunk_index} < ChunkKey{b.field, b.chunk_index};
    });
    return judged;
  }

  /// What is missing from the sum over all chunks; 0 if every chunk is claimed exactly once.
  std::uint64_t imbalance() const {
    std::uint64_t expected = 0;
    const std::uint64_t end = homes_.block_start(comm_.rank() + 1);
    for (std::uint64_t number = homes_.block_start(comm_.rank()); number < end; ++number) {
      if (!fields_[homes_.key_of(number).field].allow_holes) expected += chunk_mark(number);
    }
    return sum_ - expected;
  }

  Ownership take() { return std::move(result_); }

 private:
  void collect_parts(std::size_t f) {
    const OwnedField& field = fields_[f];
    for (std::size_t p = 0; p < field.puts.size(); ++p) {
      const Box& box = field.puts[p].box;
      if (box.empty()) continue;
      for_each_position(field.grid.touched(box), [&](const Shape& coordinates) {
        const std::uint64_t chunk = field.grid.index_of(coordinates);
        parts_[{f, chunk}].push_back({p, intersect(box, field.grid.full_box(chunk))});
      });
    }
  }

  bool wholly_held(ChunkKey key, const std::vector<LocalPart>& parts) const {
    std::uint64_t n_held = 0;
    std::vector<HeldBox> boxes;
    for (const LocalPart& part : parts) {
      n_held += part.box.n_elements();
      boxes.push_back({comm_.rank(), part.box});
    }
    const Box chunk = fields_[key.field].grid.clipped_box(key.chunk_index);
    if (n_held != chunk.n_elements()) return false;
    return parts.size() == 1 || !find_overlap(std::move(boxes));
  }

  /// As home: check each announced chunk, choose its owner, prepare what the holders are told.
  Status judge(const std::vector<Message>& announcements, bool all_announced) {
    verdicts_.clear();
    std::map<ChunkKey, std::vector<HeldBox>> chunks;
    for (const Message& message : announcements) {
      ByteReader reader(message.payload);
      while (!reader.at_end()) {
        ChunkKey key;
        key.field = static_cast<std::size_t>(reader.take<std::uint64_t>());
        key.chunk_index = reader.take<std::uint64_t>();
        const auto n_boxes = reader.take<std::uint32_t>();
        for (std::uint32_t i = 0; i < n_boxes; ++i) {
          chunks[key].push_back({message.peer, reader.take_box()});
        }
      }
    }
    Status first_error;
    for (const auto& [key, boxes] : chunks) {
      if (Status checked = judge_chunk(key, boxes); !checked.ok() && first_error.ok()) {
        first_error = checked;
      }
    }
    if (all_announced && first_error.ok()) first_error = find_untouched(chunks);
    return first_error;
  }

  Status judge_chunk(ChunkKey key, const std::vector<HeldBox>& boxes) {
    const OwnedField& field = fields_[key.field];
    const Box chunk = field.grid.clipped_box(key.chunk_index);
    std::map<int, std::vector<Box>> by_rank;
    std::map<int, std::uint64_t> n_held;
    std::uint64_t n_covered = 0;
    for (const HeldBox& held : boxes) {
      by_rank[held.rank].push_back(held.box);
      n_held[held.rank] += held.box.n_elements();
      n_covered += held.box.n_elements();
    }
    const auto owner =
        std::max_element(n_held.begin(), n_held.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // the first of equals: the lowest rank
        });
    for (const auto& [rank, held] : by_rank) {
      ByteWriter& writer = verdicts_[rank];
      writer.add(static_cast<std::uint64_t>(key.field));
      writer.add(key.chunk_index);
      const bool owns = rank == owner->first;
      writer.add(static_cast<std::uint32_t>(owns ? by_rank.size() : 0));
      if (!owns) continue;
      for (const auto& [holder, held_boxes] : by_rank) {
        writer.add(static_cast<std::int32_t>(holder));
        writer.add(static_cast<std::uint32_t>(held_boxes.size()));
        for (const Box& box : held_boxes) writer.add(box);
      }
    }
    if (auto overlap = find_overlap(boxes)) {
      return overlap_error(field, overlap->first, overlap->second);
    }
    if (n_covered < chunk.n_elements() && !field.allow_holes) {
      return hole_error(field, chunk, chunk.n_elements() - n_covered);
    }
    if (!field.allow_holes) sum_ += chunk_mark(homes_.number_of(key));
    return Status();
  }

  /// As home, when everything was announced: a chunk that nobody mentioned is a hole.
  Status find_untouched(const std::map<ChunkKey, std::vector<HeldBox>>& chunks) const {
    const std::uint64_t end = homes_.block_start(comm_.rank() + 1);
    for (std::uint64_t number = homes_.block_start(comm_.rank()); number < end; ++number) {
      const ChunkKey key = homes_.key_of(number);
      const OwnedField& field = fields_[key.field];
      if (field.allow_holes || chunks.count(key) != 0) continue;
      const Box chunk = field.grid.clipped_box(key.chunk_index);
      return hole_error(field, chunk, chunk.n_elements());
    }
    return Status();
  }

  /// Turn the homes' verdicts into jobs (where this rank owns) and debts (where it does not).
  void take_verdicts(const std::vector<Message>& verdicts) {
    for (const Message& message : verdicts) {
      ByteReader reader(message.payload);
      while (!reader.at_end()) {
        ChunkKey key;
        key.field = static_cast<std::size_t>(reader.take<std::uint64_t>());
        key.chunk_index = reader.take<std::uint64_t>();
        const auto n_holders = reader.take<std::uint32_t>();
        if (n_holders == 0) {
          result_.owed[key] = parts_.at(key);
          continue;
        }
        ChunkJob job{key.field, key.chunk_index, parts_.at(key), {}};
        for (std::uint32_t h = 0; h < n_holders; ++h) {
          RemoteParts remote{reader.take<std::int32_t>(), {}};
          const auto n_boxes = reader.take<std::uint32_t>();
          for (std::uint32_t b = 0; b < n_boxes; ++b) remote.boxes.push_back(reader.take_box());
          if (remote.rank != comm_.rank()) job.remote.push_back(std::move(remote));
        }
        result_.jobs.push_back(std::move(job));
      }
    }
  }

  static std::vector<Message> messages(std::map<int, ByteWriter>& writers) {
    std::vector<Message> outgoing;
    outgoing.reserve(writers.size());
    for (auto& [peer, writer] : writers) outgoing.push_back({peer, writer.take()});
    return outgoing;
  }

  Comm& comm_;
  std::span<const OwnedField> fields_;
  Homes homes_;
  std::map<ChunkKey, std::vector<LocalPart>> parts_;
  std::map<int, ByteWriter> verdicts_;
  std::uint64_t sum_ = 0;
  Ownership result_;
};

}  // namespace

Result<Ownership> settle_ownership(Comm& comm, std::span<const OwnedField> fields) {
  Settlement settlement(comm, fields);
  const Status judged = settlement.settle(false);
  std::uint64_t facts[2] = {settlement.imbalance(), judged.ok() ? 0U : 1U};
  comm.allreduce(std::span<std::uint64_t>(facts), Reduction::sum);
  if (facts[0] != 0 || facts[1] != 0) {
    // Some chunk is held twice, in part or by nobody. Announce all, so that its home sees every box
    // of it and can name the culprit: a part alone looks like a hole where it is an overlap.
    TAILRACE_TRY(settlement.settle(true));
    TAILRACE_TRY(judged);
  }
  return settlement.take();
}

Status check_pulled_chunks(std::span<const OwnedField> fields, const Ownership& ownership) {
  const auto check = [&](std::size_t f, const std::vector<LocalPart>& parts) {
    const bool pulled = std::any_of(parts.begin(), parts.end(), [&](const LocalPart& part) {
      return fields[f].puts[part.put_index].source != nullptr;
    });
    if (!pulled) return Status();
    return Status(Code::invalid_argument,
                  "field \"" + fields[f].path + "\": values from a source must be whole chunks");
  };
  for (const ChunkJob& job : ownership.jobs) {
    if (job.local.size() > 1 || !job.remote.empty()) TAILRACE_TRY(check(job.field, job.local));
  }
  for (const auto& [key, parts] : ownership.owed) TAILRACE_TRY(check(key.field, parts));
  return Status();
}

// --- Requests for pieces and the answers to them.

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
