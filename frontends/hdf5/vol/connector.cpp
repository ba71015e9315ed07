// The VOL connector `tailrace` (docs/hdf5.md). HDF5's plug-in interface passes it a program's
// calls, so nothing is preloaded.
//
// Calls that concern files and values go to the serving calls, by native ids. All others go to the
// native connector, by native objects (objects.hpp). Requests are not supported: asynchronous calls
// are complete when they return.

#include <dlfcn.h>
#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <vector>

#include <H5PLextern.h>
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include "hdf5/preload/unserved.hpp"
#include "hdf5/serving_library.hpp"
#include "hdf5/vol/objects.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Number of the connector, from the range of those that are not registered with The HDF Group.
constexpr H5VL_class_value_t kConnectorNumber = 447;

/// Pass a call to the native connector.
template <class Function, class... Given>
auto by_native(Function function, void* object, Given... given) {
  return function(under_of(object), native_connector(), given...);
}
/// Pass a call with a location to the native connector.
template <class Function, class... Given>
auto by_native_at(Function function, void* object, const H5VL_loc_params_t* place, Given... given) {
  return function(under_of(object), place, native_connector(), given...);
}

/// Run a callback so that no exception (out of memory) leaves it.
template <class Call, class Returned>
Returned kept_in(Call&& call, Returned failed) noexcept {
  try {
    return call();
  } catch (const std::exception&) {
    return failed;
  }
}

/// Run an operation on an object's native id.
template <class Call>
herr_t by_own_id(void* object, Call&& call) {
  const InnerCall inner;
  return call(id_of(object)) < 0 ? -1 : 0;
}

// --- files

std::atomic<std::uint64_t> n_openings = 0;
std::atomic<bool> opened_by_mpi = false;

/// Note how a file is created or opened, for the report at the end of the process.
void note_opening(hid_t access_list) {
  ++n_openings;
  if (H5Pget_driver(access_list) == H5FD_MPIO) opened_by_mpi = true;
}

/// HDF5 loads the connector for programs without files, too, such as the launcher's helpers.
__attribute__((destructor)) void report_at_exit() {
  if (n_openings > 0 && !opened_by_mpi) report_nothing(n_openings);
}

/// True if closing the file also closes the program's objects.
bool closes_objects(hid_t access_list) {
  H5F_close_degree_t degree = H5F_CLOSE_DEFAULT;
  return H5Pget_fclose_degree(access_list, &degree) >= 0 && degree == H5F_CLOSE_STRONG;
}

void* file_create(const char* name, unsigned flags, hid_t creation_list, hid_t access_list, hid_t,
                  void**) {
  return kept_in(
      [&]() -> void* {
        const InnerCall inner;
        const NativeList list(access_list);
        note_opening(list.id());
        // HDF5 has added flags that a program must not set.
        const unsigned of_program = H5F_ACC_TRUNC | H5F_ACC_EXCL | H5F_ACC_SWMR_WRITE;
        return adopt_file(calls().H5Fcreate(name, flags & of_program, creation_list, list.id()),
                          closes_objects(list.id()));
      },
      static_cast<void*>(nullptr));
}

void* file_open(const char* name, unsigned flags, hid_t access_list, hid_t, void**) {
  return kept_in(
      [&]() -> void* {
        const InnerCall inner;
        const NativeList list(access_list);
        note_opening(list.id());
        return adopt_file(calls().H5Fopen(name, flags, list.id()), closes_objects(list.id()));
      },
      static_cast<void*>(nullptr));
}

/// List the program's ids in a file. With H5F_OBJ_LOCAL, HDF5 does not find the file's own id,
/// because the object behind that id differs.
herr_t list_ids(Object& object, unsigned types, std::vector<hid_t>& ids) {
  const InnerCall inner;
  const hid_t id = id_of(&object);
  const bool local = (types & H5F_OBJ_LOCAL) != 0;
  if (local && (types & H5F_OBJ_FILE) != 0) {
    if (!list_program_ids(id, H5F_OBJ_FILE, ids)) return -1;
    std::erase_if(ids, [&](hid_t of) { return H5VLobject(of) != shown_of(object); });
    types &= ~static_cast<unsigned>(H5F_OBJ_FILE);
  }
  return (types & H5F_OBJ_ALL) == 0 || list_program_ids(id, types, ids) ? 0 : -1;
}

