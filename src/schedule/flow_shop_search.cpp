// Search: makes proposals, then walks from the best of them.
//
// Proposals are the paper's two lists with backfilling, which cost almost nothing, and packings of
// the windows (WindowPacker). The packings use Johnson's order and random variations of it. The
// walk (TwoListWalk) exchanges and moves jobs, starting from the best proposal. It accepts longer
// plans at first, only shorter ones at the end. The search ends early when it reaches the lower
// bound.
//
// Measured: docs/decisions.md, "Around obstacles".

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "schedule/flow_shop_schedulers.hpp"
#include "schedule/flow_shop_walk.hpp"
#include "schedule/lane_rule.hpp"

namespace tailrace {

// --- WindowPacker: orders of encodes and writes that fill the windows between obstacles.
//
// In addition to its length, an obstacle costs the unused end of the window before it, into which
// the next operation does not fit. So a window is packed like a bin. Operations go in the order of
// a list while they fit; exchanges with later ones then reduce the unused rest. The encodes are
// packed first, window by window; then the writes, each window from those that are encoded in time.
//
// Ours; the exchange is local search for the subset-sum problem. The orders are only a proposal:
// schedule_in_order() places them, so a badly packed window does not make a plan worse.

namespace {

/// Order of waiting writes while they cannot fill the window.
enum class WritePriority : std::uint8_t { first_encoded, longest, shortest };

/// Packs windows. Not thread-safe. The constructor allocates all memory.
class WindowPacker {
 public:
  using Index = std::uint32_t;  ///< Half the size of a size_t, since the lists compete for cache.

  explicit WindowPacker(const FlowShop& shop);

  /// Pack the encodes by `list`. An operation may be exchanged for one of the next `reach` in the
  /// list; 0: none. The last two of the list keep their positions: their writes end the plan.
  void pack_encodes(std::span<const Index> list, std::size_t reach);

  /// Pack the writes after the last packed encodes; returns the makespan.
  double pack_writes(WritePriority priority);

  std::span<const Index> encode_order() const { return encode_order_; }
  std::span<const Index> write_order() const { return write_order_; }

  /// Work done so far, in placed operations (SearchBudget).
  std::uint64_t n_operations() const { return n_inspected_ / kNInspectedPerOperation; }

 private:
  /// Checking an exchange costs about a quarter of placing an operation.
  static constexpr std::uint64_t kNInspectedPerOperation = 4;

  /// Pack the front of `list` into a window of window_s, with exchanges; returns the number packed.
  std::size_t pack_window(std::span<Index> list, std::size_t reach,
                          const std::vector<double>& lengths_s, double window_s);
  /// Exchange operations of list[0, taken) with later ones, until at most enough_s of left_s
  /// remains. Increments `taken` if another one fits. Returns the remaining time.
  double fill_up(std::span<Index> list, std::size_t& taken, const std::vector<double>& lengths_s,
                 double left_s, double enough_s);
  /// Opposite of fill_up(): list[0, taken) is too long by excess_s; exchange until it fits. Returns
  /// the time that then remains, or a negative number on failure.
  double thin_out(std::span<Index> list, std::size_t taken, const std::vector<double>& lengths_s,
                  double excess_s);

