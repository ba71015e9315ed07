// Error bounds: the bound that the user requested, and the absolute bound derived from it for one
// field.
//
// Modes:
//   abs     |decoded - original| <= value.
//   rel     the bound is value times the range of the field's finite, non-fill values on all ranks.
//   psnr    the bound is range * 10^(-dB/20). It guarantees this PSNR for any distribution of the
//           errors, since the root mean square error cannot exceed the largest error.
//   pw_rel  |decoded - original| <= value * |original| for each finite value. Zeros stay zeros. The
//           mode has no equivalent absolute bound.
//   none    lossless: all values are stored exactly.
//
// Every comparison against a bound is exact: see exceeds_bound and exceeds_pointwise_bound. Further
// conditions on decoded values are in trz/base/guards.hpp.

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
/// pw_rel also a value >= 1, which would allow every value to become 0.
Result<ErrorBound> parse_error_bound(std::string_view text);

/// Text of a bound, such as "rel=0.001": the shortest text that parse_error_bound maps back to it.
std::string error_bound_text(const ErrorBound& bound);

/// The shortest decimal text that parses to this number.
std::string number_text(double number);

/// The absolute bound for a field whose finite, non-fill values span [least, greatest].
/// 0 means: the field must be stored exactly (mode none, or a range of zero under rel and psnr), or
/// the mode has no absolute bound (pw_rel). The caller rounds the result towards zero to the
/// field's precision if a codec needs that.
double absolute_bound(const ErrorBound& bound, double least, double greatest);

/// The fraction of mode pw_rel; 0 for every other mode.
inline double pointwise_bound(const ErrorBound& bound) {
  return bound.mode == BoundMode::pw_rel ? bound.value : 0.0;
}

/// True if |x - y| > bound in exact arithmetic, for finite x and y and bound >= 0.
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

/// True if |x - y| > fraction * |x| in exact arithmetic, for finite x and y and 0 <= fraction < 1.
/// Both sides round monotonically, so the rounding errors decide only if both round to the same
/// number. Tiny numbers are scaled up first to avoid underflow.
inline bool exceeds_pointwise_bound(double x, double y, double fraction) {
  if (x == y) return false;
  // Below 2^-60 no other double is within the bound: neighbours differ by at least 2^-53 of |x|.
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
