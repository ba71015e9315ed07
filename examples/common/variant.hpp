// Variants: executables NAME, NAME-hdf5 and NAME-pnetcdf in one folder, made of the same objects
// with different libraries. Also the library that limits storage, libwritelimit.so.
//
// Both are selected before MPI starts, by executing the program again.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace app {

/// Ending of this executable's name: "", "-hdf5" or "-pnetcdf". Each variant defines this function
/// once.
const char* linked_suffix();

/// Path of this executable.
std::filesystem::path own_program();
/// Path of this application's executable with the ending `suffix`. Throws Unavailable, with
/// `reason` in front ("--output hdf5", for instance), if it was not built.
std::filesystem::path variant_of_program(const std::string& suffix, const std::string& reason);

enum class Transfer { write, read };
/// Makes libwritelimit.so limit this process, after a restart, to `bytes_per_s` of writes or reads
/// below the folder of `path`. Returns true if the process must restart. Throws Unavailable if the
/// library was not built.
bool limit_storage(Transfer transfer, double bytes_per_s, const std::string& path);
/// Bytes that this process has read or written below the limited folder; 0 without that library.
std::uint64_t limited_bytes(Transfer transfer);

/// Replaces the process. Returns only by an exception.
[[noreturn]] void execute_anew(const std::filesystem::path& program, char** argv);

}  // namespace app
