// One chunk's way through the CPU lane: gather its values, encode, check, fall back where needed.

#pragma once

#include <cstdint>
#include <span>

#include "core/buffer.hpp"
#include "core/status.hpp"
#include "exec/field_plan.hpp"

namespace tailrace {

/// An uninitialised buffer for the values of one chunk, filled where no rank's part will be:
/// holes and, for growing datasets, the pad get the fill value. @error out_of_memory
Result<Buffer> make_chunk_buffer(const FieldPlan& plan, const ChunkJob& job);

/// Copy this rank's parts of the chunk into its buffer. @param values  as of make_chunk_buffer.
void gather_local_parts(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// Repeat the last values of each row, plane, ... into the part of an edge chunk that lies beyond
/// the field's shape, so that the pad costs next to nothing to encode.
void pad_edges(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// The chunk's values where they already lie, if they can be written from there: no filter, nothing
/// to verify, and one run of one put's memory. Empty otherwise.
std::span<const std::byte> borrow_values(const FieldPlan& plan, const ChunkJob& job);

struct ChunkOutcome {
  EncodedBytes encoded;
  bool stored_raw = false;  ///< The codec could not keep the bound here; the bytes are unfiltered.
  double max_error = 0;     ///< If verified.
  double verify_s = 0;
};

/// Encode a complete chunk, and verify it if the plan says so. Not collective. Thread-safe.
/// @error codec_failed, bound_broken  with fall_back_to_raw off; the text names field and chunk.
Result<ChunkOutcome> encode_chunk(const FieldPlan& plan, std::uint64_t chunk_index, Buffer values);

/// The chunk with every filter skipped: HDF5 stores and reads it as it is, so each value is exact.
ChunkOutcome store_raw(const FieldPlan& plan, Buffer values);

/// The most memory that one chunk of this field holds while it is encoded, for the budget.
std::uint64_t encode_memory_bytes(const FieldPlan& plan);

}  // namespace tailrace
