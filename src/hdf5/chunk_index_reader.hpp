// Reads where the chunks of a dataset lie: fast, with any HDF5 version and any chunk index.
//
// HDF5's own query of a chunk's address walks the complete index on every call (milliseconds per
// chunk at 1e5 chunks). Here HDF5 reads every chunk through a file driver that records address and
// length and reads nothing (noting_driver.hpp): 0.2 us per chunk. The driver can also accept a
// truncated file as if it were complete, so that recovery can report which datasets have lost data.
// Read-only; other programs may have written the file.

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
  /// Treatment of a file that is shorter than its superblock states.
  enum class Truncated : std::uint8_t {
    refuse,  ///< Fail, like HDF5.
    accept   ///< Read the bytes that exist; missing bytes read as zeros.
  };

  /// Open `path`. @error not_found, io_error, corrupt (not HDF5, damaged, or truncated)
  static Result<std::unique_ptr<ChunkIndexReader>> open(const std::string& path,
                                                        Truncated truncated = Truncated::refuse);
  virtual ~ChunkIndexReader() = default;

  /// Paths of all datasets, each once, ordered by name (hdf5_walk.hpp).
  /// @error corrupt  a group or object header cannot be read.  @error unsupported  paths too long
  virtual Result<std::vector<std::string>> dataset_paths() = 0;
  /// The stored chunks of one dataset, ordered by chunk_index. Chunks that were never written are
  /// left out; compact, virtual and external datasets have none.
  /// Cost: 0.2 us per chunk of the grid, several us per missing chunk.
  /// @error not_found, corrupt
  virtual Result<std::vector<StoredChunk>> read(const std::string& dataset_path) = 0;
  /// Like read(), for the dataset whose header lies at `address`; `path` is used in messages.
  virtual Result<std::vector<StoredChunk>> read_at(std::uint64_t address,
                                                   const std::string& path) = 0;
  /// Extents of the dataset that read() or read_at() read last; its chunk grid numbers the chunks.
  virtual const Shape& shape() const = 0;
};

/// Read one dataset's stored chunks. Not collective. Any thread (takes the HDF5 lock).
Result<std::vector<StoredChunk>> read_chunk_index(const std::string& path,
                                                  const std::string& dataset_path);

/// Largest encoded chunk that can share its bytes with other chunks (`concat --dedup`).
inline constexpr std::uint64_t kSharedChunkBytesMax = 4U << 10;

/// Paths of the datasets of a file that share chunk addresses, within one dataset or with another.
/// Not collective; takes the HDF5 lock. Cost: ChunkIndexReader::read() of all datasets, plus 16
/// bytes for each chunk of at most kSharedChunkBytesMax.
/// @error like ChunkIndexReader::open() and read(): one failed dataset fails the call
Result<std::vector<std::string>> datasets_that_share_chunks(const std::string& path);

// --- ChunkList: where the stored chunks of one dataset lie, in 12 bytes a chunk.
//
// A rank that concatenates thousands of files stores the addresses of millions of small chunks. In
// nearly every dataset no chunk is missing, no filter was skipped and no chunk reaches 4 GiB. Then
// index and filter mask need no memory. All other datasets store complete StoredChunks.

/// A view of one dataset's chunks in ascending order; valid as long as the ChunkTable it refers to.
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
  /// The chunk with this index; encoded_bytes is 0 if it was never written.
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
  /// Location of one dataset's chunks in the table.
  struct Part {
    std::uint64_t first = 0;
    std::uint64_t n_chunks = 0;
    bool whole = false;
  };

  /// Add the chunks of one dataset, in ascending order.
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
  /// Release unused capacity; call after the last add().
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
