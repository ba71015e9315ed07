// ReadDataset: everything that reads of one dataset need, made at its first read.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "chunk/read_index.hpp"
#include "core/codec.hpp"
#include "core/slab.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// State of one dataset in a reader.
struct ReadDataset {
  std::size_t number = 0;  ///< Index in the reader's list.
  const StoredDataset* listed = nullptr;
  std::uint64_t element_bytes = 0;  ///< Size in the file, and in memory.
  Bytes fill;                       ///< One element in native byte order; empty: zeros.
  ReadIndex index;
  // Members below: chunked datasets only.
  ChunkGrid grid;
  std::uint64_t n_chunks = 0;
  std::uint64_t chunk_bytes = 0;
  std::shared_ptr<const Codec> codec;  ///< Made when a filtered chunk is first read, if not set.

  bool reads_ahead = true;  ///< Chunks may be decoded ahead, by threads between two reads.

  bool chunked() const { return listed->chunked(); }
  std::string name() const { return "dataset \"" + listed->path + "\""; }
  /// Convert values from the file's byte order to the machine's. Thread-safe.
  void make_native(std::span<std::byte> values) const;
  /// Describe a chunk: "dataset "/g/d": chunk 3 [0:4, 8:16] at address 4096 (812 bytes)".
  std::string chunk_text(const StoredChunk& chunk) const;
  /// True if no filter was applied to the chunk.
  bool is_raw(const StoredChunk& chunk) const;
  /// Check a chunk's extent. @error corrupt  it lies beyond the file's end, or is raw with a length
  /// other than a chunk's.
  Status check_chunk(const ChunkFile& file, const StoredChunk& chunk) const;
  /// Make the codec unless it exists. @error plugin_missing, unsupported
  Status make_codec(const std::string& plugin_path);
};

/// Initialise `dataset` from the list. @error corrupt  a chunk's size overflows 64 bits.
Status prepare_dataset(std::size_t number, const StoredDataset& listed, ReadDataset& dataset);

/// Fill a part of a slab's values with the dataset's fill value.
void fill_part(const ReadDataset& dataset, const SlabPart& part, const Slab& slab,
               std::byte* values);

/// Row-major array, stored unencoded in the file.
struct PlainArray {
  std::uint64_t address = 0;
  Shape shape;
  std::uint64_t element_bytes = 0;
};

/// Bytes and number of reads.
struct FetchCount {
  std::uint64_t n_bytes = 0;
  std::uint64_t n_reads = 0;
};

/// Read a slab (within the array, not empty), in the file's byte order. Not collective.
/// Thread-safe. Neighbouring rows share one read, including gaps of up to `gap_bytes` (at most 16
/// KiB) between them. Memory: 1 MiB and a gap. @error io_error, corrupt (the file ends before)
Status read_plain_array(const ChunkFile& file, const PlainArray& array, const Slab& slab,
                        std::uint64_t gap_bytes, std::byte* values, FetchCount& count);

}  // namespace tailrace
