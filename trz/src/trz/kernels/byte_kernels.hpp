// Kernels over bytes: counting them, and writing runs of one byte as digits.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

// --- Counting bytes: all of them, or a sample in which no value is missed.
//
// A histogram of one byte in eight gives codes as good as one of all, but a value that the sample
// lacks would have no code; so the rest is only searched for such values, which is much faster than
// counting. This header may be included by kernel files.

inline constexpr std::size_t kSampleRunBytes = 256;

struct HistogramKernels {
  /// Add the counts of n bytes.
  void (*count)(const std::uint8_t* bytes, std::size_t n, std::uint32_t* histogram);
  /// Add the counts of one run of kSampleRunBytes in every whole window of window_bytes, at
  /// scattered places (streams have periods). Returns how many bytes.
  std::size_t (*count_sample)(const std::uint8_t* bytes, std::size_t n, std::size_t window_bytes,
                              std::uint32_t* histogram);
  /// Where the first block of 64 bytes begins in which one has seen[byte] == 0 (else it is 1);
  /// n if there is none. n is a multiple of 64.
  std::size_t (*find_unseen)(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* seen);
};

TRZ_DECLARE_KERNELS(HistogramKernels, histogram_kernels)

// --- Runs of one byte, written as digits: what Huffman's whole bits cannot do for a frequent
// symbol.
//
// A symbol that makes up most of a stream costs Huffman a bit each time, however sure it is. Here
// every maximal run of the common byte becomes its length, as digits 1 and 2 of the bijective
// system to base 2, least significant first; the common byte stands for digit 1 and a spare byte,
// which does not occur, for digit 2. All other bytes stay. So k common bytes take log2(k + 1)
// tokens, the tokens are bytes again, and there are never more of them than bytes. Source: the run
// coding of bzip2. This header may be included by kernel files.

struct RunKernels {
  /// Write the tokens of n bytes, in which `spare` does not occur. `tokens` has room for n + 8.
  /// Returns how many.
  std::size_t (*encode)(const std::uint8_t* bytes, std::size_t n, std::uint8_t common,
                        std::uint8_t spare, std::uint8_t* tokens);
  /// Bring back exactly n bytes. False if the tokens give more or fewer; writes nothing else.
  bool (*decode)(const std::uint8_t* tokens, std::size_t n_tokens, std::uint8_t common,
                 std::uint8_t spare, std::uint8_t* bytes, std::size_t n);
};

TRZ_DECLARE_KERNELS(RunKernels, run_kernels)

}  // namespace tailrace::trz
