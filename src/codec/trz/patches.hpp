// Patches: the values of a chunk that are stored exactly, and where they lie.
//
// At most two sets. The first holds values of one and the same bit pattern (a fill value, one kind
// of NaN), so only positions are stored; the second the others, with their values. Positions are
// the gaps between marked indices as varints, or one bit per value, whichever is shorter; both are
// byte sections, and so are the values.

#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/trz/byte_section.hpp"
#include "codec/trz/chunk_bytes.hpp"
#include "codec/trz/patch_map.hpp"
#include "codec/trz/workspace.hpp"

namespace tailrace::trz {

/// Upper limit of write_patches' bytes.
std::size_t patches_bytes_max(std::size_t n_values, std::size_t n_patches,
                              std::size_t element_bytes);

/// Write the marked values. T: an unsigned integer as wide as the elements.
/// Uses Slots patch_values and transform. False when memory or room is out.
template <class T>
bool write_patches(const T* values, const PatchMap& patches, const SectionPlan& plan,
                   ChunkWriter& out, Workspace& workspace);

/// Read the patches and put them into `values`. False on anything inconsistent, or when memory is
/// out (then *memory_out).
template <class T>
bool apply_patches(ChunkReader& in, T* values, std::size_t n_values, Workspace& workspace,
                   bool* memory_out);

}  // namespace tailrace::trz
