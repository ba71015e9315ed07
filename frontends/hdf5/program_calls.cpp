// The calls of a program: those that concern a session are served, all others handed on.
//
// Each is defined under a name of ours and exported under HDF5's, bound to the version by which
// Debian's parallel HDF5 has it (real_hdf5.hpp, hdf5_calls.map). Serving starts outside of any
// Hdf5Scope: what is handed on prints its errors as the program wants it.

#include <hdf5.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "array/array_file.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"
#include "hdf5_filter/own_filters.hpp"

namespace tailrace::hdf5_programs {
namespace {

const RealHdf5& real() { return real_hdf5(); }

/// Whether a call can concern us at all. Cheap: most calls of most programs end here.
bool served() { return any_session() && !Hdf5Scope::held(); }

// --- files

/// The communicator of a list that opens files by MPI-IO; MPI_COMM_NULL: it does not.
MPI_Comm communicator_of(hid_t access_list) {
  if (access_list == H5P_DEFAULT || switched_off()) return MPI_COMM_NULL;
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised == 0) return MPI_COMM_NULL;
  const Hdf5Scope scope;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  if (H5Pget_driver(access_list) != H5FD_MPIO) return MPI_COMM_NULL;
  if (H5Pget_fapl_mpio(access_list, &comm, &info) < 0) return MPI_COMM_NULL;
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  return comm;
}

/// A file with a block of the user's before HDF5's is left to HDF5.
bool has_user_block(hid_t creation_list) {
  if (creation_list == H5P_DEFAULT) return false;
  const Hdf5Scope scope;
  hsize_t n_bytes = 0;
  return H5Pget_userblock(creation_list, &n_bytes) >= 0 && n_bytes > 0;
}

struct OpenCall {
  const char* name = nullptr;
  bool create = false;
  bool replace = false;
  hid_t creation_list = H5P_DEFAULT;
  hid_t access_list = H5P_DEFAULT;
};

/// Errors are alike on all ranks.
Result<std::unique_ptr<Session>> open_file(const OpenCall& call, MPI_Comm comm) {
  const Hdf5Scope scope;  // Also for what ends here when something fails.
  auto session = std::make_unique<Session>();
  session->name = call.name;
  session->path = path_of_name(call.name);
  // The program may change its folder before the file has its name.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(call.name, error);
  const std::string path = error ? std::string(call.name) : absolute.string();
  TAILRACE_TAKE(std::unique_ptr<Comm> ranks, make_mpi_comm(&comm, sizeof(MPI_Comm)));
  ArrayFileOptions options;
  TAILRACE_TRY(read_array_options(*ranks, options));
  TAILRACE_TRY(hdf5::register_own_filters());
  // Copying a list that has a communicator duplicates that: all ranks do so here, together, and
  // what each rank does by itself is done with a list that has none.
  session->access_list = Hdf5Id(H5Pcopy(call.access_list));
  const Hdf5Id without_mpi(H5Pcopy(call.access_list));
  if (!session->access_list.valid() || H5Pset_fapl_sec2(without_mpi.get()) < 0) {
    return hdf5_failure(Code::invalid_argument, "the file access list");
  }
  options.file.replace = call.replace;
  options.file.hdf5_access_list = without_mpi.get();
  options.file.hdf5_creation_list = call.creation_list;
  if (call.create) {
    TAILRACE_TAKE(session->array, DatasetArray::create(std::move(ranks), path, options));
    return session;
  }
  TAILRACE_TAKE(session->array, DatasetArray::open(std::move(ranks), path, options));
  TAILRACE_TRY(enter_datasets(*session));
  return session;
}

hid_t open_session(const char* function, const OpenCall& call, MPI_Comm comm) {
  Result<std::unique_ptr<Session>> session = open_file(call, comm);
  MPI_Comm_free(&comm);
  if (!session.ok()) return fail(function, session.status());
  return begin_session(std::move(*session));
}

/// Another id of a file that a session has open.
hid_t open_again(const Session& session) {
  const Hdf5Scope scope;
  return H5Freopen(session.file());
}

hid_t create_file(const char* name, unsigned flags, hid_t creation_list, hid_t access_list) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (name != nullptr && !Hdf5Scope::held()) comm = communicator_of(access_list);
  if (comm == MPI_COMM_NULL) return real().H5Fcreate(name, flags, creation_list, access_list);
  if (has_user_block(creation_list)) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
      std::fprintf(stderr, "tailrace: %s has a user block: written by HDF5 alone\n", name);
    }
    MPI_Comm_free(&comm);
    return real().H5Fcreate(name, flags, creation_list, access_list);
  }
  if (session_of_path(path_of_name(name)) != nullptr) {
    MPI_Comm_free(&comm);
    return fail("H5Fcreate", Status(Code::already_exists,
                                    "file \"" + std::string(name) + "\" is open in this program"));
  }
  OpenCall call;
  call.name = name;
  call.create = true;
  call.replace = (flags & H5F_ACC_TRUNC) != 0;
  call.creation_list = creation_list;
  call.access_list = access_list;
  return open_session("H5Fcreate", call, comm);
}

