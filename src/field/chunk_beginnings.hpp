// Chunks of a field over time to which new steps are added.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/storage.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

struct FieldState;

/// Chunks of a field over time that the file holds with fewer steps than they will have. The stored
/// steps stay bit-identical, and lossy values are not encoded twice. A lossless codec encodes the
/// completed chunk. trz joins the stored chunk and one of the new steps (trz/joined). If neither is
/// possible, the chunk is stored without filters.
///
/// Made for a field whose last entry is incomplete (FieldState::n_begun) and whose codec is made;
/// null for others.
/// @param storage  outlives the result.
std::shared_ptr<const ChunkBeginnings> chunk_beginnings(const FieldState& field, Storage& storage);

/// Check that the stored chunks can be read; and joined, if raw storage is not allowed. Errors are
/// thus found before a write depends on them. Not collective: each rank checks its share.
/// @error io_error, codec_failed, corrupt, unsupported, out_of_memory
Status check_begun_chunks(const Comm& comm, const FieldState& field, Storage& storage);

/// The first `n_first` values of one chunk, for a codec that keeps_beginnings() and is lossy.
/// @param stored  the chunk, encoded.  @param codec  outlives the result.
std::unique_ptr<const ChunkBeginnings> beginning_of_chunk(const Codec& codec, EncodedBytes stored,
                                                          std::uint64_t n_first,
                                                          std::uint64_t n_first_bytes,
                                                          std::uint64_t raw_bytes);

/// Change an encoded chunk of trz so that its first `n_first` values decode as those of `stored`.
/// Thread-safe.
/// @param raw_bytes  size of the chunk's values.
/// @error unsupported  one of them has no filter, or the result would have too many parts or bytes.
/// @error out_of_memory, corrupt
Status join_chunks(const EncodedBytes& stored, std::uint64_t n_first, std::uint64_t raw_bytes,
                   EncodedBytes& encoded);

/// True if chunks of this codec can be continued in this way.
bool keeps_beginnings(const Codec& codec);

}  // namespace tailrace
