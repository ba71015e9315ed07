// StoredFile: one rank's view of an HDF5 file that is read: its list of datasets, where chunks lie,
// and the slabs that only HDF5 itself can read.
//
// HDF5 sees the file through the noting driver, in large pages of metadata; raw data are read by
// the caller through bytes(). What HDF5 must read itself goes through a second opening with its own
// driver, made when it is first needed. Every call takes the HDF5 lock.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/slab.hpp"
#include "core/status.hpp"
#include "describe/dataset_list.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

class StoredFile {
 public:
  /// Not collective. @error not_found, io_error, invalid_argument (a folder), corrupt (not HDF5,
  /// damaged, or truncated)
  static Result<std::unique_ptr<StoredFile>> open(const std::string& path);
  virtual ~StoredFile() = default;

  virtual const InputBytes& bytes() const = 0;
  virtual Result<DatasetList> list() = 0;
  /// HDF5's id of the file, for whoever else reads metadata; valid as long as this object.
  virtual std::int64_t hdf5_id() const = 0;

  /// The stored chunks of a chunked dataset, by chunk_index; filter masks say of unfiltered edge
  /// chunks that they are. Cost: see note_chunks(). @error corrupt
  virtual Result<std::vector<StoredChunk>> chunks(const ListedDataset& dataset) = 0;
  /// One of them; nothing if it was never written, or its entry is damaged. Cost: about 1 us, 50 us
  /// more where another dataset was asked for before.
  virtual Result<std::optional<StoredChunk>> chunk(const ListedDataset& dataset,
                                                   std::uint64_t chunk_index) = 0;

  /// Read a slab (checked, not empty) by HDF5: numbers as their dtype, else the file's bytes.
  /// @error unsupported  elements that point elsewhere.  @error corrupt, io_error, plugin_missing,
  /// not_found (a file behind a virtual dataset)
  virtual Status read_slab(const ListedDataset& dataset, const Slab& slab,
                           std::span<std::byte> values) = 0;
  /// Texts of a slab (checked). @error as above
  virtual Result<std::vector<std::string>> read_texts(const ListedDataset& dataset,
                                                      const Slab& slab) = 0;
};

}  // namespace tailrace
