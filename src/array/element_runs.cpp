// Runs of elements: sorting, and cutting at chunk borders.

#include "array/element_runs.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "trz/base/status.hpp"

namespace tailrace {

std::uint64_t ElementRuns::n_elements() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void ElementRuns::add(std::uint64_t first, std::uint64_t n) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (!empty() && firsts.back() + counts.back() == first && counts.back() + n <= most) {
    counts.back() += static_cast<std::uint32_t>(n);
    return;
  }
  for (; n > 0; n -= std::min(n, most)) {
    firsts.push_back(first);
    counts.push_back(static_cast<std::uint32_t>(std::min(n, most)));
    first += most;
  }
}

SortedRuns sort_runs(const ElementRuns& runs) {
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t from = 0;
    std::uint32_t n = 0;
  };
  std::vector<Run> order;
  order.reserve(runs.size());
  std::uint64_t from = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    order.push_back({runs.firsts[i], from, runs.counts[i]});
    from += runs.counts[i];
  }
  if (!std::ranges::is_sorted(order, {}, &Run::first)) std::ranges::sort(order, {}, &Run::first);
  SortedRuns sorted;
  sorted.parts.reserve(runs.size());
  std::uint64_t end = 0;
  for (const Run& run : order) {
    if (!sorted.runs.empty() && run.first < end) {
      sorted.overlap = true;
      return sorted;
    }
    end = run.first + run.n;
    sorted.runs.add(run.first, run.n);
    std::vector<SortedRuns::Part>& parts = sorted.parts;
    if (!parts.empty() && parts.back().from + parts.back().n == run.from) {
      parts.back().n += run.n;
    } else {
      parts.push_back({run.from, run.n});
    }
  }
  return sorted;
}

void StoredRuns::store(const ElementRuns& runs, std::byte* to) {
  std::memcpy(to, runs.firsts.data(), 8 * runs.size());
  to += 8 * runs.size();
  std::uint32_t end = 0;
  for (const std::uint32_t count : runs.counts) {
    end += count;
    std::memcpy(to, &end, sizeof end);
    to += sizeof end;
  }
}

std::size_t StoredRuns::find(std::uint64_t begin) const {
  std::size_t low = 0;
  for (std::size_t high = n_; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (first(middle) + count(middle) > begin) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

namespace {

/// Position of a row of the last dimension: its contribution to chunk numbers and to positions in
/// chunks.
class Rows {
 public:
  explicit Rows(const ChunkGrid& grid) : grid_(grid), n_chunks_(grid.n_per_dimension()) {}

  /// Make the row of `element` the current one.
  void go_to(std::uint64_t element) {
    if (element >= begin_ && element < begin_ + length()) return;
    const std::size_t rank = grid_.shape.size();
    std::uint64_t rest = element / length();
    begin_ = rest * length();
    chunk_ = 0;
    place_ = 0;
    std::uint64_t chunk_step = n_chunks_.back();
    std::uint64_t place_step = grid_.chunk_shape.back();
    for (std::size_t d = rank - 1; d-- > 0;) {
      // The slowest dimension may grow, and so is unbounded.
      const std::uint64_t at = d == 0 ? rest : rest % grid_.shape[d];
      rest /= std::max<std::uint64_t>(grid_.shape[d], 1);
      chunk_ += at / grid_.chunk_shape[d] * chunk_step;
      place_ += at % grid_.chunk_shape[d] * place_step;
      chunk_step *= n_chunks_[d];
      place_step *= grid_.chunk_shape[d];
    }
  }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t length() const { return grid_.shape.back(); }
  std::uint64_t chunk() const { return chunk_; }  ///< First chunk of the row.
  std::uint64_t place() const { return place_; }

 private:
  const ChunkGrid& grid_;
  Shape n_chunks_;
  std::uint64_t begin_ = UINT64_MAX / 2;
  std::uint64_t chunk_ = 0;
  std::uint64_t place_ = 0;
};

}  // namespace

ChunkPieces::ChunkPieces(const ChunkGrid& grid, const StoredRuns& runs) {
  TAILRACE_CHECK(!grid.shape.empty());
  struct Placed {
    std::uint64_t chunk = 0;
    ChunkPiece piece;
  };
  std::vector<Placed> placed;
  placed.reserve(runs.size());
  const std::uint64_t extent = grid.chunk_shape.back();
  Rows rows(grid);
  std::uint64_t from = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::uint64_t at = runs.first(r);
    for (const std::uint64_t end = at + runs.count(r); at < end;) {
      rows.go_to(at);
      const std::uint64_t column = at - rows.begin();
      const std::uint64_t inside = column % extent;
      const std::uint64_t n = std::min({end - at, rows.length() - column, extent - inside});
      const std::uint64_t chunk = rows.chunk() + column / extent;
      const std::uint64_t first = rows.place() + inside;
      Placed* last = placed.empty() ? nullptr : &placed.back();
      if (last != nullptr && last->chunk == chunk && last->piece.first + last->piece.n == first &&
          last->piece.from + last->piece.n == from) {
        last->piece.n += static_cast<std::uint32_t>(n);
      } else {
        placed.push_back({chunk,
                          {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(n),
                           static_cast<std::uint32_t>(from)}});
      }
      at += n;
      from += n;
    }
  }
  if (!std::ranges::is_sorted(placed, {}, &Placed::chunk)) {
    std::ranges::stable_sort(placed, {}, &Placed::chunk);
  }
  pieces_.reserve(placed.size());
  for (const Placed& one : placed) {
    if (chunks_.empty() || chunks_.back() != one.chunk) {
      if (!chunks_.empty()) ends_.push_back(pieces_.size());
      chunks_.push_back(one.chunk);
    }
    pieces_.push_back(one.piece);
  }
  if (!chunks_.empty()) ends_.push_back(pieces_.size());
}

std::span<const ChunkPiece> ChunkPieces::of(std::uint64_t chunk_index) const {
  const auto found = std::ranges::lower_bound(chunks_, chunk_index);
  if (found == chunks_.end() || *found != chunk_index) return {};
  const auto which = static_cast<std::size_t>(found - chunks_.begin());
  const std::size_t begin = which == 0 ? 0 : ends_[which - 1];
  return std::span(pieces_).subspan(begin, ends_[which] - begin);
}

std::uint64_t ChunkPieces::n_elements(std::uint64_t chunk_index) const {
  std::uint64_t n = 0;
  for (const ChunkPiece& piece : of(chunk_index)) n += piece.n;
  return n;
}

}  // namespace tailrace
