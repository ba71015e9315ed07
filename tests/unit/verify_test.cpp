// The chunk verifier and the value scan, compared with slow references and at the exact edge of a
// bound.

#include <gtest/gtest.h>

#include <algorithm>

#include "codec/verify.hpp"
#include "trz/base/error_bound.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace {
namespace {

using test::Random;
using test::Sample;
using test::samples_of;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
ChunkComparison compare_within(DType dtype, const std::vector<T>& original,
                               const std::vector<T>& decoded, double bound,
                               std::optional<double> fill = std::nullopt) {
  return compare_values(dtype, bytes_of(original), bytes_of(decoded), bound, fill);
}

TEST(Verify, EqualValuesHaveNoError) {
  for (const DType dtype : test::all_dtypes) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 1023U, 1024U, 1025U, 5000U}) {
      for (const Sample& sample : samples_of(dtype, n)) {
        for (const double bound : {0.0, 1e-9, 1.0}) {
          const ChunkComparison found =
              compare_values(dtype, sample.bytes, sample.bytes, bound, sample.fill_value);
          EXPECT_TRUE(found.within_bound()) << sample.name;
          EXPECT_EQ(found.largest_error, 0);
          EXPECT_EQ(found.worst_index, ChunkComparison::kNoIndex);
          EXPECT_EQ(found.n_values, n);
          EXPECT_EQ(found.n_finite, value_range(dtype, sample.bytes, sample.fill_value).n_finite);
        }
      }
    }
  }
}

TEST(Verify, TheEdgeOfTheBoundIsExact) {
  // 0.1F and 0.3F are not 0.1 and 0.3: the exact difference decides, not a rounded one.
  const float x = 0.3F;
  const float y = 0.1F;
  const double gap = static_cast<double>(x) - static_cast<double>(y);
  for (const std::size_t n : {1U, 7U, 2048U}) {
    std::vector<float> original(n, x);
    std::vector<float> decoded(n, y);
    EXPECT_EQ(compare_within(DType::f32, original, decoded, gap).n_beyond_bound, 0U);
    EXPECT_EQ(
        compare_within(DType::f32, original, decoded, std::nextafter(gap, 0.0)).n_beyond_bound, n);
  }
  // A difference that rounds to the bound but exceeds it: 1 + 2^-60 over 1.
  const std::vector<double> original(1024, 1.0);
  const std::vector<double> decoded(1024, -0x1p-60);
  const ChunkComparison found = compare_within(DType::f64, original, decoded, 1.0);
  EXPECT_EQ(found.largest_error, 1.0);
  EXPECT_EQ(found.n_beyond_bound, 1024U);
}

TEST(Verify, FindsTheOneBadValue) {
  for (const std::size_t at : {0U, 1U, 1023U, 1024U, 4000U, 4998U}) {
    std::vector<float> original = test::smooth_values<float>(4999);
    std::vector<float> decoded = original;
    decoded[at] += 3;
    decoded[(at + 2500) % 4999] += 1;
    const ChunkComparison found = compare_within(DType::f32, original, decoded, 2.0);
    EXPECT_EQ(found.n_beyond_bound, 1U);
    EXPECT_EQ(found.first_bad_index, at);
    EXPECT_EQ(found.worst_index, at);
    EXPECT_EQ(found.first_bad_original, static_cast<double>(original[at]));
    EXPECT_EQ(found.first_bad_decoded, static_cast<double>(decoded[at]));
    EXPECT_NEAR(found.largest_error, 3.0, 1e-4);
    EXPECT_NEAR(found.sum_squared_errors, 10.0, 1e-3);
  }
}

TEST(Verify, SpecialValuesMustReturnBitForBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> original(2000, 1.0);
  original[5] = nan;
  original[6] = inf;
  original[7] = -99;
  std::vector<double> decoded = original;
  EXPECT_TRUE(compare_within(DType::f64, original, decoded, 0.5, -99.0).within_bound());
  EXPECT_EQ(compare_within(DType::f64, original, decoded, 0.5, -99.0).n_finite, 1997U);

  decoded[5] = -nan;  // A different payload: the sign.
  decoded[6] = -inf;
  decoded[7] = std::nextafter(-99.0, 0.0);
  ChunkComparison found = compare_within(DType::f64, original, decoded, 0.5, -99.0);
  EXPECT_EQ(found.n_special_changed, 3U);
  EXPECT_EQ(found.n_beyond_bound, 0U);
  EXPECT_EQ(found.first_bad_index, 5U);

  decoded = original;
  decoded[100] = nan;
  decoded[1500] = inf;
  found = compare_within(DType::f64, original, decoded, 1e300);
  EXPECT_EQ(found.n_beyond_bound, 2U);
  EXPECT_EQ(found.largest_error, inf);
  EXPECT_EQ(found.worst_index, 100U);
}

TEST(Verify, ABoundOfZeroMeansTheSameBits) {
  std::vector<float> original(1024, 0.0F);
  std::vector<float> decoded = original;
  decoded[9] = -0.0F;
  EXPECT_EQ(compare_within(DType::f32, original, decoded, 0.0).n_beyond_bound, 1U);
  EXPECT_EQ(compare_within(DType::f32, original, decoded, 1e-30).n_beyond_bound, 0U);
}

TEST(Verify, WideIntegersAreComparedAsIntegers) {
  const std::vector<std::int64_t> original = {(1LL << 62) + 1, INT64_MIN, INT64_MAX};
  const std::vector<std::int64_t> decoded = {1LL << 62, INT64_MIN + 2, INT64_MIN};
  EXPECT_EQ(compare_within(DType::i64, original, decoded, 0.5).n_beyond_bound, 3U);
  EXPECT_EQ(compare_within(DType::i64, original, decoded, 1.0).n_beyond_bound, 2U);
  EXPECT_EQ(compare_within(DType::i64, original, decoded, 2.5).n_beyond_bound, 1U);
  EXPECT_EQ(compare_within(DType::i64, original, decoded, 2.5).first_bad_index, 2U);
  EXPECT_EQ(compare_within(DType::i64, original, decoded, 1e20).n_beyond_bound, 0U);
}

TEST(Verify, DifferentLengthsAreAllBad) {
  const std::vector<float> original(10);
  const std::vector<float> decoded(9);
  EXPECT_EQ(compare_within(DType::f32, original, decoded, 1.0).n_beyond_bound, 10U);
}

/// The definition, value by value.
template <class T>
ChunkComparison by_definition(const std::vector<T>& x, const std::vector<T>& y, double bound,
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
    if (!std::isfinite(y[i]) || exceeds_bound(double{x[i]}, double{y[i]}, bound))
      ++found.n_beyond_bound;
    if (std::isfinite(y[i])) {
      found.largest_error = std::max(found.largest_error, std::fabs(double{x[i]} - double{y[i]}));
    }
  }
  return found;
}

TEST(Verify, AgreesWithTheDefinitionOnRandomMixtures) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random.next() % 3000;
    std::vector<float> x = test::smooth_values<float>(n);
    std::vector<float> y = x;
    const double bound = 0.01;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t kind = random.next() % 4096;
      y[i] += static_cast<float>((random.unit() - 0.5) * 2 * (round % 2 == 0 ? 0.0099 : 0.0101));
      if (kind == 0) x[i] = std::numeric_limits<float>::quiet_NaN();
      if (kind == 1) y[i] = x[i] = std::numeric_limits<float>::infinity();
      if (kind == 2) x[i] = y[i] = 5.0F;
      if (kind == 3) x[i] = 5.0F;
    }
    const ChunkComparison found = compare_within(DType::f32, x, y, bound, 5.0);
    const ChunkComparison expected = by_definition<float>(x, y, bound, 5.0F);
    EXPECT_EQ(found.n_values, expected.n_values);
    EXPECT_EQ(found.n_finite, expected.n_finite);
    EXPECT_EQ(found.n_beyond_bound, expected.n_beyond_bound);
    EXPECT_EQ(found.n_special_changed, expected.n_special_changed);
    EXPECT_EQ(found.largest_error, expected.largest_error);
  }
}

