// Huffman coding: the canonical code, the tables of encoder and decoder, and the parts.
//
// Canonical code: symbols sorted by length, then by value, get ascending codes, so the lengths
// define the code. The decoder's table is built from smaller tables of the same kind: a code of l
// bits is followed by the contents of a table of bits - l bits. Entries with the same first code
// are contiguous, so each step adds one number to a run of entries.

#include "trz/entropy/huffman.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include "trz/kernels/byte_kernels.hpp"

namespace tailrace::trz {

// --- Code lengths: computed from a histogram.
//
// Two queues over the sorted counts build Huffman's tree (van Leeuwen 1976). Lengths beyond the
// limit are then cut, and moving the fewest and cheapest leaves makes the code complete again. The
// result is within a fraction of a per cent of the best limited code, for a tenth of its cost.

namespace {

struct Leaf {
  std::uint32_t count;
  std::uint32_t symbol;
};

/// List the symbols that occur, by ascending count, then value (stable radix sort). Returns their
/// number.
int sorted_leaves(const Histogram& histogram, Leaf* leaves) {
  Leaf other[256];
  int n = 0;
  std::uint32_t all = 0;
  for (std::uint32_t s = 0; s < 256; ++s) {
    if (histogram[s] == 0) continue;
    all |= histogram[s];
    leaves[n++] = {histogram[s], s};
  }
  for (unsigned shift = 0; shift < 32 && (all >> shift) != 0; shift += 8) {
    std::uint32_t begin[257] = {};
    for (int i = 0; i < n; ++i) ++begin[((leaves[i].count >> shift) & 0xFF) + 1];
    for (int d = 1; d < 256; ++d) begin[d] += begin[d - 1];
    for (int i = 0; i < n; ++i) other[begin[(leaves[i].count >> shift) & 0xFF]++] = leaves[i];
    std::memcpy(leaves, other, static_cast<std::size_t>(n) * sizeof(Leaf));
  }
  return n;
}

/// Count the leaves of Huffman's tree at each depth; leaves deeper than `limit` count at `limit`.
void count_depths(const Leaf* leaves, int n, int limit, int* n_at) {
  std::uint64_t weight[256];  // Weights of the inner nodes, in order of creation.
  int parent[512];            // Parents of leaves 0..n-1, then of inner nodes n..2n-2.
  int leaf = 0;
  int inner = 0;
  for (int made = 0; made < n - 1; ++made) {
    weight[made] = 0;
    for (int child = 0; child < 2; ++child) {
      const bool take_leaf = leaf < n && (inner >= made || leaves[leaf].count <= weight[inner]);
      weight[made] += take_leaf ? leaves[leaf].count : weight[inner];
      parent[take_leaf ? leaf++ : n + inner++] = n + made;
    }
  }
  int depth[512];
  depth[2 * n - 2] = 0;
  for (int node = 2 * n - 3; node >= 0; --node) {
    depth[node] = depth[parent[node]] + 1;
    if (node < n) ++n_at[std::min(depth[node], limit)];
  }
}

/// Make the code complete: the sum of 2^-length over all leaves becomes 1. First, leaves get longer
/// that cost the fewest bits for the code space they free. Then, if the last step freed too much,
/// leaves get shorter.
void complete(const Leaf* leaves, int limit, int* n_at) {
  int excess = -(1 << limit);  // The unit is 2^-limit.
  for (int length = 1; length <= limit; ++length) excess += n_at[length] << (limit - length);
  if (excess == 0) return;
  // Leaves of equal length are contiguous: first[l] is the rarest leaf of length l.
  int first[kCodeBitsMax + 2];
  first[limit] = 0;
  for (int l = limit; l >= 1; --l) first[l - 1] = first[l] + n_at[l];
  while (excess > 0) {
    int best = 0;
    std::uint64_t best_cost = UINT64_MAX;
    for (int l = 1; l < limit; ++l) {
      if (first[l - 1] == first[l]) continue;
      const std::uint64_t cost = std::uint64_t{leaves[first[l]].count} << l;
      if (cost <= best_cost) {
        best_cost = cost;
        best = l;
      }
    }
    ++first[best];
    excess -= 1 << (limit - best - 1);
  }
  while (excess < 0) {
    int best = 0;
    std::uint64_t best_gain = 0;
    for (int l = 2; l <= limit; ++l) {
      if (first[l - 1] == first[l] || (1 << (limit - l)) > -excess) continue;
      const std::uint64_t gain = std::uint64_t{leaves[first[l - 1] - 1].count} << l;
      if (gain >= best_gain) {
        best_gain = gain;
        best = l;
      }
    }
    --first[best - 1];
    excess += 1 << (limit - best);
  }
  for (int l = limit; l >= 1; --l) n_at[l] = first[l - 1] - first[l];
}

}  // namespace

int code_limit(std::uint64_t n_symbols) {
  if (n_symbols < 512) return 10;
  return n_symbols < 4096 ? 11 : kCodeBitsMax;
}

CodeLengths code_lengths(const Histogram& histogram, int limit) {
  CodeLengths lengths;
  Leaf leaves[256];
  const int n = sorted_leaves(histogram, leaves);
  if (n <= 1) {
    if (n == 1) lengths.bits[leaves[0].symbol] = 1;
    return lengths;
  }
  int n_at[kCodeBitsMax + 1] = {};
  count_depths(leaves, n, limit, n_at);
  complete(leaves, limit, n_at);
  int i = 0;
  for (int length = limit; length >= 1; --length) {
    for (int k = 0; k < n_at[length]; ++k) {
      lengths.bits[leaves[i++].symbol] = static_cast<std::uint8_t>(length);
    }
  }
  return lengths;
}

std::uint64_t encoded_bits(const Histogram& histogram, const CodeLengths& lengths) {
  std::uint64_t bits = 0;
  bool lost = false;
  for (std::size_t s = 0; s < 256; ++s) {
    bits += std::uint64_t{histogram[s]} * lengths.bits[s];
    lost = lost || (histogram[s] != 0 && lengths.bits[s] == 0);
  }
  return lost ? UINT64_MAX : bits;
}

// --- Compact code lengths: predicted from neighbours; differences have a variable-length code.
//
// Code lengths vary smoothly: for bytes that are signed numbers along +-n, for packed codes along
// both fields, for counts from one to the next. So each length is predicted from earlier lengths in
// the best of three orders, and the difference is coded. Absent symbols have the longest length
// plus 1, and a run of them is coded as its length. A typical table takes about 40 bytes, as
// nibbles 88. If no prediction helps, the lengths are written as nibbles. Layout:
// trz/docs/trz-format.md, "Code lengths".

namespace {

/// Order of the lengths: the low two bits of the first byte, whose upper four bits are the longest
/// length.
enum class Order : std::uint8_t { natural = 0, mirrored = 1, grid = 2, nibbles = 3 };

constexpr unsigned kOnesOfEscape = 5;  ///< Ones of an escape: four bits of the value follow.
constexpr std::size_t kTextBytesMax = 256 * 10 / 8 + 16;
constexpr unsigned kZeroRunNibble = 15;

/// A table's 256 values, 1..absent, in the order of writing.
using Row = std::array<std::uint8_t, 256>;

/// The order 0, -1, 1, -2, 2, ..., -127, 127, -128, as bytes.
constexpr std::array<std::uint8_t, 256> mirrored_order() {
  std::array<std::uint8_t, 256> order{};
  for (unsigned i = 1; i < 256; ++i) {
    order[i] = static_cast<std::uint8_t>(i % 2 == 1 ? 256 - (i + 1) / 2 : i / 2);
  }
  return order;
}
constexpr std::array<std::uint8_t, 256> kMirrored = mirrored_order();

std::uint8_t middle(int a, int b, int c) {
  return static_cast<std::uint8_t>(std::max(std::min(a, b), std::min(std::max(a, b), c)));
}

/// Prediction of row[i] from earlier values. natural: the previous value. mirrored: the mean of the
/// previous two, rounded up. grid, in 16 columns: the median of left, above and
/// left + above - (left of above).
inline std::uint8_t predicted(const Row& row, Order order, std::size_t i, std::uint8_t absent) {
  if (i == 0) return absent;
  if (order == Order::natural) return row[i - 1];
  if (order == Order::mirrored) {
    return i == 1 ? absent : static_cast<std::uint8_t>((row[i - 1] + row[i - 2] + 1) / 2);
  }
  if (i < 16) return row[i - 1];
  if (i % 16 == 0) return row[i - 16];
  return middle(row[i - 1], row[i - 16], row[i - 1] + row[i - 16] - row[i - 17]);
}

/// Compute all predictions of a row, in loops that the compiler vectorises.
void predict_row(const Row& row, Order order, std::uint8_t absent, Row& predictions) {
  if (order == Order::natural) {
    std::memcpy(predictions.data() + 1, row.data(), 255);
  } else if (order == Order::mirrored) {
    for (std::size_t i = 2; i < 256; ++i) {
      predictions[i] = static_cast<std::uint8_t>((row[i - 1] + row[i - 2] + 1) / 2);
    }
    predictions[1] = absent;
  } else {
    // An offset of 16 prevents negative differences.
    for (std::size_t i = 17; i < 256; ++i) {
      const std::uint8_t left = row[i - 1];
      const std::uint8_t above = row[i - 16];
      const std::uint8_t low = left < above ? left : above;
      const std::uint8_t high = left < above ? above : left;
      const auto plane = static_cast<std::uint8_t>(left + above + 16 - row[i - 17]);
      const auto top = static_cast<std::uint8_t>(high + 16);
      const auto bottom = static_cast<std::uint8_t>(low + 16);
      const std::uint8_t below_top = plane < top ? plane : top;
      predictions[i] = static_cast<std::uint8_t>((below_top > bottom ? below_top : bottom) - 16);
    }
    for (std::size_t i = 1; i < 16; ++i) predictions[i] = row[i - 1];
    for (std::size_t i = 16; i < 256; i += 16) predictions[i] = row[i - 16];
  }
  predictions[0] = absent;
}

/// True if a run length of absent symbols is coded at i: an absent symbol is predicted, and the
/// previous two, as far as they exist, are absent.
inline bool begins_run(const Row& row, std::size_t i, std::uint8_t prediction,
                       std::uint8_t absent) {
  return prediction == absent && (i < 1 || row[i - 1] == absent) && (i < 2 || row[i - 2] == absent);
}

/// Map a difference to an unsigned number: 0, 1, -1, 2, -2, ... become 0, 1, 2, 3, 4, ...
unsigned folded(int difference) {
  return static_cast<unsigned>(difference > 0 ? 2 * difference - 1 : -2 * difference);
}
int unfolded(unsigned number) {
  const int half = static_cast<int>((number + 1) / 2);
  return number % 2 == 1 ? half : -half;
}

/// Approximate bits of a row; an absent symbol that is predicted costs nothing.
unsigned cost(const Row& row, const Row& predictions, std::uint8_t absent) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::uint8_t value = row[i];
    const std::uint8_t prediction = predictions[i];
    const std::uint8_t high = value > prediction ? value : prediction;
    const std::uint8_t low = value > prediction ? prediction : value;
    const auto number = static_cast<std::uint8_t>(2 * (high - low) - (value > prediction ? 1 : 0));
    const std::uint8_t known = number < kOnesOfEscape ? number : kOnesOfEscape + 3;
    const bool free = low == absent;
    bits += free ? 0U : known + 1U;
  }
  return bits;
}

