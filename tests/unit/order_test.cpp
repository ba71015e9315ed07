// Orders of work: all of them are permutations. Johnson's rule is compared with every possible
// order, and insertion with the algorithm as printed. On a timeline no two operations of a lane
// overlap.

#include "schedule/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace tailrace {
namespace {

/// Integers, so that sums are exact and ties are real.
std::vector<JobCost> random_jobs(std::mt19937& random, std::size_t n, unsigned greatest = 20) {
  std::vector<JobCost> jobs;
  for (std::size_t i = 0; i < n; ++i) {
    jobs.push_back({double(random() % greatest), double(random() % greatest)});
  }
  return jobs;
}

std::vector<std::size_t> in_turn(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// TIME of algorithm 1, as printed.
double printed_time(const std::vector<JobCost>& jobs, const std::vector<std::size_t>& queue) {
  double encode_s = 0;
  double write_s = 0;
  for (const std::size_t job : queue) {
    encode_s += jobs[job].encode_s;
    write_s = jobs[job].write_s + std::max(encode_s, write_s);
  }
  return write_s;
}

/// Algorithm 1 as printed, O(n^3).
std::vector<std::size_t> printed_insertion(const std::vector<JobCost>& jobs) {
  std::vector<std::size_t> queue;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    std::vector<std::size_t> best;
    for (std::size_t place = 0; place <= queue.size(); ++place) {
      std::vector<std::size_t> tried = queue;
      tried.insert(tried.begin() + std::ptrdiff_t(place), job);
      if (place == 0 || printed_time(jobs, tried) < printed_time(jobs, best)) best = tried;
    }
    queue = best;
  }
  return queue;
}

double best_of_all_orders(const std::vector<JobCost>& jobs) {
  std::vector<std::size_t> order = in_turn(jobs.size());
  double best = std::numeric_limits<double>::infinity();
  do {
    best = std::min(best, printed_time(jobs, order));
  } while (std::ranges::next_permutation(order).found);
  return best;
}

class EveryOrder : public ::testing::TestWithParam<OrderEntry> {};

TEST_P(EveryOrder, IsAPermutationForAnyCosts) {
  std::mt19937 random(1);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::size_t n : {0U, 1U, 2U, 3U, 17U, 499U, 500U, 501U, 1203U}) {
    std::vector<JobCost> jobs = random_jobs(random, n);
    if (n == 17) jobs[3] = {NAN, -infinity}, jobs[4] = {infinity, NAN}, jobs[5] = {-1, -2};
    for (const std::size_t n_threads : {0U, 1U, 3U}) {
      std::vector<std::size_t> order = order_jobs(jobs, GetParam().rule, n_threads);
      EXPECT_EQ(order, order_jobs(jobs, GetParam().rule, n_threads));
      std::ranges::sort(order);
      EXPECT_EQ(order, in_turn(n));
    }
  }
}

TEST_P(EveryOrder, IsFoundByItsName) {
  const Result<OrderRule> rule = parse_order(GetParam().name);
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ(*rule, GetParam().rule);
  EXPECT_FALSE(GetParam().summary.empty());
}

