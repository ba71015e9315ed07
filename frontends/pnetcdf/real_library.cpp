// See real_library.hpp.

#include "pnetcdf/real_library.hpp"

#include <dlfcn.h>
#include <pnetcdf.h>

#include <string_view>

#include "core/environment.hpp"

#ifndef TAILRACE_REAL_PNETCDF
#define TAILRACE_REAL_PNETCDF ""
#endif

namespace tailrace::pnetcdf {
namespace {

/// Load a library, unless it is Tailrace itself. @returns its handle, or nullptr
void* load(const char* path) {
  if (path == nullptr || *path == '\0') return nullptr;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  void* theirs = dlsym(library, "ncmpi_inq_libvers");
  if (theirs != nullptr && theirs != reinterpret_cast<void*>(&ncmpi_inq_libvers)) return library;
  dlclose(library);
  return nullptr;
}

void* find_library() {
  // If preloaded, the program's own library is next.
  void* next = dlsym(RTLD_NEXT, "ncmpi_inq_libvers");
  if (next != nullptr && next != reinterpret_cast<void*>(&ncmpi_inq_libvers)) return RTLD_NEXT;
  if (const char* named = environment_variable("TAILRACE_PNETCDF_LIBRARY")) return load(named);
  const char* const usual[] = {TAILRACE_REAL_PNETCDF, "libpnetcdf.so.6",  "libpnetcdf.so.5",
                               "libpnetcdf.so.4",     "libpnetcdf.so.0d", "libpnetcdf.so"};
  for (const char* path : usual) {
    if (void* library = load(path)) return library;
  }
  return nullptr;
}

}  // namespace

void* real_symbol(const char* name) {
  static void* const library = find_library();
  // RTLD_NEXT is no null pointer on glibc, but POSIX does not say so.
  if (library == nullptr && RTLD_NEXT != nullptr) return nullptr;
  return dlsym(library, name);
}

bool switched_off() {
  static const bool off = [] {
    const char* setting = environment_variable("TAILRACE_PNETCDF");
    return setting != nullptr && std::string_view(setting) == "off";
  }();
  return off;
}

}  // namespace tailrace::pnetcdf
