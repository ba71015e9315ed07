// `tailrace-lab bench codecs`: runs codecs in turn on the chunks of real files; writes no output
// file.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Run the arguments that follow "codecs". Rank 0 measures, the others wait. Collective.
/// @returns the exit code.
int run_codecs(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
