// Datasets of a file that a program is changing, found by where their headers lie.
//
// A program renames datasets, gives them several names or none, and deletes them while others still
// have them open. The address of the header is the dataset for as long as it lives, so that is what
// is remembered of it. Used where the program makes the metadata itself (array/dataset_array.hpp).
// Callers need no Hdf5Scope.

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
/// @error not_found  there is none, or HDF5 cannot read it.
Result<std::int64_t> open_dataset_at(std::int64_t file_id, std::uint64_t address);
void close_hdf5_id(std::int64_t id);

/// What the header of the dataset at `address` says; its path is where it is found first.
/// @error not_found, corrupt
Result<StoredDataset> describe_dataset_at(std::int64_t file_id, std::uint64_t address);

/// Set attributes of the dataset at `address`. @error not_found, internal
Status set_attributes_at(std::int64_t file_id, std::uint64_t address,
                         std::span<const NamedAttribute> attributes);

/// Objects that live without a hard link of their own, by where their headers lie, and how many
/// links' worth each is counted for: user-defined links do so (H5Oincr_refcount).
using CountedObjects = std::map<std::uint64_t, std::uint64_t>;
/// Those of a file: what links lead to, and is counted for more of them than there are.
/// Cost: two looks at each object. @error internal
Result<CountedObjects> counted_objects(std::int64_t file_id);

/// Keeps counted objects open while something is deleted, since a link of the program's own kind
/// may have counted one down where nobody sees it: HDF5 leaves what is open where it is.
class HeldObjects {
 public:
  HeldObjects(std::int64_t file_id, const CountedObjects& counted);
  /// Close them, and strike out those that nothing counts any more.
  void release(CountedObjects& counted);

 private:
  std::vector<std::pair<std::uint64_t, std::int64_t>> ids_;
};

/// Where the headers of all datasets of a file lie that links lead to, from the root or from
/// objects that are counted, or that somebody has open. Cost: one look at each object.
/// @error internal
Result<std::set<std::uint64_t>> live_dataset_addresses(std::int64_t file_id,
                                                       const CountedObjects& counted);

/// Where the headers of the datasets lie that somebody has open. Cost: one look at each of these.
/// @error internal
Result<std::set<std::uint64_t>> open_dataset_addresses(std::int64_t file_id);

/// Write elements as the dataset stores them, dense and row-major. @error internal
Status write_elements(std::int64_t dataset_id, const Slab& slab, std::span<const std::byte> values);

/// Write one member of a compound's elements, as the dataset stores it; the others stay.
/// @error internal
Status write_member(std::int64_t dataset_id, const std::string& name, const Slab& slab,
                    std::span<const std::byte> values);

/// Have HDF5 write what it has buffered of a dataset. It does so by itself for those alone that
/// were opened by the very handle of the file that is flushed, and a program has one of its own;
/// and when nobody has the dataset open any more. Cost: HDF5 looks at all metadata that it has
/// cached.
Status flush_elements(std::int64_t dataset_id);
/// Close a dataset, which writes that if nobody else has it open. @error internal
Status close_elements(std::int64_t dataset_id);

/// Read elements of the dataset at `address` of a file that is open, as it stores them.
/// @error internal, plugin_missing
Status read_elements(std::int64_t file_id, std::uint64_t address, const Slab& slab,
                     std::span<std::byte> values);

/// Open what the last commit has left of a file, for read_elements(); by HDF5's own driver.
/// @returns HDF5's id, for close_hdf5_id().  @error corrupt, not_found
Result<std::int64_t> open_last_commit(const std::string& path);

}  // namespace tailrace
