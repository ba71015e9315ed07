// See objects.hpp.

#include "hdf5/vol/objects.hpp"

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include "hdf5/serving_library.hpp"

namespace tailrace::hdf5_programs {

hid_t native_connector() { return H5VL_NATIVE; }

const RealHdf5& calls() {
  static const RealHdf5 table = [] {
    RealHdf5 found;
    const Hdf5Call* next = tailrace_hdf5_serving()->calls;
#define TAILRACE_HDF5_TAKE(name, version) found.name = reinterpret_cast<decltype(&::name)>(*next++);
    TAILRACE_HDF5_CALLS(TAILRACE_HDF5_TAKE)
#undef TAILRACE_HDF5_TAKE
    return found;
  }();
  return table;
}

namespace {

Object* new_object(Object&& object) { return new (std::nothrow) Object(std::move(object)); }

bool is_open(hid_t id) { return id >= 0 && H5Iis_valid(id) > 0; }

/// The path by which HDF5 knows an object; empty: by none.
std::string name_of(const Object& object, const H5VL_loc_params_t& self) {
  std::size_t length = 0;
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_NAME;
  get.args.get_name.name_len = &length;
  const auto ask = [&] {
    return H5VLobject_get(object.under, &self, native_connector(), &get, H5P_DATASET_XFER_DEFAULT,
                          nullptr) >= 0;
  };
  if (!ask() || length == 0) return "";
  std::string name(length + 1, '\0');
  get.args.get_name.buf = name.data();
  get.args.get_name.buf_size = name.size();
  if (!ask()) return "";
  name.resize(length);
  return name;
}

/// An id of the object. By its path where that leads to it: whoever asks an id that was opened by a
/// token for its name has all of the file searched.
hid_t open_same(const Object& object) {
  H5VL_loc_params_t self{};
  self.type = H5VL_OBJECT_BY_SELF;
  self.obj_type = object.type;
  H5O_info2_t info{};
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_INFO;
  get.args.get_info.fields = H5O_INFO_BASIC;
  get.args.get_info.oinfo = &info;
  if (H5VLobject_get(object.under, &self, native_connector(), &get, H5P_DATASET_XFER_DEFAULT,
                     nullptr) < 0) {
    return H5I_INVALID_HID;
  }
  try {
    const KeptErrors kept;
    const std::string name = name_of(object, self);
    const hid_t named = name.empty() ? -1 : H5Oopen(object.file->id, name.c_str(), H5P_DEFAULT);
    H5O_info2_t found{};
    if (named >= 0 && H5Oget_info3(named, &found, H5O_INFO_BASIC) >= 0 &&
        found.fileno == info.fileno &&
        std::memcmp(&found.token, &info.token, sizeof(info.token)) == 0) {
      return named;
    }
    if (named >= 0) H5Oclose(named);
  } catch (const std::bad_alloc&) {  // Then as if it had no name.
  }
  return H5Oopen_by_token(object.file->id, info.token);
}

/// Another of HDF5's objects for the same file.
void* reopen(void* under) {
  void* again = nullptr;
  H5VL_file_specific_args_t args{};
  args.op_type = H5VL_FILE_REOPEN;
  args.args.reopen.file = &again;
  const herr_t done =
      H5VLfile_specific(under, native_connector(), &args, H5P_DATASET_XFER_DEFAULT, nullptr);
  return done < 0 ? nullptr : again;
}

/// The process ends: no rank waits for another.
bool sessions_are_lost = false;

/// Close what the program has open of some types, in a file or (H5F_OBJ_ALL) in all.
void close_ids(hid_t file, unsigned types) {
  const ssize_t n = H5Fget_obj_count(file, types);
  if (n <= 0) return;
  std::vector<hid_t> ids(static_cast<std::size_t>(n));
  const ssize_t n_found = H5Fget_obj_ids(file, types, ids.size(), ids.data());
  for (ssize_t i = 0; i < n_found; ++i) {
    const hid_t id = ids[static_cast<std::size_t>(i)];
    if (!is_open(id) || !is_of_connector(id)) continue;
    for (int n_left = H5Iget_ref(id); n_left > 0; --n_left) H5Idec_ref(id);
  }
}

constexpr unsigned all_but_files =
    H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_DATATYPE | H5F_OBJ_ATTR;

}  // namespace

Object* adopt(void* under, H5I_type_t type, const Object& parent) {
  if (under == nullptr) return nullptr;
  return new_object({.under = under, .owns_under = true, .type = type, .file = parent.file});
}

Object* adopt_id(hid_t id, H5I_type_t type, const Object& parent) {
  void* const under = id < 0 ? nullptr : H5VLobject(id);
  if (under == nullptr) return nullptr;
  Object* const object = new_object({.under = under, .type = type, .id = id, .file = parent.file});
  if (object == nullptr) H5Oclose(id);
  return object;
}

Object* adopt_file(hid_t id, bool closes_objects) {
  if (id < 0) return nullptr;
  try {
    auto file = std::make_shared<OpenedFile>();
    auto object = std::make_unique<Object>();
    file->id = id;
    file->shown = reopen(H5VLobject(id));
    file->closes_objects = closes_objects;
    *object = {.under = H5VLobject(id), .type = H5I_FILE, .id = id, .file = file};
    if (file->shown != nullptr) return object.release();
  } catch (const std::bad_alloc&) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "tailrace: no memory is left");
  }
  const KeptErrors kept;
  calls().H5Fclose(id);
  return nullptr;
}

