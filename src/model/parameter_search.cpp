// Algorithm 1, line by line.

#include "model/parameter_search.hpp"

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

}  // namespace tailrace
