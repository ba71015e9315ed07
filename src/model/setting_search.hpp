// Searches for settings: the predictor that is worth it, the bound that makes a size or a PSNR.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace tailrace {

// --- ParameterSearch: which predictor settings of trz are worth a look, one after another.
//
// Source: Liang et al. 2019, V-E, algorithm 1, an early-stopping search: a setting is only tried
// where the one before it made it look worthwhile. There, SZ predicts by regression or by Lorenzo
// in 1, 2 or 3 dimensions; in trz interpolation stands where regression stood. Whether the lossless
// stage pays is the caller's to answer for each setting (2019, V-D1): no further trial is needed.

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

// --- Quality: the error bound that a wished PSNR or a wished size comes to.
//
// Inverse models. The PSNR follows from the errors' variance: quantisation spreads errors evenly
// within the bound, which makes bound^2 / 3; what a sample's errors show instead corrects that
// (values that are predicted exactly, for instance, have no error). The size follows from sizes
// predicted at a few bounds, between which it is taken as a power of the bound. Both say "about":
// mode psnr= is the one that guarantees.

/// The absolute bound at which errors of this variance share make `psnr_db`.
/// Not collective. @param value_range  > 0.  @param variance_share  variance of the errors over
/// bound^2 / 3, > 0; 1: even within the bound.
double bound_for_psnr(double psnr_db, double value_range, double variance_share);

/// PSNR in dB that a bound makes; the inverse of bound_for_psnr.
double psnr_for_bound(double absolute_bound, double value_range, double variance_share);

/// What all fields together come to under one bound.
struct SizeAtBound {
  double relative_bound = 0;  ///< Of each field's value range.
  double encoded_bytes = 0;
};

/// The tightest relative bound whose size is at most target_bytes.
/// Not collective. @param sizes  at least one, from the loosest bound to the tightest. A size that
/// is smaller than one at a looser bound is taken as equal to it.
/// @returns nothing if even the loosest bound makes more.
std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes);

}  // namespace tailrace
