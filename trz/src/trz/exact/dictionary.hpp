// Exact chunks of few distinct values: the values once, and the rank of each among them.
//
// zstd needs three or more bytes for each repeat of a value. Ranks are integers of one or two bytes
// without repeats of that kind, and coding them costs little more than their entropy. The words are
// sorted, so that ranks are as smooth as the values. Presets ratio and max try this form.

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "trz/exact/exact.hpp"

namespace tailrace::trz {

/// Encode values as an exact chunk of other values: the words or the ranks.
using EncodeExact = std::function<ExactAttempt(
    const ChunkHead& head, std::span<const std::byte> values, std::size_t to_beat)>;
/// Decode the exact body of words or ranks, which must take all bytes of `in`.
using DecodeExact = std::function<DecodeFailure(ChunkReader& in, const ChunkHead& head,
                                                std::span<std::byte> values)>;

/// Encode form `dictionary` if the values are few. The result is in Slot::dictionary: a complete
/// chunk without its checksum; empty if it has `to_beat` bytes or more. Types of 4 and 8 bytes.
/// Uses Slots ranks and vocabulary. Not collective. Thread-safe with a workspace per thread.
ExactAttempt encode_dictionary_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                     std::size_t to_beat, const EncodeExact& encode_exact,
                                     Workspace& workspace);

/// Read the body of form `dictionary` from its second byte on.
DecodeFailure decode_dictionary(ChunkReader& in, const ChunkHead& head, std::span<std::byte> values,
                                const DecodeExact& decode_exact, Workspace& workspace);

}  // namespace tailrace::trz
