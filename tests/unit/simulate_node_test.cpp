// The virtual execution: cases worked out by hand, closed forms of the synchronous modes, and
// properties that hold for any noise. All jobs run once, no two operations of a lane overlap, no
// obstacle is late by more than one operation, and outcomes are reproducible.

#include "simulate/simulate_node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "simulate/random_flow_shop.hpp"
#include "simulate/simulate_workload.hpp"

namespace tailrace {
namespace {

using ::testing::HasSubstr;

/// Figure 1 of the paper: four jobs, obstacles on both lanes, an iteration of 10.
FlowShop figure_1() {
  FlowShop shop;
  shop.jobs = {{1, 2}, {2, 1}, {2, 2}, {3, 2}};
  shop.obstacles.main = {{3, 4}, {6, 7}};
  shop.obstacles.io = {{4, 5}};
  shop.iteration_s = 10;
  return shop;
}

VirtualRank as_forecast(const FlowShop& shop) { return {shop, shop, {}, {}, 0, 0}; }

/// n equal chunks, without obstacles.
VirtualRank equal_chunks(std::size_t n, double encode_s, double iteration_s) {
  VirtualRank rank;
  rank.forecast.iteration_s = iteration_s;
  rank.forecast.jobs.assign(n, {encode_s, 1});
  rank.raw_bytes.assign(n, 400);
  rank.encoded_bytes.assign(n, 100);
  rank.actual = rank.forecast;
  return rank;
}

VirtualOutcome outcome_of(const VirtualRank& rank, const VirtualSettings& settings,
                          std::vector<VirtualEvent>* events = nullptr) {
  const auto outcome = simulate_rank(rank, settings, events);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? *outcome : VirtualOutcome{};
}

/// Generated ranks of a node, with noise.
std::vector<VirtualRank> noisy_node(std::uint64_t seed, std::size_t n_ranks = 4) {
  VirtualApplication application;
  application.ratio_difference = 24;
  application.mean_ratio = 14;
  VirtualStorySettings story;
  story.seed = seed;
  story.costs.encode_s = [](double raw, double) { return raw / 250e6; };
  story.costs.write_s = [](double bytes) { return 1e-3 + bytes / 15e6; };
  const auto workload = generated_workload(application, n_ranks, n_ranks, 1, story);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  std::vector<VirtualRank> ranks;
  for (std::size_t r = 0; r < n_ranks; ++r) ranks.push_back(workload->open(r)->next());
  return ranks;
}

VirtualSettings with_storage(VirtualMode mode) {
  VirtualSettings settings;
  settings.mode = mode;
  settings.write_s = [](double bytes) { return 1e-3 + bytes / 15e6; };
  return settings;
}

/// Expects every job to be encoded once and written once, and no two operations or obstacles of a
/// lane to overlap.
void check_events(const std::vector<VirtualEvent>& events, std::span<const VirtualRank> ranks,
                  bool encodes, bool lanes_are_shared) {
  std::map<std::pair<std::size_t, std::size_t>, std::pair<int, int>> counts;
  std::map<std::pair<std::size_t, std::size_t>, double> encoded_s;
  std::map<std::pair<std::size_t, Lane>, double> busy_until_s;
  for (const VirtualEvent& event : events) {
    ASSERT_GE(event.end_s, event.start_s);
    for (const VirtualJob& job : event.jobs) {
      auto& [n_encoded, n_written] = counts[{job.rank, job.job}];
      if (event.kind == VirtualEvent::Kind::encode) {
        n_encoded += 1;
        encoded_s[{job.rank, job.job}] = event.end_s;
      } else {
        n_written += 1;
        if (encodes) {
          EXPECT_GE(event.start_s, (encoded_s[{job.rank, job.job}] - 1e-9));
        }
      }
    }
    if (event.kind == VirtualEvent::Kind::delay || !lanes_are_shared) continue;
    double& busy_s = busy_until_s[{event.rank, event.lane}];
    EXPECT_GE(event.start_s, busy_s - 1e-9);
    busy_s = event.end_s;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t job = 0; job < ranks[r].actual.jobs.size(); ++job) {
      const auto [n_encoded, n_written] = counts[{r, job}];
      EXPECT_EQ(n_encoded, encodes ? 1 : 0);
      EXPECT_EQ(n_written, 1);
    }
  }
}

TEST(SimulateNode, FigureOneAsItIsDrawn) {
  // Encodes: job 1 in [0, 1], 3 in [1, 3], obstacle, 2 in [4, 6], obstacle, 4 in [7, 10]. Writes: 1
  // in [1, 3]; 3 is ready at 3, an obstacle occupies [4, 5], so [5, 7]; 2 in [7, 8]; 4 is ready at
  // 10: [10, 12]. The application's 10 end in time; 2 are exposed.
  std::vector<VirtualEvent> events;
  const VirtualRank rank = as_forecast(figure_1());
  const VirtualOutcome outcome = outcome_of(rank, {}, &events);
  EXPECT_NEAR(outcome.makespan_s, 12, 1e-9);
  EXPECT_NEAR(outcome.planned_s, 12, 1e-9);
  EXPECT_NEAR(outcome.application_s, 10, 1e-9);
  EXPECT_NEAR(outcome.exposed_s, 2, 1e-9);
  EXPECT_NEAR(outcome.overhead_s(), 2, 1e-9);
  EXPECT_EQ(outcome.delays_of(Lane::main).n_delayed, 0U);
  EXPECT_EQ(outcome.delays_of(Lane::io).n_delayed, 0U);
  std::map<std::size_t, std::pair<double, double>> writes;
  for (const VirtualEvent& event : events) {
    if (event.kind != VirtualEvent::Kind::write) continue;
    writes[event.jobs.front().job] = {event.start_s, event.end_s};
  }
  const std::map<std::size_t, std::pair<double, double>> expected = {
      {0, {1, 3}}, {1, {7, 8}}, {2, {5, 7}}, {3, {10, 12}}};
  for (const auto& [job, interval] : expected) {
    EXPECT_NEAR(writes[job].first, interval.first, 1e-9) << job;
    EXPECT_NEAR(writes[job].second, interval.second, 1e-9) << job;
  }
  check_events(events, {&rank, 1}, true, true);
}

TEST(SimulateNode, AnEncodeThatTakesLongerMakesTheApplicationLate) {
  // Job 3 takes 2.5 instead of 2, until 3.5. The obstacle of 3 begins at 3.5, and all others are
  // half a second later, too: main [3.5, 4.5], [6.5, 7.5], I/O [4.5, 5.5], end at 10.5. Encodes: 2
  // in [4.5, 6.5], 4 in [7.5, 10.5]. Writes: 1 in [1, 3]; 3 is ready at 3.5, 1 s before the
  // obstacle, so [5.5, 7.5]; 2 in [7.5, 8.5]; 4 in [10.5, 12.5].
  VirtualRank rank = as_forecast(figure_1());
  rank.actual.jobs[2].encode_s = 2.5;
  VirtualSettings settings;
  settings.shift_forecast = true;
  const VirtualOutcome outcome = outcome_of(rank, settings);
  EXPECT_NEAR(outcome.delays_of(Lane::main).total_s, 0.5, 1e-9);
  EXPECT_NEAR(outcome.delays_of(Lane::main).longest_s, 0.5, 1e-9);
  EXPECT_EQ(outcome.delays_of(Lane::main).n_delayed, 1U);
  EXPECT_EQ(outcome.delays_of(Lane::io).n_delayed, 0U);
  EXPECT_NEAR(outcome.application_s, 10.5, 1e-9);
  EXPECT_NEAR(outcome.makespan_s, 12.5, 1e-9);
  EXPECT_NEAR(outcome.overhead_s(), 2.5, 1e-9);
  // If the forecast is not shifted, the I/O obstacle is overdue at 4. Job 3 is written from then
  // on, for 2 s, and the obstacle, due at 4.5, waits.
  settings.shift_forecast = false;
  const VirtualOutcome fixed = outcome_of(rank, settings);
  EXPECT_NEAR(fixed.delays_of(Lane::io).total_s, 1.5, 1e-3);
  EXPECT_EQ(fixed.delays_of(Lane::io).n_delayed, 1U);
}

TEST(SimulateNode, AWriteThatIsInTheWayDelaysNobodyWhereTheLaneIsShared) {
  // Job 3 is again written in [4, 6], and the I/O obstacle of 4 still comes at 4.5. No write begins
  // while it lasts, until 5.5.
  VirtualRank rank = as_forecast(figure_1());
  rank.actual.jobs[2].encode_s = 2.5;
  VirtualSettings settings;
  settings.waits_for_writes = false;
  std::vector<VirtualEvent> events;
  const VirtualOutcome outcome = outcome_of(rank, settings, &events);
  EXPECT_EQ(outcome.delays_of(Lane::io).n_delayed, 0U);
  std::size_t n_in_the_way = 0;
  for (const VirtualEvent& event : events) {
    if (event.kind != VirtualEvent::Kind::write) continue;
    EXPECT_FALSE(event.start_s > 4.5 && event.start_s < 5.5 - 1e-9) << event.start_s;
    n_in_the_way += event.start_s < 4.5 && event.end_s > 4.5 ? 1U : 0U;
  }
  EXPECT_EQ(n_in_the_way, 1U);
}

TEST(SimulateNode, AnObstacleThatComesEarlyWaitsForOneOperation) {
  // The first obstacle comes at 2, in the middle of job 3's encode in [1, 3], and is late by 1.
  // Later events are late by 1: main [3, 4], [7, 8], I/O [5, 6], end at 11.
  VirtualRank rank = as_forecast(figure_1());
  rank.actual.obstacles.main[0] = {2, 3};
  VirtualSettings settings;
  settings.shift_forecast = true;
  const VirtualOutcome outcome = outcome_of(rank, settings);
  EXPECT_NEAR(outcome.delays_of(Lane::main).total_s, 1, 1e-9);
  EXPECT_NEAR(outcome.application_s, 11, 1e-9);
}

TEST(SimulateNode, SynchronousModesHaveClosedForms) {
  // 7 chunks of 400 bytes, 100 when encoded; a write takes 0.5 s and 0.01 s per byte.
  const VirtualRank rank = equal_chunks(7, 2, 50);
  VirtualSettings settings;
  settings.write_s = [](double bytes) { return 0.5 + 0.01 * bytes; };
  VirtualRank expected = rank;
  for (JobCost& job : expected.actual.jobs) job.write_s = 1.5;
  settings.buffer_bytes = 800;  // Two raw chunks per write: 4 writes of 7 chunks.
  settings.mode = VirtualMode::sync_raw;
  EXPECT_NEAR(outcome_of(expected, settings).total_s, 50 + 4 * 0.5 + 0.01 * 2800, 1e-9);
  // Not merged: n encodes of 2 s, each longer than a write of 1.5 s, and the last write.
  settings.buffer_bytes = 100;
  settings.mode = VirtualMode::sync_encoded;
  EXPECT_NEAR(outcome_of(expected, settings).total_s, 50 + 7 * 2 + 1.5, 1e-9);
  // Two threads finish two chunks every 2 s; two writes take 3 s: the first 2 s, then 7 writes.
  settings.n_threads = 2;
  EXPECT_NEAR(outcome_of(expected, settings).total_s, 50 + 2 + 7 * 1.5, 1e-9);
}

TEST(SimulateNode, WaitingChunksAreWrittenTogether) {
  // Encodes of 0.2 s; a write costs 0.5 s and 0.01 s per byte. Chunk 0 is written in [0.2, 1.7].
  // The other four are encoded by 1.0 and become one write of 400 bytes, 4.5 s: 6.2.
  VirtualRank rank = equal_chunks(5, 0.2, 1);
  for (JobCost& job : rank.actual.jobs) job.write_s = 1.5;
  rank.forecast.jobs = rank.actual.jobs;
  VirtualSettings settings;
  settings.write_s = [](double bytes) { return 0.5 + 0.01 * bytes; };
  settings.buffer_bytes = 400;
  const VirtualOutcome outcome = outcome_of(rank, settings);
  EXPECT_EQ(outcome.n_writes, 2U);
  EXPECT_EQ(outcome.n_written, 5U);
  EXPECT_NEAR(outcome.makespan_s, 6.2, 1e-9);
}

TEST(SimulateNode, AsynchronousWritesIgnoreWhatIsToCome) {
  // Raw chunks of 4 s each from 0 on; the I/O obstacle of [5, 6] waits for the second until 8.
  VirtualRank rank = equal_chunks(3, 1, 20);
  for (JobCost& job : rank.actual.jobs) job.write_s = 1;
  rank.actual.obstacles.io = {{5, 6}};
  rank.forecast.obstacles = rank.actual.obstacles;
  VirtualSettings settings;
  settings.mode = VirtualMode::async_raw;
  settings.buffer_bytes = 400;
  const VirtualOutcome outcome = outcome_of(rank, settings);
  EXPECT_NEAR(outcome.delays_of(Lane::io).total_s, 3, 1e-9);
  EXPECT_NEAR(outcome.makespan_s, 13, 1e-9);  // 8, the obstacle until 9, then the third chunk.
  EXPECT_NEAR(outcome.total_s, 23, 1e-9);
}

TEST(SimulateNode, WithoutNoiseTheRunIsThePlan) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const FlowShop shop = random_flow_shop(10 + seed, seed);
    const VirtualOutcome outcome = outcome_of(as_forecast(shop), {});
    EXPECT_NEAR(outcome.makespan_s, outcome.planned_s, 1e-6) << seed;
    EXPECT_EQ(outcome.delays_of(Lane::main).n_delayed, 0U) << seed;
    EXPECT_EQ(outcome.delays_of(Lane::io).n_delayed, 0U) << seed;
  }
}

