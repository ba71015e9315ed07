// Byte shuffle: HDF5's filter 2, which gathers byte k of every element in plane k.
//
// The shuffle places equal bytes of neighbouring numbers (mostly sign and exponent) next to each
// other, where deflate and zstd find them. The layout is exactly that of H5Zshuffle.c: one plane
// after another, then the bytes of an incomplete last element unchanged. If elements are single
// bytes or the input has at most one element, the bytes are copied unchanged. Both the built-in
// codecs and the plug-in pipelines run the shuffle before their compressor.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tailrace {

/// HDF5's registered number of the shuffle filter.
inline constexpr std::uint32_t kShuffleFilterId = 2;

/// Gather the byte planes of `from` in `to` (same length, no overlap).
/// Not collective. Thread-safe. Cost: one pass; vectorised for elements of 2, 4 and 8 bytes.
void shuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                   std::span<std::byte> to);

/// The inverse of shuffle_bytes.
void unshuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                     std::span<std::byte> to);

}  // namespace tailrace
