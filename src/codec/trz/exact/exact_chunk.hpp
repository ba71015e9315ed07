// Exact chunks: lossless coding of a chunk of any type, wired to the sections.
//
// exact.hpp decides and transforms; here its words go through the integer Lorenzo predictor and the
// code sections, or its bytes through a byte section.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/trz/book/book.hpp"
#include "codec/trz/chunk_header.hpp"
#include "codec/trz/predict/lattice_coding.hpp"
#include "codec/trz/trz.hpp"

namespace tailrace::trz {

/// A complete chunk but for its checksum, in the workspace's trial area; empty if it does not pay.
struct ExactAttempt {
  std::span<std::uint8_t> chunk;
  bool memory_out = false;
};

/// `head` has method exact.
ExactAttempt encode_exact_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                const Settings& settings, const Book* book, Workspace& workspace);

/// What encode_exact_chunk would come to, from a sample.
std::size_t estimate_exact_bytes(const ChunkHead& head, std::span<const std::byte> values,
                                 Workspace& workspace);

DecodeFailure decode_exact_chunk(ChunkReader& in, const ChunkHead& head, const Book* book,
                                 std::span<std::byte> values, Workspace& workspace);

}  // namespace tailrace::trz
