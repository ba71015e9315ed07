// AxisScale: the interval of numbers that an axis shows, its ticks and their labels.
//
// Pure arithmetic, without a canvas. Ticks of a linear axis lie at 1, 2 or 5 times a power of ten.
// A logarithmic axis labels decades, and 2 and 5 of each decade if decades are few. Very large or
// small numbers on a linear axis share one power of ten, which the axis' label shows.

#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "chart/chart.hpp"

namespace tailrace::chart {

/// The least and greatest of the numbers that an axis can show.
struct DataRange {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  bool empty() const { return !(least <= greatest); }
};

/// Interval of an axis. A linear axis with least > greatest runs backwards.
struct AxisScale {
  double least = 0;
  double greatest = 1;
  bool logarithmic = false;
  int exponent = 0;  ///< Labels of a linear axis are in units of 10^exponent.

  /// True if the axis can show `value`: finite, and above 0 on a logarithmic axis.
  bool can_show(double value) const;
  /// Relative position of `value`: 0 at least, 1 at greatest, outside [0, 1] beyond them.
  double position(double value) const;
};

struct Tick {
  double value = 0;
  std::string label;  ///< Empty: a minor tick.
};

/// Extend `range` to include `value`, if an axis of that kind can show it.
void extend(DataRange& range, double value, bool logarithmic);

/// Interval of an axis: the limits that the axis sets, otherwise round numbers around the data.
/// Positive data that reach below a quarter of their greatest value start at 0. The interval is
/// never empty and always finite.
AxisScale fit_axis(const Axis& axis, const DataRange& data, std::size_t n_labels);

/// Ticks within the interval, ascending; about `n_labels` of them have a label.
std::vector<Tick> axis_ticks(const AxisScale& scale, std::size_t n_labels);

/// "10" with `exponent` as superscript.
std::string power_of_ten(int exponent);

/// Up to `n_digits` significant digits, without trailing zeros: "12.5", "0.0031". Very large and
/// small numbers get a power of ten with a superscript.
std::string short_number(double value, int n_digits = 3);

}  // namespace tailrace::chart
