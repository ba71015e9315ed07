// List scheduling, backfilling and greedy insertion around obstacles.
//
// The greedy schedulers evaluate an attempt only from the position of insertion, since everything
// before it is unchanged. They abort an attempt when the remaining work cannot end before the best
// result. An attempt must be shorter to replace the best, so aborting loses nothing.

#include "schedule/flow_shop_schedulers.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedule/lane_rule.hpp"
#include "schedule/order.hpp"

namespace tailrace {
namespace {

constexpr double kNeverS = std::numeric_limits<double>::infinity();

/// Sort jobs by their starts on a lane. Of two equal starts one job has length 0 and comes first.
std::vector<std::size_t> order_of_starts(std::span<const double> start_s,
                                         std::span<const double> length_s) {
  std::vector<std::size_t> order(start_s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (start_s[a] != start_s[b]) return start_s[a] < start_s[b];
    return length_s[a] != length_s[b] ? length_s[a] < length_s[b] : a < b;
  });
  return order;
}

/// Partial list of one lane, with the cursor before each of its positions.
struct PartialList {
  std::vector<std::size_t> jobs;
  std::vector<LaneCursor> before;  ///< before[p]: after placing jobs[0...p-1]; one more than jobs.

  explicit PartialList(std::size_t n_jobs) {
    jobs.reserve(n_jobs);
    before.reserve(n_jobs + 1);
    before.emplace_back();
  }

  /// Return the job at `position` of the list after inserting `job` at `place`.
  std::size_t with(std::size_t job, std::size_t place, std::size_t position) const {
    if (position == place) return job;
    return jobs[position < place ? position : position - 1];
  }

  void insert(std::size_t job, std::size_t place) {
    jobs.insert(jobs.begin() + static_cast<std::ptrdiff_t>(place), job);
    before.resize(jobs.size() + 1);
  }
};

/// State and insertion steps of both greedy schedulers.
class GreedyLists {
 public:
  explicit GreedyLists(const FlowShop& shop)
      : shop_(shop),
        encodes_(shop.jobs.size()),
        writes_(shop.jobs.size()),
        ready_s_(shop.jobs.size()),
        kept_ready_s_(shop.jobs.size()) {}

  /// Insert `job` into both lists at the same position.
  void insert_at_one_place(std::size_t job) {
    double best_s = kNeverS;
    std::size_t best = 0;
    kept_ready_s_ = ready_s_;
    for (std::size_t place = 0; place <= encodes_.jobs.size(); ++place) {
      encode_from(job, place);
      const double end_s = write_from(job, place, best_s);
      if (end_s < best_s) {
        best_s = end_s;
        best = place;
      }
      ready_s_ = kept_ready_s_;
    }
    keep(job, best, best);
  }

  /// Insert `job` into each list at a separate position.
  void insert_at_two_places(std::size_t job) {
    double best_s = kNeverS;
    std::size_t best_encode = 0;
    std::size_t best_write = 0;
    kept_ready_s_ = ready_s_;
    for (std::size_t encode = 0; encode <= encodes_.jobs.size(); ++encode) {
      encode_from(job, encode);
      replay_writes();
      for (std::size_t write = 0; write <= writes_.jobs.size(); ++write) {
        const double end_s = write_from(job, write, best_s);
        if (end_s < best_s) {
          best_s = end_s;
          best_encode = encode;
          best_write = write;
        }
      }
      ready_s_ = kept_ready_s_;
    }
    keep(job, best_encode, best_write);
  }

  FlowShopPlan plan() const { return schedule_in_order(shop_, encodes_.jobs, writes_.jobs); }

 private:
  /// Compute the end of each job's encode if `job` is inserted at `place`.
  void encode_from(std::size_t job, std::size_t place) {
    LaneCursor main = encodes_.before[place];
    for (std::size_t p = place; p <= encodes_.jobs.size(); ++p) {
      const std::size_t next = encodes_.with(job, place, p);
      main.place(shop_.obstacles.main, 0, shop_.jobs[next].encode_s);
      ready_s_[next] = main.free_s;
    }
  }

