// The command line of `tailrace export`, beside command_line.cpp for its length.

#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

/// Add the subcommand to the parser; it writes into `arguments`, which must outlive it.
void add_export(CLI::App& app, ExportArguments& arguments);

}  // namespace tailrace::cli
