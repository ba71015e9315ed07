// Stored chunks: fetching their bytes, and decoding them one at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/codec.hpp"
#include "exec/chunk_homes.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

inline ChunkPlace place_of(const StoredChunk& chunk) {
  return {chunk.extent.address, chunk.extent.encoded_bytes, chunk.filter_mask};
}

/// True if none of `n_filters` filters was applied to a chunk.
bool is_raw_chunk(std::uint32_t filter_mask, std::size_t n_filters);

/// Fetch the bytes of a chunk. As thread-safe as the file.
/// @param file  a Storage or a ChunkFile.
/// @error out_of_memory, io_error, corrupt (the file ends before)
template <class File>
Result<EncodedBytes> fetch_chunk(File& file, const ChunkPlace& place) {
  EncodedBytes encoded{Buffer(place.encoded_bytes), place.filter_mask};
  if (!encoded.buffer.allocated()) {
    return Status(Code::out_of_memory, "not enough memory for a chunk of " +
                                           std::to_string(place.encoded_bytes) + " bytes");
  }
  TAILRACE_TRY(file.read_at(place.address, encoded.buffer.bytes()));
  return encoded;
}

/// Decode a fetched chunk. Thread-safe.
/// @param swapped_bytes  element size, if chunks without filters have the other byte order (the
/// codec swaps all others); else 1.
/// @error corrupt (a length differs), codec_failed
Result<Buffer> decode_chunk(const Codec& codec, EncodedBytes encoded, std::uint64_t raw_bytes,
                            std::size_t swapped_bytes = 1);

/// Fetch and decode a chunk. The arguments and errors are those of fetch_chunk() and
/// decode_chunk().
template <class File>
Result<Buffer> read_chunk(File& file, const Codec& codec, const ChunkPlace& place,
                          std::uint64_t raw_bytes, std::size_t swapped_bytes = 1) {
  TAILRACE_TAKE(EncodedBytes encoded, fetch_chunk(file, place));
  return decode_chunk(codec, std::move(encoded), raw_bytes, swapped_bytes);
}

}  // namespace tailrace
