// Similarity of two maps: what a reader's eye would say of original and decoded values side by
// side.

#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "codec/verify.hpp"

namespace tailrace::verbs {

/// A value of the original and the one of the compressed file; NaN, both, where either is missing.
/// Also a complex number, of which the original is the real part.
struct ValuePair {
  double original = 0;
  double decoded = 0;

  bool missing() const { return std::isnan(original); }
};

/// Both files' values of one map, row-major.
struct MapView {
  std::span<ValuePair> values;
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::span<ValuePair> row(std::size_t r) const { return values.subspan(r * columns, columns); }
};

/// SSIM of Wang et al. 2004, eq. 13 and 17, with K1 = 0.01 and K2 = 0.03. Nothing: the map is
/// smaller than a window, or has no value. Pure.
/// @param range  of the whole field's originals, for which the paper has 255.
std::optional<double> ssim(const MapView& map, const ValueRange& range);

/// Data SSIM (Baker et al. 2022): values mapped to [0, 1] by the least and greatest of both maps,
/// rounded to 256 levels, and 1e-8 for both constants. A constant map is divided by its value.
std::optional<double> data_ssim(const MapView& map);

}  // namespace tailrace::verbs
