// The forecast of obstacles, for iterations that repeat, drift, jitter, deviate once, or change
// permanently.

#include "model/obstacle_forecast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tailrace {
namespace {

const LaneObstacles usual = {{{1, 2}, {4, 4.5}, {7, 9}}, {{0, 0.5}, {6, 6.25}}};
constexpr double kUsualS = 10;

LaneObstacles shifted(LaneObstacles obstacles, double by_s) {
  for (Obstacle& it : obstacles.main) it = {it.start_s + by_s, it.end_s + by_s};
  for (Obstacle& it : obstacles.io) it = {it.start_s + by_s, it.end_s + by_s};
  return obstacles;
}

/// The largest difference of a start or an end; infinity if the numbers of obstacles differ.
double distance_s(const std::vector<Obstacle>& a, const std::vector<Obstacle>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest_s = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest_s = std::max(
        {largest_s, std::abs(a[i].start_s - b[i].start_s), std::abs(a[i].end_s - b[i].end_s)});
  }
  return largest_s;
}

double distance_s(const LaneObstacles& a, const LaneObstacles& b) {
  return std::max(distance_s(a.main, b.main), distance_s(a.io, b.io));
}

bool sorted_and_disjoint(const std::vector<Obstacle>& obstacles) {
  for (std::size_t i = 0; i < obstacles.size(); ++i) {
    if (obstacles[i].length_s() <= 0 || obstacles[i].start_s < 0) return false;
    if (i > 0 && obstacles[i].start_s < obstacles[i - 1].end_s) return false;
  }
  return true;
}

/// `usual`, with a normal error of sigma_s on every start and length and on the iteration.
LaneObstacles jittered(std::mt19937& random, double sigma_s) {
  std::normal_distribution<double> normal(0, sigma_s);
  LaneObstacles obstacles = shifted(usual, 1);
  for (std::vector<Obstacle>* lane : {&obstacles.main, &obstacles.io}) {
    for (Obstacle& it : *lane) {
      const double start_s = it.start_s + normal(random);
      it = {start_s, start_s + std::max(it.length_s() + normal(random), 0.01)};
    }
  }
  return obstacles;
}

TEST(ObstacleForecast, KnowsNothingBeforeTheFirstIteration) {
  const ObstacleForecast forecast;
  EXPECT_TRUE(forecast.next().main.empty());
  EXPECT_TRUE(forecast.next().io.empty());
  EXPECT_EQ(forecast.iteration_s(), 0);
  EXPECT_EQ(forecast.spread_s(Lane::main), 0);
  EXPECT_EQ(forecast.n_iterations(), 0U);
}

TEST(ObstacleForecast, TakesTheFirstIterationForTheNext) {
  ObstacleForecast forecast;
  forecast.add_iteration(usual, kUsualS);
  EXPECT_EQ(distance_s(forecast.next(), usual), 0);
  EXPECT_EQ(forecast.iteration_s(), kUsualS);
  EXPECT_EQ(forecast.spread_s(Lane::main), 0);  // One iteration gives no spread.
}

TEST(ObstacleForecast, OfASteadyProgramIsExact) {
  ObstacleForecast forecast;
  for (int i = 0; i < 50; ++i) forecast.add_iteration(usual, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-12);
  EXPECT_NEAR(forecast.iteration_s(), kUsualS, 1e-12);
  EXPECT_LT(forecast.spread_s(Lane::main), 1e-12);
  EXPECT_EQ(forecast.n_iterations(), 50U);
  EXPECT_EQ(forecast.n_outliers(), 0U);
}

TEST(ObstacleForecast, FollowsADrift) {
  // Half a percent of an iteration per step: the estimate lags by 1 / rate = 2.5 drifts.
  ObstacleForecast forecast;
  constexpr double drift_s = 0.005 * kUsualS;
  for (int i = 0; i < 60; ++i) forecast.add_iteration(shifted(usual, i * drift_s), kUsualS);
  const double off_s = distance_s(forecast.next(), shifted(usual, 60 * drift_s));
  EXPECT_NEAR(off_s, 2.5 * drift_s, 0.1 * drift_s);
  EXPECT_EQ(forecast.n_outliers(), 0U);
  // The spread reflects the drift.
  EXPECT_GT(forecast.spread_s(Lane::main), 2 * drift_s);
}

TEST(ObstacleForecast, FollowsADriftThatLeavesTheGateAtOnce) {
  ObstacleForecast forecast;
  constexpr double drift_s = 0.2 * kUsualS;
  for (int i = 0; i < 40; ++i) forecast.add_iteration(shifted(usual, i * drift_s), kUsualS);
  EXPECT_LT(distance_s(forecast.next(), shifted(usual, 40 * drift_s)), 2.6 * drift_s);
}

