// `tailrace-lab bench choice`: tests whether codec=auto chooses the best of its candidates. Over a
// grid of storages and bounds, one run measures every candidate and auto in turn.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Run the arguments that follow "choice". Collective. @returns the exit code.
int run_choice(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
