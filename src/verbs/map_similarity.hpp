// Similarity of two maps: a model of how a reader perceives original and decoded values.

#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "codec/verify.hpp"

namespace tailrace::verbs {

/// A value of the original and of the compressed file; both are NaN if either is missing. Also used
/// as a complex number, with the original as the real part.
struct ValuePair {
  double original = 0;
  double decoded = 0;

  bool missing() const { return std::isnan(original); }
};

/// Values of one map in both files, row-major.
struct MapView {
  std::span<ValuePair> values;
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::span<ValuePair> row(std::size_t r) const { return values.subspan(r * columns, columns); }
};

/// SSIM of Wang et al. 2004, eq. 13 and 17, with K1 = 0.01 and K2 = 0.03. Nothing: the map is
/// smaller than a window, or has no value. Pure.
/// @param range  range of the field's originals; the paper uses 255 for its extent.
std::optional<double> ssim(const MapView& map, const ValueRange& range);

/// Data SSIM (Baker et al. 2022). Values are mapped to [0, 1] by the minimum and maximum of both
/// maps and rounded to 256 levels; both constants are 1e-8. A constant map is divided by its value.
std::optional<double> data_ssim(const MapView& map);

}  // namespace tailrace::verbs
