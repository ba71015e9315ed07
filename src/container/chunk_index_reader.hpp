// Reading back where the chunks of a dataset lie, fast, with any HDF5 version and any chunk index.
//
// HDF5's own query of a chunk's address walks the whole index on every call (milliseconds per chunk
// at 1e5 chunks). Here HDF5 reads every chunk through a file driver that notes address and length
// and reads nothing (noting_driver.hpp): 0.2 us a chunk. It can also pretend that a truncated file
// is whole, so that recovery can say which datasets have lost data. Read-only; the file may be
// written by others.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "container/hdf5_file.hpp"
#include "core/status.hpp"

namespace tailrace {

/// One stored chunk; contiguous datasets count as one chunk without filters.
struct StoredChunk {
  std::uint64_t chunk_index = 0;  ///< Row-major in the dataset's chunk grid.
  Extent extent;                  ///< Absolute address in the file, bytes stored.
  std::uint32_t filter_mask = 0;  ///< Bit i: filter i of the pipeline was skipped.
};

class ChunkIndexReader {
 public:
  /// How to take a file that is shorter than its superblock says.
  enum class Truncated : std::uint8_t {
    refuse,  ///< As HDF5 does.
    accept   ///< Read what is there; missing bytes count as zeros.
  };

  /// Open `path`. @error not_found, io_error, corrupt (not HDF5, damaged, or truncated)
  static Result<std::unique_ptr<ChunkIndexReader>> open(const std::string& path,
                                                        Truncated truncated = Truncated::refuse);
  virtual ~ChunkIndexReader() = default;

  /// Paths of all datasets, in the order in which HDF5 visits them by name.
  /// @error corrupt  a group or object header cannot be read.
  virtual Result<std::vector<std::string>> dataset_paths() = 0;
  /// The stored chunks of one dataset, by chunk_index; chunks that were never written are left out,
  /// and compact, virtual and external datasets have none.
  /// Cost: 0.2 us per chunk of the grid, several us per chunk that is missing.
  /// @error not_found, corrupt
  virtual Result<std::vector<StoredChunk>> read(const std::string& dataset_path) = 0;
};

/// One dataset's stored chunks. Not collective. Any thread (under the HDF5 lock).
Result<std::vector<StoredChunk>> read_chunk_index(const std::string& path,
                                                  const std::string& dataset_path);

}  // namespace tailrace
