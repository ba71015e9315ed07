// The roofline (Liang et al. 2019, eq. 1-6). Known rooflines are reproduced, and the repair of
// outliers works. Numbers of ranks that were not measured are interpolated.

#include "model/throughput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tailrace {
namespace {

constexpr double kMB = 1e6;

/// Sizes of 1 to 512 MB, in doublings.
std::vector<BandwidthPoint> points_of(double (*bytes_per_s)(double x), double noise = 0,
                                      std::uint64_t n_ranks = 4) {
  std::mt19937 random(3);
  std::normal_distribution<double> error(0, noise);
  std::vector<BandwidthPoint> points;
  for (double bytes = kMB; bytes < 600 * kMB; bytes *= 2) {
    points.push_back({n_ranks, bytes, bytes_per_s(std::log2(bytes)) * (1 + error(random))});
  }
  return points;
}

/// 20 MB/s more for each doubling, up to 220 MB/s at 16 MB, then constant.
double known(double x) { return std::min(140 * kMB + 20 * kMB * (x - std::log2(kMB)), 220 * kMB); }

TEST(Roofline, FitFindsSlopeCeilingAndTurningPointAgain) {
  const Result<Roofline> fit = fit_roofline(points_of(known));
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->slope, 20 * kMB, 1);
  EXPECT_NEAR(fit->ceiling, 220 * kMB, 1);
  EXPECT_NEAR(fit->turning_x, std::log2(16 * kMB), 1e-6);
  EXPECT_NEAR(fit->turning_x, (fit->ceiling - fit->intercept) / fit->slope, 1e-9);  // eq. 5
  EXPECT_NEAR(fit->relative_residual, 0, 1e-9);
  EXPECT_FALSE(fit->repaired);
  EXPECT_EQ(fit->n_ranks, 4U);
  EXPECT_NEAR(fit->bytes_per_s(4 * kMB), 180 * kMB, 1);
  EXPECT_NEAR(fit->bytes_per_s(4000 * kMB), 220 * kMB, 1);
}

TEST(Roofline, FitSeesThroughNoise) {
  const Result<Roofline> fit = fit_roofline(points_of(known, 0.03));
  ASSERT_TRUE(fit.ok());
  EXPECT_GT(fit->relative_residual, 0.005);
  for (double bytes = kMB; bytes < 600 * kMB; bytes *= 2) {
    EXPECT_NEAR(fit->bytes_per_s(bytes) / known(std::log2(bytes)), 1, 0.06) << bytes;
  }
}

TEST(Roofline, RaisesACeilingThatLiesBelowTheLinesEnd) {
  // One size at the turning point was too fast, so the fitted line ends above the constant.
  std::vector<BandwidthPoint> points = points_of(known);
  ASSERT_DOUBLE_EQ(points[4].bytes_per_rank, 16 * kMB);
  points[4].bytes_per_s += 60 * kMB;
  const Result<Roofline> fit = fit_roofline(points);
  ASSERT_TRUE(fit.ok());
  EXPECT_TRUE(fit->repaired);
  const double line_end = fit->slope * fit->turning_x + fit->intercept;
  EXPECT_NEAR(fit->ceiling, line_end, 1e-6 * line_end);
  EXPECT_NEAR(fit->turning_x, std::log2(16 * kMB), 1e-9);
  double before = 0;
  for (double bytes = kMB; bytes < 600 * kMB; bytes *= 2) {
    EXPECT_GE(fit->bytes_per_s(bytes), before);
    before = fit->bytes_per_s(bytes);
  }
}

TEST(Roofline, SlowerLargeWritesAndEqualOnesAreAConstant) {
  const auto falling = [](double x) { return 400 * kMB - 10 * kMB * (x - std::log2(kMB)); };
  const auto equal = [](double) { return 100 * kMB; };
  for (double (*shape)(double) : {+falling, +equal}) {
    const std::vector<BandwidthPoint> points = points_of(shape);
    const Result<Roofline> fit = fit_roofline(points);
    ASSERT_TRUE(fit.ok());
    double mean = 0;
    for (const BandwidthPoint& point : points) {
      mean += point.bytes_per_s / static_cast<double>(points.size());
    }
    EXPECT_EQ(fit->slope, 0);
    EXPECT_NEAR(fit->bytes_per_s(kMB), mean, 1);
    EXPECT_NEAR(fit->bytes_per_s(512 * kMB), mean, 1);
  }
}

