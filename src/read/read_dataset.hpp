// ReadDataset: all that reading the chunks of one dataset needs, made at its first read.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/slab.hpp"
#include "describe/stored_file.hpp"
#include "read/read_index.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct ReadDataset {
  std::size_t number = 0;  ///< In the reader's list.
  const StoredDataset* listed = nullptr;
  std::uint64_t element_bytes = 0;  ///< In the file, and in memory.
  Bytes fill;                       ///< One element in native byte order; empty: zeros.
  ReadIndex index;
  // Chunked datasets only, from here on.
  ChunkGrid grid;
  std::uint64_t n_chunks = 0;
  std::uint64_t chunk_bytes = 0;
  std::unique_ptr<Codec> codec;  ///< Made when a filtered chunk is first read.

  bool chunked() const { return listed->chunked(); }
  std::string name() const { return "dataset \"" + listed->path + "\""; }
  /// Bring values from the file's byte order to this machine's. Thread-safe.
  void make_native(std::span<std::byte> values) const;
  /// "dataset "/g/d": chunk 3 [0:4, 8:16] at address 4096 (812 bytes)".
  std::string chunk_text(const StoredChunk& chunk) const;
  /// Whether no filter was applied to the chunk.
  bool is_raw(const StoredChunk& chunk) const;
  /// @error corrupt  the chunk lies behind the file's end, or is raw and not as long as a chunk is.
  Status check_chunk(const InputBytes& file, const StoredChunk& chunk) const;
  /// Make the codec unless it is made. @error plugin_missing, unsupported
  Status make_codec(const std::string& plugin_path);
};

/// @error corrupt  a chunk has more bytes than 64 bits count.
Status prepare_dataset(std::size_t number, const StoredDataset& listed, ReadDataset& dataset);

/// Fill the elements of a part of a slab's values with the dataset's fill value.
void fill_part(const ReadDataset& dataset, const SlabPart& part, const Slab& slab,
               std::byte* values);

/// An array that lies in the file as it is, row-major.
struct PlainArray {
  std::uint64_t address = 0;
  Shape shape;
  std::uint64_t element_bytes = 0;
};

struct FetchCount {
  std::uint64_t n_bytes = 0;
  std::uint64_t n_reads = 0;
};

/// Read a slab (within the array, not empty), in the file's byte order. Not collective.
/// Thread-safe. Rows that lie near one another share one read: `gap_bytes` between them (16 KiB at
/// most) are read over. Memory: 1 MiB and a gap. @error io_error, corrupt (the file ends before)
Status read_plain_array(const InputBytes& file, const PlainArray& array, const Slab& slab,
                        std::uint64_t gap_bytes, std::byte* values, FetchCount& count);

}  // namespace tailrace
