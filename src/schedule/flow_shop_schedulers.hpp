// The six schedulers of Jin et al. 2024, 3.3: two orders (Johnson's and the given one), each with
// and without backfilling, and two that insert each job where it lengthens the plan least.
//
// Used by schedule_flow_shop(); search starts from them. For all: the instance must pass
// check_flow_shop(). Not collective. Thread-safe. Deterministic.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/flow_shop.hpp"

namespace tailrace {

/// Johnson's order, the optimum without obstacles. Cost: O(n log n).
std::vector<std::size_t> johnson_order(const FlowShop& shop);

/// Order 0, 1, 2, ...: the order in which the chunks were cut.
std::vector<std::size_t> generation_order(const FlowShop& shop);

/// List scheduling (3.3.2): each operation as early as possible after those already placed.
FlowShopPlan schedule_list(const FlowShop& shop, std::span<const std::size_t> order);

/// Backfilling (3.3.1): each operation in the earliest gap that fits it, without moving earlier
/// ones. Cost: O(n (n + obstacles)) at worst, usually O(n obstacles).
FlowShopPlan schedule_list_backfilled(const FlowShop& shop, std::span<const std::size_t> order);

/// OneListGreedy (3.3.3): inserts each job at the best position of one list, the first of equal
/// ones.
/// Cost: O(n^2 (n + obstacles)). (The paper says O(K^2); lab/errata.md.)
FlowShopPlan schedule_one_list_greedy(const FlowShop& shop);

/// TwoListsGreedy (3.3.3): like OneListGreedy for all pairs of positions in two lists.
/// Cost: O(n^3 (n + obstacles)) at worst; attempts that cannot win are aborted. (The paper:
/// O(K^3).)
FlowShopPlan schedule_two_lists_greedy(const FlowShop& shop);

// --- Search: our scheduler. Used by schedule_flow_shop(); flow_shop_search.cpp describes it.

/// Find the best plan within the budget. The instance must pass check_flow_shop(). The plan is
/// never longer than ExtJohnson+BF's. Deterministic. Not collective. Thread-safe.
FlowShopPlan search_flow_shop(const FlowShop& shop, const SearchBudget& budget);

}  // namespace tailrace
