// Reading the command line of the bench's programs: what all of them do with --help and with
// mistakes.

#pragma once

#include <optional>
#include <string>

#include "cli/cli_common.hpp"

namespace CLI {
class App;
}

namespace tailrace::bench {

/// Parse into the variables that `app` was made for. Rank 0 prints help, or what is wrong with a
/// hint at "`program` --help".
/// @returns the exit code if the program is to end here; nothing if it goes on.
std::optional<int> parse_arguments(CLI::App& app, cli::Session& session, int argc, char** argv,
                                   const std::string& program);

}  // namespace tailrace::bench