class TextWriter {
 public:
  explicit TextWriter(std::uint8_t* out) : out_(out) {}

  void bits(std::uint32_t value, unsigned n_bits) {
    held_ = (held_ << n_bits) | value;
    n_held_ += n_bits;
    while (n_held_ >= 8) {
      n_held_ -= 8;
      *out_++ = static_cast<std::uint8_t>(held_ >> n_held_);
    }
  }
  /// Write a number as ones and a zero. From kOnesOfEscape on, kOnesOfEscape ones precede `value`.
  void number(unsigned number, std::uint8_t value) {
    if (number < kOnesOfEscape) {
      bits((2U << number) - 2, number + 1);
    } else {
      bits((((1U << kOnesOfEscape) - 1) << 4) | value, kOnesOfEscape + 4);
    }
  }
  /// Write n >= 1 in Elias' gamma code.
  void count(std::uint32_t n) {
    const auto width = static_cast<unsigned>(std::bit_width(n));
    bits(n, 2 * width - 1);
  }
  std::uint8_t* finish() {
    if (n_held_ != 0) bits(0, 8 - n_held_);
    return out_;
  }

 private:
  std::uint8_t* out_;
  std::uint64_t held_ = 0;
  unsigned n_held_ = 0;
};

class TextReader {
 public:
  explicit TextReader(std::span<const std::uint8_t> in) : in_(in) {}

