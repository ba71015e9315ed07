// ChunkFile: a file whose stored datasets are read: its bytes and the indexes of its chunks.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/slab.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ChunkFile {
 public:
  virtual ~ChunkFile() = default;

  /// Length of the file; nothing beyond it is read.
  virtual std::uint64_t file_bytes() const = 0;
  /// Fill all of `bytes` from `address`. Thread-safe. @error corrupt (the file ends before),
  /// io_error
  virtual Status read_at(std::uint64_t address, std::span<std::byte> bytes) const = 0;
  /// Read the stored chunks of a chunked dataset, by chunk_index. The filter mask of an unfiltered
  /// edge chunk has all bits set. Cost: see note_chunks(). @error corrupt
  virtual Result<std::vector<StoredChunk>> chunks(const StoredDataset& dataset) = 0;
  /// Look up one stored chunk; nothing if it was never written, if its entry is damaged, or if only
  /// chunks() finds it. Cost: about 1 us; 50 us more if the previous call was for another dataset.
  virtual Result<std::optional<StoredChunk>> chunk(const StoredDataset& dataset,
                                                   std::uint64_t chunk_index) = 0;
  /// Read a slab (checked, not empty) through HDF5: numbers as their dtype, else the file's bytes.
  /// @error unsupported  elements that point elsewhere, or values in other files.  @error corrupt,
  /// io_error, plugin_missing, not_found (a source file of a virtual dataset)
  virtual Status read_slab(const StoredDataset& dataset, const Slab& slab,
                           std::span<std::byte> values) = 0;
};

}  // namespace tailrace
