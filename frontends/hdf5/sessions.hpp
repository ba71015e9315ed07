// A file that a program writes through parallel HDF5, and the table of all of them.
//
//   H5Fcreate, H5Fopen ──> open ── the program's last id of it is closed, or MPI_Finalize ──> ended
//                                   │ mode=async                                               ^
//                                   └──> closed ── the next call of the same ranks that meet ──┘
//
// On every rank the session holds HDF5's file (rank 0's is the one that is committed) by an id of
// its own; the program has others of the same file, and whatever it does to metadata by them HDF5
// does alone. Datasets are found by the address of their header in this rank's file.
//
// Invariant 1: a call of HDF5's made within an Hdf5Scope is ours and goes straight to HDF5.
// Invariant 2: a call is served only if its object lies in a session's file; all others reach HDF5
//   as they are. Invariant 3: sessions begin and end by collective calls, so that all ranks have
//   those that they share in one order.

#pragma once

#include <hdf5.h>
#include <mpi.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/dataset_array.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5_programs {

struct Session {
  std::unique_ptr<DatasetArray> array;
  std::string name;    ///< As the program gave it.
  std::string path;    ///< The same as one name of all that lead there.
  Hdf5Id access_list;  ///< The program's.
  unsigned long file_number = 0;
  /// By dataset number: what the program asked for, and the type of its elements.
  std::map<std::size_t, std::shared_ptr<const Hdf5Id>> creation_lists;
  std::map<std::size_t, Hdf5Id> types;
  /// HDF5's own list, for all datasets created without one, and what rank 0's of these are created
  /// with, those that have their place at once apart; null: none yet. A list costs HDF5 as much as
  /// a small dataset.
  std::shared_ptr<const Hdf5Id> standard_list;
  std::shared_ptr<const Hdf5Id> standard_list_of_root;
  std::shared_ptr<const Hdf5Id> standard_list_placed;
  /// Datasets whose values a rank's HDF5 writes at once: external ones, and on rank 0 what goes to
  /// its file's heap.
  std::set<std::size_t> by_rank;
  bool atomic = false;
  /// Some ranks could not close their last id of the file, others have: no call of these few is
  /// waited for any more. MPI_Finalize ends the session.
  bool left_by_some = false;
  /// The program has given its last id back, on all ranks, but HDF5 keeps the file open for one
  /// that is mounted in it, or in which it is.
  bool mounted_when_closed = false;
  /// The program has closed it, on all ranks, and threads write what it has flushed (mode=async).
  bool closed = false;
  std::vector<int> ranks;  ///< The session's, by their numbers in MPI_COMM_WORLD.
  std::map<std::string, std::vector<std::string>> by_root;  ///< Reason -> paths; for the report.
  std::uint64_t root_bytes = 0;                             ///< Values for rank 0, by this rank.
  std::uint64_t n_points = 0;                               ///< Of point selections of this rank,
  std::uint64_t n_point_runs = 0;                           ///< and the runs that they came to.
  std::map<std::string, std::vector<std::string>> remarks;  ///< What became of paths; as by_root.

  hid_t file() const { return static_cast<hid_t>(array->metadata().hdf5_id()); }
};

/// A dataset of a session.
struct Target {
  Session* session = nullptr;
  std::size_t dataset = 0;
};

/// The session in whose file an object (or file, or attribute) of HDF5's lies; null: none.
Session* session_of(hid_t object);
/// The same, where a file's id means that very file: for a mounted one's HDF5 says where the root
/// of the file lies into which it is mounted, and creates there.
Session* session_of_file(hid_t object);
/// Whether a dataset lies in a session's file, and which it is. `known` is false for one that the
/// program has come by in a way that is not understood here.
std::optional<Target> target_of(hid_t dataset, bool& known);
/// The session of a file by its name; null: none.
Session* session_of_path(const std::string& path);
/// One name of all that lead to a file, which need not be there yet.
std::string path_of_name(const char* name);
/// All of them, in the order in which they began.
std::vector<Session*> all_sessions();
/// Whether there is any: else every call is HDF5's.
bool any_session();

/// HDF5 ends, by H5close, and with it what it has asked of MPI_Finalize: it will ask anew, and so
/// will the next session, to come before it again.
void note_end_of_hdf5();
/// Begin a session, once the file is open. Collective: on all ranks, or on none. @returns an id of
/// the file for the program
hid_t begin_session(const char* function, std::unique_ptr<Session> session);
/// Flush, close, forget. Collective over the session's ranks. The program has no ids of it left.
Status end_session(Session& session);
/// End the sessions that are closed and have exactly these ranks (of MPI_COMM_WORLD), in whatever
/// order. Collective over them. @returns the first failure, which names the file
Status end_closed_sessions(const std::vector<int>& ranks);
bool any_closed_session();
bool any_closed_session(const std::vector<int>& ranks);
/// End all sessions where the program may have ids left, which are closed; `tell` hears what came
/// of each that the program has not closed, or that has failed, and whether this rank speaks for
/// it. Collective over each one's ranks.
void end_all_by_force(const std::function<void(bool speaks, const std::string& name, bool closed,
                                               const Status& ended)>& tell);
