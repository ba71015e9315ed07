// Deflate (HDF5 filter 1): stages for the codecs whose pipeline ends with it (deflate and
// portable).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// HDF5's registered number of the deflate filter.
inline constexpr std::uint32_t kDeflateFilterId = 1;

/// Make the stages [shuffle,] deflate from the settings level, shuffle and engine. Shuffle is
/// omitted for elements of one byte, where it has no effect. Errors are recorded in `settings`. Not
/// collective. Thread-safe.
std::vector<std::unique_ptr<FilterStage>> make_deflate_stages(CodecSettings& settings,
                                                              const CodecRequest& request);

/// Return the settings of a stored pipeline [shuffle,] deflate [, fletcher32].
std::vector<std::pair<std::string, std::string>> deflate_settings_of(
    const std::vector<FilterSpec>& filters);

// --- Fletcher's checksum, as HDF5's filter 3 appends it to a chunk.
//
// The bytes are read as big-endian 16-bit words; an odd last byte is the upper half of a word. The
// two sums are reduced modulo 65535, where 65535 itself represents 0 unless all words are 0. The
// filter appends the result to the bytes as a little-endian 32-bit number. HDF5 before 1.6.3 summed
// little-endian words on little-endian machines; readers must accept those sums too.
// Source: HDF5 file format specification, "Fletcher32 filter"; checked against stock HDF5.

/// HDF5's registered number of the filter.
inline constexpr std::uint32_t kFletcher32FilterId = 3;
/// Bytes that the filter appends to a chunk.
inline constexpr std::size_t kFletcher32Bytes = 4;

/// The checksum of `bytes`. Not collective. Thread-safe. Cost: one pass, vectorised.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

/// Store a checksum in 4 bytes at `to`.
void store_fletcher32(std::uint32_t sum, std::byte* to);

/// True if the last 4 of `bytes` are the checksum of the bytes before, in HDF5's byte order or in
/// that of versions before 1.6.3. False for fewer than 4 bytes.
bool ends_in_fletcher32(std::span<const std::byte> bytes);

}  // namespace tailrace
