// HDF5 handles that close themselves, HDF5's error text, and the one lock around HDF5 calls.
//
// A serial HDF5 library is not thread-safe, and it prints its error stack to stderr by default. All
// code here that calls HDF5 holds an Hdf5Scope meanwhile. The scope takes the process's lock
// (recursive, so that scopes nest) and silences the automatic printing until it ends. What the
// application has set for its own HDF5 calls stays unchanged.

#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "trz/base/status.hpp"

namespace tailrace {

/// The lock for every HDF5 call of the process. Prefer Hdf5Scope.
std::recursive_mutex& hdf5_mutex();

/// Holds the HDF5 lock and keeps HDF5 from printing. Not collective. Any thread.
class Hdf5Scope {
 public:
  Hdf5Scope();
  ~Hdf5Scope();
  Hdf5Scope(const Hdf5Scope&) = delete;
  Hdf5Scope& operator=(const Hdf5Scope&) = delete;
  /// True if this thread is within a scope: an HDF5 call is then ours, not the program's.
  static bool held();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

/// Check that our calls reach exactly one HDF5, of the version that we were compiled for. A program
/// may bring an HDF5 without symbol versions (self-built, conda, Spack), which captures all calls
/// of the process, or those that it defines; its structures may differ. Called before any file is
/// created or opened. Not collective.
/// @error unsupported  names the libraries and what to do.
Status check_hdf5_is_ours();

/// Text of HDF5's error stack: the outermost message and, if different, the innermost. Valid
/// directly after the failed call; the next HDF5 call empties the stack.
std::string hdf5_error_text();
/// True if the failed call lacked memory, or if one of our drivers could not read the file. An
/// object that does not open may then be intact. Valid as long as hdf5_error_text().
bool hdf5_lacked_means();

/// Run the body of a function that HDF5 calls back. An exception (out of memory) must not cross
/// HDF5's C frames; it becomes -1, HDF5's failure value.
template <class Work>
auto called_by_hdf5(Work&& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return static_cast<decltype(work())>(-1);
  }
}

/// The Status of a failed HDF5 call: `what`, then HDF5's error text.
Status hdf5_failure(Code code, const std::string& what);

/// Return value of a failed read callback in one of our drivers: -1, with `why` on HDF5's error
/// stack. hdf5_error_text() then contains `why`, not HDF5's "driver read request failed".
herr_t failed_read(const Status& why);
/// A driver request as text: "512 bytes at address 4096".
std::string wanted_text(std::uint64_t address, std::uint64_t n_bytes);

/// The common part of our file driver classes. Raw data and everything else are two kinds of space,
/// so that HDF5 never gives freed metadata space to a chunk without asking the driver. Locks are
/// ignored. The caller sets the other callbacks. @param value  driver number for HDF5 >= 1.14; 512
/// and up are free for private use
H5FD_class_t plain_driver_class(const char* name, int value, std::size_t info_bytes);
/// The driver's id in HDF5; registered on first use, and again if the application called H5close().
hid_t registered_driver(const H5FD_class_t& driver, hid_t& id);
/// The largest address that HDF5 may use.
inline constexpr haddr_t kDriverAddressMax = haddr_t{1} << 62;

/// Owns one hid_t of any kind and releases it exactly once.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  explicit Hdf5Id(hid_t id) : id_(id) {}
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Id() { reset(); }

  bool valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  /// Release the id now. Dropping a reference closes files, datasets, types and lists alike.
  void reset() {
    if (id_ >= 0) H5Idec_ref(id_);
    forget();
  }
  /// Stop owning the id, which other code has closed.
  void forget() { id_ = H5I_INVALID_HID; }
  /// Pass the id to the caller, which must close it.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace tailrace
