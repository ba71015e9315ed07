// Search: our scheduler. Behind schedule_flow_shop; what it does stands in the .cpp.

#pragma once

#include "schedule/flow_shop.hpp"

namespace tailrace {

/// The best plan that the budget finds. The instance must pass check_flow_shop. Never longer than
/// ExtJohnson+BF's. Deterministic. Not collective. Thread-safe.
FlowShopPlan search_flow_shop(const FlowShop& shop, const SearchBudget& budget);

}  // namespace tailrace
