// ExactSum and DistributionSearch: exact in any order and for any number of bins.

#include "verbs/fidelity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tailrace::verbs {
namespace {

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  sum.carry();
  return sum.value();
}

TEST(ExactSum, LosesNothingToCancellation) {
  EXPECT_EQ(sum_of({1e308, 1.0, -1e308}), 1.0);
  EXPECT_EQ(sum_of({1e-300, -1e300, 1e300}), 1e-300);
  EXPECT_EQ(sum_of({0.1, -0.3, 0.2, 1e17, -1e17}), 2.7755575615628914e-17);
  EXPECT_EQ(sum_of({}), 0.0);
  EXPECT_EQ(sum_of({-2.5, -0.0}), -2.5);
  const double denormal = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(sum_of({denormal, denormal}), 2 * denormal);
}

TEST(ExactSum, IsTheSameInAnyOrderAndInParts) {
  std::mt19937_64 random(7);
  std::vector<double> values(2000);
  for (double& value : values) {
    value = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                       std::uniform_int_distribution<int>(-600, 600)(random));
  }
  const double forward = sum_of(values);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(sum_of(values), forward);
  ExactSum first;
  ExactSum second;
  for (std::size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? first : second).add(values[i]);
  first.carry();
  second.carry();
  for (std::size_t i = 0; i < ExactSum::kNLimbs; ++i) first.limbs()[i] += second.limbs()[i];
  first.carry();
  EXPECT_EQ(first.value(), forward);
}

TEST(ExactSum, SaysWhatIsNotFinite) {
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::numeric_limits<double>::infinity(), 2.0})));
  EXPECT_TRUE(std::isnan(sum_of({std::numeric_limits<double>::quiet_NaN()})));
}

/// The greatest distance by its definition, in values.
std::uint64_t greatest_distance(const std::vector<std::uint64_t>& a,
                                const std::vector<std::uint64_t>& b) {
  std::uint64_t greatest = 0;
  for (const auto* keys : {&a, &b}) {
    for (const std::uint64_t key : *keys) {
      const auto up_to = [key](std::uint64_t other) { return other <= key; };
      const auto of_a = std::count_if(a.begin(), a.end(), up_to);
      const auto of_b = std::count_if(b.begin(), b.end(), up_to);
      greatest = std::max(greatest, static_cast<std::uint64_t>(std::abs(of_a - of_b)));
    }
  }
  return greatest;
}

TEST(DistributionSearch, FindsTheDistanceWithFewBins) {
  std::mt19937_64 random(11);
  for (const unsigned n_bits : {3U, 20U, 63U, 64U}) {
    std::vector<std::uint64_t> a(700);
    std::vector<std::uint64_t> b(a.size());
    const std::uint64_t mask = n_bits == 64 ? UINT64_MAX : (std::uint64_t{1} << n_bits) - 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = random() & mask;
      b[i] = i % 9 == 0 ? a[i] / 2 : a[i] ^ (random() & 1U);
    }
    DistributionSearch search(64);
    search.start(*std::min_element(a.begin(), a.end()), *std::max_element(a.begin(), a.end()));
    int n_passes = 0;
    do {
      for (std::size_t i = 0; i < a.size(); ++i) search.count(a[i], b[i]);
      ASSERT_LT(++n_passes, 200);
    } while (search.next(a.size()));
    EXPECT_EQ(search.most(), greatest_distance(a, b)) << n_bits << " bits";
    EXPECT_EQ(search.at_most(), search.most());
  }
}

}  // namespace
}  // namespace tailrace::verbs
