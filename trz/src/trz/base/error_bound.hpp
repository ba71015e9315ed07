// Error bounds: what the user asked for, and the absolute bound that it comes to for one field.
//
// Modes. abs: |decoded - original| <= value. rel: value times the range of the field's finite
// values that are not fill, over all ranks. psnr: the bound that guarantees this PSNR in dB
// whatever the distribution of errors is, range * 10^(-dB/20) (the root mean square error cannot
// exceed the largest error). pw_rel: |decoded - original| <= value * |original| for every finite
// value by itself, so that zeros stay zeros; it comes to no absolute bound. none: the field is kept
// exactly. Every comparison against a bound is exact: see exceeds_bound, exceeds_pointwise_bound.
// What decoded values keep besides: trz/base/guards.hpp.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "trz/base/status.hpp"

namespace tailrace {

enum class BoundMode : std::uint8_t { none, abs, rel, psnr, pw_rel };

std::string_view bound_mode_name(BoundMode mode);

struct ErrorBound {
  BoundMode mode = BoundMode::none;
  double value = 0;  ///< abs: unit of the field; rel: fraction of the range; psnr: dB;
                     ///< pw_rel: fraction of each value's magnitude, < 1.

  bool lossless() const { return mode == BoundMode::none; }
  bool needs_range() const { return mode == BoundMode::rel || mode == BoundMode::psnr; }
  bool operator==(const ErrorBound&) const = default;
};

/// Parse "abs=1e-3", "rel=1e-4", "psnr=80", "pw_rel=1e-3" or "none".
/// @error invalid_argument  unknown mode, no number, or a value that is NaN, infinite or <= 0; for
/// pw_rel also >= 1, which would let every value become 0.
Result<ErrorBound> parse_error_bound(std::string_view text);

/// "rel=0.001"; the inverse of parse_error_bound (shortest text that parses to the same double).
std::string error_bound_text(const ErrorBound& bound);

/// The shortest text that is this number.
std::string number_text(double number);

/// The absolute bound for a field whose finite, non-fill values span [least, greatest].
/// 0 means: must be kept exactly (mode none, or a range of zero under rel and psnr), or that there
/// is none (pw_rel).
/// Rounded towards zero to the field's own precision by the caller where a codec needs that.
double absolute_bound(const ErrorBound& bound, double least, double greatest);

/// The fraction of mode pw_rel; 0 for every other mode.
inline double pointwise_bound(const ErrorBound& bound) {
  return bound.mode == BoundMode::pw_rel ? bound.value : 0.0;
}

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

/// Whether |x - y| > fraction * |x| in exact arithmetic, for finite x and y and 0 <= fraction < 1.
/// As above: both sides round monotonically, and only where they round to the same number do the
/// rounding errors decide. Tiny numbers are scaled up first, so that nothing underflows.
inline bool exceeds_pointwise_bound(double x, double y, double fraction) {
  if (x == y) return false;
  // Below 2^-60 no other number is near enough: neighbours differ by 2^-53 of themselves and more.
  if (!(fraction >= 0x1p-60) || x == 0 || y == 0 || (x < 0) != (y < 0)) return true;
  double original = std::fabs(x);
  double decoded = std::fabs(y);
  if (decoded / 2 > original) return true;
  if (original < 0x1p-700) {
    original *= 0x1p200;
    decoded *= 0x1p200;
  }
  const double allowed = fraction * original;
  const double difference = original - decoded;
  const double magnitude = std::fabs(difference);
  if (magnitude != allowed) return magnitude > allowed;
  const double decoded_virtual = original - difference;
  const double original_virtual = difference + decoded_virtual;
  const double residual = (original - original_virtual) - (decoded - decoded_virtual);
  return (difference < 0 ? -residual : residual) > std::fma(fraction, original, -allowed);
}

}  // namespace tailrace
