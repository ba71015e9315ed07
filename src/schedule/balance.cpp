// The two rules that balance the writing of a node's ranks. Pure: loads in, moves out.
//
// Both consider only the busiest rank and the least busy one. For `best` this is sufficient: a
// write of the busiest rank that does not help on the least busy one helps nowhere else. The most
// helpful write is the one closest to half the difference of the two loads.

#include "schedule/balance.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace tailrace {
namespace {

/// The paper's rule ends when the busiest rank has less than this multiple of the least busy one's
/// load.
constexpr double kPaperRatio = 2;
/// A move must shorten the longest rank by this share to justify a hand-over between two processes.
constexpr double least_gain = 0.005;

double time_or_0(double seconds) { return std::isfinite(seconds) && seconds > 0 ? seconds : 0; }

/// Ranks of a node by load, and the moves so far.
class Node {
 public:
  explicit Node(std::span<const std::vector<double>> write_s) : loads_s_(write_s.size(), 0) {
    for (std::size_t rank = 0; rank < write_s.size(); ++rank) {
      for (const double length_s : write_s[rank]) loads_s_[rank] += time_or_0(length_s);
      by_load_.insert({loads_s_[rank], rank});
    }
  }
  std::size_t busiest() const { return by_load_.rbegin()->second; }
  std::size_t least_busy() const { return by_load_.begin()->second; }
  double load_s(std::size_t rank) const { return loads_s_[rank]; }

  /// Move a write from the busiest to the least busy rank.
  void move(std::size_t position, double length_s) {
    const std::size_t from = busiest();
    const std::size_t to = least_busy();
    moves_.push_back({from, to, position});
    change(from, -length_s);
    change(to, length_s);
  }
  std::vector<MovedWrite> moves() && { return std::move(moves_); }

 private:
  void change(std::size_t rank, double by_s) {
    by_load_.erase({loads_s_[rank], rank});
    loads_s_[rank] = std::max(loads_s_[rank] + by_s, 0.0);
    by_load_.insert({loads_s_[rank], rank});
  }

  std::vector<double> loads_s_;
  std::set<std::pair<double, std::size_t>> by_load_;
  std::vector<MovedWrite> moves_;
};

std::vector<MovedWrite> balance_as_paper(std::span<const std::vector<double>> write_s) {
  Node node(write_s);
  std::vector<std::size_t> n_given(write_s.size(), 0);
  while (true) {
    const std::size_t from = node.busiest();
    const std::size_t to = node.least_busy();
    if (node.load_s(from) < kPaperRatio * node.load_s(to)) break;
    if (n_given[from] == write_s[from].size()) break;
    const double length_s = time_or_0(write_s[from][n_given[from]]);
    if (node.load_s(to) + length_s >= node.load_s(from)) break;
    node.move(n_given[from]++, length_s);
  }
  return std::move(node).moves();
}

std::vector<MovedWrite> balance_best(std::span<const std::vector<double>> write_s) {
  Node node(write_s);
  // Writes that each rank can still give away, by length. Of equal writes the first one goes first:
  // it is encoded first, and the receiver writes it last.
  std::vector<std::set<std::pair<double, std::size_t>>> own(write_s.size());
  for (std::size_t rank = 0; rank < write_s.size(); ++rank) {
    for (std::size_t i = 0; i < write_s[rank].size(); ++i) {
      own[rank].insert({time_or_0(write_s[rank][i]), i});
    }
  }
  while (true) {
    const std::size_t from = node.busiest();
    const double difference_s = node.load_s(from) - node.load_s(node.least_busy());
    const double half_s = difference_s / 2;
    auto& candidates = own[from];
    // Choose between the shortest write of at least half the difference and the longest below it.
    auto longer = candidates.lower_bound({half_s, 0});
    auto best = longer;
    if (longer != candidates.begin()) {
      const double below_s = std::prev(longer)->first;
      if (longer == candidates.end() || half_s - below_s < longer->first - half_s) {
        best = candidates.lower_bound({below_s, 0});
      }
    }
    if (best == candidates.end()) break;
    const double gain_s = std::min(best->first, difference_s - best->first);
    if (!(gain_s > 0) || gain_s < least_gain * node.load_s(from)) break;
    const auto [length_s, position] = *best;
    candidates.erase(best);
    node.move(position, length_s);
  }
  return std::move(node).moves();
}

}  // namespace

Result<BalanceRule> parse_balance_rule(std::string_view name) {
  if (name == "off") return BalanceRule::off;
  if (name == "paper") return BalanceRule::paper;
  if (name == "best") return BalanceRule::best;
  return Status(Code::invalid_argument, "balance rule \"" + std::string(name) +
                                            "\" is unknown; choose one of: off, paper, best");
}

std::vector<MovedWrite> balance_writes(std::span<const std::vector<double>> write_s,
                                       BalanceRule rule) {
  if (rule == BalanceRule::off || write_s.size() < 2) return {};
  return rule == BalanceRule::paper ? balance_as_paper(write_s) : balance_best(write_s);
}

}  // namespace tailrace