herr_t file_get(void* object, H5VL_file_get_args_t* args, hid_t transfer_list, void**) {
  const hid_t id = id_of(object);
  switch (args->op_type) {
    case H5VL_FILE_GET_FAPL: {
      const InnerCall inner;
      hid_t& list = args->args.get_fapl.fapl_id;
      list = calls().H5Fget_access_plist(id);
      const hid_t ours = H5VLget_connector_id_by_name("tailrace");
      if (list >= 0 && ours >= 0) H5Pset_vol(list, ours, nullptr);
      if (ours >= 0) H5VLclose(ours);
      return list < 0 ? -1 : 0;
    }
    case H5VL_FILE_GET_NAME: {
      const InnerCall inner;
      auto& name = args->args.get_name;
      const ssize_t n = calls().H5Fget_name(id, name.buf, name.buf_size);
      if (n >= 0) *name.file_name_len = static_cast<std::size_t>(n);
      return n < 0 ? -1 : 0;
    }
    case H5VL_FILE_GET_OBJ_COUNT:
      return kept_in(
          [&]() -> herr_t {
            std::vector<hid_t> ids;
            const unsigned types = args->args.get_obj_count.types;
            if (list_ids(object_of(object), types, ids) < 0) return -1;
            *args->args.get_obj_count.count = ids.size();
            return 0;
          },
          herr_t{-1});
    case H5VL_FILE_GET_OBJ_IDS:
      return kept_in(
          [&]() -> herr_t {
            auto& wanted = args->args.get_obj_ids;
            std::vector<hid_t> ids;
            if (list_ids(object_of(object), wanted.types, ids) < 0) return -1;
            *wanted.count = std::min(wanted.max_objs, ids.size());
            std::copy_n(ids.begin(), *wanted.count, wanted.oid_list);
            return 0;
          },
          herr_t{-1});
    default: return by_native(H5VLfile_get, object, args, transfer_list, nullptr);
  }
}

herr_t file_specific(void* object, H5VL_file_specific_args_t* args, hid_t transfer_list, void**) {
  H5VL_file_specific_args_t changed = *args;
  switch (args->op_type) {
    case H5VL_FILE_FLUSH: {
      const InnerCall inner;
      return calls().H5Fflush(id_of(object), args->args.flush.scope);
    }
    case H5VL_FILE_REOPEN: {
      const InnerCall inner;
      void*& again = *args->args.reopen.file;
      again = kept_in(
          [&] {
            const hid_t id = id_of(object);
            return adopt_file(H5Freopen(id), object_of(object).file->closes_objects);
          },
          static_cast<Object*>(nullptr));
      return again == nullptr ? -1 : 0;
    }
    case H5VL_FILE_IS_ACCESSIBLE: {
      const InnerCall inner;
      const auto& query = args->args.is_accessible;
      const NativeList list(query.fapl_id);
      const htri_t is = calls().H5Fis_accessible(query.filename, list.id());
      if (is >= 0) *query.accessible = is > 0;
      return is < 0 ? -1 : 0;
    }
    case H5VL_FILE_DELETE: {
      const InnerCall inner;
      const NativeList list(args->args.del.fapl_id);
      return calls().H5Fdelete(args->args.del.filename, list.id());
    }
    case H5VL_FILE_IS_EQUAL:
      changed.args.is_equal.obj2 = under_of(args->args.is_equal.obj2);
      return by_native(H5VLfile_specific, object, &changed, transfer_list, nullptr);
    default: return by_native(H5VLfile_specific, object, args, transfer_list, nullptr);
  }
}

