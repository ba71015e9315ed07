// Quantum: from the smallest difference of two values on, each greater one making it sharper.

#include "codec/trz/quantum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tailrace::trz {
namespace {

constexpr std::size_t kValuesMin = 32;
constexpr std::size_t kValuesMax = 512;
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

/// A quantum that becomes sharper with every distance that it measures.
class Ruler {
 public:
  Ruler(double quantum, double tolerance)
      : quantum_(quantum), tolerance_(tolerance), error_(tolerance) {}

  /// Is the distance a multiple, as far as can be told? Also false if that cannot be told.
  bool measures(double distance) {
    const double n = std::nearbyint(distance / quantum_);
    const double slack = tolerance_ + n * error_;
    if (slack > quantum_ / 4 || std::abs(distance - n * quantum_) > slack) return false;
    if (n > farthest_) {
      farthest_ = n;
      quantum_ = distance / n;
      error_ = tolerance_ / n;
    }
    return true;
  }
  double quantum() const { return with_few_decimals(quantum_, error_); }

 private:
  double quantum_;
  double tolerance_;
  double error_;
  double farthest_ = 1;
};

/// Measure the gaps between neighbouring values, ascending, then the distances from the first
/// value.
template <class T>
double sharpened(std::span<const T> values, std::span<const double> gaps, double quantum,
                 double tolerance) {
  Ruler ruler(quantum, tolerance);
  for (const double gap : gaps) {
    if (!ruler.measures(gap)) return 0;
  }
  const auto base = static_cast<double>(values[0]);
  for (const T value : values) {
    if (!ruler.measures(static_cast<double>(value) - base)) return 0;
  }
  return ruler.quantum();
}

}  // namespace

template <class T>
double find_quantum(std::span<T> values, double least) {
  if (values.size() < kValuesMin || values.size() > kValuesMax) return 0;
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
  std::array<double, kValuesMax> gaps;
  std::size_t n_gaps = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double gap = static_cast<double>(values[i]) - static_cast<double>(values[i - 1]);
    if (gap > tolerance) gaps[n_gaps++] = gap;
  }
  if (n_gaps == 0) return 0;
  std::sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(n_gaps));
  for (int parts = 1; parts <= kPartsMax; ++parts) {
    const double quantum = gaps[0] / parts;
    if (quantum < floor) return 0;
    const double sharp = sharpened<T>(values, std::span(gaps).first(n_gaps), quantum, tolerance);
    if (sharp > 0) return sharp;
  }
  return 0;
}

template double find_quantum(std::span<float>, double);
template double find_quantum(std::span<double>, double);

}  // namespace tailrace::trz
