// The process's HDF5 lock and the reading of HDF5's error stack.

#include "hdf5/hdf5_handle.hpp"

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

}  // namespace tailrace
