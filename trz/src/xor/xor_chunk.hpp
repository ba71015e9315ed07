// The lossless codec xor: one chunk of values in, its bytes out, and back, bit for bit.
//
// Bicer et al. 2014, section III-C: each value is xored with its neighbours along one to three
// axes, and what is left is stored as a count of leading zeros and the bits that follow. Here a
// count is as a rule shared by 8 to 64 values, counts and bits lie apart, and trailing zeros are
// dropped too (docs/xor.md, which is the format). Bytes depend on the values, the shape and the
// dimension alone: not on the machine, its instruction set or the compiler. Little-endian machines.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace::neighbour_xor {

static_assert(std::endian::native == std::endian::little,
              "codec xor is for little-endian machines");

/// The builds of the kernels: all give the same bytes.
enum class Build : std::uint8_t { plain, avx2 };
/// The fastest that this machine runs. Not collective. Thread-safe.
Build best_build();
bool build_supported(Build build);

/// What a chunk is. The decoder needs none of it: a chunk says how it was made.
struct ChunkType {
  std::size_t element_bytes = 4;  ///< 1, 2, 4 and 8 are words; others are taken as bytes.
  Shape shape;                    ///< In elements, slowest axis first; rank 0 is a scalar.
  int dimension = 0;              ///< xor along the 1 to 3 fastest axes; 0: chosen by a sample.
};

/// The exact most that encode() makes of `n_bytes`; reached by noise.
std::uint64_t encoded_bytes_max(std::uint64_t n_bytes);

/// Encode the chunk. `out` has encoded_bytes_max() bytes. Not collective. Thread-safe.
/// Cost: one pass, after a sample of at most 8,192 values; 25 KiB of stack.
/// @returns the number of bytes.  @error invalid_argument  sizes that do not fit each other.
Result<std::size_t> encode(const ChunkType& type, std::span<const std::byte> values,
                           std::span<std::byte> out, Build build);

/// Decode a chunk that holds exactly `values`. Any input is safe; nothing is allocated.
/// Not collective. Thread-safe.  @error corrupt  damaged, truncated, or of another length.
Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, Build build);

// --- The 32-bit words by which an HDF5 dataset's header tells the xor filter what to do
// (cd_values).
//
//   word 0   bits 0-7 version of this layout (1); bits 8-15 the dimension, 0 to 3 (0: chosen for
//            each chunk); bit 16 the words below follow; all others 0
//   word 1   bytes of an element; then the chunk's extents, slowest first, a word each
//
// The user gives word 0, or nothing, which means the same as 1; set_local appends the rest.
// Decoding needs none of it. Pure, shared by registry, plug-in and command line.

/// The filter's number in HDF5 files, beside trz's, in HDF5's range for testing and private use.
inline constexpr std::uint32_t filter_id = 482;
/// The filter's name; HDF5 writes it into the dataset's header.
inline constexpr const char* filter_name = "xor";

struct ClientData {
  int dimension = 0;
  std::optional<ChunkType> chunk;  ///< Absent before set_local. With the dimension above.
};

/// What the user says.
std::vector<std::uint32_t> client_words(int dimension);
/// What stands in the dataset's header: the type's own dimension and what set_local found out.
std::vector<std::uint32_t> client_words(const ChunkType& chunk);

/// The inverse. @error invalid_argument  says which word.
Result<ClientData> read_client_words(std::span<const std::uint32_t> words);

}  // namespace tailrace::neighbour_xor
