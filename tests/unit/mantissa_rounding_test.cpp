// Rounding within a pointwise bound.

#include <gtest/gtest.h>

#include "codec/rounding.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace {
namespace {

using test::Random;

constexpr Rounding kRoundings[] = {Rounding::nearest, Rounding::coarse, Rounding::held};

template <class T>
std::vector<T> awkward_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           -T(0),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           -Limits::min(),
                           Limits::infinity(),
                           Limits::denorm_min(),
                           -Limits::infinity(),
                           Limits::quiet_NaN()};
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent;
       exponent += 3) {
    for (const double factor : {1.0, 1.25, 1.5, 1.9375, -1.0}) {
      const T x = std::ldexp(static_cast<T>(factor), exponent);
      values.push_back(x);
      values.push_back(std::nextafter(x, Limits::infinity()));
      values.push_back(std::nextafter(x, -Limits::infinity()));
    }
  }
  Random random;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t bits = random.next();
    T value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
    values.push_back(static_cast<T>(1 + 0.01 * random.unit()));  // neighbours within a bound
  }
  return values;
}

template <class T>
class MantissaRoundingTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(MantissaRoundingTest, Types);

TYPED_TEST(MantissaRoundingTest, EveryValueStaysWithinEveryBound) {
  using T = TypeParam;
  const std::vector<T> original = awkward_values<T>();
  for (const double bound :
       {1e-16, 2.3e-16, 1e-12, 1.2e-7, 1e-6, 1e-3, 0x1p-7, 1e-2, 0.1, 0.25, 0.3, 0.5, 0.99}) {
    const std::optional<MantissaGrid<T>> grid = MantissaGrid<T>::within(bound);
    if (!grid) continue;
    for (const Rounding rounding : kRoundings) {
      std::vector<T> rounded = original;
      round_values(*grid, rounding, std::optional<T>(T(1.5)), rounded.data(), rounded.size());
      std::size_t n_changed = 0;
      for (std::size_t i = 0; i < original.size(); ++i) {
        const T x = original[i];
        const T y = rounded[i];
        const bool same = std::memcmp(&x, &y, sizeof x) == 0;
        n_changed += same ? 0U : 1U;
        if (!std::isnormal(x)) {
          ASSERT_TRUE(same) << x;
        } else {
          ASSERT_FALSE(exceeds_pointwise_bound(double{x}, double{y}, bound))
              << x << " became " << y << " under " << bound;
        }
        ASSERT_EQ(x == T(1.5), y == T(1.5));
      }
      EXPECT_GT(n_changed, original.size() / 4);
    }
  }
}

TYPED_TEST(MantissaRoundingTest, MantissasEndInZeros) {
  using T = TypeParam;
  const MantissaGrid<T> grid = *MantissaGrid<T>::within(0x1p-8);
  EXPECT_EQ(grid.n_dropped(), std::numeric_limits<T>::digits - 8);
  std::vector<T> values = {T(1.0078124), T(1.0117188), T(-100.3), T(3)};
  round_values(grid, Rounding::nearest, std::optional<T>(), values.data(), values.size());
  EXPECT_EQ(values, (std::vector<T>{T(1.0078125), T(1.015625), T(-100.5), T(3)}));
}

TYPED_TEST(MantissaRoundingTest, TheRefinementsMakeFewerValuesAndLongerRuns) {
  using T = TypeParam;
  const MantissaGrid<T> grid = *MantissaGrid<T>::within(1.3e-2);
  std::size_t n_changes[3] = {};
  for (std::size_t r = 0; r < 3; ++r) {
    std::vector<T> values(10000);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::exp(std::sin(static_cast<T>(i) * T(1e-3)));
    }
    round_values(grid, kRoundings[r], std::optional<T>(), values.data(), values.size());
    for (std::size_t i = 1; i < values.size(); ++i) {
      n_changes[r] += values[i] != values[i - 1] ? 1U : 0U;
    }
  }
  EXPECT_LT(n_changes[1], n_changes[0]);
  EXPECT_LT(n_changes[2], n_changes[1]);
}

TEST(MantissaRounding, TooSmallABoundKeepsEverything) {
  EXPECT_FALSE(MantissaGrid<float>::within(1e-8).has_value());
  EXPECT_FALSE(MantissaGrid<float>::within(0).has_value());
  EXPECT_TRUE(MantissaGrid<float>::within(0x1p-23).has_value());
  EXPECT_FALSE(MantissaGrid<double>::within(1e-16).has_value());
  EXPECT_TRUE(MantissaGrid<double>::within(0x1p-52).has_value());
}

}  // namespace
}  // namespace tailrace
