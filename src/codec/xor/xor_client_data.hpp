// The 32-bit words by which an HDF5 dataset's header tells the xor filter what to do (cd_values).
//
//   word 0   bits 0-7 version of this layout (1); bits 8-15 the dimension, 0 to 3 (0: chosen for
//            each chunk); bit 16 the words below follow; all others 0
//   word 1   bytes of an element; then the chunk's extents, slowest first, a word each
//
// The user gives word 0, or nothing, which means the same as 1; set_local appends the rest.
// Decoding needs none of it. Pure, shared by registry, plug-in and command line.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/xor/xor_chunk.hpp"

namespace tailrace::neighbour_xor {

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
