// The rule of the lanes: the operation that starts next, on handmade and on random iterations.

#include "schedule/lane_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace tailrace {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<Obstacle> two_obstacles = {{1, 2}, {5, 6}};

TEST(LaneOutlook, IsFreeUntilTheFirstObstacleThatHasNotBegun) {
  const LaneOutlook before = lane_outlook(two_obstacles, 0, false, 0.25);
  EXPECT_EQ(before.now_s, 0.25);
  EXPECT_EQ(before.free_until_s, 1);
  EXPECT_FALSE(before.blocked);
  EXPECT_FALSE(before.overdue);
  EXPECT_EQ(lane_outlook(two_obstacles, 1, false, 2.5).free_until_s, 5);
  // The first obstacle came early and is over; the lane is free until the second.
  EXPECT_EQ(lane_outlook(two_obstacles, 1, false, 0.8).free_until_s, 5);
  EXPECT_EQ(lane_outlook(two_obstacles, 2, false, 7).free_until_s, infinity);
  EXPECT_EQ(lane_outlook({}, 0, false, 7).free_until_s, infinity);
  // More obstacles than were forecast.
  EXPECT_EQ(lane_outlook(two_obstacles, 9, false, 7).free_until_s, infinity);
  EXPECT_FALSE(lane_outlook(two_obstacles, 9, false, 7).overdue);
}

TEST(LaneOutlook, IsBlockedWhileAnObstacleIsUnderWay) {
  const LaneOutlook blocked = lane_outlook(two_obstacles, 1, true, 7);
  EXPECT_TRUE(blocked.blocked);
  EXPECT_FALSE(blocked.overdue);
  EXPECT_EQ(blocked.free_until_s, 7);
}

TEST(LaneOutlook, KeepsTheMarginOnBothSidesOfTheForecastStart) {
  EXPECT_EQ(lane_outlook(two_obstacles, 0, false, 0, 0.25).free_until_s, 0.75);
  EXPECT_FALSE(lane_outlook(two_obstacles, 0, false, 0.8, 0.25).overdue);
  EXPECT_FALSE(lane_outlook(two_obstacles, 0, false, 1.2, 0.25).overdue);
  EXPECT_TRUE(lane_outlook(two_obstacles, 0, false, 1.25, 0.25).overdue);
  // Without a margin an obstacle may still begin exactly at its forecast time.
  const LaneOutlook on_time = lane_outlook(two_obstacles, 0, false, 1);
  EXPECT_FALSE(on_time.overdue);
  EXPECT_TRUE(lane_outlook(two_obstacles, 0, false, on_time.overdue_from_s).overdue);
  // A negative margin counts as none.
  EXPECT_EQ(lane_outlook(two_obstacles, 0, false, 0, -3).free_until_s, 1);
}

