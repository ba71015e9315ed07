// Reading back where the chunks of a dataset lie, fast, with any HDF5 version and any chunk index.
//
// HDF5's own query of a chunk's address walks the whole index on every call (milliseconds per chunk
// at 1e5 chunks). Here HDF5 reads every chunk through a file driver that notes address and length
// and reads nothing (noting_driver.hpp): 0.2 us a chunk. It can also pretend that a truncated file
// is whole, so that recovery can say which datasets have lost data. Read-only; the file may be
// written by others.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

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

  /// Paths of all datasets, each once, in the order of names (hdf5_walk.hpp).
  /// @error corrupt  a group or object header cannot be read.  @error unsupported  paths too long
  virtual Result<std::vector<std::string>> dataset_paths() = 0;
  /// The stored chunks of one dataset, by chunk_index; chunks that were never written are left out,
  /// and compact, virtual and external datasets have none.
  /// Cost: 0.2 us per chunk of the grid, several us per chunk that is missing.
  /// @error not_found, corrupt
  virtual Result<std::vector<StoredChunk>> read(const std::string& dataset_path) = 0;
  /// The same of the dataset whose header lies at `address`; `path` is for messages.
  virtual Result<std::vector<StoredChunk>> read_at(std::uint64_t address,
                                                   const std::string& path) = 0;
  /// Extents of the dataset that was read last: the numbers of its chunks are those of its grid.
  virtual const Shape& shape() const = 0;
};

/// One dataset's stored chunks. Not collective. Any thread (under the HDF5 lock).
Result<std::vector<StoredChunk>> read_chunk_index(const std::string& path,
                                                  const std::string& dataset_path);

/// Chunks of at most so many encoded bytes can have one place for several (`concat --dedup`).
inline constexpr std::uint64_t shared_chunk_bytes_max = 4U << 10;

/// The paths of those datasets of a file of which chunks lie where others do, too, of the same or
/// of other datasets. Not collective; takes the HDF5 lock. Cost: as ChunkIndexReader::read() of all
/// datasets, and 16 bytes for each chunk of at most shared_chunk_bytes_max.
/// @error as ChunkIndexReader::open() and read(): of no dataset can it be told then
Result<std::vector<std::string>> datasets_that_share_chunks(const std::string& path);

// --- ChunkList: where the stored chunks of one dataset lie, in 12 bytes a chunk.
//
// A rank that concatenates thousands of files keeps the addresses of millions of small chunks.
// Nearly always no chunk is missing, no filter was skipped and none has 4 GiB: then number and
// filter mask need no memory. Datasets for which that does not hold keep whole StoredChunks.

/// A view of one dataset's chunks, ascending; as long-lived as the ChunkTable behind it.
class ChunkList {
 public:
  ChunkList() = default;
  ChunkList(std::span<const std::uint64_t> addresses, std::span<const std::uint32_t> sizes)
      : addresses_(addresses), sizes_(sizes) {}
  explicit ChunkList(std::span<const StoredChunk> whole) : whole_(whole) {}

  std::size_t size() const { return addresses_.size() + whole_.size(); }
  bool empty() const { return size() == 0; }
  StoredChunk operator[](std::size_t i) const {
    if (!whole_.empty()) return whole_[i];
    return {i, {addresses_[i], sizes_[i]}, 0};
  }
  /// The chunk of this number; with 0 encoded bytes if it was never written.
  StoredChunk find(std::uint64_t chunk_index) const {
    if (whole_.empty()) {
      const bool there = chunk_index < addresses_.size();
      return there ? (*this)[static_cast<std::size_t>(chunk_index)]
                   : StoredChunk{chunk_index, {}, 0};
    }
    const auto found = std::lower_bound(
        whole_.begin(), whole_.end(), chunk_index,
        [](const StoredChunk& chunk, std::uint64_t index) { return chunk.chunk_index < index; });
    const bool there = found != whole_.end() && found->chunk_index == chunk_index;
    return there ? *found : StoredChunk{chunk_index, {}, 0};
  }

 private:
  std::span<const std::uint64_t> addresses_;
  std::span<const std::uint32_t> sizes_;
  std::span<const StoredChunk> whole_;
};

/// The chunks of many datasets.
class ChunkTable {
 public:
  /// A list's place in the table.
  struct Part {
    std::uint64_t first = 0;
    std::uint64_t n_chunks = 0;
    bool whole = false;
  };

  /// Add the chunks of one dataset, ascending.
  Part add(std::span<const StoredChunk> chunks) {
    Part part;
    part.n_chunks = chunks.size();
    part.whole = !std::all_of(chunks.begin(), chunks.end(), [&](const StoredChunk& chunk) {
      return chunk.chunk_index == static_cast<std::uint64_t>(&chunk - chunks.data()) &&
             chunk.filter_mask == 0 &&
             chunk.extent.encoded_bytes <= std::numeric_limits<std::uint32_t>::max();
    });
    part.first = part.whole ? whole_.size() : addresses_.size();
    for (const StoredChunk& chunk : chunks) {
      if (part.whole) {
        whole_.push_back(chunk);
        continue;
      }
      addresses_.push_back(chunk.extent.address);
      sizes_.push_back(static_cast<std::uint32_t>(chunk.extent.encoded_bytes));
    }
    return part;
  }
  ChunkList list(const Part& part) const {
    if (part.whole) return ChunkList(std::span(whole_).subspan(part.first, part.n_chunks));
    return {std::span(addresses_).subspan(part.first, part.n_chunks),
            std::span(sizes_).subspan(part.first, part.n_chunks)};
  }
  /// Nothing will be added any more.
  void shrink() {
    addresses_.shrink_to_fit();
    sizes_.shrink_to_fit();
    whole_.shrink_to_fit();
  }
  std::uint64_t memory_bytes() const {
    return addresses_.capacity() * sizeof(std::uint64_t) +
           sizes_.capacity() * sizeof(std::uint32_t) + whole_.capacity() * sizeof(StoredChunk);
  }

 private:
  std::vector<std::uint64_t> addresses_;
  std::vector<std::uint32_t> sizes_;
  std::vector<StoredChunk> whole_;
};

}  // namespace tailrace
