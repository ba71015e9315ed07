// See real_hdf5.hpp.

#include "hdf5/real_hdf5.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace tailrace::hdf5_programs {
namespace {

/// The library by the file that has a function which is not among ours. Not by the next one of the
/// search order: Python loads its HDF5 outside of that.
void* find_library() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&H5Pset_fapl_mpio), &found) == 0) return nullptr;
  return dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

RealHdf5 find_functions() {
  RealHdf5 real;
  void* const library = find_library();
  const auto find = [&](const char* name) {
    void* const function = library != nullptr ? dlsym(library, name) : nullptr;
    if (function != nullptr) return function;
    // It was linked against a library that has them all; going on would lose the program's data.
    std::fprintf(stderr, "tailrace: the parallel HDF5 of this process has no %s\n", name);
    std::abort();
  };
#define TAILRACE_HDF5_FIND(name, version) \
  real.name = reinterpret_cast<decltype(&::name)>(find(#name));
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_FIND)
#undef TAILRACE_HDF5_FIND
  return real;
}

}  // namespace

const RealHdf5& real_hdf5() {
  static const RealHdf5 real = find_functions();
  return real;
}

}  // namespace tailrace::hdf5_programs
