// `tailrace-lab bench codecs`: codecs in turn on the chunks of real files, without any output file.

#pragma once

#include "cli/cli_common.hpp"

namespace tailrace::bench {

/// Do what the words behind "codecs" ask for. Rank 0 measures, others wait. Collective.
/// @returns the exit code.
int run_codecs(cli::Session& session, int argc, char** argv);

}  // namespace tailrace::bench
