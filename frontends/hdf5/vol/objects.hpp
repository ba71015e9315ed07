// What the connector hands to HDF5 for each object of a program, and how it reaches HDF5's own.
//
//   program's id ──> HDF5 ──> Object ──┬─ under: HDF5's object, for what HDF5 does alone
//                                      └─ id: HDF5's own id of it, for the calls that serve
//
// HDF5's own ids never reach the program. Most objects (groups, attributes, types) need none; one
// is made by the object's token when a call that serves asks for it.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <H5VLconnector.h>

#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {

/// A file of the program, by one of its ids; or one that its objects have been reached in by a link
/// or where it is mounted. All of them are in a list, by which an object's own file is found.
struct OpenedFile : std::enable_shared_from_this<OpenedFile> {
  OpenedFile();
  ~OpenedFile();
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  hid_t id = H5I_INVALID_HID;  ///< HDF5's own; a session's, or of a file that HDF5 has alone.
  unsigned long number = 0;    ///< HDF5's, the same for all ids of a file.
  /// Once the program has given its id back, while objects stay open: calls on these need one.
  hid_t other_id = H5I_INVALID_HID;
  bool owns_other = false;  ///< Else it is the session's.
  /// A second one of HDF5's objects for it, which has no id of its own: what HDF5 sees behind the
  /// program's id, so that it finds that, and not the one above, for an object of the file.
  void* shown = nullptr;
  bool open = false;
  bool closes_objects = false;  ///< H5F_CLOSE_STRONG.
};

/// What HDF5 opens behind an external link may have our connector by its access list, but HDF5's
/// bare object, if a call by HDF5's own id has led there: that has no such mark.
constexpr std::uint64_t object_mark = 0x7461696c76306c31;

struct Object {
  std::uint64_t mark = object_mark;
  void* under = nullptr;
  bool owns_under = false;  ///< Else it lives as long as `id`.
  bool closed = false;      ///< Closing has failed: HDF5 keeps its id, and closes that once more.
  H5I_type_t type = H5I_BADID;
  hid_t id = H5I_INVALID_HID;
  std::shared_ptr<OpenedFile> file;
};

inline Object& object_of(void* given) { return *static_cast<Object*>(given); }
inline bool is_ours(const void* given) {
  return given != nullptr && static_cast<const Object*>(given)->mark == object_mark;
}
inline void* under_of(void* given) {
  return is_ours(given) ? static_cast<Object*>(given)->under : given;
}
/// What HDF5 sees behind the program's id.
inline void* shown_of(const Object& object) {
  return object.type == H5I_FILE && object.id >= 0 ? object.file->shown : object.under;
}

/// HDF5's own connector.
hid_t native_connector();

/// The calls that serve (program_calls.cpp).
const RealHdf5& calls();

/// An object that HDF5 has opened below `parent`; null if it is. Takes it over.
Object* adopt(void* under, H5I_type_t type, const Object& parent);
/// An object by its own id, which it takes over; null if that is invalid.
Object* adopt_id(hid_t id, H5I_type_t type, const Object& parent);
/// A file by its own id, which it takes over; null if that is invalid.
Object* adopt_file(hid_t id, bool closes_objects);

/// HDF5's own id of an object; of an attribute that of the object that has it. Made if it has none.
/// H5I_INVALID_HID: it cannot be had (any more).
hid_t id_of(void* given);
/// The file in which an object lies, which need not be its parent's.
OpenedFile& file_of(Object& object);
/// Whether an id of the object can be had: of one in another file only if that has an id.
bool can_have_id(Object& object);

using CloseUnder = herr_t (*)(void* under, hid_t connector, hid_t transfer_list, void** request);
/// Close an object, not a file; what fails is kept for HDF5 to try again.
herr_t close_object(void* given, hid_t transfer_list, CloseUnder close_under);
herr_t close_file_object(void* given, hid_t transfer_list);

/// What the program has open of some types (H5F_OBJ_...) in a file, or (H5F_OBJ_ALL) in all,
/// without what is HDF5's own. @returns false if HDF5 failed
bool list_program_ids(hid_t file, unsigned types, std::vector<hid_t>& ids);

/// HDF5 ends: by H5close, by MPI_Finalize, or with the process, when nobody waits for other ranks.
/// Closes all that the program has left open, while HDF5 is still whole.
void close_what_is_left(bool process_ends);

/// A copy of an access list for HDF5's own connector.
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

/// A call within a call of the program's: only the latter prints what has failed.
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
