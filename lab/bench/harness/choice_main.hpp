// `tailrace-lab bench choice`: is what codec=auto chooses the best of its candidates? Over a grid
// of storages and bounds, every candidate and auto itself in turn, in one run.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Do what the words behind "choice" ask for. Collective. @returns the exit code.
int run_choice(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