herr_t file_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  auto* const given = static_cast<H5VL_native_file_optional_args_t*>(args->args);
  switch (args->op_type) {
    case H5VL_NATIVE_FILE_GET_FILE_IMAGE:
      return by_own_id(object, [&](hid_t id) {
        const auto& image = given->get_file_image;
        const ssize_t n = calls().H5Fget_file_image(id, image.buf, image.buf_size);
        if (n >= 0 && image.image_len != nullptr) *image.image_len = static_cast<std::size_t>(n);
        return n;
      });
    case H5VL_NATIVE_FILE_GET_SIZE:
      return by_own_id(object,
                       [&](hid_t id) { return calls().H5Fget_filesize(id, given->get_size.size); });
    case H5VL_NATIVE_FILE_GET_VFD_HANDLE:
      return by_own_id(object, [&](hid_t id) {
        const auto& handle = given->get_vfd_handle;
        return calls().H5Fget_vfd_handle(id, handle.fapl_id, handle.file_handle);
      });
    case H5VL_NATIVE_FILE_START_SWMR_WRITE:
      return by_own_id(object, [&](hid_t id) { return calls().H5Fstart_swmr_write(id); });
    case H5VL_NATIVE_FILE_FORMAT_CONVERT:
      return by_own_id(object, [&](hid_t id) { return calls().H5Fformat_convert(id); });
    case H5VL_NATIVE_FILE_INCR_FILESIZE:
      return by_own_id(object, [&](hid_t id) {
        return calls().H5Fincrement_filesize(id, given->increment_filesize.increment);
      });
    case H5VL_NATIVE_FILE_GET_MPI_ATOMICITY:
      return by_own_id(object, [&](hid_t id) {
        return calls().H5Fget_mpi_atomicity(id, given->get_mpi_atomicity.flag);
      });
    case H5VL_NATIVE_FILE_SET_MPI_ATOMICITY:
      return by_own_id(object, [&](hid_t id) {
        return calls().H5Fset_mpi_atomicity(id, given->set_mpi_atomicity.flag);
      });
    // HDF5 has done this for the file's native id. For the other object, HDF5 would store an object
    // of this connector under its native connector, which never releases it.
    case H5VL_NATIVE_FILE_POST_OPEN:
      if (object_of(object).id >= 0) return 0;
      return by_native(H5VLfile_optional, object, args, transfer_list, nullptr);
    default: return by_native(H5VLfile_optional, object, args, transfer_list, nullptr);
  }
}

herr_t file_close(void* object, hid_t transfer_list, void**) {
  return kept_in([&] { return close_file_object(object, transfer_list); }, herr_t{-1});
}

// --- datasets

void* dataset_create(void* object, const H5VL_loc_params_t*, const char* name, hid_t link_list,
                     hid_t type, hid_t space, hid_t creation_list, hid_t access_list, hid_t,
                     void**) {
  const InnerCall inner;
  const hid_t location = id_of(object);
  const hid_t id =
      name == nullptr
          ? calls().H5Dcreate_anon(location, type, space, creation_list, access_list)
          : calls().H5Dcreate2(location, name, type, space, link_list, creation_list, access_list);
  return adopt_id(id, H5I_DATASET, object_of(object));
}

void* dataset_open(void* object, const H5VL_loc_params_t*, const char* name, hid_t access_list,
                   hid_t, void**) {
  const InnerCall inner;
  return adopt_id(H5Dopen2(id_of(object), name, access_list), H5I_DATASET, object_of(object));
}

/// Transfer values of one dataset by `one`, or of several by `many`.
template <class Value, class One, class Many>
herr_t transfer(size_t n, void* datasets[], hid_t types[], hid_t memory_spaces[],
                hid_t file_spaces[], hid_t transfer_list, Value values[], One one, Many many) {
  const InnerCall inner;
  if (n == 1) {
    return one(id_of(datasets[0]), types[0], memory_spaces[0], file_spaces[0], transfer_list,
               values[0]);
  }
  return kept_in(
      [&] {
        std::vector<hid_t> ids(n);
        std::transform(datasets, datasets + n, ids.begin(), id_of);
        return many(n, ids.data(), types, memory_spaces, file_spaces, transfer_list, values);
      },
      herr_t{-1});
}

herr_t dataset_read(size_t n, void* datasets[], hid_t types[], hid_t memory_spaces[],
                    hid_t file_spaces[], hid_t transfer_list, void* values[], void**) {
  return transfer(n, datasets, types, memory_spaces, file_spaces, transfer_list, values,
                  calls().H5Dread, calls().H5Dread_multi);
}

herr_t dataset_write(size_t n, void* datasets[], hid_t types[], hid_t memory_spaces[],
                     hid_t file_spaces[], hid_t transfer_list, const void* values[], void**) {
  return transfer(n, datasets, types, memory_spaces, file_spaces, transfer_list, values,
                  calls().H5Dwrite, calls().H5Dwrite_multi);
}

herr_t dataset_get(void* object, H5VL_dataset_get_args_t* args, hid_t transfer_list, void**) {
  switch (args->op_type) {
    case H5VL_DATASET_GET_DCPL: {
      const InnerCall inner;
      hid_t& list = args->args.get_dcpl.dcpl_id;
      list = calls().H5Dget_create_plist(id_of(object));
      return list < 0 ? -1 : 0;
    }
    case H5VL_DATASET_GET_SPACE_STATUS: {
      const InnerCall inner;
      return calls().H5Dget_space_status(id_of(object), args->args.get_space_status.status);
    }
    case H5VL_DATASET_GET_STORAGE_SIZE: {
      const InnerCall inner;
      *args->args.get_storage_size.storage_size = calls().H5Dget_storage_size(id_of(object));
      return 0;
    }
    default: return by_native(H5VLdataset_get, object, args, transfer_list, nullptr);
  }
}

