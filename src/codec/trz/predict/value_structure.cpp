// What a chunk's values show of their making: a period along rows, and a quantum.

#include "codec/trz/predict/value_structure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "codec/trz/entropy/code_stream.hpp"

namespace tailrace::trz {

namespace {

constexpr std::size_t kPeriodMin = 32;
constexpr std::size_t kPeriodMax = 8192;
constexpr std::size_t kPeriodsMax = 40;
constexpr std::size_t kDivisorsMax = 256;
constexpr std::size_t kFoldsMin = 8;  ///< Rows that one row becomes.
constexpr std::size_t kRunsMin = 4;
constexpr std::size_t kRunsMaximum = 16;
constexpr double kLeastGain = 0.01;  ///< Bits a value.
constexpr double kTie = 0.001;

struct Periods {
  std::array<std::size_t, kPeriodsMax> length;
  std::size_t n = 0;
};

/// Divisors of `extent` that may be periods, ascending.
Periods divisors_of(std::size_t extent) {
  const std::size_t limit = std::min(kPeriodMax, extent / kFoldsMin);
  std::array<std::size_t, kDivisorsMax> divisors = {1};
  std::size_t n = 1;
  const auto multiply = [&](std::size_t prime, std::size_t n_before) {
    for (std::size_t k = 0; k < n_before && n < kDivisorsMax; ++k) {
      const std::size_t product = divisors[n - n_before] * prime;
      if (product > limit) return k;
      divisors[n++] = product;
    }
    return n_before;
  };
  auto left = static_cast<std::uint32_t>(extent);
  for (std::uint32_t prime = 2; prime <= limit && left > 1; ++prime) {
    if (prime * prime > left) prime = left;
    std::size_t n_new = n;
    while (left % prime == 0) {
      left /= prime;
      n_new = multiply(prime, n_new);
    }
  }
  std::sort(divisors.begin(), divisors.begin() + static_cast<std::ptrdiff_t>(n));
  Periods periods;
  for (std::size_t k = 0; k < n && periods.n < kPeriodsMax; ++k) {
    if (divisors[k] >= kPeriodMin) periods.length[periods.n++] = divisors[k];
  }
  return periods;
}

}  // namespace

template <class T>
std::size_t find_period(const SampledValues<T>& chunk, const Extents& extents,
                        std::size_t values_per_run, Isa isa) {
  const std::size_t extent = extents[3];
  if (extent < kPeriodMin * kFoldsMin || extent > std::numeric_limits<std::uint32_t>::max()) {
    return 0;
  }
  const Periods periods = divisors_of(extent);
  if (periods.n == 0) return 0;
  const SampleKernels& kernels = sample_kernels(isa);
  const std::size_t n_rows = extents[0] * extents[1] * extents[2];
  const std::size_t n_runs =
      std::clamp(n_rows * extent / (8 * values_per_run), kRunsMin, kRunsMaximum);
  const std::size_t first = periods.length[periods.n - 1] + kRunMargin;
  const std::size_t n_starts = extent - first - kRunValues - kRunMargin;
  const T fill = chunk.fill == nullptr ? std::numeric_limits<T>::quiet_NaN() : *chunk.fill;
  std::array<double, kPeriodsMax> cost{};
  double cost_alone = 0;
  Scatter scatter;
  for (std::size_t r = 0; r < n_runs; ++r) {
    const std::size_t low = n_starts * r / n_runs;
    const std::size_t x = low + scatter.below(std::max<std::size_t>(n_starts / n_runs, 1));
    const std::size_t at = scatter.below(n_rows) * extent + first + x - kRunMargin;
    T buffer[kRowValues];
    double here[kRowValues];
    double there[kRowValues] = {};
    if (!load_row(kernels, chunk.run(at, kRowValues, buffer), chunk, fill, here)) continue;
    cost_alone += RunCosts::table().of(kernels.sum_of_differences(here, there));
    for (std::size_t k = 0; k < periods.n; ++k) {
      const T* before = chunk.run(at - periods.length[k], kRowValues, buffer);
      if (!load_row(kernels, before, chunk, fill, there)) return 0;
      cost[k] += RunCosts::table().of(kernels.sum_of_differences(here, there));
    }
  }
  const auto n = static_cast<double>(n_runs);
  const double least =
      *std::min_element(cost.begin(), cost.begin() + static_cast<std::ptrdiff_t>(periods.n));
  if (least > cost_alone - kLeastGain * n) return 0;
  // The shortest of those that are as good.
  std::size_t k = 0;
  while (cost[k] > least + kTie * n) ++k;
  return periods.length[k];
}

template std::size_t find_period(const SampledValues<float>&, const Extents&, std::size_t, Isa);
template std::size_t find_period(const SampledValues<double>&, const Extents&, std::size_t, Isa);

// --- Quantum: from the smallest difference of two values on, each greater one making it sharper.

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
