// Files that are loaded into the process, and the report of a process that Tailrace has not served.
//
// Header only: the preloaded HDF5 library, which contains no engine, uses it, too.

#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment.hpp"
#include "core/file_bytes.hpp"

namespace tailrace::report {

/// List the program and its shared libraries in load order; the program's path is empty.
inline std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(object->dlpi_name);
        return 0;
      },
      &files);
  return files;
}

/// Find a symbol that a loaded file itself defines; null if only a dependency has it.
inline void* symbol_of_file(const std::string& file, const char* name) {
  void* const library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    static_cast<void>(dlerror());
    return nullptr;
  }
  void* const symbol = dlsym(library, name);
  Dl_info place{};
  const bool here = symbol != nullptr && dladdr(symbol, &place) != 0 && file == place.dli_fname;
  dlclose(library);
  static_cast<void>(dlerror());
  return here ? symbol : nullptr;
}

/// True if TAILRACE_REPORT=1, and this process is rank 0 by its launcher's environment, or has no
/// launcher. For the end of a process, when MPI cannot tell the rank.
inline bool reports_at_exit() {
  if (!environment_is("TAILRACE_REPORT", "1")) return false;
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* const rank = environment_variable(name);
    if (rank != nullptr) return std::string_view(rank) == "0";
  }
  return true;
}

/// Functions by which the libraries for unchanged programs tell if they have served the program:
/// they return 2 in that case, else 1.
inline constexpr const char* kLoadedCalls[] = {
    "tailrace_hdf5_loaded", "tailrace_hdf5_serial_loaded", "tailrace_pnetcdf_loaded"};

/// True if any loaded library of Tailrace has served the program.
inline bool any_library_served() {
  for (const std::string& file : loaded_files()) {
    for (const char* const name : kLoadedCalls) {
      void* const call = symbol_of_file(file, name);
      if (call != nullptr && reinterpret_cast<int (*)()>(call)() > 1) return true;
    }
  }
  return false;
}

/// List the loaded HDF5s: "HDF5 1.14.5 in FILE".
inline std::vector<std::string> loaded_hdf5s() {
  std::vector<std::string> found;
  for (const std::string& file : loaded_files()) {
    const void* const text = symbol_of_file(file, "H5_lib_vers_info_g");
    if (text == nullptr) continue;
    std::string_view version(static_cast<const char*>(text));
    if (version.starts_with(kHdf5VersionText)) version.remove_prefix(kHdf5VersionText.size());
    version = version.substr(0, version.find_first_not_of("0123456789.-"));
    found.push_back("HDF5 " + std::string(version) + " in " + file);
  }
  return found;
}

/// Text for a call that never came: "WHAT; loaded: A, B", or "WHAT; loaded: no KIND".
inline std::string with_loaded(std::string what, const std::vector<std::string>& loaded,
                               const char* kind) {
  what += "; loaded: ";
  if (loaded.empty()) what += std::string("no ") + kind;
  for (const std::string& one : loaded) what += (&one == &loaded.front() ? "" : ", ") + one;
  return what;
}

/// Print why no file, or no chunk, was served.
inline void print_nothing_served(const char* what, const std::string& why) {
  std::fprintf(stderr, "tailrace: no %s was served: %s\n", what, why.c_str());
}

}  // namespace tailrace::report
