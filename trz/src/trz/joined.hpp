// Chunks that are joined: whole chunks of as many values as the joined one has, each of which says
// what a run of these is.
//
// So a chunk's first values stay what they decode to, while others come behind them, and nothing is
// encoded twice (steps of a job that goes on in the midst of a chunk). trz/docs/trz-format.md has
// the bytes.

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
  std::size_t n_values = 0;  ///< Of the joined chunk, behind those of the parts before.
  std::span<const std::uint8_t> chunk;
};

struct JoinedParts {
  std::array<JoinedPart, joined_parts_max> parts;
  std::size_t n = 0;

  std::span<const JoinedPart> all() const { return {parts.data(), n}; }
};

/// What follows the head of a joined chunk, to the end of its last part. False: it makes no sense.
bool read_parts(ChunkReader& in, const ChunkHead& joined, JoinedParts& parts);

/// Read a part's head. False: it has changed, or does not fit; a part is never joined itself.
bool read_part_head(const JoinedPart& part, const ChunkHead& joined, ChunkReader& in,
                    ChunkHead& head);

}  // namespace tailrace::trz