  std::uint32_t bits(unsigned n_bits) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < n_bits; ++i) value = (value << 1) | bit();
    return value;
  }
  unsigned ones(unsigned n_most) {
    unsigned n = 0;
    while (n < n_most && bit() != 0) ++n;
    return n;
  }
  std::uint32_t count() {
    unsigned n_zeros = 0;
    while (n_zeros < 9 && bit() == 0) ++n_zeros;
    return (1U << n_zeros) | bits(n_zeros);
  }
  /// The bytes read; 0 if the input was too short or its last byte is not padded with zeros.
  std::size_t finish() {
    while (at_ % 8 != 0) {
      if (bit() != 0) return 0;
    }
    return at_ / 8 <= in_.size() ? at_ / 8 : 0;
  }

 private:
  unsigned bit() {
    const std::size_t byte = at_ / 8;
    const unsigned shift = 7 - at_++ % 8;
    return byte < in_.size() ? (in_[byte] >> shift) & 1U : 0U;
  }

  std::span<const std::uint8_t> in_;
  std::size_t at_ = 0;
};

std::size_t write_row(const Row& row, const Row& predictions, Order order, std::uint8_t absent,
                      std::uint8_t* out) {
  TextWriter text(out);
  text.bits((static_cast<unsigned>(absent - 1) << 4) | static_cast<unsigned>(order), 8);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::uint8_t prediction = predictions[i];
    if (!begins_run(row, i, prediction, absent)) {
      text.number(folded(row[i] - prediction), row[i]);
      continue;
    }
    std::size_t end = i;
    while (end < 256 && row[end] == absent) ++end;
    text.count(static_cast<std::uint32_t>(end - i + 1));
    if (end < 256) text.number(static_cast<unsigned>(absent - 1 - row[end]), row[end]);
    i = end;
  }
  return static_cast<std::size_t>(text.finish() - out);
}

