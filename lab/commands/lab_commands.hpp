// Commands of tailrace-lab. Each function adds a command and its options to the parser.

#pragma once

#include "commands.hpp"

namespace tailrace::cli {

Command add_schedule(CLI::App& app);
Command add_simulate(CLI::App& app);
Command add_train_book(CLI::App& app);

}  // namespace tailrace::cli
