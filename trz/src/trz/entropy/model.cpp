// Codes under a model: a code's neighbours determine its context, and each context has a table of
// frequencies. Interleaved range coding (rANS) codes each code with the frequencies of its table.
//
// Tables are static. The encoder counts all codes first, joins adjacent contexts if one table
// serves them equally well, and writes the tables before the codes. A large code becomes a symbol
// for its size plus separate raw bits. Four states take turns, so that a core processes four codes
// in parallel. Format: trz/docs/trz-format.md, section 12.
// Source: Duda 2013 (asymmetric numeral systems); the format of the tables is our own.

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "trz/entropy/code_sections.hpp"

namespace tailrace::trz {
namespace {

constexpr std::uint32_t kTotal = 1U << kFrequencyBits;
constexpr std::uint32_t kStateLeast = 1U << kStateLeastBits;

// --- symbols: small numbers themselves; large numbers by length and three leading bits.

constexpr std::size_t kPartCodes = 256;  ///< Codes decoded per part: first symbols, then raw bits.

/// Symbols of 32-bit or 64-bit codes.
template <class Code>
struct Alphabet {
  using Number = std::make_unsigned_t<Code>;
  /// Bits of the greatest number that is its own symbol.
  static constexpr unsigned kPlainBits = sizeof(Code) == 4 ? 5 : 4;
  static constexpr unsigned kPlain = 1U << kPlainBits;  ///< Numbers below are their own symbols.
  /// Leading bits that the symbol of a larger number has.
  static constexpr unsigned kLeadingBits = sizeof(Code) == 4 ? 3 : 2;
  static constexpr unsigned kPerLength = 1U << (kLeadingBits - 1);
  static_assert(kPlain + kPerLength * (8 * sizeof(Code) - kPlainBits) <= kModelSymbols);

  struct Symbol {
    unsigned symbol;
    unsigned n_bits;  ///< Number of low bits that are stored separately.
  };

  static Symbol of(Number z) {
    if (z < kPlain) return {static_cast<unsigned>(z), 0};
    const auto length = static_cast<unsigned>(std::bit_width(z));
    const unsigned n_bits = length - kLeadingBits;
    const auto leading = static_cast<unsigned>(z >> n_bits) & (kPerLength - 1);
    return {kPlain + kPerLength * (length - kPlainBits - 1) + leading, n_bits};
  }

  static unsigned low_bits(unsigned symbol) {
    return (symbol - kPlain) / kPerLength + kPlainBits + 1 - kLeadingBits;
  }

  static constexpr unsigned kSymbols = kPlain + kPerLength * (8 * sizeof(Code) - kPlainBits);
};

// --- strings of bits, the first bit lowest in the first byte.

class BitsOut {
 public:
  explicit BitsOut(std::uint8_t* to) : begin_(to), to_(to) {}
  /// Append the low n_bits <= 32 of `bits`. Overwrites 8 bytes of the output.
  void put(std::uint32_t bits, unsigned n_bits) {
    held_ |= static_cast<std::uint64_t>(bits) << n_held_;
    n_held_ += n_bits;
    std::memcpy(to_, &held_, sizeof held_);
    to_ += n_held_ / 8;
    held_ >>= n_held_ / 8 * 8;
    n_held_ %= 8;
  }
  /// Bytes written so far; the last one is padded with zeros.
  std::size_t finish() {
    const std::size_t n_bytes = static_cast<std::size_t>(to_ - begin_) + (n_held_ > 0 ? 1 : 0);
    return n_bytes;
  }

