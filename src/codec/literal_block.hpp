// Blocks of a deflate stream (RFC 1951) without matches: literals with a Huffman code of their own,
// or stored bytes.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "trz/entropy/huffman.hpp"

namespace tailrace {

/// Writes bits from the least significant one on, as deflate does. Fails if the output does not
/// fit.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> to) : to_(to) {}
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  /// True if `n_bytes` more fit, including the bytes that a flush writes beyond them for speed.
  bool has_room(std::size_t n_bytes) const {
    return !failed_ && to_.size() - at_ >= n_bytes + sizeof bits_;
  }
  std::size_t at() const { return at_; }
  bool is_at_byte() const { return n_bits_ == 0; }
  std::span<std::byte> room() const { return to_.subspan(at_); }
  /// Add bits: at most 56 since the last flush, and only if has_room().
  void put(std::uint64_t bits, unsigned n) {
    bits_ |= bits << n_bits_;
    n_bits_ += n;
  }
  void flush() {
    std::uint64_t little = bits_;
    if constexpr (std::endian::native == std::endian::big) little = __builtin_bswap64(little);
    std::memcpy(&to_[at_], &little, sizeof little);
    at_ += n_bits_ / 8;
    bits_ >>= n_bits_ / 8 * 8;
    n_bits_ %= 8;
  }
  /// Write a stored block of `bytes`; the next block begins at a byte boundary.
  void put_stored_block(std::span<const std::uint8_t> bytes) {
    constexpr std::size_t header_bytes = 6;
    if (!has_room(header_bytes + bytes.size())) return fail();
    const auto n = static_cast<std::uint32_t>(bytes.size());
    put(0, 3);
    n_bits_ = (n_bits_ + 7) / 8 * 8;
    put(n | (~n & 0xFFFFU) << 16, 32);
    flush();
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(&to_[at_]));
    at_ += bytes.size();
  }
  /// Count `n_bits` as written that another encoder has put into room().
  void skip(std::size_t n_bits) {
    at_ += n_bits / 8;
    n_bits_ = n_bits % 8;
    bits_ = n_bits_ == 0 ? 0 : std::to_integer<std::uint64_t>(to_[at_]) & ((1U << n_bits_) - 1);
  }

 private:
  std::span<std::byte> to_;
  std::size_t at_ = 0;
  std::uint64_t bits_ = 0;
  unsigned n_bits_ = 0;
  bool failed_ = false;
};