TEST(ObstacleForecast, MeasuresTheSpreadOfAJitter) {
  std::mt19937 random(1);
  for (const double sigma_s : {0.01, 0.1, 0.2}) {
    ObstacleForecast forecast;
    double error_sum = 0;
    double previous_sum = 0;
    double spread_sum = 0;
    LaneObstacles previous;
    constexpr int n_warm = 20;
    constexpr int n_counted = 2000;
    for (int i = 0; i < n_warm + n_counted; ++i) {
      const LaneObstacles seen = jittered(random, sigma_s);
      if (i >= n_warm) {
        const LaneObstacles next = forecast.next();
        ASSERT_EQ(next.main.size(), seen.main.size());
        EXPECT_TRUE(sorted_and_disjoint(next.main));
        error_sum += std::pow(next.main[1].start_s - seen.main[1].start_s, 2);
        previous_sum += std::pow(previous.main[1].start_s - seen.main[1].start_s, 2);
        spread_sum += forecast.spread_s(Lane::main);
      }
      forecast.add_iteration(seen, kUsualS + 5 * (seen.main[0].start_s - 2));
      previous = seen;
    }
    const double error_s = std::sqrt(error_sum / n_counted);
    EXPECT_NEAR(error_s, std::sqrt(2 / 1.6) * sigma_s, 0.06 * sigma_s);
    EXPECT_NEAR(spread_sum / n_counted, error_s, 0.06 * sigma_s);
    // Better than the previous iteration, which the paper uses.
    EXPECT_LT(error_s, 0.85 * std::sqrt(previous_sum / n_counted));
    EXPECT_LT(forecast.n_outliers(), 20U);
  }
}

TEST(ObstacleForecast, CutsASingleOutlier) {
  ObstacleForecast forecast;
  for (int i = 0; i < 10; ++i) forecast.add_iteration(usual, kUsualS);
  LaneObstacles regrid = shifted(usual, 5);
  regrid.main[0].start_s = 1;
  forecast.add_iteration(regrid, kUsualS + 5);
  EXPECT_EQ(forecast.n_outliers(), 1U);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  EXPECT_NEAR(forecast.iteration_s(), kUsualS, 1e-9);
  forecast.add_iteration(usual, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  EXPECT_LT(forecast.spread_s(Lane::main), 1e-9);
  EXPECT_EQ(forecast.n_outliers(), 1U);
  // Repeated outliers count as such if no two are adjacent.
  for (int i = 0; i < 5; ++i) {
    forecast.add_iteration(regrid, kUsualS + 5);
    forecast.add_iteration(usual, kUsualS);
  }
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  EXPECT_EQ(forecast.n_outliers(), 6U);
}

TEST(ObstacleForecast, CutsAFirstIterationThatWasNothingLikeTheRest) {
  ObstacleForecast forecast;
  forecast.add_iteration({{{30, 80}}, {}}, 90);
  for (int i = 0; i < 3; ++i) forecast.add_iteration(usual, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  EXPECT_NEAR(forecast.iteration_s(), kUsualS, 1e-9);
}

TEST(ObstacleForecast, StartsAfreshAfterAChangeThatLasts) {
  for (const double by_s : {0.2, 0.5, 3.0, 40.0}) {
    ObstacleForecast forecast;
    for (int i = 0; i < 10; ++i) forecast.add_iteration(usual, kUsualS);
    const LaneObstacles changed = shifted(usual, by_s);
    forecast.add_iteration(changed, kUsualS + by_s);
    EXPECT_LT(distance_s(forecast.next(), usual), 1e-9) << by_s;
    forecast.add_iteration(changed, kUsualS + by_s);
    EXPECT_LT(distance_s(forecast.next(), changed), 1e-9) << by_s;
    EXPECT_NEAR(forecast.iteration_s(), kUsualS + by_s, 1e-9);
    // The pattern has changed, but not its spread.
    EXPECT_LT(forecast.spread_s(Lane::main), 1e-9);
    EXPECT_EQ(forecast.n_outliers(), 1U);
  }
}

TEST(ObstacleForecast, WidensItsGateWhenTheProgramBecomesUnsteady) {
  std::mt19937 random(2);
  ObstacleForecast forecast;
  for (int i = 0; i < 20; ++i) forecast.add_iteration(jittered(random, 0), kUsualS);
  EXPECT_LT(forecast.spread_s(Lane::main), 1e-9);
  for (int i = 0; i < 30; ++i) forecast.add_iteration(jittered(random, 0.1), kUsualS);
  EXPECT_GT(forecast.spread_s(Lane::main), 0.06);
  EXPECT_LT(forecast.spread_s(Lane::main), 0.25);
}

TEST(ObstacleForecast, KeepsTheOthersWhenOneObstacleIsMissingOrNew) {
  ObstacleForecast forecast;
  for (int i = 0; i < 10; ++i) forecast.add_iteration(usual, kUsualS);
  LaneObstacles missing = usual;
  missing.main.erase(missing.main.begin() + 1);
  forecast.add_iteration(missing, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  forecast.add_iteration(usual, kUsualS);
  LaneObstacles extra = usual;
  extra.main.insert(extra.main.begin() + 1, {2.5, 3});
  forecast.add_iteration(extra, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  forecast.add_iteration(usual, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), usual), 1e-9);
  EXPECT_EQ(forecast.n_outliers(), 0U);
}

TEST(ObstacleForecast, TakesOnAnotherNumberOfObstaclesThatLasts) {
  ObstacleForecast forecast;
  for (int i = 0; i < 10; ++i) forecast.add_iteration(usual, kUsualS);
  LaneObstacles extra = usual;
  extra.main.insert(extra.main.begin() + 1, {2.5, 3});
  for (int i = 0; i < 2; ++i) forecast.add_iteration(extra, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), extra), 1e-9);
  LaneObstacles fewer = usual;
  fewer.main.erase(fewer.main.begin());
  for (int i = 0; i < 3; ++i) forecast.add_iteration(fewer, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), fewer), 1e-9);
  // A completely different pattern.
  const LaneObstacles other = {{{0.5, 0.6}, {1.5, 3}, {3.5, 3.75}, {5, 6}, {8, 8.5}, {9, 9.5}},
                               {{2, 3}}};
  for (int i = 0; i < 4; ++i) forecast.add_iteration(other, kUsualS);
  EXPECT_LT(distance_s(forecast.next(), other), 1e-9);
  for (int i = 0; i < 3; ++i) forecast.add_iteration({}, 2);
  EXPECT_LT(distance_s(forecast.next(), {}), 1e-9);
  EXPECT_NEAR(forecast.iteration_s(), 2, 1e-9);
}