/// How many ids of some types (H5F_OBJ_...) the program has open in the session's file.
std::uint64_t n_ids_of_program(const Session& session, unsigned types);
/// Whether the program does not know of an id that HDF5 lists.
bool is_own_id(hid_t id);

// --- files that are mounted in one another: HDF5 keeps all of them open as long as the program has
// an id of any, whether or not it is one that we serve

/// A file within another one, by HDF5's numbers for them.
struct Mount {
  unsigned long outer = 0;
  unsigned long inner = 0;
  std::string path;  ///< Of the place, as HDF5 names it.
};
/// What H5Fmount is about to make, or what H5Funmount is about to end; null: nothing is there.
std::optional<Mount> mount_to_make(hid_t location, const char* name, hid_t inner);
std::optional<Mount> mount_to_end(hid_t location, const char* name);
void note_mount(Mount&& mount);
void forget_mount(const Mount& mount);
/// How many ids the program has in the session's file and in all that HDF5 keeps open with it.
std::uint64_t n_ids_together(const Session& session);
/// End a session of whose files the program has no ids left, and those of other files that were
/// closed before it, but mounted; in mode=async leave one to threads. Collective over the session's
/// ranks.
Status end_together(Session& session);

/// Put a failure on HDF5's error stack and let the program's printer, if any, show it. @returns -1
int fail(const char* function, const Status& status);

/// Keeps what HDF5's error stack says while calls of ours empty it.
class KeptErrors {
 public:
  KeptErrors() : stack_(H5Eget_current_stack()) {}
  ~KeptErrors() {
    if (stack_ >= 0) H5Eset_current_stack(stack_);
  }
  KeptErrors(const KeptErrors&) = delete;
  KeptErrors& operator=(const KeptErrors&) = delete;

 private:
  hid_t stack_;
};

/// Do a call's work: an exception (no memory) must not leave it.
template <class Call>
auto guarded(const char* function, Call&& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception&) {
    return static_cast<decltype(call())>(
        fail(function, Status(Code::out_of_memory, "no memory is left")));
  }
}

// --- transfers (transfers.cpp)

/// What a call of H5Dwrite or H5Dread says.
struct TransferCall {
  hid_t memory_type = -1;
  hid_t memory_space = -1;
  hid_t file_space = -1;
  hid_t transfer_list = -1;
};
/// One of the datasets of a call, which all are of one session and have one transfer list.
struct TransferPart {
  Target target;
  hid_t dataset = -1;
  TransferCall call;
};
/// Stage the values of each part. Collective exactly if the transfer list says so: then all ranks
/// agree once, whatever the number of parts.
Status write_elements_of(std::span<const TransferPart> parts, const void* const* values);
/// What a read begins with. Collective exactly if the transfer list says so.
Status prepare_to_read(Session& session, hid_t transfer_list);
/// Lay own staged values over what the file holds. Not collective.
Status read_elements_of(const TransferPart& part, void* values);

/// The program's transfer list for HDF5's own transfers in files without MPI; not valid: the
/// default.
Hdf5Id list_without_mpi(hid_t transfer_list);

/// A chunk as the program's own filters encode it, which the file's need not be. `offset` has as
/// many numbers as the dataset has dimensions. Not collective.
struct EncodedChunk {
  std::uint32_t filter_mask = 0;
  std::vector<std::byte> bytes;
};
Status write_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset,
                      std::uint32_t filter_mask, std::span<const std::byte> bytes);
Result<EncodedChunk> read_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset);

// --- creation (creation.cpp)

/// A program's call that creates a dataset; `name` is null for one without.
struct CreateCall {
  hid_t location = -1;
  const char* name = nullptr;
  hid_t type = -1;
  hid_t space = -1;
  hid_t link_list = H5P_DEFAULT;
  hid_t creation_list = H5P_DEFAULT;
  hid_t access_list = H5P_DEFAULT;
};
hid_t create_dataset(Session& session, const CreateCall& call);
/// Enter the datasets below an object that HDF5 has copied. `session` becomes the one in whose file
/// it lies, which a name leads to by a link or where a file is mounted; null: none's.
Status enter_copies(Session*& session, hid_t location, const char* name);
/// Enter all datasets of a file that was opened, as rank 0 finds them. Collective.
Status enter_datasets(Session& session);

/// Whether a path names what a plotfile has for a level.
bool names_level_data(const char* path);
/// What lies in a level's dataset of a plotfile that a call creates (level_boxes.cpp), as rank 0
/// finds it; null: another dataset, or what is there does not fit together. Collective for datasets
/// that are named as a level's, which H5Dcreate is in any case: one broadcast. Errors are alike.
Result<std::shared_ptr<const BoxSeries>> hear_boxes(Session& session, const CreateCall& call);
/// What the next finer level covers of one, as this rank finds it now. Not collective.
/// @param path  absolute, of the level's dataset
LevelCover find_cover(Session& session, const std::string& path,
                      const std::shared_ptr<const BoxSeries>& boxes);

/// An object's path, as far as it has one.
std::string path_of_object(hid_t object);
/// Where an object's header lies in this rank's file.
std::optional<std::uint64_t> address_of_object(hid_t object);

}  // namespace tailrace::hdf5_programs
