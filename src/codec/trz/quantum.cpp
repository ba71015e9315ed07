// Quantum: from the smallest difference of two values outwards, each farther one making it sharper.

#include "codec/trz/quantum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tailrace::trz {
namespace {

constexpr std::size_t kValuesMin = 32;
constexpr int kPartsMax = 6;          ///< The smallest difference is at most so many quanta.
constexpr double kRoundingUlps = 2;   ///< Error of a difference, in spacings of the largest value.
constexpr double kToleranceMin = 12;  ///< A quantum is at least so many times that error.

/// A number of few decimals within `error` of a value, if there is one.
double with_few_decimals(double value, double error) {
  double scale = 1;
  for (int digits = 0; digits < 10; ++digits, scale *= 10) {
    const double near = std::nearbyint(value * scale) / scale;
    if (near > 0 && std::abs(near - value) <= error) return near;
  }
  return value;
}

/// Does `quantum`, to within `tolerance` of one difference, measure all distances from values[low]?
/// Nearer values first; returns it sharpened, or 0.
template <class T>
double sharpened(std::span<const T> values, std::size_t low, double quantum, double tolerance) {
  const auto base = static_cast<double>(values[low]);
  double error = tolerance;
  double farthest = 1;
  std::size_t left = low;
  std::size_t right = low + 1;
  while (left > 0 || right < values.size()) {
    const double down = left > 0 ? base - static_cast<double>(values[left - 1]) : HUGE_VAL;
    const double up = right < values.size() ? static_cast<double>(values[right]) - base : HUGE_VAL;
    const double distance = std::min(down, up);
    if (up <= down) {
      ++right;
    } else {
      --left;
    }
    const double n = std::nearbyint(distance / quantum);
    const double slack = tolerance + n * error;
    if (slack > quantum / 4 || std::abs(distance - n * quantum) > slack) return 0;
    if (n > farthest) {
      farthest = n;
      quantum = distance / n;
      error = tolerance / n;
    }
  }
  return with_few_decimals(quantum, error);
}

}  // namespace

template <class T>
double find_quantum(std::span<T> values, double least) {
  if (values.size() < kValuesMin) return 0;
  double greatest = 0;
  for (const T value : values) {
    greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  }
  const double tolerance =
      kRoundingUlps * greatest * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double floor = std::max(least, kToleranceMin * tolerance);
  // Most chunks end here: two values nearer to each other than any quantum of use.
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double d = std::abs(static_cast<double>(values[i]) - static_cast<double>(values[i - 1]));
    if (d > tolerance && d < floor - tolerance) return 0;
  }
  std::sort(values.begin(), values.end());
  double smallest = HUGE_VAL;
  std::size_t low = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double d = static_cast<double>(values[i]) - static_cast<double>(values[i - 1]);
    if (d > tolerance && d < smallest) {
      smallest = d;
      low = i - 1;
    }
  }
  if (!(smallest < HUGE_VAL)) return 0;
  for (int parts = 1; parts <= kPartsMax; ++parts) {
    const double quantum = smallest / parts;
    if (quantum < floor) return 0;
    const double sharp = sharpened<T>(values, low, quantum, tolerance);
    if (sharp > 0) return sharp;
  }
  return 0;
}

template double find_quantum(std::span<float>, double);
template double find_quantum(std::span<double>, double);

}  // namespace tailrace::trz
