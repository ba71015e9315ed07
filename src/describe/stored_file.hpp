// StoredFile: one rank's view of an HDF5 file that is read: its list of datasets, where chunks lie,
// the slabs that only HDF5 itself can read, and what of it is carried over into another file.
//
// HDF5 sees the file through the noting driver, in large pages of metadata; raw data are read by
// the caller through bytes(). What HDF5 must read itself goes through a second opening with its own
// driver, made when it is first needed. Every call takes the HDF5 lock.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// All datasets of a file, whatever they hold and wherever their data lie. Unlike of a
/// concatenation's input (concat_input.hpp) nothing is refused: what cannot be read chunk by chunk
/// is HDF5's own affair (StoredDataset::by_hdf5).
struct DatasetList {
  std::vector<StoredDataset> datasets;  ///< In the file's own order, depth first.
  /// Other names: of hard links after the first and soft links, of datasets and groups alike; and
  /// the path that each stands for.
  std::vector<std::pair<std::string, std::string>> aliases;
  bool netcdf4 = false;  ///< Written by the netCDF-4 library; where fields were asked for.
  /// For the user: hard links that lead back to their own group, datasets left out. They do not
  /// travel.
  std::vector<std::string> remarks;
  /// Objects that HDF5 cannot open, and why: nothing else of the list knows of them. Empty unless
  /// they are to be left out. They do not travel.
  std::vector<std::string> unreadable;

  /// The dataset of this path, through aliases too.
  std::optional<std::size_t> find(const std::string& path) const;
};

/// To be sent to other ranks, and back. @error corrupt
Bytes pack_dataset_list(const DatasetList& list);
Result<DatasetList> unpack_dataset_list(std::span<const std::byte> bytes);

/// What is asked of an object besides its kind, path and storage.
enum class Asked : std::uint8_t {
  storage,  ///< Nothing: links that cannot be read are unknown ones, and there are no fields.
  fields,   ///< Attributes: which datasets are fields, and what StoredDataset says of those.
};

class StoredFile {
 public:
  /// Not collective. @error not_found, io_error, invalid_argument (a folder), corrupt (not HDF5,
  /// damaged, or truncated)
  /// @param own_output  see InputBytes::open
  static Result<std::unique_ptr<StoredFile>> open(const std::string& path,
                                                  OtherFiles other_files = OtherFiles::leave_out,
                                                  bool own_output = false);
  virtual ~StoredFile() = default;

  virtual const InputBytes& bytes() const = 0;
  /// List the file. Cost: O(objects).
  /// @param skip_unreadable  leave out objects that HDF5 cannot open, and name them.
  /// @error corrupt, unsupported  an object that HDF5 cannot open; the message names its path.
  virtual Result<DatasetList> list(Asked asked, bool skip_unreadable = false) = 0;
  /// HDF5's id of the file, for whoever else reads metadata; valid as long as this object.
  virtual std::int64_t hdf5_id() const = 0;

  /// The stored chunks of a chunked dataset, by chunk_index; filter masks say of unfiltered edge
  /// chunks that they are. Cost: see note_chunks(). @error corrupt
  virtual Result<std::vector<StoredChunk>> chunks(const StoredDataset& dataset) = 0;
  /// One of them; nothing if it was never written, or its entry is damaged. Cost: about 1 us, 50 us
  /// more where another dataset was asked for before.
  virtual Result<std::optional<StoredChunk>> chunk(const StoredDataset& dataset,
                                                   std::uint64_t chunk_index) = 0;

  /// Read a slab (checked, not empty) by HDF5: numbers as their dtype, else the file's bytes.
  /// @error unsupported  elements that point elsewhere.  @error corrupt, io_error, plugin_missing,
  /// not_found (a file behind a virtual dataset), unsupported (values in other files)
  virtual Status read_slab(const StoredDataset& dataset, const Slab& slab,
                           std::span<std::byte> values) = 0;
  /// Texts of a slab (checked). @error as above
  virtual Result<std::vector<std::string>> read_texts(const StoredDataset& dataset,
                                                      const Slab& slab) = 0;

  /// As InputFile::boxes_of().
  virtual Result<std::shared_ptr<const BoxSeries>> boxes_of(const StoredDataset& dataset) = 0;
  /// As InputFile::cover_of().
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
  /// As in InputFile, after list(Asked::fields).
  virtual std::vector<std::pair<std::string, std::string>> objects() const = 0;
  virtual Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) = 0;
  virtual Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output,
                                                                 const CopiedObjects& copied) = 0;
};

}  // namespace tailrace
