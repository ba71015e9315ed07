// Small datasets, which are smallest in one piece, without chunks.

#pragma once

#include <cstddef>
#include <cstdint>

#include "core/codec_registry.hpp"
#include "core/options.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

/// Return the bytes that the index of a dataset needs for its first chunk, in the structures that
/// everyone reads. That is a node of a version 1 B-tree, with room for 64 chunks (HDF5's default).
constexpr std::uint64_t first_index_bytes(std::size_t rank) {
  constexpr std::uint64_t n_children = 64;
  constexpr std::uint64_t head_bytes = 24;
  const std::uint64_t key_bytes = 8 + 8 * (rank + 1);  // Length, mask, and position of the chunk.
  return head_bytes + 8 * n_children + key_bytes * (n_children + 1);
}

/// True if a dataset of fixed `shape` and `n_bytes` is smaller in one piece than as any chunk with
/// its index. Scalars are always in one piece.
inline bool is_smaller_in_one_piece(const Shape& shape, std::uint64_t n_bytes,
                                    Compatibility compatibility) {
  return compatibility != Compatibility::v110 && !shape.empty() &&
         n_bytes <= first_index_bytes(shape.size());
}

/// Change the options to exact values in one piece, whatever encoding was requested.
inline void store_in_one_piece(FieldOptions& options) {
  options.layout = "contiguous";
  options.codec = plain_codec;
  options.codec_settings.clear();
  options.codec_given = true;
  options.bound = {};
}

}  // namespace tailrace
