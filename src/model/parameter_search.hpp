// ParameterSearch: which predictor settings of trz are worth a look, one after another.
//
// Source: Liang et al. 2019, V-E, algorithm 1, an early-stopping search: a setting is only tried
// where the one before it made it look worthwhile. There, SZ predicts by regression or by Lorenzo
// in 1, 2 or 3 dimensions; in trz interpolation stands where regression stood. Whether the lossless
// stage pays is the caller's to answer for each setting (2019, V-D1): no further trial is needed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace tailrace {

/// What algorithm 1 tries.
enum class PredictorSetting : std::uint8_t { dimension_1, dimension_2, dimension_3, regression };

/// The setting in the words of the command line: "predictor=lorenzo,dimension=1".
std::string_view predictor_setting_text(PredictorSetting setting);

/// The best setting by algorithm 1: at most four trials, at least two (one for data of no
/// dimension). Not collective: where ranks must agree, the caller adds up what they have tried.
/// @param n_dimensions  extents above 1; prediction along more of them is not tried.
/// @param seconds_of    tries one setting; infinity: it cannot be used here. Called once each.
PredictorSetting search_predictor(std::size_t n_dimensions,
                                  const std::function<double(PredictorSetting)>& seconds_of);

}  // namespace tailrace
