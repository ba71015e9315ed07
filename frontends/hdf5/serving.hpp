// What becomes of the calls of a program that concern a session; program_calls.cpp has the calls
// themselves. Failures are on HDF5's error stack when these return.

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

/// Whether a call can concern us at all. Cheap: most calls of most programs end here.
inline bool served() { return any_session() && !Hdf5Scope::held(); }
inline Session* served_session(hid_t object) { return served() ? session_of(object) : nullptr; }
inline Session* served_file(hid_t object) { return served() ? session_of_file(object) : nullptr; }
/// A dataset of a session, where the call is to be served; `known` as for target_of.
std::optional<Target> served_dataset(hid_t dataset, bool& known);

/// HDF5's own call, for what is not served.
template <class Returned>
using ByHdf5 = std::function<Returned()>;

// --- files

/// Collective over the ranks of the list's communicator, if the file becomes a session's.
hid_t create_file(const char* name, unsigned flags, hid_t creation_list, hid_t access_list,
                  const ByHdf5<hid_t>& by_hdf5);
hid_t open_file_of(const char* name, unsigned flags, hid_t access_list,
                   const ByHdf5<hid_t>& by_hdf5);
/// The program gives one of its ids of a session's file back: what HDF5 says, and, once no rank
/// has any left, the end of the session. Collective.
herr_t close_file(const char* function, Session& session, hid_t id);
bool is_last_reference(hid_t id);
/// A file, ours or not, within another one. Unmounting is collective for a file of which the
/// program has no ids left: that ends its session.
herr_t mount_file(hid_t location, const char* name, hid_t inner, hid_t list);
herr_t unmount_file(hid_t location, const char* name);
/// What H5close does before HDF5's own: end all sessions. Collective over each one's ranks.
void end_sessions();
/// Whether a session has the file of this name open.
bool is_open_here(const char* name);
/// In mode=async it returns when values are taken. Collective.
herr_t flush_session(const char* function, Session& session);
/// Ids of ours are left out of what HDF5 lists. @returns how many there are of the program's, or -1
ssize_t list_ids(hid_t file, unsigned types, std::vector<hid_t>& ids);

/// One rank sees at once what it has written; of several none would see others' before a flush.
herr_t set_atomicity(Session& session, bool atomic);

/// What a program asks that a session has no answer to. @returns -1
int refuse(const char* function, const std::string& what);
herr_t fail_unknown(const char* function);

// --- datasets

/// Extents that HDF5 gives a dataset of a session. Collective, as H5Dset_extent is.
herr_t set_extents(const char* function, const Target& target, hid_t dataset,
                   const std::vector<hsize_t>& extents);
/// The extents that a call gives, of as many dimensions as the dataset has.
bool extents_of(hid_t dataset, const hsize_t* given, bool only_larger,
                std::vector<hsize_t>& extents);
/// Collective exactly if the transfer list says so.
herr_t write_dataset(const TransferPart& part, const void* values);
herr_t read_dataset(const TransferPart& part, void* values);

/// Not collective.
herr_t write_chunk(const Target& target, hid_t dataset, const hsize_t* offset, uint32_t filter_mask,
                   std::span<const std::byte> bytes);
/// A chunk's bytes, its size, its mask, of which the program wants some.
herr_t read_chunk(const char* function, const Target& target, hid_t dataset, const hsize_t* offset,
                  uint32_t* filter_mask, void* bytes, hsize_t* n_bytes);

/// A call on several datasets, entry by entry.
struct MultiCall {
  const char* function;
  std::size_t n;
  const hid_t* datasets;
  const hid_t* memory_types;
  const hid_t* memory_spaces;
  const hid_t* file_spaces;
  hid_t transfer_list;
};
/// Served if the datasets are a session's; HDF5 asks that all are of one file.
herr_t write_many(const MultiCall& call, const void* const* values, const ByHdf5<herr_t>& by_hdf5);
herr_t read_many(const MultiCall& call, void* const* values, const ByHdf5<herr_t>& by_hdf5);

/// Collective, as H5Ocopy is.
herr_t copy_object(hid_t from, const char* from_name, hid_t to, const char* to_name,
                   hid_t copy_list, hid_t link_list);
/// While a link below this object goes, or one of its own: flushes must look for datasets that are
/// gone.
class Deletion {
 public:
  explicit Deletion(hid_t location, const char* name = nullptr);
  ~Deletion();
  Deletion(const Deletion&) = delete;
  Deletion& operator=(const Deletion&) = delete;

 private:
  std::vector<Session*> sessions_;
};
/// The program counts an object for one link more, or less, than it has.
void note_count(hid_t object, int change);
/// What plain storage of the dataset would take: nobody but rank 0 knows of its chunks.
hsize_t plain_bytes(const Target& target);

}  // namespace tailrace::hdf5_programs
