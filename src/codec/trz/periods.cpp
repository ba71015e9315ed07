// Periods: the divisors of a row's length, and what each would save.

#include "codec/trz/periods.hpp"

#include <algorithm>
#include <limits>

#include "codec/trz/code_cost.hpp"

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

}  // namespace tailrace::trz
