// Copies of plug-ins, each bound to the HDF5 that this library is linked to.

#include "container/plugin_binding.hpp"

#include <H5PLextern.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "container/hdf5_handle.hpp"

namespace tailrace {
namespace {

/// Whether plug-ins find the very HDF5 that we call. Asked of the program: RTLD_DEFAULT would look
/// where this library may look, which is more than others see.
bool hdf5_is_in_sight() {
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return false;
  const bool found = dlsym(program, "H5open") == reinterpret_cast<void*>(&H5open);
  dlclose(program);
  return found;
}

/// The file that our HDF5 was loaded from.
std::string our_hdf5_path() {
  Dl_info object{};
  if (dladdr(reinterpret_cast<void*>(&H5open), &object) == 0) return "";
  return object.dli_fname != nullptr ? object.dli_fname : "";
}

Status copy_bytes(const PluginLibrary& library, int to) {
  const int from = ::open(library.file_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return status_from_errno(errno, library.file_path);
  struct stat facts {};
  Status copied = ::fstat(from, &facts) == 0 ? Status() : status_from_errno(errno, "fstat");
  off_t done = 0;
  while (copied.ok() && done < facts.st_size) {
    const ssize_t n = ::sendfile(to, from, &done, static_cast<std::size_t>(facts.st_size - done));
    if (n < 0 && errno != EINTR) copied = status_from_errno(errno, library.file_path);
    if (n == 0) copied = Status(Code::io_error, library.file_path + " ended early");
  }
  ::close(from);
  return copied;
}

/// Load the plug-in a second time, which takes a file of its own. It lies in memory; its descriptor
/// stays open, since the linker knows libraries by their names, and numbers are used again.
Result<void*> load_copy(const PluginLibrary& library) {
  const int descriptor = ::memfd_create(library.file_name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return status_from_errno(errno, "memfd_create for " + library.file_name);
  if (const Status copied = copy_bytes(library, descriptor); !copied.ok()) {
    ::close(descriptor);
    return copied;
  }
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* words = dlerror();
  const std::string why = words != nullptr ? words : "dlopen failed";
  ::close(descriptor);
  return Status(Code::plugin_missing, "a copy of " + library.file_path + ": " + why);
}

Result<const H5Z_class2_t*> bound_copy(const PluginLibrary& library) {
  const Result<void*> handle = load_copy(library);
  if (!handle.ok()) return handle.status();
  using Init = int (*)(const char*);
  using GetInfo = const void* (*)();
  const auto init = reinterpret_cast<Init>(dlsym(*handle, "init_filter"));
  const auto get_info = reinterpret_cast<GetInfo>(dlsym(*handle, "H5PLget_plugin_info"));
  const std::string ours = our_hdf5_path();
  if (init == nullptr || get_info == nullptr || init(ours.c_str()) < 0) {
    return Status(Code::plugin_missing,
                  library.file_path + " did not take " + ours + " as its HDF5");
  }
  return static_cast<const H5Z_class2_t*>(get_info());
}

}  // namespace

Result<const H5Z_class2_t*> class_for_our_hdf5(const PluginLibrary& library) {
  const H5Z_class2_t* own = library.filter_class;
  if (own->can_apply == nullptr && own->set_local == nullptr) return own;
  if (hdf5_is_in_sight()) return own;
  if (!library.exports("init_filter")) {
    return Status(Code::unsupported,
                  library.file_path +
                      " asks HDF5 for the field's type and shape when a dataset is made, and "
                      "cannot be told which HDF5 of this process is meant; it reads. To write, "
                      "take trz, portable, deflate, or a plug-in of the hdf5plugin package");
  }
  const Hdf5Scope scope;
  static auto* copies = new std::map<const PluginLibrary*, const H5Z_class2_t*>;
  const auto found = copies->find(&library);
  if (found != copies->end()) return found->second;
  Result<const H5Z_class2_t*> copy = bound_copy(library);
  if (copy.ok()) copies->emplace(&library, *copy);
  return copy;
}

}  // namespace tailrace
