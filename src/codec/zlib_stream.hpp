// A zlib stream (RFC 1950, 1951) in which libdeflate encodes only the parts where a search for
// matches pays.
//
// After a byte shuffle the lowest bytes of floating-point values are adjacent, and they are noise:
// deflate spends most of its time searching them for matches, and finds almost none. Therefore each
// 16 KiB are judged by a sample of their positions. If matches would save less than one part in
// 256, the bytes become blocks of literals with their own Huffman code, or stored blocks.
// libdeflate encodes the rest. Any reader of zlib streams can read the result;
// lab/bench/results/README.md has sizes and times.

#pragma once

#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tailrace {

/// Encode `values` with a libdeflate compressor that was made for `level`, 1 to 12. Not collective.
/// Thread-safe. Cost: 2 to 5 ns for each byte without matches; for other bytes libdeflate's time
/// plus 0.5 to 2.5 ns.
/// @returns the length; 0: the stream does not fit `to`. It always fits libdeflate's bound for a
/// zlib stream of these bytes.
std::size_t encode_zlib_stream(libdeflate_compressor& compressor, int level,
                               std::span<const std::byte> values, std::span<std::byte> to);

/// Working memory for `n_bytes`, in addition to the compressor and the arguments.
std::uint64_t zlib_parts_bytes(std::uint64_t n_bytes);

}  // namespace tailrace
