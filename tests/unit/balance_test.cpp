// Balancing the writes of a node: the paper's ratio, forbidden moves of both rules, and their gain.

#include "schedule/balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tailrace {
namespace {

using Loads = std::vector<std::vector<double>>;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Each rank's writing time after the moves. Fails if a write moves twice, from a rank that does
/// not have it, or to the rank that has it.
std::vector<double> loads_after(const Loads& write_s, const std::vector<MovedWrite>& moves) {
  std::vector<double> loads;
  for (const std::vector<double>& rank : write_s) loads.push_back(sum(rank));
  std::set<std::pair<std::size_t, std::size_t>> moved;
  for (const MovedWrite& move : moves) {
    EXPECT_LT(move.to_rank, write_s.size());
    EXPECT_NE(move.from_rank, move.to_rank);
    EXPECT_LT(move.position, write_s.at(move.from_rank).size());
    EXPECT_TRUE(moved.insert({move.from_rank, move.position}).second);
    loads[move.from_rank] -= write_s[move.from_rank][move.position];
    loads[move.to_rank] += write_s[move.from_rank][move.position];
  }
  return loads;
}

double greatest(const std::vector<double>& loads) {
  return *std::max_element(loads.begin(), loads.end());
}
double least(const std::vector<double>& loads) {
  return *std::min_element(loads.begin(), loads.end());
}

bool same(const std::vector<MovedWrite>& a, const std::vector<MovedWrite>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
    return x.from_rank == y.from_rank && x.to_rank == y.to_rank && x.position == y.position;
  });
}

/// A realistic node: all ranks have equally many values. A rank's ratio is lognormal with
/// `rank_sigma`, and its chunks vary around it with sigma 0.3. The mean length is 1.
Loads random_node(std::mt19937& random, std::size_t n_ranks, std::size_t n_writes,
                  double rank_sigma) {
  std::normal_distribution<double> normal;
  Loads node(n_ranks);
  for (std::vector<double>& rank : node) {
    const double rank_length = std::exp(rank_sigma * normal(random));
    for (std::size_t i = 0; i < n_writes; ++i) {
      rank.push_back(rank_length * std::exp(0.3 * normal(random)));
    }
  }
  return node;
}

class BothRules : public ::testing::TestWithParam<BalanceRule> {};

TEST_P(BothRules, LoseNothingAndNeverLengthenTheLongest) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    Loads node = random_node(random, 1 + random() % 9, random() % 20, 1.0);
    // Some ranks have no writes, and some writes take no time.
    for (std::vector<double>& rank : node) {
      if (random() % 5 == 0) rank.clear();
      for (double& length : rank) length = random() % 10 == 0 ? 0 : length;
    }
    const std::vector<MovedWrite> moves = balance_writes(node, GetParam());
    const std::vector<double> after = loads_after(node, moves);
    const std::vector<double> before = loads_after(node, {});
    EXPECT_NEAR(sum(after), sum(before), 1e-9);
    EXPECT_LE(greatest(after), greatest(before) + 1e-9);
    EXPECT_TRUE(same(moves, balance_writes(node, GetParam())));
  }
}

TEST_P(BothRules, LeaveAloneWhatCannotBeMended) {
  EXPECT_TRUE(balance_writes({}, GetParam()).empty());
  EXPECT_TRUE(balance_writes(Loads{{1, 2, 3}}, GetParam()).empty());
  EXPECT_TRUE(balance_writes(Loads{{1, 2}, {2, 1}, {3}}, GetParam()).empty());
  EXPECT_TRUE(balance_writes(Loads{{}, {}, {}}, GetParam()).empty());
  EXPECT_TRUE(balance_writes(Loads{{0, 0}, {0}}, GetParam()).empty());
  // A write longer than all others together would only change its owner.
  EXPECT_TRUE(balance_writes(Loads{{100}, {1, 1}, {2}}, GetParam()).empty());
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(balance_writes(Loads{{NAN, infinity, -5}, {-1}}, GetParam()).empty());
}

TEST_P(BothRules, GiveARankWithoutWritesItsShare) {
  const std::vector<double> after =
      loads_after({{1, 1, 1, 1}, {}}, balance_writes(Loads{{1, 1, 1, 1}, {}}, GetParam()));
  EXPECT_EQ(after, (std::vector<double>{2, 2}));
}

TEST_P(BothRules, TakeANodeOfManyRanks) {
  std::mt19937 random(2);
  const Loads node = random_node(random, 64, 100, 1.0);
  const std::vector<MovedWrite> moves = balance_writes(node, GetParam());
  const std::vector<double> after = loads_after(node, moves);
  EXPECT_LT(greatest(after), 2 * least(after));
  EXPECT_FALSE(moves.empty());
}

std::string rule_name(const ::testing::TestParamInfo<BalanceRule>& info) {
  return info.param == BalanceRule::paper ? "paper" : "best";
}
INSTANTIATE_TEST_SUITE_P(Balance, BothRules,
                         ::testing::Values(BalanceRule::paper, BalanceRule::best), rule_name);

/// The rule exactly as printed in section 3.4: loads are summed again for each move.
std::vector<MovedWrite> printed_rule(const Loads& write_s) {
  std::vector<MovedWrite> moves;
  std::vector<std::size_t> n_given(write_s.size(), 0);
  while (true) {
    const std::vector<double> loads = loads_after(write_s, moves);
    // Ties: the highest rank gives and the lowest receives.
    const auto from =
        static_cast<std::size_t>(loads.rend() - std::max_element(loads.rbegin(), loads.rend()) - 1);
    const auto to =
        static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    if (loads[from] < 2 * loads[to] || n_given[from] == write_s[from].size()) break;
    if (loads[to] + write_s[from][n_given[from]] >= loads[from]) break;
    moves.push_back({from, to, n_given[from]++});
  }
  return moves;
}

