#include "trz/region_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tailrace::trz {
namespace {

/// Approximate log2, to 0.09, computed from the number's bits: equal on every machine.
double rough_log2(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return exponent + 2 * (mantissa - 1);
}

/// Additional bits per value for a bound `times` smaller: one per halving, at most as many as exact
/// coding.
double bits_for_smaller(double times, std::size_t element_bytes) {
  constexpr double kExact = 5;  // Bits per byte in exact coding.
  const double most = kExact * static_cast<double>(element_bytes);
  return std::isfinite(times) ? std::min(rough_log2(times), most) : most;
}

}  // namespace

RegionBound bound_for_regions(RegionLevels& tighter, double bound, std::size_t element_bytes,
                              bool for_all) {
  if (tighter.empty()) return {bound, bound};
  std::array<std::size_t, 256> n_at{};
  for (const std::uint8_t level : tighter.of_value) ++n_at[level];
  const auto n_values = static_cast<double>(tighter.of_value.size());
  const double patch_bits = 8 * static_cast<double>(element_bytes + 1);
  // Assumes errors spread evenly over the bound: an error above the tighter bound becomes a patch.
  const auto cost_of = [&](double chosen) {
    double bits = chosen < bound ? n_values * bits_for_smaller(bound / chosen, element_bytes) : 0;
    for (std::size_t k = 0; k < tighter.bounds.size(); ++k) {
      if (!(tighter.bounds[k] < chosen)) continue;
      bits += static_cast<double>(n_at[k + 1]) * (1 - tighter.bounds[k] / chosen) * patch_bits;
    }
    return bits;
  };
  double chosen = bound;
  double least = bound;  // Smallest bound that occurs.
  for (std::size_t k = 0; k < tighter.bounds.size(); ++k) {
    if (n_at[k + 1] == 0 || !(tighter.bounds[k] < bound)) continue;
    least = tighter.bounds[k];
    if (cost_of(least) < cost_of(chosen)) chosen = least;
  }
  if (for_all) chosen = least;
  if (!(least < chosen)) tighter = RegionLevels();
  return {chosen, least};
}

}  // namespace tailrace::trz
