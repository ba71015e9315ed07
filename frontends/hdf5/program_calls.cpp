// The intercepted calls of a program. Calls that concern a session are served; all others are
// passed to HDF5.
//
// Each function here has a prefixed name. The preloaded library exports HDF5's names and calls
// these functions through a table (preload/preloaded_calls.cpp). cmake/TailraceHdf5Programs.cmake
// reads the names from this file. Serving starts outside of any Hdf5Scope, so that calls passed to
// HDF5 print their errors as the program has configured. The _async calls of HDF5 1.14 are served
// synchronously, and leave nothing to wait for.

#include <hdf5.h>

#include <algorithm>
#include <vector>

#include "hdf5/real_hdf5.hpp"
#include "hdf5/serving.hpp"
#include "hdf5/serving_library.hpp"
#include "hdf5/sessions.hpp"

// HDF5 defines these names as macros that add arguments to a program's calls; here they are
// functions.
#undef H5Dcreate_async
#undef H5Dread_async
#undef H5Dread_multi_async
#undef H5Dset_extent_async
#undef H5Dwrite_async
#undef H5Dwrite_multi_async
#undef H5Fclose_async
#undef H5Fcreate_async
#undef H5Fflush_async
#undef H5Fopen_async
#undef H5Ldelete_async
#undef H5Ldelete_by_idx_async
#undef H5Ocopy_async
#undef H5Oflush_async
#undef H5Orefresh_async

namespace ours = tailrace::hdf5_programs;
using ours::guarded;
using ours::real;
using ours::Session;
using ours::Target;

#define TAILRACE_CALL __attribute__((used))

/// Serve a call on an object: `ours_call` with `session`, or HDF5's own.
#define TAILRACE_SERVE(found, real_call, ours_call) \
  Session* const session = found;                   \
  if (session == nullptr) return real().real_call;  \
  return guarded(__func__, [&] { return ours_call; })
#define TAILRACE_SERVE_OBJECT(object, real_call, ours_call) \
  TAILRACE_SERVE(ours::served_session(object), real_call, ours_call)
/// Serve a call on a file's id: the session of that very file, even if it is mounted.
#define TAILRACE_SERVE_FILE(object, real_call, ours_call) \
  TAILRACE_SERVE(ours::served_file(object), real_call, ours_call)

/// Serve a call on a dataset: `ours_call` with `target`, or HDF5's own.
#define TAILRACE_SERVE_DATASET(real_call, ours_call)                                        \
  bool known = true;                                                                        \
  const std::optional<Target> target = ours::served_dataset(dataset, known);                \
  if (!target) return real().real_call;                                                     \
  if (!known) return static_cast<decltype(real().real_call)>(ours::fail_unknown(__func__)); \
  return guarded(__func__, [&] { return ours_call; })

// HDF5's names, with a prefix.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

TAILRACE_CALL hid_t tailrace_H5Fcreate(const char* name, unsigned flags, hid_t creation_list,
                                       hid_t access_list) {
  return guarded("H5Fcreate", [&] {
    return ours::create_file(name, flags, creation_list, access_list, [&] {
      return real().H5Fcreate(name, flags, creation_list, access_list);
    });
  });
}

TAILRACE_CALL hid_t tailrace_H5Fopen(const char* name, unsigned flags, hid_t access_list) {
  return guarded("H5Fopen", [&] {
    return ours::open_file_of(name, flags, access_list,
                              [&] { return real().H5Fopen(name, flags, access_list); });
  });
}

TAILRACE_CALL herr_t tailrace_H5Fclose(hid_t file) {
  Session* const session = ours::served_file(file);
  if (session == nullptr || !ours::is_last_reference(file)) return real().H5Fclose(file);
  return guarded("H5Fclose", [&] { return ours::close_file("H5Fclose", *session, file); });
}

TAILRACE_CALL int tailrace_H5Idec_ref(hid_t id) {
  Session* const session =
      ours::served() && ours::is_last_reference(id) ? ours::session_of_file(id) : nullptr;
  if (session == nullptr) return real().H5Idec_ref(id);
  return guarded("H5Idec_ref",
                 [&]() -> int { return ours::close_file("H5Idec_ref", *session, id); });
}

