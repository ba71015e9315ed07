// Rules for the order of work, and the timeline of an order.
//
// With one encode thread and one I/O lane a rank is a flow shop of two machines. Its makespan is
// the longest of the paths "encode jobs 0...i, then write jobs i...n-1". Inserting a job at p
// lengthens paths that turn before p by its write time, and paths that turn after p by its encode
// time. So the evaluation of one insertion is O(1) (Taillard 1990 does this for more machines).

#include "schedule/order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "core/utf8.hpp"

namespace tailrace {
namespace {

constexpr std::array<OrderEntry, 5> orders = {{
    {OrderRule::given, "given", "by field, then by chunk index"},
    {OrderRule::largest_first, "largest-first", "the longest write first"},
    {OrderRule::smallest_first, "smallest-first", "the shortest encode first"},
    {OrderRule::insertion, "insertion", "each job where it costs least (Jin et al. 2022)"},
    {OrderRule::johnson, "johnson", "Johnson's rule, the optimum for one thread and one I/O lane"},
}};

/// Number of jobs in one run of insertion: 500^2 steps take about a millisecond.
constexpr std::size_t kInsertionRun = 500;

double job_time_or_0(double seconds) { return std::isfinite(seconds) && seconds > 0 ? seconds : 0; }

/// Costs of the jobs on one thread that is n_threads times as fast.
std::vector<JobCost> costs_of_one_thread(std::span<const JobCost> jobs, std::size_t n_threads) {
  const auto speed = static_cast<double>(std::max<std::size_t>(n_threads, 1));
  std::vector<JobCost> costs;
  costs.reserve(jobs.size());
  for (const JobCost& job : jobs) {
    costs.push_back({job_time_or_0(job.encode_s) / speed, job_time_or_0(job.write_s)});
  }
  return costs;
}

/// Run algorithm 1 over jobs [first, last) and append them to `order`. `lag_s` is how long the I/O
/// lane is still busy when the first of them starts to encode. Returns the lag after the last of
/// them.
///
/// The paper's TIME, for each job in turn: line 4, t_c += P_c; line 5, t_w = P_w + max(t_c, t_w).
/// The write starts when its job is encoded and the previous write is done; so its time is added to
/// the maximum of both lanes.
double insert_run(std::span<const JobCost> jobs, std::size_t first, std::size_t last, double lag_s,
                  std::vector<std::size_t>& order) {
  std::vector<std::size_t> queue;
  std::vector<double> behind;  // behind[p]: the longest path that turns at p or later.
  std::vector<double> writes;  // writes[p]: total write time from p on.
  double all_encode_s = 0;
  double best_s = lag_s;
  for (std::size_t job = first; job < last; ++job) {
    const double encode_s = jobs[job].encode_s;
    const double write_s = jobs[job].write_s;
    const std::size_t n = queue.size();
    writes.assign(n + 1, 0);
    behind.assign(n + 1, 0);
    double encoded_s = all_encode_s;
    for (std::size_t p = n; p-- > 0;) {
      writes[p] = writes[p + 1] + jobs[queue[p]].write_s;
      behind[p] = std::max(behind[p + 1], encoded_s + writes[p]);
      encoded_s -= jobs[queue[p]].encode_s;
    }
    double before = lag_s + writes[0];  // The longest path that turns before p.
    encoded_s = 0;
    std::size_t best = 0;
    for (std::size_t p = 0; p <= n; ++p) {
      const double here = encoded_s + encode_s + write_s + writes[p];
      const double time_s = std::max({before + write_s, here, p < n ? behind[p] + encode_s : 0});
      if (p == 0 || time_s < best_s) {
        best_s = time_s;
        best = p;
      }
      if (p < n) {
        encoded_s += jobs[queue[p]].encode_s;
        before = std::max(before, encoded_s + writes[p]);
      }
    }
    queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(best), job);
    all_encode_s += encode_s;
  }
  order.insert(order.end(), queue.begin(), queue.end());
  return std::max(0.0, best_s - all_encode_s);
}

std::vector<std::size_t> insertion_order(std::span<const JobCost> jobs) {
  std::vector<std::size_t> order;
  order.reserve(jobs.size());
  double lag_s = 0;
  for (std::size_t first = 0; first < jobs.size(); first += kInsertionRun) {
    lag_s = insert_run(jobs, first, std::min(first + kInsertionRun, jobs.size()), lag_s, order);
  }
  return order;
}

/// Johnson 1954: jobs that encode faster than they write come first, by ascending encode time, so
/// that the I/O lane starts early. The rest follow by descending write time, so that little remains
/// at the end.
bool johnson_before(const JobCost& a, const JobCost& b) {
  const bool a_early = a.encode_s < a.write_s;
  const bool b_early = b.encode_s < b.write_s;
  if (a_early != b_early) return a_early;
  return a_early ? a.encode_s < b.encode_s : a.write_s > b.write_s;
}

}  // namespace

