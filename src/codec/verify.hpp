// Chunk verifier: computes the exact distance of decoded values from the original ones.
//
// Checks a codec's bound after encoding, on the bytes that readers will decode. Pure: no HDF5, no
// file, no clock. Values that are finite and not fill must be within the bound in exact arithmetic
// (exceeds_bound, exceeds_pointwise_bound). NaN, Inf and fill values must return bit for bit; with
// bound 0 every value must. Results of parts of a field merge in any order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trz/base/dtype.hpp"

namespace tailrace {

/// Result of a comparison. Indices are row-major positions in the compared span, plus the shift
/// passed to merge(); `kNoIndex`: none.
struct ChunkComparison {
  static constexpr std::uint64_t kNoIndex = UINT64_MAX;

  std::uint64_t n_values = 0;  ///< Values compared.
  std::uint64_t n_finite = 0;  ///< Originals that are finite and not fill.
  /// Largest |decoded - original| of those; unit of the field. From compare_pointwise: largest
  /// |decoded - original| / |original|, infinite if a zero decodes to another number.
  double largest_error = 0;
  std::uint64_t worst_index = kNoIndex;  ///< Index of the largest error; kNoIndex if every error is
                                         ///< 0.
  double sum_squared_errors = 0;         ///< Sum over the same values, for PSNR. Unit squared.
  std::uint64_t n_beyond_bound = 0;  ///< Finite values beyond the bound, or decoded to NaN or Inf.
  std::uint64_t n_special_changed = 0;       ///< NaN, Inf or fill values that changed.
  std::uint64_t first_bad_index = kNoIndex;  ///< First value with either failure.
  double first_bad_original = 0;             ///< Original of that value.
  double first_bad_decoded = 0;              ///< Decoded number of that value.

  /// True if every value is within its bound and every special value is exact.
  bool within_bound() const { return n_beyond_bound == 0 && n_special_changed == 0; }

  /// Add another part's result; `index_shift` is added to its indices. Associative.
  void merge(const ChunkComparison& other, std::uint64_t index_shift = 0);
};

/// Compare a decoded chunk with its original. Both spans hold complete elements in native byte
/// order. Not collective. Thread-safe. Cost: one pass; vectorised while all values are ordinary.
/// @param absolute_bound  unit of the field; 0: requires bit-exact equality (so -0.0 is not 0.0).
/// @param fill_value  values equal to it (after rounding to the dtype) must return bit-exactly, and
/// do not count in the error figures; nothing: no fill value. NaN is allowed and has no effect,
/// since NaN must return exactly anyway.
/// If the spans differ in length, or are not a whole number of elements, every original value
/// counts as beyond the bound. 64-bit integers beyond 2^53 are compared in integer arithmetic; only
/// the reported magnitudes are rounded to double.
ChunkComparison compare_values(DType dtype, std::span<const std::byte> original,
                               std::span<const std::byte> decoded, double absolute_bound,
                               std::optional<double> fill_value = std::nullopt);

/// compare_values() for a bound that is a fraction of each original value's magnitude. Every finite
/// value must be within it in exact arithmetic, and every zero must return bit for bit. The PSNR's
/// sum still adds absolute errors.
/// @param pointwise_bound  in [0, 1); 0: requires bit-exact equality.
ChunkComparison compare_pointwise(DType dtype, std::span<const std::byte> original,
                                  std::span<const std::byte> decoded, double pointwise_bound,
                                  std::optional<double> fill_value = std::nullopt);

/// Range of the values that are finite and not fill, and counts of the other values.
struct ValueRange {
  double least = 0;     ///< +Inf while n_finite is 0. Exact except for 64-bit integers above 2^53.
  double greatest = 0;  ///< -Inf while n_finite is 0.
  std::uint64_t n_finite = 0;
  std::uint64_t n_nan = 0;
  std::uint64_t n_inf = 0;
  std::uint64_t n_fill = 0;
  std::uint64_t n_least = 0;  ///< Number of values equal to `least`.
  std::uint64_t n_greatest = 0;
  double next_least = 0;     ///< Least of the values that differ from `least`; +Inf: none.
  double next_greatest = 0;  ///< Greatest of the values that differ from `greatest`; -Inf: none.

  ValueRange();
  bool empty() const { return n_finite == 0; }
  /// True if all counted values are the same number, or none was counted.
  bool constant() const { return empty() || least == greatest; }
  /// Add another part's result. Associative.
  void merge(const ValueRange& other);
};

/// Scan values; a NaN is counted as n_nan even if the fill value is NaN. Not collective.
/// Thread-safe. Cost: one pass, vectorised, and a second one over blocks of 64 Ki values that
/// contain the range's least or greatest value so far.
ValueRange value_range(DType dtype, std::span<const std::byte> values,
                       std::optional<double> fill_value = std::nullopt);

/// Counts of the nonzero values that are finite and not fill, and of those whose magnitude is below
/// a bound.
struct MagnitudeCount {
  std::uint64_t n_nonzero = 0;
  std::uint64_t n_below = 0;
};
/// Count magnitudes below `bound`. Not collective. Thread-safe. Cost: one pass.
MagnitudeCount count_below(DType dtype, std::span<const std::byte> values, double bound,
                           std::optional<double> fill_value = std::nullopt);

}  // namespace tailrace
