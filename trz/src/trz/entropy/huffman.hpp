// Huffman coding of byte streams: canonical, at most 12 bits a code, several parts side by side.
//
// The entropy stage behind the groups (group_kernels.hpp). Code lengths come from a histogram and
// fix the code; `encoded_bits` and `huffman_bytes` are exact, so a chunk's size is known before its
// bytes are made. Pure: no allocation, no file. The inner loops are in huffman_kernels.cpp. Layout
// of the encoded bytes: trz/docs/trz-format.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/kernels/huffman_kernels.hpp"
#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

using Histogram = std::array<std::uint32_t, 256>;

/// Count bytes; adds to `histogram`.
void count_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram, Isa isa = best_isa());

/// Count a part of the bytes: runs of 256, one in two (from 128 Ki bytes on) to one in eight (from
/// 512 Ki on), and blocks of 64 where a byte occurs for the first time, so that no byte that occurs
/// has count 0. Fewer bytes are counted all. The same on every machine. Adds to `histogram`;
/// returns how many bytes it counted.
std::uint64_t count_some_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram,
                               Isa isa = best_isa());

/// Code length of every symbol, 0 where it has none. One lone symbol gets length 1.
struct CodeLengths {
  std::array<std::uint8_t, 256> bits{};
  bool operator==(const CodeLengths&) const = default;
};

/// The limit of code lengths that suits n symbols: 12, less where the decoder's table would cost
/// more than the longer codes gain.
int code_limit(std::uint64_t n_symbols);

/// Near-optimal lengths with no code longer than `limit` (8..12); a complete prefix code, or a lone
/// symbol of length 1, or none. Integers only, so the same everywhere. Cost: a few microseconds.
CodeLengths code_lengths(const Histogram& histogram, int limit);

/// Exact sum of histogram x length; UINT64_MAX if a symbol that occurs has no code.
std::uint64_t encoded_bits(const Histogram& histogram, const CodeLengths& lengths);

/// The compact form of code lengths. write returns bytes written, at most kLengthsBytesMax; read
/// returns bytes read, or 0 if the text is truncated or the lengths are no complete prefix code (a
/// lone symbol of length 1 is fine; no symbol at all is not).
inline constexpr std::size_t kLengthsBytesMax = 160;
std::size_t write_lengths(const CodeLengths& lengths, std::uint8_t* out);
std::size_t read_lengths(std::span<const std::uint8_t> in, CodeLengths& lengths);

/// Exact bytes of huffman_encode's output for these symbols, code lengths not included.
std::uint64_t huffman_bytes(std::uint64_t n_symbols, std::uint64_t bits);

/// Encode at least one symbol. `out` has room for huffman_bytes(); less gives 0, never a write out
/// of range. Returns bytes written; 0 if a symbol has no code. Thread-safe. Cost: O(n).
std::size_t huffman_encode(std::span<const std::uint8_t> symbols, const CodeLengths& lengths,
                           std::span<std::uint8_t> out, Isa isa = best_isa());

/// The decoder's table. `lengths` is what read_lengths accepts.
void build_decode_table(const CodeLengths& lengths, DecodeTable& table);

/// Decode exactly symbols.size() symbols from all of `in`. Returns false on any inconsistency;
/// reads nothing outside `in`, writes nothing outside `symbols`.
bool huffman_decode(std::span<const std::uint8_t> in, const DecodeTable& table,
                    std::span<std::uint8_t> symbols, Isa isa = best_isa());

}  // namespace tailrace::trz
