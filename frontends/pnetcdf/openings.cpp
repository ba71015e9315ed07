// See openings.hpp. The report comes at the end of the process, since no call need reach this
// library: a program may have PnetCDF linked statically, or write through HDF5.

#include "pnetcdf/openings.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include "core/file_bytes.hpp"
#include "pnetcdf/real_library.hpp"
#include "report/loaded_files.hpp"

namespace tailrace::pnetcdf {
namespace {

/// PnetCDF's own text about its version, in its library and in programs that link it statically.
constexpr const char* kVersionText = "PnetCDF library version ";

std::array<std::atomic<bool>, 3> seen{};

bool has_seen(Opening opening) { return seen[static_cast<std::size_t>(opening)]; }

bool any_call() {
  return has_seen(Opening::by_tailrace) || has_seen(Opening::by_real_library) ||
         has_seen(Opening::failed);
}

std::vector<std::string> loaded_pnetcdfs() {
  std::vector<std::string> found;
  for (const std::string& file : report::loaded_files()) {
    if (report::symbol_of_file(file, "ncmpi_create") == nullptr) continue;
    if (report::symbol_of_file(file, "tailrace_pnetcdf_loaded") != nullptr) continue;
    found.push_back("PnetCDF " + FileBytes(file).number_after(kVersionText) + " in " + file);
  }
  return found;
}

/// @returns empty if another library of Tailrace has served the program
std::string reason_for_nothing() {
  if (report::any_library_served()) return "";
  if (has_seen(Opening::by_real_library)) {
    return "the program opened classic netCDF files only, which the real PnetCDF serves; Tailrace "
           "serves the files that a program creates, and netCDF-4 files";
  }
  if (has_seen(Opening::failed)) return "each call that creates or opens a file failed";
  const std::vector<std::string> loaded = loaded_pnetcdfs();
  const std::string version =
      loaded.empty() ? FileBytes("/proc/self/exe").number_after(kVersionText) : "";
  if (!version.empty()) {
    return "the program has PnetCDF " + version +
           " linked statically; link it to the shared library, or to Tailrace's libpnetcdf.a "
           "(docs/pnetcdf.md)";
  }
  return report::with_loaded(
      "no call that creates or opens a file (ncmpi_create, ncmpi_open) reached this library, which "
      "serves programs on PnetCDF",
      loaded, "other PnetCDF");
}

__attribute__((destructor)) void report_nothing() {
  if (has_seen(Opening::by_tailrace) || switched_off() || !report::reports_at_exit()) return;
  int initialised = 0;
  MPI_Initialized(&initialised);
  // Launchers and shells have this library preloaded, too.
  if (initialised == 0 && !any_call()) return;
  try {
    const std::string why = reason_for_nothing();
    if (!why.empty()) report::print_nothing_served("file", why);
  } catch (const std::exception&) {
    return;  // Without memory, the process ends silently.
  }
}

}  // namespace

void count_opening(Opening opening) { seen[static_cast<std::size_t>(opening)] = true; }

}  // namespace tailrace::pnetcdf

/// Symbol by which Tailrace's other libraries recognize this one.
/// @returns 2 once a file has been served, else 1
extern "C" __attribute__((visibility("default"), used)) int tailrace_pnetcdf_loaded(void) {
  return tailrace::pnetcdf::has_seen(tailrace::pnetcdf::Opening::by_tailrace) ? 2 : 1;
}
