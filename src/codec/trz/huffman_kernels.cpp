// The Huffman coder's inner loops, once per instruction set; all builds give the same bytes.
//
// Encoding joins four codes before they meet the accumulator, so that its chain of dependent
// operations is one shift and one OR per four symbols. Decoding looks up as many bits as the
// longest code has and takes up to three symbols at once; four parts are decoded side by side,
// because one look-up depends on the one before it. A part that runs out of room, of symbols or of
// input, is finished with care, one symbol at a time, and the next part takes its lane.

#include "codec/trz/huffman_kernels.hpp"

#include <cstring>

#if defined(__AVX512VBMI2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

inline void store64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

inline std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

// --- counting ----------------------------------------------------------------------------------

/// Four tables, so that equal bytes in a row do not wait for each other's store.
void count(const std::uint8_t* bytes, std::size_t n, std::uint32_t* histogram) {
  std::uint32_t tables[4][256];
  if (n < 1024) {
    for (std::size_t i = 0; i < n; ++i) ++histogram[bytes[i]];
    return;
  }
  std::memset(tables, 0, sizeof tables);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const std::uint64_t word = load64(bytes + i);
    ++tables[0][word & 0xFF];
    ++tables[1][(word >> 8) & 0xFF];
    ++tables[2][(word >> 16) & 0xFF];
    ++tables[3][(word >> 24) & 0xFF];
    ++tables[0][(word >> 32) & 0xFF];
    ++tables[1][(word >> 40) & 0xFF];
    ++tables[2][(word >> 48) & 0xFF];
    ++tables[3][word >> 56];
  }
  for (; i < n; ++i) ++tables[0][bytes[i]];
  for (std::size_t s = 0; s < 256; ++s) {
    histogram[s] += tables[0][s] + tables[1][s] + tables[2][s] + tables[3][s];
  }
}

// --- encoding ----------------------------------------------------------------------------------

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

/// Returns the OR of all entries used (kNoCode shows in it). Stores whole words.
std::uint32_t encode_run(const std::uint8_t* symbols, std::size_t n, const std::uint32_t* entries,
                         BitWriter& writer) {
  BitWriter bits = writer;
  std::uint32_t all = 0;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const std::uint32_t e0 = entries[symbols[i]];
    const std::uint32_t e1 = entries[symbols[i + 1]];
    const std::uint32_t e2 = entries[symbols[i + 2]];
    const std::uint32_t e3 = entries[symbols[i + 3]];
    all |= e0 | e1 | e2 | e3;
    const std::uint64_t front = (static_cast<std::uint64_t>(e0 >> 6) << (e1 & 63)) | (e1 >> 6);
    const std::uint64_t back = (static_cast<std::uint64_t>(e2 >> 6) << (e3 & 63)) | (e3 >> 6);
    bits.put((front << ((e2 + e3) & 63)) | back, (e0 + e1 + e2 + e3) & 63);
  }
  for (; i < n; ++i) {
    const std::uint32_t e = entries[symbols[i]];
    all |= e;
    bits.put(e >> 6, e & 63);
  }
  writer = bits;
  return all;
}

#if defined(__AVX512VBMI2__)

/// 256 bytes in registers, and what 64 byte indices find in them.
struct ByteTable {
  __m512i quarter[4];

  explicit ByteTable(const std::uint8_t* bytes) {
    for (int i = 0; i < 4; ++i) quarter[i] = _mm512_loadu_si512(bytes + 64 * i);
  }
  __m512i look_up(__m512i index, __mmask64 upper_half) const {
    const __m512i low = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    return _mm512_mask_blend_epi8(upper_half, low, high);
  }
};

/// The encoder's table as three: lengths, low and high bytes of the codes (bit 7: no code).
struct WideEncoder {
  alignas(64) std::uint8_t lengths[256];
  alignas(64) std::uint8_t low[256];
  alignas(64) std::uint8_t high[256];

