// Exact schedules by solvers that run as a child process: HiGHS for the integer program of Jin et
// al. 2024 (figure 12), CP-SAT for a constraint model. Why not linked:
// docs/adr/exact-solvers-by-child-process.md.
//
// The child gets the instance as JSON and answers with two orders and a bound. The plan is made
// here, in our own arithmetic, and checked like every other.

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/status.hpp"
#include "schedule/flow_shop.hpp"

namespace tailrace::cli {

struct ExactRequest {
  std::string solver;                  ///< "ilp" or "cp-sat".
  double time_limit_s = 60;            ///< After which the best plan so far is the answer.
  std::size_t n_workers = 0;           ///< Threads; 0: as the solver likes.
  double lower_bound_s = 0;            ///< Known already.
  const FlowShopPlan* hint = nullptr;  ///< A plan to start from; nullptr: none.
};

struct ExactOutcome {
  std::optional<FlowShopPlan> plan;  ///< Nothing: none was found in time.
  double lower_bound_s = 0;          ///< Proven by the solver.
  bool proven = false;               ///< The solver says that nothing is better.
  std::string solver;                ///< With its version.
  double solve_s = 0;                ///< Building the model and solving it; wall time.
};

/// Run a solver to its end or its time limit. TAILRACE_PYTHON names the interpreter, else python3.
/// Not collective. Blocks. @error plugin_missing  no interpreter, no script or no solver: says
/// what to install. @error internal  the child failed, with its last line, or overran its limit.
Result<ExactOutcome> schedule_exactly(const FlowShop& shop, const ExactRequest& request);

}  // namespace tailrace::cli
