// See real_hdf5.hpp.

#include "hdf5/real_hdf5.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "hdf5/hdf5_handle.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// The file that holds a function, as the dynamic linker names it.
const char* file_of_function(void* function) {
  Dl_info found{};
  return function != nullptr && dladdr(function, &found) != 0 ? found.dli_fname : nullptr;
}

/// By a function that is not among ours, and that every HDF5 has.
const char* file_of_hdf5() { return file_of_function(reinterpret_cast<void*>(&H5get_libversion)); }

/// Stands in for what another HDF5 lacks: who calls that has not found it in his own.
template <class Function>
struct Lacking;
template <class Returned, class... Given>
struct Lacking<Returned (*)(Given...)> {
  static Returned call(Given...) {
    std::fputs("tailrace: a function was called that the HDF5 of this process lacks\n", stderr);
    return static_cast<Returned>(-1);
  }
};

RealHdf5 find_functions() {
  RealHdf5 real;
  // The library by its file, not the next one of the search order: Python loads its HDF5 outside of
  // that.
  const char* const file = file_of_hdf5();
  void* const library = file != nullptr ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
#define TAILRACE_HDF5_FIND(name, version)                                                        \
  real.name =                                                                                    \
      library == nullptr ? nullptr : reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (real.name == nullptr) real.name = &Lacking<decltype(&::name)>::call;
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_FIND)
#undef TAILRACE_HDF5_FIND
  return real;
}

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;

  std::string text() const {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  }
};

Version version_there() {
  Version there;
  H5get_libversion(&there.major, &there.minor, &there.release);
  return there;
}

constexpr Version version_here{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE};

}  // namespace

const RealHdf5& real_hdf5() {
  static const RealHdf5 real = find_functions();
  return real;
}

bool hdf5_is_served() {
  static const bool served = [] {
    const char* const parallel = file_of_function(reinterpret_cast<void*>(&H5Pset_fapl_mpio));
    const char* const file = file_of_hdf5();
    return parallel != nullptr && file != nullptr && std::string(parallel) == file &&
           check_hdf5_is_ours().ok();
  }();
  return served;
}

std::string why_not_served() {
  const char* const file = file_of_hdf5();
  return "this libtailrace_hdf5 serves parallel HDF5 " + version_here.text() +
         ", but the program's calls reach HDF5 " + version_there().text() + " in " +
         (file != nullptr ? file : "an unknown file") +
         ", which therefore writes its files alone (docs/hdf5.md)";
}

}  // namespace tailrace::hdf5_programs
