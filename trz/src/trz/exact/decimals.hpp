// Decimals: floats that a program computed from whole numbers.
//
// Examples are heights in tenths of a metre, temperatures unpacked as k * 0.001 - 10, and hit
// fractions 8000 / k. Their last bits look like noise to a predictor, but the numbers k are smooth
// and short. A few values show the step. Then the number of each value must reproduce the value's
// exact bits by the decoder's operations (decimal_kernels.hpp); values without such a number are
// patches. The numbers form an inner chunk: exact integers, or floats on a lattice of whole
// numbers, which interpolation predicts better in smooth fields.

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

/// Find the map between these f32 or f64 values and whole numbers. It looks at some 50 values, then
/// at 256 if those look like decimals. Returns nullopt for other types or if no map fits. The
/// result is the same on every machine. Thread-safe.
std::optional<DecimalMap> find_decimals(const ExactValues& values, Isa isa);

/// Encoder of the inner chunk, which has as many values as the outer one. It encodes i32 exactly,
/// other types within `kWithinHalf`, and returns the chunk's size in bytes.
using EncodeInner = std::function<Result<std::size_t>(
    DType dtype, std::span<const std::byte> values, std::span<std::byte> out)>;
inline constexpr double kWithinHalf = 0.4999;

struct DecimalAttempt {
  std::span<std::uint8_t> chunk;
  bool memory_out = false;
  bool repeats = false;  ///< The numbers repeat in long stretches: zstd may compress better.
};

/// Encode a chunk by method decimal, without its checksum, in Slot::trial. The chunk is empty if
/// too few values are decimals. head.method is ignored. Uses Slots nested and nested_bytes, which
/// `encode_inner` must not use.
DecimalAttempt encode_decimal_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                    const Settings& settings, const EncodeInner& encode_inner,
                                    Workspace& workspace);

/// True if chunks of this type may be coded as decimals: floats without a bound, unless the preset
/// is fast. Chunks with a bound have a lattice.
bool tries_decimals(const ChunkType& type, Preset preset);

/// Estimate the size of lossless coding from samples: the smaller of exact coding and decimals.
std::size_t estimate_lossless_bytes(const ChunkHead& head, const ChunkType& type,
                                    std::span<const std::byte> values, const Settings& settings,
                                    Workspace& workspace);

/// Decoder of the inner chunk, to values of head.dtype.
using DecodeInner = std::function<DecodeFailure(ChunkReader& in, const ChunkHead& head,
                                                std::span<std::byte> values)>;

/// Decode a chunk of method decimal, except its patches. Uses Slot nested.
DecodeFailure decode_decimal_chunk(ChunkReader& in, const ChunkHead& head,
                                   std::span<std::byte> values, const DecodeInner& decode_inner,
                                   Workspace& workspace);

/// Text of the map for `describe`, such as "decimals, k / 1000 - 10".
std::string decimal_text(ChunkReader& in, DType dtype);

}  // namespace tailrace::trz
