// The two reasons for executing another program: another library, and a limit of writes.

#include "common/relaunch.hpp"

#include <filesystem>
#include <string>

#include "common/variant.hpp"

namespace app {
namespace {

std::string suffix_for(const std::string& output) {
  if (output == "none") return linked_suffix();
  if (output.starts_with("hdf5")) return "-hdf5";
  return output == "pnetcdf" ? "-pnetcdf" : "";
}

}  // namespace

void relaunch_if_needed(char** argv, const CommonOptions& options) {
  const std::string& output = options.output.output;
  const std::string suffix = suffix_for(output);
  const bool here = suffix == linked_suffix();
  const std::filesystem::path program =
      here ? own_program() : variant_of_program(suffix, "--output " + output);
  const bool limited = limit_storage(Transfer::write, options.write_limit, options.output.path);
  if (!here || limited) execute_anew(program, argv);
}

}  // namespace app
