// Session: a file that a program writes through parallel HDF5; and the table of all sessions.
//
//  H5Fcreate, H5Fopen --> open --- the program's last id is closed, or MPI_Finalize --> ended
//                          | mode=async                                               ^
//                          +--> closed --- the next collective call of the same ranks +
//
// On every rank the session holds an HDF5 id of the file; rank 0's file is the one that is
// committed. The program has other ids of the file, and HDF5 serves all metadata changes made
// through them. Datasets are identified by the address of their header in this rank's file.
//
// Invariant 1: an HDF5 call made within an Hdf5Scope is Tailrace's own and goes straight to HDF5.
// Invariant 2: a call is served only if its object is in a session's file; HDF5 receives all other
// calls unchanged. Invariant 3: sessions begin and end by collective calls, so all ranks have the
// sessions that they share in the same order.

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
  std::string name;    ///< Name given by the program.
  std::string path;    ///< Canonical form of `name`.
  Hdf5Id access_list;  ///< The program's access list.
  unsigned long file_number = 0;
  /// The program's creation list, and the element type, of each dataset number.
  std::map<std::size_t, std::shared_ptr<const Hdf5Id>> creation_lists;
  std::map<std::size_t, Hdf5Id> types;
  /// True for each dataset number that the program has chunked, once a collective transfer asked.
  std::map<std::size_t, bool> chunked;
  /// Cached creation lists, because a list costs HDF5 as much as a small dataset; null until first
  /// used. They are the default list, the list of default datasets that rank 0 writes, and the list
  /// of those that are allocated on creation.
  std::shared_ptr<const Hdf5Id> standard_list;
  std::shared_ptr<const Hdf5Id> standard_list_of_root;
  std::shared_ptr<const Hdf5Id> standard_list_placed;
  /// Datasets whose values this rank's HDF5 writes immediately: external ones, and on rank 0 those
  /// in its file's heap.
  std::set<std::size_t> by_rank;
  bool atomic = false;
  /// Only some ranks could close their last id of the file. Their later calls are not waited for,
  /// and MPI_Finalize ends the session.
  bool left_by_some = false;
  /// The program has closed its last id on all ranks. HDF5 keeps the file open, because it is
  /// mounted in another file, or another file in it.
  bool mounted_when_closed = false;
  /// The program has closed the file on all ranks, and threads write its last flush (mode=async).
  bool closed = false;
  std::vector<int> ranks;  ///< The session's ranks in MPI_COMM_WORLD.
  std::map<std::string, std::vector<std::string>> by_root;  ///< Reason -> paths; for the report.
  std::uint64_t root_bytes = 0;  ///< Bytes that this rank sends to rank 0.
  std::uint64_t n_in_runs = 0;   ///< Elements in this rank's points and irregular hyperslabs.
  std::uint64_t n_runs = 0;      ///< Number of runs that these elements form.
  std::map<std::string, std::vector<std::string>> remarks;  ///< Remark -> paths; for the report.
  /// Datasets that list_objects() has read, by address; their roles are decided, or never will be.
  std::map<std::uint64_t, StatedObject> listed;

  hid_t file() const { return static_cast<hid_t>(array->metadata().hdf5_id()); }
};

/// Dataset of a session.
struct Target {
  Session* session = nullptr;
  std::size_t dataset = 0;
};

/// Find the session whose file holds an object (or file, or attribute); null if none.
Session* session_of(hid_t object);
/// Find the session of the file that an id denotes. For the id of a mounted file, HDF5 reports the
/// outermost file instead, and creates objects there.
Session* session_of_file(hid_t object);
/// Find the session's dataset that an id denotes. `known` is set to false if a call that Tailrace
/// does not support brought the dataset into the file.
std::optional<Target> target_of(hid_t dataset, bool& known);
/// Find the session of a file by its canonical path; null if none.
Session* session_of_path(const std::string& path);
/// Canonical path of a file, which need not exist yet.
std::string path_of_name(const char* name);
/// All sessions, in the order in which they began.
std::vector<Session*> all_sessions();
/// True if there is any session; otherwise HDF5 serves every call.
bool any_session();

/// Record that H5close is ending HDF5, which also removes its MPI_Finalize hook. HDF5 installs that
/// hook again at its next start. So the next session must install its own again, to run before it.
void note_end_of_hdf5();
/// Begin a session, once the file is open. Collective: on all ranks, or on none. @returns an id of
/// the file for the program
hid_t begin_session(const char* function, std::unique_ptr<Session> session);
/// Flush, close and delete a session of which the program has no ids left. Collective over its
/// ranks.
Status end_session(Session& session);
/// End the closed sessions that have exactly these ranks of MPI_COMM_WORLD, in any rank order.
/// Collective over them. @returns the first failure, which names the file
Status end_closed_sessions(const std::vector<int>& ranks);
bool any_closed_session();
bool any_closed_session(const std::vector<int>& ranks);
/// End all sessions, and close the ids that the program has left. `report` is called for each
/// session that the program has not closed, or that failed. `speaks` is true on the rank that
/// reports it. Collective over each one's ranks.
void end_all_by_force(const std::function<void(bool speaks, const std::string& name, bool closed,
                                               const Status& ended)>& report);
