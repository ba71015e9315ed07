// The Huffman coder's inner loops: encode and decode strings of bits.
//
// Codes are canonical and written from the top bit of each byte down. A section's bits are one
// string; the symbols are cut into parts of equal number (the last one shorter) whose first bits
// the reader knows, so that it can decode several parts side by side. Tables are made in
// huffman.cpp. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr int kCodeBitsMax = 12;

/// Bytes of one part's length in bits, before the string: a symbol takes at most 12 bits.
inline constexpr std::size_t kPartSymbolsMax = 16384;
constexpr std::size_t part_length_bytes(std::size_t part_symbols) {
  return part_symbols * kCodeBitsMax < 65536 ? 2 : 3;
}

/// Per symbol (code << 6) | length; kNoCode where there is none.
struct EncodeTable {
  std::uint32_t entries[256];
};
inline constexpr std::uint32_t kNoCode = 0x80000000U;

/// What the next `bits` bits hold, up to three symbols: bits 0..7, 8..15 and 16..23 the symbols,
/// 24..29 how many bits they take, 30..31 how many they are (1 to 3).
struct DecodeTable {
  std::uint32_t entries[1U << kCodeBitsMax];
  std::uint8_t length_of[256];  ///< Of each symbol, for the ends of parts.
  int bits = 0;                 ///< The longest code; 0: no code at all.
  int lone_symbol = -1;         ///< >= 0: the only symbol, coded as one 0 bit each.
};

struct HuffmanKernels {
  /// Encode n symbols in parts of part_symbols: lengths of all parts but the last, then the string
  /// of bits, the last byte filled up with zeros. Writes nothing at or past out_end. Returns bytes
  /// written; 0 if a symbol has no code or there is no room.
  std::size_t (*encode)(const std::uint8_t* symbols, std::size_t n, std::size_t part_symbols,
                        const EncodeTable& table, std::uint8_t* out, const std::uint8_t* out_end);
  /// Decode what encode() wrote, n >= 1 symbols from exactly n_bytes. False on any inconsistency;
  /// touches nothing outside in[0..n_bytes) and symbols[0..n).
  bool (*decode)(const std::uint8_t* in, std::size_t n_bytes, const DecodeTable& table,
                 std::size_t part_symbols, std::uint8_t* symbols, std::size_t n);
};

TRZ_DECLARE_KERNELS(HuffmanKernels, huffman_kernels)

}  // namespace tailrace::trz
