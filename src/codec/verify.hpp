// Chunk verifier: how far decoded values lie from the original ones, exactly.
//
// A codec's promise is checked after encoding, on the very bytes that a reader will decode. Pure:
// no HDF5, no file, no clock. Values that are finite and not fill are held to the bound in exact
// arithmetic (exceeds_bound, exceeds_pointwise_bound); NaN, Inf and fill values must come back bit
// for bit; under a bound of 0 every value must. Results of parts of a field merge in any order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trz/base/dtype.hpp"

namespace tailrace {

/// What a comparison found. Indices are row-major positions in the compared span (plus whatever
/// `merge` was told to add); `no_index` where there is none.
struct ChunkComparison {
  static constexpr std::uint64_t no_index = UINT64_MAX;

  std::uint64_t n_values = 0;  ///< Values compared.
  std::uint64_t n_finite = 0;  ///< Originals that are finite and not fill.
  /// Largest |decoded - original| of those; unit of the field. From compare_pointwise: largest
  /// |decoded - original| / |original|, infinite where a zero came back as another number.
  double largest_error = 0;
  std::uint64_t worst_index = no_index;  ///< Where; no_index if every error is 0.
  double sum_squared_errors = 0;         ///< Of the same values; for PSNR. Unit squared.
  std::uint64_t n_beyond_bound = 0;  ///< Finite values beyond the bound, or decoded to NaN or Inf.
  std::uint64_t n_special_changed = 0;       ///< NaN, Inf or fill values that came back different.
  std::uint64_t first_bad_index = no_index;  ///< The first value of either kind of failure.
  double first_bad_original = 0;             ///< That value, ...
  double first_bad_decoded = 0;              ///< ... and what it became.

  /// Every value within its bound and every special value exact.
  bool within_bound() const { return n_beyond_bound == 0 && n_special_changed == 0; }

  /// Add another part's result; `index_shift` is added to its indices. Associative.
  void merge(const ChunkComparison& other, std::uint64_t index_shift = 0);
};

/// Compare a decoded chunk with its original. Both spans hold whole elements in native byte order.
/// Not collective. Thread-safe. Cost: one pass; vectorised while nothing is out of the ordinary.
/// @param absolute_bound  unit of the field; 0: bit-exact equality is demanded (so -0.0 is not
/// 0.0).
/// @param fill_value      values equal to it (after rounding to the dtype) must return bit-exactly
///                        and stay out of the error figures; nothing for none. NaN is allowed and
///                        changes nothing, since NaN must return exactly anyway.
/// If the spans differ in length, or are no whole number of elements, every original value counts
/// as beyond the bound. 64-bit integers beyond 2^53 are compared in integer arithmetic; only the
/// reported magnitudes are rounded to double.
ChunkComparison compare_values(DType dtype, std::span<const std::byte> original,
                               std::span<const std::byte> decoded, double absolute_bound,
                               std::optional<double> fill_value = std::nullopt);

/// The same under a bound that is a fraction of each original value's magnitude: every finite value
/// must be within it in exact arithmetic, every zero must return bit for bit. The PSNR's sum is of
/// absolute errors as ever.
/// @param pointwise_bound  in [0, 1); 0: bit-exact equality is demanded.
ChunkComparison compare_pointwise(DType dtype, std::span<const std::byte> original,
                                  std::span<const std::byte> decoded, double pointwise_bound,
                                  std::optional<double> fill_value = std::nullopt);

/// Least and greatest of the values that are finite and not fill, and how many are neither.
struct ValueRange {
  double least = 0;     ///< +Inf while n_finite is 0. Exact but for 64-bit integers above 2^53.
  double greatest = 0;  ///< -Inf while n_finite is 0.
  std::uint64_t n_finite = 0;
  std::uint64_t n_nan = 0;
  std::uint64_t n_inf = 0;
  std::uint64_t n_fill = 0;
  std::uint64_t n_least = 0;  ///< Values that equal the least one,
  std::uint64_t n_greatest = 0;
  double next_least = 0;     ///< and the least of those that do not; +Inf without any.
  double next_greatest = 0;  ///< Likewise; -Inf without any.

  ValueRange();
  bool empty() const { return n_finite == 0; }
  /// Whether all counted values are one and the same number (or there are none).
  bool constant() const { return empty() || least == greatest; }
  /// Add another part's result. Associative.
  void merge(const ValueRange& other);
};

/// Scan values; a NaN is counted as n_nan even if the fill value is NaN.
/// Not collective. Thread-safe. Cost: one pass, vectorised, and a second one over blocks of 64 Ki
/// values that hold the least or the greatest so far.
ValueRange value_range(DType dtype, std::span<const std::byte> values,
                       std::optional<double> fill_value = std::nullopt);

/// How many of the values that are finite and not fill are other than 0, and of these smaller in
/// magnitude than a bound.
struct MagnitudeCount {
  std::uint64_t n_nonzero = 0;
  std::uint64_t n_below = 0;
};
/// Not collective. Thread-safe. Cost: one pass.
MagnitudeCount count_below(DType dtype, std::span<const std::byte> values, double bound,
                           std::optional<double> fill_value = std::nullopt);

}  // namespace tailrace