TEST(SimulateNode, NoiseDelaysAnObstacleByOneOperationAtMost) {
  std::size_t n_delayed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<VirtualRank> ranks = noisy_node(seed, 1);
    std::vector<VirtualEvent> events;
    const VirtualOutcome outcome =
        outcome_of(ranks.front(), with_storage(VirtualMode::in_situ), &events);
    double longest_encode_s = 0;
    double longest_write_s = 0;
    for (const VirtualEvent& event : events) {
      double* longest_s = event.kind == VirtualEvent::Kind::encode  ? &longest_encode_s
                          : event.kind == VirtualEvent::Kind::write ? &longest_write_s
                                                                    : nullptr;
      if (longest_s != nullptr) *longest_s = std::max(*longest_s, event.end_s - event.start_s);
    }
    EXPECT_LE(outcome.delays_of(Lane::main).longest_s, longest_encode_s);
    EXPECT_LE(outcome.delays_of(Lane::io).longest_s, longest_write_s);
    EXPECT_NEAR(outcome.application_s,
                outcome.computation_s + outcome.delays_of(Lane::main).total_s +
                    outcome.delays_of(Lane::io).total_s,
                1e-6);
    n_delayed += outcome.delays_of(Lane::main).n_delayed;
  }
  EXPECT_GT(n_delayed, 0U);  // Otherwise there was no noise.
}

