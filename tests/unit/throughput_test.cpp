// The throughput curve (Jin et al. 2022, eq. 1). Known curves are reproduced, and few or odd points
// give plausible results.

#include "model/throughput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tailrace {
namespace {

ThroughputCurve curve_of(double least, double greatest, double exponent, double pivot) {
  ThroughputCurve curve;
  curve.least_bytes_per_s = least;
  curve.greatest_bytes_per_s = greatest;
  curve.exponent = exponent;
  curve.pivot_bit_rate = pivot;
  return curve;
}

std::vector<ThroughputPoint> points_of(const ThroughputCurve& curve, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> error(0, noise);
  std::vector<ThroughputPoint> points;
  for (double rate = 0.25; rate < 32; rate *= 1.2) {
    points.push_back({rate, curve.bytes_per_s(rate) * (1 + error(random))});
  }
  return points;
}

TEST(Throughput, IsEquationOneBehindThePivotAndCmaxBeforeIt) {
  const ThroughputCurve paper = curve_of(101.7e6, 240.6e6, -1.716, 3);
  EXPECT_DOUBLE_EQ(paper.bytes_per_s(0.1), 240.6e6);
  EXPECT_DOUBLE_EQ(paper.bytes_per_s(3), 240.6e6);
  const double by_hand = (240.6e6 - 101.7e6) * std::pow(3.0, 1.716) * std::pow(8, -1.716) + 101.7e6;
  EXPECT_NEAR(paper.bytes_per_s(8), by_hand, 1);
  EXPECT_DOUBLE_EQ(paper.seconds(32e6, 8e6), 32e6 / paper.bytes_per_s(8));
  EXPECT_EQ(paper.seconds(0, 0), 0);
  EXPECT_TRUE(std::isinf(ThroughputCurve().seconds(1, 1)));
}

TEST(Throughput, FitFindsKnownCurvesAgain) {
  for (const ThroughputCurve& truth : {curve_of(101.7e6, 240.6e6, -1.716, 3),
                                       curve_of(1e9, 6e9, -1, 0.8), curve_of(3e7, 1.5e8, -3, 8)}) {
    const auto points = points_of(truth, 0);
    const Result<ThroughputCurve> fit = fit_throughput(points);
    ASSERT_TRUE(fit.ok());
    EXPECT_LT(fit->relative_residual, 0.02);
    EXPECT_NEAR(fit->greatest_bytes_per_s / truth.greatest_bytes_per_s, 1, 0.03);
    for (const ThroughputPoint& point : points) {
      EXPECT_NEAR(fit->bytes_per_s(point.bit_rate) / point.bytes_per_s, 1, 0.06) << point.bit_rate;
    }
  }
}

TEST(Throughput, FitSeesThroughNoiseAndReportsIt) {
  const ThroughputCurve truth = curve_of(5e8, 3e9, -1.5, 2);
  const Result<ThroughputCurve> fit = fit_throughput(points_of(truth, 0.1));
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->relative_residual, 0.1, 0.04);
  for (const double rate : {0.5, 2.0, 4.0, 12.0}) {
    EXPECT_NEAR(fit->bytes_per_s(rate) / truth.bytes_per_s(rate), 1, 0.12) << rate;
  }
}

TEST(Throughput, FewPointsKeepThePapersParameters) {
  const Result<ThroughputCurve> one = fit_throughput(std::vector<ThroughputPoint>{{4, 2e8}});
  ASSERT_TRUE(one.ok());
  EXPECT_DOUBLE_EQ(one->bytes_per_s(0.1), 2e8);
  EXPECT_DOUBLE_EQ(one->bytes_per_s(30), 2e8);
  EXPECT_EQ(one->relative_residual, 0);

  const Result<ThroughputCurve> same =
      fit_throughput(std::vector<ThroughputPoint>{{4, 1e8}, {4.5, 3e8}});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->least_bytes_per_s, same->greatest_bytes_per_s);
  EXPECT_GT(same->relative_residual, 0.3);

  const Result<ThroughputCurve> two =
      fit_throughput(std::vector<ThroughputPoint>{{1, 3e8}, {8, 2e8}});
  ASSERT_TRUE(two.ok());
  EXPECT_DOUBLE_EQ(two->exponent, -1.716);
  EXPECT_DOUBLE_EQ(two->pivot_bit_rate, 1);
  EXPECT_NEAR(two->bytes_per_s(1), 3e8, 1);
  EXPECT_NEAR(two->bytes_per_s(8), 2e8, 1);
}

TEST(Throughput, RisingThroughputBecomesAConstant) {
  const Result<ThroughputCurve> fit =
      fit_throughput(std::vector<ThroughputPoint>{{1, 1e8}, {4, 2e8}, {16, 3e8}, {30, 4e8}});
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->least_bytes_per_s, fit->greatest_bytes_per_s);
  EXPECT_GT(fit->relative_residual, 0.2);
}

TEST(Throughput, RatesBeyondTheMeasuredOnesStayAboveHalfOfTheSlowest) {
  // For a straight line down to near zero the best Cmin would be negative.
  const Result<ThroughputCurve> fit =
      fit_throughput(std::vector<ThroughputPoint>{{1, 4e8}, {2, 3e8}, {3, 2e8}, {4, 1e8}});
  ASSERT_TRUE(fit.ok());
  EXPECT_GE(fit->least_bytes_per_s, 0.5e8);
  EXPECT_GE(fit->bytes_per_s(32), 0.5e8);
}

TEST(Throughput, RatesBelowTheMeasuredOnesStayUnderTwiceTheFastest) {
  // All rates are far above the paper's pivot of 3, where a steep power law would explode.
  const Result<ThroughputCurve> fit =
      fit_throughput(std::vector<ThroughputPoint>{{20, 2e8}, {23, 1.4e8}, {27, 1e8}});
  ASSERT_TRUE(fit.ok());
  EXPECT_LE(fit->bytes_per_s(0.1), 4e8);
  EXPECT_GE(fit->bytes_per_s(32), 0.5e8);
}

TEST(Throughput, RefusesPointsThatCannotBe) {
  EXPECT_EQ(fit_throughput({}).status().code(), Code::invalid_argument);
  for (const ThroughputPoint& bad :
       {ThroughputPoint{0, 1e8}, ThroughputPoint{1, 0}, ThroughputPoint{1, -5},
        ThroughputPoint{NAN, 1e8}, ThroughputPoint{1, INFINITY}}) {
    const Result<ThroughputCurve> fit = fit_throughput(std::vector<ThroughputPoint>{{1, 1e8}, bad});
    EXPECT_EQ(fit.status().code(), Code::invalid_argument);
  }
}

}  // namespace
}  // namespace tailrace
