// tailrace: the command line. Parses, starts MPI where the process was launched by mpiexec, and
// hands over to one command. Every rank parses the same arguments and reaches the same verdict;
// rank 0 prints it.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "build_facts.hpp"
#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "core/utf8.hpp"
#include "describe/field_attributes.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/recover.hpp"
#include "help_formatter.hpp"
#include "layout/layout.hpp"
#include "trz/kernels/isa.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::cli;

/// Whether a launcher has numbered this process, and not as the first: such a process stays silent.
bool is_later_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* text = environment_variable(name);
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
    print_to_stderr(fmt::format(
        "tailrace bench: tailrace-bench is neither beside {} nor in ../libexec/tailrace",
        printable(self.string())));
  }
  std::exit(exit_usage);
}

constexpr const char* main_description =
    R"(tailrace: parallel compressed output into one ordinary HDF5 file

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
  mpiexec -n 4 tailrace repack snapshot.nc -o small.h5 --codec zfp --bound abs=0.01
  mpiexec -n 4 tailrace concat -o run.h5 -i list.txt
  tailrace verify snapshot.h5 small.h5
  tailrace info small.h5
)";

/// Whether a plug-in codec can be loaded, by making one.
std::string plugin_state(const CodecEntry& entry) {
  CodecRequest request;
  request.name = entry.name;
  request.dtype = DType::f32;
  request.chunk_shape = {16, 16, 16};
  request.absolute_bound = entry.loss == Loss::never ? 0 : 1e-3;
  Result<std::unique_ptr<Codec>> made = make_codec(request, "");
  if (made.ok()) return (*made)->version();
  return made.status().code() == Code::plugin_missing ? "plug-in not found"
                                                      : made.status().message();
}

/// The sets that the codecs' kernels were compiled for, and which of these this processor has.
std::string instruction_sets() {
  std::string compiled = trz::isa_name(trz::Isa::plain);
  std::string present = compiled;
  if (TRZ_X86 != 0) {
    for (const trz::Isa isa : {trz::Isa::avx2, trz::Isa::avx512}) {
      compiled.append(" ").append(trz::isa_name(isa));
      if (trz::isa_supported(isa)) present.append(" ").append(trz::isa_name(isa));
    }
  }
  return fmt::format("kernels  for {}; this processor has {}", compiled, present);
}

/// What `tailrace --version` prints: what this program is made of, and which codecs it can reach.
std::string version_text() {
  std::string out = fmt::format("tailrace {}\n", TAILRACE_VERSION);
  constexpr std::size_t column = 9;
  const auto line = [&](std::string_view text) { out += wrapped(text, column) + "\n"; };
  line(fmt::format("commit   {}", build_commit));
  line(fmt::format("built    by {}, {}; uses {} here", build_compiler, build_type,
                   trz::isa_name(trz::best_isa())));
  line(instruction_sets());
  line(fmt::format("HDF5     {} (built against {})", hdf5_library_version(), build_hdf5));
  line(fmt::format("MPI      {}", mpi_library_version()));
  std::string codecs = "codecs   built in:";
  std::string plugins;
  for (const CodecEntry* codec : codec_registry()) {
    if (!codec->plugin) codecs += fmt::format(" {}", codec->name);
    if (!codec->plugin || codec->variants.empty()) continue;
    const std::string state = fmt::format("{}: {}", codec->name, plugin_state(*codec));
    plugins += std::string(column, ' ') + wrapped(state, column + 2, column) + "\n";
  }
  line(codecs);
  out += plugins;
  std::string layouts = "layouts ";
  for (const LayoutEntry& layout : layout_registry()) layouts += fmt::format(" {}", layout.name);
  line(layouts);
  out += "plug-in folders\n";
  for (const std::string& folder : plugin_folders("")) {
    out += fmt::format("         {}{}\n", printable(folder),
                       is_directory(folder) ? "" : "  (not there)");
  }
  return out;
}

/// The commands, in the order in which --help lists them.
constexpr std::array adders = {add_repack,     add_concat,     add_export,   add_verify,
                               add_info,       add_recover,    add_options,  add_filter_args,
                               add_train_book, add_profile,    add_schedule, add_simulate,
                               add_man,        add_completions};

std::unique_ptr<CLI::App> make_parser(bool& version, std::map<std::string, Command>& commands) {
  auto app = std::make_unique<CLI::App>(main_description, "tailrace");
  app->formatter(std::make_shared<HelpFormatter>());
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Options");
  app->add_flag("--version", version,
                "Versions of Tailrace, HDF5 and MPI; codecs; plug-in folders.")
      ->group("Options");
  app->require_subcommand(0, 1);
  for (const auto add : adders) {
    Command command = add(*app);
    commands[app->get_subcommands({}).back()->get_name()] = std::move(command);
  }
  // Listed for --help only: main() hands over to tailrace-bench before anything is parsed.
  app->add_subcommand("bench", "Compare layouts, codecs and HDF5's own path (tailrace-bench)");
  for (CLI::App* sub : app->get_subcommands({})) sub->group("Commands");
  return app;
}

/// What the parser says of a first word that is no command, and which one may have been meant.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word.empty() || word.starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("there is no command \"{}\"{}", word, did_you_mean(word, known));
}

/// Parse, and do what is asked. Exit code.
int run(MpiSession& mpi, Comm& comm, int argc, char** argv) {
  bool version = false;
  std::map<std::string, Command> commands;
  const std::unique_ptr<CLI::App> app = make_parser(version, commands);
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
    const std::string unknown = command.empty() ? unknown_command(*app, argc, argv) : "";
    const std::string line =
        fmt::format("{0}: {1}; see {0} --help", program, unknown.empty() ? error.what() : unknown);
    if (speaks) print_to_stderr(printable(line));
    return exit_usage;
  }
  if (version) {
    if (speaks) print_text(version_text());
    return exit_done;
  }
  if (command_name().empty()) {
    if (speaks) fmt::print(stderr, "{}", app->help());
    return exit_usage;
  }
  Session session{mpi, comm, command_name()};
  return commands.at(session.command)(session);
}

}  // namespace

int main(int argc, char** argv) {
  // A file that would grow beyond `ulimit -f` is an error with a message, not a silent end.
  std::signal(SIGXFSZ, SIG_IGN);
  text_room() = room_of(STDOUT_FILENO);
  if (argc >= 2 && std::strcmp(argv[1], "bench") == 0) become_bench(argc, argv);
  MpiSession mpi(&argc, &argv);
  const std::unique_ptr<Comm> comm = mpi.world();
  try {
    const int code = run(mpi, *comm, argc, argv);
    silence_hdf5();
    return end_of_output("tailrace", code);
  } catch (const std::exception& error) {
    // The other ranks may be waiting for this one: leaving without MPI_Finalize ends them as well.
    print_to_stderr(printable(fmt::format("tailrace: rank {}: {}", comm->rank(), error.what())));
    std::fflush(nullptr);
    std::_Exit(exit_resources);
  }
}
