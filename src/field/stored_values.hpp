// What the file has of a chunk already: its values, and chunks that begin with them.

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

/// The values of a chunk as the file has it. Not collective. Thread-safe as the storage is.
/// @param swapped_bytes  an element's, where chunks without filters have the other byte order.
/// @error corrupt, io_error, codec_failed
Result<Buffer> read_stored_values(Storage& storage, const Codec& codec, const ChunkPlace& place,
                                  std::uint64_t raw_bytes, std::size_t swapped_bytes = 1);

/// Chunks of a field over time that the file holds with fewer steps than they are to have: what it
/// holds stays, to the bit, and nothing is encoded twice. A lossless codec's are encoded whole; trz
/// joins the chunk that is there and one of what has come (trz/joined); where neither can be,
/// the chunk is stored without filters.
///
/// For a field whose entry goes on (FieldState::n_begun) and whose codec is made; null for others.
/// @param storage  outlives it.
std::shared_ptr<const ChunkBeginnings> chunk_beginnings(const FieldState& field, Storage& storage);

/// Whether they can be read, and where nothing may be stored without filters, joined: so that it is
/// found before anything waits for them. Not collective: each rank looks at its share.
/// @error io_error, codec_failed, corrupt, unsupported, out_of_memory
Status check_begun_chunks(const Comm& comm, const FieldState& field, Storage& storage);

/// Whether chunks of this codec can go on so.
bool keeps_beginnings(const Codec& codec);

}  // namespace tailrace
