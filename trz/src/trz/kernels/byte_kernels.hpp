// Kernels on bytes: histograms, and run-length coding of one frequent byte.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

// --- Counting bytes: all of them, or a sample that misses no value.
//
// A histogram of one byte in eight gives codes as good as a complete one. However, a value that the
// sample lacks would have no code. So the rest is only searched for such values, which is much
// faster than counting. Kernel files may include this header.

inline constexpr std::size_t kSampleRunBytes = 256;

struct HistogramKernels {
  /// Add the counts of n bytes.
  void (*count)(const std::uint8_t* bytes, std::size_t n, std::uint32_t* histogram);
  /// Add the counts of one run of kSampleRunBytes in every complete window of window_bytes. Runs
  /// are at irregular positions, since streams have periods. Returns the number of bytes counted.
  std::size_t (*count_sample)(const std::uint8_t* bytes, std::size_t n, std::size_t window_bytes,
                              std::uint32_t* histogram);
  /// Offset of the first block of 64 bytes that contains a byte with seen[byte] == 0; n if no block
  /// does. All other entries of `seen` are 1. n is a multiple of 64.
  std::size_t (*find_unseen)(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* seen);
};

TRZ_DECLARE_KERNELS(HistogramKernels, histogram_kernels)

// --- Runs of one byte, written as digits: they avoid Huffman's minimum of one bit per symbol.
//
// A symbol that makes up most of a stream costs one bit per occurrence in a Huffman code, even if
// it is almost certain. Here every maximal run of the common byte becomes its length, in bijective
// base 2, least significant digit first. The common byte represents digit 1; a spare byte, which
// does not occur in the stream, represents digit 2. All other bytes are unchanged. So k common
// bytes take log2(k + 1) tokens. Tokens are bytes, never more than the input has. Source: the run
// coding of bzip2. Kernel files may include this header.

struct RunKernels {
  /// Write the tokens of n bytes, which do not contain `spare`. `tokens` has room for n + 8 bytes.
  /// Returns the number of tokens.
  std::size_t (*encode)(const std::uint8_t* bytes, std::size_t n, std::uint8_t common,
                        std::uint8_t spare, std::uint8_t* tokens);
  /// Decode exactly n bytes. False if the tokens represent more or fewer bytes. Never writes out of
  /// range.
  bool (*decode)(const std::uint8_t* tokens, std::size_t n_tokens, std::uint8_t common,
                 std::uint8_t spare, std::uint8_t* bytes, std::size_t n);
};

TRZ_DECLARE_KERNELS(RunKernels, run_kernels)

}  // namespace tailrace::trz