  explicit WideEncoder(const std::uint32_t* entries) {
    for (int s = 0; s < 256; ++s) {
      lengths[s] = static_cast<std::uint8_t>(entries[s] & 63);
      low[s] = static_cast<std::uint8_t>(entries[s] >> 6);
      high[s] = static_cast<std::uint8_t>((entries[s] >> 14 & 0x7F) | (entries[s] >> 31 << 7));
    }
  }
};

/// Sixty-four symbols as sixteen quads of four codes, each where it belongs in its first byte.
struct QuadBlock {
  alignas(64) std::uint64_t even[8];  // Quads 0, 2, ..., in order of memory.
  alignas(64) std::uint64_t odd[8];
  alignas(64) std::uint32_t byte_of[16];  // Where a quad's first bit goes.
  alignas(64) std::uint32_t steps[16];    // Bits from the byte of the quad before to that one.
  alignas(64) std::uint32_t ends[16];     // Sum of the lengths up to a quad.
};

/// Looks codes up and joins them by fours; n_held bits of the block's first byte are taken.
/// Returns the OR of the codes' high bytes.
inline __m512i make_quads(const std::uint8_t* symbols, const ByteTable& lengths,
                          const ByteTable& low, const ByteTable& high, std::uint32_t n_held,
                          QuadBlock& block) {
  const __m512i low_byte = _mm512_set1_epi16(0x00FF);
  const __m512i low_word = _mm512_set1_epi32(0x0000FFFF);
  const __m512i low_half = _mm512_set1_epi64(0xFFFFFFFF);
  const __m512i seven = _mm512_set1_epi32(7);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i reversed = _mm512_set4_epi32(0x08090A0B, 0x0C0D0E0F, 0x00010203, 0x04050607);
  const __m512i index = _mm512_loadu_si512(symbols);
  const __mmask64 upper_half = _mm512_movepi8_mask(index);
  const __m512i length = lengths.look_up(index, upper_half);
  const __m512i code_low = low.look_up(index, upper_half);
  const __m512i code_high = high.look_up(index, upper_half);
  // Where quads begin, in bits: 32-bit lanes.
  const __m512i pair_length = _mm512_maddubs_epi16(length, _mm512_set1_epi8(1));
  const __m512i quad_length = _mm512_madd_epi16(pair_length, _mm512_set1_epi16(1));
  __m512i end = _mm512_add_epi32(quad_length, _mm512_alignr_epi32(quad_length, zero, 15));
  end = _mm512_add_epi32(end, _mm512_alignr_epi32(end, zero, 14));
  end = _mm512_add_epi32(end, _mm512_alignr_epi32(end, zero, 12));
  end = _mm512_add_epi32(end, _mm512_alignr_epi32(end, zero, 8));
  _mm512_store_si512(block.ends, end);
  const __m512i begin = _mm512_add_epi32(_mm512_sub_epi32(end, quad_length),
                                         _mm512_set1_epi32(static_cast<int>(n_held)));
  const __m512i whole = _mm512_andnot_si512(seven, begin);
  _mm512_store_si512(block.byte_of, _mm512_srli_epi32(whole, 3));
  _mm512_store_si512(block.steps, _mm512_sub_epi32(whole, _mm512_alignr_epi32(whole, zero, 15)));
  // From the right end of 64 bits to behind the taken bits of the first byte: 64 - 48 - 7 > 0.
  const __m512i up = _mm512_sub_epi32(
      _mm512_set1_epi32(64), _mm512_add_epi32(quad_length, _mm512_and_si512(begin, seven)));
  // 16-bit lanes: the first and the second code of each pair.
  const __m512i first =
      _mm512_or_si512(_mm512_and_si512(code_low, low_byte), _mm512_slli_epi16(code_high, 8));
  const __m512i second =
      _mm512_or_si512(_mm512_srli_epi16(code_low, 8), _mm512_andnot_si512(low_byte, code_high));
  const __m512i second_length = _mm512_srli_epi16(length, 8);
  // 32-bit lanes: a quad's front and back pair.
  const __m512i front =
      _mm512_or_si512(_mm512_sllv_epi32(_mm512_and_si512(first, low_word),
                                        _mm512_and_si512(second_length, low_word)),
                      _mm512_and_si512(second, low_word));
  const __m512i back = _mm512_or_si512(
      _mm512_sllv_epi32(_mm512_srli_epi32(first, 16), _mm512_srli_epi32(second_length, 16)),
      _mm512_srli_epi32(second, 16));
  const __m512i back_length = _mm512_srli_epi32(pair_length, 16);
  // 64-bit lanes: even and odd quads.
  const __m512i even = _mm512_or_si512(
      _mm512_sllv_epi64(_mm512_and_si512(front, low_half), _mm512_and_si512(back_length, low_half)),
      _mm512_and_si512(back, low_half));
  const __m512i odd = _mm512_or_si512(
      _mm512_sllv_epi64(_mm512_srli_epi64(front, 32), _mm512_srli_epi64(back_length, 32)),
      _mm512_srli_epi64(back, 32));
  _mm512_store_si512(
      block.even,
      _mm512_shuffle_epi8(_mm512_sllv_epi64(even, _mm512_and_si512(up, low_half)), reversed));
  _mm512_store_si512(
      block.odd, _mm512_shuffle_epi8(_mm512_sllv_epi64(odd, _mm512_srli_epi64(up, 32)), reversed));
  return code_high;
}

