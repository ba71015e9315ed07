// Scattered entries of a StagingLog: lists of element runs, put in very many pieces by one call.

#include <algorithm>
#include <cstring>
#include <limits>

#include "array/array_staging.hpp"

namespace tailrace {
namespace {

/// Minimum number of runs of a scattered entry; fewer become boxes.
constexpr std::size_t kLeastScattered = 16;

/// Bounding box of elements [first, end) of an array of these extents. It is the smallest one,
/// except that it is complete in all dimensions after the first that spans more than one index.
Box around_elements(const Shape& lengths, std::uint64_t first, std::uint64_t end) {
  Box box{Shape(lengths.size(), 0), lengths};
  std::uint64_t inner = 1;
  for (std::size_t d = 1; d < lengths.size(); ++d) inner *= lengths[d];
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    box.start[d] = first / inner;
    box.count[d] = (end - 1) / inner + 1 - box.start[d];
    if (box.count[d] > 1 || d + 1 == lengths.size()) break;
    first -= box.start[d] * inner;
    end -= box.start[d] * inner;
    inner /= lengths[d + 1];
  }
  return box;
}

}  // namespace

/// Size of the packed runs, which precede the values of a scattered entry. A multiple of 8 bytes,
/// so that values stay aligned.
std::uint64_t StagingLog::run_bytes(const Head& head) const {
  return head.scattered ? StoredRuns::bytes_of(words(head).back()) : 0;
}

StoredRuns StagingLog::element_runs(std::size_t entry) const {
  const Head& head = heads_[entry];
  TAILRACE_CHECK(head.scattered);
  return {head.values - run_bytes(head), static_cast<std::size_t>(words(head).back())};
}

Box StagingLog::box_of_sample(std::size_t entry, const Shape& shape) const {
  const Head& head = heads_[entry];
  Box box = box_of_values(entry);
  if (head.dense()) return box;
  std::ranges::fill(box.start, 0);
  if (head.strided) return box;
  std::uint64_t left = n_elements(head);
  for (std::size_t d = box.rank(); d-- > 0;) {
    box.count[d] = std::clamp<std::uint64_t>(shape[d], 1, left);
    left /= box.count[d];
  }
  return box;
}

/// Runs ascend, so those before and behind the range are skipped.
void StagingLog::for_each_scattered_box(std::size_t entry, std::uint64_t begin, std::uint64_t last,
                                        const PieceVisit& visit) const {
  const Head& head = heads_[entry];
  const auto lengths = words(head).subspan(2 * std::size_t{head.rank}, head.rank);
  const Box whole{Shape(head.rank, 0), Shape(lengths.begin(), lengths.end())};
  const StoredRuns runs = element_runs(entry);
  for (std::size_t r = runs.find(begin); r < runs.size() && runs.first(r) <= last; ++r) {
    const std::uint64_t first = runs.first(r);
    const std::uint64_t end = first + runs.count(r);
    const std::byte* values = head.values + runs.from(r) * element_bytes_;
    for_each_box_of_run(whole, first, end, [&](const Box& part) {
      visit(Slab::of(part), head.epoch, values);
      values += part.n_elements() * element_bytes_;
    });
  }
}

Status StagingLog::put(const Shape& lengths, const ElementRuns& runs,
                       std::span<const std::byte> values, std::uint64_t epoch) {
  TAILRACE_CHECK(!lengths.empty());
  // Overlapping runs must be applied in their order, and a few runs become boxes.
  const bool few = runs.size() < kLeastScattered ||
                   values.size() / element_bytes_ > std::numeric_limits<std::uint32_t>::max();
  if (few) return put_boxes(lengths, runs, values, epoch);
  const SortedRuns sorted = sort_runs(runs);
  if (sorted.overlap) return put_boxes(lengths, runs, values, epoch);
  if (sorted.runs.size() >= kLeastScattered) {
    if (overwrite_last(sorted, values, epoch)) return Status();
    return put_scattered(lengths, sorted, values, epoch);
  }
  std::vector<std::byte> in_order(values.size());
  copy_in_order(sorted, values, element_bytes_, in_order.data());
  return put_boxes(lengths, sorted.runs, in_order, epoch);
}

void StagingLog::copy_in_order(const SortedRuns& sorted, std::span<const std::byte> values,
                               std::size_t element_bytes, std::byte* to) {
  for (const SortedRuns::Part& part : sorted.parts) {
    std::memcpy(to, values.data() + part.from * element_bytes, part.n * element_bytes);
    to += part.n * element_bytes;
  }
}

/// Replace the values of the latest entry if the new put has the same runs.
bool StagingLog::overwrite_last(const SortedRuns& sorted, std::span<const std::byte> values,
                                std::uint64_t epoch) {
  if (heads_.empty() || !heads_.back().scattered) return false;
  const StoredRuns last = element_runs(heads_.size() - 1);
  const ElementRuns& runs = sorted.runs;
  if (last.size() != runs.size()) return false;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (last.first(r) != runs.firsts[r] || last.count(r) != runs.counts[r]) return false;
  }
  copy_in_order(sorted, values, element_bytes_, heads_.back().values);
  heads_.back().epoch = epoch;
  return true;
}

Status StagingLog::put_boxes(const Shape& lengths, const ElementRuns& runs,
                             std::span<const std::byte> values, std::uint64_t epoch) {
  const Box whole{Shape(lengths.size(), 0), lengths};
  Status staged;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::uint64_t first = runs.firsts[r];
    for_each_box_of_run(whole, first, first + runs.counts[r], [&](const Box& box) {
      const std::uint64_t n_bytes = box.n_elements() * element_bytes_;
      if (staged.ok()) staged = put(Slab::of(box), values.first(n_bytes), epoch);
      values = values.subspan(n_bytes);
    });
  }
  return staged;
}

Status StagingLog::put_scattered(const Shape& lengths, const SortedRuns& sorted,
                                 std::span<const std::byte> values, std::uint64_t epoch) {
  const ElementRuns& runs = sorted.runs;
  const std::uint64_t n_run_bytes = StoredRuns::bytes_of(runs.size());
  TAILRACE_TAKE(std::byte * room, room_for(n_run_bytes + values.size()));
  StoredRuns::store(runs, room);
  Head head;
  head.values = room + n_run_bytes;
  head.epoch = epoch;
  head.rank = static_cast<std::uint8_t>(lengths.size());
  head.scattered = true;
  head.set_first_word(words_.size());
  copy_in_order(sorted, values, element_bytes_, head.values);
  value_bytes_ += n_run_bytes + values.size();
  const Box box =
      around_elements(lengths, runs.firsts.front(), runs.firsts.back() + runs.counts.back());
  words_.insert(words_.end(), box.start.begin(), box.start.end());
  words_.insert(words_.end(), box.count.begin(), box.count.end());
  words_.push_back(values.size() / element_bytes_);
  words_.insert(words_.end(), lengths.begin() + 1, lengths.end());
  words_.push_back(runs.size());
  heads_.push_back(head);
  count_overhead();
  return Status();
}

}  // namespace tailrace
