#include "hdf5_serial/serial_hdf5.hpp"

#include <dlfcn.h>
#include <serial_call_nodes.inc>

namespace tailrace::hdf5_serial {
namespace {

void* library() {
  // Never closed. The program's first HDF5 call triggers this lookup, so HDF5 is loaded then. If it
  // is loaded later by name, a later call finds it.
  static void* found = nullptr;
  void* known = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (known == nullptr) {
    known = dlopen(TAILRACE_SERIAL_HDF5, RTLD_LAZY | RTLD_NOLOAD);
    if (known == nullptr) static_cast<void>(dlerror());
    __atomic_store_n(&found, known, __ATOMIC_RELEASE);
  }
  return known;
}

/// Find HDF5's variable at its effective address: a program linked to HDF5 holds a copy in its own
/// memory.
const hid_t* find_id(const char* name, const char* node) {
  const void* found = dlvsym(RTLD_DEFAULT, name, node);
  if (found == nullptr) static_cast<void>(dlerror());
  if (found == nullptr) found = find_in_hdf5(name);
  return static_cast<const hid_t*>(found);
}

const SerialHdf5* look_up() {
  static SerialHdf5 hdf5;
  bool complete = true;
#define TAILRACE_SERIAL_FIND(name)                                      \
  hdf5.name = reinterpret_cast<decltype(&::name)>(find_in_hdf5(#name)); \
  complete = complete && hdf5.name != nullptr;
  TAILRACE_SERIAL_USED(TAILRACE_SERIAL_FIND)
#undef TAILRACE_SERIAL_FIND
#define TAILRACE_SERIAL_FIND_ID(name)               \
  hdf5.name = find_id(#name, TAILRACE_NODE_##name); \
  complete = complete && hdf5.name != nullptr;
  TAILRACE_SERIAL_IDS(TAILRACE_SERIAL_FIND_ID)
#undef TAILRACE_SERIAL_FIND_ID
  if (!complete) return nullptr;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  if (hdf5.H5get_libversion(&major, &minor, &release) < 0) return nullptr;
  return major == H5_VERS_MAJOR && minor == H5_VERS_MINOR ? &hdf5 : nullptr;
}

}  // namespace

void* find_in_hdf5(const char* name) {
  void* const hdf5 = library();
  return hdf5 != nullptr ? dlsym(hdf5, name) : nullptr;
}

const SerialHdf5* serial_hdf5() {
  static const SerialHdf5* const found = look_up();
  return found;
}

}  // namespace tailrace::hdf5_serial