TEST(LaneMargin, IsTheSpreadsUntilAChunkIsShorter) {
  EXPECT_DOUBLE_EQ(lane_margin_s(2, 0.003, 0.1), 0.006);
  EXPECT_DOUBLE_EQ(lane_margin_s(2, 0.3, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(lane_margin_s(2, 0, 0.1), 0);
  EXPECT_DOUBLE_EQ(lane_margin_s(2, 0.3, 0), 0);  // Nothing to encode can collide.
}

TEST(PickOperation, TakesTheFirstInThePlansOrderThatFits) {
  const LaneOutlook outlook = lane_outlook(two_obstacles, 1, false, 2);
  EXPECT_EQ(pick_operation(std::vector<double>{2, 1}, outlook), 0U);
  EXPECT_EQ(pick_operation(std::vector<double>{4, 3.5, 3, 1}, outlook), 2U);
  EXPECT_EQ(pick_operation(std::vector<double>{4, 3.5}, outlook), std::nullopt);
  EXPECT_EQ(pick_operation({}, outlook), std::nullopt);
  EXPECT_EQ(pick_operation(std::vector<double>{0}, lane_outlook(two_obstacles, 0, false, 1)), 0U);
}

TEST(PickOperation, ForgivesRoundingButNotMore) {
  double now_s = 0;
  for (int i = 0; i < 10; ++i) now_s += 0.1;  // 0.9999999999999999
  const std::vector<Obstacle> obstacle = {{1.3, 2}};
  const LaneOutlook outlook = lane_outlook(obstacle, 0, false, now_s + 2e-16);
  EXPECT_EQ(pick_operation(std::vector<double>{0.3}, outlook), 0U);
  EXPECT_EQ(pick_operation(std::vector<double>{0.300001}, outlook), std::nullopt);
}

TEST(PickOperation, WaitsWhileBlocked) {
  EXPECT_EQ(pick_operation(std::vector<double>{0, 1}, lane_outlook(two_obstacles, 1, true, 1.5)),
            std::nullopt);
  EXPECT_EQ(pick_operation(std::vector<double>{0, 1}, lane_outlook(two_obstacles, 2, true, 1.5)),
            std::nullopt);
}

TEST(PickOperation, TakesTheShortestWhileAnObstacleIsOverdue) {
  const LaneOutlook overdue = lane_outlook(two_obstacles, 0, false, 3);
  EXPECT_EQ(pick_operation(std::vector<double>{9, 3, 2, 2, 5}, overdue), 2U);
  EXPECT_EQ(pick_operation(std::vector<double>{NAN, 3}, overdue), 1U);
  EXPECT_EQ(pick_operation(std::vector<double>{NAN, NAN}, overdue), 0U);
}

TEST(PickOperation, TakesWhateverIsFirstWhereNoObstacleIsToCome) {
  const LaneOutlook outlook = lane_outlook(two_obstacles, 2, false, 8);
  EXPECT_EQ(pick_operation(std::vector<double>{1e9, 1}, outlook), 0U);
  EXPECT_EQ(pick_operation(std::vector<double>{NAN, 1}, outlook), 0U);
  // If an obstacle is still to come, an operation of unknown length fits nowhere.
  EXPECT_EQ(pick_operation(std::vector<double>{NAN, 1}, lane_outlook(two_obstacles, 0, false, 0)),
            1U);
}

/// Delays that a lane with this rule causes in an application whose obstacles come `late_s` after
/// their forecast: how often an obstacle had to wait for an operation, and how long.
struct Delays {
  std::size_t n_delayed = 0;
  double longest_s = 0;
  double finished_s = 0;  ///< End of the last operation.
};

Delays run_lane(const std::vector<Obstacle>& forecast, const std::vector<double>& late_s,
                std::vector<double> lengths_s, double margin_s) {
  Delays delays;
  double now_s = 0;
  std::size_t n_begun = 0;
  double shift_s = 0;  // A delayed obstacle delays later ones.
  while (!lengths_s.empty()) {
    const double due_s = n_begun < forecast.size()
                             ? forecast[n_begun].start_s + late_s[n_begun] + shift_s
                             : infinity;
    if (now_s >= due_s) {
      shift_s += now_s - due_s;
      now_s += forecast[n_begun].length_s();
      ++n_begun;
      continue;
    }
    const LaneOutlook outlook = lane_outlook(forecast, n_begun, false, now_s, margin_s);
    const std::optional<std::size_t> picked = pick_operation(lengths_s, outlook);
    if (!picked) {
      now_s = std::min(due_s, outlook.overdue_from_s);
      continue;
    }
    const double end_s = now_s + lengths_s[*picked];
    lengths_s.erase(lengths_s.begin() + std::ptrdiff_t(*picked));
    if (end_s > due_s + 1e-8) {
      ++delays.n_delayed;
      delays.longest_s = std::max(delays.longest_s, end_s - due_s);
    }
    now_s = end_s;
    delays.finished_s = end_s;
  }
  return delays;
}

struct RandomCase {
  std::vector<Obstacle> forecast;
  std::vector<double> late_s;
  std::vector<double> lengths_s;
};

/// Obstacles come up to `most_late_s` early or late, and are at least `least_gap_s` apart.
RandomCase random_case(std::mt19937& random, double most_late_s, double least_gap_s = 0) {
  std::uniform_real_distribution<double> uniform(0, 1);
  RandomCase it;
  double at_s = 0;
  const std::size_t n_obstacles = random() % 8;
  for (std::size_t i = 0; i < n_obstacles; ++i) {
    const double start_s = at_s + least_gap_s + 2 * uniform(random);
    at_s = start_s + 0.01 + uniform(random);
    it.forecast.push_back({start_s, at_s});
    it.late_s.push_back(most_late_s * (2 * uniform(random) - 1));
  }
  const std::size_t n_operations = 1 + random() % 30;
  for (std::size_t i = 0; i < n_operations; ++i) it.lengths_s.push_back(uniform(random));
  return it;
}

TEST(PickOperation, DelaysNoObstacleThatComesAsForecast) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const RandomCase it = random_case(random, 0);
    const Delays delays = run_lane(it.forecast, it.late_s, it.lengths_s, 0);
    EXPECT_EQ(delays.n_delayed, 0U);
    const double all_s = std::accumulate(it.lengths_s.begin(), it.lengths_s.end(), 0.0);
    EXPECT_GE(delays.finished_s, all_s - 1e-9);
    EXPECT_LT(delays.finished_s,
              all_s + (it.forecast.empty() ? 0 : it.forecast.back().end_s) + 1e-9);
  }
}

TEST(PickOperation, DelaysNoObstacleThatComesWithinTheMargin) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    const RandomCase it = random_case(random, 0.1, 0.25);
    EXPECT_EQ(run_lane(it.forecast, it.late_s, it.lengths_s, 0.1).n_delayed, 0U) << i;
  }
}

TEST(PickOperation, DelaysAnObstacleByOneOperationAtMostWhateverItWasForecast) {
  std::mt19937 random(5);
  std::size_t n_delayed = 0;
  for (int i = 0; i < 500; ++i) {
    const RandomCase it = random_case(random, 3);
    const double longest_s = *std::max_element(it.lengths_s.begin(), it.lengths_s.end());
    const Delays delays = run_lane(it.forecast, it.late_s, it.lengths_s, 0);
    EXPECT_LE(delays.longest_s, longest_s + 1e-9);
    n_delayed += delays.n_delayed;
  }
  EXPECT_GT(n_delayed, 50U);  // The test does cover delays.
}

}  // namespace
}  // namespace tailrace
