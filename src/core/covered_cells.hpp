// CoveredCells: the cells of a plotfile's level that boxes of the next finer level cover.
//
// A simulation continues with the finer cells. The level's values below them are usually averages,
// and readers show the finer ones. With option covered=drop these values need not be stored.
// describe/plotfile.hpp finds the boxes; field/covered_values.hpp replaces the values.

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

/// Corners of a level's boxes in the order of plotfiles: for each box the indices of its lowest
/// cell, then those of its highest. Index i, the fastest axis in the file, comes first.
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

/// Part of a level's box that one finer box covers.
struct CoveredPart {
  std::uint64_t box = 0;  ///< Number of the level's box in its BoxSeries.
  Box cells;              ///< Within that box, slowest axis first.
};

/// Find the parts that boxes of the next finer level cover, sorted by box, then by first cell. A
/// cell is covered if one finer box contains it completely. Corners are below 2^33 in magnitude.
/// Cost: O(n log n) boxes.
/// @param ratio  finer cells along an edge of a cell of the level, >= 1, i first.
std::vector<CoveredPart> covered_parts(const LevelCorners& level, const LevelCorners& finer,
                                       std::span<const std::int64_t> ratio);

/// Immutable, so all threads may share it.
class CoveredCells {
 public:
  /// @param parts  from covered_parts(), each within its box.
  CoveredCells(std::shared_ptr<const BoxSeries> boxes, std::vector<CoveredPart> parts);

  /// Set the marks of covered elements among the level's elements from `first` on; leave other
  /// marks unchanged.
  /// @returns true if any element is covered
  bool mark(std::uint64_t first, std::span<std::uint8_t> marks) const;
  /// Return the index after the last element of the same component of the same box. Beyond the
  /// level's end: the greatest number.
  std::uint64_t component_end(std::uint64_t element) const;
  const BoxSeries& boxes() const { return *boxes_; }
  const std::vector<CoveredPart>& parts() const { return parts_; }
  /// Covered cells of one component; the dataset has this number for each of its components.
  std::uint64_t n_cells() const;
  /// Hash of the parts; different parts almost surely have different hashes.
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

/// Cover of a level, as far as it could be determined.
struct LevelCover {
  std::shared_ptr<const CoveredCells> cells;  ///< Null: no cell is covered, or the cover is
                                              //   unknown.
  std::string unknown;                        ///< Reason why the cover is unknown; empty: it is
                                              //   known.
};

}  // namespace tailrace
