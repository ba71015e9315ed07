// Parsing of the command line in the bench's programs, with a common treatment of --help and
// errors.

#pragma once

#include <optional>
#include <string>

#include "cli/cli_common.hpp"

namespace CLI {
class App;
}

namespace tailrace::bench {

/// Parse into the variables of `app`. Rank 0 prints the help, or the error with a hint at
/// "`program` --help".
/// @returns the exit code if the program must end; nothing if it continues.
std::optional<int> parse_arguments(CLI::App& app, cli::Session& session, int argc, char** argv,
                                   const std::string& program);

}  // namespace tailrace::bench