hid_t open_file_of(const char* name, unsigned flags, hid_t access_list) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (name != nullptr && !Hdf5Scope::held()) comm = communicator_of(access_list);
  if (comm == MPI_COMM_NULL) return real().H5Fopen(name, flags, access_list);
  const Session* open = session_of_path(path_of_name(name));
  if (open != nullptr || (flags & H5F_ACC_RDWR) == 0) {
    MPI_Comm_free(&comm);
    if (open != nullptr) return open_again(*open);
    // HDF5 reads it alone, also what our own codecs have written.
    static const bool entered = hdf5::register_own_filters().ok();
    (void)entered;
    return real().H5Fopen(name, flags, access_list);
  }
  OpenCall call;
  call.name = name;
  call.access_list = access_list;
  return open_session("H5Fopen", call, comm);
}

/// The program gives one of its ids of a session's file back: what HDF5 says, and, once no rank
/// has any left, the end of the session. Collective.
herr_t close_file(const char* function, Session& session, hid_t id) {
  // One id of several: no other rank need have had it.
  if (n_ids_of_program(session, H5F_OBJ_FILE) > 1) return real().H5Fclose(id);
  const herr_t closed = real().H5Fclose(id);
  std::uint64_t left[2] = {closed < 0 ? 1U : 0U, 0};
  {
    const KeptErrors kept;
    left[1] = n_ids_of_program(session, H5F_OBJ_ALL);
  }
  session.array->comm().allreduce(std::span<std::uint64_t>(left), Reduction::max);
  if (left[0] != 0) return closed;
  const Status done = left[1] == 0 ? end_session(session) : session.array->flush();
  return done.ok() ? 0 : fail(function, done);
}

bool is_last_reference(hid_t id) {
  const Hdf5Scope scope;
  return H5Iget_type(id) == H5I_FILE && H5Iget_ref(id) == 1;
}

herr_t flush_session(const char* function, Session& session) {
  const Status flushed = session.array->flush();
  return flushed.ok() ? 0 : fail(function, flushed);
}

/// What a program asks that a session has no answer to.
int refuse(const char* function, const std::string& what) {
  return fail(function, Status(Code::unsupported, std::string(function) +
                                                      " is not served for compressed files: " +
                                                      what + " (docs/hdf5.md; TAILRACE_HDF5=off)"));
}

/// Ids of ours are left out of what HDF5 lists. @returns how many there are of the program's, or -1
ssize_t list_ids(hid_t file, unsigned types, std::vector<hid_t>& ids) {
  const Hdf5Scope scope;
  const ssize_t n = H5Fget_obj_count(file, types);
  if (n < 0) return n;
  ids.resize(static_cast<std::size_t>(n));
  if (n > 0 && H5Fget_obj_ids(file, types, ids.size(), ids.data()) < 0) return -1;
  std::erase_if(ids, [](hid_t id) {
    return std::ranges::any_of(all_sessions(),
                               [&](const Session* session) { return session->file() == id; });
  });
  return static_cast<ssize_t>(ids.size());
}

// --- datasets

herr_t fail_unknown(const char* function) {
  return fail(function,
              Status(Code::unsupported,
                     "the dataset came into the file by a call that is not understood here "
                     "(docs/hdf5.md; TAILRACE_HDF5=off)"));
}

