// The head of a trz chunk: checksum, type, method, features and extents.
//
//   0  magic "TRZ" and the version of the format, 1.
//   4  CRC-32 (of zlib) of all bytes from 8 to the end.
//   8  dtype (low four bits) and method (high four bits).
//   9  number of extents e, 0 to 4 (low three bits), and features (high five bits); then e varints,
//      slowest axis first.
// A feature bit marks a chunk that only a later decoder can read. No bit has a meaning yet.
// The extents are those that the predictor uses: without axes of length 1, at most four (slower
// ones multiplied together), each at least 2. The number of values is their product. With no
// extents the chunk has one value; a single extent of 0 means that it has none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/entropy/chunk_bytes.hpp"
#include "trz/predict/lorenzo.hpp"

namespace tailrace::trz {

inline constexpr std::uint8_t kFormatVersion = 1;
inline constexpr std::size_t kVersionAt = 3;
inline constexpr std::size_t kChecksumAt = 4;
inline constexpr std::size_t kChecksummedFrom = 8;
inline constexpr std::size_t kKindsAt = 8;
inline constexpr std::size_t kExtentsAt = 9;
inline constexpr std::uint8_t kFeatureBits = 0xF8;

/// Storage form of a chunk's values. The numbers are part of the format.
enum class Method : std::uint8_t {
  stored = 0,      ///< Unencoded.
  constant = 1,    ///< One element for all values.
  exact = 2,       ///< Lossless coding.
  lattice = 3,     ///< Absolute bound.
  pointwise = 4,   ///< Pointwise relative bound.
  vocabulary = 5,  ///< Absolute bound: few distinct words, and an index into them per value.
  fitted = 6,      ///< Absolute bound: interpolation with fitted weights and contexts.
  nested = 7,      ///< Absolute bound: a chunk of every second value, and the values between.
  decimal = 8,     ///< Lossless: a chunk of integers, and the rule that converts them to values.
  joined = 9,      ///< Complete chunks, one for each run of the values.
  refined = 10,    ///< Absolute bound: a chunk within a coarser bound, and bit planes.
};
inline constexpr std::uint8_t kMethods = 11;

/// Maximum number of values of a chunk. A decoder requests at most sixteen copies of 8 bytes each,
/// which must not overflow a 32-bit std::size_t (WebAssembly).
inline constexpr std::uint64_t kChunkValuesMax = std::uint64_t{1}
                                                 << (sizeof(std::size_t) < 8 ? 24 : 62);

/// Maximum number of words of a vocabulary: a rank has two bytes.
inline constexpr std::size_t kWordsMax = 65536;
/// Ranks have one byte up to this number of words.
inline constexpr std::size_t kWordsOfOneByte = 256;

struct ChunkHead {
  DType dtype = DType::f32;
  Method method = Method::stored;
  Extents extents{1, 1, 1, 1};
  std::size_t n_values = 0;
};

/// Extents of a shape for the predictor: axes of length 1 dropped, folded to at most four, padded
/// with leading ones. If `dimensions` is 1 to 3, folded to that number.
Extents extents_of(const Shape& shape, int dimensions);

/// Write the head and reserve room for the checksum.
void write_head(const ChunkHead& head, ChunkWriter& out);

/// Write the checksum of a complete chunk.
void seal(std::span<std::uint8_t> chunk);

/// Reason why a head cannot be read. Heads with the last four need a later decoder.
enum class HeadFailure : std::uint8_t {
  none,
  no_trz,
  checksum,
  content,
  version,
  features,
  method,
  dtype,
};
constexpr bool needs_newer(HeadFailure failure) { return failure >= HeadFailure::version; }

/// Read a head and verify the checksum. No length is trusted: n_values may be anything up to
/// kChunkValuesMax.
HeadFailure read_head(std::span<const std::uint8_t> chunk, ChunkReader& in, ChunkHead& head);

/// Read a head without verifying the checksum, for chunks of which only the beginning is available.
HeadFailure read_head_alone(ChunkReader& in, ChunkHead& head);

/// Read the head of an inner chunk, which omits everything before the checksummed part.
HeadFailure read_bare_head(ChunkReader& in, ChunkHead& head);

}  // namespace tailrace::trz
