// The frame of a program: parser, MPI, one command, exit code.

#include "program.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "core/utf8.hpp"
#include "hdf5/recover.hpp"
#include "help_formatter.hpp"

namespace tailrace::cli {
namespace {

/// Requests to the parser itself, in addition to a command.
struct GivenOptions {
  bool version = false;
  std::string pages_folder;  ///< Empty: no pages.
};

std::unique_ptr<CLI::App> make_parser(const Program& program, GivenOptions& given,
                                      std::map<std::string, Command>& commands) {
  auto app = std::make_unique<CLI::App>(program.description, program.name);
  app->formatter(std::make_shared<HelpFormatter>());
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Options");
  app->add_flag("--version", given.version,
                "Versions of Tailrace, HDF5 and MPI; codecs; plug-in folders.")
      ->group("Options");
  // The build runs it, for the files that are installed.
  app->add_option("--write-pages", given.pages_folder)->group("");
  app->require_subcommand(0, 1);
  for (const auto add : program.adders) {
    Command command = add(*app);
    commands[app->get_subcommands({}).back()->get_name()] = std::move(command);
  }
  if (program.list_others != nullptr) program.list_others(*app);
  for (CLI::App* sub : app->get_subcommands({})) sub->group("Commands");
  return app;
}

/// Message about a first word that is not a command, with the command that may have been meant.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word.empty() || word.starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("unknown command \"{}\"{}", word, did_you_mean(word, known));
}

/// Hint for the first option on the command line that the command does not have.
std::string meant_option(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    word = word.substr(0, word.find('='));
    if (!word.starts_with("--") || word.size() < 3) continue;
    if (std::ranges::find(names, word) != names.end()) continue;
    const std::string hint =
        did_you_mean(word, std::vector<std::string_view>(names.begin(), names.end()));
    return hint.empty() ? hint : hint.substr(0, hint.size() - 1);
  }
  return "";
}

/// Parse the arguments and run the command. @returns the exit code
int run(const Program& program, MpiSession& mpi, Comm& comm, int argc, char** argv) {
  GivenOptions given;
  std::map<std::string, Command> commands;
  const std::unique_ptr<CLI::App> app = make_parser(program, given, commands);
  const bool speaks = comm.is_root();
  const auto command_name = [&]() -> std::string {
    const std::vector<CLI::App*> chosen = app->get_subcommands();
    return chosen.empty() ? "" : chosen.front()->get_name();
  };
  try {
    app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (speaks) fmt::print("{}", app->help());
    return kExitDone;
  } catch (const CLI::CallForAllHelp&) {
    if (speaks) fmt::print("{}", app->help("", CLI::AppFormatMode::All));
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    const std::string command = command_name();
    const std::string invoked_as =
        command.empty() ? program.name : fmt::format("{} {}", program.name, command);
    const std::string unknown = command.empty() ? unknown_command(*app, argc, argv) : "";
    const std::string meant =
        command.empty() ? "" : meant_option(*app->get_subcommands().front(), argc, argv);
    const std::string line = fmt::format("{0}: {1}{2}; see {0} --help", invoked_as,
                                         unknown.empty() ? error.what() : unknown, meant);
    if (speaks) print_to_stderr(printable(line));
    return kExitUsage;
  }
  if (given.version) {
    if (speaks) print_text(program.version_text());
    return kExitDone;
  }
  Session session{mpi, comm, command_name(), program.name};
  if (!given.pages_folder.empty()) {
    return run_at_root(session, [&] { return write_shell_pages(*app, given.pages_folder); });
  }
  if (session.command.empty()) {
    if (speaks) fmt::print(stderr, "{}", app->help());
    return kExitUsage;
  }
  return commands.at(session.command)(session);
}

}  // namespace

void help_option(CLI::App* app, std::initializer_list<const char*> first) {
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
  app->set_help_all_flag("--help-all", "Print every option and exit.")->group("Reports");
  const auto formatter = std::dynamic_pointer_cast<HelpFormatter>(app->get_formatter());
  if (formatter != nullptr && first.size() > 0) formatter->show_first(app, first);
}

int run_program(const Program& program, int argc, char** argv) {
  // A file that would grow beyond `ulimit -f` is an error with a message, not a silent end.
  std::signal(SIGXFSZ, SIG_IGN);
  text_room() = room_of(STDOUT_FILENO);
  MpiSession mpi(&argc, &argv);
  const std::unique_ptr<Comm> comm = mpi.world();
  try {
    const int code = run(program, mpi, *comm, argc, argv);
    silence_hdf5();
    return end_of_output(program.name, code);
  } catch (const std::exception& error) {
    // Exit without MPI_Finalize, which also ends the other ranks: they may be waiting for this one.
    print_to_stderr(
        printable(fmt::format("{}: rank {}: {}", program.name, comm->rank(), error.what())));
    std::fflush(nullptr);
    std::_Exit(kExitResources);
  }
}

}  // namespace tailrace::cli
