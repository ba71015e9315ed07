// Error bounds: what the user asked for, and the absolute bound that it comes to for one field.
//
// Modes. abs: |decoded - original| <= value. rel: value times the range of the field's finite
// values that are not fill, over all ranks. psnr: the bound that guarantees this PSNR in dB
// whatever the distribution of errors is, range * 10^(-dB/20) (the root mean square error cannot
// exceed the largest error). none: the field is kept exactly. Every comparison against a bound is
// exact: see exceeds_bound.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.hpp"

namespace tailrace {

enum class BoundMode : std::uint8_t { none, abs, rel, psnr };

std::string_view bound_mode_name(BoundMode mode);

struct ErrorBound {
  BoundMode mode = BoundMode::none;
  double value = 0;  ///< abs: unit of the field; rel: fraction of the range; psnr: dB.

  bool lossless() const { return mode == BoundMode::none; }
  bool needs_range() const { return mode == BoundMode::rel || mode == BoundMode::psnr; }
  bool operator==(const ErrorBound&) const = default;
};

/// Parse "abs=1e-3", "rel=1e-4", "psnr=80" or "none".
/// @error invalid_argument  unknown mode, no number, or a value that is NaN, infinite or <= 0.
Result<ErrorBound> parse_error_bound(std::string_view text);

/// "rel=0.001"; the inverse of parse_error_bound (shortest text that parses to the same double).
std::string error_bound_text(const ErrorBound& bound);

/// The absolute bound for a field whose finite, non-fill values span [least, greatest].
/// 0 means: must be kept exactly (mode none, or a range of zero under rel and psnr).
/// Rounded towards zero to the field's own precision by the caller where a codec needs that.
double absolute_bound(const ErrorBound& bound, double least, double greatest);

/// Whether |x - y| > bound in exact arithmetic, for finite x and y and bound >= 0.
/// Rounding of x - y is monotone, so only equality needs the rounding error (Knuth's TwoSum).
inline bool exceeds_bound(double x, double y, double bound) {
  const double difference = x - y;
  const double magnitude = difference < 0 ? -difference : difference;
  if (magnitude != bound) return magnitude > bound;
  const double y_virtual = x - difference;
  const double x_virtual = difference + y_virtual;
  const double residual = (x - x_virtual) - (y - y_virtual);
  return difference < 0 ? residual < 0 : residual > 0;
}

}  // namespace tailrace