TEST(BalancePaper, MovesAsThePaperSays) {
  const Loads node = {{1, 2, 3, 4}, {0.5}, {1, 1}};
  // 10, 0.5, 2 -> first writes of rank 0: 1 to rank 1, 2 to rank 1 (1.5 < 2), then 7 >= 2 * 2.
  const std::vector<MovedWrite> moves = balance_writes(node, BalanceRule::paper);
  EXPECT_TRUE(same(moves, {{0, 1, 0}, {0, 1, 1}, {0, 2, 2}}));
  EXPECT_EQ(loads_after(node, moves), (std::vector<double>{4, 3.5, 5}));
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    // Integers, so that sums are exact and ties are real.
    Loads whole(2 + random() % 8);
    for (std::vector<double>& rank : whole) {
      const std::size_t longest = 1 + random() % 30;
      for (std::size_t i = random() % 12; i > 0; --i) rank.push_back(double(random() % longest));
    }
    EXPECT_TRUE(same(balance_writes(whole, BalanceRule::paper), printed_rule(whole)));
  }
}

TEST(BalancePaper, EndsBelowItsRatioWhereWritesAreShort) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 50; ++trial) {
    const Loads node = random_node(random, 8, 100, 1.5);
    const std::vector<double> after = loads_after(node, balance_writes(node, BalanceRule::paper));
    EXPECT_LT(greatest(after), 2 * least(after));
  }
}

TEST(BalanceBest, EndsOnlyWhereNoMoveHelps) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 100; ++trial) {
    const Loads node = random_node(random, 2 + random() % 7, 1 + random() % 15, 1.0);
    const std::vector<MovedWrite> moves = balance_writes(node, BalanceRule::best);
    const std::vector<double> after = loads_after(node, moves);
    const double longest = greatest(after);
    std::set<std::pair<std::size_t, std::size_t>> moved;
    for (const MovedWrite& it : moves) moved.insert({it.from_rank, it.position});
    for (std::size_t from = 0; from < node.size(); ++from) {
      if (after[from] < longest) continue;
      for (std::size_t i = 0; i < node[from].size(); ++i) {
        if (moved.contains({from, i})) continue;
        for (std::size_t to = 0; to < node.size(); ++to) {
          if (to == from) continue;
          const double then = std::max(longest - node[from][i], after[to] + node[from][i]);
          EXPECT_GT(then, longest * 0.995 - 1e-9);
        }
      }
    }
  }
}

TEST(BalanceBest, SplitsAHugeWriteFromItsNeighbours) {
  const Loads node = {{1, 50, 1, 1}, {2}, {3}};
  const std::vector<double> after = loads_after(node, balance_writes(node, BalanceRule::best));
  EXPECT_EQ(greatest(after), 50);
}

TEST(BalanceRules, AreFoundByName) {
  EXPECT_EQ(*parse_balance_rule("off"), BalanceRule::off);
  EXPECT_EQ(*parse_balance_rule("paper"), BalanceRule::paper);
  EXPECT_EQ(*parse_balance_rule("best"), BalanceRule::best);
  const Result<BalanceRule> unknown = parse_balance_rule("better");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().message(),
            "balance rule \"better\" is unknown; choose one of: off, paper, best");
  EXPECT_TRUE(balance_writes(Loads{{9, 9}, {}}, BalanceRule::off).empty());
}

/// Means over 50 nodes, with lengths relative to the lower bound. The lower bound is the mean load
/// or the longest write.
struct Gain {
  double before = 0;
  double after = 0;
  double moved_share = 0;  ///< Share of all writes.
};

Gain mean_gain(BalanceRule rule, std::size_t n_ranks, std::size_t n_writes, double rank_sigma) {
  constexpr int n_nodes = 50;
  std::mt19937 random(7);
  Gain gain;
  for (int i = 0; i < n_nodes; ++i) {
    const Loads node = random_node(random, n_ranks, n_writes, rank_sigma);
    const std::vector<MovedWrite> moves = balance_writes(node, rule);
    const std::vector<double> before = loads_after(node, {});
    double bound = sum(before) / double(n_ranks);
    for (const std::vector<double>& rank : node) bound = std::max(bound, greatest(rank));
    gain.before += greatest(before) / bound / n_nodes;
    gain.after += greatest(loads_after(node, moves)) / bound / n_nodes;
    gain.moved_share += double(moves.size()) / double(n_ranks * n_writes) / n_nodes;
  }
  return gain;
}

TEST(BalanceGain, IsGreaterByOurRuleWhereverRanksDiffer) {
  for (const auto& [n_ranks, n_writes] :
       std::vector<std::pair<std::size_t, std::size_t>>{{4, 8}, {4, 32}, {16, 32}, {64, 100}}) {
    for (const double sigma : {0.25, 0.5, 1.0}) {
      const Gain paper = mean_gain(BalanceRule::paper, n_ranks, n_writes, sigma);
      const Gain best = mean_gain(BalanceRule::best, n_ranks, n_writes, sigma);
      EXPECT_LE(best.after, paper.after);
      EXPECT_LE(paper.after, paper.before);
      const std::string cell = "ranks" + std::to_string(n_ranks) + "_writes" +
                               std::to_string(n_writes) + "_sigma" +
                               std::to_string(int(100 * sigma)) + "percent";
      for (const auto& [name, value] :
           std::vector<std::pair<std::string, double>>{{"off", paper.before},
                                                       {"paper", paper.after},
                                                       {"best", best.after},
                                                       {"paper_moved", paper.moved_share},
                                                       {"best_moved", best.moved_share}}) {
        RecordProperty(cell + "_" + name, std::to_string(value));
      }
    }
  }
}

}  // namespace
}  // namespace tailrace