TEST(SimulateNode, EveryJobIsDoneOnceInEveryModeAndBalance) {
  std::size_t n_moved = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const std::vector<VirtualRank> ranks = noisy_node(seed);
    for (const VirtualModeEntry& entry : virtual_mode_registry()) {
      for (const BalanceRule rule : {BalanceRule::off, BalanceRule::paper, BalanceRule::best}) {
        VirtualSettings settings = with_storage(entry.mode);
        settings.balance = rule;
        std::vector<VirtualEvent> events;
        const auto outcomes = simulate_node(ranks, settings, {}, &events);
        ASSERT_TRUE(outcomes.ok()) << outcomes.status().message();
        const bool raw =
            entry.mode == VirtualMode::sync_raw || entry.mode == VirtualMode::async_raw;
        check_events(events, ranks, !raw, entry.mode == VirtualMode::in_situ);
        for (const VirtualEvent& event : events) {
          if (event.kind != VirtualEvent::Kind::write) continue;
          for (const VirtualJob& job : event.jobs) n_moved += job.rank != event.rank ? 1 : 0;
        }
        for (const VirtualOutcome& outcome : *outcomes) {
          EXPECT_GE(outcome.total_s, outcome.computation_s);
        }
      }
    }
  }
  EXPECT_GT(n_moved, 0U);
}