herr_t dataset_specific(void* object, H5VL_dataset_specific_args_t* args, hid_t, void**) {
  const InnerCall inner;
  const hid_t id = id_of(object);
  switch (args->op_type) {
    case H5VL_DATASET_SET_EXTENT: return calls().H5Dset_extent(id, args->args.set_extent.size);
    case H5VL_DATASET_FLUSH: return calls().H5Dflush(id);
    case H5VL_DATASET_REFRESH: return calls().H5Drefresh(id);
  }
  return -1;
}

herr_t dataset_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  auto* const given = static_cast<H5VL_native_dataset_optional_args_t*>(args->args);
  switch (args->op_type) {
    case H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE:
      return by_own_id(object, [&](hid_t id) {
        const auto& chunk = given->get_chunk_storage_size;
        return calls().H5Dget_chunk_storage_size(id, chunk.offset, chunk.size);
      });
    case H5VL_NATIVE_DATASET_GET_NUM_CHUNKS:
      return by_own_id(object, [&](hid_t id) {
        const auto& chunks = given->get_num_chunks;
        return calls().H5Dget_num_chunks(id, chunks.space_id, chunks.nchunks);
      });
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX:
      return by_own_id(object, [&](hid_t id) {
        const auto& chunk = given->get_chunk_info_by_idx;
        return calls().H5Dget_chunk_info(id, chunk.space_id, chunk.chk_index, chunk.offset,
                                         chunk.filter_mask, chunk.addr, chunk.size);
      });
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD:
      return by_own_id(object, [&](hid_t id) {
        const auto& chunk = given->get_chunk_info_by_coord;
        return calls().H5Dget_chunk_info_by_coord(id, chunk.offset, chunk.filter_mask, chunk.addr,
                                                  chunk.size);
      });
    case H5VL_NATIVE_DATASET_CHUNK_READ:
      return by_own_id(object, [&](hid_t id) {
        auto& chunk = given->chunk_read;
#ifdef TAILRACE_WITH_H5Dread_chunk2
        return calls().H5Dread_chunk2(id, transfer_list, chunk.offset, &chunk.filters, chunk.buf,
                                      chunk.buf_size);
#else
        return calls().H5Dread_chunk(id, transfer_list, chunk.offset, &chunk.filters, chunk.buf);
#endif
      });
    case H5VL_NATIVE_DATASET_CHUNK_WRITE:
      return by_own_id(object, [&](hid_t id) {
        const auto& chunk = given->chunk_write;
        return calls().H5Dwrite_chunk(id, transfer_list, chunk.filters, chunk.offset, chunk.size,
                                      chunk.buf);
      });
    case H5VL_NATIVE_DATASET_GET_OFFSET:
      return by_own_id(object, [&](hid_t id) {
        haddr_t& offset = *given->get_offset.offset;
        offset = calls().H5Dget_offset(id);
        return offset == HADDR_UNDEF ? -1 : 0;
      });
    case H5VL_NATIVE_DATASET_CHUNK_ITER:
      return by_own_id(object, [&](hid_t id) {
        const auto& visit = given->chunk_iter;
        return calls().H5Dchunk_iter(id, transfer_list, visit.op, visit.op_data);
      });
    default: return by_native(H5VLdataset_optional, object, args, transfer_list, nullptr);
  }
}

herr_t dataset_close(void* object, hid_t transfer_list, void**) {
  return close_object(object, transfer_list, H5VLdataset_close);
}

// --- attributes

