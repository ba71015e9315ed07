// The Huffman coder's inner loops: encode and decode strings of bits.
//
// Codes are canonical and written from the top bit of each byte down. A section's bits are one
// string. The symbols are cut into parts of equal number, with a shorter last part. The reader
// knows the first bit of each part and can decode several parts in parallel. Tables are made in
// huffman.cpp. Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr int kCodeBitsMax = 12;

/// Most symbols in a part.
inline constexpr std::size_t kPartSymbolsMax = 16384;
/// Size in bytes of a part's length, which precedes the string; the length counts bits.
constexpr std::size_t part_length_bytes(std::size_t part_symbols) {
  return part_symbols * kCodeBitsMax < 65536 ? 2 : 3;
}

/// Encoder's table; the entry of a symbol is (code << 6) | length, or kNoCode.
struct EncodeTable {
  std::uint32_t entries[256];
};
inline constexpr std::uint32_t kNoCode = 0x80000000U;

/// Decoder's table, indexed by the next `bits` bits; an entry has one to three symbols. Bits 0..7,
/// 8..15 and 16..23 are the symbols, 24..29 the bits that they take, 30..31 their number.
struct DecodeTable {
  std::uint32_t entries[1U << kCodeBitsMax];
  std::uint8_t length_of[256];  ///< Code length of each symbol, for the ends of parts.
  int bits = 0;                 ///< Length of the longest code; 0: no code.
  int lone_symbol = -1;         ///< >= 0: the only symbol, coded as one 0 bit each.
};

struct HuffmanKernels {
  /// Encode n symbols in parts of part_symbols. Writes the lengths of all parts except the last,
  /// then the string of bits, padded with zeros to a byte boundary. Writes nothing at or past
  /// out_end. Returns the bytes written; 0 if a symbol has no code or the output does not fit.
  std::size_t (*encode)(const std::uint8_t* symbols, std::size_t n, std::size_t part_symbols,
                        const EncodeTable& table, std::uint8_t* out, const std::uint8_t* out_end);
  /// Decode n >= 1 symbols from exactly n_bytes that encode() wrote. False on any inconsistency.
  /// Accesses nothing outside in[0..n_bytes) and symbols[0..n).
  bool (*decode)(const std::uint8_t* in, std::size_t n_bytes, const DecodeTable& table,
                 std::size_t part_symbols, std::uint8_t* symbols, std::size_t n);
};

TRZ_DECLARE_KERNELS(HuffmanKernels, huffman_kernels)

}  // namespace tailrace::trz
