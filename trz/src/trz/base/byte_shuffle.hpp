// Byte shuffle: HDF5's filter 2, byte k of every element gathered in plane k.
//
// Equal bytes of neighbouring numbers (sign and exponent above all) come to lie side by side, which
// deflate and zstd need to see them. The layout is exactly that of H5Zshuffle.c: planes one after
// the other, then the bytes of an incomplete last element as they are; nothing is moved where there
// is at most one element or elements are single bytes. In core because built-in codecs and plug-in
// pipelines both put it in front of their compressor.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tailrace {

/// HDF5's registered number of the shuffle filter.
inline constexpr std::uint32_t shuffle_filter_id = 2;

/// Gather byte planes of `from` in `to` (same length, no overlap).
/// Not collective. Thread-safe. Cost: one pass; vectorised for elements of 2, 4 and 8 bytes.
void shuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                   std::span<std::byte> to);

/// The inverse of shuffle_bytes.
void unshuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                     std::span<std::byte> to);

}  // namespace tailrace