TAILRACE_CALL herr_t tailrace_H5close(void) {
  if (!tailrace::Hdf5Scope::held()) ours::end_sessions();
  return real().H5close();
}

TAILRACE_CALL herr_t tailrace_H5Fmount(hid_t location, const char* name, hid_t inner, hid_t list) {
  if (!ours::served()) return real().H5Fmount(location, name, inner, list);
  return guarded("H5Fmount", [&] { return ours::mount_file(location, name, inner, list); });
}
TAILRACE_CALL herr_t tailrace_H5Funmount(hid_t location, const char* name) {
  if (!ours::served()) return real().H5Funmount(location, name);
  return guarded("H5Funmount", [&] { return ours::unmount_file(location, name); });
}

TAILRACE_CALL herr_t tailrace_H5Fflush(hid_t object, H5F_scope_t scope) {
  TAILRACE_SERVE_FILE(object, H5Fflush(object, scope), ours::flush_session("H5Fflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Oflush(hid_t object) {
  TAILRACE_SERVE_OBJECT(object, H5Oflush(object), ours::flush_session("H5Oflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Dflush(hid_t dataset) {
  TAILRACE_SERVE_OBJECT(dataset, H5Dflush(dataset), ours::flush_session("H5Dflush", *session));
}
// The program always sees current data: metadata of its own file, and values read on each request.
TAILRACE_CALL herr_t tailrace_H5Orefresh(hid_t object) {
  TAILRACE_SERVE_OBJECT(object, H5Orefresh(object), herr_t{0});
}
TAILRACE_CALL herr_t tailrace_H5Drefresh(hid_t dataset) {
  TAILRACE_SERVE_OBJECT(dataset, H5Drefresh(dataset), herr_t{0});
}

// A new file has its name only after the first flush.
TAILRACE_CALL htri_t tailrace_H5Fis_hdf5(const char* name) {
  return ours::is_open_here(name) ? htri_t{1} : real().H5Fis_hdf5(name);
}
#ifdef TAILRACE_WITH_H5Fis_accessible
TAILRACE_CALL htri_t tailrace_H5Fis_accessible(const char* name, hid_t access_list) {
  return ours::is_open_here(name) ? htri_t{1} : real().H5Fis_accessible(name, access_list);
}
#endif
#ifdef TAILRACE_WITH_H5Fdelete
TAILRACE_CALL herr_t tailrace_H5Fdelete(const char* name, hid_t access_list) {
  if (!ours::is_open_here(name)) return real().H5Fdelete(name, access_list);
  return guarded("H5Fdelete", [&] { return ours::refuse("H5Fdelete", "the file is open"); });
}
#endif

TAILRACE_CALL hid_t tailrace_H5Fget_access_plist(hid_t file) {
  TAILRACE_SERVE_FILE(file, H5Fget_access_plist(file), H5Pcopy(session->access_list.get()));
}

TAILRACE_CALL ssize_t tailrace_H5Fget_name(hid_t object, char* name, size_t n_bytes) {
  Session* const session = ours::served_file(object);
  if (session == nullptr) return real().H5Fget_name(object, name, n_bytes);
  if (name != nullptr && n_bytes > 0) {
    const size_t n = std::min(session->name.size(), n_bytes - 1);
    session->name.copy(name, n);
    name[n] = '\0';
  }
  return static_cast<ssize_t>(session->name.size());
}

TAILRACE_CALL ssize_t tailrace_H5Fget_obj_count(hid_t file, unsigned types) {
  if (!ours::served()) return real().H5Fget_obj_count(file, types);
  return guarded("H5Fget_obj_count", [&]() -> ssize_t {
    std::vector<hid_t> ids;
    const ssize_t n = ours::list_ids(file, types, ids);
    return n < 0 ? real().H5Fget_obj_count(file, types) : n;
  });
}

TAILRACE_CALL ssize_t tailrace_H5Fget_obj_ids(hid_t file, unsigned types, size_t n_most,
                                              hid_t* list) {
  if (!ours::served()) return real().H5Fget_obj_ids(file, types, n_most, list);
  return guarded("H5Fget_obj_ids", [&]() -> ssize_t {
    std::vector<hid_t> ids;
    const ssize_t n = ours::list_ids(file, types, ids);
    if (n < 0 || list == nullptr) return real().H5Fget_obj_ids(file, types, n_most, list);
    const size_t n_given = std::min(n_most, ids.size());
    std::copy_n(ids.begin(), n_given, list);
    return static_cast<ssize_t>(n_given);
  });
}

TAILRACE_CALL herr_t tailrace_H5Fget_vfd_handle(hid_t file, hid_t access_list, void** handle) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_vfd_handle(file, access_list, handle),
                        ours::refuse("H5Fget_vfd_handle", "no rank holds the complete file"));
}
TAILRACE_CALL ssize_t tailrace_H5Fget_file_image(hid_t file, void* image, size_t n_bytes) {
  TAILRACE_SERVE_OBJECT(
      file, H5Fget_file_image(file, image, n_bytes),
      ssize_t{ours::refuse("H5Fget_file_image", "no rank holds the complete file")});
}
TAILRACE_CALL herr_t tailrace_H5Fget_filesize(hid_t file, hsize_t* n_bytes) {
  TAILRACE_SERVE_OBJECT(
      file, H5Fget_filesize(file, n_bytes),
      ours::refuse("H5Fget_filesize", "only rank 0 knows the size, after a flush"));
}
TAILRACE_CALL herr_t tailrace_H5Fstart_swmr_write(hid_t file) {
  TAILRACE_SERVE_OBJECT(
      file, H5Fstart_swmr_write(file),
      ours::refuse("H5Fstart_swmr_write", "readers see only what a flush has written"));
}
#ifdef TAILRACE_WITH_H5Fincrement_filesize
TAILRACE_CALL herr_t tailrace_H5Fincrement_filesize(hid_t file, hsize_t n_bytes) {
  TAILRACE_SERVE_OBJECT(file, H5Fincrement_filesize(file, n_bytes),
                        ours::refuse("H5Fincrement_filesize", "no rank holds the complete file"));
}
#endif
#ifdef TAILRACE_WITH_H5Fformat_convert
TAILRACE_CALL herr_t tailrace_H5Fformat_convert(hid_t file) {
  TAILRACE_SERVE_OBJECT(file, H5Fformat_convert(file),
                        ours::refuse("H5Fformat_convert", "the file has the format of HDF5 1.10"));
}
#endif
TAILRACE_CALL herr_t tailrace_H5Fset_mpi_atomicity(hid_t file, hbool_t atomic) {
  TAILRACE_SERVE_OBJECT(file, H5Fset_mpi_atomicity(file, atomic),
                        ours::set_atomicity(*session, atomic));
}
TAILRACE_CALL herr_t tailrace_H5Fget_mpi_atomicity(hid_t file, hbool_t* atomic) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_mpi_atomicity(file, atomic),
                        atomic == nullptr ? -1 : (*atomic = session->atomic, 0));
}