TEST(Roofline, FewPointsGiveWhatTheyTell) {
  const Result<Roofline> one = fit_roofline(std::vector<BandwidthPoint>{{2, 8 * kMB, 50 * kMB}});
  ASSERT_TRUE(one.ok());
  EXPECT_DOUBLE_EQ(one->bytes_per_s(100 * kMB), 50 * kMB);
  const Result<Roofline> two =
      fit_roofline(std::vector<BandwidthPoint>{{2, 2 * kMB, 50 * kMB}, {2, 8 * kMB, 90 * kMB}});
  ASSERT_TRUE(two.ok());
  EXPECT_NEAR(two->bytes_per_s(2 * kMB), 50 * kMB, 1);
  EXPECT_NEAR(two->bytes_per_s(4 * kMB), 70 * kMB, 1);
  EXPECT_NEAR(two->bytes_per_s(16 * kMB), 90 * kMB, 1);
}

TEST(Roofline, SmallWritesTakeNoLessTimeThanTheSmallestMeasured) {
  const Result<Roofline> fit = fit_roofline(points_of(known));
  ASSERT_TRUE(fit.ok());
  const double least_s = kMB / fit->bytes_per_s(kMB);
  for (const double bytes : {1.0, 4096.0, 1e5}) {
    EXPECT_GT(fit->bytes_per_s(bytes), 0);
    EXPECT_LE(bytes / fit->bytes_per_s(bytes), least_s * (1 + 1e-9));
  }
}

TEST(Roofline, OutliersDoNotTurnTheLineBelowZero) {
  // The least sizes are equally fast, then one is tenfold: the best fit would start below zero.
  std::vector<BandwidthPoint> points;
  const double speeds[] = {100, 100, 100, 100, 1000, 100, 1200, 1100, 1150};
  for (std::size_t i = 0; i < std::size(speeds); ++i) {
    points.push_back({2, std::exp2(static_cast<double>(i)) * kMB, speeds[i] * kMB});
  }
  const Result<Roofline> fit = fit_roofline(points);
  ASSERT_TRUE(fit.ok());
  for (const BandwidthPoint& point : points) {
    EXPECT_GE(fit->bytes_per_s(point.bytes_per_rank), 50 * kMB);
  }
}

TEST(Roofline, RefusesPointsThatCannotBe) {
  EXPECT_EQ(fit_roofline({}).status().code(), Code::invalid_argument);
  for (const BandwidthPoint& bad :
       {BandwidthPoint{3, kMB, kMB}, BandwidthPoint{0, kMB, kMB}, BandwidthPoint{2, 0, kMB},
        BandwidthPoint{2, kMB, 0}, BandwidthPoint{2, kMB, NAN}}) {
    const std::vector<BandwidthPoint> points = {{2, kMB, kMB}, bad};
    EXPECT_EQ(fit_roofline(points).status().code(), Code::invalid_argument);
  }
}

TEST(BandwidthModel, KnowsNothingAtFirstAndAConstantForEverybody) {
  EXPECT_FALSE(BandwidthModel().known());
  EXPECT_EQ(BandwidthModel().bytes_per_s(kMB, 4), 0);
  EXPECT_EQ(BandwidthModel().seconds(kMB, 4), 0);
  const BandwidthModel limit = BandwidthModel::constant(50 * kMB);
  EXPECT_TRUE(limit.known());
  for (const std::uint64_t n_ranks : {1U, 3U, 512U}) {
    EXPECT_DOUBLE_EQ(limit.bytes_per_s(1, n_ranks), 50 * kMB);
    EXPECT_DOUBLE_EQ(limit.bytes_per_s(1e9, n_ranks), 50 * kMB);
  }
  EXPECT_DOUBLE_EQ(limit.seconds(10 * kMB, 5), 1);
  EXPECT_EQ(limit.seconds(0, 5), 0);
}

TEST(BandwidthModel, GoesBetweenAndBeyondTheNumbersOfRanks) {
  std::vector<BandwidthPoint> points;
  for (const auto& [n_ranks, bytes_per_s] :
       {std::pair<std::uint64_t, double>{8, 400 * kMB}, {2, 200 * kMB}, {32, 500 * kMB}}) {
    points.push_back({n_ranks, 64 * kMB, bytes_per_s});
  }
  const Result<BandwidthModel> model = BandwidthModel::fit(points);
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->rooflines().size(), 3U);
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 1), 100 * kMB, 1);  // half of the value for 2 ranks
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 2), 200 * kMB, 1);
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 4), 300 * kMB, 1);  // half way in log2
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 8), 400 * kMB, 1);
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 16), 450 * kMB, 1);
  EXPECT_NEAR(model->bytes_per_s(64 * kMB, 4096), 500 * kMB, 1);  // more ranks share the ceiling
  EXPECT_NEAR(model->seconds(64 * kMB, 16), 64.0 * 16 / 450, 1e-6);
  EXPECT_EQ(BandwidthModel::fit({}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tailrace
