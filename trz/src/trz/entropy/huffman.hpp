// Huffman coding of byte streams: canonical, at most 12 bits per code, in several independent
// parts.
//
// This is the entropy stage after the groups (group_kernels.hpp). A histogram gives the code
// lengths, and these define the code. `encoded_bits` and `huffman_bytes` are exact, so a chunk's
// size is known before its bytes are written. The functions neither allocate memory nor access
// files. The inner loops are in huffman_kernels.cpp. Layout of the encoded bytes:
// trz/docs/trz-format.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/kernels/huffman_kernels.hpp"
#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

using Histogram = std::array<std::uint32_t, 256>;

/// Count bytes and add the counts to `histogram`.
void count_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram, Isa isa = best_isa());

/// Count a part of the bytes, add the counts to `histogram` and return the number of bytes counted.
/// The part is runs of 256 bytes: one run in two from 128 KiB on, down to one in eight from 512 KiB
/// on. It also has each block of 64 bytes in which a byte occurs for the first time, so all bytes
/// that occur are counted. Below 128 KiB all bytes are counted. The same on every machine.
std::uint64_t count_some_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram,
                               Isa isa = best_isa());

/// Code length of every symbol; 0: the symbol has no code. A single symbol has length 1.
struct CodeLengths {
  std::array<std::uint8_t, 256> bits{};
  bool operator==(const CodeLengths&) const = default;
};

/// Suitable limit of code lengths for n_symbols. It is 12 or, for short streams, less: there the
/// decoder's table would cost more than longer codes gain.
int code_limit(std::uint64_t n_symbols);

/// Near-optimal code lengths, none longer than `limit` (8..12). The result is a complete prefix
/// code, one symbol of length 1, or empty. Uses integer arithmetic only, so the result is the same
/// on every machine. Cost: a few microseconds.
CodeLengths code_lengths(const Histogram& histogram, int limit);

/// Exact sum of count times length over all symbols; UINT64_MAX if a symbol that occurs has no
/// code.
std::uint64_t encoded_bits(const Histogram& histogram, const CodeLengths& lengths);

/// Write and read code lengths in compact form. write_lengths returns the bytes written, at most
/// kLengthsBytesMax. read_lengths returns the bytes read, or 0 if the input is truncated or not a
/// complete prefix code. A single symbol of length 1 is valid; no symbol at all is not.
inline constexpr std::size_t kLengthsBytesMax = 160;
std::size_t write_lengths(const CodeLengths& lengths, std::uint8_t* out);
std::size_t read_lengths(std::span<const std::uint8_t> in, CodeLengths& lengths);

/// Exact size of huffman_encode's output for n_symbols whose codes have `bits` in total, without
/// the code lengths.
std::uint64_t huffman_bytes(std::uint64_t n_symbols, std::uint64_t bits);

/// Encode one or more symbols. Returns the bytes written, or 0 if a symbol has no code or `out` is
/// smaller than huffman_bytes(). Never writes out of range. Thread-safe. Cost: O(n).
std::size_t huffman_encode(std::span<const std::uint8_t> symbols, const CodeLengths& lengths,
                           std::span<std::uint8_t> out, Isa isa = best_isa());

/// Build the decoder's table. `lengths` must be valid for read_lengths.
void build_decode_table(const CodeLengths& lengths, DecodeTable& table);

/// Decode exactly symbols.size() symbols from all of `in`. Returns false on any inconsistency.
/// Never reads outside `in` or writes outside `symbols`.
bool huffman_decode(std::span<const std::uint8_t> in, const DecodeTable& table,
                    std::span<std::uint8_t> symbols, Isa isa = best_isa());

}  // namespace tailrace::trz