 private:
  std::uint8_t* begin_;
  std::uint8_t* to_;
  std::uint64_t held_ = 0;
  unsigned n_held_ = 0;
};

/// The n_bits <= 32 bits from position `at` on; zeros after the end.
std::uint32_t bits_at(std::span<const std::uint8_t> bytes, std::size_t at, unsigned n_bits) {
  std::uint64_t held = 0;
  const std::size_t byte = at / 8;
  if (byte + sizeof held <= bytes.size()) {
    std::memcpy(&held, bytes.data() + byte, sizeof held);
  } else {
    for (std::size_t k = byte; k < bytes.size(); ++k) {
      held |= static_cast<std::uint64_t>(bytes[k]) << (8 * (k - byte));
    }
  }
  return static_cast<std::uint32_t>((held >> (at % 8)) & ((std::uint64_t{1} << n_bits) - 1));
}

// --- codes of either width.

std::uint32_t number_of(std::int32_t code) { return zigzag(code); }
std::uint64_t number_of(std::int64_t code) {
  return static_cast<std::uint64_t>(code) << 1 ^ static_cast<std::uint64_t>(code >> 63);
}
void unfold(std::uint32_t z, std::int32_t& code) { code = unzigzag(z); }
void unfold(std::uint64_t z, std::int64_t& code) {
  code = static_cast<std::int64_t>(z >> 1 ^ (0 - (z & 1)));
}

void put_low_bits(std::uint32_t z, unsigned n_bits, BitsOut& out) {
  if (n_bits > 0) out.put(z & ((1U << n_bits) - 1), n_bits);
}
void put_low_bits(std::uint64_t z, unsigned n_bits, BitsOut& out) {
  const unsigned n_first = std::min(n_bits, 31U);
  put_low_bits(static_cast<std::uint32_t>(z), n_first, out);
  put_low_bits(static_cast<std::uint32_t>(z >> n_first), n_bits - n_first, out);
}

// --- tables: frequencies with four significant bits; the most frequent symbol has the rest.

using Frequencies = std::array<std::uint32_t, kModelSymbols>;

constexpr unsigned kMantissaBits = 3;
constexpr unsigned kLengthBits = 4;
constexpr unsigned kZerosLength = 13;  ///< Special length: a run of zeros follows.
constexpr unsigned kZerosBits = 4;
constexpr unsigned kZerosLeast = 2;
constexpr unsigned kSymbolBits = 8;

unsigned mantissa_bits(unsigned length) { return std::min(length - 1, kMantissaBits); }

/// The nearest frequency that a table can represent, at least 1.
std::uint32_t representable(std::uint32_t frequency) {
  if (frequency == 0) return 1;
  const auto length = static_cast<unsigned>(std::bit_width(frequency));
  const unsigned dropped = length - 1 - mantissa_bits(length);
  const std::uint32_t half = dropped == 0 ? 0 : 1U << (dropped - 1);
  return std::min((frequency + half) >> dropped << dropped, kTotal - kTotal / 16);
}

/// The next lower frequency that a table can represent.
std::uint32_t less_by_one_step(std::uint32_t frequency) {
  const auto length = static_cast<unsigned>(std::bit_width(frequency));
  const std::uint32_t step = 1U << (length - 1 - mantissa_bits(length));
  return representable(frequency - (frequency == 1U << (length - 1) && step > 1 ? step / 2 : step));
}

struct Table {
  unsigned most = 0;  ///< The most frequent symbol, whose frequency is kTotal less all others.
  Frequencies frequency{};
};

Table table_of(const Frequencies& counts) {
  Table table;
  std::uint64_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  const auto most = std::max_element(counts.begin(), counts.end());
  table.most = static_cast<unsigned>(most - counts.begin());
  std::uint32_t others = 0;
  for (unsigned s = 0; s < kModelSymbols; ++s) {
    if (counts[s] == 0 || s == table.most) continue;
    const auto share = static_cast<std::uint32_t>(
        (static_cast<std::uint64_t>(counts[s]) * kTotal + total / 2) / total);
    table.frequency[s] = representable(share);
    others += table.frequency[s];
  }
  // Lower the largest of the other frequencies until the most frequent symbol has at least as much.
  for (;;) {
    const auto next = std::max_element(table.frequency.begin(), table.frequency.end());
    if (others + *next <= kTotal && others < kTotal) break;
    others -= *next;
    *next = less_by_one_step(*next);
    others += *next;
  }
  table.frequency[table.most] = kTotal - others;
  return table;
}

void put_table(const Table& table, BitsOut& out) {
  unsigned n_symbols = kModelSymbols;
  const auto listed = [&](unsigned s) { return s == table.most ? 0 : table.frequency[s]; };
  while (n_symbols > 0 && listed(n_symbols - 1) == 0) --n_symbols;
  out.put(table.most, kSymbolBits);
  out.put(n_symbols, kSymbolBits);
  for (unsigned s = 0; s < n_symbols;) {
    unsigned n_zeros = 0;
    while (listed(s + n_zeros) == 0) ++n_zeros;  // The last listed symbol is not 0.
    if (n_zeros >= kZerosLeast) {
      n_zeros = std::min(n_zeros, kZerosLeast + (1U << kZerosBits) - 1);
      out.put(kZerosLength, kLengthBits);
      out.put(n_zeros - kZerosLeast, kZerosBits);
      s += n_zeros;
      continue;
    }
    const std::uint32_t frequency = listed(s++);
    const auto length = static_cast<unsigned>(std::bit_width(frequency));
    out.put(length, kLengthBits);
    if (length < 2) continue;
    const unsigned n_bits = mantissa_bits(length);
    out.put((frequency >> (length - 1 - n_bits)) & ((1U << n_bits) - 1), n_bits);
  }
}

/// Approximate bits of symbols with these counts and of their table. Symbols from n_symbols on do
/// not occur.
double bits_of(const Frequencies& counts, std::size_t n_symbols) {
  double total = 0;
  double bits = 2 * kSymbolBits;
  for (std::size_t s = 0; s < n_symbols; ++s) total += counts[s];
  if (total == 0) return 0;
  const double of_total = log2_of(total);
  for (std::size_t s = 0; s < n_symbols; ++s) {
    if (counts[s] == 0) continue;
    bits += counts[s] * (of_total - log2_of(counts[s])) + kLengthBits + kMantissaBits;
  }
  return bits;
}

/// The tables of a chunk and the assignment of contexts to tables.
struct Tables {
  std::array<Table, kContexts> table;
  std::array<std::uint8_t, kContexts> of_context{};
  std::array<std::uint8_t, kContexts> first_context{};
  std::size_t n_tables = 0;
};

/// @param n_symbols  symbols from this one on do not occur.
void join_contexts(const std::array<Frequencies, kContexts>& counts, std::size_t n_symbols,
                   Tables& tables) {
  Frequencies held = counts[0];
  double held_bits = bits_of(held, n_symbols);
  const auto close = [&] { tables.table[tables.n_tables++] = table_of(held); };
  for (std::size_t c = 1; c < kContexts; ++c) {
    const double own_bits = bits_of(counts[c], n_symbols);
    if (own_bits != 0 && held_bits == 0) {
      held = counts[c];
      held_bits = own_bits;
    } else if (own_bits != 0) {
      Frequencies both = held;
      for (std::size_t s = 0; s < n_symbols; ++s) both[s] += counts[c][s];
      const double both_bits = bits_of(both, n_symbols);
      constexpr double bits_of_one_more = 8;
      if (both_bits <= held_bits + own_bits + bits_of_one_more) {
        held = both;
        held_bits = both_bits;
      } else {
        close();
        tables.first_context[tables.n_tables] = static_cast<std::uint8_t>(c);
        held = counts[c];
        held_bits = own_bits;
      }
    }
    tables.of_context[c] = static_cast<std::uint8_t>(tables.n_tables);
  }
  close();
}

// --- coding

/// The coder's parameters for one symbol in one table.
struct Step {
  std::uint64_t inverse;  ///< 2^44 / frequency, rounded up.
  std::uint32_t frequency;
  std::uint16_t start;
  std::uint16_t others;  ///< kTotal less the frequency.
};

constexpr unsigned kInverseBits = 44;

/// Steps of each table's symbols; those of symbols that do not occur are not set.
using Steps = std::array<std::array<Step, kModelSymbols>, kContexts>;

void set_steps(const Tables& tables, Steps& steps) {
  for (std::size_t t = 0; t < tables.n_tables; ++t) {
    std::uint32_t start = 0;
    for (unsigned s = 0; s < kModelSymbols; ++s) {
      const std::uint32_t frequency = tables.table[t].frequency[s];
      if (frequency == 0) continue;
      const std::uint64_t inverse =
          ((std::uint64_t{1} << kInverseBits) + frequency - 1) / frequency;
      steps[t][s] = {inverse, frequency, static_cast<std::uint16_t>(start),
                     static_cast<std::uint16_t>(kTotal - frequency)};
      start += frequency;
    }
  }
}

/// Code `symbols` from last to first; words are written downwards from `end`, and the word below
/// the first may be overwritten. Returns the first word.
std::uint16_t* code_symbols(const std::uint8_t* symbols, const std::uint8_t* contexts,
                            std::size_t n, const Tables& tables, const Steps& steps,
                            std::array<std::uint32_t, kModelStates>& states, std::uint16_t* end) {
  std::array<const Step*, kContexts> of_context;
  for (std::size_t c = 0; c < kContexts; ++c) of_context[c] = steps[tables.of_context[c]].data();
  states.fill(kStateLeast);
  std::uint16_t* to = end;
  const auto code = [&](std::size_t i, std::uint32_t& state) {
    const Step& step = of_context[contexts[i]][symbols[i]];
    // One word suffices: a state shifted by 16 bits is below the limit of every frequency.
    const bool is_full = state >> (32 - kFrequencyBits) >= step.frequency;
    const auto word = static_cast<std::uint16_t>(state);
    std::memcpy(to - 1, &word, sizeof word);
    to -= is_full ? 1 : 0;
    state = is_full ? state >> 16 : state;
    // The quotient is exact for states below frequency * 2^20, and its product fits 64 bits: the
    // inverse is too large by less than frequency / 2^44, and the square of a frequency is at most
    // 2^24.
    const auto quotient = static_cast<std::uint32_t>((state * step.inverse) >> kInverseBits);
    state += quotient * step.others + step.start;
  };
  std::size_t i = n;
  while (i % kModelStates != 0) {
    --i;
    code(i, states[i % kModelStates]);
  }
  std::uint32_t a = states[0];
  std::uint32_t b = states[1];
  std::uint32_t c = states[2];
  std::uint32_t d = states[3];
  for (; i > 0; i -= kModelStates) {
    code(i - 1, d);
    code(i - 2, c);
    code(i - 3, b);
    code(i - 4, a);
  }
  states = {a, b, c, d};
  return to;
}

}  // namespace

std::size_t modelled_bytes_max(std::size_t n_codes, std::size_t code_bytes) {
  // Tables take one byte per symbol. Each code takes at most 12 bits of words, and its raw bits.
  return kContexts * (kModelSymbols + 3) + (2 + code_bytes) * n_codes + 64;
}

template <class Code>
bool write_modelled(const Code* codes, const std::uint8_t* contexts, std::size_t n_codes,
                    ChunkWriter& out, Workspace& workspace) {
  const std::size_t n_words_max = n_codes - n_codes / 4 + 8;
  auto* words = workspace.area<std::uint16_t>(Slot::planes, n_words_max + n_codes / 2 + 1);
  auto* bit_bytes = workspace.area<std::uint8_t>(Slot::exceptions, sizeof(Code) * n_codes + 16);
  if (words == nullptr || bit_bytes == nullptr) return false;
  auto* symbols = reinterpret_cast<std::uint8_t*>(words + n_words_max);

  unsigned greatest = 0;
  // Two counts for each symbol: a count that follows another of the same symbol waits for it.
  std::array<Frequencies, kContexts> counts{};
  std::array<Frequencies, kContexts> odd_counts{};
  BitsOut bits(bit_bytes);
  const auto take = [&](std::size_t i, std::array<Frequencies, kContexts>& of_context) {
    const auto z = number_of(codes[i]);
    const auto symbol = Alphabet<Code>::of(z);
    symbols[i] = static_cast<std::uint8_t>(symbol.symbol);
    greatest = std::max(greatest, symbol.symbol);
    ++of_context[contexts[i]][symbol.symbol];
    put_low_bits(z, symbol.n_bits, bits);
  };
  for (std::size_t i = 0; i + 1 < n_codes; i += 2) {
    take(i, counts);
    take(i + 1, odd_counts);
  }
  if (n_codes % 2 != 0) take(n_codes - 1, counts);
  for (std::size_t c = 0; c < kContexts; ++c) {
    for (std::size_t s = 0; s <= greatest; ++s) counts[c][s] += odd_counts[c][s];
  }
  const std::size_t n_bit_bytes = bits.finish();
  Tables tables;
  join_contexts(counts, greatest + 1, tables);
  Steps steps;
  set_steps(tables, steps);

  out.number(static_cast<std::uint8_t>(tables.n_tables));
  for (std::size_t t = 1; t < tables.n_tables; ++t) out.number(tables.first_context[t]);
  std::array<std::uint8_t, kContexts*(kModelSymbols + 3) + 16> table_bytes;
  BitsOut table_bits(table_bytes.data());
  for (std::size_t t = 0; t < tables.n_tables; ++t) put_table(tables.table[t], table_bits);
  const std::size_t n_table_bytes = table_bits.finish();
  out.varint(n_table_bytes);
  out.bytes(table_bytes.data(), n_table_bytes);
  out.varint(n_bit_bytes);
  out.bytes(bit_bytes, n_bit_bytes);

  std::array<std::uint32_t, kModelStates> states;
  std::uint16_t* const end = words + n_words_max;
  const std::uint16_t* first = code_symbols(symbols, contexts, n_codes, tables, steps, states, end);
  const auto n_words = static_cast<std::size_t>(end - first);
  out.varint(n_words);
  for (const std::uint32_t state : states) out.number(state);
  out.bytes(first, n_words * sizeof *first);
  return !out.failed();
}

template bool write_modelled(const std::int32_t*, const std::uint8_t*, std::size_t, ChunkWriter&,
                             Workspace&);
template bool write_modelled(const std::int64_t*, const std::uint8_t*, std::size_t, ChunkWriter&,
                             Workspace&);

// --- reading

namespace {

/// Read one table of frequencies. False if it is invalid.
bool take_table(std::span<const std::uint8_t> bytes, std::size_t& at, Table& table) {
  const auto take = [&](unsigned n_bits) {
    const std::uint32_t bits = bits_at(bytes, at, n_bits);
    at += n_bits;
    return bits;
  };
  table.frequency.fill(0);
  table.most = take(kSymbolBits);
  const unsigned n_symbols = take(kSymbolBits);
  if (table.most >= kModelSymbols || n_symbols > kModelSymbols) return false;
  std::uint32_t others = 0;
  for (unsigned s = 0; s < n_symbols;) {
    const unsigned length = take(kLengthBits);
    if (length == kZerosLength) {
      s += take(kZerosBits) + kZerosLeast;
      continue;
    }
    if (length > kFrequencyBits) return false;
    if (length > 0) {
      const unsigned n_bits = mantissa_bits(length);
      const std::uint32_t frequency = ((1U << n_bits) + take(n_bits)) << (length - 1 - n_bits);
      if (s == table.most) return false;
      table.frequency[s] = frequency;
      others += frequency;
    }
    ++s;
  }
  if (others >= kTotal) return false;
  table.frequency[table.most] = kTotal - others;
  return true;
}

// Entry for each of a table's 2^12 places: the symbol, its frequency less 1, and the place within
// the symbol's range.
constexpr unsigned kFrequencyAt = 8;
constexpr unsigned kPlaceAt = kFrequencyAt + kFrequencyBits;
static_assert(kPlaceAt + kFrequencyBits == 32);

void fill_entries(const Table& table, std::uint32_t* entries) {
  for (unsigned s = 0; s < kModelSymbols; ++s) {
    const std::uint32_t frequency = table.frequency[s];
    if (frequency == 0) continue;
    const std::uint32_t both = s | (frequency - 1) << kFrequencyAt;
    for (std::uint32_t place = 0; place < frequency; ++place) {
      *entries++ = both | place << kPlaceAt;
    }
  }
}

}  // namespace

bool ModelReader::read_tables(ChunkReader& in, Workspace& workspace) {
  const std::size_t n_tables = in.number<std::uint8_t>();
  if (n_tables < 1 || n_tables > kContexts) return false;
  std::array<std::size_t, kContexts + 1> first{};
  for (std::size_t t = 1; t < n_tables; ++t) {
    first[t] = in.number<std::uint8_t>();
    if (first[t] <= first[t - 1] || first[t] >= kContexts) return false;
  }
  first[n_tables] = kContexts;
  const std::uint64_t n_bytes = in.varint();
  const std::uint8_t* bytes =
      n_bytes > in.rest().size() ? nullptr : in.take(static_cast<std::size_t>(n_bytes));
  auto* entries = workspace.area<std::uint32_t>(Slot::class_bytes, n_tables * kTotal);
  memory_out_ = entries == nullptr;
  if (bytes == nullptr || memory_out_) return false;
  std::size_t at = 0;
  for (std::size_t t = 0; t < n_tables; ++t) {
    Table table;
    if (!take_table({bytes, static_cast<std::size_t>(n_bytes)}, at, table)) return false;
    fill_entries(table, entries);
    for (std::size_t c = first[t]; c < first[t + 1]; ++c) table_[c] = entries;
    entries += kTotal;
  }
  return (at + 7) / 8 == n_bytes;
}

bool ModelReader::open(ChunkReader& in, Workspace& workspace) {
  if (!read_tables(in, workspace)) return false;
  const std::uint64_t n_bit_bytes = in.varint();
  const std::uint8_t* bits =
      n_bit_bytes > in.rest().size() ? nullptr : in.take(static_cast<std::size_t>(n_bit_bytes));
  const std::uint64_t n_words = in.varint();
  for (std::uint32_t& state : state_) {
    state = in.number<std::uint32_t>();
    if (state < kStateLeast) return false;
  }
  if (in.failed() || bits == nullptr || n_words > in.rest().size() / 2) return false;
  bit_bytes_ = {bits, static_cast<std::size_t>(n_bit_bytes)};
  n_words_left_ = static_cast<std::size_t>(n_words);
  words_ = in.take(2 * n_words_left_);
  return words_ != nullptr;
}

std::uint32_t ModelReader::bits(unsigned n_bits) {
  const std::uint32_t bits = bits_at(bit_bytes_, bit_at_, n_bits);
  bit_at_ += n_bits;
  return bits;
}

template <bool kChecked>
void ModelReader::read_symbols(const std::uint8_t* contexts, std::size_t n, std::uint8_t* symbols) {
  const std::uint8_t* words = words_;
  std::size_t n_left = n_words_left_;
  const auto read_one = [&](std::size_t i, std::uint32_t& state) {
    const std::uint32_t entry = table_[contexts[i]][state & (kTotal - 1)];
    const std::uint32_t frequency = ((entry >> kFrequencyAt) & (kTotal - 1)) + 1;
    symbols[i] = static_cast<std::uint8_t>(entry);
    std::uint32_t next = frequency * (state >> kFrequencyBits) + (entry >> kPlaceAt);
    if constexpr (kChecked) {
      if (next < kStateLeast && n_left == 0) {
        failed_ = true;
        next = kStateLeast;
      }
    }
    const bool low = next < kStateLeast;
    std::uint16_t word = 0;
    if (!kChecked || low) std::memcpy(&word, words, sizeof word);
    state = low ? next << 16 | word : next;
    words += low ? 2 : 0;
    n_left -= low ? 1 : 0;
  };
  std::size_t i = 0;
  for (; i < n && turn_ != 0; turn_ = (turn_ + 1) % kModelStates) read_one(i++, state_[turn_]);
  std::uint32_t a = state_[0];
  std::uint32_t b = state_[1];
  std::uint32_t c = state_[2];
  std::uint32_t d = state_[3];
  for (; i + kModelStates <= n; i += kModelStates) {
    read_one(i, a);
    read_one(i + 1, b);
    read_one(i + 2, c);
    read_one(i + 3, d);
  }
  state_ = {a, b, c, d};
  for (; i < n; turn_ = (turn_ + 1) % kModelStates) read_one(i++, state_[turn_]);
  words_ = words;
  n_words_left_ = n_left;
}

template <class Code>
void ModelReader::read(const std::uint8_t* contexts, std::size_t n, Code* codes) {
  using Symbols = Alphabet<Code>;
  using Number = typename Symbols::Number;
  std::uint8_t symbols[kPartCodes];
  for (std::size_t begin = 0; begin < n; begin += kPartCodes) {
    const std::size_t n_part = std::min(kPartCodes, n - begin);
    // A code consumes at most one word, and the loop also loads the word after it.
    if (n_words_left_ > n_part) {
      read_symbols<false>(contexts + begin, n_part, symbols);
    } else {
      read_symbols<true>(contexts + begin, n_part, symbols);
    }
    Code* to = codes + begin;
    std::uint8_t greatest = 0;
    for (std::size_t i = 0; i < n_part; ++i) {
      greatest = std::max(greatest, symbols[i]);
      unfold(Number{symbols[i]}, to[i]);
    }
    if (greatest < Symbols::kPlain) continue;
    if (greatest >= Symbols::kSymbols) failed_ = true;
    for (std::size_t i = 0; i < n_part; ++i) {
      if (symbols[i] < Symbols::kPlain || symbols[i] >= Symbols::kSymbols) continue;
      const unsigned n_bits = Symbols::low_bits(symbols[i]);
      const Number leading =
          Symbols::kPerLength + (symbols[i] - Symbols::kPlain) % Symbols::kPerLength;
      const unsigned n_first = std::min(n_bits, 31U);
      const Number first = bits(n_first);
      const Number rest = n_bits > n_first ? bits(n_bits - n_first) : 0;
      unfold(static_cast<Number>(leading << n_bits | rest << n_first | first), to[i]);
    }
  }
}

template void ModelReader::read(const std::uint8_t*, std::size_t, std::int32_t*);
template void ModelReader::read(const std::uint8_t*, std::size_t, std::int64_t*);

bool ModelReader::finished() const {
  const bool begun = std::all_of(state_.begin(), state_.end(),
                                 [](std::uint32_t state) { return state == kStateLeast; });
  return !failed_ && begun && n_words_left_ == 0 && (bit_at_ + 7) / 8 == bit_bytes_.size();
}

}  // namespace tailrace::trz
