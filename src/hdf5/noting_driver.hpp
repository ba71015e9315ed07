// A read-only HDF5 file driver that serves reads from any source of bytes, and records raw reads
// instead of executing them.
//
// HDF5's own query of a chunk's address walks the complete index on every call. Here HDF5 is asked
// to read each chunk as stored, and the driver records the address of that read: 0.2 us per chunk,
// with any HDF5 version and any kind of index. Used by the readers of chunk indexes and of
// concatenation inputs, which supply the bytes: from the file, a cache of its pages, or memory.
// Callers hold an Hdf5Scope.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A file as seen by the driver. It must outlive every HDF5 id made with it. HDF5 never closes some
/// damaged files; the destructor disconnects their handles.
class NotedFile {
 public:
  NotedFile() = default;
  NotedFile(const NotedFile&) = delete;
  NotedFile& operator=(const NotedFile&) = delete;
  /// Call with HDF5 locked. Handles that HDF5 failed to close are left without a file.
  virtual ~NotedFile();
  /// Fill `bytes` from `address`; bytes after the end are zeros.
  virtual Status fill(std::uint64_t address, std::span<std::byte> bytes) = 0;

  /// True if an extent lies completely before the end.
  bool holds(const Extent& extent) const {
    return extent.address <= end_of_file && extent.encoded_bytes <= end_of_file - extent.address;
  }

  std::uint64_t end_of_file = 0;  ///< Compared by HDF5 with the end in the superblock.
  std::size_t length_bytes = 8;   ///< Size of lengths in the file; known once it is open.
  std::uint64_t bytes_there = 0;  ///< Actual length: no file has more chunks than bytes.
  bool noting = false;            ///< Record raw reads instead of executing them.
  std::optional<Extent> noted;    ///< The last recorded read.
  Status failure;  ///< First failure of fill(), which explains more than HDF5's message.
  std::vector<H5FD_t*> handles;  ///< HDF5's handles, maintained by the driver.
};

/// Let HDF5 open `file` through the driver. Datasets opened from it have no chunk cache.
/// @error corrupt  it does not open as HDF5.  @error any error of fill()
Result<Hdf5Id> open_noted(NotedFile& file, const std::string& path);

/// Append the stored chunks of an open chunked dataset to `chunks`, ordered by chunk_index; chunks
/// that were never written are left out. `what` names the dataset in errors.
/// Cost: 0.2 us per chunk of the grid. If most chunks of a grid were never written, the cheaper of:
/// some us for each of these, or a walk over the index for each of the others.
/// @error corrupt  the index is damaged.
Status note_chunks(NotedFile& file, hid_t dataset, const ChunkGrid& grid, const std::string& what,
                   std::vector<StoredChunk>& chunks);

/// Location of one chunk; empty if it was never written or its entry is damaged (note_chunks()
/// distinguishes these). Cost: one index look-up, about 1 us.
std::optional<StoredChunk> note_chunk(NotedFile& file, hid_t dataset, const ChunkGrid& grid,
                                      std::uint64_t chunk_index);

}  // namespace tailrace
