// Searches for settings: predictors by Algorithm 1, bounds by inverse models.

#include "model/setting_search.hpp"

#include <algorithm>
#include <cmath>

namespace tailrace {

std::string_view predictor_setting_text(PredictorSetting setting) {
  switch (setting) {
    case PredictorSetting::dimension_1: return "predictor=lorenzo,dimension=1";
    case PredictorSetting::dimension_2: return "predictor=lorenzo,dimension=2";
    case PredictorSetting::dimension_3: return "predictor=lorenzo,dimension=3";
    case PredictorSetting::regression: return "predictor=interpolation";
  }
  return "";
}

PredictorSetting search_predictor(std::size_t n_dimensions,
                                  const std::function<double(PredictorSetting)>& seconds_of) {
  const double dimension_1_s = seconds_of(PredictorSetting::dimension_1);  // s_0, t_0
  if (n_dimensions == 0) return PredictorSetting::dimension_1;
  const double regression_s = seconds_of(PredictorSetting::regression);  // lines 1-2
  if (dimension_1_s >= regression_s) return PredictorSetting::regression;
  if (n_dimensions < 2) return PredictorSetting::dimension_1;
  const double dimension_2_s = seconds_of(PredictorSetting::dimension_2);  // lines 4-5
  if (dimension_1_s < dimension_2_s) return PredictorSetting::dimension_1;
  if (n_dimensions < 3) return PredictorSetting::dimension_2;
  const double dimension_3_s = seconds_of(PredictorSetting::dimension_3);  // lines 9-10
  return dimension_3_s < dimension_2_s ? PredictorSetting::dimension_3
                                       : PredictorSetting::dimension_2;
}

// --- The inverse models.

double bound_for_psnr(double psnr_db, double value_range, double variance_share) {
  // PSNR = 20 log10(range) - 10 log10(variance), variance = share * bound^2 / 3.
  return value_range * std::pow(10.0, -psnr_db / 20) * std::sqrt(3 / variance_share);
}

double psnr_for_bound(double absolute_bound, double value_range, double variance_share) {
  return 20 * std::log10(value_range / absolute_bound) + 10 * std::log10(3 / variance_share);
}

std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes) {
  if (sizes.empty() || sizes.front().encoded_bytes > target_bytes) return std::nullopt;
  SizeAtBound fits = sizes.front();
  for (const SizeAtBound& next : sizes.subspan(1)) {
    const double grown = std::max(next.encoded_bytes, fits.encoded_bytes);
    if (grown > target_bytes) {
      // Here grown > fits.encoded_bytes, so the logarithms differ.
      const double way =
          std::log(target_bytes / fits.encoded_bytes) / std::log(grown / fits.encoded_bytes);
      return fits.relative_bound * std::pow(next.relative_bound / fits.relative_bound, way);
    }
    fits = {next.relative_bound, grown};
  }
  return fits.relative_bound;
}

}  // namespace tailrace