/// Huffman code of literals, and of the end of a block.
class LiteralCode {
 public:
  explicit LiteralCode(const trz::Histogram& counts) {
    constexpr int limit = 12;
    const trz::CodeLengths literals = trz::code_lengths(counts, limit);
    std::copy(literals.bits.begin(), literals.bits.end(), lengths_.begin());
    // The end of block takes half of the code space of the rarest literal, unless that is the only
    // one.
    std::size_t n_used = 0;
    std::size_t rarest = 0;
    for (std::size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] == 0) continue;
      if (n_used++ == 0 || counts[s] <= counts[rarest]) rarest = s;
    }
    if (n_used > 1) ++lengths_[rarest];
    lengths_.back() = lengths_[rarest];
    for (std::size_t s = 0; s < counts.size(); ++s) {
      bits_ += std::uint64_t{counts[s]} * lengths_[s];
    }
  }

  /// Upper limit of the bytes of a block of the counted literals.
  std::size_t block_bytes_max() const { return bits_ / 8 + header_bytes_max; }

  void put_block(std::span<const std::uint8_t> literals, BitWriter& out) const {
    put_header(out);
    const Codes codes = canonical_codes();
    const auto put = [&](std::size_t symbol) { out.put(codes[symbol], lengths_[symbol]); };
    std::size_t i = 0;
    for (; i + 4 <= literals.size(); i += 4) {
      put(literals[i]);
      put(literals[i + 1]);
      put(literals[i + 2]);
      put(literals[i + 3]);
      out.flush();
    }
    for (; i < literals.size(); ++i) {
      put(literals[i]);
      out.flush();
    }
    put(n_symbols - 1);
    out.flush();
  }

 private:
  static constexpr std::size_t n_symbols = 257;
  using Codes = std::array<std::uint16_t, n_symbols>;  // The first bit of a code is its lowest.

  Codes canonical_codes() const {
    Codes codes{};
    unsigned code = 0;
    constexpr unsigned longest = 13;
    for (unsigned n = 1; n <= longest; ++n, code <<= 1) {
      for (std::size_t s = 0; s < n_symbols; ++s) {
        if (lengths_[s] != n) continue;
        for (unsigned bit = 0; bit < n; ++bit) {
          codes[s] |= static_cast<std::uint16_t>((code >> bit & 1U) << (n - 1 - bit));
        }
        ++code;
      }
    }
    return codes;
  }

  // The block's header lists the code lengths, in codes of 4 bits each: for lengths 0 to 13, for 3
  // to 6 repetitions of the same length, and for 11 to 138 zeros. A better code for them would save
  // about 50 bytes a block.
  static constexpr std::size_t header_bytes_max = 10 + (n_symbols + 1) / 2 + 8;

  void put_header(BitWriter& out) const {
    constexpr std::array<std::uint8_t, 19> order = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    constexpr unsigned again = 14;  // Indices of both repetition symbols among the codes of 4 bits.
    constexpr unsigned zeros = 15;
    const auto mirrored = [](unsigned n) {
      return (n & 1) << 3 | (n & 2) << 1 | (n & 4) >> 1 | (n & 8) >> 3;
    };
    out.put(0b100, 3);  // not the last block; dynamic Huffman codes
    out.put(n_symbols - 257, 5);
    out.put(1, 5);  // Two distance codes, both unused.
    out.put(order.size() - 4, 4);
    for (const std::uint8_t symbol : order) {
      out.put(symbol <= 13 || symbol == 16 || symbol == 18 ? 4 : 0, 3);
      out.flush();
    }
    for (std::size_t s = 0; s < n_symbols;) {
      std::size_t run = 1;
      while (s + run < n_symbols && lengths_[s + run] == lengths_[s]) ++run;
      if (lengths_[s] == 0 && run >= 11) {
        run = std::min<std::size_t>(run, 138);
        out.put(mirrored(zeros), 4);
        out.put(run - 11, 7);
      } else if (s > 0 && lengths_[s] == lengths_[s - 1] && run >= 3) {
        run = std::min<std::size_t>(run, 6);
        out.put(mirrored(again), 4);
        out.put(run - 3, 2);
      } else {
        run = 1;
        out.put(mirrored(lengths_[s]), 4);
      }
      out.flush();
      s += run;
    }
    out.put(mirrored(1), 4);  // One bit for each distance code.
    out.put(mirrored(1), 4);
    out.flush();
  }

  std::array<std::uint8_t, n_symbols> lengths_{};
  std::uint64_t bits_ = 0;  // bits of the counted literals
};

/// Block without matches: coded if that saves enough, since readers have to decode it.
class LiteralBlock {
 public:
  explicit LiteralBlock(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), counts_(counts_of(bytes)), code_(counts_), is_coded_(worth_coding()) {}
  /// Concatenation of two adjacent blocks.
  LiteralBlock(const LiteralBlock& a, const LiteralBlock& b)
      : bytes_(a.bytes_.data(), a.bytes_.size() + b.bytes_.size()),
        counts_(sum(a.counts_, b.counts_)),
        code_(counts_),
        is_coded_(worth_coding()) {}

  std::size_t encoded_bytes() const { return is_coded_ ? code_.block_bytes_max() : bytes_.size(); }
  void put(BitWriter& out) const {
    if (!is_coded_) return out.put_stored_block(bytes_);
    if (!out.has_room(encoded_bytes())) return out.fail();
    code_.put_block(bytes_, out);
  }

 private:
  static trz::Histogram counts_of(std::span<const std::uint8_t> bytes) {
    trz::Histogram counts{};
    trz::count_bytes(bytes, counts);
    return counts;
  }
  static trz::Histogram sum(trz::Histogram a, const trz::Histogram& b) {
    for (std::size_t s = 0; s < a.size(); ++s) a[s] += b[s];
    return a;
  }
  bool worth_coding() const {
    return code_.block_bytes_max() + bytes_.size() / 512 < bytes_.size();
  }

  std::span<const std::uint8_t> bytes_;
  trz::Histogram counts_;
  LiteralCode code_;
  bool is_coded_;
};

}  // namespace tailrace