  const FlowShop& shop_;
  std::vector<double> encode_s_;
  std::vector<double> write_s_;
  std::vector<double> ready_s_;  ///< Indexed by job: end of its encode.
  std::vector<Index> rank_;      ///< Indexed by job: position in the list.
  std::vector<Index> encode_order_;
  std::vector<Index> write_order_;
  std::vector<Index> waiting_;  ///< Ready writes, by priority.
  std::vector<Index> longer_;   ///< List of a window, packed from above.
  std::uint64_t n_inspected_ = 0;
};

// A window is packed twice: from below (as many as fit, then exchanged for longer operations) and
// from above (one too many, then exchanged for shorter ones). If all operations have similar
// lengths, only one of the two gets close to the window's end.

constexpr double kUnplacedS = std::numeric_limits<double>::infinity();

/// A window counts as full if less than this share of it remains.
constexpr double kFullShare = 1e-4;

/// Maximum number of exchanges per window. Each exchange reduces the rest, but the series can be
/// long if operations differ only by rounding.
constexpr int kNExchangesMax = 30;

constexpr std::size_t kNLastKept = 2;
constexpr std::size_t kWriteReach = 40;

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
  for (int exchange = 0; exchange < kNExchangesMax && left_s > enough_s; ++exchange) {
    double best_s = 0;
    std::size_t out = taken;
    std::size_t in = taken;
    for (std::size_t i = taken; i < list.size(); ++i) {
      const double length_s = lengths_s[list[i]];
      if (length_s > best_s && length_s <= left_s + kFitSlackS) {
        best_s = length_s;
        in = i;
      }
    }
    if (best_s > 0) {  // Another one fits: take the longest that does.
      std::swap(list[taken], list[in]);
      ++taken;
      left_s -= best_s;
      continue;
    }
    for (std::size_t o = 0; o < taken; ++o) {
      const double out_s = lengths_s[list[o]];
      for (std::size_t i = taken; i < list.size(); ++i) {
        const double gain_s = lengths_s[list[i]] - out_s;
        if (gain_s > best_s && gain_s <= left_s + kFitSlackS) {
          best_s = gain_s;
          out = o;
          in = i;
        }
      }
    }
    n_inspected_ += (taken + 1) * (list.size() - taken);
    if (best_s <= kFitSlackS) break;
    std::swap(list[out], list[in]);
    left_s -= best_s;
  }
  return left_s;
}

double WindowPacker::thin_out(std::span<Index> list, std::size_t taken,
                              const std::vector<double>& lengths_s, double excess_s) {
  for (int exchange = 0; exchange < kNExchangesMax && excess_s > 0; ++exchange) {
    // Choose the smallest sufficient exchange; failing that, the largest.
    double enough_s = kUnplacedS;
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
    if (enough_s < kUnplacedS) {
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
  while (taken < list.size() && lengths_s[list[taken]] <= left_s + kFitSlackS) {
    left_s -= lengths_s[list[taken++]];
  }
  n_inspected_ += kNInspectedPerOperation * (taken + 1);
  const std::span<Index> near = list.first(std::min(list.size(), taken + reach));
  if (near.size() <= taken) return taken;
  longer_.assign(near.begin(), near.end());
  const std::size_t taken_above = taken + 1;
  const double excess_s = lengths_s[longer_[taken]] - left_s;
  const double enough_s = kFullShare * window_s;
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
  const std::size_t n_packed = n > kNLastKept ? n - kNLastKept : 0;
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
  n_inspected_ += kNInspectedPerOperation * n;
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
    while (obstacle < obstacles.size() && obstacles[obstacle].start_s <= now_s + kFitSlackS) {
      now_s = std::max(now_s, obstacles[obstacle++].end_s);
    }
    while (next_ready < encode_order_.size() &&
           ready_s_[encode_order_[next_ready]] <= now_s + kFitSlackS) {
      const Index job = encode_order_[next_ready++];
      waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), job, goes_before), job);
    }
    const double next_s =
        next_ready < encode_order_.size() ? ready_s_[encode_order_[next_ready]] : kUnplacedS;
    const double until_s = obstacle < obstacles.size() ? obstacles[obstacle].start_s : kUnplacedS;
    if (waiting_.empty()) {
      now_s = std::max(now_s, next_s);
      continue;
    }
    double waiting_s = 0;
    for (const Index job : waiting_) {
      waiting_s += write_s_[job];
      if (now_s + waiting_s > until_s) break;
    }
    n_inspected_ += kNInspectedPerOperation + waiting_.size();
    std::size_t taken = 1;  // All waiting writes fit: take one, since better ones may become ready.
    if (now_s + waiting_s > until_s) {
      taken = pack_window(waiting_, kWriteReach, write_s_, until_s - now_s);
    }
    const auto behind = waiting_.begin() + static_cast<std::ptrdiff_t>(taken);
    for (auto job = waiting_.begin(); job != behind; ++job) {
      write_order_.push_back(*job);
      now_s += write_s_[*job];
    }
    const std::size_t touched = std::min(waiting_.size(), taken + kWriteReach + 1);
    std::sort(behind, waiting_.begin() + static_cast<std::ptrdiff_t>(touched), goes_before);
    waiting_.erase(waiting_.begin(), behind);
    if (taken == 0) now_s = std::min(next_s, until_s);
  }
  LaneCursor io;
  for (const Index job : write_order_) io.place(obstacles, ready_s_[job], write_s_[job]);
  n_inspected_ += kNInspectedPerOperation * write_order_.size();
  return io.free_s;
}

/// Share of the budget for packings. With few jobs walking is more effective, with many packing:
/// one packing fills all windows, a step of the walk improves two.
double pack_share(std::size_t n_jobs) { return n_jobs <= 20 ? 0.1 : n_jobs < 100 ? 0.3 : 0.6; }

/// Initial average increase of the plan's length that a step may cause, as a share of the length.
/// The result depends little on it. Of 400 searches of 10 jobs, 350, 357, 360 and 345 found the
/// best known plan at 0.005, 0.01, 0.02 and 0.04.
constexpr double kHeatShare = 0.015;

/// Values of `reach`; 0 keeps the list's order.
constexpr std::array<std::size_t, 5> kReaches = {0, 3, 8, 20, 60};
constexpr std::array<WritePriority, 3> kPriorities = {
    WritePriority::first_encoded, WritePriority::longest, WritePriority::shortest};

