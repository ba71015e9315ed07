// FieldPlan: all that the lanes must know of one field in one step. The same on every rank but for
// the puts, and constant while the lanes run.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "exec/chunk_patches.hpp"
#include "exec/ownership.hpp"
#include "layout/layout.hpp"

namespace tailrace {

struct FieldPlan {
  std::size_t field_index = 0;  ///< In the writer's numbering, for traces.
  std::string path;
  DType dtype = DType::f32;
  ChunkGrid grid;
  std::span<const PutRecord> puts;  ///< This rank's.
  ChunkPatches* patches = nullptr;  ///< Where values come from instead; null: from `puts`.
  const Codec* codec = nullptr;
  const Layout* layout = nullptr;
  double absolute_bound = 0;   ///< Unit of the field; 0: exact, but for mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  std::optional<double> fill_value;
  bool verify = false;           ///< Decode every chunk after encoding and compare.
  bool fall_back_to_raw = true;  ///< A chunk that breaks its bound is stored unfiltered, or fails.
  bool allow_holes = false;
  bool pad_with_fill = false;      ///< Edge chunks of growing datasets: the pad may become visible.
  std::uint64_t base_address = 0;  ///< BaseFrom::shape only: where the field's chunk 0 lies.

  std::size_t element_bytes() const { return dtype_bytes(dtype); }
  /// Uncompressed bytes of a whole chunk.
  std::uint64_t chunk_bytes() const { return n_elements(grid.chunk_shape) * element_bytes(); }
  /// The box that a chunk's buffer covers: contiguous slabs end with the field, chunks do not.
  Box values_box(std::uint64_t chunk_index) const {
    return layout->contiguous() ? grid.clipped_box(chunk_index) : grid.full_box(chunk_index);
  }
};

/// Sums and maxima over the chunks that this rank encoded of one field.
struct FieldTally {
  std::uint64_t n_chunks = 0;
  std::uint64_t n_raw_chunks = 0;
  std::uint64_t encoded_bytes = 0;
  double encode_s = 0;
  double verify_s = 0;
  double max_error = 0;                 ///< Under pw_rel as a fraction of the value.
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place kept for them.
  std::uint64_t reserved_bytes = 0;     ///< Set aside before the sizes were known.
};

/// A chunk as the chunk index will know it.
struct WrittenChunk {
  std::uint64_t field = 0;  ///< Index into the step's plans.
  std::uint64_t chunk_index = 0;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t filter_mask = 0;
};

}  // namespace tailrace
