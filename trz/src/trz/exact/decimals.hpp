// Decimals in disguise: floats that somebody made of whole numbers.
//
// Heights in tenths of a metre, temperatures unpacked as k * 0.001 - 10, hit fractions 8000 / k:
// their last bits look like noise to a predictor, though the whole numbers behind them are smooth
// and short. A few values say which step it is; then every value's number must bring back its very
// bits by the decoder's own operations (decimal_kernels.hpp), and those that none brings back are
// patches. The numbers are a chunk of their own: exact integers, or floats on a lattice of whole
// numbers, whose interpolation is the better predictor of smooth fields.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trz/base/status.hpp"
#include "trz/exact/exact.hpp"
#include "trz/kernels/decimal_kernels.hpp"

namespace tailrace::trz {

/// What makes whole numbers of these values, floats of 32 or 64 bits: from some 50 of them, and 256
/// where those look like it. Any other types: nothing. The same on every machine. Thread-safe.
std::optional<DecimalMap> find_decimals(const ExactValues& values, Isa isa);

/// Encodes the chunk within: as many values as the outer one has, exactly if i32, otherwise within
/// `kWithinHalf`; returns its bytes.
using EncodeInner = std::function<Result<std::size_t>(
    DType dtype, std::span<const std::byte> values, std::span<std::byte> out)>;
inline constexpr double kWithinHalf = 0.4999;

struct DecimalAttempt {
  std::span<std::uint8_t> chunk;
  bool memory_out = false;
  bool repeats = false;  ///< Numbers do, in long stretches: zstd may be better on the values.
};

/// A chunk of method decimal but for its checksum, in Slot::trial; empty where values are no
/// decimals or too many are something else. `head` has any method. Uses Slots nested and
/// nested_bytes, which `encode_inner` must leave alone.
DecimalAttempt encode_decimal_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                    const Settings& settings, const EncodeInner& encode_inner,
                                    Workspace& workspace);

/// Whether chunks of this type may be decimals: floats that are asked for without a bound, so that
/// chunks within one stay readable to older readers. Preset fast looks for none.
bool tries_decimals(const ChunkType& type, Preset preset);

/// What lossless coding would come to, from samples: the least of exact coding and decimals.
std::size_t estimate_lossless_bytes(const ChunkHead& head, const ChunkType& type,
                                    std::span<const std::byte> values, const Settings& settings,
                                    Workspace& workspace);

/// Decodes the chunk within to values of head.dtype.
using DecodeInner = std::function<DecodeFailure(ChunkReader& in, const ChunkHead& head,
                                                std::span<std::byte> values)>;

/// All but the patches. Uses Slot nested.
DecodeFailure decode_decimal_chunk(ChunkReader& in, const ChunkHead& head,
                                   std::span<std::byte> values, const DecodeInner& decode_inner,
                                   Workspace& workspace);

/// The map alone, as a text for `describe`: "k / 1000 - 10".
std::string decimal_text(ChunkReader& in, DType dtype);

}  // namespace tailrace::trz