/// Best plan so far.
class Best {
 public:
  Best(const FlowShop& shop, double enough_s) : shop_(shop), enough_s_(enough_s) {}

  template <class Order>
  void offer(double makespan_s, const Order& encode_order, const Order& write_order) {
    if (known_ && makespan_s >= makespan_s_) return;
    known_ = true;
    makespan_s_ = makespan_s;
    encode_order_.assign(encode_order.begin(), encode_order.end());
    write_order_.assign(write_order.begin(), write_order.end());
  }
  void offer(const FlowShopPlan& plan) {
    offer(plan.makespan_s, plan.encode_order, plan.write_order);
  }

  bool enough() const { return makespan_s_ <= enough_s_; }
  double makespan_s() const { return makespan_s_; }
  std::span<const std::size_t> encode_order() const { return encode_order_; }
  std::span<const std::size_t> write_order() const { return write_order_; }
  FlowShopPlan plan() const { return schedule_in_order(shop_, encode_order_, write_order_); }

 private:
  const FlowShop& shop_;
  double enough_s_;
  bool known_ = false;
  double makespan_s_ = 0;
  std::vector<std::size_t> encode_order_;
  std::vector<std::size_t> write_order_;
};

/// Draw a list: Johnson's order with every job moved by up to about `spread` positions.
void draw_list(std::span<const std::size_t> johnson, double spread, SearchDraws& draws,
               std::vector<std::pair<double, WindowPacker::Index>>& keys,
               std::vector<WindowPacker::Index>& list) {
  for (std::size_t i = 0; i < johnson.size(); ++i) {
    const double unit = static_cast<double>(draws.next() >> 11) * 0x1p-53;
    keys[i] = {static_cast<double>(i) + spread * (2 * unit - 1),
               static_cast<WindowPacker::Index>(johnson[i])};
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) list[i] = keys[i].second;
}

/// Propose packings until `n_operations` are spent: first Johnson's order in all variants, then
/// random lists in random variants. Returns the operations spent.
std::uint64_t propose_packings(const FlowShop& shop, std::span<const std::size_t> johnson,
                               std::uint64_t n_operations, SearchDraws& draws, Best& best) {
  const std::size_t n = johnson.size();
  const auto n_places = static_cast<double>(n);
  const std::array<double, 4> spreads = {2, 5, 0.1 * n_places, 0.5 * n_places};
  WindowPacker packer(shop);
  std::vector<WindowPacker::Index> list(johnson.begin(), johnson.end());
  std::vector<std::pair<double, WindowPacker::Index>> keys(n);
  const auto offer = [&](WritePriority priority) {
    const double makespan_s = packer.pack_writes(priority);
    best.offer(makespan_s, packer.encode_order(), packer.write_order());
  };
  const auto goes_on = [&] { return packer.n_operations() < n_operations && !best.enough(); };
  for (std::size_t r = 0; r < kReaches.size() && goes_on(); ++r) {
    packer.pack_encodes(list, kReaches[r]);
    for (std::size_t p = 0; p < kPriorities.size() && goes_on(); ++p) offer(kPriorities[p]);
  }
  for (std::size_t i = 0; goes_on(); ++i) {
    draw_list(johnson, spreads[i % spreads.size()], draws, keys, list);
    const std::uint64_t bits = draws.next();
    packer.pack_encodes(list, kReaches[(bits & 0xffffU) % kReaches.size()]);
    offer(kPriorities[(bits >> 32) % kPriorities.size()]);
  }
  return packer.n_operations();
}

}  // namespace

FlowShopPlan search_flow_shop(const FlowShop& shop, const SearchBudget& budget) {
  const double enough_s = makespan_lower_bound_s(shop) + 1e-9;
  const std::vector<std::size_t> johnson = johnson_order(shop);
  Best best(shop, enough_s);
  best.offer(schedule_list_backfilled(shop, johnson));
  best.offer(schedule_list_backfilled(shop, generation_order(shop)));
  if (shop.jobs.size() < 2 || best.enough()) return best.plan();

  SearchDraws draws(budget.seed);
  const std::uint64_t n_all = budget.n_evaluated_operations;
  const auto n_packing =
      static_cast<std::uint64_t>(pack_share(shop.jobs.size()) * static_cast<double>(n_all));
  const std::uint64_t n_packed = propose_packings(shop, johnson, n_packing, draws, best);

  TwoListWalk walk(shop);
  walk.set_orders(best.encode_order(), best.write_order());
  walk.anneal(kHeatShare * best.makespan_s(), n_all - std::min(n_all, n_packed), enough_s, draws);
  best.offer(walk.best_s(), walk.best_encode_order(), walk.best_write_order());
  return best.plan();
}

}  // namespace tailrace