TEST(SimulateNode, BalancingShortensAnUnbalancedNode) {
  // One rank's chunks take four times as long to write as to encode, the others' almost no time.
  std::vector<VirtualRank> ranks(4, equal_chunks(16, 1, 16));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (JobCost& job : ranks[r].actual.jobs) job.write_s = r == 0 ? 4 : 0.1;
    ranks[r].forecast.jobs = ranks[r].actual.jobs;
  }
  std::map<BalanceRule, double> longest_s;
  for (const BalanceRule rule : {BalanceRule::off, BalanceRule::paper, BalanceRule::best}) {
    VirtualSettings settings;
    settings.balance = rule;
    const auto outcomes = simulate_node(ranks, settings);
    ASSERT_TRUE(outcomes.ok());
    for (const VirtualOutcome& outcome : *outcomes) {
      longest_s[rule] = std::max(longest_s[rule], outcome.total_s);
    }
  }
  EXPECT_NEAR(longest_s[BalanceRule::off], 1 + 16 * 4, 1e-9);
  EXPECT_LT(longest_s[BalanceRule::paper], 0.75 * longest_s[BalanceRule::off]);
  EXPECT_LE(longest_s[BalanceRule::best], longest_s[BalanceRule::paper] + 1e-9);
}

TEST(SimulateNode, MemoryStaysUnderTheCap) {
  const std::vector<VirtualRank> ranks = noisy_node(3, 1);
  VirtualSettings settings = with_storage(VirtualMode::in_situ);
  settings.write_s = [](double bytes) { return bytes / 3e6; };
  const double free_s = outcome_of(ranks.front(), settings).total_s;
  for (const bool hold_copy : {false, true}) {
    settings.hold_copy = hold_copy;
    settings.memory_bytes = hold_copy ? 64U << 20 : 9U << 20;
    const VirtualOutcome outcome = outcome_of(ranks.front(), settings);
    EXPECT_LE(outcome.peak_bytes, settings.memory_bytes);
    EXPECT_GT(outcome.peak_bytes, settings.memory_bytes / 2);
    EXPECT_EQ(outcome.n_written, ranks.front().actual.jobs.size());
    EXPECT_GE(outcome.total_s, free_s - 1e-9);
    EXPECT_EQ(outcome.back_pressure_s > 0, hold_copy);  // 512 MiB of values in 64 MiB of memory.
  }
}