void* attr_create(void* object, const H5VL_loc_params_t* place, const char* name, hid_t type,
                  hid_t space, hid_t creation_list, hid_t access_list, hid_t transfer_list,
                  void**) {
  void* const made = adopt(by_native_at(H5VLattr_create, object, place, name, type, space,
                                        creation_list, access_list, transfer_list, nullptr),
                           H5I_ATTR, object_of(object));
  const bool by_name = place->type == H5VL_OBJECT_BY_NAME;
  if (made != nullptr && (by_name || place->type == H5VL_OBJECT_BY_SELF)) {
    const InnerCall inner;
    tailrace_hdf5_serving()->note_attribute(
        id_of(object), by_name ? place->loc_data.loc_by_name.name : nullptr, name);
  }
  return made;
}
void* attr_open(void* object, const H5VL_loc_params_t* place, const char* name, hid_t access_list,
                hid_t transfer_list, void**) {
  return adopt(
      by_native_at(H5VLattr_open, object, place, name, access_list, transfer_list, nullptr),
      H5I_ATTR, object_of(object));
}
herr_t attr_read(void* object, hid_t type, void* values, hid_t transfer_list, void**) {
  return by_native(H5VLattr_read, object, type, values, transfer_list, nullptr);
}
herr_t attr_write(void* object, hid_t type, const void* values, hid_t transfer_list, void**) {
  return by_native(H5VLattr_write, object, type, values, transfer_list, nullptr);
}
herr_t attr_get(void* object, H5VL_attr_get_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLattr_get, object, args, transfer_list, nullptr);
}
herr_t attr_specific(void* object, const H5VL_loc_params_t* place, H5VL_attr_specific_args_t* args,
                     hid_t transfer_list, void**) {
  return by_native_at(H5VLattr_specific, object, place, args, transfer_list, nullptr);
}
herr_t attr_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLattr_optional, object, args, transfer_list, nullptr);
}
herr_t attr_close(void* object, hid_t transfer_list, void**) {
  return close_object(object, transfer_list, H5VLattr_close);
}

// --- types

void* datatype_commit(void* object, const H5VL_loc_params_t* place, const char* name, hid_t type,
                      hid_t link_list, hid_t creation_list, hid_t access_list, hid_t transfer_list,
                      void**) {
  return adopt(by_native_at(H5VLdatatype_commit, object, place, name, type, link_list,
                            creation_list, access_list, transfer_list, nullptr),
               H5I_DATATYPE, object_of(object));
}
void* datatype_open(void* object, const H5VL_loc_params_t* place, const char* name,
                    hid_t access_list, hid_t transfer_list, void**) {
  return adopt(
      by_native_at(H5VLdatatype_open, object, place, name, access_list, transfer_list, nullptr),
      H5I_DATATYPE, object_of(object));
}
herr_t datatype_get(void* object, H5VL_datatype_get_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLdatatype_get, object, args, transfer_list, nullptr);
}
herr_t datatype_specific(void* object, H5VL_datatype_specific_args_t* args, hid_t transfer_list,
                         void**) {
  return by_native(H5VLdatatype_specific, object, args, transfer_list, nullptr);
}
herr_t datatype_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLdatatype_optional, object, args, transfer_list, nullptr);
}
herr_t datatype_close(void* object, hid_t transfer_list, void**) {
  return close_object(object, transfer_list, H5VLdatatype_close);
}

// --- groups

/// Ensure that a group can have an id, because datasets are created in groups by ids. If a link
/// leads to a group in a file that the program has not opened, no id can be made later. So the
/// group is opened by an id now.
Object* reachable(Object* group, void* parent, const char* name, hid_t access_list,
                  hid_t transfer_list) {
  return kept_in(
      [&]() -> Object* {
        if (group == nullptr || name == nullptr || can_have_id(*group)) return group;
        const InnerCall inner;
        const hid_t id = H5Gopen2(id_of(parent), name, access_list);
        if (id < 0) return group;
        close_object(group, transfer_list, H5VLgroup_close);
        return adopt_id(id, H5I_GROUP, object_of(parent));
      },
      group);
}

void* group_create(void* object, const H5VL_loc_params_t* place, const char* name, hid_t link_list,
                   hid_t creation_list, hid_t access_list, hid_t transfer_list, void**) {
  return reachable(adopt(by_native_at(H5VLgroup_create, object, place, name, link_list,
                                      creation_list, access_list, transfer_list, nullptr),
                         H5I_GROUP, object_of(object)),
                   object, name, access_list, transfer_list);
}
void* group_open(void* object, const H5VL_loc_params_t* place, const char* name, hid_t access_list,
                 hid_t transfer_list, void**) {
  return reachable(
      adopt(by_native_at(H5VLgroup_open, object, place, name, access_list, transfer_list, nullptr),
            H5I_GROUP, object_of(object)),
      object, name, access_list, transfer_list);
}
herr_t group_get(void* object, H5VL_group_get_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLgroup_get, object, args, transfer_list, nullptr);
}
herr_t group_specific(void* object, H5VL_group_specific_args_t* args, hid_t transfer_list, void**) {
  if (args->op_type == H5VL_GROUP_MOUNT) {
    const auto& mount = args->args.mount;
    return by_own_id(object, [&](hid_t id) {
      return calls().H5Fmount(id, mount.name, id_of(mount.child_file), mount.fmpl_id);
    });
  }
  if (args->op_type == H5VL_GROUP_UNMOUNT) {
    return by_own_id(object,
                     [&](hid_t id) { return calls().H5Funmount(id, args->args.unmount.name); });
  }
  return by_native(H5VLgroup_specific, object, args, transfer_list, nullptr);
}
herr_t group_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLgroup_optional, object, args, transfer_list, nullptr);
}
herr_t group_close(void* object, hid_t transfer_list, void**) {
  return close_object(object, transfer_list, H5VLgroup_close);
}

