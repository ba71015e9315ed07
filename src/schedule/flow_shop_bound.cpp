// A bound from below: no schedule of the instance ends earlier.
//
// Each lane alone is relaxed to what its windows (the stretches between obstacles) can take at
// best. A window of length L takes k operations only if the k shortest of all fit into it; so let k
// be the most that do. Then it takes no more work than L, and no more than the k longest operations
// of all have together. Any set of windows with k_1, k_2, ... takes no more than the longest
// k_1 + k_2 + ... operations, and no more operations than that. The lane is done when all work and
// all operations have found room.
//
// The lanes are joined at both ends. Let jobs be numbered by the ends of their encodes. When the
// i-th encode ends, n - i + 1 writes have not begun (those of jobs i ... n): (a) all of them come
// behind the time at which the lane can have done i encodes, and (b) at most i - 1 writes may lie
// before it. In (a) the i encodes are at least all without the n - i longest, the writes left at
// least the n - i + 1 shortest; in (b) the i encodes are at least the i shortest, the writes done
// at most the i - 1 longest.
//
// Source: capacity of non-resumable windows after Lee 1996 (bounds for machines with availability
// constraints); counting by k shortest is ours.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "schedule/flow_shop.hpp"
#include "schedule/lane_fit.hpp"

namespace tailrace {
namespace {

/// Sums of the shortest and of the longest operations of a lane.
class LaneWork {
 public:
  explicit LaneWork(std::vector<double> lengths_s) : shortest_s_{0}, longest_s_{0} {
    std::sort(lengths_s.begin(), lengths_s.end());
    for (std::size_t i = 0; i < lengths_s.size(); ++i) {
      shortest_s_.push_back(shortest_s_.back() + lengths_s[i]);
      longest_s_.push_back(longest_s_.back() + lengths_s[lengths_s.size() - 1 - i]);
    }
  }

  std::size_t n() const { return shortest_s_.size() - 1; }
  double shortest_s(std::size_t k) const { return shortest_s_[k]; }
  double longest_s(std::size_t k) const { return longest_s_[std::min(k, n())]; }

  /// How many operations a window of this length may take.
  std::size_t most_in(double window_s) const {
    const auto above =
        std::upper_bound(shortest_s_.begin(), shortest_s_.end(), window_s + fit_slack_s);
    return static_cast<std::size_t>(above - shortest_s_.begin()) - 1;
  }

 private:
  std::vector<double> shortest_s_;
  std::vector<double> longest_s_;
};

/// No lane that is free from from_s on has done n operations of work_s together before this.
/// Cost: O(obstacles log jobs).
double filled_s(std::span<const Obstacle> obstacles, const LaneWork& work, double from_s,
                double work_s, std::size_t n) {
  double free_s = from_s;
  double taken_s = 0;
  std::size_t taken = 0;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.end_s <= free_s) continue;
    const double window_s = obstacle.start_s - free_s;
    const std::size_t most = window_s >= -fit_slack_s ? work.most_in(window_s) : 0;
    const double usable_s = std::min(window_s + fit_slack_s, work.longest_s(most));
    // What is left must fit both by its work and by its count; else the window is left behind.
    const double left_s = std::max(work_s - taken_s, 0.0);
    if (taken + most >= n && usable_s >= left_s) {
      return free_s + std::max(left_s, work.shortest_s(n > taken ? n - taken : 0));
    }
    taken += most;
    taken_s = std::min(taken_s + std::max(usable_s, 0.0), work.longest_s(taken));
    free_s = obstacle.end_s;
  }
  const std::size_t rest = n > taken ? n - taken : 0;
  return free_s + std::max(std::max(work_s - taken_s, 0.0), work.shortest_s(rest));
}

}  // namespace

double makespan_lower_bound_s(const FlowShop& shop) {
  const std::size_t n = shop.jobs.size();
  std::vector<double> encodes_s;
  std::vector<double> writes_s;
  for (const JobCost& job : shop.jobs) {
    encodes_s.push_back(job.encode_s);
    writes_s.push_back(job.write_s);
  }
  const LaneWork encodes(std::move(encodes_s));
  const LaneWork writes(std::move(writes_s));
  const double all_encodes_s = encodes.shortest_s(n);
  const double all_writes_s = writes.shortest_s(n);
  double bound_s = 0;
  // Only the ends matter: in the middle the i extreme operations of either lane are other jobs.
  constexpr std::size_t n_ends = 32;
  for (std::size_t i = 1; i <= n; ++i) {
    if (i > n_ends && i + n_ends <= n) continue;
    const double all_but_longest_s = all_encodes_s - encodes.longest_s(n - i);
    const double a_s = filled_s(shop.obstacles.main, encodes, 0, all_but_longest_s, i);
    const double shortest_writes_s = writes.shortest_s(n - i + 1);
    const double tail_s = filled_s(shop.obstacles.io, writes, a_s, shortest_writes_s, n - i + 1);
    const double b_s = filled_s(shop.obstacles.main, encodes, 0, encodes.shortest_s(i), i);
    const double left_s = all_writes_s - writes.longest_s(i - 1);
    const double head_s = filled_s(shop.obstacles.io, writes, b_s, left_s, n - i + 1);
    bound_s = std::max({bound_s, tail_s, head_s});
  }
  // What the sums above have lost or won by rounding, and what operations may reach into obstacles.
  return std::max(bound_s - fit_slack_s * static_cast<double>(n + shop.obstacles.main.size() +
                                                              shop.obstacles.io.size()),
                  0.0);
}

}  // namespace tailrace
