// The inverse models.

#include "model/quality.hpp"

#include <algorithm>
#include <cmath>

namespace tailrace {

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
