// A zlib stream (RFC 1950, 1951) of which libdeflate makes only the parts where a search for
// matches gains something.
//
// Behind a byte shuffle the lowest bytes of floating-point values stand together, and they are
// noise: deflate spends most of its time in looking for matches among them, and finds next to none.
// So each 16 KiB are judged by a sample of their positions. Where matches would save less than one
// part in 256, bytes become blocks of literals with a Huffman code of their own, or stay as they
// are; libdeflate does the rest. Any reader of zlib streams reads it; docs/codecs.md has sizes and
// times.

#pragma once

#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tailrace {

/// Encode `values` with a compressor of libdeflate's that was made for `level`, 1 to 12.
/// @returns the length; 0: it takes more room than there is. The room that libdeflate asks for a
/// zlib stream of so many bytes always does.
/// Not collective. Thread-safe. Cost: of bytes without matches 2 to 5 ns each; of others what
/// libdeflate takes, and 0.5 to 2.5 ns.
std::size_t encode_zlib_stream(libdeflate_compressor& compressor, int level,
                               std::span<const std::byte> values, std::span<std::byte> to);

/// Memory that it needs for `n_bytes` besides the compressor's and what it is given.
std::uint64_t zlib_parts_bytes(std::uint64_t n_bytes);

}  // namespace tailrace
