#include "verbs/map_similarity.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "verbs/report_fields.hpp"

namespace tailrace::verbs {
namespace {

/// The window of Wang et al. 2004, section III-B, also used by Baker et al. 2022: 11 x 11 values,
/// Gaussian weights with a standard deviation of 1.5 grid steps.
constexpr std::size_t kWindowExtent = 11;
constexpr std::size_t kWindowReach = kWindowExtent / 2;
constexpr double kWindowDeviation = 1.5;

std::array<double, kWindowExtent> window_weights() {
  std::array<double, kWindowExtent> weights{};
  double sum = 0;
  for (std::size_t i = 0; i < kWindowExtent; ++i) {
    const double from_middle = static_cast<double>(i) - static_cast<double>(kWindowReach);
    weights[i] = std::exp(-from_middle * from_middle / (2 * kWindowDeviation * kWindowDeviation));
    sum += weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Quantities averaged over a window: 1 for each existing value, both values, their products.
constexpr std::size_t kNWindowMeans = 6;
using WindowMeans = std::array<std::vector<double>, kNWindowMeans>;

WindowMeans window_means(std::size_t columns) {
  WindowMeans means;
  for (std::vector<double>& mean : means) mean.assign(columns, 0);
  return means;
}

typedef double TwoSums __attribute__((vector_size(2 * sizeof(double))));

/// Compute sums[j] as the weighted sum of from[k][j], added in the order of k.
void weigh(const std::array<double, kWindowExtent>& weights,
           const std::array<const double*, kWindowExtent>& from, std::span<double> sums) {
  constexpr std::size_t n_kept = 4;  // Accumulators in registers until all weights are applied.
  std::size_t j = 0;
  for (; j + 2 * n_kept <= sums.size(); j += 2 * n_kept) {
    TwoSums kept[n_kept] = {};
    for (std::size_t k = 0; k < kWindowExtent; ++k) {
      for (std::size_t i = 0; i < n_kept; ++i) {
        TwoSums values;
        std::memcpy(&values, from[k] + j + 2 * i, sizeof values);
        kept[i] += weights[k] * values;
      }
    }
    std::memcpy(&sums[j], kept, sizeof kept);
  }
  for (; j < sums.size(); ++j) {
    sums[j] = 0;
    for (std::size_t k = 0; k < kWindowExtent; ++k) sums[j] += weights[k] * from[k][j];
  }
}

/// The constants of a similarity, and the origin of its values. Averages of squares lose digits if
/// values are far from the origin.
struct SimilarityConstants {
  double of_means = 0;
  double of_variances = 0;
  double origin = 0;
};

double window_similarity(const WindowMeans& sums, std::size_t j,
                         const SimilarityConstants& constants) {
  const double weight = sums[0][j];
  const double a = sums[1][j] / weight;
  const double b = sums[2][j] / weight;
  const double variances = sums[3][j] / weight - a * a + (sums[4][j] / weight - b * b);
  const double covariance = sums[5][j] / weight - a * b;
  const double mean_a = a + constants.origin;
  const double mean_b = b + constants.origin;
  return (2 * mean_a * mean_b + constants.of_means) * (2 * covariance + constants.of_variances) /
         ((mean_a * mean_a + mean_b * mean_b + constants.of_means) *
          (variances + constants.of_variances));
}

/// Mean similarity over the windows that lie in the map and have a value in their middle. The
/// weights of missing values are distributed over the others of the window. Nothing: no window
/// qualifies.
/// @param scaled  maps a value before it is averaged.
template <class Scaled>
std::optional<double> mean_similarity(const MapView& map, const SimilarityConstants& constants,
                                      Scaled&& scaled) {
  if (map.rows < kWindowExtent || map.columns < kWindowExtent) return std::nullopt;
  const auto weights = window_weights();
  WindowMeans raw = window_means(map.columns);
  const std::size_t n_windows = map.columns - 2 * kWindowReach;
  std::array<WindowMeans, kWindowExtent> filtered;
  filtered.fill(window_means(n_windows));
  WindowMeans sums = window_means(n_windows);
  double sum = 0;
  std::uint64_t n = 0;
  for (std::size_t r = 0; r < map.rows; ++r) {
    const std::span<const ValuePair> row = map.row(r);
    for (std::size_t j = 0; j < map.columns; ++j) {
      const bool missing = row[j].missing();
      const double a = missing ? 0 : scaled(row[j].original);
      const double b = missing ? 0 : scaled(row[j].decoded);
      raw[0][j] = missing ? 0 : 1;
      raw[1][j] = a;
      raw[2][j] = b;
      raw[3][j] = a * a;
      raw[4][j] = b * b;
      raw[5][j] = a * b;
    }
    for (std::size_t q = 0; q < kNWindowMeans; ++q) {
      std::array<const double*, kWindowExtent> from{};
      for (std::size_t k = 0; k < kWindowExtent; ++k) from[k] = raw[q].data() + k;
      weigh(weights, from, filtered[r % kWindowExtent][q]);
      if (r + 1 < kWindowExtent) continue;
      for (std::size_t k = 0; k < kWindowExtent; ++k) {
        from[k] = filtered[(r + 1 + k) % kWindowExtent][q].data();
      }
      weigh(weights, from, sums[q]);
    }
    if (r + 1 < kWindowExtent) continue;
    const std::span<const ValuePair> middle = map.row(r - kWindowReach).subspan(kWindowReach);
    for (std::size_t j = 0; j < n_windows; ++j) {
      if (middle[j].missing()) continue;
      sum += window_similarity(sums, j, constants);
      ++n;
    }
  }
  return value_if(n > 0, sum / static_cast<double>(n));
}

}  // namespace

std::optional<double> ssim(const MapView& map, const ValueRange& range) {
  const double extent = range.greatest - range.least;
  if (!(extent > 0) || !std::isfinite(extent)) return std::nullopt;
  const double origin = range.least + extent / 2;
  const SimilarityConstants constants{0.0001 * extent * extent, 0.0009 * extent * extent, origin};
  return mean_similarity(map, constants, [origin](double value) { return value - origin; });
}

std::optional<double> data_ssim(const MapView& map) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const ValuePair& pair : map.values) {
    if (pair.missing()) continue;
    least = std::min({least, pair.original, pair.decoded});
    greatest = std::max({greatest, pair.original, pair.decoded});
  }
  if (least > greatest) return std::nullopt;
  double extent = greatest - least;
  if (!std::isfinite(extent)) return std::nullopt;
  if (extent == 0) {
    extent = greatest == 0 ? 1 : greatest;
    least = 0;
  }
  constexpr double n_steps = 255;
  const auto level = [&](double value) {
    return std::nearbyint((value - least) / extent * n_steps) / n_steps;
  };
  return mean_similarity(map, {1e-8, 1e-8, 0}, level);
}

}  // namespace tailrace::verbs