// --- links

herr_t link_create(H5VL_link_create_args_t* args, void* object, const H5VL_loc_params_t* place,
                   hid_t creation_list, hid_t access_list, hid_t transfer_list, void**) {
  H5VL_link_create_args_t changed = *args;
  if (args->op_type == H5VL_LINK_CREATE_HARD) {
    changed.args.hard.curr_obj = under_of(args->args.hard.curr_obj);
  }
  return H5VLlink_create(&changed, under_of(object), place, native_connector(), creation_list,
                         access_list, transfer_list, nullptr);
}
herr_t link_copy(void* from, const H5VL_loc_params_t* from_place, void* to,
                 const H5VL_loc_params_t* to_place, hid_t creation_list, hid_t access_list,
                 hid_t transfer_list, void**) {
  return H5VLlink_copy(under_of(from), from_place, under_of(to), to_place, native_connector(),
                       creation_list, access_list, transfer_list, nullptr);
}
herr_t link_move(void* from, const H5VL_loc_params_t* from_place, void* to,
                 const H5VL_loc_params_t* to_place, hid_t creation_list, hid_t access_list,
                 hid_t transfer_list, void**) {
  return H5VLlink_move(under_of(from), from_place, under_of(to), to_place, native_connector(),
                       creation_list, access_list, transfer_list, nullptr);
}
herr_t link_get(void* object, const H5VL_loc_params_t* place, H5VL_link_get_args_t* args,
                hid_t transfer_list, void**) {
  return by_native_at(H5VLlink_get, object, place, args, transfer_list, nullptr);
}
herr_t link_specific(void* object, const H5VL_loc_params_t* place, H5VL_link_specific_args_t* args,
                     hid_t transfer_list, void**) {
  if (args->op_type != H5VL_LINK_DELETE) {
    return by_native_at(H5VLlink_specific, object, place, args, transfer_list, nullptr);
  }
  const InnerCall inner;
  if (place->type == H5VL_OBJECT_BY_NAME) {
    const auto& by_name = place->loc_data.loc_by_name;
    return calls().H5Ldelete(id_of(object), by_name.name, by_name.lapl_id);
  }
  const auto& by_index = place->loc_data.loc_by_idx;
  return calls().H5Ldelete_by_idx(id_of(object), by_index.name, by_index.idx_type, by_index.order,
                                  by_index.n, by_index.lapl_id);
}
herr_t link_optional(void* object, const H5VL_loc_params_t* place, H5VL_optional_args_t* args,
                     hid_t transfer_list, void**) {
  return by_native_at(H5VLlink_optional, object, place, args, transfer_list, nullptr);
}

// --- objects of any kind

void* object_open(void* object, const H5VL_loc_params_t* place, H5I_type_t* opened, hid_t, void**) {
  const InnerCall inner;
  const hid_t at = id_of(object);
  hid_t id = H5I_INVALID_HID;
  if (place->type == H5VL_OBJECT_BY_NAME) {
    const auto& by_name = place->loc_data.loc_by_name;
    id = H5Oopen(at, by_name.name, by_name.lapl_id);
  } else if (place->type == H5VL_OBJECT_BY_IDX) {
    const auto& by_index = place->loc_data.loc_by_idx;
    id = H5Oopen_by_idx(at, by_index.name, by_index.idx_type, by_index.order, by_index.n,
                        by_index.lapl_id);
  } else if (place->type == H5VL_OBJECT_BY_TOKEN) {
    id = H5Oopen_by_token(at, *place->loc_data.loc_by_token.token);
  }
  if (id < 0) return nullptr;
  *opened = H5Iget_type(id);
  return adopt_id(id, *opened, object_of(object));
}

