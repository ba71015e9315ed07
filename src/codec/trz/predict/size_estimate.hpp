// Estimate: how many bytes encode() would make of a chunk, from a sample of its values.

#pragma once

#include "codec/trz/trz.hpp"
#include "core/estimate.hpp"

namespace tailrace::trz {

/// What encode() would make of a chunk of `type` that looked like `values`, whose shape stands in
/// for type.shape. Not collective. Thread-safe, a workspace each.
/// @returns encoded_bytes in [1, encoded_bytes_max].
Estimate estimate_chunk(const ChunkType& type, const Settings& settings,
                        const StridedValues& values, Workspace& workspace);

}  // namespace tailrace::trz