TAILRACE_CALL hid_t tailrace_H5Dcreate2(hid_t location, const char* name, hid_t type, hid_t space,
                                        hid_t link_list, hid_t creation_list, hid_t access_list) {
  Session* const session = ours::served_session(location);
  if (session == nullptr || name == nullptr) {
    return real().H5Dcreate2(location, name, type, space, link_list, creation_list, access_list);
  }
  const ours::CreateCall call{location, name, type, space, link_list, creation_list, access_list};
  return guarded("H5Dcreate2", [&] { return ours::create_dataset(*session, call); });
}
#ifdef TAILRACE_WITH_H5Dcreate1
TAILRACE_CALL hid_t tailrace_H5Dcreate1(hid_t location, const char* name, hid_t type, hid_t space,
                                        hid_t creation_list) {
  Session* const session = ours::served_session(location);
  if (session == nullptr || name == nullptr) {
    return real().H5Dcreate1(location, name, type, space, creation_list);
  }
  const ours::CreateCall call{location, name, type, space, H5P_DEFAULT, creation_list, H5P_DEFAULT};
  return guarded("H5Dcreate1", [&] { return ours::create_dataset(*session, call); });
}
#endif
TAILRACE_CALL hid_t tailrace_H5Dcreate_anon(hid_t location, hid_t type, hid_t space,
                                            hid_t creation_list, hid_t access_list) {
  Session* const session = ours::served_session(location);
  if (session == nullptr) {
    return real().H5Dcreate_anon(location, type, space, creation_list, access_list);
  }
  const ours::CreateCall call{location,    nullptr,       type,       space,
                              H5P_DEFAULT, creation_list, access_list};
  return guarded("H5Dcreate_anon", [&] { return ours::create_dataset(*session, call); });
}