/// Native id of the object at a location, closed on destruction.
class ObjectAt {
 public:
  ObjectAt(void* object, const H5VL_loc_params_t* place) {
    H5I_type_t type = H5I_BADID;
    if (place->type == H5VL_OBJECT_BY_SELF) {
      id_ = id_of(object);
    } else {
      opened_ = static_cast<Object*>(object_open(object, place, &type, H5P_DEFAULT, nullptr));
      if (opened_ != nullptr) id_ = opened_->id;
    }
  }
  ~ObjectAt() {
    const KeptErrors kept;
    if (opened_ != nullptr) close_object(opened_, H5P_DEFAULT, nullptr);
  }
  ObjectAt(const ObjectAt&) = delete;
  ObjectAt& operator=(const ObjectAt&) = delete;
  hid_t id() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Object* opened_ = nullptr;
};

herr_t object_copy(void* from, const H5VL_loc_params_t* from_place, const char* from_name, void* to,
                   const H5VL_loc_params_t* to_place, const char* to_name, hid_t copy_list,
                   hid_t link_list, hid_t, void**) {
  const InnerCall inner;
  const ObjectAt source(from, from_place);
  const ObjectAt target(to, to_place);
  return calls().H5Ocopy(source.id(), from_name, target.id(), to_name, copy_list, link_list);
}

herr_t object_get(void* object, const H5VL_loc_params_t* place, H5VL_object_get_args_t* args,
                  hid_t transfer_list, void**) {
  const herr_t done = by_native_at(H5VLobject_get, object, place, args, transfer_list, nullptr);
  if (done < 0 || args->op_type != H5VL_OBJECT_GET_FILE) return done;
  // HDF5 uses this object to find the program's id of the file.
  return kept_in(
      [&]() -> herr_t {
        const OpenedFile& file = file_of(object_of(object));
        if (file.open) *args->args.get_file.file = file.shown;
        return 0;
      },
      herr_t{-1});
}

herr_t object_specific(void* object, const H5VL_loc_params_t* place,
                       H5VL_object_specific_args_t* args, hid_t transfer_list, void**) {
  if (args->op_type == H5VL_OBJECT_FLUSH) return by_own_id(object, calls().H5Oflush);
  if (args->op_type == H5VL_OBJECT_REFRESH) return by_own_id(object, calls().H5Orefresh);
  if (args->op_type == H5VL_OBJECT_CHANGE_REF_COUNT) {
    return by_own_id(object, args->args.change_rc.delta < 0 ? calls().H5Odecr_refcount
                                                            : calls().H5Oincr_refcount);
  }
  return by_native_at(H5VLobject_specific, object, place, args, transfer_list, nullptr);
}

herr_t object_optional(void* object, const H5VL_loc_params_t* place, H5VL_optional_args_t* args,
                       hid_t transfer_list, void**) {
  return by_native_at(H5VLobject_optional, object, place, args, transfer_list, nullptr);
}

// --- wrapping of objects that HDF5 creates internally, for a program's callbacks and references

using WrapContext = std::weak_ptr<OpenedFile>;

void* get_object(const void* object) { return shown_of(*static_cast<const Object*>(object)); }

herr_t get_wrap_context(const void* object, void** context) {
  // Weak, so that the file closes with its last object although this context still exists.
  *context = new (std::nothrow) WrapContext(static_cast<const Object*>(object)->file);
  return *context == nullptr ? -1 : 0;
}
void* wrap_object(void* under, H5I_type_t type, void* context) {
  return kept_in(
      [&] {
        Object parent{.file = static_cast<WrapContext*>(context)->lock()};
        if (parent.file == nullptr) parent.file = std::make_shared<OpenedFile>();
        return adopt(under, type, parent);
      },
      static_cast<Object*>(nullptr));
}
void* unwrap_object(void* object) {
  if (!is_ours(object)) return object;
  void* const under = under_of(object);
  Object& given = object_of(object);
  if (given.owns_under && given.id < 0) delete &given;
  return under;
}
herr_t free_wrap_context(void* context) {
  delete static_cast<WrapContext*>(context);
  return 0;
}

// --- the connector class

bool process_ends = false;

herr_t initialize(hid_t) {
  // HDF5's own exit handler runs after this one.
  std::atexit([] { process_ends = true; });
  return H5atclose([](void*) { kept_in([] { return close_what_is_left(process_ends), 0; }, -1); },
                   nullptr);
}

const H5VL_class_t& connector_class();

