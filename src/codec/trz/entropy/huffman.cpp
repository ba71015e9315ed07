// Huffman coding: the canonical code, the tables of encoder and decoder, the parts.
//
// Canonical: symbols in order of length, then of value, get rising codes, so the lengths say all.
// The decoder's table is made from smaller ones of the same kind: what follows a code of l bits is
// a table of bits - l bits, and codes that begin the same stand together, so every step is one
// addition over a run of entries.

#include "codec/trz/entropy/huffman.hpp"

#include <algorithm>
#include <cstring>

#include "codec/trz/kernels/byte_kernels.hpp"

namespace tailrace::trz {
namespace {

/// Few symbols are one part; more are six, then a multiple of twelve, for decoders of up to six
/// lanes (twelve: parts differ in bits a symbol, so lanes end at different times).
std::uint64_t part_symbols_of(std::uint64_t n_symbols) {
  constexpr std::uint64_t parts_at_once = 12;
  if (n_symbols <= 2048) return std::max<std::uint64_t>(n_symbols, 1);
  if (n_symbols <= 32768) return (n_symbols + 5) / 6;
  constexpr std::uint64_t most = parts_at_once * kPartSymbolsMax;
  const std::uint64_t n_parts = parts_at_once * ((n_symbols + most - 1) / most);
  return (n_symbols + n_parts - 1) / n_parts;
}

std::uint64_t header_bytes_of(std::uint64_t n_symbols) {
  const std::uint64_t part_symbols = part_symbols_of(n_symbols);
  const std::uint64_t n_parts = (n_symbols + part_symbols - 1) / part_symbols;
  return n_parts == 0 ? 0 : part_length_bytes(part_symbols) * (n_parts - 1);
}

/// The symbols that have a code, in canonical order.
struct CanonicalOrder {
  std::uint8_t symbols[256];
  int n_symbols = 0;
  int longest = 0;
};

CanonicalOrder canonical_order(const CodeLengths& lengths) {
  CanonicalOrder order;
  int next[kCodeBitsMax + 2] = {};
  for (const std::uint8_t length : lengths.bits) ++next[length + 1];
  order.n_symbols = 256 - next[1];
  next[1] = 0;
  for (int length = 2; length <= kCodeBitsMax + 1; ++length) next[length] += next[length - 1];
  for (int s = 0; s < 256; ++s) {
    const std::uint8_t length = lengths.bits[static_cast<std::size_t>(s)];
    if (length != 0) order.symbols[next[length]++] = static_cast<std::uint8_t>(s);
    order.longest = std::max<int>(order.longest, length);
  }
  return order;
}

EncodeTable encode_table(const CodeLengths& lengths) {
  EncodeTable table;
  std::fill(std::begin(table.entries), std::end(table.entries), kNoCode);
  const CanonicalOrder order = canonical_order(lengths);
  std::uint32_t code = 0;
  int length_before = 0;
  for (int i = 0; i < order.n_symbols; ++i) {
    const std::uint8_t symbol = order.symbols[i];
    const int length = lengths.bits[symbol];
    code <<= length - length_before;
    table.entries[symbol] = (code << 6) | static_cast<std::uint32_t>(length);
    ++code;
    length_before = length;
  }
  return table;
}

}  // namespace

void count_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram, Isa isa) {
  histogram_kernels(isa).count(bytes.data(), bytes.size(), histogram.data());
}

std::uint64_t count_some_bytes(std::span<const std::uint8_t> bytes, Histogram& histogram, Isa isa) {
  if (bytes.size() < 131072) {
    count_bytes(bytes, histogram, isa);
    return bytes.size();
  }
  const HistogramKernels& kernels = histogram_kernels(isa);
  const std::size_t window_bytes = kSampleRunBytes * std::min<std::size_t>(bytes.size() / 65536, 8);
  std::uint64_t n_counted =
      kernels.count_sample(bytes.data(), bytes.size(), window_bytes, histogram.data());
  std::uint8_t seen[256];
  for (std::size_t s = 0; s < 256; ++s) seen[s] = histogram[s] != 0 ? 1 : 0;
  const std::size_t n_in_blocks = bytes.size() / 64 * 64;
  const auto count_block = [&](std::size_t at, std::size_t n) {
    for (std::size_t i = at; i < at + n; ++i) {
      ++histogram[bytes[i]];
      seen[bytes[i]] = 1;
    }
    n_counted += n;
  };
  for (std::size_t at = 0; at < n_in_blocks; at += 64) {
    at += kernels.find_unseen(bytes.data() + at, n_in_blocks - at, seen);
    if (at < n_in_blocks) count_block(at, 64);
  }
  count_block(n_in_blocks, bytes.size() - n_in_blocks);
  return n_counted;
}

