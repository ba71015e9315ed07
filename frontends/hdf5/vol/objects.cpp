// See objects.hpp.

#include "hdf5/vol/objects.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include "hdf5/hdf5_compat.hpp"
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

/// Path by which HDF5 knows an object; empty if none.
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

/// Read HDF5's information on a native object. @returns false if that fails
bool get_info(void* under, H5I_type_t type, ObjectInfo& info) {
  H5VL_loc_params_t self{};
  self.type = H5VL_OBJECT_BY_SELF;
  self.obj_type = type;
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_INFO;
  get.args.get_info.fields = H5O_INFO_BASIC;
  get.args.get_info.oinfo = &info;
  return H5VLobject_get(under, &self, native_connector(), &get, H5P_DATASET_XFER_DEFAULT,
                        nullptr) >= 0;
}

std::vector<OpenedFile*>& opened_files() {
  static auto* const files = new std::vector<OpenedFile*>;
  return *files;
}

/// Id through which objects of a file can be opened.
hid_t location_in(const OpenedFile& file) { return is_open(file.id) ? file.id : file.other_id; }

/// Find the file of this number, if it has an open id.
std::shared_ptr<OpenedFile> file_of_number(unsigned long number) {
  for (OpenedFile* file : opened_files()) {
    if (file->number == number && is_open(location_in(*file))) return file->shared_from_this();
  }
  return nullptr;
}

/// Open an id of the object, by its path if possible. For an id that was opened by a token, HDF5
/// must search the complete file to find its name.
hid_t open_same(Object& object) {
  ObjectInfo info{};
  const hid_t location = location_in(file_of(object));
  if (!is_open(location) || !get_info(object.under, object.type, info)) return H5I_INVALID_HID;
  try {
    const KeptErrors kept;
    H5VL_loc_params_t self{};
    self.type = H5VL_OBJECT_BY_SELF;
    self.obj_type = object.type;
    const std::string name = name_of(object, self);
    const hid_t named = name.empty() ? -1 : H5Oopen(location, name.c_str(), H5P_DEFAULT);
    ObjectInfo found{};
    if (named >= 0 && get_object_info(named, found) && found.fileno == info.fileno &&
        object_address(found) == object_address(info)) {
      return named;
    }
    if (named >= 0) H5Oclose(named);
  } catch (const std::bad_alloc&) {  // Continue as if the object had no name.
  }
  return H5Oopen_by_token(location, info.token);
}

/// Open another native object of the same file.
void* reopen(void* under) {
  void* again = nullptr;
  H5VL_file_specific_args_t args{};
  args.op_type = H5VL_FILE_REOPEN;
  args.args.reopen.file = &again;
  const herr_t done =
      H5VLfile_specific(under, native_connector(), &args, H5P_DATASET_XFER_DEFAULT, nullptr);
  return done < 0 ? nullptr : again;
}

/// True at process exit: no rank waits for others.
bool sessions_are_lost = false;

/// Close the program's ids of some types, in a file or in all files (H5F_OBJ_ALL).
void close_ids(hid_t file, unsigned types) {
  std::vector<hid_t> ids;
  list_program_ids(file, types, ids);
  for (const hid_t id : ids) {
    if (!is_open(id)) continue;
    for (int n_left = H5Iget_ref(id); n_left > 0; --n_left) H5Idec_ref(id);
  }
}

constexpr unsigned kAllButFiles = H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_DATATYPE | H5F_OBJ_ATTR;

/// Native object of an empty in-memory file. HDF5 keeps the program's id of a file whose closing
/// has failed, and uses the object behind it.
void* nothing_of_a_file() {
  static hid_t file = H5I_INVALID_HID;
  if (!is_open(file)) {
    const KeptErrors kept;
    const Hdf5Id list = new_access_list();
    H5Pset_fapl_core(list.get(), 512, false);
    file = H5Fcreate("tailrace closed", H5F_ACC_TRUNC, H5P_DEFAULT, list.get());
  }
  return is_open(file) ? H5VLobject(file) : nullptr;
}

/// Close the program's id of a file. If HDF5 refuses (H5F_CLOSE_SEMI), nothing changes.
herr_t close_opened(Object& object, hid_t transfer_list) {
  OpenedFile& file = *object.file;
  const InnerCall inner;
  if (file.closes_objects && is_open(file.id)) {
    close_ids(file.id, kAllButFiles | H5F_OBJ_LOCAL);
  }
  herr_t done = H5VLfile_close(file.shown, native_connector(), transfer_list, nullptr);
  file.open = false;
  if (!is_open(file.id)) return done;
  // The program's id still exists, and HDF5 looks at the objects of all ids. Until this function
  // ends, `shown` therefore refers to an object that outlives the id below.
  const hid_t session_file = tailrace_hdf5_serving()->session_file(file.id);
  file.shown = H5VLobject(session_file >= 0 ? session_file : file.id);
  const bool is_used = object.file.use_count() > 1;
  if (is_used) file.other_id = session_file >= 0 ? session_file : H5Freopen(file.id);
  file.owns_other = is_used && session_file < 0;
  const auto close = sessions_are_lost ? &::H5Fclose : calls().H5Fclose;
  if (close(file.id) >= 0) return done;
  const KeptErrors kept;
  if (file.owns_other) H5Fclose(file.other_id);
  file.owns_other = false;
  file.other_id = H5I_INVALID_HID;
  file.shown = is_open(file.id) ? reopen(H5VLobject(file.id)) : nullptr;
  file.open = file.shown != nullptr;
  if (!file.open) file.shown = object.under = nothing_of_a_file();
  return -1;
}

}  // namespace