TEST(SimulateNode, TheSameAgain) {
  const std::vector<VirtualRank> ranks = noisy_node(5);
  VirtualSettings settings = with_storage(VirtualMode::in_situ);
  settings.balance = BalanceRule::best;
  const auto first = simulate_node(ranks, settings);
  const auto second = simulate_node(noisy_node(5), settings);
  ASSERT_TRUE(first.ok() && second.ok());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ((*first)[r].total_s, (*second)[r].total_s);
    EXPECT_EQ((*first)[r].n_writes, (*second)[r].n_writes);
  }
}

TEST(SimulateNode, RefusesWhatDoesNotMatch) {
  VirtualRank rank = equal_chunks(3, 1, 5);
  rank.encoded_bytes.pop_back();
  EXPECT_THAT(simulate_rank(rank, {}).status().message(), HasSubstr("bytes are given for 2 jobs"));
  rank = equal_chunks(3, 1, 5);
  rank.forecast.jobs.pop_back();
  EXPECT_THAT(simulate_rank(rank, {}).status().message(), HasSubstr("the forecast has 2 jobs"));
  rank = equal_chunks(3, 1, 5);
  rank.actual.obstacles.main = {{2, 1}};
  EXPECT_THAT(simulate_rank(rank, {}).status().message(), HasSubstr("rank 0: actual"));
  VirtualSettings settings;
  settings.memory_bytes = 399;
  EXPECT_THAT(simulate_rank(equal_chunks(3, 1, 5), settings).status().message(),
              HasSubstr("needs 400 bytes"));
  EXPECT_THAT(parse_virtual_mode("soon").status().message(), HasSubstr("in-situ"));
}

}  // namespace
}  // namespace tailrace
