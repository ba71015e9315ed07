// Huffman coding of byte streams: canonical, at most 12 bits a code, several streams at once.
//
// The entropy stage behind the groups (group_kernels.hpp). Code lengths come from a histogram and
// fix the code; `encoded_bits` is exact, so a chunk's size is known before its bytes are made.
// Pure: no allocation, no file. Layout of the encoded bytes: docs/trz-format.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/trz/isa.hpp"

namespace tailrace::trz {

inline constexpr int kCodeBitsMax = 12;

using Histogram = std::array<std::uint32_t, 256>;

/// Count bytes; adds to `histogram`.
void count_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram);

/// Code length of every symbol, 0 where it has none. One lone symbol gets length 1.
struct CodeLengths {
  std::array<std::uint8_t, 256> bits{};
  bool operator==(const CodeLengths&) const = default;
};

/// Near-optimal lengths with no code longer than `limit` (8..12). Deterministic.
/// With `every_symbol`, symbols 0..n_symbols-1 that do not occur get a code too (for shared books).
CodeLengths code_lengths(const Histogram& histogram, int limit, std::size_t every_symbol = 0);

/// Exact sum of histogram x length; UINT64_MAX if a symbol that occurs has no code.
std::uint64_t encoded_bits(const Histogram& histogram, const CodeLengths& lengths);

/// The compact form of code lengths. write returns bytes written, at most 160; read returns bytes
/// read, or 0 if the text is truncated or the lengths are no complete prefix code (a lone symbol
/// of length 1 is fine, so is no symbol at all).
std::size_t write_lengths(const CodeLengths& lengths, std::uint8_t* out);
std::size_t read_lengths(std::span<const std::uint8_t> in, CodeLengths& lengths);

/// Exact bytes of huffman_encode's output for these symbols, code lengths not included... if the
/// histogram alone does not determine it (byte padding of several streams), the greatest possible.
std::uint64_t huffman_bytes_max(std::uint64_t n_symbols, std::uint64_t bits);

/// Encode. Every symbol must have a code. `out` has room for huffman_bytes_max() plus 16 bytes.
/// Returns bytes written. Thread-safe. Cost: O(n), about 1 cycle a symbol.
std::size_t huffman_encode(std::span<const std::uint8_t> symbols, const CodeLengths& lengths,
                           std::uint8_t* out);

/// Scratch memory of a decoder: the look-up table. Lives in the workspace.
struct DecodeTable {
  std::array<std::uint32_t, (1u << kCodeBitsMax)> entries;
  int bits = 0;
};
void build_decode_table(const CodeLengths& lengths, DecodeTable& table);

/// Decode exactly symbols.size() symbols from all of `in`. Returns false on any inconsistency;
/// reads nothing outside `in`, writes nothing outside `symbols`.
bool huffman_decode(std::span<const std::uint8_t> in, const DecodeTable& table,
                    std::span<std::uint8_t> symbols);

}  // namespace tailrace::trz
