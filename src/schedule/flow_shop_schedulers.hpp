// The six schedulers of Jin et al. 2024, 3.3: two orders (Johnson's and the one given), each with
// and without backfilling, and two that insert each job where it lengthens the plan least.
//
// Behind schedule_flow_shop; search starts from them. All: the instance must pass check_flow_shop.
// Not collective. Thread-safe. Deterministic.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/flow_shop.hpp"

namespace tailrace {

/// The optimum without obstacles. Cost: O(n log n).
std::vector<std::size_t> johnson_order(const FlowShop& shop);

/// 0, 1, 2, ...: as the chunks were cut.
std::vector<std::size_t> generation_order(const FlowShop& shop);

/// 3.3.2, list scheduling: job by job, each operation as soon as possible behind those placed.
FlowShopPlan schedule_list(const FlowShop& shop, std::span<const std::size_t> order);

/// 3.3.1, backfilling: job by job, each operation into the earliest gap that takes it, so that none
/// placed before it moves. Cost: O(n (n + obstacles)) at worst, O(n obstacles) as a rule.
FlowShopPlan schedule_list_backfilled(const FlowShop& shop, std::span<const std::size_t> order);

/// 3.3.3, OneListGreedy: each job in turn at the best place of one list; of equals the first.
/// Cost: O(n^2 (n + obstacles)). (The paper says O(K^2); docs/errata.md.)
FlowShopPlan schedule_one_list_greedy(const FlowShop& shop);

/// 3.3.3, TwoListsGreedy: the same for all pairs of places in two lists. Cost:
/// O(n^3 (n + obstacles)) at worst; attempts that cannot win are cut short. (The paper: O(K^3).)
FlowShopPlan schedule_two_lists_greedy(const FlowShop& shop);

// --- Search: our scheduler. Behind schedule_flow_shop; what it does stands in the .cpp.

/// The best plan that the budget finds. The instance must pass check_flow_shop. Never longer than
/// ExtJohnson+BF's. Deterministic. Not collective. Thread-safe.
FlowShopPlan search_flow_shop(const FlowShop& shop, const SearchBudget& budget);

}  // namespace tailrace
