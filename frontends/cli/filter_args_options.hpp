// The command line of `tailrace filter-args`, beside command_line.cpp for its length.

#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

/// Add the subcommand to the parser; it writes into `filter_args`, which must outlive it.
void add_filter_args(CLI::App& app, FilterArgsArguments& filter_args);

}  // namespace tailrace::cli
