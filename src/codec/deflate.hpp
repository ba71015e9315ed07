// Deflate (HDF5 filter 1): stages for the codecs that end in one (deflate and portable).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// HDF5's registered number of the deflate filter.
inline constexpr std::uint32_t deflate_filter_id = 1;

/// The stages [shuffle,] deflate as the settings level, shuffle and engine ask for them.
/// Shuffle is left out for elements of one byte, where it does nothing.
/// Errors are left in `settings`. Not collective. Thread-safe.
std::vector<std::unique_ptr<FilterStage>> make_deflate_stages(CodecSettings& settings,
                                                              const CodecRequest& request);

// --- Fletcher's checksum as HDF5's filter 3 appends it to a chunk.
//
// The bytes are taken as big-endian 16-bit words (an odd last byte is the upper half of a word);
// the two sums are kept modulo 65535, where 65535 itself stands for 0 unless all words are 0. The
// filter stores it as a little-endian 32-bit number behind the bytes. HDF5 before 1.6.3 summed
// little-endian words on little-endian machines; readers must take those sums, too.
// Source: HDF5 file format specification, "Fletcher32 filter"; checked against stock HDF5.

/// HDF5's registered number of the filter.
inline constexpr std::uint32_t fletcher32_filter_id = 3;
/// What the filter adds to a chunk's bytes.
inline constexpr std::size_t fletcher32_bytes = 4;

/// The checksum of `bytes`. Not collective. Thread-safe. Cost: one pass, vectorised.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

/// Store a checksum in 4 bytes at `to`.
void store_fletcher32(std::uint32_t sum, std::byte* to);

/// Whether the last 4 of `bytes` are the checksum of those before, in HDF5's byte order or in that
/// of versions before 1.6.3. False for fewer than 4 bytes.
bool ends_in_fletcher32(std::span<const std::byte> bytes);

}  // namespace tailrace
