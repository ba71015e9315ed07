// Sums of one line in a fixed order.
//
// Values are added as f64 in eight partial sums, value i into sum i % 8, which are then added from
// the first to the last. The bits of a sum therefore depend only on the line's values. They do not
// depend on the machine's vectors, the number of ranks, or the size of reads. The code is compiled
// without contraction, because a fused product and sum would round once instead of twice. Sums have
// no products here; the range has a difference.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace climate {

/// Sums and extremes of the values that are not missing.
struct LineSum {
  double sum = 0;
  double n_values = 0;  ///< An integer.
  float least = std::numeric_limits<float>::infinity();
  float greatest = -std::numeric_limits<float>::infinity();
};

/// True if a value is missing: NaN, or the fill value (NaN: no fill value).
inline bool is_missing(float value, float fill_value) {
  return std::isnan(value) || value == fill_value;
}

inline LineSum sum_of_line(const float* values, std::size_t n, float fill_value) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::array<double, kLanes> counts{};
  std::array<float, kLanes> least{};
  std::array<float, kLanes> greatest{};
  const LineSum none;
  least.fill(none.least);
  greatest.fill(none.greatest);
  const auto add = [&](float value, std::size_t lane) {
    const bool missing = is_missing(value, fill_value);
    sums[lane] += missing ? 0.0 : static_cast<double>(value);
    counts[lane] += missing ? 0.0 : 1.0;
    least[lane] = !missing && value < least[lane] ? value : least[lane];
    greatest[lane] = !missing && value > greatest[lane] ? value : greatest[lane];
  };
  const std::size_t n_whole = n - n % kLanes;
  for (std::size_t i = 0; i < n_whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(values[i + lane], lane);
  }
  for (std::size_t i = n_whole; i < n; ++i) add(values[i], i % kLanes);
  LineSum line;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    line.sum += sums[lane];
    line.n_values += counts[lane];
    line.least = least[lane] < line.least ? least[lane] : line.least;
    line.greatest = greatest[lane] > line.greatest ? greatest[lane] : line.greatest;
  }
  return line;
}

}  // namespace climate