/// Count the program's open ids of some types (H5F_OBJ_...) in the session's file.
std::uint64_t n_ids_of_program(const Session& session, unsigned types);
/// True if an id that HDF5 lists is Tailrace's own.
bool is_own_id(hid_t id);

// --- mounted files: while the program has an id of a file, served or not, HDF5 keeps all files
// open that are mounted with it

/// Mount of a file within another one, identified by HDF5's file numbers.
struct Mount {
  unsigned long outer = 0;
  unsigned long inner = 0;
  std::string path;  ///< Path of the mount point, as returned by HDF5.
};
/// Mount that H5Fmount will make, or that H5Funmount will end; empty if none.
std::optional<Mount> mount_to_make(hid_t location, const char* name, hid_t inner);
std::optional<Mount> mount_to_end(hid_t location, const char* name);
void note_mount(Mount&& mount);
void forget_mount(const Mount& mount);
/// Count the program's ids in the session's file and in all files that HDF5 keeps open with it.
std::uint64_t n_ids_together(const Session& session);
/// End a session of whose files the program has no ids left, and sessions closed earlier but still
/// mounted with it. In mode=async, a single file is left to threads instead. Collective over the
/// session's ranks.
Status end_together(Session& session);

/// Push a failure on HDF5's error stack and call the program's error printer, if any. @returns -1
int fail(const char* function, const Status& status);

/// Saves HDF5's error stack, and restores it after calls that clear it.
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

/// Run a call, so that no exception (out of memory) leaves it.
template <class Call>
auto guarded(const char* function, Call&& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception&) {
    return static_cast<decltype(call())>(
        fail(function, Status(Code::out_of_memory, "not enough memory")));
  }
}

// --- transfers (transfers.cpp)

/// Arguments of a call of H5Dwrite or H5Dread.
struct TransferCall {
  hid_t memory_type = -1;
  hid_t memory_space = -1;
  hid_t file_space = -1;
  hid_t transfer_list = -1;
};
/// One dataset of a call; all of them share a session and a transfer list.
struct TransferPart {
  Target target;
  hid_t dataset = -1;
  TransferCall call;
};
/// Stage the values of each part. Collective exactly if the transfer list is: then all ranks agree
/// once, whatever the number of parts.
Status write_elements_of(std::span<const TransferPart> parts, const void* const* values);
/// Begin a read of the parts. Collective exactly if the transfer list is.
Status prepare_to_read(std::span<const TransferPart> parts);
/// Read the file's elements, overlaid with this rank's staged ones. Not collective.
Status read_elements_of(const TransferPart& part, void* values);

/// Make the transfer list independent, for HDF5's transfers in files without MPI. Invalid if the
/// program uses the default list.
Hdf5Id list_without_mpi(hid_t transfer_list);

/// Chunk encoded by the program's own filters, which may differ from the file's. `offset` has one
/// number per dimension of the dataset. Not collective.
struct EncodedChunk {
  std::uint32_t filter_mask = 0;
  std::vector<std::byte> bytes;
};
Status write_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset,
                      std::uint32_t filter_mask, std::span<const std::byte> bytes);
Result<EncodedChunk> read_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset);

// --- creation (creation.cpp)

/// Arguments of a program's call that creates a dataset; `name` is null for an anonymous one.
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
/// Register the datasets of an object that HDF5 has copied. `session` is set to the session whose
/// file holds the copy, which may be another file if the name crosses a link or a mount; null if
/// none.
Status enter_copies(Session*& session, hid_t location, const char* name);
/// Register all datasets of a file that was opened, as rank 0 finds them. Collective.
Status enter_datasets(Session& session);

/// True if a path has the name of a plotfile level's data.
bool names_level_data(const char* path);
/// Find the boxes of a plotfile level's dataset that a call creates (level_boxes.cpp), on rank 0.
/// Null for other datasets, or if the boxes do not fit. Collective for datasets named like a
/// level's, as H5Dcreate is in any case: one broadcast. Errors are alike.
Result<std::shared_ptr<const BoxSeries>> receive_boxes(Session& session, const CreateCall& call);
/// Find the cells of a level that the next finer level covers, as this rank sees them. Not
/// collective.
/// @param path  absolute, of the level's dataset
LevelCover find_cover(Session& session, const std::string& path,
                      const std::shared_ptr<const BoxSeries>& boxes);

/// List the groups and datasets of the session's file, as this rank sees them (file_objects.cpp).
/// Later calls read the attributes of groups and undecided datasets again, and those of other
/// datasets no more. Not collective. @error corrupt  an object or attribute that HDF5 cannot read
Result<FileObjects> list_objects(Session& session);

/// Path of an object; empty if it has none.
std::string path_of_object(hid_t object);
/// Address of an object's header in this rank's file.
std::optional<std::uint64_t> address_of_object(hid_t object);

}  // namespace tailrace::hdf5_programs
