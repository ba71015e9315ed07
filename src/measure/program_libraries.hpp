// Libraries that a program loads, and what their files say of themselves: which HDF5, MPI, PnetCDF.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

enum class ProgramKind : std::uint8_t {
  dynamic,    ///< The system's loader loads its libraries, and what LD_PRELOAD names.
  linked_up,  ///< Linked statically as a whole: LD_PRELOAD has no effect.
  script,     ///< "#!": its interpreter is a program.
};

struct LoadedLibrary {
  std::string name;  ///< "libhdf5_openmpi.so.103".
  std::string path;  ///< Empty: not found.
};

struct ProgramLibraries {
  std::string path;         ///< Path of the executable, or of a script's interpreter.
  std::string interpreter;  ///< Line of a script after "#!"; empty for executables.
  ProgramKind kind = ProgramKind::dynamic;
  bool more_rights = false;  ///< Runs with more rights than its caller: LD_PRELOAD is ignored.
  /// Libraries in the loader's order, with those that LD_PRELOAD names.
  std::vector<LoadedLibrary> libraries;
};

/// List what a program would load, without running its code: by ldd, which starts the loader.
/// Libraries that it loads later by dlopen(), as Python does, are not listed. Not collective.
/// @param program  a path, or a name that is searched in PATH
/// @error not_found, invalid_argument (no program), io_error
Result<ProgramLibraries> find_program_libraries(const std::string& program);

/// List what a running process has loaded. Not collective.
/// @error not_found, io_error
Result<ProgramLibraries> find_process_libraries(std::uint64_t process);

/// Run a program and return what it prints on stdout and stderr. Not collective.
/// @error not_found, io_error  it cannot be started, or ends with another exit code than 0
Result<std::string> output_of_program(std::vector<std::string> words);

}  // namespace tailrace