TAILRACE_CALL herr_t tailrace_H5Dwrite(hid_t dataset, hid_t memory_type, hid_t memory_space,
                                       hid_t file_space, hid_t transfer_list, const void* values) {
  const ours::TransferCall call{memory_type, memory_space, file_space, transfer_list};
  TAILRACE_SERVE_DATASET(
      H5Dwrite(dataset, memory_type, memory_space, file_space, transfer_list, values),
      ours::write_dataset({*target, dataset, call}, values));
}
TAILRACE_CALL herr_t tailrace_H5Dread(hid_t dataset, hid_t memory_type, hid_t memory_space,
                                      hid_t file_space, hid_t transfer_list, void* values) {
  const ours::TransferCall call{memory_type, memory_space, file_space, transfer_list};
  TAILRACE_SERVE_DATASET(
      H5Dread(dataset, memory_type, memory_space, file_space, transfer_list, values),
      ours::read_dataset({*target, dataset, call}, values));
}

TAILRACE_CALL herr_t tailrace_H5Dset_extent(hid_t dataset, const hsize_t* size) {
  std::vector<hsize_t> extents;
  if (!ours::served() || !ours::extents_of(dataset, size, false, extents)) {
    return real().H5Dset_extent(dataset, size);
  }
  TAILRACE_SERVE_DATASET(H5Dset_extent(dataset, size),
                         ours::set_extents("H5Dset_extent", *target, dataset, extents));
}
#ifdef TAILRACE_WITH_H5Dextend
TAILRACE_CALL herr_t tailrace_H5Dextend(hid_t dataset, const hsize_t* size) {
  std::vector<hsize_t> extents;
  if (!ours::served() || !ours::extents_of(dataset, size, true, extents)) {
    return real().H5Dextend(dataset, size);
  }
  TAILRACE_SERVE_DATASET(H5Dextend(dataset, size),
                         ours::set_extents("H5Dextend", *target, dataset, extents));
}
#endif

TAILRACE_CALL hid_t tailrace_H5Dget_create_plist(hid_t dataset) {
  bool known = true;
  const std::optional<Target> target = ours::served_dataset(dataset, known);
  if (!target || !known) return real().H5Dget_create_plist(dataset);
  const auto& lists = target->session->creation_lists;
  const auto found = lists.find(target->dataset);
  return found == lists.end() ? real().H5Dget_create_plist(dataset) : H5Pcopy(found->second->get());
}
TAILRACE_CALL hsize_t tailrace_H5Dget_storage_size(hid_t dataset) {
  TAILRACE_SERVE_DATASET(H5Dget_storage_size(dataset), ours::plain_bytes(*target));
}
TAILRACE_CALL herr_t tailrace_H5Dget_space_status(hid_t dataset, H5D_space_status_t* status) {
  TAILRACE_SERVE_DATASET(H5Dget_space_status(dataset, status),
                         status == nullptr ? -1 : (*status = H5D_SPACE_STATUS_ALLOCATED, 0));
}

#define TAILRACE_REFUSE_DATASET(real_call, name) \
  TAILRACE_SERVE_DATASET(                        \
      real_call, ours::refuse(name, "Tailrace manages its chunks until the file is closed"))
