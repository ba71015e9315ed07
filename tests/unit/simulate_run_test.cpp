// Simulated runs: reproducible on any number of threads, with recordings written and read back.
// Generated ratios and noise have the requested distributions. Recordings without surprises have
// known outcomes.

#include "simulate/simulate_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "simulate/recorded_workload.hpp"

namespace tailrace {
namespace {

using ::testing::HasSubstr;

VirtualStorySettings story_of(double bytes_per_s) {
  VirtualStorySettings story;
  story.costs.encode_s = [](double raw, double) { return raw / 250e6; };
  story.costs.write_s = [bytes_per_s](double bytes) { return bytes / bytes_per_s; };
  return story;
}

VirtualRunSettings all_modes(const VirtualStorySettings& story) {
  VirtualRunSettings settings;
  for (const VirtualModeEntry& entry : virtual_mode_registry()) {
    settings.modes.push_back(entry.mode);
  }
  settings.node.write_s = story.costs.write_s;
  settings.node.balance = BalanceRule::best;
  return settings;
}

/// Two ranks, `n` equal iterations of two chunks; rank 1 computes for longer.
Recording steady_recording(std::size_t n) {
  Recording recording;
  recording.ranks_per_node = 2;
  for (const double longer_s : {0.0, 1.0}) {
    RecordedRankIteration iteration;
    iteration.seen.iteration_s = 4 + longer_s;
    iteration.seen.obstacles.main = {{0, 1}, {2.5, 3}};
    iteration.seen.obstacles.io = {{0.25, 0.5}};
    iteration.seen.jobs = {{0.5, 0.25}, {0.75, 0.125}};
    iteration.raw_bytes = {1000, 2000};
    iteration.encoded_bytes = {100, 50};
    recording.ranks.emplace_back(n, iteration);
  }
  return recording;
}

TEST(SimulateRun, DoesNotDependOnThreads) {
  const VirtualStorySettings story = story_of(20e6);
  const auto workload = generated_workload(virtual_applications().front(), 37, 4, 3, story);
  ASSERT_TRUE(workload.ok()) << workload.status().message();
  VirtualRunSettings settings = all_modes(story);
  const auto alone = simulate_run(*workload, settings);
  settings.n_threads = 3;
  const auto together = simulate_run(*workload, settings);
  ASSERT_TRUE(alone.ok() && together.ok());
  ASSERT_EQ(alone->modes.size(), 6U);
  for (std::size_t m = 0; m < alone->modes.size(); ++m) {
    EXPECT_EQ(alone->modes[m].run_s, together->modes[m].run_s);
    for (std::size_t i = 0; i < 3; ++i) {
      const VirtualIteration& one = alone->modes[m].iterations[i];
      EXPECT_EQ(one.delay_s, together->modes[m].iterations[i].delay_s);
      EXPECT_EQ(one.n_written, 37U * 72U);
      const bool raw = alone->modes[m].mode == VirtualMode::sync_raw ||
                       alone->modes[m].mode == VirtualMode::async_raw;
      EXPECT_EQ(one.n_encoded, raw ? 0U : 37U * 72U);
      if (raw) {
        EXPECT_EQ(one.written_bytes, std::uint64_t{37} * 9 * (64U << 20));
      }
    }
  }
}

TEST(SimulateRun, OrdersTheModesAsOneExpects) {
  // Encodes take 1.2 s of 2 s in which the main lane is free.
  VirtualStorySettings story = story_of(25e6);
  story.costs.encode_s = [](double raw, double) { return raw / 500e6; };
  const auto workload = generated_workload(virtual_applications().front(), 16, 4, 4, story);
  ASSERT_TRUE(workload.ok());
  const auto result = simulate_run(*workload, all_modes(story));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto overhead = [&](VirtualMode mode) {
    return result->modes[static_cast<std::size_t>(mode)].overhead();
  };
  EXPECT_GT(overhead(VirtualMode::sync_raw), overhead(VirtualMode::async_raw));
  EXPECT_GT(overhead(VirtualMode::sync_raw), overhead(VirtualMode::sync_encoded));
  EXPECT_GT(overhead(VirtualMode::async_encoded), overhead(VirtualMode::in_situ));
  EXPECT_GE(overhead(VirtualMode::in_situ), 0);
}

TEST(SimulateRun, SynchronizedIterationsWaitForTheSlowest) {
  // Sync modes on two ranks: each iteration lasts as long as rank 1's, whatever rank 0 does.
  const auto recording = std::make_shared<const Recording>(steady_recording(4));
  const VirtualStorySettings story{{0, 0, 0, 0}, {}, 1, false, 1};
  const auto workload = recorded_workload(recording, 2, 2, 3, story);
  ASSERT_TRUE(workload.ok());
  VirtualRunSettings settings;
  settings.modes = {VirtualMode::sync_raw};
  for (const bool synchronized : {true, false}) {
    settings.synchronized = synchronized;
    const auto result = simulate_run(*workload, settings);
    ASSERT_TRUE(result.ok()) << result.status().message();
    // Raw writes as long as encoded ones by their bytes: 0.25 x 10 + 0.125 x 40.
    EXPECT_NEAR(result->modes[0].run_s, 3 * (5 + 7.5), 1e-9);
    EXPECT_NEAR(result->modes[0].computation_s, 3 * 5, 1e-9);
  }
}

TEST(SimulateRun, ARecordingWithoutSurprisesRunsAsPlanned) {
  // Main is free in [1, 2.5]: both encodes fit, and the iteration hides the writes.
  const auto recording = std::make_shared<const Recording>(steady_recording(5));
  const VirtualStorySettings story{{0, 0, 0, 0}, {}, 1, false, 1};
  const auto workload = recorded_workload(recording, 2, 2, 4, story);
  ASSERT_TRUE(workload.ok());
  VirtualRunSettings settings;
  settings.modes = {VirtualMode::in_situ};
  const auto result = simulate_run(*workload, settings);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_NEAR(result->modes[0].overhead(), 0, 1e-9);
  for (const VirtualIteration& iteration : result->modes[0].iterations) {
    EXPECT_EQ(iteration.n_written, 4U);
    EXPECT_EQ(iteration.n_delayed[0] + iteration.n_delayed[1], 0U);
  }
}

// --- Costs of a step apart from its bytes

/// Powers of two, so that sums are exact: a message takes 16 s and 1/8 s per byte.
StepConstants simple_constants() {
  StepConstants constants;
  constants.messages = {.latency_s = 8, .overhead_s = 4, .byte_s = 0.125, .wait_s = 2};
  constants.copy_bytes_per_s = 4;
  constants.number_s = 0.5;
  constants.record_s = 0.25;
  constants.index_s = 64;
  constants.dataset_s = 128;
  constants.commit_s = 1024;
  return constants;
}

/// Eight ranks on four nodes, with two datasets of four chunks per rank in total.
VirtualStepShape simple_shape() {
  VirtualStepShape shape;
  shape.n_ranks = 8;
  shape.n_nodes = 4;
  shape.n_datasets = 2;
  shape.n_chunks = 4;
  shape.raw_bytes = 1000;
  shape.n_writes = 2;
  shape.hold_copy = true;
  return shape;
}

TEST(StepCosts, OfASynchronousStep) {
  const VirtualStepCosts costs =
      step_costs(VirtualMode::sync_encoded, simple_shape(), simple_constants());
  // Three levels: a broadcast of 3072 bytes; a reduction of five numbers of 16.
  EXPECT_EQ(costs.agree_s, 2 + 3 * (16 + 3072 * 0.125) + 2 + 3 * (16 + 80 * 0.125));
  // 21 + 2 x 8 numbers and 4 records of 40 bytes per rank, preceded by their size; two messages per
  // level.
  const double own_bytes = 37 * 8 + 4 * 40;
  EXPECT_EQ(costs.gather_s,
            2 + 2 * 3 * 16 + 7 * (own_bytes + 8) * 0.125 + 7 * 37 * 0.5 + 32 * 0.25);
  EXPECT_EQ(costs.index_s, 32 * 64);
  EXPECT_EQ(costs.commit_s, 1024 + 2 * 128);
  EXPECT_EQ(costs.copy_s, 0);
  // Two writes, each with a question and its answer of 16 bytes; rank 0 needs 3 x 8 s to answer
  // all.
  EXPECT_EQ(costs.claims_s, 2 * (2 * 18 + 2));
  VirtualStepShape shape = simple_shape();
  shape.write_s = 2 * 30;  // The second question travels during the first write.
  EXPECT_EQ(step_costs(VirtualMode::sync_encoded, shape, simple_constants()).claims_s, 38 + 8);
  shape.write_s = 2 * 100;
  EXPECT_EQ(step_costs(VirtualMode::sync_encoded, shape, simple_constants()).claims_s, 38);
  EXPECT_FALSE(costs.overlapped);
  EXPECT_EQ(costs.exposed_s(1e9),
            costs.agree_s + costs.gather_s + costs.index_s + costs.commit_s + costs.claims_s);
}

TEST(StepCosts, OfAStepThatIsHandedOver) {
  VirtualStepShape shape = simple_shape();
  shape.balances = true;
  const VirtualStepCosts async = step_costs(VirtualMode::async_encoded, shape, simple_constants());
  const VirtualStepCosts in_situ = step_costs(VirtualMode::in_situ, shape, simple_constants());
  EXPECT_EQ(async.agree_s, 2 + 3 * (16 + 3072 * 0.125));
  // Loads of the node's ranks: a message, its answer, a barrier.
  EXPECT_EQ(in_situ.agree_s, async.agree_s + 2 * 16 + 2 + 3 * 16);
  // The opening's five numbers; in situ also the forecasts of two fields.
  EXPECT_EQ(async.gather_s, 2 + 96 + 7 * (42 * 8 + 160 + 8) * 0.125 + 7 * 42 * 0.5 + 8);
  EXPECT_EQ(in_situ.gather_s, 2 + 96 + 7 * (48 * 8 + 160 + 8) * 0.125 + 7 * 48 * 0.5 + 8);
  EXPECT_EQ(async.copy_s, 250);
  // One question per node. Rank 0 receives three, answers three, and receives three notices of
  // completion.
  EXPECT_EQ(async.claims_s, 2 * 18 + 2 + 9 * 4);
  // Rank 0's thread needs 2048 + 1280 s; time that the iteration lacks is waited for.
  EXPECT_TRUE(async.overlapped);
  const double waited_s = async.agree_s + async.gather_s + async.copy_s + async.claims_s;
  EXPECT_EQ(async.exposed_s(4000), waited_s);
  EXPECT_EQ(async.exposed_s(3000), waited_s + 328);
  shape.metadata_in_background = false;
  EXPECT_EQ(step_costs(VirtualMode::async_encoded, shape, simple_constants()).exposed_s(4000),
            waited_s + 3328);
}

TEST(StepCosts, OfWhatIsNotCompressedAndOfOneRank) {
  const VirtualStepCosts raw =
      step_costs(VirtualMode::async_raw, simple_shape(), simple_constants());
  EXPECT_EQ(raw.index_s, 0);
  EXPECT_EQ(raw.claims_s, 0);
  EXPECT_EQ(raw.copy_s, 250);
  VirtualStepShape alone = simple_shape();
  alone.n_ranks = alone.n_nodes = 1;
  for (const VirtualModeEntry& entry : virtual_mode_registry()) {
    const VirtualStepCosts costs = step_costs(entry.mode, alone, simple_constants());
    EXPECT_EQ(costs.agree_s + costs.claims_s, 0) << entry.name;
    EXPECT_EQ(costs.commit_s, 1280) << entry.name;
  }
}

TEST(StepCosts, OfFiltersWithinHDF5) {
  const VirtualStepCosts costs =
      step_costs(VirtualMode::hdf5_filters, simple_shape(), simple_constants());
  EXPECT_EQ(costs.agree_s, 2 * 6 * 3 * (16 + 8 * 0.125));
  // Five allgathers for each dataset of two chunks per rank.
  EXPECT_EQ(costs.gather_s, 2 * (5 * 3 * 16 + 7 * (8 + 2 * (36 + 40 + 29) + 16) * 0.125));
  EXPECT_EQ(costs.index_s, 32 * 64);
  EXPECT_FALSE(costs.overlapped);
}

TEST(SimulateRun, StepsThatCostNothingChangeNothing) {
  const VirtualStorySettings story = story_of(20e6);
  const auto workload = generated_workload(virtual_applications().front(), 9, 4, 3, story);
  ASSERT_TRUE(workload.ok());
  for (const bool synchronized : {true, false}) {
    VirtualRunSettings settings = all_modes(story);
    settings.synchronized = synchronized;
    const auto without = simulate_run(*workload, settings);
    settings.step_constants = StepConstants();
    const auto with_nothing = simulate_run(*workload, settings);
    settings.step_constants->commit_s = 2;
    const auto with_commits = simulate_run(*workload, settings);
    ASSERT_TRUE(without.ok() && with_nothing.ok() && with_commits.ok());
    for (std::size_t m = 0; m < without->modes.size(); ++m) {
      const VirtualModeResult& one = without->modes[m];
      EXPECT_EQ(one.run_s, with_nothing->modes[m].run_s);
      EXPECT_EQ(one.iterations[2].total_s, with_nothing->modes[m].iterations[2].total_s);
      // Two seconds of each iteration are waited for, or pass in the background.
      const bool beside = with_commits->modes[m].iterations[0].step.overlapped;
      EXPECT_NEAR(with_commits->modes[m].run_s, one.run_s + (beside ? 0 : 6), 1e-9);
      EXPECT_EQ(one.computation_s, with_commits->modes[m].computation_s);
    }
  }
}

TEST(SimulateRun, FiltersWithinHDF5EncodeAndThenWrite) {
  const auto recording = std::make_shared<const Recording>(steady_recording(2));
  const VirtualStorySettings story{{0, 0, 0, 0}, {}, 1, false, 1};
  const auto workload = recorded_workload(recording, 2, 2, 1, story);
  ASSERT_TRUE(workload.ok());
  VirtualRunSettings settings;
  settings.modes = {VirtualMode::hdf5_filters};
  const auto result = simulate_run(*workload, settings);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_NEAR(result->modes[0].run_s, 5 + 1.25 + 0.375, 1e-12);
}

TEST(SimulateRecording, ComesBackAsItWas) {
  const Recording recording = steady_recording(3);
  const std::string text = recording_text(recording);
  const auto again = parse_recording(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(recording_text(*again), text);
  EXPECT_EQ(again->ranks_per_node, 2U);
  ASSERT_EQ(again->ranks.size(), 2U);
  ASSERT_EQ(again->ranks[1].size(), 3U);
  const RecordedRankIteration& one = again->ranks[1][2];
  EXPECT_EQ(one.seen.iteration_s, 5);
  EXPECT_EQ(one.seen.obstacles.main[1].start_s, 2.5);
  EXPECT_EQ(one.seen.jobs[1].encode_s, 0.75);
  EXPECT_EQ(one.encoded_bytes[0], 100U);
}

TEST(SimulateRecording, KeepsTheRealMakespanIfItIsKnown) {
  Recording recording = steady_recording(2);
  EXPECT_EQ(recording_text(recording).find("makespan_s"), std::string::npos);
  recording.ranks[0][1].makespan_s = 0.75;
  const auto again = parse_recording(recording_text(recording));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->ranks[0][1].makespan_s, 0.75);
  EXPECT_EQ(again->ranks[0][0].makespan_s, 0);
  std::string wrong = recording_text(recording);
  const std::string right = "\"makespan_s\": 0.75";
  wrong.replace(wrong.find(right), right.size(), "\"makespan_s\": -1.0");
  EXPECT_THAT(parse_recording(wrong).status().message(), HasSubstr("makespan_s"));
}

TEST(SimulateRecording, SaysWhatIsWrong) {
  const std::string good = recording_text(steady_recording(2));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return parse_recording(text).status().message();
  };
  EXPECT_THAT(parse_recording("{}").status().message(), HasSubstr("tailrace-iterations"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("version"));
  EXPECT_THAT(with("\"ranks_per_node\": 2", "\"ranks_per_node\": 0"), HasSubstr("ranks_per_node"));
  EXPECT_THAT(with("[0.25,0.5]", "[0.5,0.25]"), HasSubstr("rank 0: iteration 0"));
  EXPECT_THAT(with("[0.25,0.5]", "[0.25]"), HasSubstr("must be 2 numbers"));
  EXPECT_THAT(with("1000,", "-1000,"), HasSubstr("chunks"));
  EXPECT_THAT(with("\"iteration_s\"", "\"length\""), HasSubstr("iteration_s"));
  EXPECT_THAT(recording_text(steady_recording(1)), HasSubstr("iterations"));
  EXPECT_THAT(parse_recording(recording_text(steady_recording(1))).status().message(),
              HasSubstr("at least two"));
}

TEST(SimulateWorkload, RatiosOfANodeAreAsFarApartAsAsked) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> ratios = node_ratios(6, 40, 20, seed);
    const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
    EXPECT_NEAR(*greatest - *least, 20, 1e-9);
    double sum = 0;
    for (const double ratio : ratios) sum += ratio;
    EXPECT_NEAR(sum / 6, 40, 1e-9);
  }
  EXPECT_EQ(node_ratios(1, 16, 20, 1), std::vector<double>{16});
}

