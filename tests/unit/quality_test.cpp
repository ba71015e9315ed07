// The inverse models: from PSNR and size to a bound.

#include "model/dump_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tailrace {
namespace {

TEST(Quality, EvenErrorsWithinTheBoundMakeThePsnr) {
  constexpr double psnr_db = 65;
  constexpr double range = 40;
  const double bound = bound_for_psnr(psnr_db, range, 1);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> error(-bound, bound);
  double squares = 0;
  constexpr int n_values = 200000;
  for (int i = 0; i < n_values; ++i) {
    const double e = error(random);
    squares += e * e;
  }
  const double psnr = 20 * std::log10(range) - 10 * std::log10(squares / n_values);
  EXPECT_NEAR(psnr, psnr_db, 0.05);
}

TEST(Quality, SmallerErrorsAllowAWiderBound) {
  // A quarter of the variance means half the errors.
  EXPECT_NEAR(bound_for_psnr(80, 1, 0.25), 2 * bound_for_psnr(80, 1, 1), 1e-12);
}

TEST(Quality, PsnrAndBoundAreInverse) {
  for (const double share : {0.04, 1.0, 1.7}) {
    for (const double psnr : {20.0, 61.5, 120.0}) {
      EXPECT_NEAR(psnr_for_bound(bound_for_psnr(psnr, 3e5, share), 3e5, share), psnr, 1e-9);
    }
  }
}

/// bytes = 1000 / sqrt(bound).
std::vector<SizeAtBound> power_law() {
  std::vector<SizeAtBound> sizes;
  for (double bound = 0.1; bound > 1e-7; bound /= 4) {
    sizes.push_back({bound, 1000 / std::sqrt(bound)});
  }
  return sizes;
}

TEST(Quality, BetweenTheBoundsSizeIsAPower) {
  for (const double bound : {0.09, 0.0123, 1e-5}) {
    const auto found = tightest_bound(power_law(), 1000 / std::sqrt(bound));
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(*found / bound, 1, 1e-9);
  }
}

TEST(Quality, TargetsBeyondTheEnds) {
  const std::vector<SizeAtBound> sizes = power_law();
  EXPECT_FALSE(tightest_bound(sizes, 3000).has_value());  // the loosest bound gives 3162
  EXPECT_DOUBLE_EQ(tightest_bound(sizes, 1e12).value(), sizes.back().relative_bound);
  EXPECT_FALSE(tightest_bound({}, 1e12).has_value());
}

TEST(Quality, SizesThatShrinkUnderTighterBoundsCountAsEqual) {
  const std::vector<SizeAtBound> sizes = {{0.1, 100}, {0.01, 90}, {0.001, 200}};
  EXPECT_NEAR(tightest_bound(sizes, 100).value(), 0.01, 1e-12);
  const double middle = tightest_bound(sizes, 100 * std::sqrt(2.0)).value();
  EXPECT_NEAR(middle, std::sqrt(0.01 * 0.001), 1e-9);
}

}  // namespace
}  // namespace tailrace
