// Every scheduler of the registry on instances of every kind. The plan is valid, never beats the
// lower bound, and is reproducible. Small instances are compared with all pairs of orders, which
// proves the bound and measures each scheduler's distance from the optimum.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "schedule/flow_shop.hpp"
#include "schedule/flow_shop_walk.hpp"
#include "simulate/random_flow_shop.hpp"
#include "support/test_tier.hpp"

namespace tailrace {
namespace {

constexpr double kRoundingS = 1e-9;

void expect_conforms(const FlowShop& shop, const std::string& what, bool costly = true) {
  ASSERT_TRUE(check_flow_shop(shop).ok()) << what << ": " << check_flow_shop(shop).message();
  const double bound_s = makespan_lower_bound_s(shop);
  for (const SchedulerEntry& entry : scheduler_registry()) {
    if (!costly && entry.scheduler == Scheduler::two_lists_greedy) continue;
    const FlowShopPlan plan = schedule_flow_shop(shop, entry.scheduler);
    const Status checked = check_plan(shop, plan);
    EXPECT_TRUE(checked.ok()) << what << ", " << entry.name << ": " << checked.message();
    EXPECT_GE(plan.makespan_s, bound_s - kRoundingS) << what << ", " << entry.name;
    const FlowShopPlan again = schedule_flow_shop(shop, entry.scheduler);
    EXPECT_EQ(plan.encode_start_s, again.encode_start_s) << what << ", " << entry.name;
    EXPECT_EQ(plan.write_start_s, again.write_start_s) << what << ", " << entry.name;
  }
}

FlowShop between_obstacles(std::vector<JobCost> jobs) {
  FlowShop shop;
  shop.jobs = std::move(jobs);
  shop.obstacles.main = {{1, 2}, {3, 4}, {4, 5}, {6, 7}};
  shop.obstacles.io = {{0, 1}, {2, 2.5}, {5, 6}};
  return shop;
}

TEST(FlowShopConformance, RandomInstances) {
  for (const std::size_t n : {2U, 3U, 7U, 10U, 20U, 50U, 100U}) {
    for (std::uint64_t seed = 1; seed <= (n < 50 ? 20U : 3U); ++seed) {
      const std::string what = std::to_string(n) + " jobs, seed " + std::to_string(seed);
      expect_conforms(random_flow_shop(n, seed), what, n < 100);
    }
  }
}

TEST(FlowShopConformance, ManyJobs) {
  // TwoListsGreedy takes seconds for 500 jobs, so it is only tested with up to 50, above.
  for (const std::size_t n : {200U, 500U}) {
    expect_conforms(random_flow_shop(n, 1), std::to_string(n) + " jobs", false);
  }
}

TEST(FlowShopConformance, EdgesOfAnInstance) {
  expect_conforms(FlowShop{}, "empty");
  expect_conforms(between_obstacles({}), "no jobs");
  expect_conforms(between_obstacles({{0.5, 0.5}}), "one job");
  expect_conforms(between_obstacles({{9, 9}}), "one job longer than every window");
  expect_conforms(between_obstacles({{9, 8}, {7, 9}, {8, 7}}), "all longer than every window");
  expect_conforms(between_obstacles({{0, 0}, {0, 0}, {0, 0}}), "no lengths at all");
  expect_conforms(between_obstacles({{0, 1}, {1, 0}, {0, 0.5}, {1, 0}, {0.5, 0}}), "no lengths");
  expect_conforms(between_obstacles({{1, 1}, {1, 1}, {1, 1}, {1, 1}}), "jobs that fit exactly");
  FlowShop free = random_flow_shop(30, 1);
  free.obstacles = {};
  expect_conforms(free, "no obstacles");
  FlowShop row = random_flow_shop(30, 2);
  row.obstacles.main.clear();
  for (int i = 0; i < 40; ++i) row.obstacles.main.push_back({0.05 * i, 0.05 * (i + 1)});
  expect_conforms(row, "back-to-back obstacles");
}

TEST(FlowShopConformance, EqualJobs) {
  for (const std::size_t n : {2U, 12U, 200U}) {
    FlowShop shop = random_flow_shop(n, 5);
    for (JobCost& job : shop.jobs) job = shop.jobs.front();
    expect_conforms(shop, std::to_string(n) + " equal jobs", n < 100);
  }
}

TEST(FlowShopConformance, TimesThatDoNotAddUpExactly) {
  // Ten jobs of a tenth fill a window of one, for any rounding of their sum.
  FlowShop shop;
  shop.jobs.assign(10, {0.1, 0.05});
  shop.obstacles.main = {{1, 2}};
  for (const SchedulerEntry& entry : scheduler_registry()) {
    EXPECT_NEAR(schedule_flow_shop(shop, entry.scheduler).makespan_s, 1.05, 1e-6) << entry.name;
  }
  expect_conforms(shop, "tenths");
}

TEST(FlowShopConformance, WithoutObstaclesJohnsonsRuleIsTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FlowShop shop = random_flow_shop(12, seed);
    shop.obstacles = {};
    const double best_s = schedule_flow_shop(shop, Scheduler::ext_johnson).makespan_s;
    EXPECT_NEAR(schedule_flow_shop(shop, Scheduler::search).makespan_s, best_s, kRoundingS);
    EXPECT_NEAR(schedule_flow_shop(shop, Scheduler::ext_johnson_bf).makespan_s, best_s, kRoundingS);
  }
}

double best_of_all_orders(const FlowShop& shop) {
  std::vector<std::size_t> encodes(shop.jobs.size());
  std::iota(encodes.begin(), encodes.end(), std::size_t{0});
  double best_s = 1e300;
  do {
    std::vector<std::size_t> writes(encodes.size());
    std::iota(writes.begin(), writes.end(), std::size_t{0});
    do {
      best_s = std::min(best_s, schedule_in_order(shop, encodes, writes).makespan_s);
    } while (std::next_permutation(writes.begin(), writes.end()));
  } while (std::next_permutation(encodes.begin(), encodes.end()));
  return best_s;
}

// The gaps are computed, not measured; docs/decisions.md has the numbers.
TEST(FlowShopConformance, SearchFindsTheOptimumOfFiveJobs) {
  std::vector<double> gap(scheduler_registry().size());
  double bound_gap = 0;
  int n_instances = 0;
  for (std::size_t n = 1; n <= 5; ++n) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const FlowShop shop = random_flow_shop(n, 100 * n + seed);
      const double best_s = best_of_all_orders(shop);
      ASSERT_LE(makespan_lower_bound_s(shop), best_s + kRoundingS) << n << " jobs, seed " << seed;
      for (const SchedulerEntry& entry : scheduler_registry()) {
        const double makespan_s = schedule_flow_shop(shop, entry.scheduler).makespan_s;
        ASSERT_GE(makespan_s, best_s - kRoundingS) << entry.name;
        gap[static_cast<std::size_t>(entry.scheduler)] += makespan_s / best_s - 1;
      }
      bound_gap += 1 - makespan_lower_bound_s(shop) / best_s;
      ++n_instances;
      EXPECT_NEAR(schedule_flow_shop(shop, Scheduler::search).makespan_s, best_s, kRoundingS)
          << n << " jobs, seed " << seed;
    }
  }
  for (const SchedulerEntry& entry : scheduler_registry()) {
    const double mean = gap[static_cast<std::size_t>(entry.scheduler)] / n_instances;
    RecordProperty("gap " + std::string(entry.name), std::to_string(mean));
  }
  RecordProperty("gap of the lower bound", std::to_string(bound_gap / n_instances));
}

