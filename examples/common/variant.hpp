// Variants: executables of the same objects that hold different libraries, NAME, NAME-hdf5 and
// NAME-pnetcdf side by side in a folder; and the library that limits storage, libwritelimit.so.
//
// Both are settled before MPI starts, by executing anew.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace app {

/// What the name of this executable ends in: "", "-hdf5" or "-pnetcdf". Defined once in each
/// variant.
const char* linked_suffix();

/// This executable.
std::filesystem::path own_program();
/// This application's executable whose name ends in `suffix`. Throws Unavailable, with `reason`
/// ("--output hdf5", say) in front, if it was not built.
std::filesystem::path variant_of_program(const std::string& suffix, const std::string& reason);

enum class Transfer { write, read };
/// Make libwritelimit.so limit this process, once it has started anew, to so many bytes per second
/// of writes or reads below the folder of `path`. True if it has to start anew for that.
/// Throws Unavailable if the library was not built.
bool limit_storage(Transfer transfer, double bytes_per_s, const std::string& path);
/// Bytes that this process has read or written below the limited folder; 0 without that library.
std::uint64_t limited_bytes(Transfer transfer);

/// Does not return but for an exception.
[[noreturn]] void execute_anew(const std::filesystem::path& program, char** argv);

}  // namespace app
