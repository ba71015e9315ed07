// Refined chunks: a chunk of the same values within a coarser bound, and bit planes that refine it.
//
// The coarser chunk leaves each value a cell of twice its bound; a plane halves all cells. So the
// chunk's beginning, up to any plane, decodes to all values within a bound of its own, and a
// quantiser's low bits, which no predictor foretells, lie apart from the others at no cost. Those
// that break a bound at any level are patches, which stand before the planes: every prefix has
// them. trz/docs/trz-format.md has the bytes.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "trz/chunk_header.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {

/// What a refined chunk says before its parts.
struct RefinedParts {
  ChunkHead head;
  int n_planes = 0;
  double bound = 0;      ///< Of the values with all planes; of the values' type.
  double half_cell = 0;  ///< Half the width of the cells that all planes leave; likewise.
  std::size_t inner_at = 0;
  std::size_t n_inner_bytes = 0;
  std::size_t n_patch_bytes = 0;
  std::array<std::size_t, bit_planes_max> n_plane_bytes{};  ///< The coarsest first.

  std::size_t patches_at() const { return inner_at + n_inner_bytes; }
  /// Where the checksum of all before the planes stands.
  std::size_t checksum_at() const { return patches_at() + n_patch_bytes; }
  /// Where the first `n` planes end, each with its checksum.
  std::size_t end_of(int n) const;
  /// What the first `n` planes keep.
  double bound_of(int n) const;
};

/// Read it from a chunk's first prefix_head_bytes, or from all of a shorter one. Nothing: it is
/// no refined chunk, or makes no sense.
std::optional<RefinedParts> read_refined_parts(std::span<const std::uint8_t> beginning);

/// Decodes the chunk within to values of head.dtype.
using DecodeCoarser = std::function<DecodeFailure(ChunkReader& in, const ChunkHead& head,
                                                  std::span<std::byte> values)>;

/// Which planes there must be: all, or the first of them, as many as there are bytes for.
enum class PlanesRead : std::uint8_t { all, some };

/// Decode a chunk, or its bytes up to the end of a plane or before the first. Uses Slot refined.
DecodeFailure decode_refined(std::span<const std::uint8_t> prefix, PlanesRead planes,
                             std::span<std::byte> values, const DecodeCoarser& decode_coarser,
                             Workspace& workspace);

/// Fill in the checksums of the parts; false if this is no refined chunk, or not whole.
bool seal_refined(std::span<std::uint8_t> chunk);

}  // namespace tailrace::trz
