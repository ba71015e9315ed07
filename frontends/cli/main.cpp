// tailrace: the command line. Parses, starts MPI where the process was launched by mpiexec, and
// hands over to one command. Every rank parses the same arguments and reaches the same verdict;
// rank 0 prints it.

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "cli_common.hpp"
#include "command_line.hpp"
#include "commands.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::cli;

/// Whether a launcher has numbered this process, and not as the first: such a process stays silent.
bool is_later_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* text = std::getenv(name);
    if (text != nullptr) return std::string(text) != "0";
  }
  return false;
}

/// Become tailrace-bench, a program of its own because it links the parallel HDF5. Never returns.
/// Must run before MPI_Init: a process image may start MPI once only.
[[noreturn]] void become_bench(int argc, char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path();
  std::vector<char*> arguments(argv + 1, argv + argc);
  arguments.push_back(nullptr);
  std::string name = "tailrace-bench";
  arguments[0] = name.data();
  for (const char* place :
       {"tailrace-bench", "bench/tailrace-bench", "../libexec/tailrace/tailrace-bench"}) {
    const std::filesystem::path program = folder / place;
    if (::access(program.c_str(), X_OK) == 0) ::execv(program.c_str(), arguments.data());
  }
  if (!is_later_rank()) {
    fmt::print(stderr,
               "tailrace bench: tailrace-bench is neither beside {} nor in "
               "../libexec/tailrace\n",
               self.string());
  }
  std::exit(exit_usage);
}

int run_command(Session& session, const CLI::App& app, const CommandLine& line) {
  if (app.got_subcommand("repack")) return run_repack(session, line.repack);
  if (app.got_subcommand("concat")) return run_concat(session, line.concat);
  if (app.got_subcommand("export")) return run_export(session, line.export_plain);
  if (app.got_subcommand("verify")) return run_verify(session, line.verify);
  if (app.got_subcommand("info")) return run_info(session, line.info);
  if (app.got_subcommand("filter-args")) return run_filter_args(session, line.filter_args);
  if (app.got_subcommand("train-book")) return run_train_book(session, line.train_book);
  if (app.got_subcommand("profile")) return run_profile(session, line.profile);
  if (app.got_subcommand("schedule")) return run_schedule(session, line.schedule);
  if (app.got_subcommand("simulate")) return run_simulate(session, line.simulate);
  return run_recover(session, line.recover);
}

/// Parse, and do what is asked. Exit code.
int run(MpiSession& mpi, Comm& comm, int argc, char** argv) {
  CommandLine line;
  const std::unique_ptr<CLI::App> app = make_parser(line);
  const bool speaks = comm.is_root();
  const auto command_name = [&]() -> std::string {
    const std::vector<CLI::App*> chosen = app->get_subcommands();
    return chosen.empty() ? "" : chosen.front()->get_name();
  };
  try {
    app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (speaks) fmt::print("{}", app->help());
    return exit_done;
  } catch (const CLI::ParseError& error) {
    const std::string command = command_name();
    const std::string program = command.empty() ? "tailrace" : "tailrace " + command;
    if (speaks) fmt::print(stderr, "{0}: {1}; see {0} --help\n", program, error.what());
    return exit_usage;
  }
  if (line.version) {
    if (speaks) fmt::print("{}", version_text());
    return exit_done;
  }
  if (command_name().empty()) {
    if (speaks) fmt::print(stderr, "{}", app->help());
    return exit_usage;
  }
  Session session{mpi, comm, command_name()};
  return run_command(session, *app, line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], "bench") == 0) become_bench(argc, argv);
  MpiSession mpi(&argc, &argv);
  const std::unique_ptr<Comm> comm = mpi.world();
  try {
    const int code = run(mpi, *comm, argc, argv);
    std::fflush(nullptr);
    return code;
  } catch (const std::exception& error) {
    // The other ranks may be waiting for this one: leaving without MPI_Finalize ends them as well.
    fmt::print(stderr, "tailrace: rank {}: {}\n", comm->rank(), error.what());
    std::fflush(nullptr);
    std::_Exit(exit_resources);
  }
}