OpenedFile::OpenedFile() { opened_files().push_back(this); }

OpenedFile::~OpenedFile() {
  std::erase(opened_files(), this);
  const KeptErrors kept;
  if (owns_other && is_open(other_id)) H5Fclose(other_id);
}

OpenedFile& file_of(Object& object) {
  ObjectInfo info{};
  const bool known = object.file->number != 0 && object.type == H5I_FILE && object.id >= 0;
  if (known || !get_info(object.under, object.type, info) || object.file->number == info.fileno) {
    return *object.file;
  }
  std::shared_ptr<OpenedFile> file = file_of_number(info.fileno);
  if (file == nullptr) {
    file = std::make_shared<OpenedFile>();
    file->number = info.fileno;
  }
  object.file = std::move(file);
  return *object.file;
}

bool can_have_id(Object& object) {
  return is_open(object.id) || is_open(location_in(file_of(object)));
}

bool list_program_ids(hid_t file, unsigned types, std::vector<hid_t>& ids) {
  const ssize_t n = H5Fget_obj_count(file, types);
  if (n < 0) return false;
  std::vector<hid_t> found(static_cast<std::size_t>(n));
  if (n > 0 && H5Fget_obj_ids(file, types, found.size(), found.data()) < 0) return false;
  std::ranges::copy_if(found, std::back_inserter(ids), is_of_connector);
  return true;
}

Object* adopt(void* under, H5I_type_t type, const Object& parent) {
  if (under == nullptr) return nullptr;
  return new_object({.under = under, .owns_under = true, .type = type, .file = parent.file});
}

Object* adopt_id(hid_t id, H5I_type_t type, const Object& parent) {
  void* const under = id < 0 ? nullptr : H5VLobject(id);
  if (under == nullptr) return nullptr;
  Object* const object = new_object({.under = under, .type = type, .id = id, .file = parent.file});
  if (object == nullptr) {
    H5Oclose(id);
    return nullptr;
  }
  OpenedFile& file = file_of(*object);
  if (!is_open(location_in(file))) {
    // The object is behind a link to a file that the program has not opened. Reopen the file,
    // because HDF5 would return this id itself to the program as its own.
    const KeptErrors kept;
    const Hdf5Id given(H5Iget_file_id(id));
    file.other_id = H5Freopen(given.get());
    file.owns_other = true;
  }
  return object;
}

Object* adopt_file(hid_t id, bool closes_objects) {
  if (id < 0) return nullptr;
  try {
    auto file = std::make_shared<OpenedFile>();
    auto object = std::make_unique<Object>();
    file->id = id;
    file->shown = reopen(H5VLobject(id));
    file->open = file->shown != nullptr;
    file->closes_objects = closes_objects;
    if (H5Fget_fileno(id, &file->number) < 0) file->number = 0;
    *object = {.under = H5VLobject(id), .type = H5I_FILE, .id = id, .file = file};
    if (file->open) return object.release();
  } catch (const std::bad_alloc&) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "tailrace: not enough memory");
  }
  const KeptErrors kept;
  calls().H5Fclose(id);
  return nullptr;
}

hid_t id_of(void* given) {
  Object& object = object_of(given);
  hid_t id = object.id;
  if (object.type == H5I_FILE) {
    id = location_in(file_of(object));
  } else if (id < 0) {
    id = object.id = open_same(object);
  }
  if (is_open(id)) return id;
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VOL, H5E_BADID,
           "tailrace: the file of the object is closed, or was opened only by following a link");
  return H5I_INVALID_HID;
}

herr_t close_object(void* given, hid_t transfer_list, CloseUnder close_under) {
  Object& object = object_of(given);
  herr_t done = 0;
  if (!object.closed) {
    if (object.owns_under) {
      done = close_under(object.under, native_connector(), transfer_list, nullptr);
    }
    if (is_open(object.id)) {
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
  herr_t done = 0;
  if (object.id < 0) {  // HDF5 has made an id of its native object.
    done = H5VLfile_close(object.under, native_connector(), transfer_list, nullptr);
    if (done < 0) return done;
  } else if (!object.closed) {
    done = close_opened(object, transfer_list);
    object.closed = !object.file->open;
  }
  if (done >= 0) delete &object;
  return done;
}

void close_what_is_left(bool process_ends) {
  const InnerCall inner;
  sessions_are_lost = process_ends;
  if (!process_ends) tailrace_hdf5_serving()->end_sessions();
  close_ids(H5F_OBJ_ALL, kAllButFiles);
  close_ids(H5F_OBJ_ALL, H5F_OBJ_FILE);
}

NativeList::NativeList(hid_t access_list)
    : id_(access_list == H5P_DEFAULT ? H5Pcreate(H5P_FILE_ACCESS) : H5Pcopy(access_list)) {
  if (id_.valid()) make_own_files(id_.get());
}

}  // namespace tailrace::hdf5_programs
