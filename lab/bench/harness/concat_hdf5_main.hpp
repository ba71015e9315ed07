// `tailrace-lab bench concat-hdf5`: the baseline of `tailrace concat`, from options to a table.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Do what the words behind "concat-hdf5" ask for. Collective. @returns the exit code.
int run_concat_hdf5(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