std::span<const OrderEntry> order_registry() { return orders; }

Result<OrderRule> parse_order(std::string_view name) {
  for (const OrderEntry& entry : orders) {
    if (entry.name == name) return entry.rule;
  }
  return unknown_name("order", name, orders);
}

std::vector<std::size_t> order_jobs(std::span<const JobCost> jobs, OrderRule rule,
                                    std::size_t n_threads) {
  const std::vector<JobCost> costs = costs_of_one_thread(jobs, n_threads);
  if (rule == OrderRule::insertion) return insertion_order(costs);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_by = [&](auto before) {
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return before(costs[a], costs[b]); });
  };
  switch (rule) {
    case OrderRule::given:
    case OrderRule::insertion: break;
    case OrderRule::largest_first:
      sort_by([](const JobCost& a, const JobCost& b) { return a.write_s > b.write_s; });
      break;
    case OrderRule::smallest_first:
      sort_by([](const JobCost& a, const JobCost& b) { return a.encode_s < b.encode_s; });
      break;
    case OrderRule::johnson: sort_by(johnson_before); break;
  }
  return order;
}

std::vector<PlannedJob> plan_timeline(std::span<const JobCost> jobs,
                                      std::span<const std::size_t> order, std::size_t n_threads) {
  // Time at which each thread becomes free; ties go to the lowest number.
  using Free = std::pair<double, std::size_t>;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> threads;
  for (std::size_t thread = 0; thread < std::max<std::size_t>(n_threads, 1); ++thread) {
    threads.emplace(0, thread);
  }
  std::vector<PlannedJob> plan;
  plan.reserve(order.size());
  for (const std::size_t job : order) {
    const auto [start_s, thread] = threads.top();
    threads.pop();
    const double end_s = start_s + job_time_or_0(jobs[job].encode_s);
    plan.push_back({job, thread, start_s, end_s, 0, 0});
    threads.emplace(end_s, thread);
  }
  std::vector<std::size_t> ready(plan.size());
  std::iota(ready.begin(), ready.end(), std::size_t{0});
  std::ranges::stable_sort(ready, {}, [&](std::size_t i) { return plan[i].encode_end_s; });
  double free_s = 0;
  for (const std::size_t i : ready) {
    plan[i].write_start_s = std::max(free_s, plan[i].encode_end_s);
    plan[i].write_end_s = plan[i].write_start_s + job_time_or_0(jobs[plan[i].job].write_s);
    free_s = plan[i].write_end_s;
  }
  return plan;
}

double makespan_s(std::span<const JobCost> jobs, std::span<const std::size_t> order,
                  std::size_t n_threads) {
  double end_s = 0;
  for (const PlannedJob& planned : plan_timeline(jobs, order, n_threads)) {
    end_s = std::max(end_s, planned.write_end_s);
  }
  return end_s;
}

}  // namespace tailrace