TEST(ObstacleForecast, OfAProgramWithoutMarksIsItsIterationsLength) {
  ObstacleForecast forecast;
  for (int i = 0; i < 5; ++i) forecast.add_iteration({}, 3);
  EXPECT_EQ(distance_s(forecast.next(), {}), 0);
  EXPECT_NEAR(forecast.iteration_s(), 3, 1e-12);
  EXPECT_EQ(forecast.n_outliers(), 0U);
  forecast.add_iteration({}, 30);
  EXPECT_EQ(forecast.n_outliers(), 1U);
}

TEST(ObstacleForecast, KeepsObstaclesThatTouchApart) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 0.05);
  ObstacleForecast forecast;
  for (int i = 0; i < 100; ++i) {
    const double border_s = 2 + normal(random);
    forecast.add_iteration({{{1 + normal(random), border_s}, {border_s, 3 + normal(random)}}, {}},
                           4);
    const LaneObstacles next = forecast.next();
    ASSERT_EQ(next.main.size(), 2U);
    EXPECT_TRUE(sorted_and_disjoint(next.main));
  }
  // Also if obstacles are empty.
  ObstacleForecast of_points;
  for (int i = 0; i < 3; ++i) of_points.add_iteration({{{1, 1}, {1, 1}, {1, 2}}, {}}, 4);
  EXPECT_EQ(of_points.next().main.size(), 3U);
  EXPECT_TRUE(sorted_and_disjoint(of_points.next().main));
}

TEST(ObstacleForecast, OfVeryManyObstaclesStaysBounded) {
  // 100,000 obstacles: pairs with a narrow gap inside, and a wider gap after every ten pairs.
  LaneObstacles many;
  double at_s = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {
    many.main.push_back({at_s, at_s + 1e-5});
    at_s += 1e-5 + (i % 20 == 19 ? 1e-4 : i % 2 == 0 ? 1e-7 : 1e-6);
  }
  std::mt19937 random(4);
  ObstacleForecast forecast;
  for (int i = 0; i < 30; ++i) {
    // The number of obstacles changes from time to time.
    LaneObstacles seen = many;
    if (i % 3 == 1) seen.main.resize(seen.main.size() - random() % 50'000);
    forecast.add_iteration(seen, at_s);
    const LaneObstacles next = forecast.next();
    EXPECT_LE(next.main.size(), 4 * kLaneObstaclesMax);
    EXPECT_TRUE(sorted_and_disjoint(next.main));
  }
}

TEST(MergeObstacles, ClosesTheShortestGaps) {
  std::vector<Obstacle> obstacles = {{0, 1}, {2, 3}, {3.5, 4}, {8, 9}, {9.25, 10}};
  std::vector<Obstacle> same = obstacles;
  merge_obstacles(same, 5);
  EXPECT_EQ(same.size(), 5U);
  merge_obstacles(obstacles, 3);
  const std::vector<Obstacle> three = {{0, 1}, {2, 4}, {8, 10}};
  EXPECT_EQ(distance_s(obstacles, three), 0);
  merge_obstacles(obstacles, 1);
  EXPECT_EQ(distance_s(obstacles, std::vector<Obstacle>{{0, 10}}), 0);
  std::vector<Obstacle> none;
  merge_obstacles(none, 1);
  EXPECT_TRUE(none.empty());
}

TEST(MergeObstacles, MeetsTheNumberExactlyAmongEqualGaps) {
  std::vector<Obstacle> even;
  for (int i = 0; i < 1000; ++i) even.push_back({double(i), i + 0.5});
  for (const std::size_t n_most : {999U, 500U, 7U, 1U}) {
    std::vector<Obstacle> merged = even;
    merge_obstacles(merged, n_most);
    ASSERT_EQ(merged.size(), n_most);
    EXPECT_EQ(merged.front().start_s, 0);
    EXPECT_EQ(merged.back().end_s, 999.5);
    EXPECT_TRUE(sorted_and_disjoint(merged));
  }
}

}  // namespace
}  // namespace tailrace