/// A string of bits being written by blocks: the bytes of the last quad, as they stand in memory,
/// from the one that the next quad begins in.
struct BlockWriter {
  std::uint8_t* out;
  std::uint64_t word;
  std::uint32_t n_held;

  void put(const QuadBlock& block) {
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) {
      word = (word >> block.steps[2 * q]) | block.even[q];
      store64(out + block.byte_of[2 * q], word);
      word = (word >> block.steps[2 * q + 1]) | block.odd[q];
      store64(out + block.byte_of[2 * q + 1], word);
    }
    const std::uint32_t n_bits = n_held + block.ends[15];
    word >>= (n_bits & ~7U) - 8 * block.byte_of[15];
    out += n_bits >> 3;
    n_held = n_bits & 7;
  }
};

/// encode_run() for a multiple of 64 symbols. A block is stored while the next one is made.
std::uint32_t encode_run_wide(const std::uint8_t* symbols, std::size_t n,
                              const WideEncoder& encoder, BitWriter& writer) {
  if (n == 0) return 0;
  const ByteTable lengths(encoder.lengths);
  const ByteTable low(encoder.low);
  const ByteTable high(encoder.high);
  BlockWriter bits{writer.out, writer.held << (8 - writer.n_held) & 0xFF, writer.n_held};
  QuadBlock blocks[2];
  std::uint32_t n_held = writer.n_held;
  __m512i all = make_quads(symbols, lengths, low, high, n_held, blocks[0]);
  std::size_t k = 0;
  for (std::size_t i = 64; i < n; i += 64) {
    n_held = (n_held + blocks[k].ends[15]) & 7;
    all = _mm512_or_si512(all, make_quads(symbols + i, lengths, low, high, n_held, blocks[k ^ 1]));
    bits.put(blocks[k]);
    k ^= 1;
  }
  bits.put(blocks[k]);
  writer = {bits.out, bits.word >> (8 - bits.n_held), bits.n_held};
  return _mm512_movepi8_mask(all) != 0 ? kNoCode : 0;
}

#endif

/// The same near the end of the output, a byte at a time. kNoCode when there is no room.
std::uint32_t encode_run_carefully(const std::uint8_t* symbols, std::size_t n,
                                   const std::uint32_t* entries, const std::uint8_t* out_end,
                                   BitWriter& bits) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t e = entries[symbols[i]];
    if ((e & kNoCode) != 0) return kNoCode;
    bits.held = (bits.held << (e & 63)) | (e >> 6);
    bits.n_held += e & 63;
    while (bits.n_held >= 8) {
      if (bits.out == out_end) return kNoCode;
      *bits.out++ = static_cast<std::uint8_t>(bits.held >> (bits.n_held - 8));
      bits.n_held -= 8;
    }
  }
  return 0;
}

