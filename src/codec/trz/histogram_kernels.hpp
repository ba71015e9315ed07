// Counting bytes: all of them, or a sample in which no value is missed.
//
// A histogram of one byte in eight gives codes as good as one of all, but a value that the sample
// lacks would have no code; so the rest is only searched for such values, which is much faster than
// counting. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/trz/isa.hpp"

namespace tailrace::trz {

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

}  // namespace tailrace::trz
