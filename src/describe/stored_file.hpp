// StoredFile: one rank's view of an HDF5 file that is read. It lists datasets, locates chunks,
// reads the slabs that only HDF5 can read, and carries other objects over into another file.
//
// HDF5 reads the file through the noting driver, which fetches metadata in large pages. Callers
// read raw data through bytes(). For what HDF5 itself must read, the file is opened a second time
// with HDF5's own driver, on first use. Every call takes the HDF5 lock.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chunk/chunk_file.hpp"
#include "core/comm.hpp"
#include "core/copied_notes.hpp"
#include "core/covered_cells.hpp"
#include "core/slab.hpp"
#include "core/stated_attribute.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct BoxSeries;

/// All datasets of a file, whatever their type and storage. Unlike a concatenation's input
/// (concat_input.hpp) it rejects nothing. Datasets that cannot be read chunk by chunk are left to
/// HDF5 (StoredDataset::by_hdf5).
struct DatasetList {
  std::vector<StoredDataset> datasets;  ///< Datasets in the file's own order, depth first.
  /// Other names of datasets and groups, each with the path that it refers to: soft links, and hard
  /// links after the first.
  std::vector<std::pair<std::string, std::string>> aliases;
  bool netcdf4 = false;  ///< Written by the netCDF-4 library; set only if fields are requested.
  /// Remarks for the user: hard links that lead back to their own group, datasets left out. Not
  /// sent to other ranks.
  std::vector<std::string> remarks;
  /// Objects that HDF5 cannot open, with the reasons; the rest of the list does not contain them.
  /// Empty unless such objects are to be left out. Not sent to other ranks.
  std::vector<std::string> unreadable;

  /// Find the dataset of this path; follows aliases.
  std::optional<std::size_t> find(const std::string& path) const;
};

/// Serialize the list for other ranks, and back. @error corrupt
Bytes pack_dataset_list(const DatasetList& list);
Result<DatasetList> unpack_dataset_list(std::span<const std::byte> bytes);

/// Details to read about objects in addition to kind, path and storage.
enum class CatalogDetail : std::uint8_t {
  storage,  ///< No details. Links that cannot be read count as unknown, and no dataset is a field.
  fields,   ///< Attributes: which datasets are fields, and StoredDataset's members about fields.
};

class StoredFile : public ChunkFile {
 public:
  /// Open a file. Not collective. @error not_found, io_error, invalid_argument (a folder), corrupt
  /// (not HDF5, damaged, or truncated)
  /// @param own_output  see InputBytes::open
  static Result<std::unique_ptr<StoredFile>> open(const std::string& path,
                                                  OtherFiles other_files = OtherFiles::leave_out,
                                                  bool own_output = false);
  virtual const InputBytes& bytes() const = 0;
  /// List the file. Cost: O(objects).
  /// @param skip_unreadable  leave out objects that HDF5 cannot open, and list them in
  /// `unreadable`.
  /// @error corrupt, unsupported  an object that HDF5 cannot open; the message names its path.
  virtual Result<DatasetList> list(CatalogDetail detail, bool skip_unreadable = false) = 0;
  /// HDF5's id of the file, for other readers of metadata; valid as long as this object.
  virtual std::int64_t hdf5_id() const = 0;

  /// Read the texts of a slab (checked). The errors are those of read_slab().
  virtual Result<std::vector<std::string>> read_texts(const StoredDataset& dataset,
                                                      const Slab& slab) = 0;

  /// Same as InputFile::boxes_of().
  virtual Result<std::shared_ptr<const BoxSeries>> boxes_of(const StoredDataset& dataset) = 0;
  /// Same as InputFile::cover_of().
  virtual Result<LevelCover> cover_of(const StoredDataset& dataset,
                                      const std::shared_ptr<const BoxSeries>& boxes) = 0;
  virtual std::string text_attribute(const std::string& object_path, const std::string& name) = 0;
  virtual std::optional<NamedNumber> number_attribute(const std::string& object_path,
                                                      std::span<const char* const> names) = 0;
  /// Same as InputFile::attributes_of().
  virtual Result<std::vector<StatedAttribute>> attributes_of(const std::string& object_path,
                                                             AttributeFilter wanted) = 0;
  /// Same as InputFile::take_as_fields(), by paths.
  virtual void take_as_fields(const std::set<std::string>& paths) = 0;
  /// Same as InputFile::leave_out().
  virtual void leave_out(const std::set<std::string>& paths) = 0;
  /// Same as in InputFile; call after list(Asked::fields).
  virtual std::vector<std::pair<std::string, std::string>> objects() const = 0;
  virtual Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) = 0;
  virtual Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                                 const CopiedObjects& copied) = 0;
};

}  // namespace tailrace
