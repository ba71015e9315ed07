// Guards: what decoded values keep besides their bound (docs/guards.md), and what that comes to for
// one value x that decodes to y. The encoder of codec trz keeps them, `verify` checks them.

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

/// |f(y) - f(x)| <= most, for f = ln x, or x to a power. Where f(x) is no finite number, y = x.
struct FunctionGuard {
  double exponent = 0;  ///< Whole, from -8 to 8, or 0.5; 0: the logarithm.
  double most = 0;

  bool logarithm() const { return exponent == 0; }
  bool operator==(const FunctionGuard&) const = default;
};

/// What guard= asks: of values by themselves, of the field's extremes, of neighbours, of sums.
struct Guards {
  bool sign = false;     ///< Negative, zero or positive: it stays what it is; zeros as `zero`.
  bool zero = false;     ///< Zeros stay zeros, with their sign bit.
  bool minmax = false;   ///< The least and the greatest finite, non-fill value stay these.
  bool sum = false;      ///< Of each chunk's values, to half an ulp of one of them.
  double gradient = 0;   ///< Differences of neighbours change by no more than this; 0: not asked.
  double laplacian = 0;  ///< Sums of second differences along all axes, likewise.
  std::vector<double> thresholds;  ///< Below, at or above each: it stays so. Ascending.
  std::vector<FunctionGuard> functions;
  std::vector<int> monotone;         ///< Axes along which neighbours keep their order. Ascending.
  std::vector<RegionGuard> regions;  ///< Whose values keep bounds of their own. Ascending.

  /// Whether some can be broken within the bound: then it needs an encoder that looks at what comes
  /// out.
  bool of_values() const {
    return sign || zero || of_all() || !thresholds.empty() || !functions.empty() ||
           !regions.empty();
  }
  /// Whether some are of values together, and so need all of them at once.
  bool of_all() const { return minmax || of_chunks(); }
  /// Whether some are of all values of a chunk.
  bool of_chunks() const { return sum || !monotone.empty(); }
  /// Whether some are kept by a smaller bound.
  bool of_bound() const { return gradient > 0 || laplacian > 0; }
  bool empty() const { return !of_values() && !of_bound(); }
  /// The largest absolute bound, no larger than the given one, that keeps gradient and laplacian.
  /// @param n_axes  of the array.
  double bound_within(double absolute_bound, std::size_t n_axes) const;
  bool operator==(const Guards&) const = default;
};

/// What a text of guards, as a file records it, is long at most.
inline constexpr std::size_t guards_text_bytes_max = 4096;

/// Parse "sign+zero+threshold=273.15+minmax+gradient=0.5+laplacian=1+log=0.01+power=2:0.5+sum+
/// monotone=0+region=0..16x*:1e-4", in any order, or "none".
/// @error invalid_argument  an unknown guard, no finite number, or one <= 0 where it must not be; a
/// second gradient, laplacian or log; no such exponent, axis or region; more than fits a file.
Result<Guards> parse_guards(std::string_view text);

/// "sign+threshold=273.15", or "none"; the inverse of parse_guards.
std::string guards_text(const Guards& guards);

/// The guards that values added to a dataset have to keep. @param recorded  as the dataset has
/// them; empty: none. @error unsupported  a text that says no guards, some that need all values, or
/// a mask, which is not looked for then.
Result<Guards> guards_to_continue(std::string_view recorded);

/// A function guard as what it comes to for differences.
class FunctionLimit {
 public:
  explicit FunctionLimit(const FunctionGuard& guard);
  /// Whether f moves by no more than asked, proved in spite of rounding.
  bool keeps(double x, double y) const { return x == y || !(least_excess(x, y, 1) > 0); }
  /// Whether f moves by more, proved likewise. Between both lies what rounding cannot tell.
  bool breaks(double x, double y) const { return x != y && least_excess(x, y, -1) > 0; }

 private:
  double least_excess(double x, double y, double side) const;

  double exponent_;
  double most_;
  double up_ = 0;    ///< ln: y may be above x by this fraction of x,
  double down_ = 0;  ///< and below by this.
};

/// Those of values, as what they come to for one field, and those of one chunk's shape.
struct ValueGuards {
  bool zeros = false;              ///< Bit for bit.
  std::vector<double> thresholds;  ///< With 0 where signs are kept.
  std::vector<FunctionLimit> functions;
  bool extremes = false;  ///< Nothing leaves [least, greatest], and both stay where met.
  double least = 0;
  double greatest = 0;
  bool sum = false;
  struct Order {
    std::size_t axis = 0;  ///< Of the chunk.
    bool alone = false;    ///< No other chunk goes on along it.
  };
  std::vector<Order> orders;
  /// Of the chunk what is the array's, from its start, for sums and orders; empty: all of it.
  Shape counted;
  RegionLevels tighter;  ///< Of the chunk's values.

  ValueGuards() = default;
  /// @param least, greatest  finite, non-fill values of the field, which guard=minmax needs.
  ValueGuards(const Guards& guards, double least, double greatest);
  bool empty() const { return !zeros && !extremes && thresholds.empty() && !in_any_place(); }
  /// Whether values may break some wherever they lie, so that there is no looking from afar.
  bool in_any_place() const { return !functions.empty() || of_chunks() || !tighter.empty(); }
  bool of_chunks() const { return sum || !orders.empty(); }
};

/// Whether y in the place of a finite x breaks a guard of values by themselves. f32 and f64 alike:
/// doubles hold both.
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

/// Whether two neighbours lie the other way round than they did. Never of NaN.
template <class T>
bool turns_order(T x1, T x2, T y1, T y2) {
  return ((x1 <= x2) & (y1 > y2)) | ((x1 >= x2) & (y1 < y2));
}

/// What sums of a chunk may be off by under guard=sum, where no value of it is larger.
double sum_tolerance(float greatest_magnitude);
double sum_tolerance(double greatest_magnitude);

}  // namespace tailrace