/// How many of n symbols may be coded without a look at the end of the output: 12 bits each, and 16
/// bytes for whole words. At least 64 or none.
inline std::size_t symbols_with_room(std::size_t n, std::size_t room_bytes) {
  if (room_bytes < 64 * 12 / 8 + 16) return 0;
  return smaller(n, (room_bytes - 16) * 8 / 12 / 64 * 64);
}

std::size_t encode(const std::uint8_t* symbols, std::size_t n, std::size_t part_symbols,
                   const EncodeTable& table, std::uint8_t* out, const std::uint8_t* out_end) {
  const std::size_t n_parts = (n + part_symbols - 1) / part_symbols;
  const std::size_t length_bytes = part_length_bytes(part_symbols);
  std::uint8_t* header = out;
  if (static_cast<std::size_t>(out_end - out) < length_bytes * (n_parts - 1)) return 0;
  BitWriter bits{out + length_bytes * (n_parts - 1), 0, 0};
  std::uint32_t all = 0;
#if defined(__AVX512VBMI2__)
  const WideEncoder wide(table.entries);
#endif
  for (std::size_t begin = 0; begin < n; begin += part_symbols) {
    const std::size_t end = smaller(begin + part_symbols, n);
    const std::uint8_t* out_before = bits.out;
    const unsigned held_before = bits.n_held;
    for (std::size_t i = begin; i < end;) {
      std::size_t n_run = symbols_with_room(end - i, static_cast<std::size_t>(out_end - bits.out));
      if (n_run == 0) {
        n_run = smaller(64, end - i);
        all |= encode_run_carefully(symbols + i, n_run, table.entries, out_end, bits);
      } else {
        std::size_t n_done = 0;
#if defined(__AVX512VBMI2__)
        n_done = n_run / 64 * 64;
        all |= encode_run_wide(symbols + i, n_done, wide, bits);
#endif
        all |= encode_run(symbols + i + n_done, n_run - n_done, table.entries, bits);
      }
      i += n_run;
      if ((all & kNoCode) != 0) return 0;
    }
    if (end < n) {
      const auto part_bits =
          8 * static_cast<std::size_t>(bits.out - out_before) + bits.n_held - held_before;
      for (std::size_t k = 0; k < length_bytes; ++k) {
        *header++ = static_cast<std::uint8_t>(part_bits >> (8 * k));
      }
    }
  }
  if (bits.n_held != 0) {
    if (bits.out == out_end) return 0;
    *bits.out++ = static_cast<std::uint8_t>(bits.held << (8 - bits.n_held));
  }
  return static_cast<std::size_t>(bits.out - out);
}

// --- decoding ----------------------------------------------------------------------------------

/// One part on its way.
struct Lane {
  std::size_t bit;      // Position in the string.
  std::size_t bit_end;  // Where the part must end.
  std::uint8_t* out;
  std::uint8_t* out_end;
};

struct Input {
  const std::uint8_t* bytes;
  std::size_t n_bytes;
};

constexpr unsigned kSymbolsAtOnce = 3;
constexpr unsigned kLookups = 4;  // Of 12 bits, from 56 that a load at any bit gives.
constexpr unsigned kRepeats = 2;  // Between two looks at what is left.
/// What a round may write and read: whole words, kRepeats times.
constexpr std::ptrdiff_t kRoundSymbols = kRepeats * kLookups * kSymbolsAtOnce + 1;
constexpr std::ptrdiff_t kRoundBytes = kRepeats * 7 + 8;

