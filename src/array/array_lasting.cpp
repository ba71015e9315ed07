// Lasting elements of a StagingLog: those that no later put replaces.

#include <algorithm>

#include "array/array_staging.hpp"

namespace tailrace {
namespace {

std::vector<std::uint64_t> words_of(const Box& box) {
  std::vector<std::uint64_t> words = box.start;
  words.insert(words.end(), box.count.begin(), box.count.end());
  return words;
}

/// Mark the elements that a piece shares with `cover`, by their positions in the piece's dense
/// array.
void mark_shared(const Slab& cover, const Slab& piece, std::vector<bool>& marks) {
  const SlabPart part = part_within(cover, piece.bounding_box());
  if (part.slab.empty()) return;
  if (piece.rank() == 0) {
    marks.assign(1, true);
    return;
  }
  const std::size_t inner = piece.rank() - 1;
  const auto place = [&](std::size_t d, std::uint64_t i) -> std::optional<std::uint64_t> {
    const std::uint64_t steps = part.slab.start[d] + i * part.slab.stride_of(d) - piece.start[d];
    if (steps % piece.stride_of(d) != 0) return std::nullopt;
    return steps / piece.stride_of(d);
  };
  const std::uint64_t n = part.slab.count[inner];
  const bool dense = part.slab.stride_of(inner) == 1 && piece.stride_of(inner) == 1;
  Shape n_rows = part.slab.count;
  n_rows.pop_back();
  for_each_position({Shape(inner, 0), n_rows}, [&](const Shape& at) {
    std::uint64_t row = 0;
    for (std::size_t d = 0; d < inner; ++d) {
      const std::optional<std::uint64_t> index = place(d, at[d]);
      if (!index) return;
      row = (row + *index) * piece.count[d + 1];
    }
    if (dense) {
      std::fill_n(marks.begin() + static_cast<std::ptrdiff_t>(row + *place(inner, 0)), n, true);
      return;
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      if (const std::optional<std::uint64_t> index = place(inner, i)) marks[row + *index] = true;
    }
  });
}

}  // namespace

void StagingLog::for_each_lasting(std::span<const Cover> others, const LastingVisit& visit) const {
  if (heads_.empty()) return;
  BoxIndex index;
  index.extend(others.size(), heads_.front().rank,
               [&](std::size_t number, std::span<std::uint64_t> words) {
                 std::ranges::copy(words_of(others[number].slab.bounding_box()), words.begin());
               });
  std::vector<bool> replaced;
  for (std::size_t e = 0; e < heads_.size(); ++e) {
    for_each_piece(e, [&](const Slab& piece, std::uint64_t epoch, const std::byte* values) {
      const std::uint64_t n = piece.n_elements();
      const std::vector<std::uint64_t> around = words_of(piece.bounding_box());
      replaced.clear();
      bool wholly = false;
      const auto replace = [&](const Slab& by) {
        wholly = wholly || (by.dense() && box_holds(words_of(by.bounding_box()), around));
        if (wholly) return;
        if (replaced.empty()) replaced.resize(n);
        mark_shared(by, piece, replaced);
      };
      for_each_touching(piece, e + 1, [&](const Slab& by, const std::byte*) { replace(by); });
      index.visit(around, [&](std::size_t number) {
        if (others[number].epoch > epoch) replace(others[number].slab);
        return !wholly;
      });
      if (wholly) return;
      if (replaced.empty()) return visit({piece, 0, n, epoch, values});
      for (auto run = replaced.begin(); run != replaced.end();) {
        run = std::find(run, replaced.end(), false);
        const auto end = std::find(run, replaced.end(), true);
        const auto first = static_cast<std::uint64_t>(run - replaced.begin());
        if (run != end) {
          visit({piece, first, static_cast<std::uint64_t>(end - run), epoch,
                 values + first * element_bytes_});
        }
        run = end;
      }
    });
  }
}

}  // namespace tailrace
