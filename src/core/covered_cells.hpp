// CoveredCells: where boxes of the next finer level lie over a level of a plotfile.
//
// A simulation goes on with the finer cells; what a level has below them is as a rule their
// average, and readers show the finer ones. So these values need not be kept, if somebody asks for
// that (option covered=). Left to others: where the boxes come from (describe/plotfile.hpp), what
// the values become (field/covered_values.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/box_series.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

/// Corners of a level's boxes as plotfiles list them: of each box the indices of its lowest cell,
/// then those of its highest; i, the fastest axis in the file, first.
struct LevelCorners {
  std::size_t n_dimensions = 1;
  std::vector<std::int64_t> numbers;

  std::size_t n_boxes() const { return numbers.size() / (2 * n_dimensions); }
  std::int64_t low(std::size_t box, std::size_t axis) const {
    return numbers[2 * n_dimensions * box + axis];
  }
  std::int64_t high(std::size_t box, std::size_t axis) const {
    return numbers[2 * n_dimensions * box + n_dimensions + axis];
  }
};

/// What one finer box covers of a box.
struct CoveredPart {
  std::uint64_t box = 0;  ///< Of the level, as its BoxSeries counts them.
  Box cells;              ///< Within that box, slowest axis first.
};

/// What boxes of the next finer level cover, sorted by box, then by first cell. A cell counts if
/// one finer box holds all of it. Corners are below 2^33 in magnitude. Cost: O(n log n) boxes.
/// @param ratio  cells of the finer level along an edge of the level's, >= 1, i first.
std::vector<CoveredPart> covered_parts(const LevelCorners& level, const LevelCorners& finer,
                                       std::span<const std::int64_t> ratio);

/// Immutable: for all threads.
class CoveredCells {
 public:
  /// @param parts  as of covered_parts(), each within its box.
  CoveredCells(std::shared_ptr<const BoxSeries> boxes, std::vector<CoveredPart> parts);

  /// Set the marks of covered ones among the level's elements from `first` on; others stay.
  /// @returns whether there are any
  bool mark(std::uint64_t first, std::span<std::uint8_t> marks) const;
  /// Behind the last of the elements that are of the same component of the same box as this one;
  /// beyond the level's end: the greatest number.
  std::uint64_t component_end(std::uint64_t element) const;
  const BoxSeries& boxes() const { return *boxes_; }
  const std::vector<CoveredPart>& parts() const { return parts_; }
  /// Of one component; all of the dataset's are as many times as much.
  std::uint64_t n_cells() const;
  /// Of the parts: equal where these are, as good as.
  std::uint64_t checksum() const;

 private:
  struct Run {
    std::uint64_t first_box = 0;
    std::uint64_t first_element = 0;
  };
  std::shared_ptr<const BoxSeries> boxes_;
  std::vector<CoveredPart> parts_;
  std::vector<Run> runs_;  ///< Parallel to the series'.
  std::uint64_t n_elements_ = 0;
};

/// What is known of it.
struct LevelCover {
  std::shared_ptr<const CoveredCells> cells;  ///< Null: none is covered, or it is not known.
  std::string unknown;                        ///< Why it is not; empty: it is.
};

}  // namespace tailrace