/// Extents that HDF5 gives a dataset of a session. Collective, as H5Dset_extent is.
herr_t set_extents(const char* function, const Target& target, hid_t dataset,
                   const std::vector<hsize_t>& extents) {
  DatasetArray& array = *target.session->array;
  const std::string what = "dataset \"" + array.path_of(target.dataset) + "\"";
  const Result<DatasetArray::Facts> facts = array.facts(target.dataset);
  if (!facts.ok()) return fail(function, facts.status());
  bool shrinks = false;
  for (std::size_t d = 0; d < extents.size() && d < facts->shape->size(); ++d) {
    shrinks = shrinks || extents[d] < (*facts->shape)[d];
  }
  // HDF5 cuts the chunks that it knows; so all that is staged must be in them.
  const bool cuts = shrinks && array.holds_values(target.dataset);
  if (cuts && !array.hdf5_can_cut(target.dataset)) {
    return refuse(function, what + " has been flushed, and HDF5 would encode its chunks anew");
  }
  const Shape shape(extents.begin(), extents.end());
  Status done;
  if (cuts) {
    if (const Status flushed = array.flush(); !flushed.ok()) return fail(function, flushed);
    done = array.before_cut(target.dataset, shape);
  }
  const herr_t set = real().H5Dset_extent(dataset, extents.data());
  // Whatever has failed on this rank: what all must know alike goes on, and the others wait in the
  // flush.
  const auto go_on = [&](const Status& next) {
    if (done.ok()) done = next;
  };
  if (set >= 0) go_on(array.set_shape(target.dataset, shape));
  if (cuts) {
    // What HDF5 has made of the chunks at the edge is in its cache.
    if (set >= 0) go_on(flush_elements(dataset));
    if (set >= 0) go_on(array.after_cut(target.dataset));
    if (!done.ok()) array.fail(done);
    go_on(array.flush());
  }
  if (set < 0) return set;
  return done.ok() ? 0 : fail(function, done);
}

/// The extents that a call gives, of as many dimensions as the dataset has.
bool extents_of(hid_t dataset, const hsize_t* given, bool only_larger,
                std::vector<hsize_t>& extents) {
  const Hdf5Scope scope;
  const Hdf5Id space(H5Dget_space(dataset));
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank <= 0 || given == nullptr) return false;
  extents.resize(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    extents[d] = only_larger ? std::max(extents[d], given[d]) : given[d];
  }
  return true;
}

/// A dataset of a session, where the call is to be served.
std::optional<Target> served_dataset(hid_t dataset, bool& known) {
  known = true;
  return served() ? target_of(dataset, known) : std::nullopt;
}

Session* served_session(hid_t object) { return served() ? session_of(object) : nullptr; }

herr_t write_dataset(const Target& target, hid_t dataset, const TransferCall& call,
                     const void* values) {
  const Status written = write_elements_of(target, dataset, call, values);
  return written.ok() ? 0 : fail("H5Dwrite", written);
}

bool is_virtual(hid_t dataset) {
  const Hdf5Scope scope;
  const Hdf5Id list(H5Dget_create_plist(dataset));
  return list.valid() && H5Pget_layout(list.get()) == H5D_VIRTUAL;
}

herr_t read_dataset(const Target& target, hid_t dataset, const TransferCall& call, void* values) {
  const Result<DatasetArray::Facts> facts = target.session->array->facts(target.dataset);
  if (facts.ok() && !facts->by_value && !is_virtual(dataset)) {
    // Nobody has written such values here: every rank has what the file held when it was opened.
    return real().H5Dread(dataset, call.memory_type, call.memory_space, call.file_space,
                          H5P_DEFAULT, values);
  }
  const Status read = read_elements_of(target, dataset, call, values);
  return read.ok() ? 0 : fail("H5Dread", read);
}

