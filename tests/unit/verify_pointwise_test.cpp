// The chunk verifier with a pointwise bound, compared with its definition and at the exact edge.

#include <gtest/gtest.h>

#include "codec/verify.hpp"
#include "trz/base/error_bound.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace {
namespace {

using test::Random;
using test::Sample;
using test::samples_of;

template <class T>
ChunkComparison compare(DType dtype, const std::vector<T>& original, const std::vector<T>& decoded,
                        double bound, std::optional<double> fill = std::nullopt) {
  return compare_pointwise(dtype, std::as_bytes(std::span(original)),
                           std::as_bytes(std::span(decoded)), bound, fill);
}

TEST(VerifyPointwise, EqualValuesHaveNoError) {
  for (const DType dtype : test::all_dtypes) {
    for (const std::size_t n : {1U, 3U, 1024U, 1025U, 5000U}) {
      for (const Sample& sample : samples_of(dtype, n)) {
        for (const double bound : {0.0, 1e-9, 0.9}) {
          const ChunkComparison found =
              compare_pointwise(dtype, sample.bytes, sample.bytes, bound, sample.fill_value);
          EXPECT_TRUE(found.within_bound()) << sample.name;
          EXPECT_EQ(found.largest_error, 0);
          EXPECT_EQ(found.worst_index, ChunkComparison::kNoIndex);
          EXPECT_EQ(found.n_finite, value_range(dtype, sample.bytes, sample.fill_value).n_finite);
        }
      }
    }
  }
}

TEST(VerifyPointwise, TheEdgeOfTheBoundIsExact) {
  for (const float scale : {1.0F, 0x1p-140F, 0x1p120F}) {
    for (const std::size_t n : {1U, 7U, 2048U}) {
      const std::vector<float> original(n, 8 * scale);
      const std::vector<float> decoded(n, 7 * scale);
      EXPECT_EQ(compare(DType::f32, original, decoded, 0.125).n_beyond_bound, 0U);
      EXPECT_EQ(compare(DType::f32, original, decoded, 0.125).largest_error, 0.125);
      EXPECT_EQ(compare(DType::f32, original, decoded, std::nextafter(0.125, 0.0)).n_beyond_bound,
                n);
    }
  }
}

TEST(VerifyPointwise, ZerosMustReturnBitForBit) {
  std::vector<double> original(2048, 1.0);
  original[3] = 0;
  original[4] = -0.0;
  std::vector<double> decoded = original;
  EXPECT_TRUE(compare(DType::f64, original, decoded, 0.5).within_bound());
  EXPECT_EQ(compare(DType::f64, original, decoded, 0.5).n_finite, 2048U);
  decoded[3] = -0.0;
  decoded[4] = 5e-324;
  decoded[5] = 0;  // from 1: beyond any bound below 1
  const ChunkComparison found = compare(DType::f64, original, decoded, 0.99);
  EXPECT_EQ(found.n_beyond_bound, 3U);
  EXPECT_EQ(found.first_bad_index, 3U);
  EXPECT_EQ(found.worst_index, 4U);
  EXPECT_EQ(found.largest_error, std::numeric_limits<double>::infinity());
}

TEST(VerifyPointwise, SpecialValuesMustReturnBitForBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> original(2000, 1.0);
  original[5] = nan;
  original[6] = inf;
  original[7] = -99;
  std::vector<double> decoded = original;
  EXPECT_TRUE(compare(DType::f64, original, decoded, 0.5, -99.0).within_bound());
  decoded[5] = -nan;
  decoded[6] = -inf;
  decoded[7] = -98.9;
  EXPECT_EQ(compare(DType::f64, original, decoded, 0.5, -99.0).n_special_changed, 3U);
  decoded = original;
  decoded[100] = nan;
  decoded[1500] = -1;
  EXPECT_EQ(compare(DType::f64, original, decoded, 0.9).n_beyond_bound, 2U);
  EXPECT_EQ(compare(DType::f64, original, decoded, 0.9).worst_index, 100U);
}

TEST(VerifyPointwise, IntegersAreComparedAsIntegers) {
  const std::vector<std::int64_t> original = {1LL << 62, INT64_MIN, INT64_MAX, 100, -100, 0};
  const std::vector<std::int64_t> decoded = {(1LL << 61) * 3, INT64_MIN / 2 - 1, -1, 75, -126, 1};
  const ChunkComparison half = compare(DType::i64, original, decoded, 0.5);
  EXPECT_EQ(half.n_beyond_bound, 2U);  // INT64_MAX to -1, and 0 to 1
  EXPECT_EQ(half.first_bad_index, 2U);
  const ChunkComparison quarter = compare(DType::i64, original, decoded, 0.25);
  EXPECT_EQ(quarter.n_beyond_bound, 5U);
  EXPECT_EQ(compare(DType::i64, original, decoded, 0.26).n_beyond_bound, 4U);
  const std::vector<std::uint64_t> large = {UINT64_MAX};
  const std::vector<std::uint64_t> near = {UINT64_MAX - (1ULL << 11)};
  EXPECT_EQ(compare(DType::u64, large, near, 0x1p-53).n_beyond_bound, 1U);  // 2047.99...
  EXPECT_EQ(compare(DType::u64, large, near, 0x1.0000001p-53).n_beyond_bound, 0U);
  const std::vector<std::int8_t> small = {-128, 127};
  EXPECT_EQ(compare(DType::i8, small, {-96, 95}, 0.25).n_beyond_bound, 1U);
}

/// The definition, value by value.
template <class T>
ChunkComparison reference(const std::vector<T>& x, const std::vector<T>& y, double bound,
                          std::optional<T> fill) {
  ChunkComparison found;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ++found.n_values;
    const bool same = std::memcmp(&x[i], &y[i], sizeof(T)) == 0;
    if (!std::isfinite(x[i]) || (fill && x[i] == *fill)) {
      found.n_special_changed += same ? 0U : 1U;
      continue;
    }
    ++found.n_finite;
    const bool beyond = x[i] == 0 ? !same
                                  : !std::isfinite(y[i]) ||
                                        exceeds_pointwise_bound(double{x[i]}, double{y[i]}, bound);
    found.n_beyond_bound += beyond ? 1U : 0U;
    if (same) continue;
    const double gap = std::fabs(double{x[i]} - double{y[i]});
    if (gap == 0) continue;
    found.largest_error = std::max(found.largest_error, gap / std::fabs(double{x[i]}));
  }
  return found;
}