/// Read a row. Returns the bytes read, or 0 if the input is invalid.
std::size_t read_row(std::span<const std::uint8_t> in, Order order, std::uint8_t absent, Row& row) {
  TextReader text(in);
  text.bits(8);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::uint8_t prediction = predicted(row, order, i, absent);
    const bool run = begins_run(row, i, prediction, absent);
    if (run) {
      const std::size_t n_absent = text.count() - 1;
      if (n_absent > 256 - i) return 0;
      std::fill_n(row.begin() + static_cast<std::ptrdiff_t>(i), n_absent, absent);
      i += n_absent;
      if (i == 256) break;
    }
    const unsigned ones = text.ones(kOnesOfEscape);
    const int value = ones == kOnesOfEscape ? static_cast<int>(text.bits(4))
                      : run                 ? absent - 1 - static_cast<int>(ones)
                                            : prediction + unfolded(ones);
    if (value < 1 || value > absent) return 0;
    row[i] = static_cast<std::uint8_t>(value);
  }
  return text.finish();
}

std::size_t write_nibbles(const CodeLengths& lengths, std::uint8_t* out) {
  std::uint8_t nibbles[256 + 2];
  std::size_t n = 0;
  for (std::size_t s = 0; s < 256;) {
    std::size_t end = s;
    while (end < 256 && end - s < 18 && lengths.bits[end] == 0) ++end;
    if (end - s >= 3) {
      nibbles[n++] = kZeroRunNibble;
      nibbles[n++] = static_cast<std::uint8_t>(end - s - 3);
      s = end;
    } else {
      nibbles[n++] = lengths.bits[s++];
    }
  }
  nibbles[n] = 0;
  out[0] = static_cast<std::uint8_t>(Order::nibbles);
  for (std::size_t i = 0; i < n; i += 2) {
    out[1 + i / 2] = static_cast<std::uint8_t>((nibbles[i] << 4) | nibbles[i + 1]);
  }
  return 1 + (n + 1) / 2;
}

std::size_t read_nibbles(std::span<const std::uint8_t> in, CodeLengths& lengths) {
  TextReader text(in);
  if (text.bits(8) != static_cast<unsigned>(Order::nibbles)) return 0;
  for (std::size_t s = 0; s < 256;) {
    const std::uint32_t nibble = text.bits(4);
    if (nibble == kZeroRunNibble) {
      s += text.bits(4) + 3;
      if (s > 256) return 0;
    } else {
      lengths.bits[s++] = static_cast<std::uint8_t>(nibble);
    }
  }
  return text.finish();
}

