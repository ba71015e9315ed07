// The command line's grammar and its help: which options each command takes, what they mean.
//
// Options that the engine knows by name are handed on as texts (core/options.hpp parses them), so
// that the CLI, the C API and the Python binding accept the same words and give the same errors.

#pragma once

#include <memory>

#include "commands.hpp"
#include "simulate_options.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

/// What was asked. The chosen command is the one whose CLI::App was parsed.
struct CommandLine {
  bool version = false;
  RepackArguments repack;
  ConcatArguments concat;
  VerifyArguments verify;
  InfoArguments info;
  RecoverArguments recover;
  FilterArgsArguments filter_args;
  TrainBookArguments train_book;
  ProfileArguments profile;
  ScheduleArguments schedule;
  SimulateArguments simulate;
  ExportArguments export_plain;
};

/// The longer commands, each in a file of its own: add the subcommand to the parser, which writes
/// into the arguments.
void add_concat(CLI::App& app, ConcatArguments& concat);
void add_export(CLI::App& app, ExportArguments& arguments);
void add_filter_args(CLI::App& app, FilterArgsArguments& filter_args);
void add_schedule(CLI::App& app, ScheduleArguments& schedule);

/// The parser; it writes into `line`, which must outlive it.
std::unique_ptr<CLI::App> make_parser(CommandLine& line);

}  // namespace tailrace::cli
