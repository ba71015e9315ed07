// Guards: conditions on decoded values in addition to their bound (docs/guards.md), and the checks
// for one value x that decodes to y. The encoder of codec trz enforces them; `verify` checks them.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/base/regions.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// |f(y) - f(x)| <= most, where f is the logarithm or a power. If f(x) is not finite, y = x.
struct FunctionGuard {
  double exponent = 0;  ///< An integer from -8 to 8, or 0.5; 0: the logarithm.
  double most = 0;

  bool logarithm() const { return exponent == 0; }
  bool operator==(const FunctionGuard&) const = default;
};

/// The conditions that guard= requests for single values, extremes, neighbours and sums.
struct Guards {
  bool sign = false;     ///< Each value stays negative, zero or positive; implies `zero`.
  bool zero = false;     ///< Zeros stay zeros, with their sign bit.
  bool minmax = false;   ///< The least and the greatest finite, non-fill value do not change.
  bool sum = false;      ///< Each chunk's sum is preserved, to half an ulp of its largest value.
  double gradient = 0;   ///< Most by which differences of neighbours may change; 0: no guard.
  double laplacian = 0;  ///< Most by which sums of second differences may change; 0: no guard.
  std::vector<double> thresholds;  ///< Values stay below, at or above each of these. Ascending.
  std::vector<FunctionGuard> functions;
  std::vector<int> monotone;         ///< Axes along which neighbours keep their order. Ascending.
  std::vector<RegionGuard> regions;  ///< Regions whose values have tighter bounds. Ascending.

  /// True if values within the bound can break a guard. The encoder must then check the decoded
  /// values.
  bool of_values() const {
    return sign || zero || of_all() || !thresholds.empty() || !functions.empty() ||
           !regions.empty();
  }
  /// True if a guard concerns several values together, so that they must all be known at once.
  bool of_all() const { return minmax || of_chunks(); }
  /// True if a guard concerns all values of a chunk together.
  bool of_chunks() const { return sum || !monotone.empty(); }
  /// True if a guard is enforced by a smaller bound.
  bool of_bound() const { return gradient > 0 || laplacian > 0; }
  bool empty() const { return !of_values() && !of_bound(); }
  /// The largest absolute bound <= `absolute_bound` that satisfies gradient and laplacian.
  /// @param n_axes  number of axes of the array.
  double bound_within(double absolute_bound, std::size_t n_axes) const;
  bool operator==(const Guards&) const = default;
};

/// Maximum length of the text in which a file records guards.
inline constexpr std::size_t kGuardsTextBytesMax = 4096;

/// Parse "sign+zero+threshold=273.15+minmax+gradient=0.5+laplacian=1+log=0.01+power=2:0.5+sum+
/// monotone=0+region=0..16x*:1e-4", in any order, or "none".
/// @error invalid_argument  an unknown guard; a number that is not finite, or is <= 0 but must be
/// positive; a second gradient, laplacian, log or power with the same exponent; an invalid
/// exponent, axis or region; more than 64 thresholds or regions; a text longer than
/// kGuardsTextBytesMax.
Result<Guards> parse_guards(std::string_view text);

/// Text of guards, such as "sign+threshold=273.15" or "none"; the inverse of parse_guards.
std::string guards_text(const Guards& guards);

/// The guards that apply to values added to an existing dataset.
/// @param recorded  text of guards that the dataset records; empty: no guards.
/// @error unsupported  a text that does not parse, guards that need all values (of_all()), or a
/// mask, which is not read in this case.
Result<Guards> guards_to_continue(std::string_view recorded);

/// A function guard, expressed as a limit on the difference y - x.
class FunctionLimit {
 public:
  explicit FunctionLimit(const FunctionGuard& guard);
  /// True if f certainly changes by no more than the limit, rounding errors included.
  bool keeps(double x, double y) const { return x == y || !(least_excess(x, y, 1) > 0); }
  /// True if f certainly changes by more than the limit. If neither keeps() nor breaks() is true,
  /// the change is too close to the limit to decide in the presence of rounding.
  bool breaks(double x, double y) const { return x != y && least_excess(x, y, -1) > 0; }

 private:
  double least_excess(double x, double y, double side) const;

  double exponent_;
  double most_;
  double up_ = 0;    ///< Logarithm: fraction of x by which y may exceed x.
  double down_ = 0;  ///< Logarithm: fraction of x by which y may fall below x.
};

/// The guards that an encoder checks on values, for one field and the shape of one chunk.
struct ValueGuards {
  bool zeros = false;              ///< Zeros are preserved bit for bit.
  std::vector<double> thresholds;  ///< Thresholds, including 0 if signs are guarded.
  std::vector<FunctionLimit> functions;
  bool extremes = false;  ///< Values stay in [least, greatest]; both extremes are preserved.
  double least = 0;
  double greatest = 0;
  bool sum = false;
  struct Order {
    std::size_t axis = 0;  ///< Axis of the chunk.
    bool alone = false;    ///< True if the dataset has no other chunk along this axis.
  };
  std::vector<Order> orders;
  /// Extents of the part of the chunk that lies inside the array, for sums and orders. The part
  /// begins at the chunk's start. Empty: the complete chunk.
  Shape counted;
  RegionLevels tighter;  ///< Tighter bounds of the chunk's values.

  ValueGuards() = default;
  /// @param least, greatest  extremes of the field's finite, non-fill values, for guard=minmax.
  ValueGuards(const Guards& guards, double least, double greatest);
  bool empty() const { return !zeros && !extremes && thresholds.empty() && !in_any_place(); }
  /// True if a guard applies to values everywhere. Otherwise only values close to a threshold or an
  /// extreme, and zeros, can break a guard.
  bool in_any_place() const { return !functions.empty() || of_chunks() || !tighter.empty(); }
  bool of_chunks() const { return sum || !orders.empty(); }
};

/// True if y as the decoded form of a finite x breaks a guard on single values. Serves f32 and f64,
/// since doubles represent both exactly.
inline bool breaks_guards(const ValueGuards& guards, double x, double y) {
  bool broken = false;
  if (guards.zeros && x == 0) broken |= y != 0 || std::signbit(x) != std::signbit(y);
  for (const double threshold : guards.thresholds) {
    broken |= (x < threshold) != (y < threshold) || (x > threshold) != (y > threshold);
  }
  for (const FunctionLimit& limit : guards.functions) broken |= limit.breaks(x, y);
  if (guards.extremes) {
    broken |= y < guards.least || y > guards.greatest;
    broken |= (x == guards.least || x == guards.greatest) && y != x;
  }
  return broken;
}

/// True if the order of two neighbours is reversed: x1, x2 before and y1, y2 after. False if any
/// of them is NaN.
template <class T>
bool turns_order(T x1, T x2, T y1, T y2) {
  return ((x1 <= x2) & (y1 > y2)) | ((x1 >= x2) & (y1 < y2));
}

/// Largest error of a chunk's sum that guard=sum allows.
/// @param greatest_magnitude  largest magnitude of the chunk's values.
double sum_tolerance(float greatest_magnitude);
double sum_tolerance(double greatest_magnitude);

}  // namespace tailrace