/// 64 bits from a bit position; at least 57 of them are the string's, or zeros behind its end.
inline std::uint64_t bits_at(const Input& in, std::size_t bit) {
  const std::size_t byte = bit >> 3;
  std::uint64_t word = 0;
  if (byte + 8 <= in.n_bytes) {
    word = __builtin_bswap64(load64(in.bytes + byte));
  } else {
    for (std::size_t i = byte; i < in.n_bytes; ++i) {
      word |= static_cast<std::uint64_t>(in.bytes[i]) << (56 - 8 * (i - byte));
    }
  }
  return word << (bit & 7);
}

/// One symbol at a time to the part's end. True if it ends where it must.
bool finish_lane(const Input& in, const DecodeTable& table, Lane& lane) {
  const unsigned shift = 64 - static_cast<unsigned>(table.bits);
  while (lane.out < lane.out_end) {
    if (lane.bit >= lane.bit_end) return false;
    std::uint64_t word = bits_at(in, lane.bit);
    for (unsigned i = 0; i < kLookups && lane.out < lane.out_end; ++i) {
      const auto symbol = static_cast<std::uint8_t>(table.entries[word >> shift]);
      const unsigned n_bits = table.length_of[symbol];
      word <<= n_bits;
      lane.bit += n_bits;
      *lane.out++ = symbol;
    }
  }
  return lane.bit == lane.bit_end;
}

/// Whether a lane can take a whole round.
inline bool has_room(const Input& in, const Lane& lane) {
  return lane.out_end - lane.out >= kRoundSymbols && (lane.bit >> 3) + kRoundBytes <= in.n_bytes;
}

/// Rounds of kLanes lanes until one of them is out of room. A lane's word ends in a 1 that shows
/// how many bits were taken from it: the zeros below, which also count those of the byte before it.
template <unsigned kLanes>
inline __attribute__((always_inline)) void run_lanes(const Input& in, const DecodeTable& table,
                                                     Lane* lanes) {
  const auto* entries = reinterpret_cast<const std::uint8_t*>(table.entries);
  const unsigned shift = 64 - static_cast<unsigned>(table.bits);
  const std::uint8_t* in_last = in.bytes + in.n_bytes - kRoundBytes;
  std::uint64_t word[kLanes];
  const std::uint8_t* from[kLanes];
  std::uint8_t* out[kLanes];
  const std::uint8_t* out_last[kLanes];
#pragma GCC unroll 8
  for (unsigned k = 0; k < kLanes; ++k) {
    from[k] = in.bytes + (lanes[k].bit >> 3);
    word[k] = (__builtin_bswap64(load64(from[k])) | 1) << (lanes[k].bit & 7);
    out[k] = lanes[k].out;
    out_last[k] = lanes[k].out_end - kRoundSymbols;
  }
  bool more = true;
  while (more) {
    for (unsigned repeat = 0; repeat < kRepeats; ++repeat) {
#pragma GCC unroll 8
      for (unsigned i = 0; i < kLookups; ++i) {
#pragma GCC unroll 8
        for (unsigned k = 0; k < kLanes; ++k) {
          const std::uint8_t* entry = entries + 4 * (word[k] >> shift);
          const unsigned taken = entry[3];
          word[k] <<= taken & 63;
          std::memcpy(out[k], entry, 4);
          out[k] += taken >> 6;
        }
      }
#pragma GCC unroll 8
      for (unsigned k = 0; k < kLanes; ++k) {
        const auto n_taken = static_cast<unsigned>(__builtin_ctzll(word[k]));
        from[k] += n_taken >> 3;
        word[k] = (__builtin_bswap64(load64(from[k])) | 1) << (n_taken & 7);
      }
    }
#pragma GCC unroll 8
    for (unsigned k = 0; k < kLanes; ++k) {
      more = more && out[k] <= out_last[k] && from[k] <= in_last;
    }
  }
#pragma GCC unroll 8
  for (unsigned k = 0; k < kLanes; ++k) {
    const auto n_ahead = static_cast<std::size_t>(__builtin_ctzll(word[k]));
    lanes[k].bit = 8 * static_cast<std::size_t>(from[k] - in.bytes) + n_ahead;
    lanes[k].out = out[k];
  }
}

