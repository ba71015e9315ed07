// Balancing: which of a rank's writes another rank of its node makes. Mode in_situ.
//
// The ranks of a node tell each other how long each of their writes should take, and all come to
// the same moves (schedule/balance.hpp). Loads are this step's forecasts, which rest on the
// previous steps where the paper takes the previous step itself. Source: Jin et al. 2024, 3.4.

#pragma once

#include <memory>
#include <vector>

#include "core/comm.hpp"
#include "exec/shared_writes.hpp"
#include "schedule/balance.hpp"
#include "write_predict.hpp"

namespace tailrace {

/// Who writes each of this rank's jobs: its rank on the node; -1 is this rank itself. Empty where
/// nothing moves. Jobs of layout arena stay, since their places are not known one by one.
/// Collective. Cost: a message of O(own jobs) to each rank of the node, one consensus; O(n log n)
/// for the n writes of the node.
std::vector<int> balance_step(Comm& comm, const SharedWrites& shared, BalanceRule rule,
                              const Ownership& ownership, const StepPlan& plan);

}  // namespace tailrace