hid_t id_of(void* given) {
  Object& object = object_of(given);
  if (object.type == H5I_FILE || object.type == H5I_ATTR) {
    return is_open(object.file->id) ? object.file->id : H5I_INVALID_HID;
  }
  if (object.id < 0) object.id = open_same(object);
  return object.id;
}

herr_t close_object(void* given, hid_t transfer_list, CloseUnder close_under) {
  Object& object = object_of(given);
  herr_t done = 0;
  if (!object.closed) {
    if (object.owns_under) {
      done = close_under(object.under, native_connector(), transfer_list, nullptr);
    }
    if (is_open(object.id) && object.type != H5I_ATTR) {
      const InnerCall inner;
      if (H5Oclose(object.id) < 0) done = -1;
    }
  }
  object.closed = true;
  if (done >= 0) delete &object;
  return done;
}

herr_t close_file_object(void* given, hid_t transfer_list) {
  Object& object = object_of(given);
  OpenedFile& file = *object.file;
  herr_t done = 0;
  if (object.id < 0) {  // HDF5 has made an id of its own object.
    done = H5VLfile_close(object.under, native_connector(), transfer_list, nullptr);
  } else if (!object.closed) {
    const InnerCall inner;
    if (file.closes_objects && is_open(file.id)) close_ids(file.id, all_but_files);
    done = H5VLfile_close(file.shown, native_connector(), transfer_list, nullptr);
    file.open = false;
    if (is_open(file.id)) {
      // The program's id is still there, and HDF5 looks at the objects of all: until the end of
      // this it stands for one that outlives the id below.
      const hid_t session_file = tailrace_hdf5_serving()->session_file(file.id);
      file.shown = H5VLobject(session_file >= 0 ? session_file : file.id);
      const auto close = sessions_are_lost ? &::H5Fclose : calls().H5Fclose;
      if (close(file.id) < 0) done = -1;
    }
  }
  object.closed = true;
  if (done >= 0) delete &object;
  return done;
}

void close_what_is_left(bool process_ends) {
  const InnerCall inner;
  sessions_are_lost = process_ends;
  if (!process_ends) tailrace_hdf5_serving()->end_sessions();
  close_ids(H5F_OBJ_ALL, all_but_files);
  close_ids(H5F_OBJ_ALL, H5F_OBJ_FILE);
}

NativeList::NativeList(hid_t access_list)
    : id_(access_list == H5P_DEFAULT ? H5Pcreate(H5P_FILE_ACCESS) : H5Pcopy(access_list)) {
  if (id_ >= 0) H5Pset_vol(id_, native_connector(), nullptr);
}

}  // namespace tailrace::hdf5_programs
