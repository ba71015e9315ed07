// Search: proposals first, then a walk from the best of them.
//
// Proposals are the paper's two lists with backfilling, which cost next to nothing, and packings of
// the windows (WindowPacker) by Johnson's order and by variations of it that are drawn. The walk
// (TwoListWalk) exchanges and moves jobs from the best proposal on, at first boldly, at the end
// only forward. Everything ends when the lower bound is reached.
//
// Measured: docs/schedule.md, "Around obstacles".

#include "schedule/flow_shop_schedulers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/flow_shop_pack.hpp"
#include "schedule/flow_shop_walk.hpp"

namespace tailrace {
namespace {

/// The packings' share of the budget. Few jobs are better walked, many better packed: one packing
/// fills all windows, a step of the walk mends two.
double pack_share(std::size_t n_jobs) { return n_jobs <= 20 ? 0.1 : n_jobs < 100 ? 0.3 : 0.6; }

/// By how much of the plan's length a step may lengthen it at first, on average. Little depends on
/// it: of 400 searches of 10 jobs 350, 357, 360 and 345 found the best plan known at 0.005, 0.01,
/// 0.02 and 0.04.
constexpr double heat_share = 0.015;

/// How far down the list an operation is exchanged; 0 keeps the list's order.
constexpr std::array<std::size_t, 5> reaches = {0, 3, 8, 20, 60};
constexpr std::array<WritePriority, 3> priorities = {
    WritePriority::first_encoded, WritePriority::longest, WritePriority::shortest};

/// The best plan so far.
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

/// Johnson's order with every job moved by up to `spread` places, give or take.
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

/// Propose packings until `n_operations` are spent: at first by Johnson's order in all ways, then
/// by drawn lists in drawn ways. Returns the operations spent.
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
  for (std::size_t r = 0; r < reaches.size() && goes_on(); ++r) {
    packer.pack_encodes(list, reaches[r]);
    for (std::size_t p = 0; p < priorities.size() && goes_on(); ++p) offer(priorities[p]);
  }
  for (std::size_t i = 0; goes_on(); ++i) {
    draw_list(johnson, spreads[i % spreads.size()], draws, keys, list);
    const std::uint64_t bits = draws.next();
    packer.pack_encodes(list, reaches[(bits & 0xffffU) % reaches.size()]);
    offer(priorities[(bits >> 32) % priorities.size()]);
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
  walk.anneal(heat_share * best.makespan_s(), n_all - std::min(n_all, n_packed), enough_s, draws);
  best.offer(walk.best_s(), walk.best_encode_order(), walk.best_write_order());
  return best.plan();
}

}  // namespace tailrace