  /// Recompute the cursors of the existing writes for the current encodes.
  void replay_writes() {
    LaneCursor io;
    for (std::size_t p = 0; p < writes_.jobs.size(); ++p) {
      writes_.before[p] = io;
      const std::size_t next = writes_.jobs[p];
      io.place(shop_.obstacles.io, ready_s_[next], shop_.jobs[next].write_s);
    }
    writes_.before[writes_.jobs.size()] = io;
  }

  /// Return the end of the writes if `job` is inserted at `place`, or kNeverS if that is not before
  /// best_s. The cursors before `place` must be valid. With one list they are, since the encodes
  /// before it have not moved either.
  double write_from(std::size_t job, std::size_t place, double best_s) const {
    LaneCursor io = writes_.before[place];
    for (std::size_t p = place; p <= writes_.jobs.size(); ++p) {
      const std::size_t next = writes_.with(job, place, p);
      io.place(shop_.obstacles.io, ready_s_[next], shop_.jobs[next].write_s);
      if (io.free_s >= best_s) return kNeverS;
    }
    return io.free_s;
  }

  void keep(std::size_t job, std::size_t encode, std::size_t write) {
    encodes_.insert(job, encode);
    writes_.insert(job, write);
    LaneCursor main;
    for (std::size_t p = 0; p < encodes_.jobs.size(); ++p) {
      encodes_.before[p] = main;
      main.place(shop_.obstacles.main, 0, shop_.jobs[encodes_.jobs[p]].encode_s);
      ready_s_[encodes_.jobs[p]] = main.free_s;
    }
    encodes_.before[encodes_.jobs.size()] = main;
    replay_writes();
  }

  const FlowShop& shop_;
  PartialList encodes_;
  PartialList writes_;
  std::vector<double> ready_s_;  ///< Indexed by job: end of its encode, in the current attempt.
  std::vector<double> kept_ready_s_;
};

}  // namespace

std::vector<std::size_t> johnson_order(const FlowShop& shop) {
  return order_jobs(shop.jobs, OrderRule::johnson);
}

std::vector<std::size_t> generation_order(const FlowShop& shop) {
  std::vector<std::size_t> order(shop.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

FlowShopPlan schedule_list(const FlowShop& shop, std::span<const std::size_t> order) {
  return schedule_in_order(shop, order, order);
}

FlowShopPlan schedule_list_backfilled(const FlowShop& shop, std::span<const std::size_t> order) {
  FlowShopPlan plan;
  plan.encode_start_s.resize(shop.jobs.size());
  plan.write_start_s.resize(shop.jobs.size());
  LaneGaps main(shop.obstacles.main);
  LaneGaps io(shop.obstacles.io);
  for (const std::size_t job : order) {
    const JobCost& cost = shop.jobs[job];
    plan.encode_start_s[job] = main.place(0, cost.encode_s);
    plan.write_start_s[job] = io.place(plan.encode_start_s[job] + cost.encode_s, cost.write_s);
    plan.makespan_s = std::max(plan.makespan_s, plan.write_start_s[job] + cost.write_s);
  }
  std::vector<double> encodes_s;
  std::vector<double> writes_s;
  for (const JobCost& cost : shop.jobs) {
    encodes_s.push_back(cost.encode_s);
    writes_s.push_back(cost.write_s);
  }
  plan.encode_order = order_of_starts(plan.encode_start_s, encodes_s);
  plan.write_order = order_of_starts(plan.write_start_s, writes_s);
  return plan;
}

FlowShopPlan schedule_one_list_greedy(const FlowShop& shop) {
  GreedyLists lists(shop);
  for (std::size_t job = 0; job < shop.jobs.size(); ++job) lists.insert_at_one_place(job);
  return lists.plan();
}

FlowShopPlan schedule_two_lists_greedy(const FlowShop& shop) {
  GreedyLists lists(shop);
  for (std::size_t job = 0; job < shop.jobs.size(); ++job) lists.insert_at_two_places(job);
  return lists.plan();
}

}  // namespace tailrace