herr_t copy_object(hid_t from, const char* from_name, hid_t to, const char* to_name,
                   hid_t copy_list, hid_t link_list) {
  Session* const source = served_session(from);
  Session* const target = served_session(to);
  if (target == nullptr) {
    return refuse("H5Ocopy", "the values are not on every rank, the copy would be");
  }
  for (Session* session : {source, target != source ? target : nullptr}) {
    if (session == nullptr) continue;
    if (const herr_t flushed = flush_session("H5Ocopy", *session); flushed < 0) return flushed;
  }
  const herr_t copied = real().H5Ocopy(from, from_name, to, to_name, copy_list, link_list);
  if (copied >= 0) {
    const Status entered = enter_copies(*target, to, to_name);
    if (!entered.ok()) target->array->fail(entered);
  }
  if (copied >= 0) return flush_session("H5Ocopy", *target);
  const KeptErrors kept;  // Other ranks wait for this one all the same.
  static_cast<void>(target->array->flush());
  return copied;
}

void note_deletion(hid_t location) {
  if (Session* session = served_session(location); session != nullptr) {
    session->array->look_for_deleted();
  }
}

/// What plain storage of the dataset would take: nobody but rank 0 knows of its chunks.
hsize_t plain_bytes(const Target& target) {
  const Result<DatasetArray::Facts> facts = target.session->array->facts(target.dataset);
  return facts.ok() ? n_elements(*facts->shape) * facts->element_bytes : 0;
}

}  // namespace
}  // namespace tailrace::hdf5_programs

namespace ours = tailrace::hdf5_programs;
using ours::guarded;
using ours::real;
using ours::Session;
using ours::Target;

