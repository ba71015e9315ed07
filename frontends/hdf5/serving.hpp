// Implementation of the program's calls that concern a session; program_calls.cpp defines the calls
// themselves. On failure, these functions leave the error on HDF5's error stack.

#pragma once

#include <hdf5.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {

inline const RealHdf5& real() { return real_hdf5(); }

/// True if a call can concern a session at all. Cheap: most calls of most programs return here.
inline bool served() { return any_session() && !Hdf5Scope::held(); }
inline Session* served_session(hid_t object) { return served() ? session_of(object) : nullptr; }
inline Session* served_file(hid_t object) { return served() ? session_of_file(object) : nullptr; }
/// Target of a call on a session's dataset; empty if HDF5 serves the call. `known` as in
/// target_of().
std::optional<Target> served_dataset(hid_t dataset, bool& known);

/// Callback to HDF5's own call, used if the call is not served.
template <class Returned>
using ByHdf5 = std::function<Returned()>;

// --- files

/// Create or open a file. Collective over the ranks of the list's communicator, if the file becomes
/// a session's.
hid_t create_file(const char* name, unsigned flags, hid_t creation_list, hid_t access_list,
                  const ByHdf5<hid_t>& by_hdf5);
hid_t open_file_of(const char* name, unsigned flags, hid_t access_list,
                   const ByHdf5<hid_t>& by_hdf5);
/// Close one of the program's ids of a session's file by HDF5. Once no rank has an id left, this
/// ends the session. Collective. @returns HDF5's result, or -1 if the session could not be written
herr_t close_file(const char* function, Session& session, hid_t id);
bool is_last_reference(hid_t id);
/// Mount or unmount a file, served or not. Unmounting is collective for a file of which the program
/// has no ids left, because that ends its session.
herr_t mount_file(hid_t location, const char* name, hid_t inner, hid_t list);
herr_t unmount_file(hid_t location, const char* name);
/// Prepare for H5close: end all sessions. Collective over each one's ranks.
void end_sessions();
/// True if a session has the file of this name open.
bool is_open_here(const char* name);
/// Flush a session. In mode=async, returns once all values are handed over. Collective.
herr_t flush_session(const char* function, Session& session);
/// List HDF5's ids except Tailrace's own. @returns the number of ids of the program, or -1
ssize_t list_ids(hid_t file, unsigned types, std::vector<hid_t>& ids);

/// Set MPI atomicity. Refused for several ranks, because values of other ranks are visible only
/// after a flush.
herr_t set_atomicity(Session& session, bool atomic);

/// Fail a call that sessions do not support. @returns -1
int refuse(const char* function, const std::string& what);
herr_t fail_unknown(const char* function);

// --- datasets

/// Change the extents of a session's dataset. Collective, like H5Dset_extent.
herr_t set_extents(const char* function, const Target& target, hid_t dataset,
                   const std::vector<hsize_t>& extents);
/// Read the extents that a call gives, one per dimension of the dataset.
bool extents_of(hid_t dataset, const hsize_t* given, bool only_larger,
                std::vector<hsize_t>& extents);
/// Write or read a session's dataset. Collective exactly if the transfer list is.
herr_t write_dataset(const TransferPart& part, const void* values);
herr_t read_dataset(const TransferPart& part, void* values);

/// Write one encoded chunk. Not collective.
herr_t write_chunk(const Target& target, hid_t dataset, const hsize_t* offset, uint32_t filter_mask,
                   std::span<const std::byte> bytes);
/// Read a chunk's bytes, size and filter mask; null arguments are skipped. Not collective.
herr_t read_chunk(const char* function, const Target& target, hid_t dataset, const hsize_t* offset,
                  uint32_t* filter_mask, void* bytes, hsize_t* n_bytes);

/// Arguments of a call on several datasets, entry by entry.
struct MultiCall {
  const char* function;
  std::size_t n;
  const hid_t* datasets;
  const hid_t* memory_types;
  const hid_t* memory_spaces;
  const hid_t* file_spaces;
  hid_t transfer_list;
};
/// Write or read many datasets. Served if they are a session's; HDF5 requires that all are in one
/// file.
herr_t write_many(const MultiCall& call, const void* const* values, const ByHdf5<herr_t>& by_hdf5);
herr_t read_many(const MultiCall& call, void* const* values, const ByHdf5<herr_t>& by_hdf5);

/// Copy an object. Collective, like H5Ocopy.
herr_t copy_object(hid_t from, const char* from_name, hid_t to, const char* to_name,
                   hid_t copy_list, hid_t link_list);
/// Scope of a call that removes a link of this object, or below it. Later flushes check which
/// datasets still exist.
class Deletion {
 public:
  explicit Deletion(hid_t location, const char* name = nullptr);
  ~Deletion();
  Deletion(const Deletion&) = delete;
  Deletion& operator=(const Deletion&) = delete;

 private:
  std::vector<Session*> sessions_;
};
/// Record that the program changed an object's reference count independently of its links.
void note_count(hid_t object, int change);
/// Record an attribute that the program has created.
/// @param at  path from `object` to the attribute's object; null: `object` itself.
void note_attribute(hid_t object, const char* at, const char* name);
/// Size of the dataset in plain storage. Ranks other than 0 do not know its chunks.
hsize_t plain_bytes(const Target& target);

}  // namespace tailrace::hdf5_programs