TAILRACE_CALL herr_t tailrace_H5Dget_num_chunks(hid_t dataset, hid_t space, hsize_t* n_chunks) {
  TAILRACE_REFUSE_DATASET(H5Dget_num_chunks(dataset, space, n_chunks), "H5Dget_num_chunks");
}
TAILRACE_CALL haddr_t tailrace_H5Dget_offset(hid_t dataset) {
  TAILRACE_SERVE_DATASET(H5Dget_offset(dataset),
                         static_cast<haddr_t>(ours::refuse(
                             "H5Dget_offset", "only rank 0 knows the addresses of values")));
}
TAILRACE_CALL herr_t tailrace_H5Dget_chunk_info(hid_t dataset, hid_t space, hsize_t index,
                                                hsize_t* offset, unsigned* filter_mask,
                                                haddr_t* address, hsize_t* size) {
  TAILRACE_REFUSE_DATASET(
      H5Dget_chunk_info(dataset, space, index, offset, filter_mask, address, size),
      "H5Dget_chunk_info");
}
TAILRACE_CALL herr_t tailrace_H5Dget_chunk_info_by_coord(hid_t dataset, const hsize_t* offset,
                                                         unsigned* filter_mask, haddr_t* address,
                                                         hsize_t* size) {
  TAILRACE_REFUSE_DATASET(H5Dget_chunk_info_by_coord(dataset, offset, filter_mask, address, size),
                          "H5Dget_chunk_info_by_coord");
}
TAILRACE_CALL herr_t tailrace_H5Dget_chunk_storage_size(hid_t dataset, const hsize_t* offset,
                                                        hsize_t* n_bytes) {
  TAILRACE_SERVE_DATASET(H5Dget_chunk_storage_size(dataset, offset, n_bytes),
                         ours::read_chunk("H5Dget_chunk_storage_size", *target, dataset, offset,
                                          nullptr, nullptr, n_bytes));
}
TAILRACE_CALL herr_t tailrace_H5Dwrite_chunk(hid_t dataset, hid_t transfer_list, uint32_t filters,
                                             const hsize_t* offset, size_t n_bytes,
                                             const void* values) {
  TAILRACE_SERVE_DATASET(H5Dwrite_chunk(dataset, transfer_list, filters, offset, n_bytes, values),
                         ours::write_chunk(*target, dataset, offset, filters,
                                           {static_cast<const std::byte*>(values), n_bytes}));
}
#ifdef TAILRACE_WITH_H5Dread_chunk
TAILRACE_CALL herr_t tailrace_H5Dread_chunk(hid_t dataset, hid_t transfer_list,
                                            const hsize_t* offset, uint32_t* filters,
                                            void* values) {
  TAILRACE_SERVE_DATASET(
      H5Dread_chunk(dataset, transfer_list, offset, filters, values),
      ours::read_chunk("H5Dread_chunk", *target, dataset, offset, filters, values, nullptr));
}
#endif
#ifdef TAILRACE_WITH_H5Dread_chunk1
TAILRACE_CALL herr_t tailrace_H5Dread_chunk1(hid_t dataset, hid_t transfer_list,
                                             const hsize_t* offset, uint32_t* filters,
                                             void* values) {
  TAILRACE_REFUSE_DATASET(H5Dread_chunk1(dataset, transfer_list, offset, filters, values),
                          "H5Dread_chunk1");
}
#endif
#ifdef TAILRACE_WITH_H5Dread_chunk2
TAILRACE_CALL herr_t tailrace_H5Dread_chunk2(hid_t dataset, hid_t transfer_list,
                                             const hsize_t* offset, uint32_t* filters, void* values,
                                             size_t* n_bytes) {
  TAILRACE_REFUSE_DATASET(H5Dread_chunk2(dataset, transfer_list, offset, filters, values, n_bytes),
                          "H5Dread_chunk2");
}
#endif
#ifdef TAILRACE_WITH_H5Dchunk_iter
TAILRACE_CALL herr_t tailrace_H5Dchunk_iter(hid_t dataset, hid_t transfer_list,
                                            H5D_chunk_iter_op_t visit, void* data) {
  TAILRACE_REFUSE_DATASET(H5Dchunk_iter(dataset, transfer_list, visit, data), "H5Dchunk_iter");
}
#endif

