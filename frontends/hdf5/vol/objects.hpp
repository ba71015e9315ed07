// The objects that the connector returns to HDF5 for a program's objects, and their relation to
// HDF5's native ones.
//
//  program's id --> HDF5 --> Object --+- under: native object, for calls that HDF5 serves
//                                     +- id: native id, for the serving calls
//
// Native ids never reach the program. Most objects (groups, attributes, types) need none; it is
// created from the object's token when a serving call needs it.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <H5VLconnector.h>

#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {

/// One opening of a file: by an id of the program, or by a link or mount that leads to its objects.
/// A list of all openings is used to find the file that holds an object.
struct OpenedFile : std::enable_shared_from_this<OpenedFile> {
  OpenedFile();
  ~OpenedFile();
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  /// Native id: a session's file, or one that only HDF5 serves.
  hid_t id = H5I_INVALID_HID;
  unsigned long number = 0;  ///< HDF5's file number, the same for all ids of a file.
  /// Replacement of `id` after the program has closed it while objects stay open; calls on these
  /// need one.
  hid_t other_id = H5I_INVALID_HID;
  bool owns_other = false;  ///< False if the session owns other_id.
  /// Second native object of the file, without an id. HDF5 sees it behind the program's id. So HDF5
  /// maps an object's file to the program's id instead of `id`.
  void* shown = nullptr;
  bool open = false;
  bool closes_objects = false;  ///< Opened with H5F_CLOSE_STRONG.
};

/// Mark of an Object. An object behind an external link may have this connector by its access list,
/// but be a bare native object without this mark. That happens if a call by a native id followed
/// the link.
constexpr std::uint64_t kObjectMark = 0x7461696c76306c31;

struct Object {
  std::uint64_t mark = kObjectMark;
  void* under = nullptr;
  bool owns_under = false;  ///< False if `under` belongs to `id`.
  bool closed = false;      ///< Closing has failed; HDF5 keeps the id and closes it again.
  H5I_type_t type = H5I_BADID;
  hid_t id = H5I_INVALID_HID;
  std::shared_ptr<OpenedFile> file;
};

inline Object& object_of(void* given) { return *static_cast<Object*>(given); }
inline bool is_ours(const void* given) {
  return given != nullptr && static_cast<const Object*>(given)->mark == kObjectMark;
}
inline void* under_of(void* given) {
  return is_ours(given) ? static_cast<Object*>(given)->under : given;
}
/// Native object that HDF5 sees behind the program's id.
inline void* shown_of(const Object& object) {
  return object.type == H5I_FILE && object.id >= 0 ? object.file->shown : object.under;
}

/// HDF5's native connector.
hid_t native_connector();

/// Table of the serving calls (program_calls.cpp).
const RealHdf5& calls();

/// Wrap an object that HDF5 has opened below `parent`, and take ownership. Null if `under` is null.
Object* adopt(void* under, H5I_type_t type, const Object& parent);
/// Wrap an object by its native id, and take ownership. Null if the id is invalid.
Object* adopt_id(hid_t id, H5I_type_t type, const Object& parent);
/// Wrap a file by its native id, and take ownership. Null if the id is invalid.
Object* adopt_file(hid_t id, bool closes_objects);

/// Native id of an object, created on first use; for an attribute, the id of its object.
/// H5I_INVALID_HID if none is available.
hid_t id_of(void* given);
/// Find the file that holds an object, which may differ from its parent's.
OpenedFile& file_of(Object& object);
/// True if the object can have an id. An object in another file needs an id of that file.
bool can_have_id(Object& object);

using CloseUnder = herr_t (*)(void* under, hid_t connector, hid_t transfer_list, void** request);
/// Close an object that is not a file. After a failure it is retained, so that HDF5 can retry.
herr_t close_object(void* given, hid_t transfer_list, CloseUnder close_under);
herr_t close_file_object(void* given, hid_t transfer_list);

/// List the program's ids of some types (H5F_OBJ_...) in a file, or in all files (H5F_OBJ_ALL),
/// without native ids. @returns false if HDF5 failed
bool list_program_ids(hid_t file, unsigned types, std::vector<hid_t>& ids);

/// Close everything that the program has left open, while HDF5 still works. HDF5 ends by H5close,
/// by MPI_Finalize, or with the process; in the last case no rank waits for others.
void close_what_is_left(bool process_ends);

/// Copy of an access list with the native connector.
class NativeList {
 public:
  explicit NativeList(hid_t access_list);
  ~NativeList() {
    const KeptErrors kept;
    id_.reset();
  }
  NativeList(const NativeList&) = delete;
  NativeList& operator=(const NativeList&) = delete;
  hid_t id() const { return id_.get(); }

 private:
  Hdf5Id id_;
};

/// Scope of a call within a call of the program: only the outer call prints errors.
class InnerCall {
 public:
  InnerCall() {
    unsigned is_second = 0;
    if (H5Eauto_is_v2(H5E_DEFAULT, &is_second) < 0 || is_second == 0) return;
    if (H5Eget_auto2(H5E_DEFAULT, &printer_, &data_) < 0) return;
    silenced_ = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  }
  ~InnerCall() {
    if (silenced_) H5Eset_auto2(H5E_DEFAULT, printer_, data_);
  }
  InnerCall(const InnerCall&) = delete;
  InnerCall& operator=(const InnerCall&) = delete;

 private:
  H5E_auto2_t printer_ = nullptr;
  void* data_ = nullptr;
  bool silenced_ = false;
};

}  // namespace tailrace::hdf5_programs
