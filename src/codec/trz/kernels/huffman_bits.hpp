// Strings of bits being written, for huffman_kernels.cpp: bits from the top of each byte down.
//
// This header is included by kernel files only; everything in it is theirs alone.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

inline void store64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

/// A string of bits being written: the low n_held bits of `held` are not stored yet.
struct BitWriter {
  std::uint8_t* out;
  std::uint64_t held;
  unsigned n_held;  // Fewer than 8 between calls.

  /// Append the low n_bits <= 48 of `bits`; stores 8 bytes.
  void put(std::uint64_t bits, unsigned n_bits) {
    held = (held << n_bits) | bits;
    n_held += n_bits;
    store64(out, __builtin_bswap64(held << (63 - n_held) << 1));
    out += n_held >> 3;
    n_held &= 7;
  }
};

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
