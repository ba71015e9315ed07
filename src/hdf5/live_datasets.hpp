// Datasets of a file that a program is changing, identified by the addresses of their headers.
//
// A program renames datasets, gives them several names or none, and deletes them while other code
// still has them open. Only the header's address identifies a dataset throughout its lifetime, so
// that address is what we store. Used if the program makes the metadata itself
// (array/dataset_lifetimes.hpp). Callers need no Hdf5Scope.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/slab.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Open the dataset whose header lies at `address`. @returns HDF5's id, for close_hdf5_id().
/// @error not_found  no dataset lies there, or HDF5 cannot read it.
Result<std::int64_t> open_dataset_at(std::int64_t file_id, std::uint64_t address);
void close_hdf5_id(std::int64_t id);

/// Describe the dataset at `address` from its header; `path` is the path that HDF5 finds first.
/// @error not_found, corrupt
Result<StoredDataset> describe_dataset_at(std::int64_t file_id, std::uint64_t address);

/// Bound of all values of a dataset, as its attributes record it.
struct RecordedBound {
  std::string codec;
  std::string mode;     ///< Empty: none is recorded, or earlier losses are, too.
  double asked = 0;     ///< Number of the mode.
  double absolute = 0;  ///< Unit of the values; 0 under pw_rel.
};
/// Read the attributes that record a bound. @error not_found
Result<RecordedBound> recorded_bound_at(std::int64_t file_id, std::uint64_t address);

/// Set attributes of the dataset at `address`. @error not_found, internal
Status set_attributes_at(std::int64_t file_id, std::uint64_t address,
                         std::span<const NamedAttribute> attributes);

/// Addresses of objects that survive without a hard link, each with the number of references that
/// no hard link explains. User-defined links hold such references (H5Oincr_refcount).
using CountedObjects = std::map<std::uint64_t, std::uint64_t>;
/// List the counted objects of a file: linked objects whose reference count exceeds their number of
/// links. Cost: two header reads per object. @error internal
Result<CountedObjects> counted_objects(std::int64_t file_id);

/// Keeps counted objects open during a deletion. A user-defined link of the program may decrement a
/// reference count unseen; HDF5 does not free an open object.
class HeldObjects {
 public:
  HeldObjects(std::int64_t file_id, const CountedObjects& counted);
  /// Close the objects, and erase those whose reference count is now 0 from `counted`.
  void release(CountedObjects& counted);

 private:
  std::vector<std::pair<std::uint64_t, std::int64_t>> ids_;
};

/// Header addresses of all live datasets of a file: those that links reach from the root or from
/// counted objects, and those that are open. Cost: one header read per object.
/// @error internal
Result<std::set<std::uint64_t>> live_dataset_addresses(std::int64_t file_id,
                                                       const CountedObjects& counted);

/// Header addresses of all open datasets. Cost: one header read per open dataset.
/// @error internal
Result<std::set<std::uint64_t>> open_dataset_addresses(std::int64_t file_id);

/// Write elements in the dataset's stored type, dense and row-major. @error internal
Status write_elements(std::int64_t dataset_id, const Slab& slab, std::span<const std::byte> values);

/// Write one member of compound elements, in its stored type; other members stay.
/// @error internal
Status write_member(std::int64_t dataset_id, const std::string& name, const Slab& slab,
                    std::span<const std::byte> values);

/// Let HDF5 write what it has buffered for a dataset. A file flush covers only datasets that were
/// opened through the flushed file handle, and a program has a handle of its own. HDF5 also writes
/// when the last id of the dataset is closed. Cost: HDF5 visits all metadata in its cache.
Status flush_elements(std::int64_t dataset_id);
/// Close a dataset; the last close writes what HDF5 has buffered for it. @error internal
Status close_elements(std::int64_t dataset_id);

/// Read elements of the dataset at `address` of an open file, in the stored type.
/// @error internal, plugin_missing
Status read_elements(std::int64_t file_id, std::uint64_t address, const Slab& slab,
                     std::span<std::byte> values);

/// Open the state of a file after its last commit, for read_elements(), with HDF5's standard
/// driver. @returns HDF5's id, for close_hdf5_id().  @error corrupt, not_found
Result<std::int64_t> open_last_commit(const std::string& path);

}  // namespace tailrace
