// The process's HDF5 lock, the reading of HDF5's error stack, what our file drivers have alike.

#include "hdf5/hdf5_handle.hpp"

#include <cstring>

namespace tailrace {
namespace {

struct StackEnds {
  std::string outermost;
  std::string innermost;
};

/// H5Ewalk callback: remembers the first and the last description.
herr_t remember_ends(unsigned n, const H5E_error2_t* error, void* data) {
  auto* ends = static_cast<StackEnds*>(data);
  const std::string text = error->desc != nullptr ? error->desc : "";
  if (n == 0) ends->outermost = text;
  ends->innermost = text;
  return 0;
}

/// Other ranks hold the file open; a lock would shut them out or fail on parallel file systems.
herr_t ignore_lock(H5FD_t*, hbool_t) { return 0; }
herr_t ignore_unlock(H5FD_t*) { return 0; }

}  // namespace

std::recursive_mutex& hdf5_mutex() {
  // Never destroyed: HDF5's own exit handler may run after our static objects are gone.
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

Hdf5Scope::Hdf5Scope() : lock_(hdf5_mutex()) {
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Scope::~Hdf5Scope() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

std::string hdf5_error_text() {
  StackEnds ends;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, remember_ends, &ends);
  if (ends.outermost.empty() || ends.outermost == ends.innermost) return ends.innermost;
  return ends.outermost + " (" + ends.innermost + ")";
}

Status hdf5_failure(Code code, const std::string& what) {
  const std::string text = hdf5_error_text();
  return Status(code, text.empty() ? what : what + ": HDF5 says: " + text);
}

H5FD_class_t plain_driver_class(const char* name, [[maybe_unused]] int value,
                                std::size_t info_bytes) {
  H5FD_class_t driver;
  std::memset(&driver, 0, sizeof(driver));
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(value);
#endif
  driver.name = name;
  driver.maxaddr = driver_address_max;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = info_bytes;
  driver.lock = ignore_lock;
  driver.unlock = ignore_unlock;
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  static_assert(sizeof(kinds) == sizeof(driver.fl_map));
  std::memcpy(driver.fl_map, kinds, sizeof(kinds));
  return driver;
}

hid_t registered_driver(const H5FD_class_t& driver, hid_t& id) {
  if (id < 0 || H5Iget_type(id) != H5I_VFL) id = H5FDregister(&driver);
  return id;
}

}  // namespace tailrace
