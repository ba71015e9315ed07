// Exact coding with a symbol per value: predicted integers as modelled codes.
//
// Form `words` splits codes into groups of 64 and codes the bytes of each class. That is fast. It
// costs some per cent on smooth fields, where the code's class says little about its size. Here
// each code has a symbol of its own for its size and leading bits. Its context is made of the sizes
// of codes in earlier rows. The remaining bits are noise and are stored as they are. Floats may be
// predicted in floating point: differences of a smooth field then do not jump where its exponent
// changes. Presets ratio and max try this form, which is several times slower than form words.

#pragma once

#include <cstddef>
#include <span>

#include "trz/exact/exact.hpp"

namespace tailrace::trz {

/// Encode the body of form `modelled` if a sample promises that it is smaller than `to_beat` bytes.
/// The result is in Slot::modelled: a complete chunk without its checksum, or empty. `plan` is the
/// chunk's plan, of any form. Not collective. Thread-safe with a workspace per thread.
ExactAttempt encode_modelled_chunk(const ChunkHead& head, const ExactValues& values,
                                   const ExactPlan& plan, ZstdUse zstd, std::size_t to_beat,
                                   Workspace& workspace);

/// Read the body of form `modelled` from its second byte on, without the patches.
/// @param in_floats  the prediction is in floating point.
DecodeFailure decode_modelled(ChunkReader& in, const ChunkHead& head, bool in_floats,
                              std::span<std::byte> values, Workspace& workspace);

/// Flag in the first byte of form `modelled`: the prediction is in floating point.
inline constexpr std::uint8_t kFloatsFlag = 0x10;

}  // namespace tailrace::trz