std::uint64_t huffman_bytes(std::uint64_t n_symbols, std::uint64_t bits) {
  return header_bytes_of(n_symbols) + (bits + 7) / 8;
}

std::size_t huffman_encode(std::span<const std::uint8_t> symbols, const CodeLengths& lengths,
                           std::span<std::uint8_t> out, Isa isa) {
  if (symbols.empty()) return 0;
  const EncodeTable table = encode_table(lengths);
  return huffman_kernels(isa).encode(symbols.data(), symbols.size(),
                                     part_symbols_of(symbols.size()), table, out.data(),
                                     out.data() + out.size());
}

namespace {

/// Tables of the symbols that m bits hold, for every m below `bits`, one behind the other: that of
/// m begins at 2^m. An entry is 0 if no symbol is complete within m bits.
struct PartialTables {
  std::uint32_t entries[1U << kCodeBitsMax];

  std::uint32_t* of(int m) { return entries + (std::size_t{1} << m); }
  const std::uint32_t* of(int m) const { return entries + (std::size_t{1} << m); }
};

/// The table of m bits whose first symbol stands in byte `place`; what follows it comes from
/// `rest`, tables of all m - length (null: nothing).
void fill_table(const CanonicalOrder& order, const CodeLengths& lengths, int m, unsigned place,
                const PartialTables* rest, std::uint32_t* table) {
  std::uint32_t* at = table;
  for (int i = 0; i < order.n_symbols; ++i) {
    const std::uint8_t symbol = order.symbols[i];
    const int length = lengths.bits[symbol];
    if (length > m) break;
    const std::uint32_t entry =
        (std::uint32_t{symbol} << (8 * place)) | (static_cast<std::uint32_t>(length + 64) << 24);
    const std::size_t n_run = std::size_t{1} << (m - length);
    if (rest == nullptr || n_run == 1) {
      std::fill_n(at, n_run, entry);
    } else {
      const std::uint32_t* next = rest->of(m - length);
      for (std::size_t k = 0; k < n_run; ++k) at[k] = entry + next[k];
    }
    at += n_run;
  }
  std::fill(at, table + (std::size_t{1} << m), 0);
}

}  // namespace

void build_decode_table(const CodeLengths& lengths, DecodeTable& table) {
  const CanonicalOrder order = canonical_order(lengths);
  std::copy(lengths.bits.begin(), lengths.bits.end(), table.length_of);
  table.bits = order.longest;
  table.lone_symbol = order.n_symbols == 1 ? order.symbols[0] : -1;
  if (order.n_symbols < 2) return;
  // Behind a first symbol there are at most bits - shortest bits, and so on.
  const int shortest = lengths.bits[order.symbols[0]];
  PartialTables third;
  PartialTables second;
  for (int m = 0; m <= order.longest - 2 * shortest; ++m) {
    fill_table(order, lengths, m, 2, nullptr, third.of(m));
  }
  for (int m = 0; m <= order.longest - shortest; ++m) {
    fill_table(order, lengths, m, 1, &third, second.of(m));
  }
  fill_table(order, lengths, order.longest, 0, &second, table.entries);
}

bool huffman_decode(std::span<const std::uint8_t> in, const DecodeTable& table,
                    std::span<std::uint8_t> symbols, Isa isa) {
  if (symbols.empty() || table.bits == 0) return symbols.empty() && in.empty();
  if (table.lone_symbol >= 0) {
    const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
    const std::uint64_t header_bytes = header_bytes_of(symbols.size());
    if (in.size() != huffman_bytes(symbols.size(), symbols.size()) ||
        !std::all_of(in.begin() + static_cast<std::ptrdiff_t>(header_bytes), in.end(), is_zero)) {
      return false;
    }
    std::memset(symbols.data(), table.lone_symbol, symbols.size());
    return true;
  }
  return huffman_kernels(isa).decode(in.data(), in.size(), table, part_symbols_of(symbols.size()),
                                     symbols.data(), symbols.size());
}

}  // namespace tailrace::trz