TEST_P(EveryOrder, TimelineKeepsLanesApartAndMeetsTheLowerBound) {
  std::mt19937 random(2);
  for (int repetition = 0; repetition < 50; ++repetition) {
    const std::vector<JobCost> jobs = random_jobs(random, 1 + random() % 40);
    const std::size_t n_threads = 1 + random() % 4;
    const std::vector<std::size_t> order = order_jobs(jobs, GetParam().rule, n_threads);
    const std::vector<PlannedJob> plan = plan_timeline(jobs, order, n_threads);
    ASSERT_EQ(plan.size(), jobs.size());
    std::vector<std::vector<std::pair<double, double>>> lanes(n_threads + 1);
    double encode_s = 0;
    double write_s = 0;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const PlannedJob& planned = plan[i];
      ASSERT_EQ(planned.job, order[i]);
      ASSERT_LT(planned.thread, n_threads);
      EXPECT_EQ(planned.encode_end_s - planned.encode_start_s, jobs[planned.job].encode_s);
      EXPECT_EQ(planned.write_end_s - planned.write_start_s, jobs[planned.job].write_s);
      EXPECT_GE(planned.write_start_s, planned.encode_end_s);
      lanes[planned.thread].emplace_back(planned.encode_start_s, planned.encode_end_s);
      lanes[n_threads].emplace_back(planned.write_start_s, planned.write_end_s);
      encode_s += jobs[planned.job].encode_s;
      write_s += jobs[planned.job].write_s;
    }
    for (auto& lane : lanes) {
      std::ranges::sort(lane);
      for (std::size_t i = 1; i < lane.size(); ++i) EXPECT_GE(lane[i].first, lane[i - 1].second);
    }
    const double end_s = makespan_s(jobs, order, n_threads);
    EXPECT_GE(end_s, std::max(encode_s / double(n_threads), write_s));
    EXPECT_LE(end_s, encode_s + write_s);
    EXPECT_EQ(end_s, lanes[n_threads].back().second);
    EXPECT_EQ(makespan_s(jobs, order, 1), printed_time(jobs, order));
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, EveryOrder,
                         ::testing::ValuesIn(order_registry().begin(), order_registry().end()),
                         [](const auto& entry) {
                           std::string name(entry.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Order, UnknownNamesAreRefusedWithTheKnownOnes) {
  const Result<OrderRule> rule = parse_order("random");
  EXPECT_EQ(rule.status().code(), Code::invalid_argument);
  EXPECT_NE(rule.status().message().find("\"random\""), std::string::npos);
  EXPECT_NE(rule.status().message().find("largest-first"), std::string::npos);
}

TEST(Order, PlainOrdersSortByOneCost) {
  const std::vector<JobCost> jobs = {{3, 1}, {1, 5}, {2, 9}, {1, 5}};
  EXPECT_EQ(order_jobs(jobs, OrderRule::given), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(order_jobs(jobs, OrderRule::largest_first), (std::vector<std::size_t>{2, 1, 3, 0}));
  EXPECT_EQ(order_jobs(jobs, OrderRule::smallest_first), (std::vector<std::size_t>{1, 3, 2, 0}));
}

TEST(Order, JohnsonIsNeverWorseThanAnyOrder) {
  std::mt19937 random(3);
  for (int repetition = 0; repetition < 150; ++repetition) {
    const std::vector<JobCost> jobs = random_jobs(random, 1 + random() % 7);
    const double best = best_of_all_orders(jobs);
    EXPECT_EQ(makespan_s(jobs, order_jobs(jobs, OrderRule::johnson), 1), best);
  }
}

TEST(Order, InsertionIsThePrintedAlgorithm) {
  std::mt19937 random(4);
  for (int repetition = 0; repetition < 200; ++repetition) {
    const std::vector<JobCost> jobs = random_jobs(random, random() % 30);
    EXPECT_EQ(order_jobs(jobs, OrderRule::insertion), printed_insertion(jobs));
  }
}

TEST(Order, InsertionIsNearTheBest) {
  std::mt19937 random(5);
  double sum = 0;
  double worst = 1;
  constexpr int n_cases = 300;
  for (int repetition = 0; repetition < n_cases; ++repetition) {
    const std::vector<JobCost> jobs = random_jobs(random, 6, 100);
    const double ratio = makespan_s(jobs, order_jobs(jobs, OrderRule::insertion), 1) /
                         makespan_s(jobs, order_jobs(jobs, OrderRule::johnson), 1);
    EXPECT_GE(ratio, 1);
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  RecordProperty("mean_ratio", std::to_string(sum / n_cases));
  RecordProperty("worst_ratio", std::to_string(worst));
  EXPECT_LT(sum / n_cases, 1.02);
}

TEST(Order, RunsOfInsertionKnowWhatIsLeftToWrite) {
  // Above 500 jobs the second run begins while writes of the first wait. It is still as good as any
  // order, because the I/O lane has no gap except before the first write.
  std::mt19937 random(6);
  std::vector<JobCost> jobs = random_jobs(random, 1200, 100);
  for (JobCost& job : jobs) job.write_s += 20;
  const double best = makespan_s(jobs, order_jobs(jobs, OrderRule::johnson), 1);
  EXPECT_LE(makespan_s(jobs, order_jobs(jobs, OrderRule::insertion), 1), best * 1.001);
}

/// Jobs of one rank as in docs/decisions.md. Encode times are within a factor of 2, encoded sizes
/// lognormal, and all writes together take `balance` times as long as all encodes.
std::vector<JobCost> jobs_in_balance(std::mt19937& random, std::size_t n, double balance) {
  std::uniform_real_distribution<double> encode(0.5, 1);
  std::lognormal_distribution<double> bytes(0, 1);
  std::vector<JobCost> jobs;
  double encode_s = 0;
  double write_s = 0;
  for (std::size_t i = 0; i < n; ++i) {
    jobs.push_back({encode(random), bytes(random)});
    encode_s += jobs.back().encode_s;
    write_s += jobs.back().write_s;
  }
  for (JobCost& job : jobs) job.write_s *= balance * encode_s / write_s;
  return jobs;
}

/// Speedup of `rule` over the given order, as the mean of many steps. A step ends when the slowest
/// of `n_ranks` ends.
double mean_gain(OrderRule rule, std::size_t n_jobs, double balance, int n_ranks) {
  std::mt19937 random(7);
  constexpr int n_steps = 200;
  double sum = 0;
  for (int step = 0; step < n_steps; ++step) {
    double given_s = 0;
    double ordered_s = 0;
    for (int rank = 0; rank < n_ranks; ++rank) {
      const std::vector<JobCost> jobs = jobs_in_balance(random, n_jobs, balance);
      given_s = std::max(given_s, makespan_s(jobs, order_jobs(jobs, OrderRule::given), 1));
      ordered_s = std::max(ordered_s, makespan_s(jobs, order_jobs(jobs, rule), 1));
    }
    sum += given_s / ordered_s;
  }
  return sum / n_steps;
}

TEST(OrderGain, IsGreatestWhereEncodeAndWriteTakeEquallyLong) {
  for (const auto& [n_jobs, n_ranks] :
       std::vector<std::pair<std::size_t, int>>{{6, 1}, {9, 1}, {24, 1}, {96, 1}, {9, 64}}) {
    double balanced = 0;
    double greatest = 0;
    for (const double balance : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      const double optimum = mean_gain(OrderRule::johnson, n_jobs, balance, n_ranks);
      greatest = std::max(greatest, optimum);
      if (balance == 1) balanced = optimum;
      for (const OrderEntry& entry : order_registry()) {
        const double gain = mean_gain(entry.rule, n_jobs, balance, n_ranks);
        EXPECT_LE(gain, optimum * (1 + 1e-12));
        std::string cell(entry.name);
        std::ranges::replace(cell, '-', '_');
        cell += "_jobs" + std::to_string(n_jobs) + "_ranks" + std::to_string(n_ranks) + "_percent" +
                std::to_string(int(100 * balance));
        RecordProperty(cell, std::to_string(gain));
      }
    }
    EXPECT_EQ(balanced, greatest);
    EXPECT_GT(balanced, 1.05);
  }
}

}  // namespace
}  // namespace tailrace