// By version, never by default: a program's own HDF5 without versions must not be given these.
#define TAILRACE_HDF5_BIND(name, version) \
  __asm__(".symver tailrace_" #name "," #name "@HDF5_MPI_" version);
TAILRACE_HDF5_CALLS(TAILRACE_HDF5_BIND)

#define TAILRACE_CALL __attribute__((visibility("default"), used))

/// A call on an object: `ours_call` with `session`, or HDF5's own.
#define TAILRACE_SERVE_OBJECT(object, real_call, ours_call) \
  Session* const session = ours::served_session(object);    \
  if (session == nullptr) return real().real_call;          \
  return guarded(__func__, [&] { return ours_call; })

/// A call on a dataset: `ours_call` with `target`, or HDF5's own.
#define TAILRACE_SERVE_DATASET(real_call, ours_call)                                        \
  bool known = true;                                                                        \
  const std::optional<Target> target = ours::served_dataset(dataset, known);                \
  if (!target) return real().real_call;                                                     \
  if (!known) return static_cast<decltype(real().real_call)>(ours::fail_unknown(__func__)); \
  return guarded(__func__, [&] { return ours_call; })

// HDF5's names, with one of ours before them.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

// The only one that has a name of its own, so that one can ask whether the library is there.
TAILRACE_CALL int tailrace_hdf5_loaded(void) { return 1; }

TAILRACE_CALL hid_t tailrace_H5Fcreate(const char* name, unsigned flags, hid_t creation_list,
                                       hid_t access_list) {
  return guarded("H5Fcreate",
                 [&] { return ours::create_file(name, flags, creation_list, access_list); });
}

TAILRACE_CALL hid_t tailrace_H5Fopen(const char* name, unsigned flags, hid_t access_list) {
  return guarded("H5Fopen", [&] { return ours::open_file_of(name, flags, access_list); });
}

TAILRACE_CALL herr_t tailrace_H5Fclose(hid_t file) {
  Session* const session = ours::served_session(file);
  if (session == nullptr || !ours::is_last_reference(file)) return real().H5Fclose(file);
  return guarded("H5Fclose", [&] { return ours::close_file("H5Fclose", *session, file); });
}

TAILRACE_CALL int tailrace_H5Idec_ref(hid_t id) {
  Session* const session =
      ours::served() && ours::is_last_reference(id) ? ours::session_of(id) : nullptr;
  if (session == nullptr) return real().H5Idec_ref(id);
  return guarded("H5Idec_ref",
                 [&]() -> int { return ours::close_file("H5Idec_ref", *session, id); });
}

TAILRACE_CALL herr_t tailrace_H5close(void) {
  if (!tailrace::Hdf5Scope::held()) {
    for (Session* session : ours::all_sessions()) {
      const tailrace::Status ended = ours::end_session_by_force(*session);
      if (!ended.ok()) ours::fail("H5close", ended);
    }
  }
  return real().H5close();
}

TAILRACE_CALL herr_t tailrace_H5Fflush(hid_t object, H5F_scope_t scope) {
  TAILRACE_SERVE_OBJECT(object, H5Fflush(object, scope), ours::flush_session("H5Fflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Oflush(hid_t object) {
  TAILRACE_SERVE_OBJECT(object, H5Oflush(object), ours::flush_session("H5Oflush", *session));
}
TAILRACE_CALL herr_t tailrace_H5Dflush(hid_t dataset) {
  TAILRACE_SERVE_OBJECT(dataset, H5Dflush(dataset), ours::flush_session("H5Dflush", *session));
}
// What a program sees is always fresh: its own file's metadata, and values that are asked for anew.
TAILRACE_CALL herr_t tailrace_H5Orefresh(hid_t object) {
  TAILRACE_SERVE_OBJECT(object, H5Orefresh(object), herr_t{0});
}
TAILRACE_CALL herr_t tailrace_H5Drefresh(hid_t dataset) {
  TAILRACE_SERVE_OBJECT(dataset, H5Drefresh(dataset), herr_t{0});
}

TAILRACE_CALL hid_t tailrace_H5Fget_access_plist(hid_t file) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_access_plist(file), H5Pcopy(session->access_list.get()));
}

TAILRACE_CALL ssize_t tailrace_H5Fget_name(hid_t object, char* name, size_t n_bytes) {
  Session* const session = ours::served_session(object);
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
                        ours::refuse("H5Fget_vfd_handle", "no rank has the whole file"));
}
TAILRACE_CALL ssize_t tailrace_H5Fget_file_image(hid_t file, void* image, size_t n_bytes) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_file_image(file, image, n_bytes),
                        ssize_t{ours::refuse("H5Fget_file_image", "no rank has the whole file")});
}
TAILRACE_CALL herr_t tailrace_H5Fget_filesize(hid_t file, hsize_t* n_bytes) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_filesize(file, n_bytes),
                        ours::refuse("H5Fget_filesize", "only rank 0 knows, after a flush"));
}
TAILRACE_CALL herr_t tailrace_H5Fstart_swmr_write(hid_t file) {
  TAILRACE_SERVE_OBJECT(file, H5Fstart_swmr_write(file),
                        ours::refuse("H5Fstart_swmr_write", "readers see flushes only"));
}
TAILRACE_CALL herr_t tailrace_H5Fset_mpi_atomicity(hid_t file, hbool_t atomic) {
  TAILRACE_SERVE_OBJECT(
      file, H5Fset_mpi_atomicity(file, atomic),
      atomic ? ours::refuse("H5Fset_mpi_atomicity", "others' values are seen after a flush") : 0);
}
TAILRACE_CALL herr_t tailrace_H5Fget_mpi_atomicity(hid_t file, hbool_t* atomic) {
  TAILRACE_SERVE_OBJECT(file, H5Fget_mpi_atomicity(file, atomic),
                        atomic == nullptr ? -1 : (*atomic = false, 0));
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
TAILRACE_CALL hid_t tailrace_H5Dcreate1(hid_t location, const char* name, hid_t type, hid_t space,
                                        hid_t creation_list) {
  Session* const session = ours::served_session(location);
  if (session == nullptr || name == nullptr) {
    return real().H5Dcreate1(location, name, type, space, creation_list);
  }
  const ours::CreateCall call{location, name, type, space, H5P_DEFAULT, creation_list, H5P_DEFAULT};
  return guarded("H5Dcreate1", [&] { return ours::create_dataset(*session, call); });
}
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
      ours::write_dataset(*target, dataset, call, values));
}
TAILRACE_CALL herr_t tailrace_H5Dread(hid_t dataset, hid_t memory_type, hid_t memory_space,
                                      hid_t file_space, hid_t transfer_list, void* values) {
  const ours::TransferCall call{memory_type, memory_space, file_space, transfer_list};
  TAILRACE_SERVE_DATASET(
      H5Dread(dataset, memory_type, memory_space, file_space, transfer_list, values),
      ours::read_dataset(*target, dataset, call, values));
}