TAILRACE_CALL herr_t tailrace_H5Ocopy(hid_t from, const char* from_name, hid_t to,
                                      const char* to_name, hid_t copy_list, hid_t link_list) {
  if (ours::served_session(from) == nullptr && ours::served_session(to) == nullptr) {
    return real().H5Ocopy(from, from_name, to, to_name, copy_list, link_list);
  }
  return guarded("H5Ocopy", [&] {
    return ours::copy_object(from, from_name, to, to_name, copy_list, link_list);
  });
}
TAILRACE_CALL herr_t tailrace_H5Ldelete(hid_t location, const char* name, hid_t access_list) {
  const ours::Deletion deletion(location, name);
  return real().H5Ldelete(location, name, access_list);
}
TAILRACE_CALL herr_t tailrace_H5Odecr_refcount(hid_t object) {
  const ours::Deletion deletion(object);
  const herr_t counted = real().H5Odecr_refcount(object);
  if (counted >= 0) ours::note_count(object, -1);
  return counted;
}
TAILRACE_CALL hid_t tailrace_H5Acreate2(hid_t object, const char* name, hid_t type, hid_t space,
                                        hid_t creation_list, hid_t access_list) {
  const hid_t made = real().H5Acreate2(object, name, type, space, creation_list, access_list);
  if (made >= 0) ours::note_attribute(object, nullptr, name);
  return made;
}
#ifdef TAILRACE_WITH_H5Acreate1
TAILRACE_CALL hid_t tailrace_H5Acreate1(hid_t object, const char* name, hid_t type, hid_t space,
                                        hid_t creation_list) {
  const hid_t made = real().H5Acreate1(object, name, type, space, creation_list);
  if (made >= 0) ours::note_attribute(object, nullptr, name);
  return made;
}
#endif
TAILRACE_CALL hid_t tailrace_H5Acreate_by_name(hid_t location, const char* object, const char* name,
                                               hid_t type, hid_t space, hid_t creation_list,
                                               hid_t access_list, hid_t link_list) {
  const hid_t made = real().H5Acreate_by_name(location, object, name, type, space, creation_list,
                                              access_list, link_list);
  if (made >= 0) ours::note_attribute(location, object, name);
  return made;
}
TAILRACE_CALL herr_t tailrace_H5Oincr_refcount(hid_t object) {
  const herr_t counted = real().H5Oincr_refcount(object);
  if (counted >= 0) ours::note_count(object, 1);
  return counted;
}
#ifdef TAILRACE_WITH_H5Gunlink
TAILRACE_CALL herr_t tailrace_H5Gunlink(hid_t location, const char* name) {
  const ours::Deletion deletion(location, name);
  return real().H5Gunlink(location, name);
}
#endif
TAILRACE_CALL herr_t tailrace_H5Ldelete_by_idx(hid_t location, const char* group, H5_index_t index,
                                               H5_iter_order_t order, hsize_t n,
                                               hid_t access_list) {
  const ours::Deletion deletion(location, group);
  return real().H5Ldelete_by_idx(location, group, index, order, n, access_list);
}

// --- calls of HDF5 1.14

#ifdef TAILRACE_WITH_H5Dwrite_multi
#define TAILRACE_SERVE_MANY(function, serve, real_call)                              \
  const ours::MultiCall call{function,      n,           datasets,     memory_types, \
                             memory_spaces, file_spaces, transfer_list};             \
  return guarded(function, [&] { return serve(call, values, [&] { return real_call; }); })

TAILRACE_CALL herr_t tailrace_H5Dwrite_multi(size_t n, hid_t* datasets, hid_t* memory_types,
                                             hid_t* memory_spaces, hid_t* file_spaces,
                                             hid_t transfer_list, const void** values) {
  TAILRACE_SERVE_MANY("H5Dwrite_multi", ours::write_many,
                      real().H5Dwrite_multi(n, datasets, memory_types, memory_spaces, file_spaces,
                                            transfer_list, values));
}
TAILRACE_CALL herr_t tailrace_H5Dread_multi(size_t n, hid_t* datasets, hid_t* memory_types,
                                            hid_t* memory_spaces, hid_t* file_spaces,
                                            hid_t transfer_list, void** values) {
  TAILRACE_SERVE_MANY("H5Dread_multi", ours::read_many,
                      real().H5Dread_multi(n, datasets, memory_types, memory_spaces, file_spaces,
                                           transfer_list, values));
}
#endif

