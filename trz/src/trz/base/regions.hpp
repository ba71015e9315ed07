// Regions of a dataset whose values have a tighter bound than other values (guard=region=). They
// are parsed, checked, and resolved to a bound for each value of one box.

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

/// |decoded - original| <= most for values in a box, or for values whose mask is not zero.
struct RegionGuard {
  Shape begin;       ///< First index of the box, in the file's dataset; empty: a mask.
  Shape end;         ///< One past the box's last index; kOpenEnd: up to the dataset's end.
  std::string mask;  ///< Path of a dataset of integers; empty: a box.
  double most = 0;   ///< Largest error allowed; 0: values are stored exactly.

  static constexpr std::uint64_t kOpenEnd = UINT64_MAX;
  bool operator==(const RegionGuard&) const = default;
  bool operator<(const RegionGuard& other) const;
};

/// Parse "0..16x10..20x*:1e-4", or "/mask:1e-4".
/// @error invalid_argument  a malformed region; the message states the syntax.
Result<RegionGuard> parse_region(std::string_view text);

/// The inverse of parse_region.
std::string region_text(const RegionGuard& region);

/// Check that the boxes of regions fit a dataset of this shape. Masks are not checked.
/// @param growing  bit d: dimension d may grow, so a box may extend beyond its current end.
/// @error invalid_argument  a different number of axes, or a box that leaves the shape.
Status check_regions(std::span<const RegionGuard> regions, const Shape& shape,
                     std::uint64_t growing);

/// True if a region is a mask.
bool has_masks(std::span<const RegionGuard> regions);
/// Error text of callers that cannot read masks.
inline constexpr const char* kMaskRefusal =
    "a mask works only with tailrace repack, which reads it from its input file; give ranges of "
    "indexes here, or repack the file later";

/// Mask of a region: reports which values of a field lie inside the region.
class RegionMask {
 public:
  virtual ~RegionMask() = default;
  /// Set `inside` to 1 for each value of `box` that lies inside the region, else 0. Thread-safe.
  /// @error io_error, corrupt, out_of_memory
  virtual Status read(const Box& box, std::span<std::uint8_t> inside) const = 0;
};
/// One mask per region; null: the region is a box or is ignored. Empty: all regions are boxes.
using RegionMasks = std::vector<std::shared_ptr<const RegionMask>>;

/// The tightest bound, for each value of a box, of the regions that contain the value.
struct RegionLevels {
  std::vector<double> bounds;  ///< Descending.
  std::vector<std::uint8_t>
      of_value;  ///< 0: in no region; else 1 + index into bounds. Empty: no value is in a region.
  bool empty() const { return of_value.empty(); }
  /// Largest error allowed for value i, where `otherwise` is the bound of all values.
  double bound_of(std::size_t i, double otherwise) const {
    if (empty() || of_value[i] == 0) return otherwise;
    const double bound = bounds[of_value[i] - 1U];
    return bound < otherwise ? bound : otherwise;
  }
};

/// Compute the bounds that regions imply for the values of `box`. The result covers a row-major
/// array of `extents`, which begins with the box; values outside the box are in no region.
/// @error the errors of RegionMask::read
Result<RegionLevels> region_levels(std::span<const RegionGuard> regions, const RegionMasks& masks,
                                   const Box& box, const Shape& extents);

}  // namespace tailrace
