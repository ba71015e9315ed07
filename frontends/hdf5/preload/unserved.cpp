#include "hdf5/preload/unserved.hpp"

#include <hdf5.h>
#include <mpi.h>

#include <exception>
#include <string>
#include <vector>

#include "core/file_bytes.hpp"
#include "hdf5/opening.hpp"
#include "report/loaded_files.hpp"

namespace tailrace::hdf5_programs {
namespace {

#define TAILRACE_TEXT_OF(number) #number
#define TAILRACE_TEXT(number) TAILRACE_TEXT_OF(number)
/// `tailrace doctor` finds the last words and the version in this library.
constexpr const char* kServes = "which serves programs on a shared parallel HDF5 " TAILRACE_TEXT(
    H5_VERS_MAJOR) "." TAILRACE_TEXT(H5_VERS_MINOR);
#undef TAILRACE_TEXT
#undef TAILRACE_TEXT_OF

/// @returns empty if another library of this kind was called
std::string reason_for_nothing(std::uint64_t n_openings) {
  if (report::any_library_served()) return "";
  if (n_openings > 0) {
    return "the program opened its files without MPI (H5Pset_fapl_mpio); libtailrace_hdf5_serial "
           "serves such files";
  }
  const std::vector<std::string> loaded = report::loaded_hdf5s();
  const std::string version =
      loaded.empty() ? FileBytes("/proc/self/exe").number_after(kHdf5VersionText) : "";
  if (!version.empty()) {
    return "the program has HDF5 " + version +
           " linked statically; link it to the shared library (h5pcc -shlib)";
  }
  return report::with_loaded(
      std::string("no call that creates or opens a file reached this library, ") + kServes, loaded,
      "HDF5");
}

}  // namespace

void report_nothing(std::uint64_t n_openings) {
  if (!report::reports_at_exit() || wanted_off()) return;
  int initialised = 0;
  MPI_Initialized(&initialised);
  // Launchers and shells have this library preloaded, too.
  if (initialised == 0 && n_openings == 0) return;
  try {
    const std::string why = reason_for_nothing(n_openings);
    if (!why.empty()) report::print_nothing_served("file", why);
  } catch (const std::exception&) {
    return;  // Without memory, the process ends silently.
  }
}

}  // namespace tailrace::hdf5_programs
