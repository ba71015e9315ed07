// See serving.hpp.

#include "hdf5/serving.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include "array/array_options.hpp"
#include "exec/comm_factory.hpp"
#include "filters/own_filters.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/opening.hpp"
#include "report/remark.hpp"

namespace tailrace::hdf5_programs {

// --- files

namespace {

/// Communicator of an access list that uses MPI-IO; MPI_COMM_NULL for other lists.
MPI_Comm communicator_of(hid_t access_list) {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (access_list == H5P_DEFAULT || initialised == 0 || finalised != 0) return MPI_COMM_NULL;
  const Hdf5Scope scope;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  if (H5Pget_driver(access_list) != H5FD_MPIO) return MPI_COMM_NULL;
  if (H5Pget_fapl_mpio(access_list, &comm, &info) < 0) return MPI_COMM_NULL;
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  return comm;
}

/// Translate a communicator's ranks to ranks of MPI_COMM_WORLD. Not collective.
std::vector<int> ranks_in_world(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int n_ranks = 0;
  MPI_Comm_size(comm, &n_ranks);
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> own(static_cast<std::size_t>(n_ranks));
  std::iota(own.begin(), own.end(), 0);
  std::vector<int> ranks(own.size());
  MPI_Group_translate_ranks(group, n_ranks, own.data(), world, ranks.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return ranks;
}

/// True if the file will have a user block before HDF5's data; HDF5 serves such files.
bool has_user_block(hid_t creation_list) {
  if (creation_list == H5P_DEFAULT) return false;
  const Hdf5Scope scope;
  hsize_t n_bytes = 0;
  return H5Pget_userblock(creation_list, &n_bytes) >= 0 && n_bytes > 0;
}

/// Call that creates or opens a file, and this rank's preparations for it.
struct OpenCall {
  const char* function = nullptr;
  const char* name = nullptr;
  unsigned flags = 0;
  bool create = false;
  hid_t creation_list = H5P_DEFAULT;
  hid_t access_list = H5P_DEFAULT;
  std::unique_ptr<Session> session;  ///< New session, with its names.
  std::string path;                  ///< Absolute path of the file.
  Session* here = nullptr;           ///< Existing session of this file, if any.
};

/// Message for a closed file (mode=async) whose ranks are not those of the call.
constexpr const char* kStillWritten =
    "still being written (mode=async or in_situ); the ranks that wrote it must first call "
    "H5Fcreate, H5Fopen, "
    "H5Fflush, H5Fclose or MPI_Finalize together";

/// Vote for this rank, and prepare the session. Not collective; may run out of memory.
void prepare(OpenCall& call, Vote& vote) {
  const auto by_hdf5 = [&](const std::string& why, bool silently = false) {
    vote.cast(Opening::by_hdf5, why, silently);
  };
  if (call.name == nullptr) return by_hdf5("the file name is NULL", true);
  if (wanted_off()) return by_hdf5(kOffSetting, true);
  if (!hdf5_is_served().ok()) return by_hdf5(hdf5_is_served().message());
  const Hdf5Scope scope;
  // HDF5 also reads what Tailrace's codecs have written.
  const Status entered = hdf5::register_own_filters();
  if (!makes_own_files(call.access_list)) {
    return by_hdf5("the program selected a VOL connector (docs/hdf5.md)");
  }
  if (call.create && has_user_block(call.creation_list)) {
    return by_hdf5(std::string(call.name) + " has a user block");
  }
  call.session = std::make_unique<Session>();
  call.session->name = call.name;
  call.session->path = path_of_name(call.name);
  call.here = session_of_path(call.session->path);
  if (call.here != nullptr && call.here->closed) {
    return vote.cast(Opening::fails, kStillWritten);
  }
  if (call.here != nullptr) {
    vote.opening = call.create ? Opening::is_open : Opening::again;
    return;
  }
  if (!call.create && (call.flags & H5F_ACC_RDWR) == 0) {
    return by_hdf5("opened only for reading", true);
  }
  if (!entered.ok()) return vote.cast(Opening::fails, entered.message());
  // The program may change its working directory before the file gets its name.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(call.name, error);
  call.path = error ? std::string(call.name) : absolute.string();
  vote.opening = call.create ? Opening::create : Opening::open;
}

/// Create or open a file and its session. Errors are alike on all ranks.
Result<std::unique_ptr<Session>> open_file(OpenCall& call, MPI_Comm comm) {
  const Hdf5Scope scope;  // Also covers destructors after a failure.
  std::unique_ptr<Session> session = std::move(call.session);
  // HDF5 has duplicated the program's communicator, and this duplicate is freed after the call.
  TAILRACE_TAKE(std::unique_ptr<Comm> ranks, make_mpi_comm(&comm, sizeof(MPI_Comm), false));
  ArrayFileOptions options;
  options.file.door = Door::hdf5;
  // A failure on one rank must not keep it from the collective calls below.
  Status prepared = local_part([&] {
    session->ranks = ranks_in_world(comm);
    return read_array_options(*ranks, options);
  });
  // Copying a list with a communicator duplicates the communicator. All ranks do so here, together;
  // independent calls of a rank use a list without one.
  session->access_list = Hdf5Id(H5Pcopy(call.access_list));
  const Hdf5Id without_mpi(H5Pcopy(call.access_list));
  // HDF5 1.14 stores the communicator in the list, whatever the driver, so this list gets
  // MPI_COMM_SELF. Only rank 0 writes the metadata, so metadata calls are not collective.
  const bool copied = session->access_list.valid() &&
                      H5Pset_fapl_mpio(without_mpi.get(), MPI_COMM_SELF, MPI_INFO_NULL) >= 0 &&
                      H5Pset_fapl_sec2(without_mpi.get()) >= 0 &&
                      H5Pset_all_coll_metadata_ops(without_mpi.get(), false) >= 0 &&
                      H5Pset_coll_metadata_write(without_mpi.get(), false) >= 0;
  if (prepared.ok() && !copied) {
    prepared =
        hdf5_failure(Code::invalid_argument, "the file access property list cannot be copied");
  }
  options.file.replace = (call.flags & H5F_ACC_TRUNC) != 0;
  options.file.hdf5_access_list = without_mpi.get();
  options.file.hdf5_creation_list = call.creation_list;
  if (call.create) {
    TAILRACE_TAKE(session->array,
                  DatasetArray::create(std::move(ranks), call.path, options, prepared));
  } else {
    TAILRACE_TAKE(session->array,
                  DatasetArray::open(std::move(ranks), call.path, options, prepared));
    TAILRACE_TRY(enter_datasets(*session));
  }
  session->array->list_objects_by([&session = *session] { return list_objects(session); });
  return session;
}

/// Open another id of a file that a session has open.
hid_t open_again(Session& session) {
  session.mounted_when_closed = false;
  const Hdf5Scope scope;
  return H5Freopen(session.file());
}

/// Open a file without MPI-IO. If the file is still being written, a single rank completes it; with
/// several ranks the call fails.
hid_t open_alone(const OpenCall& call, const ByHdf5<hid_t>& by_hdf5) {
  if (!served() || call.name == nullptr || !any_closed_session()) return by_hdf5();
  const Session* const there = session_of_path(path_of_name(call.name));
  if (there == nullptr || !there->closed) return by_hdf5();
  Status done(Code::unsupported, "file \"" + std::string(call.name) + "\": " + kStillWritten);
  if (there->ranks.size() == 1) {
    const KeptErrors kept;
    done = end_closed_sessions(there->ranks);
  }
  return done.ok() ? by_hdf5() : fail(call.function, done);
}

/// Open a file as all ranks agree. Collective over the ranks of the list, whatever their votes.
hid_t open_agreed(OpenCall call, const ByHdf5<hid_t>& by_hdf5) {
  const MPI_Comm comm = Hdf5Scope::held() ? MPI_COMM_NULL : communicator_of(call.access_list);
  if (comm == MPI_COMM_NULL) return open_alone(call, by_hdf5);
  struct Held {
    MPI_Comm comm;
    void release() {
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
    ~Held() { release(); }
  } held{comm};
  if (any_closed_session()) {
    Status ended;
    {
      const KeptErrors kept;
      ended = end_closed_sessions(ranks_in_world(comm));
    }
    if (!ended.ok()) return fail(call.function, ended);
  }
  Vote vote;
  try {
    prepare(call, vote);
  } catch (const std::bad_alloc&) {
    vote.cast(Opening::fails, "not enough memory");
  }
  agree_on_opening(comm, vote);
  // Collective, too: ranks that serve nothing free the communicator here.
  if (vote.opening != Opening::create && vote.opening != Opening::open) held.release();
  switch (vote.opening) {
    case Opening::again: return open_again(*call.here);
    case Opening::is_open:
      return fail(call.function,
                  Status(Code::already_exists, "file \"" + std::string(call.name) +
                                                   "\" is already open in this program"));
    case Opening::fails:
      return fail(call.function, Status(Code::disagreement,
                                        "file \"" + std::string(call.name) + "\": " + vote.why));
    case Opening::by_hdf5: break;
    case Opening::create:
    case Opening::open: {
      Result<std::unique_ptr<Session>> session = open_file(call, comm);
      if (!session.ok()) return fail(call.function, session.status());
      return begin_session(call.function, std::move(*session));
    }
  }
  return by_hdf5();
}

}  // namespace

hid_t create_file(const char* name, unsigned flags, hid_t creation_list, hid_t access_list,
                  const ByHdf5<hid_t>& by_hdf5) {
  OpenCall call;
  call.function = "H5Fcreate";
  call.name = name;
  call.flags = flags;
  call.create = true;
  call.creation_list = creation_list;
  call.access_list = access_list;
  return open_agreed(std::move(call), by_hdf5);
}

hid_t open_file_of(const char* name, unsigned flags, hid_t access_list,
                   const ByHdf5<hid_t>& by_hdf5) {
  OpenCall call;
  call.function = "H5Fopen";
  call.name = name;
  call.flags = flags;
  call.access_list = access_list;
  return open_agreed(std::move(call), by_hdf5);
}

herr_t close_file(const char* function, Session& session, hid_t id) {
  // The program has several ids: other ranks need not have had this one.
  if (session.left_by_some || n_ids_of_program(session, H5F_OBJ_FILE) > 1) {
    return real().H5Fclose(id);
  }
  const herr_t closed = real().H5Fclose(id);
  std::uint64_t left[4] = {closed < 0 ? 1U : 0U, 0, closed < 0 ? 0U : 1U, 0};
  Status met;
  Status before;
  Status done;
  {
    const KeptErrors kept;
    left[1] = n_ids_together(session);
    left[3] = n_ids_of_program(session, H5F_OBJ_ALL);
    met = session.array->meet_to_close(left);
    const bool by_all = left[0] == 0;
    if (!by_all && left[2] == 0) return closed;  // All ranks can try again.
    session.left_by_some = !by_all;
    session.mounted_when_closed = by_all && left[3] == 0;
    before = end_closed_sessions(session.ranks);
    done = by_all && left[1] == 0 ? end_together(session) : session.array->flush();
    if (done.ok()) done = before;
  }
  if (closed < 0) return closed;
  if (!met.ok()) return fail(function, met);
  return done.ok() ? 0 : fail(function, done);
}

void end_sessions() {
  end_all_by_force([](bool speaks, const std::string& name, bool, const Status& ended) {
    if (ended.ok()) return;
    fail("H5close", ended);
    // HDF5 clears its error stack as it ends.
    if (speaks)
      report::print_remark({name, ": H5close could not write the file: ", ended.message()});
  });
  note_end_of_hdf5();
}

herr_t mount_file(hid_t location, const char* name, hid_t inner, hid_t list) {
  std::optional<Mount> mount = mount_to_make(location, name, inner);
  const herr_t mounted = real().H5Fmount(location, name, inner, list);
  if (mounted >= 0 && mount) note_mount(std::move(*mount));
  return mounted;
}

herr_t unmount_file(hid_t location, const char* name) {
  const std::optional<Mount> mount = mount_to_end(location, name);
  const herr_t unmounted = real().H5Funmount(location, name);
  if (unmounted < 0 || !mount) return unmounted;
  forget_mount(*mount);
  for (Session* inner : all_sessions()) {
    if (inner->file_number != mount->inner || !inner->mounted_when_closed) continue;
    Status done;
    {
      const KeptErrors kept;
      std::uint64_t n_left = n_ids_together(*inner);
      const Status met = inner->array->meet_to_close({&n_left, 1});
      if (n_left == 0) done = end_together(*inner);
      if (!met.ok()) done = met;
    }
    return done.ok() ? unmounted : fail("H5Funmount", done);
  }
  return unmounted;
}

bool is_open_here(const char* name) {
  return name != nullptr && served() && session_of_path(path_of_name(name)) != nullptr;
}

bool is_last_reference(hid_t id) {
  const Hdf5Scope scope;
  return H5Iget_type(id) == H5I_FILE && H5Iget_ref(id) == 1;
}

herr_t flush_session(const char* function, Session& session) {
  Status before;
  if (any_closed_session(session.ranks)) {
    // H5Fclose, which other ranks may have called, starts with a meeting of this file, too.
    const Status met = session.array->meet();
    if (!met.ok()) return fail(function, met);
    before = end_closed_sessions(session.ranks);
  }
  const Status flushed = session.array->flush_concurrently();
  if (!flushed.ok()) return fail(function, flushed);
  return before.ok() ? 0 : fail(function, before);
}

herr_t set_atomicity(Session& session, bool atomic) {
  if (atomic && session.array->comm().n_ranks() > 1) {
    return refuse("H5Fset_mpi_atomicity",
                  "a rank sees the values of other ranks only after a flush");
  }
  session.atomic = atomic;
  return 0;
}

int refuse(const char* function, const std::string& what) {
  return fail(function, Status(Code::unsupported,
                               std::string(function) +
                                   " is not supported for files that Tailrace writes: " + what +
                                   " (docs/hdf5.md; TAILRACE_HDF5=off)"));
}

ssize_t list_ids(hid_t file, unsigned types, std::vector<hid_t>& ids) {
  const Hdf5Scope scope;
  const ssize_t n = H5Fget_obj_count(file, types);
  if (n < 0) return n;
  ids.resize(static_cast<std::size_t>(n));
  if (n > 0 && H5Fget_obj_ids(file, types, ids.size(), ids.data()) < 0) return -1;
  std::erase_if(ids, is_own_id);
  return static_cast<ssize_t>(ids.size());
}

// --- datasets

herr_t fail_unknown(const char* function) {
  return fail(function, Status(Code::unsupported,
                               "the dataset was created by a call that Tailrace did not see "
                               "(docs/hdf5.md); TAILRACE_HDF5=off leaves the file to HDF5"));
}

herr_t set_extents(const char* function, const Target& target, hid_t dataset,
                   const std::vector<hsize_t>& extents) {
  DatasetArray& array = *target.session->array;
  if (const Status waited = array.wait(); !waited.ok()) return fail(function, waited);
  const std::string what = "dataset \"" + array.path_of(target.dataset) + "\"";
  std::vector<hsize_t> larger;
  const bool shrinks = extents_of(dataset, extents.data(), true, larger) && larger != extents;
  bool ours = false;
  const Status known = local_part([&] {
    TAILRACE_TAKE(const DatasetArray::Facts facts, array.facts(target.dataset));
    ours = !facts.by_root && !target.session->by_rank.contains(target.dataset);
    return Status();
  });
  if (!known.ok()) {
    if (known.code() != Code::out_of_memory) return fail(function, known);
    // A failure of this rank only: the others continue, and receive it in their next flush.
    array.lose(known);
    if (shrinks && array.holds_values(target.dataset)) (void)array.flush();
    return fail(function, known);
  }
  // A dataset that only Tailrace has chunked is contiguous to the program. Larger extents would
  // also expose the padding of its edge chunks, which repeats the last values.
  if (ours && !array.may_change_extents(target.dataset)) {
    return fail(
        function,
        Status(
            Code::unsupported,
            what +
                " has contiguous storage, as the program requested, so its extents cannot change"));
  }
  const Shape shape(extents.begin(), extents.end());
  if (const Status grows = array.check_growth(target.dataset, shape); !grows.ok()) {
    return fail(function, grows);
  }
  // HDF5 cuts only the chunks that it knows, so they must contain all staged values.
  const bool cuts = shrinks && array.holds_values(target.dataset);
  if (cuts && !array.hdf5_can_cut(target.dataset)) {
    return refuse(function, what + " was flushed, and HDF5 would encode its chunks again");
  }
  Status done;
  if (cuts) {
    if (const Status flushed = array.flush(); !flushed.ok()) return fail(function, flushed);
    const Status kept = array.before_cut(target.dataset, shape);
    if (!kept.ok()) return fail(function, kept);
  }
  const herr_t set = real().H5Dset_extent(dataset, extents.data());
  // Continue after any failure on this rank, because the other ranks wait in the flush.
  const auto go_on = [&](const Status& next) {
    if (done.ok()) done = next;
  };
  // Once HDF5 has the new extents, a rank that fails cannot go back.
  const auto follow = [&](const Status& followed) {
    if (!followed.ok()) array.lose(followed);
    go_on(followed);
  };
  if (set >= 0) follow(local_part([&] { return array.set_shape(target.dataset, shape); }));
  if (set >= 0 && target.session->by_rank.contains(target.dataset)) go_on(flush_elements(dataset));
  if (cuts) {
    // HDF5's cache holds the chunks that it has changed at the edge.
    if (set >= 0) go_on(flush_elements(dataset));
    if (set >= 0) follow(local_part([&] { return array.after_cut(target.dataset); }));
    if (set < 0) array.undo_cut(target.dataset);
    if (!done.ok()) array.fail(done);
    const Status flushed = array.flush();
    if (!flushed.ok()) done = flushed;  // The failure common to all ranks.
  }
  if (set < 0) return set;
  return done.ok() ? 0 : fail(function, done);
}

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

std::optional<Target> served_dataset(hid_t dataset, bool& known) {
  known = true;
  return served() ? target_of(dataset, known) : std::nullopt;
}

namespace {

herr_t write_datasets(const char* function, std::span<const TransferPart> parts,
                      const void* const* values) {
  const Status written = write_elements_of(parts, values);
  return written.ok() ? 0 : fail(function, written);
}

bool is_virtual(hid_t dataset) {
  const Hdf5Scope scope;
  const Hdf5Id list(H5Dget_create_plist(dataset));
  return list.valid() && H5Pget_layout(list.get()) == H5D_VIRTUAL;
}

/// True for values that only rank 0 can have. Reads of other ranks find none, so no rank waits.
bool is_of_rank_0(const TransferPart& part) {
  const Result<DatasetArray::Facts> facts = part.target.session->array->facts(part.target.dataset);
  return facts.ok() && facts->addresses;
}

/// True if no rank has written such values. Every rank then reads what the file held when it was
/// opened, or rank 0 reads what HDF5 has copied.
bool is_as_opened(const TransferPart& part) {
  DatasetArray& array = *part.target.session->array;
  const Result<DatasetArray::Facts> facts = array.facts(part.target.dataset);
  if (!facts.ok() || facts->by_value || is_virtual(part.dataset)) return false;
  return !facts->addresses || array.comm().is_root();
}

herr_t read_as_opened(const TransferPart& part, void* values) {
  const TransferCall& call = part.call;
  Hdf5Id list;
  {
    const Hdf5Scope scope;
    list = list_without_mpi(call.transfer_list);
  }
  const herr_t read =
      real().H5Dread(part.dataset, call.memory_type, call.memory_space, call.file_space,
                     list.valid() ? list.get() : H5P_DEFAULT, values);
  const KeptErrors kept;
  list.reset();
  return read;
}

herr_t read_datasets(const char* function, std::span<const TransferPart> parts,
                     void* const* values) {
  // A single such dataset concerns no other rank; with several, other ranks may have other
  // datasets.
  if (parts.size() == 1 && is_as_opened(parts.front())) {
    return read_as_opened(parts.front(), values[0]);
  }
  if (parts.size() > 1 || !is_of_rank_0(parts.front())) {
    const Status prepared = prepare_to_read(parts);
    if (!prepared.ok()) return fail(function, prepared);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_as_opened(parts[i])) {
      const herr_t read = read_as_opened(parts[i], values[i]);
      if (read < 0) return read;
      continue;
    }
    const Status read = read_elements_of(parts[i], values[i]);
    if (!read.ok()) return fail(function, read);
  }
  return 0;
}

template <class Values, class Serve>
herr_t serve_many(const MultiCall& call, Values* values, Serve serve,
                  const ByHdf5<herr_t>& by_hdf5) {
  const bool complete = call.datasets != nullptr && call.memory_types != nullptr &&
                        call.memory_spaces != nullptr && call.file_spaces != nullptr &&
                        values != nullptr;
  if (!served() || call.n == 0 || !complete) return by_hdf5();
  std::vector<TransferPart> parts;
  for (std::size_t i = 0; i < call.n; ++i) {
    bool known = true;
    const std::optional<Target> target = target_of(call.datasets[i], known);
    if (!target) continue;
    if (!known) return fail_unknown(call.function);
    parts.push_back(
        {*target,
         call.datasets[i],
         {call.memory_types[i], call.memory_spaces[i], call.file_spaces[i], call.transfer_list}});
  }
  if (parts.empty()) return by_hdf5();
  const auto elsewhere = [&](const TransferPart& part) {
    return part.target.session != parts.front().target.session;
  };
  if (parts.size() < call.n || std::ranges::any_of(parts, elsewhere)) {
    return fail(call.function, Status(Code::invalid_argument,
                                      "the datasets of one call must be in the same file"));
  }
  return serve(call.function, parts, values);
}

}  // namespace

herr_t write_dataset(const TransferPart& part, const void* values) {
  return write_datasets("H5Dwrite", {&part, 1}, &values);
}

herr_t read_dataset(const TransferPart& part, void* values) {
  return read_datasets("H5Dread", {&part, 1}, &values);
}

herr_t write_chunk(const Target& target, hid_t dataset, const hsize_t* offset, uint32_t filter_mask,
                   std::span<const std::byte> bytes) {
  if (bytes.data() == nullptr) {
    return fail("H5Dwrite_chunk", Status(Code::invalid_argument, "the chunk buffer is NULL"));
  }
  const Status written = write_chunk_of(target, dataset, offset, filter_mask, bytes);
  return written.ok() ? 0
                      : fail("H5Dwrite_chunk",
                             written.within("dataset \"" +
                                            target.session->array->path_of(target.dataset) + "\""));
}

herr_t read_chunk(const char* function, const Target& target, hid_t dataset, const hsize_t* offset,
                  uint32_t* filter_mask, void* bytes, hsize_t* n_bytes) {
  const Result<EncodedChunk> chunk = read_chunk_of(target, dataset, offset);
  if (!chunk.ok()) {
    return fail(function,
                chunk.status().within("dataset \"" +
                                      target.session->array->path_of(target.dataset) + "\""));
  }
  if (filter_mask != nullptr) *filter_mask = chunk->filter_mask;
  if (n_bytes != nullptr) *n_bytes = chunk->bytes.size();
  if (bytes != nullptr) std::ranges::copy(chunk->bytes, static_cast<std::byte*>(bytes));
  return 0;
}

herr_t write_many(const MultiCall& call, const void* const* values, const ByHdf5<herr_t>& by_hdf5) {
  return serve_many(call, values, write_datasets, by_hdf5);
}

herr_t read_many(const MultiCall& call, void* const* values, const ByHdf5<herr_t>& by_hdf5) {
  return serve_many(call, values, read_datasets, by_hdf5);
}

herr_t copy_object(hid_t from, const char* from_name, hid_t to, const char* to_name,
                   hid_t copy_list, hid_t link_list) {
  Session* const source = served_session(from);
  Session* const target = served_session(to);
  if (target == nullptr) {
    return refuse(
        "H5Ocopy",
        "the target file is not one of these, and no rank holds all values of the source");
  }
  for (Session* session : {source, target != source ? target : nullptr}) {
    if (session == nullptr) continue;
    const Status flushed = session->array->flush();
    if (!flushed.ok()) return fail("H5Ocopy", flushed);
  }
  const herr_t copied = real().H5Ocopy(from, from_name, to, to_name, copy_list, link_list);
  if (copied >= 0) {
    Session* there = target;
    const Status entered = local_part([&] { return enter_copies(there, to, to_name); });
    if (!entered.ok()) target->array->fail(entered);
    if (there == nullptr) return copied;
    const Status flushed = there->array->flush();
    return flushed.ok() ? 0 : fail("H5Ocopy", flushed);
  }
  const KeptErrors kept;  // Other ranks wait for this one anyway.
  static_cast<void>(target->array->flush());
  return copied;
}

Deletion::Deletion(hid_t location, const char* name) {
  Session* const session = served_session(location);
  if (session == nullptr) return;
  // A path may lead into another file, by a mount or a link.
  const bool leads_elsewhere = name != nullptr && std::strchr(name, '/') != nullptr;
  sessions_ = leads_elsewhere ? all_sessions() : std::vector<Session*>{session};
  for (Session* each : sessions_) each->array->begin_deletion();
}

Deletion::~Deletion() {
  if (sessions_.empty()) return;
  const KeptErrors kept;
  for (Session* each : sessions_) each->array->end_deletion();
}

void note_count(hid_t object, int change) {
  Session* const session = served_session(object);
  if (session == nullptr) return;
  const Hdf5Scope scope;
  const std::optional<std::uint64_t> address = address_of_object(object);
  if (address) session->array->note_count(*address, change);
}

void note_attribute(hid_t object, const char* at, const char* name) {
  Session* const session = served_session(object);
  if (session == nullptr || session->array->comm().n_ranks() == 1) return;
  const Hdf5Scope scope;
  const Status noted = local_part([&] {
    std::string path(512, '\0');
    const ssize_t n = H5Iget_name(object, path.data(), path.size());
    path.resize(n < 0 ? 0 : std::min(static_cast<std::size_t>(n), path.size() - 1));
    if (at != nullptr) path += std::string(path.ends_with('/') ? "" : "/") + at;
    session->array->note_attribute(path, name);
    return Status();
  });
  if (!noted.ok()) session->array->fail(noted);  // Otherwise this rank's notes would differ.
}

hsize_t plain_bytes(const Target& target) {
  const Result<DatasetArray::Facts> facts = target.session->array->facts(target.dataset);
  return facts.ok() ? n_elements(*facts->shape) * facts->element_bytes : 0;
}

}  // namespace tailrace::hdf5_programs
