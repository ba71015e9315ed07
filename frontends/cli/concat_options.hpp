// The command line of `tailrace concat`, beside command_line.cpp for its length.

#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

/// Add the subcommand to the parser; it writes into `concat`, which must outlive it.
void add_concat(CLI::App& app, ConcatArguments& concat);

}  // namespace tailrace::cli