bool is_complete_code(const CodeLengths& lengths) {
  std::uint32_t sum = 0;
  int n = 0;
  for (const std::uint8_t length : lengths.bits) {
    if (length > kCodeBitsMax) return false;
    if (length == 0) continue;
    sum += 1U << (kCodeBitsMax - length);
    ++n;
  }
  return sum == 1U << kCodeBitsMax || (n == 1 && sum == 1U << (kCodeBitsMax - 1));
}

}  // namespace

std::size_t write_lengths(const CodeLengths& lengths, std::uint8_t* out) {
  const auto longest = std::max_element(lengths.bits.begin(), lengths.bits.end());
  const auto absent = static_cast<std::uint8_t>(*longest + 1);
  Row rows[2];  // [0]: natural and grid order; [1]: mirrored order.
  for (std::size_t s = 0; s < 256; ++s) {
    rows[0][s] = lengths.bits[s] == 0 ? absent : lengths.bits[s];
  }
  for (std::size_t i = 0; i < 256; ++i) rows[1][i] = rows[0][kMirrored[i]];
  Row predictions[3];
  Order best = Order::natural;
  unsigned best_cost = UINT_MAX;
  for (const Order order : {Order::natural, Order::mirrored, Order::grid}) {
    const Row& row = rows[order == Order::mirrored ? 1 : 0];
    Row& expected = predictions[static_cast<std::size_t>(order)];
    predict_row(row, order, absent, expected);
    const unsigned bits = cost(row, expected, absent);
    if (bits < best_cost) {
      best_cost = bits;
      best = order;
    }
  }
  std::uint8_t text[kTextBytesMax];
  const std::size_t n_text =
      write_row(rows[best == Order::mirrored ? 1 : 0], predictions[static_cast<std::size_t>(best)],
                best, absent, text);
  if (n_text > kLengthsBytesMax / 2) {
    const std::size_t n_nibbles = write_nibbles(lengths, out);
    if (n_nibbles <= n_text) return n_nibbles;
  }
  std::memcpy(out, text, n_text);
  return n_text;
}

std::size_t read_lengths(std::span<const std::uint8_t> in, CodeLengths& lengths) {
  lengths = {};
  if (in.empty()) return 0;
  const auto order = static_cast<Order>(in[0] & 3);
  std::size_t n_read = 0;
  if (order == Order::nibbles) {
    n_read = read_nibbles(in, lengths);
  } else {
    const auto absent = static_cast<std::uint8_t>((in[0] >> 4) + 1);
    if ((in[0] & 0x0C) != 0 || absent > kCodeBitsMax + 1) return 0;
    Row row;
    n_read = read_row(in, order, absent, row);
    if (n_read == 0) return 0;
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t symbol = order == Order::mirrored ? kMirrored[i] : i;
      lengths.bits[symbol] = row[i] == absent ? 0 : row[i];
    }
  }
  return n_read != 0 && is_complete_code(lengths) ? n_read : 0;
}

namespace {

/// Symbols per part. Few symbols form one part, more form six parts, many a multiple of twelve.
/// Decoders have up to six lanes; they take twelve parts because parts differ in bits per symbol,
/// so lanes end at different times.
std::size_t part_symbols_of(std::uint64_t n_symbols) {
  constexpr std::uint64_t parts_at_once = 12;
  if (n_symbols <= 2048) return std::max(static_cast<std::size_t>(n_symbols), std::size_t{1});
  if (n_symbols <= 32768) return static_cast<std::size_t>((n_symbols + 5) / 6);
  constexpr std::uint64_t most = parts_at_once * kPartSymbolsMax;
  const std::uint64_t n_parts = parts_at_once * ((n_symbols + most - 1) / most);
  return static_cast<std::size_t>((n_symbols + n_parts - 1) / n_parts);
}

std::uint64_t header_bytes_of(std::uint64_t n_symbols) {
  const std::size_t part_symbols = part_symbols_of(n_symbols);
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

/// Tables of the symbols in m bits, for every m below kCodeBitsMax, in one array: the table of m
/// begins at entry 2^m. An entry is 0 if no symbol is complete within m bits.
struct PartialTables {
  std::uint32_t entries[1U << kCodeBitsMax];

  std::uint32_t* of(int m) { return entries + (std::size_t{1} << m); }
  const std::uint32_t* of(int m) const { return entries + (std::size_t{1} << m); }
};

/// Fill the table of m bits. The first symbol of an entry is in its byte `place`. The symbols after
/// it come from `rest`, which has the tables of m - length bits (null: no more symbols).
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
  // At most longest - shortest bits follow a first symbol, and longest - 2 shortest bits a second.
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
