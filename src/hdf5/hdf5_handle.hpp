// HDF5 handles that close themselves, HDF5's error text, and the one lock around HDF5 calls.
//
// A serial HDF5 library is not thread-safe, and its error stack is printed to stderr unless told
// otherwise. Whoever in src/container calls HDF5 holds an Hdf5Scope meanwhile: it takes the
// process's lock (recursive, so that scopes nest) and silences the automatic printing until it
// ends, without changing what the application has set for its own HDF5 calls.

#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "trz/base/status.hpp"

namespace tailrace {

/// The lock that every HDF5 call of the process goes under. Prefer Hdf5Scope.
std::recursive_mutex& hdf5_mutex();

/// Holds the lock and keeps HDF5 from printing. Not collective. Any thread.
class Hdf5Scope {
 public:
  Hdf5Scope();
  ~Hdf5Scope();
  Hdf5Scope(const Hdf5Scope&) = delete;
  Hdf5Scope& operator=(const Hdf5Scope&) = delete;
  /// Whether this thread is within one: then a call of HDF5's is ours, and not the program's.
  static bool held();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

/// Whether our calls reach an HDF5 of the version that we were compiled for, and one alone. A
/// program that brings one without symbol versions of its own (self-built, conda, Spack) takes all
/// calls of the process, or those that it holds, and its structures may differ. Comes before any
/// file is made or opened. Not collective.
/// @error unsupported  names the libraries and what to do.
Status check_hdf5_is_ours();

/// What HDF5's error stack says: the outermost message and, where it differs, the innermost.
/// Valid directly after the failed call; the next HDF5 call empties the stack.
std::string hdf5_error_text();
/// True if the failed call lacked memory, or one of our drivers could not read the file: then an
/// object that does not open need not be damaged or gone. Valid as long as hdf5_error_text().
bool hdf5_lacked_means();

/// Do the work of a function that HDF5 calls back: an exception (no memory) must not cross its C
/// frames and becomes -1, its word for failure.
template <class Work>
auto called_by_hdf5(Work&& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return static_cast<decltype(work())>(-1);
  }
}

/// The Status of a failed HDF5 call: `what`, then HDF5's own words.
Status hdf5_failure(Code code, const std::string& what);

/// What a reading callback of a driver of ours returns when it fails: -1, with `why` on HDF5's
/// error stack. Whoever asks hears that then, and not HDF5's "driver read request failed".
herr_t failed_read(const Status& why);
/// "512 bytes at address 4096": what a driver was asked for.
std::string wanted_text(std::uint64_t address, std::uint64_t n_bytes);

/// The class of a file driver of ours: what they have alike. Two kinds of space, raw and other, so
/// that freed metadata is never given to a chunk unasked; locks are ignored. The other callbacks
/// are the caller's. @param value  for HDF5 >= 1.14; 512 and up are free for private use.
H5FD_class_t plain_driver_class(const char* name, int value, std::size_t info_bytes);
/// The driver's id in HDF5, registered on first use and again if the application ran H5close().
hid_t registered_driver(const H5FD_class_t& driver, hid_t& id);
/// The largest address that HDF5 may use.
inline constexpr haddr_t driver_address_max = haddr_t{1} << 62;

/// Owns one hid_t of any kind and gives it back to HDF5 exactly once.
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
  /// Give the id back now. Dropping a reference closes files, datasets, types and lists alike.
  void reset() {
    if (id_ >= 0) H5Idec_ref(id_);
    forget();
  }
  /// Stop owning the id: somebody else has closed it.
  void forget() { id_ = H5I_INVALID_HID; }
  /// Hand the id to somebody else to close.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace tailrace
