// See real_hdf5.hpp.

#include "hdf5/real_hdf5.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "hdf5/hdf5_handle.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Substitute for a function that an older release of HDF5 lacks. A program that calls it did not
/// find it in that release.
template <class Function>
struct Lacking;
template <class Returned, class... Given>
struct Lacking<Returned (*)(Given...)> {
  static Returned call(Given...) {
    std::fputs(
        "tailrace: the program called a function that the HDF5 of this process does not have\n",
        stderr);
    return static_cast<Returned>(-1);
  }
};

RealHdf5 find_functions() {
  RealHdf5 real;
  // Use the library's file, not the next library in the search order: Python loads its HDF5 outside
  // of that order.
  Dl_info found{};
  void* const library = dladdr(reinterpret_cast<void*>(&H5get_libversion), &found) != 0
                            ? dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                            : nullptr;
#define TAILRACE_HDF5_FIND(name, version)                                                        \
  real.name =                                                                                    \
      library == nullptr ? nullptr : reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (real.name == nullptr) real.name = &Lacking<decltype(&::name)>::call;
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_FIND)
#undef TAILRACE_HDF5_FIND
  return real;
}

}  // namespace

const RealHdf5& real_hdf5() {
  static const RealHdf5 real = find_functions();
  return real;
}

const Status& hdf5_is_served() {
  static const Status served = check_hdf5_is_ours();
  return served;
}

}  // namespace tailrace::hdf5_programs
