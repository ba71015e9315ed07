// The log of marks: correct marks and incorrect ones. The numbers in the tests' names are the
// invariants of exec/lane_clock.hpp.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "exec/lane_clock.hpp"

namespace tailrace {
namespace {

using Pairs = std::vector<std::pair<double, double>>;

Pairs pairs(const std::vector<Obstacle>& obstacles) {
  Pairs pairs;
  for (const Obstacle& it : obstacles) pairs.emplace_back(it.start_s, it.end_s);
  return pairs;
}

void expect_valid(const RecordedIteration& recorded) {
  for (const Lane lane : {Lane::main, Lane::io}) {
    double last_s = 0;
    for (const Obstacle& it : recorded.obstacles.of(lane)) {
      EXPECT_GE(it.start_s, last_s);
      EXPECT_GE(it.end_s, it.start_s);
      last_s = it.end_s;
    }
    EXPECT_LE(last_s, recorded.iteration_s);
    EXPECT_LE(recorded.obstacles.of(lane).size(), kLaneObstaclesMax);
  }
}

TEST(ObstacleLog, RecordsEachLaneOfItsOwn) {
  ObstacleLog log;
  EXPECT_FALSE(log.state(Lane::main).blocked);
  log.begin(Lane::main, 1);
  EXPECT_TRUE(log.state(Lane::main).blocked);
  EXPECT_EQ(log.state(Lane::main).n_begun, 1U);
  EXPECT_FALSE(log.state(Lane::io).blocked);
  log.begin(Lane::io, 1.5);
  log.end(Lane::main, 2);
  log.end(Lane::io, 3);
  log.begin(Lane::main, 4);
  log.end(Lane::main, 5);
  EXPECT_FALSE(log.state(Lane::main).blocked);
  EXPECT_EQ(log.state(Lane::main).n_begun, 2U);
  const RecordedIteration recorded = log.end_iteration(6);
  EXPECT_EQ(recorded.iteration_s, 6);
  EXPECT_EQ(pairs(recorded.obstacles.main), (Pairs{{1, 2}, {4, 5}}));
  EXPECT_EQ(pairs(recorded.obstacles.io), (Pairs{{1.5, 3}}));
  // The next iteration starts without marks.
  EXPECT_EQ(log.state(Lane::main).n_begun, 0U);
  const RecordedIteration next = log.end_iteration(2);
  EXPECT_TRUE(next.obstacles.main.empty());
  EXPECT_TRUE(next.obstacles.io.empty());
  EXPECT_EQ(next.iteration_s, 2);
}

TEST(ObstacleLog, NestedMarksAreOneObstacle_1) {
  ObstacleLog log;
  log.begin(Lane::io, 1);
  log.begin(Lane::io, 2);
  EXPECT_EQ(log.state(Lane::io).n_begun, 1U);
  log.end(Lane::io, 3);
  EXPECT_TRUE(log.state(Lane::io).blocked);
  log.end(Lane::io, 4);
  EXPECT_FALSE(log.state(Lane::io).blocked);
  EXPECT_EQ(pairs(log.end_iteration(5).obstacles.io), (Pairs{{1, 4}}));
}

TEST(ObstacleLog, AnEndWithoutABeginChangesNothing_1) {
  ObstacleLog log;
  log.end(Lane::main, 1);
  EXPECT_FALSE(log.state(Lane::main).blocked);
  log.begin(Lane::main, 2);
  log.end(Lane::main, 3);
  log.end(Lane::main, 4);
  log.begin(Lane::main, 5);
  EXPECT_TRUE(log.state(Lane::main).blocked);
  log.end(Lane::main, 6);
  EXPECT_EQ(pairs(log.end_iteration(7).obstacles.main), (Pairs{{2, 3}, {5, 6}}));
}

TEST(ObstacleLog, AnOpenObstacleGoesOnInTheNextIteration_2) {
  ObstacleLog log;
  log.begin(Lane::main, 3);
  EXPECT_EQ(pairs(log.end_iteration(5).obstacles.main), (Pairs{{3, 5}}));
  EXPECT_TRUE(log.state(Lane::main).blocked);
  EXPECT_EQ(log.state(Lane::main).n_begun, 1U);
  // An obstacle through a complete iteration.
  EXPECT_EQ(pairs(log.end_iteration(4).obstacles.main), (Pairs{{0, 4}}));
  log.end(Lane::main, 1);
  EXPECT_FALSE(log.state(Lane::main).blocked);
  log.begin(Lane::main, 2);
  log.end(Lane::main, 3);
  EXPECT_EQ(log.state(Lane::main).n_begun, 2U);
  EXPECT_EQ(pairs(log.end_iteration(4).obstacles.main), (Pairs{{0, 1}, {2, 3}}));
}

TEST(ObstacleLog, BeginsWithoutAnEndDoNotPileUp_2) {
  ObstacleLog log;
  for (int i = 0; i < 5; ++i) {
    log.begin(Lane::main, 0);  // From the second time on this repeats that the obstacle continues.
    log.begin(Lane::main, 1);
    EXPECT_EQ(log.state(Lane::main).n_begun, 1U);
    EXPECT_EQ(pairs(log.end_iteration(2).obstacles.main), (Pairs{{0, 2}}));
  }
  log.begin(Lane::main, 0.5);
  log.end(Lane::main, 1);
  EXPECT_FALSE(log.state(Lane::main).blocked);
  EXPECT_EQ(pairs(log.end_iteration(2).obstacles.main), (Pairs{{0, 1}}));
}

TEST(ObstacleLog, TimesThatGoBackCountAsTheLastMarks_3) {
  ObstacleLog log;
  log.begin(Lane::main, 2);
  log.end(Lane::main, 1);
  log.begin(Lane::main, NAN);
  log.end(Lane::main, 5);
  log.begin(Lane::main, 4);
  log.end(Lane::main, 6);
  log.begin(Lane::io, -1);
  const RecordedIteration recorded = log.end_iteration(3);
  EXPECT_EQ(recorded.iteration_s, 6);
  EXPECT_EQ(pairs(recorded.obstacles.main), (Pairs{{2, 2}, {2, 5}, {5, 6}}));
  EXPECT_EQ(pairs(recorded.obstacles.io), (Pairs{{0, 6}}));
}

TEST(ObstacleLog, VeryManyObstaclesAreMerged_4) {
  ObstacleLog log;
  // 100,000 short obstacles, with a long gap after each thousand.
  double at_s = 0;
  double busy_s = 0;
  for (int i = 0; i < 100'000; ++i) {
    log.begin(Lane::io, at_s);
    log.end(Lane::io, at_s + 1e-6);
    busy_s += 1e-6;
    at_s += i % 1000 == 999 ? 1 : 2e-6;
  }
  EXPECT_EQ(log.state(Lane::io).n_begun, 100'000U);
  const RecordedIteration recorded = log.end_iteration(at_s);
  expect_valid(recorded);
  EXPECT_GT(recorded.obstacles.io.size(), kLaneObstaclesMax / 2);
  double recorded_s = 0;
  for (const Obstacle& it : recorded.obstacles.io) recorded_s += it.length_s();
  // None of the long gaps is closed; all short gaps together take 0.1 s.
  EXPECT_GE(recorded_s, busy_s);
  EXPECT_LT(recorded_s, busy_s + 0.11);
}

TEST(ObstacleLog, AnyMarksInAnyOrderLeaveAValidRecord) {
  std::mt19937 random(1);
  std::normal_distribution<double> step(1, 1);
  for (int trial = 0; trial < 200; ++trial) {
    ObstacleLog log;
    for (int iteration = 0; iteration < 5; ++iteration) {
      double now_s = 0;
      for (std::size_t mark = random() % 30; mark > 0; --mark) {
        now_s += step(random);
        const Lane lane = random() % 2 == 0 ? Lane::main : Lane::io;
        random() % 2 == 0 ? log.begin(lane, now_s) : log.end(lane, now_s);
      }
      const std::size_t n_main = log.state(Lane::main).n_begun;
      const RecordedIteration recorded = log.end_iteration(now_s);
      expect_valid(recorded);
      EXPECT_EQ(recorded.obstacles.main.size(), n_main);
    }
  }
}

TEST(ObstacleLog, IsThreadSafe) {
  ObstacleLog log;
  const LaneClock clock;
  std::atomic<bool> stop = false;
  const auto marks = [&](Lane lane) {
    for (int i = 0; i < 20'000; ++i) {
      log.begin(lane, clock.now_s());
      log.end(lane, clock.now_s());
    }
  };
  std::size_t n_recorded = 0;
  std::thread reader([&] {
    while (!stop) {
      EXPECT_LE(log.state(Lane::io).n_begun, 40'001U);
      const RecordedIteration recorded = log.end_iteration(clock.now_s());
      n_recorded += recorded.obstacles.io.size();
      expect_valid(recorded);
    }
  });
  std::thread first(marks, Lane::io);
  std::thread second(marks, Lane::io);
  std::thread third(marks, Lane::main);
  for (std::thread* it : {&first, &second, &third}) it->join();
  stop = true;
  reader.join();
  n_recorded += log.end_iteration(clock.now_s()).obstacles.io.size();
  EXPECT_GT(n_recorded, 0U);
  EXPECT_FALSE(log.state(Lane::main).blocked);
}

}  // namespace
}  // namespace tailrace