// The search has at most half of ExtJohnson+BF's distance to the bound, at every size.
TEST(FlowShopConformance, SearchHalvesTheGap) {
  for (const std::size_t n : {10U, 20U, 50U, 100U, 200U}) {
    double gap_bf = 0;
    double gap_search = 0;
    for (std::uint64_t seed = 1; seed <= std::uint64_t(test::tier_rounds(100, 5)); ++seed) {
      const FlowShop shop = random_flow_shop(n, seed);
      const double bound_s = makespan_lower_bound_s(shop);
      const double bf_s = schedule_flow_shop(shop, Scheduler::ext_johnson_bf).makespan_s;
      const double search_s = schedule_flow_shop(shop, Scheduler::search).makespan_s;
      ASSERT_LE(search_s, bf_s + kRoundingS);
      gap_bf += bf_s / bound_s - 1;
      gap_search += search_s / bound_s - 1;
    }
    EXPECT_LE(gap_search, 0.5 * gap_bf) << n << " jobs";
    RecordProperty("gap of ext-johnson+bf, " + std::to_string(n), std::to_string(gap_bf / 100));
    RecordProperty("gap of search, " + std::to_string(n), std::to_string(gap_search / 100));
  }
}

TEST(FlowShopWalk, StatesTheMakespanThatItsOrdersHave) {
  for (const std::size_t n : {2U, 3U, 9U, 40U}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const FlowShop shop = random_flow_shop(n, seed);
      const FlowShopPlan plan = schedule_flow_shop(shop, Scheduler::generation_list);
      TwoListWalk walk(shop);
      SearchDraws draws(seed);
      // Many short walks, each from the end of the last one or from its best orders.
      walk.set_orders(plan.encode_order, plan.write_order);
      EXPECT_NEAR(walk.makespan_s(), plan.makespan_s, kRoundingS);
      for (int round = 1; round <= 20; ++round) {
        walk.anneal(0.1, walk.n_operations() + 500, 0, draws);
        const std::vector<std::size_t> encodes = walk.best_encode_order();
        const std::vector<std::size_t> writes = walk.best_write_order();
        const double placed_s = schedule_in_order(shop, encodes, writes).makespan_s;
        ASSERT_NEAR(walk.best_s(), placed_s, kRoundingS) << n << " jobs, seed " << seed;
        if (round % 2 == 0) walk.set_orders(encodes, writes);
      }
      EXPECT_LE(walk.best_s(), plan.makespan_s);
    }
  }
}

TEST(RandomFlowShop, HasTheShapeAskedFor) {
  const FlowShopShape shape;
  const FlowShop shop = random_flow_shop(shape, 7);
  ASSERT_EQ(shop.jobs.size(), shape.n_jobs);
  EXPECT_EQ(shop.obstacles.main.size(), shape.n_main_obstacles);
  EXPECT_EQ(shop.obstacles.io.size(), shape.n_io_obstacles);
  double encodes_s = 0;
  for (const JobCost& job : shop.jobs) encodes_s += job.encode_s;
  EXPECT_NEAR(encodes_s, 0.9 * 0.55 * 4, 1e-4);
  double covered_s = 0;
  for (const Obstacle& obstacle : shop.obstacles.io) covered_s += obstacle.length_s();
  EXPECT_NEAR(covered_s, 0.25 * 4, 1e-4);
  EXPECT_LE(shop.obstacles.main.back().end_s, 4);
  // Fixed numbers: results are only comparable if every machine draws the same.
  EXPECT_NEAR(shop.jobs[0].encode_s, 0.071747, 1e-9);
  EXPECT_NEAR(shop.jobs[31].write_s, 0.025385, 1e-9);
  EXPECT_NEAR(shop.obstacles.main[3].start_s, 1.681778, 1e-9);
}

}  // namespace
}  // namespace tailrace
