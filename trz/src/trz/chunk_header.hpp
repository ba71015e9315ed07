// The head of a trz chunk: what it is, how large, and its checksum.
//
//   0  magic "TRZ" and the version: 2 for a vocabulary, 3 for fitted interpolation, 4 for a nested
//      chunk, 5 for decimals, 6 for chunks that are joined, 7 for bit planes, else 1, so that old
//      readers read the rest
//   4  CRC-32 (of zlib) of all bytes from 8 to the end
//   8  dtype (low four bits) and method (high four bits)
//   9  number of extents e, 0 to 4; then e varints, slowest axis first
// The extents are those that the predictor sees: without axes of length 1, at most four (slower
// ones multiplied together), each at least 2. The number of values is their product; with no
// extents it is one value, and an extent of 0, alone, says that there are none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/entropy/chunk_bytes.hpp"
#include "trz/predict/lorenzo.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kChecksumAt = 4;
inline constexpr std::size_t kChecksummedFrom = 8;

/// How a chunk's values are stored. The numbers are part of the format.
enum class Method : std::uint8_t {
  stored = 0,      ///< As they are.
  constant = 1,    ///< One element for all.
  exact = 2,       ///< Lossless coding.
  lattice = 3,     ///< Absolute bound.
  pointwise = 4,   ///< Pointwise relative bound.
  vocabulary = 5,  ///< Absolute bound: few words, and which one each value takes.
  fitted = 6,      ///< Absolute bound: interpolation with weights and contexts of its own.
  nested = 7,      ///< Absolute bound: a chunk of every second value, and what lies between.
  decimal = 8,     ///< Lossless: a chunk of whole numbers, and how they become values.
  joined = 9,      ///< Whole chunks, each for a run of the values.
  refined = 10,    ///< Absolute bound: a chunk within a coarser one, and bit planes.
};
inline constexpr std::uint8_t kMethods = 11;

/// The version of the format that brought a method: the one that its chunks bear.
constexpr std::uint8_t version_of(Method method) {
  switch (method) {
    case Method::refined: return 7;
    case Method::joined: return 6;
    case Method::decimal: return 5;
    case Method::nested: return 4;
    case Method::fitted: return 3;
    case Method::vocabulary: return 2;
    default: return 1;
  }
}
inline constexpr std::uint8_t kFormatVersions = 7;

/// Values of a chunk, at most. With 32-bit addresses (WebAssembly) sixteen copies of 8 bytes each,
/// the most memory that a decoder asks for, must not overflow std::size_t.
inline constexpr std::uint64_t kChunkValuesMax = std::uint64_t{1}
                                                 << (sizeof(std::size_t) < 8 ? 24 : 62);

/// Words of a vocabulary, at most: a rank has two bytes.
inline constexpr std::size_t kWordsMax = 65536;
/// Ranks below this many words have one byte.
inline constexpr std::size_t kWordsOfOneByte = 256;

struct ChunkHead {
  DType dtype = DType::f32;
  Method method = Method::stored;
  Extents extents{1, 1, 1, 1};
  std::size_t n_values = 0;
};

/// The extents of a shape: axes of length 1 dropped, folded to at most four, leading ones 1.
/// With `dimensions` 1 to 3, folded to that many.
Extents extents_of(const Shape& shape, int dimensions);

/// Write the head with room for the checksum.
void write_head(const ChunkHead& head, ChunkWriter& out);

/// Fill in the checksum of a complete chunk.
void seal(std::span<std::uint8_t> chunk);

/// Read a head; false if it is none, of another version, or the checksum is wrong. Never trusts a
/// length: n_values may be anything up to kChunkValuesMax.
enum class HeadFailure : std::uint8_t { none, no_trz, version, checksum, content };
HeadFailure read_head(std::span<const std::uint8_t> chunk, ChunkReader& in, ChunkHead& head);

/// The same of a chunk of which only the beginning is there: its checksum is not looked at.
HeadFailure read_head_alone(ChunkReader& in, ChunkHead& head);

/// The head of a chunk within another that leaves out what stands before the checksummed part.
bool read_bare_head(ChunkReader& in, ChunkHead& head);

}  // namespace tailrace::trz
