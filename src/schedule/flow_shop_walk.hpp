// TwoListWalk: local search over the order of encodes and the order of writes. Each pair of orders
// is scheduled as early as possible (schedule_in_order()); every optimum has this form.
//
// A step moves one job to another position, or exchanges two jobs, in both lists or only in the
// encodes'. Simulated annealing (Kirkpatrick et al. 1983) accepts or rejects the step by a
// threshold drawn before the evaluation. So the evaluation of most steps ends after a few
// operations, when the remaining work does not fit into the free time before the threshold.
// Operations before the first changed position are not evaluated.
//
// Invariants: (1) between steps main_, io_, ready_s_ and written_s_ belong to the current
// orders; (2) tried_* equal them, or are not read; (3) a step allocates nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/flow_shop.hpp"
#include "schedule/lane_rule.hpp"

namespace tailrace {

/// Random numbers of a search: splitmix64 (Steele et al. 2014), the same on every machine. Not
/// thread-safe.
class SearchDraws {
 public:
  explicit SearchDraws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// Number in 0 ... n-1 from 32 random bits (the bias is n/2^32).
  static std::uint32_t below(std::uint32_t n, std::uint32_t bits) {
    return static_cast<std::uint32_t>((std::uint64_t{bits} * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

/// One lane of a walk: its operations in order, and the free time of the lane.
struct WalkLane {
  using Index = std::uint32_t;
  std::span<const Obstacle> obstacles;
  std::vector<double> length_s;  ///< Indexed by job.
  std::vector<Index> order;
  std::vector<Index> place_of;     ///< Indexed by job: its position in `order`.
  std::vector<LaneCursor> before;  ///< before[p]: state after placing p operations; n + 1 entries.
  std::vector<LaneCursor> tried;   ///< Like `before`, for the step being evaluated, from its first
                                   ///< change on.
  std::vector<double> blocked_s;   ///< [i]: total length of obstacles 0 ... i-1.
  double all_s = 0;                ///< Total length of all operations.

  WalkLane(std::span<const Obstacle> lane_obstacles, std::vector<double> lengths_s);
  void set_order(std::span<const std::size_t> jobs);
  void move(std::size_t from, std::size_t to);
  void exchange(std::size_t a, std::size_t b);
  /// Free time of the lane until `time_s`; infinity for infinity.
  double free_until_s(double time_s) const;
  /// Free time that has passed at the end of the operation placed at `cursor`.
  double gone_s(const LaneCursor& cursor) const {
    return cursor.free_s - blocked_s[cursor.obstacle];
  }
};

/// Simulated annealing over both orders. Not thread-safe.
class TwoListWalk {
 public:
  explicit TwoListWalk(const FlowShop& shop);

  /// Start at these orders. Cost: O(n + obstacles).
  void set_orders(std::span<const std::size_t> encode_order,
                  std::span<const std::size_t> write_order);

  /// Step until the total of placed operations reaches `n_operations`, or a plan ends by enough_s.
  /// Steps may lengthen the plan by about `heat_s` at first and by nothing at the end.
  void anneal(double heat_s, std::uint64_t n_operations, double enough_s, SearchDraws& draws);

  double makespan_s() const { return makespan_s_; }
  double best_s() const { return best_s_; }
  std::vector<std::size_t> best_encode_order() const;
  std::vector<std::size_t> best_write_order() const;
  std::uint64_t n_operations() const { return n_operations_; }

 private:
  struct Step;
  Step draw_step(SearchDraws& draws) const;
  void apply(const Step& step, bool back);
  /// Makespan after a step, or infinity if it exceeds limit_s.
  double evaluate(const Step& step, double limit_s);
  bool place_encodes(std::size_t first, std::size_t last, double limit_s);
  double place_writes(std::size_t last, double limit_s);
  void accept(double makespan_s);
  void reject();
  void note_best();

  WalkLane main_;
  WalkLane io_;
  std::vector<double> ready_s_;        ///< Indexed by job: end of its encode.
  std::vector<double> tried_ready_s_;  ///< Like ready_s_, for the step being evaluated.
  std::vector<double> written_s_;      ///< written_s_[p]: total length of writes 0 ... p-1 of the
                                       ///< order.
  std::vector<double> tried_written_s_;
  double shortest_write_s_ = 0;
  double makespan_s_ = 0;
  double best_s_ = 0;
  std::vector<WalkLane::Index> best_encodes_;
  std::vector<WalkLane::Index> best_writes_;
  std::uint64_t n_operations_ = 0;
  // Changes of the step being evaluated: encodes [first, end), writes [first, end).
  std::size_t encodes_first_ = 0;
  std::size_t encodes_end_ = 0;
  std::size_t writes_first_ = 0;
  std::size_t writes_end_ = 0;
  std::size_t writes_touched_ = 0;  ///< The last write whose ready time or position has changed.
};

}  // namespace tailrace