TEST(SimulateWorkload, NoiseHasTheDeviationAskedFor) {
  LaneObstacles expected;
  for (int i = 0; i < 2000; ++i) expected.main.push_back({i + 0.25, i + 0.75});
  const LaneObstacles actual = noisy_obstacles(expected, 0.01, 7);
  double squares = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    squares += std::pow(actual.main[i].start_s - expected.main[i].start_s, 2);
    squares += std::pow(actual.main[i].end_s - expected.main[i].end_s, 2);
  }
  // 4000 draws: their deviation is typically off by 1.1 %.
  EXPECT_NEAR(std::sqrt(squares / 4000), 0.01, 0.0006);
  // Noise as large as the gaps leaves them sorted and disjoint.
  const LaneObstacles wild = noisy_obstacles(expected, 2, 7);
  FlowShop shop;
  shop.obstacles = wild;
  EXPECT_TRUE(check_flow_shop(shop).ok());
}

TEST(SimulateWorkload, RefusesWhatCannotBe) {
  VirtualApplication application = virtual_applications().front();
  application.main_busy_share = 1;
  EXPECT_THAT(generated_workload(application, 4, 4, 1, story_of(1e6)).status().message(),
              HasSubstr("busy share 1"));
  EXPECT_THAT(virtual_application("doom").status().message(), HasSubstr("warpx"));
}

}  // namespace
}  // namespace tailrace
