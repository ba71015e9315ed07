// The Huffman coder's inner loops, once per instruction set; all builds give the same bytes.
//
// The encoder joins four codes before it adds them to the accumulator. Its chain of dependent
// operations is thus one shift and one OR per four symbols. The decoder looks up as many bits as
// the longest code has, and takes up to three symbols per look-up. Each look-up depends on the
// previous one, so six parts are decoded in parallel lanes. A part close to the end of its symbols
// or of the input is finished by checked code, one symbol at a time. The next part then takes its
// lane.

#include "trz/kernels/huffman_kernels.hpp"

#include <cstring>

#include "trz/kernels/kernel_vectors.hpp"
#if defined(__AVX512VBMI2__)
#include "trz/kernels/huffman_avx512.hpp"
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

// --- encoding ----------------------------------------------------------------------------------

/// Encode n symbols. Returns the OR of all entries used, which contains kNoCode if a symbol has no
/// code. Stores complete words, so up to 8 bytes after the output may be overwritten.
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

/// Encode n symbols near the end of the output, a byte at a time. Returns kNoCode if a symbol has
/// no code or the output is full.
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

/// Number of symbols, at most n, that can be encoded without checks for the end of the output. Each
/// takes up to 12 bits, plus 16 bytes in total for complete words. The result is 0, n, or a
/// multiple of 64.
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

/// State of one part during decoding.
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
constexpr unsigned kLookups = 4;  // Look-ups of 12 bits; a load at any bit position gives 56 bits.
constexpr unsigned kRepeats = 2;  // Repetitions between two checks for the end.
/// Limits of the symbols that a round may write and of the bytes that it may read.
constexpr std::ptrdiff_t kRoundSymbols = kRepeats * kLookups * kSymbolsAtOnce + 1;
constexpr std::ptrdiff_t kRoundBytes = kRepeats * 7 + 8;

/// 64 bits from a bit position on. At least the first 57 are bits of the string, or zeros after its
/// end.
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

/// Decode one symbol at a time to the end of the part. True if the part ends at its last bit.
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

/// True if a lane can take a complete round without checks.
inline bool has_room(const Input& in, const Lane& lane) {
  return lane.out_end - lane.out >= kRoundSymbols && (lane.bit >> 3) + kRoundBytes <= in.n_bytes;
}

/// Run rounds of kLanes lanes until one of them is near its end. A lane's word ends in a 1. The
/// number of zeros below this 1 is the number of bits consumed since the word's first byte.
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

/// Sequence of the parts, which free lanes take in turn.
class Parts {
 public:
  Parts(const std::uint8_t* header, std::size_t n_string_bytes, std::size_t part_symbols,
        std::uint8_t* symbols, std::size_t n)
      : header_(header),
        n_bits_(8 * n_string_bytes),
        part_symbols_(part_symbols),
        out_(symbols),
        out_end_(symbols + n) {}

  /// Start the next part in `lane`. False if no part is left, or if the lengths are inconsistent
  /// (failed() is then true).
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
      lane.bit_end = n_bits_;  // Includes up to seven zeros of padding; see finish().
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

/// Like finish_lane(), but the last part may be followed by zeros that pad the string's last byte.
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
    // Finish lanes near their end and give them the next part, which may be short as well.
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
const HuffmanKernels huffman_kernels_table = {TRZ_ENCODES(encode), decode};

}  // namespace tailrace::trz::TRZ_ISA
