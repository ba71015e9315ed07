// AxisScale: which interval of numbers an axis shows, where its ticks are and how they are written.
//
// Pure arithmetic, without a canvas. Linear ticks stand at 1, 2 or 5 times a power of ten; a
// logarithmic axis labels decades, and 1, 2 and 5 of each where there are few. Very large or small
// numbers on a linear axis share one power of ten, which goes into the axis' label.

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

/// An axis' interval. least > greatest is a linear axis that runs backwards.
struct AxisScale {
  double least = 0;
  double greatest = 1;
  bool logarithmic = false;
  int exponent = 0;  ///< Labels of a linear axis are in units of 10^exponent.

  /// Whether this axis can show `value` at all: finite, and above 0 if logarithmic.
  bool can_show(double value) const;
  /// Where `value` lies: 0 at least, 1 at greatest; beyond them outside [0, 1].
  double position(double value) const;
};

struct Tick {
  double value = 0;
  std::string label;  ///< Empty: a minor tick.
};

/// Take `value` into `range` if an axis of that kind can show it.
void extend(DataRange& range, double value, bool logarithmic);

/// The interval for an axis: as the axis demands, else round numbers around the data. Positive data
/// that reach below a quarter of their greatest value start at 0. Never empty, always finite.
AxisScale fit_axis(const Axis& axis, const DataRange& data, std::size_t n_labels);

/// The ticks within the interval, ascending; about `n_labels` of them with a label.
std::vector<Tick> axis_ticks(const AxisScale& scale, std::size_t n_labels);

/// "10" with `exponent` in raised figures.
std::string power_of_ten(int exponent);

/// Up to `n_digits` significant figures, without trailing zeros: "12.5", "0.0031", "1.2×10⁹".
std::string short_number(double value, int n_digits = 3);

}  // namespace tailrace::chart