constexpr std::size_t kLanes = 6;

/// The parts in turn, as lanes become free.
class Parts {
 public:
  Parts(const std::uint8_t* header, std::size_t n_string_bytes, std::size_t part_symbols,
        std::uint8_t* symbols, std::size_t n)
      : header_(header),
        n_bits_(8 * n_string_bytes),
        part_symbols_(part_symbols),
        out_(symbols),
        out_end_(symbols + n) {}

  /// False when there is none left, or the lengths do not fit: then failed().
  bool next(Lane& lane) {
    if (out_ == out_end_) return false;
    const auto n_left = static_cast<std::size_t>(out_end_ - out_);
    lane.bit = bit_;
    lane.out = out_;
    if (n_left > part_symbols_) {
      std::size_t part_bits = 0;
      for (std::size_t k = 0; k < part_length_bytes(part_symbols_); ++k) {
        part_bits |= std::size_t{*header_++} << (8 * k);
      }
      if (part_bits > n_bits_ - bit_) {
        failed_ = true;
        return false;
      }
      bit_ += part_bits;
      out_ += part_symbols_;
      lane.bit_end = bit_;
    } else {
      lane.bit_end = n_bits_;  // Up to seven zeros less; see finish().
      out_ = out_end_;
    }
    lane.out_end = out_;
    return true;
  }
  bool failed() const { return failed_; }

 private:
  const std::uint8_t* header_;
  std::size_t n_bits_;
  std::size_t part_symbols_;
  std::size_t bit_ = 0;
  std::uint8_t* out_;
  std::uint8_t* out_end_;
  bool failed_ = false;
};

/// finish_lane(), with the zeros that fill up the last byte of the string.
bool finish(const Input& in, const DecodeTable& table, const std::uint8_t* symbols_end,
            Lane& lane) {
  const bool exact = finish_lane(in, table, lane);
  if (lane.out_end != symbols_end || exact) return exact;
  return lane.out == lane.out_end && lane.bit < lane.bit_end && lane.bit_end - lane.bit < 8 &&
         (bits_at(in, lane.bit) >> (64 - (lane.bit_end - lane.bit))) == 0;
}

bool decode(const std::uint8_t* in, std::size_t n_bytes, const DecodeTable& table,
            std::size_t part_symbols, std::uint8_t* symbols, std::size_t n) {
  const std::size_t n_parts = (n + part_symbols - 1) / part_symbols;
  const std::size_t header_bytes = part_length_bytes(part_symbols) * (n_parts - 1);
  if (n_bytes <= header_bytes || table.bits == 0) return false;
  const Input input{in + header_bytes, n_bytes - header_bytes};
  const std::uint8_t* symbols_end = symbols + n;
  Parts parts(in, input.n_bytes, part_symbols, symbols, n);
  Lane lanes[kLanes];
  std::size_t n_lanes = 0;
  for (;;) {
    // Lanes without room are finished and take the next part, which may be short as well.
    for (std::size_t k = 0; k < kLanes;) {
      if (k < n_lanes && has_room(input, lanes[k])) {
        ++k;
        continue;
      }
      if (k < n_lanes && !finish(input, table, symbols_end, lanes[k])) return false;
      if (parts.next(lanes[k])) {
        if (k == n_lanes) ++n_lanes;
      } else if (k == n_lanes || k == --n_lanes) {
        break;
      } else {
        lanes[k] = lanes[n_lanes];
      }
    }
    if (n_lanes == kLanes) {
      run_lanes<kLanes>(input, table, lanes);
    } else if (n_lanes >= kLanes / 2) {
      run_lanes<kLanes / 2>(input, table, lanes);
    } else if (n_lanes != 0) {
      run_lanes<1>(input, table, lanes);
    } else {
      return !parts.failed();
    }
  }
}

}  // namespace

extern const HuffmanKernels huffman_kernels_table;
const HuffmanKernels huffman_kernels_table = {count, encode, decode};

}  // namespace tailrace::trz::TRZ_ISA
