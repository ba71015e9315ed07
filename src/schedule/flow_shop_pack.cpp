// Packing windows. A window is packed twice: from below (what fits, then exchanged for longer
// operations) and from above (one operation too many, then exchanged for shorter ones); where all
// operations are nearly as long, only one of the two comes near the window's end.

#include "schedule/flow_shop_pack.hpp"

#include <algorithm>
#include <limits>

#include "schedule/lane_fit.hpp"

namespace tailrace {
namespace {

constexpr double unplaced_s = std::numeric_limits<double>::infinity();

/// A window of which less than this share is left counts as full.
constexpr double full_share = 1e-4;

/// Exchanges per window at most: each brings a window nearer to full, but one can go on for long
/// where operations differ by rounding only.
constexpr int n_exchanges_max = 30;

constexpr std::size_t n_last_kept = 2;
constexpr std::size_t write_reach = 40;

}  // namespace

WindowPacker::WindowPacker(const FlowShop& shop)
    : shop_(shop), ready_s_(shop.jobs.size()), rank_(shop.jobs.size()) {
  for (const JobCost& job : shop.jobs) {
    encode_s_.push_back(job.encode_s);
    write_s_.push_back(job.write_s);
  }
  for (std::vector<Index>* list : {&encode_order_, &write_order_, &waiting_, &longer_}) {
    list->reserve(shop.jobs.size());
  }
}

double WindowPacker::fill_up(std::span<Index> list, std::size_t& taken,
                             const std::vector<double>& lengths_s, double left_s, double enough_s) {
  for (int exchange = 0; exchange < n_exchanges_max && left_s > enough_s; ++exchange) {
    double best_s = 0;
    std::size_t out = taken;
    std::size_t in = taken;
    for (std::size_t i = taken; i < list.size(); ++i) {
      const double length_s = lengths_s[list[i]];
      if (length_s > best_s && length_s <= left_s + fit_slack_s) {
        best_s = length_s;
        in = i;
      }
    }
    if (best_s > 0) {  // One more fits: the longest that does.
      std::swap(list[taken], list[in]);
      ++taken;
      left_s -= best_s;
      continue;
    }
    for (std::size_t o = 0; o < taken; ++o) {
      const double out_s = lengths_s[list[o]];
      for (std::size_t i = taken; i < list.size(); ++i) {
        const double gain_s = lengths_s[list[i]] - out_s;
        if (gain_s > best_s && gain_s <= left_s + fit_slack_s) {
          best_s = gain_s;
          out = o;
          in = i;
        }
      }
    }
    n_inspected_ += (taken + 1) * (list.size() - taken);
    if (best_s <= fit_slack_s) break;
    std::swap(list[out], list[in]);
    left_s -= best_s;
  }
  return left_s;
}

double WindowPacker::thin_out(std::span<Index> list, std::size_t taken,
                              const std::vector<double>& lengths_s, double excess_s) {
  for (int exchange = 0; exchange < n_exchanges_max && excess_s > 0; ++exchange) {
    // The exchange that just suffices; if none does, the one that helps most.
    double enough_s = unplaced_s;
    double most_s = 0;
    std::size_t enough_out = 0;
    std::size_t enough_in = 0;
    std::size_t most_out = 0;
    std::size_t most_in = 0;
    for (std::size_t o = 0; o < taken; ++o) {
      for (std::size_t i = taken; i < list.size(); ++i) {
        const double gain_s = lengths_s[list[o]] - lengths_s[list[i]];
        if (gain_s >= excess_s && gain_s < enough_s) {
          enough_s = gain_s;
          enough_out = o;
          enough_in = i;
        } else if (gain_s > most_s) {
          most_s = gain_s;
          most_out = o;
          most_in = i;
        }
      }
    }
    n_inspected_ += taken * (list.size() - taken);
    if (enough_s < unplaced_s) {
      std::swap(list[enough_out], list[enough_in]);
      return enough_s - excess_s;
    }
    if (most_s <= 0) break;
    std::swap(list[most_out], list[most_in]);
    excess_s -= most_s;
  }
  return -excess_s;
}

std::size_t WindowPacker::pack_window(std::span<Index> list, std::size_t reach,
                                      const std::vector<double>& lengths_s, double window_s) {
  std::size_t taken = 0;
  double left_s = window_s;
  while (taken < list.size() && lengths_s[list[taken]] <= left_s + fit_slack_s) {
    left_s -= lengths_s[list[taken++]];
  }
  n_inspected_ += n_inspected_per_operation * (taken + 1);
  const std::span<Index> near = list.first(std::min(list.size(), taken + reach));
  if (near.size() <= taken) return taken;
  longer_.assign(near.begin(), near.end());
  const std::size_t taken_above = taken + 1;
  const double excess_s = lengths_s[longer_[taken]] - left_s;
  const double enough_s = full_share * window_s;
  left_s = fill_up(near, taken, lengths_s, left_s, enough_s);
  if (left_s <= enough_s) return taken;
  double above_s = thin_out(longer_, taken_above, lengths_s, excess_s);
  if (above_s < 0) return taken;
  std::size_t also_taken = taken_above;
  above_s = fill_up(longer_, also_taken, lengths_s, above_s, enough_s);
  if (above_s >= left_s) return taken;
  std::copy(longer_.begin(), longer_.end(), near.begin());
  return also_taken;
}

void WindowPacker::pack_encodes(std::span<const Index> list, std::size_t reach) {
  encode_order_.assign(list.begin(), list.end());
  const std::size_t n = list.size();
  for (std::size_t i = 0; i < n; ++i) rank_[list[i]] = static_cast<Index>(i);
  const auto by_rank = [this](Index a, Index b) { return rank_[a] < rank_[b]; };
  const std::size_t n_packed = n > n_last_kept ? n - n_last_kept : 0;
  std::size_t placed = 0;
  double free_s = 0;
  for (const Obstacle& obstacle : shop_.obstacles.main) {
    if (placed >= n_packed) break;
    const std::span<Index> rest = std::span(encode_order_).subspan(placed, n_packed - placed);
    const std::size_t taken = pack_window(rest, reach, encode_s_, obstacle.start_s - free_s);
    const std::size_t touched = std::min(rest.size(), taken + reach + 1);
    std::sort(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(taken), by_rank);
    std::sort(rest.begin() + static_cast<std::ptrdiff_t>(taken),
              rest.begin() + static_cast<std::ptrdiff_t>(touched), by_rank);
    placed += taken;
    free_s = obstacle.end_s;
  }
  LaneCursor main;
  for (const Index job : encode_order_) {
    main.place(shop_.obstacles.main, 0, encode_s_[job]);
    ready_s_[job] = main.free_s;
  }
  n_inspected_ += n_inspected_per_operation * n;
}

double WindowPacker::pack_writes(WritePriority priority) {
  const std::vector<Obstacle>& obstacles = shop_.obstacles.io;
  const auto goes_before = [&](Index a, Index b) {
    if (priority != WritePriority::first_encoded && write_s_[a] != write_s_[b]) {
      return (priority == WritePriority::longest) == (write_s_[a] > write_s_[b]);
    }
    return ready_s_[a] != ready_s_[b] ? ready_s_[a] < ready_s_[b] : a < b;
  };
  write_order_.clear();
  waiting_.clear();
  std::size_t next_ready = 0;
  std::size_t obstacle = 0;
  double now_s = 0;
  while (write_order_.size() < encode_order_.size()) {
    while (obstacle < obstacles.size() && obstacles[obstacle].start_s <= now_s + fit_slack_s) {
      now_s = std::max(now_s, obstacles[obstacle++].end_s);
    }
    while (next_ready < encode_order_.size() &&
           ready_s_[encode_order_[next_ready]] <= now_s + fit_slack_s) {
      const Index job = encode_order_[next_ready++];
      waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), job, goes_before), job);
    }
    const double next_s =
        next_ready < encode_order_.size() ? ready_s_[encode_order_[next_ready]] : unplaced_s;
    const double until_s = obstacle < obstacles.size() ? obstacles[obstacle].start_s : unplaced_s;
    if (waiting_.empty()) {
      now_s = std::max(now_s, next_s);
      continue;
    }
    double waiting_s = 0;
    for (const Index job : waiting_) {
      waiting_s += write_s_[job];
      if (now_s + waiting_s > until_s) break;
    }
    n_inspected_ += n_inspected_per_operation + waiting_.size();
    std::size_t taken = 1;  // While all that wait fit, the window may yet get better ones.
    if (now_s + waiting_s > until_s) {
      taken = pack_window(waiting_, write_reach, write_s_, until_s - now_s);
    }
    const auto behind = waiting_.begin() + static_cast<std::ptrdiff_t>(taken);
    for (auto job = waiting_.begin(); job != behind; ++job) {
      write_order_.push_back(*job);
      now_s += write_s_[*job];
    }
    const std::size_t touched = std::min(waiting_.size(), taken + write_reach + 1);
    std::sort(behind, waiting_.begin() + static_cast<std::ptrdiff_t>(touched), goes_before);
    waiting_.erase(waiting_.begin(), behind);
    if (taken == 0) now_s = std::min(next_s, until_s);
  }
  LaneCursor io;
  for (const Index job : write_order_) io.place(obstacles, ready_s_[job], write_s_[job]);
  n_inspected_ += n_inspected_per_operation * write_order_.size();
  return io.free_s;
}

}  // namespace tailrace
