// The process's HDF5 lock, access to HDF5's error stack, and the common part of our file drivers.

#include "hdf5/hdf5_handle.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstring>
#include <new>
#include <string_view>

namespace tailrace {
namespace {

/// File name in errors that our drivers push.
constexpr const char* kPushedBy = "tailrace";

struct StackEnds {
  std::string outermost;
  std::string innermost;
};

/// H5Ewalk callback: stores the first and the last description.
herr_t remember_ends(unsigned n, const H5E_error2_t* error, void* data) {
  return called_by_hdf5([&] {
    auto* ends = static_cast<StackEnds*>(data);
    const std::string text = error->desc != nullptr ? error->desc : "";
    if (n == 0) ends->outermost = text;
    ends->innermost = text;
    return 0;
  });
}

/// Ignored: other ranks have the file open, and a lock would exclude them or fail on parallel file
/// systems.
herr_t ignore_lock(H5FD_t*, hbool_t) { return 0; }
herr_t ignore_unlock(H5FD_t*) { return 0; }

}  // namespace

std::recursive_mutex& hdf5_mutex() {
  // Never destroyed: HDF5's own exit handler may run after our static objects are destroyed. A
  // process that forks while a thread publishes waits until that thread has left HDF5, so that the
  // child finds HDF5 in a consistent state. In the child the lock's owner has another thread
  // number, so the child needs a new lock. The unlock before it fails, but tells the thread
  // sanitizer that the address is unlocked.
  static auto* mutex = [] {
    ::pthread_atfork([] { hdf5_mutex().lock(); }, [] { hdf5_mutex().unlock(); },
                     [] {
                       hdf5_mutex().unlock();
                       new (&hdf5_mutex()) std::recursive_mutex;
                     });
    return new std::recursive_mutex;
  }();
  return *mutex;
}

namespace {
thread_local int n_scopes_of_thread = 0;
}  // namespace

bool Hdf5Scope::held() { return n_scopes_of_thread > 0; }

Hdf5Scope::Hdf5Scope() : lock_(hdf5_mutex()) {
  if (n_scopes_of_thread++ > 0) return;  // Printing is already off.
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Scope::~Hdf5Scope() {
  if (n_scopes_of_thread == 1) H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_);
  --n_scopes_of_thread;
}

namespace {

std::string version_text(unsigned major, unsigned minor, unsigned release) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

/// The file that defines a function, as named by the dynamic linker.
template <class Function>
std::string file_of(Function* function) {
  Dl_info found{};
  const bool known = dladdr(reinterpret_cast<void*>(function), &found) != 0;
  return known && found.dli_fname != nullptr ? found.dli_fname : "an unknown file";
}

/// All loaded files of this process that are named like an HDF5 library.
std::string loaded_hdf5s() {
  std::string text;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        const std::string_view path = object->dlpi_name != nullptr ? object->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).starts_with("libhdf5")) {
          std::string& list = *static_cast<std::string*>(into);
          list += (list.empty() ? "" : ", ") + std::string(path);
        }
        return 0;
      },
      &text);
  return text.empty() ? "none by that name" : text;
}

Status whose_hdf5_is_called() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  // Use functions whose address no program takes: for others a program may show one of its own.
  // They must also be absent from libtailrace_hdf5 (frontends/hdf5).
  const std::string used = file_of(&H5get_libversion);
  std::string apart;
  for (const std::string& other :
       {file_of(&H5FDregister), file_of(&H5Pset_driver), file_of(&H5Zunregister)}) {
    if (other != used) apart = other;
  }
  if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR && apart.empty()) return Status();
  return Status(
      Code::unsupported,
      "Tailrace is built for HDF5 " + version_text(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE) +
          ", but its calls in this program reach HDF5 " + version_text(major, minor, release) +
          " in " + used + (apart.empty() ? "" : ", and some reach " + apart) +
          " (loaded: " + loaded_hdf5s() +
          "); link the program to the HDF5 that Tailrace was built with, or build "
          "Tailrace with the program's (HDF5_ROOT)");
}

}  // namespace

Status check_hdf5_is_ours() {
  // Function addresses are bound when this library is loaded, and do not change.
  static const Status checked = whose_hdf5_is_called();
  return checked;
}

std::string hdf5_error_text() {
  StackEnds ends;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, remember_ends, &ends);
  if (ends.outermost.empty() || ends.outermost == ends.innermost) return ends.innermost;
  return ends.outermost + " (" + ends.innermost + ")";
}

Status hdf5_failure(Code code, const std::string& what) {
  const std::string text = hdf5_error_text();
  if (text.empty()) return Status(code, what);
  // Errors for forms of later versions, which this version can only report as unknown.
  const bool later = text.find("bad version number") != std::string::npos ||
                     text.find("unknown datatype class") != std::string::npos;
  if (!later) return Status(code, what + ": HDF5 says: " + text);
  return Status(Code::unsupported,
                what + ": the file needs HDF5 2.0 or newer, or is damaged; HDF5 " +
                    version_text(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE) + " says: " + text);
}

bool hdf5_lacked_means() {
  bool found = false;
  const auto look = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    const bool ours =
        error->file_name != nullptr && error->file_name == std::string_view(kPushedBy);
    if (ours || error->maj_num == H5E_RESOURCE) *static_cast<bool*>(data) = true;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, look, &found);
  return found;
}

herr_t failed_read(const Status& why) {
  H5Epush2(H5E_DEFAULT, kPushedBy, "read", 0, H5E_ERR_CLS, H5E_IO, H5E_READERROR, "%s",
           why.message().c_str());
  return -1;
}

std::string wanted_text(std::uint64_t address, std::uint64_t n_bytes) {
  return std::to_string(n_bytes) + " bytes at address " + std::to_string(address);
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
  driver.maxaddr = kDriverAddressMax;
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