herr_t get_connector_class(void* object, H5VL_get_conn_lvl_t level, const H5VL_class_t** found) {
  if (level == H5VL_GET_CONN_LVL_CURR) {
    *found = &connector_class();
    return 0;
  }
  return by_native(H5VLintrospect_get_conn_cls, object, level, found);
}
herr_t get_capabilities(const void*, std::uint64_t* flags) {
  return H5VLintrospect_get_cap_flags(nullptr, native_connector(), flags);
}
herr_t query_optional(void* object, H5VL_subclass_t kind, int operation, std::uint64_t* flags) {
  return by_native(H5VLintrospect_opt_query, object, kind, operation, flags);
}

herr_t blob_put(void* object, const void* bytes, size_t n_bytes, void* blob, void* context) {
  return by_native(H5VLblob_put, object, bytes, n_bytes, blob, context);
}
herr_t blob_get(void* object, const void* blob, void* bytes, size_t n_bytes, void* context) {
  return by_native(H5VLblob_get, object, blob, bytes, n_bytes, context);
}
herr_t blob_specific(void* object, void* blob, H5VL_blob_specific_args_t* args) {
  return by_native(H5VLblob_specific, object, blob, args);
}
herr_t blob_optional(void* object, void* blob, H5VL_optional_args_t* args) {
  return by_native(H5VLblob_optional, object, blob, args);
}

herr_t token_compare(void* object, const H5O_token_t* first, const H5O_token_t* second,
                     int* found) {
  return by_native(H5VLtoken_cmp, object, first, second, found);
}
herr_t token_to_text(void* object, H5I_type_t type, const H5O_token_t* token, char** text) {
  return H5VLtoken_to_str(under_of(object), type, native_connector(), token, text);
}
herr_t token_from_text(void* object, H5I_type_t type, const char* text, H5O_token_t* token) {
  return H5VLtoken_from_str(under_of(object), type, native_connector(), text, token);
}

herr_t any_optional(void* object, H5VL_optional_args_t* args, hid_t transfer_list, void**) {
  return by_native(H5VLoptional, object, args, transfer_list, nullptr);
}

const H5VL_class_t& connector_class() {
  static const H5VL_class_t connector = [] {
    H5VL_class_t made{};
    made.version = H5VL_VERSION;
    made.value = kConnectorNumber;
    made.name = "tailrace";
    made.conn_version = 1;
    made.cap_flags = H5VL_CAP_FLAG_NONE;
    made.initialize = initialize;
    made.wrap_cls = {get_object, get_wrap_context, wrap_object, unwrap_object, free_wrap_context};
    made.attr_cls = {attr_create, attr_open,     attr_read,     attr_write,
                     attr_get,    attr_specific, attr_optional, attr_close};
    made.dataset_cls = {dataset_create, dataset_open,     dataset_read,     dataset_write,
                        dataset_get,    dataset_specific, dataset_optional, dataset_close};
    made.datatype_cls = {datatype_commit,   datatype_open,     datatype_get,
                         datatype_specific, datatype_optional, datatype_close};
    made.file_cls = {file_create, file_open, file_get, file_specific, file_optional, file_close};
    made.group_cls = {group_create,   group_open,     group_get,
                      group_specific, group_optional, group_close};
    made.link_cls = {link_create, link_copy, link_move, link_get, link_specific, link_optional};
    made.object_cls = {object_open, object_copy, object_get, object_specific, object_optional};
    made.introspect_cls = {get_connector_class, get_capabilities, query_optional};
    made.blob_cls = {blob_put, blob_get, blob_specific, blob_optional};
    made.token_cls = {token_compare, token_to_text, token_from_text};
    made.optional = any_optional;
    return made;
  }();
  return connector;
}

}  // namespace
}  // namespace tailrace::hdf5_programs

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VOL; }

/// Return the connector class. Null for an HDF5 other than the one that Tailrace's calls reach,
/// such as that of an h5py wheel. HDF5 then reports that the connector does not exist.
const void* H5PLget_plugin_info(void) {
  Dl_info ours{};
  Dl_info asking{};
  if (dladdr(reinterpret_cast<const void*>(&H5get_libversion), &ours) != 0 &&
      dladdr(__builtin_return_address(0), &asking) != 0 && ours.dli_fbase != asking.dli_fbase) {
    std::fprintf(stderr,
                 "tailrace: this VOL connector serves the HDF5 in %s, but the HDF5 in %s has "
                 "loaded it (docs/hdf5.md)\n",
                 ours.dli_fname, asking.dli_fname);
    return nullptr;
  }
  return &tailrace::hdf5_programs::connector_class();
}
