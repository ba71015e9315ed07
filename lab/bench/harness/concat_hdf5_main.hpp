// `tailrace-lab bench concat-hdf5`: the baseline of `tailrace concat`, from options to a table.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Run the arguments that follow "concat-hdf5". Collective. @returns the exit code.
int run_concat_hdf5(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
