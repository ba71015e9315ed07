#include "hdf5/preload/unserved.hpp"

#include <dlfcn.h>
#include <hdf5.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_bytes.hpp"
#include "hdf5/opening.hpp"
#include "hdf5/preload/loaded_files.hpp"

namespace tailrace::hdf5_programs {
namespace {

#define TAILRACE_TEXT_OF(number) #number
#define TAILRACE_TEXT(number) TAILRACE_TEXT_OF(number)
/// `tailrace doctor` finds the last words and the version in this library.
constexpr const char* kServes = "which serves programs on a shared parallel HDF5 " TAILRACE_TEXT(
    H5_VERS_MAJOR) "." TAILRACE_TEXT(H5_VERS_MINOR);
#undef TAILRACE_TEXT
#undef TAILRACE_TEXT_OF

/// Version in the text that follows kHdf5VersionText: "1.14.5".
std::string version_in(std::string_view text) {
  return std::string(text.substr(0, text.find_first_not_of("0123456789.-")));
}

/// Loaded files that matter here.
struct Loaded {
  std::vector<std::string> hdf5s;  ///< "HDF5 1.14.5 in FILE".
  bool opened_by_mpi = false;      ///< A library like this one for another HDF5 was called.
};

Loaded find_loaded() {
  Loaded loaded;
  for (const std::string& file : loaded_files()) {
    void* const library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    // A symbol may be that of a dependency.
    const auto own = [&](const char* name) -> void* {
      void* const symbol = dlsym(library, name);
      Dl_info place{};
      const bool here = symbol != nullptr && dladdr(symbol, &place) != 0 && file == place.dli_fname;
      return here ? symbol : nullptr;
    };
    if (void* const other = own("tailrace_hdf5_loaded")) {
      const bool called = reinterpret_cast<int (*)()>(other)() > 1;
      loaded.opened_by_mpi = loaded.opened_by_mpi || called;
    }
    if (const void* const text = own("H5_lib_vers_info_g")) {
      std::string_view version(static_cast<const char*>(text));
      if (version.starts_with(kHdf5VersionText)) version.remove_prefix(kHdf5VersionText.size());
      loaded.hdf5s.push_back("HDF5 " + version_in(version) + " in " + file);
    }
  }
  static_cast<void>(dlerror());
  return loaded;
}

bool is_first_rank() {
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* const rank = environment_variable(name);
    if (rank != nullptr) return std::string_view(rank) == "0";
  }
  return true;
}

/// @returns empty if another library of this kind was called
std::string reason_for_nothing(std::uint64_t n_openings) {
  const Loaded loaded = find_loaded();
  if (loaded.opened_by_mpi) return "";
  if (n_openings > 0) {
    return "the program opened its files without MPI (H5Pset_fapl_mpio); libtailrace_hdf5_serial "
           "serves such files";
  }
  const std::string version =
      loaded.hdf5s.empty() ? FileBytes("/proc/self/exe").number_after(kHdf5VersionText) : "";
  if (!version.empty()) {
    return "the program has HDF5 " + version +
           " linked statically; link it to the shared library (h5pcc -shlib)";
  }
  std::string text = std::string("no call that creates or opens a file reached this library, ") +
                     kServes + "; loaded: ";
  if (loaded.hdf5s.empty()) text += "no HDF5";
  for (const std::string& one : loaded.hdf5s) {
    text += (&one == &loaded.hdf5s.front() ? "" : ", ") + one;
  }
  return text;
}

}  // namespace

void report_nothing(std::uint64_t n_openings) {
  const char* const wanted = environment_variable("TAILRACE_REPORT");
  if (wanted == nullptr || std::string_view(wanted) != "1" || wanted_off()) return;
  int initialised = 0;
  MPI_Initialized(&initialised);
  // Launchers and shells have this library preloaded, too.
  if ((initialised == 0 && n_openings == 0) || !is_first_rank()) return;
  try {
    const std::string why = reason_for_nothing(n_openings);
    if (!why.empty()) std::fprintf(stderr, "tailrace: no file was served: %s\n", why.c_str());
  } catch (const std::exception&) {
    return;  // Without memory, the process ends silently.
  }
}

}  // namespace tailrace::hdf5_programs
