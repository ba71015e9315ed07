// tailrace-lab: the laboratory. Its commands serve developers of Tailrace, studies of schedules and
// the training of codecs; an application that writes files does not need them.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/environment.hpp"
#include "lab_commands.hpp"
#include "program.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::cli;

constexpr const char* kLabDescription =
    R"(tailrace-lab: simulate schedules and runs, train a shared book, compare methods

Examples:
  tailrace-lab schedule --random n=50,seed=7
  tailrace-lab simulate --ranks 1024
  tailrace-lab train-book step.h5 --only density --bound rel=1e-4 -o density.book
  mpiexec -n 2 tailrace-lab bench --workload nyx
)";

/// True if a launcher started this process, and not as its first: such a process stays silent.
bool is_later_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* text = environment_variable(name);
    if (text != nullptr) return std::string(text) != "0";
  }
  return false;
}

/// Replace this process by tailrace-bench, a separate program because it links the parallel HDF5.
/// Never returns. Call before MPI_Init: a process image can initialize MPI only once.
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
        "tailrace-lab bench: tailrace-bench was not found next to {} or in ../libexec/tailrace",
        printable(self.string())));
  }
  std::exit(kExitUsage);
}

std::string version_text() { return fmt::format("tailrace-lab {}\n", TAILRACE_VERSION); }

/// Entry for --help only: main() starts tailrace-bench before it parses arguments.
void list_bench(CLI::App& app) {
  app.add_subcommand("bench", "Compare layouts, codecs and HDF5's own path (tailrace-bench)");
}

constexpr std::array adders = {add_schedule, add_simulate, add_train_book};

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], "bench") == 0) become_bench(argc, argv);
  return run_program({"tailrace-lab", kLabDescription, adders, version_text, list_bench}, argc,
                     argv);
}