#ifdef TAILRACE_WITH_H5Dwrite_multi_async
// Source location of the call, and the event set: passed on to HDF5.
#define TAILRACE_CALLER const char *file_name, const char *caller, unsigned line
#define TAILRACE_BY file_name, caller, line

TAILRACE_CALL hid_t tailrace_H5Fcreate_async(TAILRACE_CALLER, const char* name, unsigned flags,
                                             hid_t creation_list, hid_t access_list, hid_t events) {
  return guarded("H5Fcreate", [&] {
    return ours::create_file(name, flags, creation_list, access_list, [&] {
      return real().H5Fcreate_async(TAILRACE_BY, name, flags, creation_list, access_list, events);
    });
  });
}
TAILRACE_CALL hid_t tailrace_H5Fopen_async(TAILRACE_CALLER, const char* name, unsigned flags,
                                           hid_t access_list, hid_t events) {
  return guarded("H5Fopen", [&] {
    return ours::open_file_of(name, flags, access_list, [&] {
      return real().H5Fopen_async(TAILRACE_BY, name, flags, access_list, events);
    });
  });
}
TAILRACE_CALL herr_t tailrace_H5Fclose_async(TAILRACE_CALLER, hid_t file, hid_t events) {
  if (ours::served_session(file) != nullptr) return tailrace_H5Fclose(file);
  return real().H5Fclose_async(TAILRACE_BY, file, events);
}
TAILRACE_CALL herr_t tailrace_H5Fflush_async(TAILRACE_CALLER, hid_t object, H5F_scope_t scope,
                                             hid_t events) {
  TAILRACE_SERVE_FILE(object, H5Fflush_async(TAILRACE_BY, object, scope, events),
                      ours::flush_session("H5Fflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Oflush_async(TAILRACE_CALLER, hid_t object, hid_t events) {
  TAILRACE_SERVE_OBJECT(object, H5Oflush_async(TAILRACE_BY, object, events),
                        ours::flush_session("H5Oflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Orefresh_async(TAILRACE_CALLER, hid_t object, hid_t events) {
  TAILRACE_SERVE_OBJECT(object, H5Orefresh_async(TAILRACE_BY, object, events), herr_t{0});
}
TAILRACE_CALL hid_t tailrace_H5Dcreate_async(TAILRACE_CALLER, hid_t location, const char* name,
                                             hid_t type, hid_t space, hid_t link_list,
                                             hid_t creation_list, hid_t access_list, hid_t events) {
  Session* const session = ours::served_session(location);
  if (session == nullptr || name == nullptr) {
    return real().H5Dcreate_async(TAILRACE_BY, location, name, type, space, link_list,
                                  creation_list, access_list, events);
  }
  const ours::CreateCall call{location, name, type, space, link_list, creation_list, access_list};
  return guarded("H5Dcreate", [&] { return ours::create_dataset(*session, call); });
}
TAILRACE_CALL herr_t tailrace_H5Dwrite_async(TAILRACE_CALLER, hid_t dataset, hid_t memory_type,
                                             hid_t memory_space, hid_t file_space,
                                             hid_t transfer_list, const void* values,
                                             hid_t events) {
  const ours::TransferCall call{memory_type, memory_space, file_space, transfer_list};
  TAILRACE_SERVE_DATASET(H5Dwrite_async(TAILRACE_BY, dataset, memory_type, memory_space, file_space,
                                        transfer_list, values, events),
                         ours::write_dataset({*target, dataset, call}, values));
}
TAILRACE_CALL herr_t tailrace_H5Dread_async(TAILRACE_CALLER, hid_t dataset, hid_t memory_type,
                                            hid_t memory_space, hid_t file_space,
                                            hid_t transfer_list, void* values, hid_t events) {
  const ours::TransferCall call{memory_type, memory_space, file_space, transfer_list};
  TAILRACE_SERVE_DATASET(H5Dread_async(TAILRACE_BY, dataset, memory_type, memory_space, file_space,
                                       transfer_list, values, events),
                         ours::read_dataset({*target, dataset, call}, values));
}
TAILRACE_CALL herr_t tailrace_H5Dwrite_multi_async(TAILRACE_CALLER, size_t n, hid_t* datasets,
                                                   hid_t* memory_types, hid_t* memory_spaces,
                                                   hid_t* file_spaces, hid_t transfer_list,
                                                   const void** values, hid_t events) {
  TAILRACE_SERVE_MANY(
      "H5Dwrite_multi", ours::write_many,
      real().H5Dwrite_multi_async(TAILRACE_BY, n, datasets, memory_types, memory_spaces,
                                  file_spaces, transfer_list, values, events));
}
TAILRACE_CALL herr_t tailrace_H5Dread_multi_async(TAILRACE_CALLER, size_t n, hid_t* datasets,
                                                  hid_t* memory_types, hid_t* memory_spaces,
                                                  hid_t* file_spaces, hid_t transfer_list,
                                                  void** values, hid_t events) {
  TAILRACE_SERVE_MANY(
      "H5Dread_multi", ours::read_many,
      real().H5Dread_multi_async(TAILRACE_BY, n, datasets, memory_types, memory_spaces, file_spaces,
                                 transfer_list, values, events));
}
TAILRACE_CALL herr_t tailrace_H5Dset_extent_async(TAILRACE_CALLER, hid_t dataset,
                                                  const hsize_t* size, hid_t events) {
  if (ours::served_session(dataset) != nullptr) return tailrace_H5Dset_extent(dataset, size);
  return real().H5Dset_extent_async(TAILRACE_BY, dataset, size, events);
}
TAILRACE_CALL herr_t tailrace_H5Ocopy_async(TAILRACE_CALLER, hid_t from, const char* from_name,
                                            hid_t to, const char* to_name, hid_t copy_list,
                                            hid_t link_list, hid_t events) {
  if (ours::served_session(from) != nullptr || ours::served_session(to) != nullptr) {
    return tailrace_H5Ocopy(from, from_name, to, to_name, copy_list, link_list);
  }
  return real().H5Ocopy_async(TAILRACE_BY, from, from_name, to, to_name, copy_list, link_list,
                              events);
}
TAILRACE_CALL herr_t tailrace_H5Ldelete_async(TAILRACE_CALLER, hid_t location, const char* name,
                                              hid_t access_list, hid_t events) {
  const ours::Deletion deletion(location, name);
  return real().H5Ldelete_async(TAILRACE_BY, location, name, access_list, events);
}
TAILRACE_CALL herr_t tailrace_H5Ldelete_by_idx_async(TAILRACE_CALLER, hid_t location,
                                                     const char* group, H5_index_t index,
                                                     H5_iter_order_t order, hsize_t n,
                                                     hid_t access_list, hid_t events) {
  const ours::Deletion deletion(location, group);
  return real().H5Ldelete_by_idx_async(TAILRACE_BY, location, group, index, order, n, access_list,
                                       events);
}
#endif

__attribute__((visibility("default"), used)) const ours::ServingLibrary* tailrace_hdf5_serving(
    void) {
#define TAILRACE_HDF5_ENTRY(name, version) reinterpret_cast<ours::Hdf5Call>(&tailrace_##name),
  static const ours::Hdf5Call calls[] = {TAILRACE_HDF5_CALLS(TAILRACE_HDF5_ENTRY)};
  static const ours::ServingLibrary serving{
      calls, reinterpret_cast<const void*>(&H5get_libversion),
      [](hid_t object) {
        const Session* const session = ours::session_of_file(object);
        return session == nullptr ? hid_t{H5I_INVALID_HID} : session->file();
      },
      ours::note_attribute, ours::end_sessions};
  return &serving;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