template <class T>
void check_random_mixtures(DType dtype) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random.next() % 3000;
    std::vector<T> x = test::smooth_values<T>(n);
    std::vector<T> y = x;
    const double bound = round % 3 == 0 ? 0x1p-7 : 0.01;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t kind = random.next() % 4096;
      const double factor = round % 2 == 0 ? 0.99 : 1.01;
      y[i] = static_cast<T>(double{x[i]} * (1 + (random.unit() - 0.5) * 2 * bound * factor));
      if (kind == 0) x[i] = std::numeric_limits<T>::quiet_NaN();
      if (kind == 1) y[i] = x[i] = std::numeric_limits<T>::infinity();
      if (kind == 2) x[i] = y[i] = T(5);
      if (kind == 3) x[i] = T(0);
      if (kind == 4) x[i] = y[i] = T(0);
      if (kind == 5) x[i] = y[i] = T(5);
      if (kind == 6) y[i] = x[i] = std::ldexp(x[i], std::numeric_limits<T>::min_exponent - 10);
      if (kind == 7) y[i] = static_cast<T>(double{x[i]} * (1 + bound));
    }
    const ChunkComparison found = compare(dtype, x, y, bound, 5.0);
    const ChunkComparison expected = reference<T>(x, y, bound, T(5));
    EXPECT_EQ(found.n_values, expected.n_values);
    EXPECT_EQ(found.n_finite, expected.n_finite);
    EXPECT_EQ(found.n_beyond_bound, expected.n_beyond_bound);
    EXPECT_EQ(found.n_special_changed, expected.n_special_changed);
    EXPECT_EQ(found.largest_error, expected.largest_error);
  }
}

TEST(VerifyPointwise, AgreesWithTheDefinitionOnRandomMixtures) {
  check_random_mixtures<float>(DType::f32);
  check_random_mixtures<double>(DType::f64);
}

}  // namespace
}  // namespace tailrace
