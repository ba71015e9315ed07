// Regions of a dataset whose values keep a tighter bound than the others (guard=region=), and what
// they come to for the values of one box.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// |decoded - original| <= most for what lies in a box, or where a mask is not zero.
struct RegionGuard {
  Shape begin;       ///< Of the box, in indexes of the dataset as the file has it; empty: a mask.
  Shape end;         ///< Behind its last index; open_end: to the dataset's end.
  std::string mask;  ///< Path of a dataset of integers; empty: a box.
  double most = 0;   ///< 0: nothing moves.

  static constexpr std::uint64_t open_end = UINT64_MAX;
  bool operator==(const RegionGuard&) const = default;
  bool operator<(const RegionGuard& other) const;
};

/// Parse "0..16x10..20x*:1e-4", or "/mask:1e-4". @error invalid_argument  says what a region is
Result<RegionGuard> parse_region(std::string_view text);

/// The inverse of parse_region.
std::string region_text(const RegionGuard& region);

/// Whether these are regions of a dataset of this shape. Masks have shapes of their own.
/// @param growing  bit d: dimension d may grow, so that a box may begin and end behind it.
/// @error invalid_argument  another number of axes, or a box that leaves the shape.
Status check_regions(std::span<const RegionGuard> regions, const Shape& shape,
                     std::uint64_t growing);

/// Whether some are masks, and why these are refused where nobody reads them.
bool has_masks(std::span<const RegionGuard> regions);
inline constexpr const char* mask_refusal =
    "a mask is read from the file that repack takes; give boxes of indexes here, or repack then";

/// Which values of a field are inside.
class RegionMask {
 public:
  virtual ~RegionMask() = default;
  /// 1 for each value of a box of the field that is inside, else 0. Thread-safe. @error io_error,
  /// corrupt, out_of_memory
  virtual Status read(const Box& box, std::span<std::uint8_t> inside) const = 0;
};
/// One for each region; null: it is a box, or counts for nothing. Empty: all are boxes.
using RegionMasks = std::vector<std::shared_ptr<const RegionMask>>;

/// Of each value of a box the tightest bound of the regions in which it lies.
struct RegionLevels {
  std::vector<double> bounds;  ///< Descending.
  std::vector<std::uint8_t>
      of_value;  ///< 0: none; else 1 + where its bound is. Empty: none at all.
  bool empty() const { return of_value.empty(); }
  /// What value i may be off by, where all may be by `otherwise`.
  double bound_of(std::size_t i, double otherwise) const {
    if (empty() || of_value[i] == 0) return otherwise;
    const double bound = bounds[of_value[i] - 1U];
    return bound < otherwise ? bound : otherwise;
  }
};

/// Of the values of a box, laid out as the beginning of an array of `extents`: what lies behind the
/// box is in no region. @error as RegionMask::read
Result<RegionLevels> region_levels(std::span<const RegionGuard> regions, const RegionMasks& masks,
                                   const Box& box, const Shape& extents);

}  // namespace tailrace
