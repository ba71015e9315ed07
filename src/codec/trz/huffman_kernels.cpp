// The Huffman coder's inner loops, once per instruction set; all builds give the same bytes.
//
// Encoding joins four codes before they meet the accumulator, so that its chain of dependent
// operations is one shift and one OR per four symbols. Decoding looks up as many bits as the
// longest code has and takes up to three symbols at once; four parts are decoded side by side,
// because one look-up depends on the one before it. A part that runs out of room, of symbols or of
// input, is finished with care, one symbol at a time, and the next part takes its lane.

#include "codec/trz/huffman_kernels.hpp"

#include <cstring>

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

inline void store64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

inline std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

// --- counting
// -------------------------------------------------------------------------------------

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

// --- encoding
// -------------------------------------------------------------------------------------

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

constexpr std::size_t kRunSymbols = 512;
constexpr std::size_t kRunBytesMax = kRunSymbols * 12 / 8 + 16;

std::size_t encode(const std::uint8_t* symbols, std::size_t n, std::size_t part_symbols,
                   const EncodeTable& table, std::uint8_t* out, const std::uint8_t* out_end) {
  const std::size_t n_parts = (n + part_symbols - 1) / part_symbols;
  std::uint8_t* header = out;
  if (static_cast<std::size_t>(out_end - out) < kPartHeaderBytes * (n_parts - 1)) return 0;
  BitWriter bits{out + kPartHeaderBytes * (n_parts - 1), 0, 0};
  std::uint32_t all = 0;
  for (std::size_t begin = 0; begin < n; begin += part_symbols) {
    const std::size_t end = smaller(begin + part_symbols, n);
    const std::uint8_t* out_before = bits.out;
    const unsigned held_before = bits.n_held;
    for (std::size_t i = begin; i < end; i += kRunSymbols) {
      const std::size_t n_run = smaller(kRunSymbols, end - i);
      const bool roomy = static_cast<std::size_t>(out_end - bits.out) >= kRunBytesMax;
      all |= roomy ? encode_run(symbols + i, n_run, table.entries, bits)
                   : encode_run_carefully(symbols + i, n_run, table.entries, out_end, bits);
      if ((all & kNoCode) != 0) return 0;
    }
    if (end < n) {
      const auto part_bits =
          8 * static_cast<std::size_t>(bits.out - out_before) + bits.n_held - held_before;
      header[0] = static_cast<std::uint8_t>(part_bits);
      header[1] = static_cast<std::uint8_t>(part_bits >> 8);
      header[2] = static_cast<std::uint8_t>(part_bits >> 16);
      header += kPartHeaderBytes;
    }
  }
  if (bits.n_held != 0) {
    if (bits.out == out_end) return 0;
    *bits.out++ = static_cast<std::uint8_t>(bits.held << (8 - bits.n_held));
  }
  return static_cast<std::size_t>(bits.out - out);
}

// --- decoding
// -------------------------------------------------------------------------------------

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
constexpr unsigned kLookups = 4;  // Of 12 bits, from 57 that a load at any bit gives.

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
      const auto symbol = static_cast<std::uint8_t>(table.entries[word >> shift] >> 6);
      const unsigned n_bits = table.length_of[symbol];
      word <<= n_bits;
      lane.bit += n_bits;
      *lane.out++ = symbol;
    }
  }
  return lane.bit == lane.bit_end;
}

/// Whether a lane can take a whole round: kLookups loads of up to three symbols, whole words.
inline bool has_room(const Lane& lane, std::size_t bit_limit) {
  return lane.out_end - lane.out >= kLookups * kSymbolsAtOnce + 1 && lane.bit <= bit_limit;
}

