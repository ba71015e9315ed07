// The lossless codec xor: encodes one chunk of values to bytes and decodes it again, bit for bit.
//
// Bicer et al. 2014, section III-C: each value is xored with its neighbours along one to three
// axes. The residual is stored as a count of leading zeros and the bits that follow. Here 8 to
// 64 values usually share a count, counts and bits are stored separately, and trailing zeros are
// also dropped. docs/trz-format.md defines the format. The bytes depend only on the values, the
// shape and the dimension, not on the machine, its instruction set or the compiler. Little-endian
// machines.

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

/// Builds of the kernels; all produce the same bytes.
enum class Build : std::uint8_t { plain, avx2 };
/// Fastest build that this machine supports. Not collective. Thread-safe.
Build best_build();
bool build_supported(Build build);

/// Layout of a chunk's values. Only the encoder needs it: a chunk records how it was encoded.
struct ChunkType {
  std::size_t element_bytes = 4;  ///< 1, 2, 4 and 8 are words; others are treated as bytes.
  Shape shape;                    ///< Extents in elements, slowest axis first; rank 0 is a scalar.
  int dimension = 0;              ///< xor along the 1 to 3 fastest axes; 0: chosen by sampling.
};

/// Exact maximum size that encode() produces for `n_bytes`; noise reaches it.
std::uint64_t encoded_bytes_max(std::uint64_t n_bytes);

/// Encode the chunk. `out` has encoded_bytes_max() bytes. Not collective. Thread-safe.
/// Cost: one pass, after a sample of at most 8,192 values; 25 KiB of stack.
/// @returns the number of bytes.  @error invalid_argument  inconsistent sizes.
Result<std::size_t> encode(const ChunkType& type, std::span<const std::byte> values,
                           std::span<std::byte> out, Build build);

/// Decode a chunk whose decoded size is exactly that of `values`. Any input is safe; allocates
/// nothing. Not collective. Thread-safe.  @error corrupt  damaged, truncated, or of another length.
Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, Build build);

// --- Client data (cd_values) of the xor filter: the 32-bit words in an HDF5 dataset's header.
//
//   word 0   bits 0-7 version of this layout (1); bits 8-15 the dimension, 0 to 3 (0: chosen for
//            each chunk); bit 16 the words below follow; all others 0.
//   word 1   bytes of an element; then the chunk's extents, slowest first, a word each.
//
// The user supplies word 0, or nothing, which means 1; set_local appends the rest. Decoding needs
// none of it. Pure, shared by registry, plug-in and command line.

/// The filter's number in HDF5 files, next to trz's, in HDF5's range for testing and private use.
inline constexpr std::uint32_t filter_id = 482;
/// The filter's name; HDF5 writes it into the dataset's header.
inline constexpr const char* filter_name = "xor";

struct ClientData {
  int dimension = 0;
  std::optional<ChunkType> chunk;  ///< Absent before set_local. Includes the dimension above.
};

/// Words that the user supplies.
std::vector<std::uint32_t> client_words(int dimension);
/// Words of the dataset's header: the dimension, and what set_local learned.
std::vector<std::uint32_t> client_words(const ChunkType& chunk);

/// Inverse of client_words(). @error invalid_argument  names the word.
Result<ClientData> read_client_words(std::span<const std::uint32_t> words);

}  // namespace tailrace::neighbour_xor
