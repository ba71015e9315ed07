// Joined chunks: several complete chunks, each of which supplies one run of the joined chunk's
// values. Every part has as many values as the joined chunk.
//
// Appending to a chunk leaves its first values unchanged and encodes nothing twice. A job that
// continues in the middle of a chunk needs this. docs/trz-format.md defines the bytes.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/chunk_header.hpp"
#include "trz/entropy/chunk_bytes.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {

struct JoinedPart {
  std::size_t n_values = 0;  ///< Values that this part supplies, after earlier parts.
  std::span<const std::uint8_t> chunk;
};

struct JoinedParts {
  std::array<JoinedPart, kJoinedPartsMax> parts;
  std::size_t n = 0;

  std::span<const JoinedPart> all() const { return {parts.data(), n}; }
};

/// Read everything after the head of a joined chunk, to the end of its last part. False: malformed.
bool read_parts(ChunkReader& in, const ChunkHead& joined, JoinedParts& parts);

}  // namespace tailrace::trz