#define TRZ_LOOK_UP(L)                                  \
  {                                                     \
    const std::uint32_t entry = entries[w##L >> shift]; \
    w##L <<= entry & 63;                                \
    sum##L += entry;                                    \
    const std::uint32_t three = entry >> 6;             \
    std::memcpy(out##L, &three, sizeof three);          \
    out##L += entry >> 30;                              \
  }

/// Rounds of four lanes until one of them is out of room.
void run_lanes(const Input& in, const DecodeTable& table, std::size_t bit_limit, Lane* lanes) {
  const std::uint8_t* bytes = in.bytes;
  const std::uint32_t* entries = table.entries;
  const unsigned shift = 64 - static_cast<unsigned>(table.bits);
  std::size_t bit0 = lanes[0].bit, bit1 = lanes[1].bit, bit2 = lanes[2].bit, bit3 = lanes[3].bit;
  std::uint8_t *out0 = lanes[0].out, *out1 = lanes[1].out, *out2 = lanes[2].out,
               *out3 = lanes[3].out;
  constexpr std::ptrdiff_t kMargin = kLookups * kSymbolsAtOnce + 1;
  const std::uint8_t* last0 = lanes[0].out_end - kMargin;
  const std::uint8_t* last1 = lanes[1].out_end - kMargin;
  const std::uint8_t* last2 = lanes[2].out_end - kMargin;
  const std::uint8_t* last3 = lanes[3].out_end - kMargin;
  while (out0 <= last0 && out1 <= last1 && out2 <= last2 && out3 <= last3 && bit0 <= bit_limit &&
         bit1 <= bit_limit && bit2 <= bit_limit && bit3 <= bit_limit) {
    std::uint64_t w0 = __builtin_bswap64(load64(bytes + (bit0 >> 3))) << (bit0 & 7);
    std::uint64_t w1 = __builtin_bswap64(load64(bytes + (bit1 >> 3))) << (bit1 & 7);
    std::uint64_t w2 = __builtin_bswap64(load64(bytes + (bit2 >> 3))) << (bit2 & 7);
    std::uint64_t w3 = __builtin_bswap64(load64(bytes + (bit3 >> 3))) << (bit3 & 7);
    std::uint32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (unsigned i = 0; i < kLookups; ++i) {
      TRZ_LOOK_UP(0)
      TRZ_LOOK_UP(1)
      TRZ_LOOK_UP(2)
      TRZ_LOOK_UP(3)
    }
    bit0 += sum0 & 63;
    bit1 += sum1 & 63;
    bit2 += sum2 & 63;
    bit3 += sum3 & 63;
  }
  lanes[0].bit = bit0, lanes[1].bit = bit1, lanes[2].bit = bit2, lanes[3].bit = bit3;
  lanes[0].out = out0, lanes[1].out = out1, lanes[2].out = out2, lanes[3].out = out3;
}

/// The same for one lane.
void run_lane(const Input& in, const DecodeTable& table, std::size_t bit_limit, Lane& lane) {
  const std::uint32_t* entries = table.entries;
  const unsigned shift = 64 - static_cast<unsigned>(table.bits);
  std::uint8_t* out0 = lane.out;
  std::size_t bit0 = lane.bit;
  const std::uint8_t* last0 = lane.out_end - (kLookups * kSymbolsAtOnce + 1);
  while (out0 <= last0 && bit0 <= bit_limit) {
    std::uint64_t w0 = __builtin_bswap64(load64(in.bytes + (bit0 >> 3))) << (bit0 & 7);
    std::uint32_t sum0 = 0;
    for (unsigned i = 0; i < kLookups; ++i) TRZ_LOOK_UP(0)
    bit0 += sum0 & 63;
  }
  lane.out = out0;
  lane.bit = bit0;
}

#undef TRZ_LOOK_UP

constexpr std::size_t kLanes = 4;

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
      const std::size_t part_bits =
          header_[0] + (std::size_t{header_[1]} << 8) + (std::size_t{header_[2]} << 16);
      header_ += kPartHeaderBytes;
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
  const std::size_t header_bytes = kPartHeaderBytes * (n_parts - 1);
  if (n_bytes <= header_bytes || table.bits == 0) return false;
  const Input input{in + header_bytes, n_bytes - header_bytes};
  const std::uint8_t* symbols_end = symbols + n;
  // Loads of whole words stay within the string.
  const bool wide = input.n_bytes >= 8;
  const std::size_t bit_limit = wide ? 8 * (input.n_bytes - 8) : 0;
  Parts parts(in, input.n_bytes, part_symbols, symbols, n);
  Lane lanes[kLanes];
  std::size_t n_lanes = 0;
  while (n_lanes < kLanes && parts.next(lanes[n_lanes])) ++n_lanes;
  while (n_lanes == kLanes && wide) {
    run_lanes(input, table, bit_limit, lanes);
    for (std::size_t k = 0; k < n_lanes;) {
      if (has_room(lanes[k], bit_limit)) {
        ++k;
        continue;
      }
      if (!finish(input, table, symbols_end, lanes[k])) return false;
      if (!parts.next(lanes[k])) lanes[k] = lanes[--n_lanes];
    }
  }
  if (parts.failed()) return false;
  for (std::size_t k = 0; k < n_lanes; ++k) {
    if (wide) run_lane(input, table, bit_limit, lanes[k]);
    if (!finish(input, table, symbols_end, lanes[k])) return false;
  }
  // Parts that never got a lane: only where the string is shorter than a word.
  for (Lane lane{}; parts.next(lane);) {
    if (!finish(input, table, symbols_end, lane)) return false;
  }
  return !parts.failed();
}

}  // namespace

extern const HuffmanKernels huffman_kernels_table;
const HuffmanKernels huffman_kernels_table = {count, encode, decode};

}  // namespace tailrace::trz::TRZ_ISA
