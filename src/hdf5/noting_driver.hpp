// An HDF5 file driver that reads from wherever we keep the bytes, and notes raw reads instead of
// making them.
//
// HDF5's own query of a chunk's address walks the whole index on every call. Here HDF5 is asked to
// read each chunk as it is stored, and the driver notes where it would have read: 0.2 us a chunk,
// with any HDF5 version and any kind of index. Used by the readers of chunk indexes and of
// concatenation inputs, which say where the bytes come from: the file, a cache of its pages, or
// memory. Read-only. Callers hold an Hdf5Scope.

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

/// A file as the driver sees it. Must outlive every HDF5 id that was made with it; but HDF5 leaves
/// some files that are damaged open for ever, whose handles the destructor cuts off.
class NotedFile {
 public:
  NotedFile() = default;
  NotedFile(const NotedFile&) = delete;
  NotedFile& operator=(const NotedFile&) = delete;
  /// Call with HDF5 locked. Where HDF5 has failed to close a damaged file, it is left with nothing.
  virtual ~NotedFile();
  /// Fill `bytes` from `address`; what lies behind the end counts as zeros.
  virtual Status fill(std::uint64_t address, std::span<std::byte> bytes) = 0;

  /// Whether all of an extent lies before the end.
  bool holds(const Extent& extent) const {
    return extent.address <= end_of_file && extent.encoded_bytes <= end_of_file - extent.address;
  }

  std::uint64_t end_of_file = 0;  ///< What HDF5 compares with the end that the superblock states.
  std::size_t length_bytes = 8;   ///< In which the file states lengths; known once it is open.
  std::uint64_t bytes_there = 0;  ///< How long it really is: no file has more chunks than bytes.
  bool noting = false;            ///< Raw reads are noted instead of made.
  std::optional<Extent> noted;    ///< The last of them.
  Status failure;                 ///< The first of fill(), for better words than HDF5's.
  std::vector<H5FD_t*> handles;   ///< HDF5's own, for the driver.
};

/// Have HDF5 open `file` through the driver. Datasets opened from it have no chunk cache.
/// @error corrupt  it does not open as HDF5.  @error what fill() returned
Result<Hdf5Id> open_noted(NotedFile& file, const std::string& path);

/// Append the stored chunks of an open chunked dataset to `chunks`, by chunk_index; chunks that
/// were never written are left out. `what` names the dataset in errors.
/// Cost: 0.2 us per chunk of the grid. Where most chunks of a grid were never written, either some
/// us for each of these, or a walk over the index for each of the others, whichever is less.
/// @error corrupt  the index is damaged.
Status note_chunks(NotedFile& file, hid_t dataset, const ChunkGrid& grid, const std::string& what,
                   std::vector<StoredChunk>& chunks);

/// Where one chunk lies; nothing if it was never written, or its entry is damaged (note_chunks()
/// tells these apart). Cost: a look into the index, about 1 us.
std::optional<StoredChunk> note_chunk(NotedFile& file, hid_t dataset, const ChunkGrid& grid,
                                      std::uint64_t chunk_index);

}  // namespace tailrace
