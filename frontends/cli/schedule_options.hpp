// The command line of `tailrace schedule`, beside command_line.cpp for its length.

#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

/// Add the subcommand to the parser; it writes into `schedule`, which must outlive it.
void add_schedule(CLI::App& app, ScheduleArguments& schedule);

}  // namespace tailrace::cli