TEST(Verify, PartsMergeInAnyOrder) {
  std::vector<float> x = test::smooth_values<float>(3000);
  std::vector<float> y = x;
  y[10] += 1;
  y[1500] += 4;
  y[2900] += 4;
  const ChunkComparison whole = compare_within(DType::f32, x, y, 0.5);
  const auto part = [&](std::size_t start) {
    return compare_within(DType::f32,
                          std::vector<float>(x.begin() + static_cast<long>(start),
                                             x.begin() + static_cast<long>(start) + 1000),
                          std::vector<float>(y.begin() + static_cast<long>(start),
                                             y.begin() + static_cast<long>(start) + 1000),
                          0.5);
  };
  ChunkComparison merged;
  for (const std::size_t start : {2000U, 0U, 1000U}) merged.merge(part(start), start);
  EXPECT_EQ(merged.n_values, whole.n_values);
  EXPECT_EQ(merged.n_beyond_bound, whole.n_beyond_bound);
  EXPECT_EQ(merged.first_bad_index, 10U);
  EXPECT_EQ(merged.worst_index, whole.worst_index);
  EXPECT_EQ(merged.largest_error, whole.largest_error);
}

TEST(ValueRangeTest, CountsAndFindsLikeTheDefinition) {
  for (const DType dtype : test::all_dtypes) {
    for (const std::size_t n : {1U, 3U, 4U, 5U, 1000U, 70001U}) {
      for (const Sample& sample : samples_of(dtype, n)) {
        ValueRange expected;
        std::vector<double> ends;
        visit_dtype(dtype, [&]<class T>() {
          for (std::size_t i = 0; i < n; ++i) {
            T x;
            std::memcpy(&x, sample.bytes.data() + i * sizeof(T), sizeof(T));
            const auto wide = static_cast<double>(x);
            if (std::isnan(wide)) {
              ++expected.n_nan;
            } else if (sample.fill_value && x == static_cast<T>(*sample.fill_value)) {
              ++expected.n_fill;
            } else if (std::isinf(wide)) {
              ++expected.n_inf;
            } else {
              ++expected.n_finite;
              expected.least = std::min(expected.least, wide);
              expected.greatest = std::max(expected.greatest, wide);
              ends.push_back(wide);
            }
          }
        });
        std::ranges::sort(ends);
        for (const double x : ends) {
          expected.n_least += x == expected.least ? 1 : 0;
          expected.n_greatest += x == expected.greatest ? 1 : 0;
          if (x != expected.least) expected.next_least = std::min(expected.next_least, x);
          if (x != expected.greatest) expected.next_greatest = std::max(expected.next_greatest, x);
        }
        const ValueRange found = value_range(dtype, sample.bytes, sample.fill_value);
        SCOPED_TRACE(sample.name);
        EXPECT_EQ(found.n_nan, expected.n_nan);
        EXPECT_EQ(found.n_inf, expected.n_inf);
        EXPECT_EQ(found.n_fill, expected.n_fill);
        EXPECT_EQ(found.n_finite, expected.n_finite);
        EXPECT_EQ(found.least, expected.least);
        EXPECT_EQ(found.greatest, expected.greatest);
        // 64-bit integers above 2^53 may be equal as doubles although they differ.
        if (dtype_bytes(dtype) == 8 && !is_floating(dtype)) continue;
        EXPECT_EQ(found.next_least, expected.next_least);
        EXPECT_EQ(found.next_greatest, expected.next_greatest);
        EXPECT_EQ(found.n_least, expected.n_least);
        EXPECT_EQ(found.n_greatest, expected.n_greatest);
      }
    }
  }
  EXPECT_TRUE(value_range(DType::f32, {}).empty());
}

}  // namespace
}  // namespace tailrace
