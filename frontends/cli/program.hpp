// The frame of a program that is made of commands: tailrace, and tailrace-lab.
//
// Every rank parses the same arguments and reaches the same verdict; rank 0 prints it.

#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>

#include "cli_common.hpp"
#include "commands.hpp"

namespace tailrace::cli {

struct Program {
  const char* name;         ///< "tailrace"; messages begin with it.
  const char* description;  ///< First line "NAME: what it is", then examples.
  /// Adders of the commands, in the order in which --help lists them.
  std::span<Command (*const)(CLI::App&)> adders;
  std::string (*version_text)();
  /// Adds entries to --help that are run in another way; may be null.
  void (*list_others)(CLI::App&) = nullptr;
};

/// Start MPI where the process was launched by mpiexec, parse, and run one command. Collective over
/// the processes of the launch. @returns the exit code
int run_program(const Program& program, int argc, char** argv);

/// Write manual pages and completions of all commands into a folder, which is created if need be:
/// man1/NAME.1, man1/NAME-COMMAND.1, NAME.bash, _NAME (zsh), NAME.fish. They are made from the
/// parser, so that they agree with --help. Not collective. @error io_error
Status write_shell_pages(const CLI::App& app, const std::string& folder);

}  // namespace tailrace::cli