TAILRACE_CALL herr_t tailrace_H5Dset_extent(hid_t dataset, const hsize_t* size) {
  std::vector<hsize_t> extents;
  if (!ours::served() || !ours::extents_of(dataset, size, false, extents)) {
    return real().H5Dset_extent(dataset, size);
  }
  TAILRACE_SERVE_DATASET(H5Dset_extent(dataset, size),
                         ours::set_extents("H5Dset_extent", *target, dataset, extents));
}
TAILRACE_CALL herr_t tailrace_H5Dextend(hid_t dataset, const hsize_t* size) {
  std::vector<hsize_t> extents;
  if (!ours::served() || !ours::extents_of(dataset, size, true, extents)) {
    return real().H5Dextend(dataset, size);
  }
  TAILRACE_SERVE_DATASET(H5Dextend(dataset, size),
                         ours::set_extents("H5Dextend", *target, dataset, extents));
}

TAILRACE_CALL hid_t tailrace_H5Dget_create_plist(hid_t dataset) {
  bool known = true;
  const std::optional<Target> target = ours::served_dataset(dataset, known);
  if (!target || !known) return real().H5Dget_create_plist(dataset);
  const auto& lists = target->session->creation_lists;
  const auto found = lists.find(target->dataset);
  return found == lists.end() ? real().H5Dget_create_plist(dataset) : H5Pcopy(found->second.get());
}
TAILRACE_CALL hsize_t tailrace_H5Dget_storage_size(hid_t dataset) {
  TAILRACE_SERVE_DATASET(H5Dget_storage_size(dataset), ours::plain_bytes(*target));
}
TAILRACE_CALL herr_t tailrace_H5Dget_space_status(hid_t dataset, H5D_space_status_t* status) {
  TAILRACE_SERVE_DATASET(H5Dget_space_status(dataset, status),
                         status == nullptr ? -1 : (*status = H5D_SPACE_STATUS_ALLOCATED, 0));
}

#define TAILRACE_REFUSE_DATASET(real_call, name) \
  TAILRACE_SERVE_DATASET(real_call,              \
                         ours::refuse(name, "its chunks are Tailrace's until the file is closed"))
TAILRACE_CALL herr_t tailrace_H5Dget_num_chunks(hid_t dataset, hid_t space, hsize_t* n_chunks) {
  TAILRACE_REFUSE_DATASET(H5Dget_num_chunks(dataset, space, n_chunks), "H5Dget_num_chunks");
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
  TAILRACE_REFUSE_DATASET(H5Dget_chunk_storage_size(dataset, offset, n_bytes),
                          "H5Dget_chunk_storage_size");
}
TAILRACE_CALL herr_t tailrace_H5Dwrite_chunk(hid_t dataset, hid_t transfer_list, uint32_t filters,
                                             const hsize_t* offset, size_t n_bytes,
                                             const void* values) {
  TAILRACE_REFUSE_DATASET(H5Dwrite_chunk(dataset, transfer_list, filters, offset, n_bytes, values),
                          "H5Dwrite_chunk");
}
TAILRACE_CALL herr_t tailrace_H5Dread_chunk(hid_t dataset, hid_t transfer_list,
                                            const hsize_t* offset, uint32_t* filters,
                                            void* values) {
  TAILRACE_REFUSE_DATASET(H5Dread_chunk(dataset, transfer_list, offset, filters, values),
                          "H5Dread_chunk");
}

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
  ours::note_deletion(location);
  return real().H5Ldelete(location, name, access_list);
}
TAILRACE_CALL herr_t tailrace_H5Odecr_refcount(hid_t object) {
  ours::note_deletion(object);
  return real().H5Odecr_refcount(object);
}
TAILRACE_CALL herr_t tailrace_H5Gunlink(hid_t location, const char* name) {
  ours::note_deletion(location);
  return real().H5Gunlink(location, name);
}
TAILRACE_CALL herr_t tailrace_H5Ldelete_by_idx(hid_t location, const char* group, H5_index_t index,
                                               H5_iter_order_t order, hsize_t n,
                                               hid_t access_list) {
  ours::note_deletion(location);
  return real().H5Ldelete_by_idx(location, group, index, order, n, access_list);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
