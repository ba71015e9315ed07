// Refined chunks: a chunk of the same values within a coarser bound, and bit planes that refine it.
//
// The coarser chunk leaves each value a cell of twice its bound; each plane halves all cells. So
// the chunk's beginning, up to any plane, decodes to all values within a known bound. A quantiser's
// low bits, which no predictor can predict, are stored separately at no cost. Values that break a
// bound at any level are patches, stored before the planes: every prefix includes them.
// docs/trz-format.md defines the bytes.

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

/// Sizes and bounds that a refined chunk records before its parts.
struct RefinedParts {
  ChunkHead head;
  int n_planes = 0;
  double bound = 0;      ///< Bound of the values with all planes, in the values' type.
  double half_cell = 0;  ///< Half the width of a cell after all planes, in the values' type.
  std::size_t inner_at = 0;
  std::size_t n_inner_bytes = 0;
  std::size_t n_patch_bytes = 0;
  std::array<std::size_t, kBitPlanesMax> n_plane_bytes{};  ///< Coarsest plane first.

  std::size_t patches_at() const { return inner_at + n_inner_bytes; }
  /// Offset of the checksum over everything before the planes.
  std::size_t checksum_at() const { return patches_at() + n_patch_bytes; }
  /// Offset of the end of the first `n` planes, each with its checksum.
  std::size_t end_of(int n) const;
  /// Bound that the first `n` planes guarantee.
  double bound_of(int n) const;
};

/// Read the parts from a chunk's first prefix_head_bytes bytes, or from all of a shorter one.
/// Nothing: not a refined chunk, or malformed.
std::optional<RefinedParts> read_refined_parts(std::span<const std::uint8_t> beginning);

/// Callback that decodes the inner chunk to values of head.dtype.
using DecodeCoarser = std::function<DecodeFailure(ChunkReader& in, const ChunkHead& head,
                                                  std::span<std::byte> values)>;

/// Planes that must be present: all, or only the leading ones that the bytes contain.
enum class PlanesRead : std::uint8_t { all, some };

/// Decode a chunk, or a prefix that ends after a plane or before the first. Uses Slot refined.
DecodeFailure decode_refined(std::span<const std::uint8_t> prefix, PlanesRead planes,
                             std::span<std::byte> values, const DecodeCoarser& decode_coarser,
                             Workspace& workspace);

/// Write the checksums of the parts. False: not a refined chunk, or incomplete.
bool seal_refined(std::span<std::uint8_t> chunk);

}  // namespace tailrace::trz
