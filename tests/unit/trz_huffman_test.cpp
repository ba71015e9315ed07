// The Huffman coder. Lengths are complete and near the entropy, every instruction set writes and
// reads the same bytes, and sizes are known exactly in advance. Hostile bytes are refused or
// decoded into other symbols, never out of range (run under ASan and UBSan).

#include "trz/entropy/huffman.hpp"
#include "unit/trz_isas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

namespace tailrace::trz {
namespace {

using Octets = std::vector<std::uint8_t>;

/// n signed symbols around 0 with a two-sided geometric distribution; larger decay is flatter.
Octets peaked(std::size_t n, double decay, unsigned seed) {
  std::mt19937 random(seed);
  std::geometric_distribution<int> magnitude(1 - decay);
  Octets bytes(n);
  for (std::uint8_t& byte : bytes) {
    const int m = std::min(magnitude(random), 127);
    byte = static_cast<std::uint8_t>((random() & 1) != 0 ? m : -m);
  }
  return bytes;
}

Histogram histogram_of(const Octets& bytes) {
  Histogram histogram{};
  count_bytes(bytes, histogram);
  return histogram;
}

double entropy_bits(const Histogram& histogram) {
  double total = 0;
  double bits = 0;
  for (const std::uint32_t count : histogram) total += count;
  for (const std::uint32_t count : histogram) {
    if (count != 0) bits -= count * std::log2(count / total);
  }
  return bits;
}

double kraft_sum(const CodeLengths& lengths) {
  double sum = 0;
  for (const std::uint8_t length : lengths.bits) sum += length == 0 ? 0 : std::ldexp(1.0, -length);
  return sum;
}

/// Decodes between buffers of exact sizes, so that ASan detects any access out of range.
bool decode_exact(const Octets& encoded, const CodeLengths& lengths, Octets& symbols, Isa isa) {
  const auto table = std::make_unique<DecodeTable>();
  build_decode_table(lengths, *table);
  return huffman_decode(encoded, *table, symbols, isa);
}

void expect_round_trip(const Octets& symbols, int limit) {
  const Histogram histogram = histogram_of(symbols);
  const CodeLengths lengths = code_lengths(histogram, limit);
  const std::uint64_t n_bytes = huffman_bytes(symbols.size(), encoded_bits(histogram, lengths));
  Octets first;
  for (const Isa isa : isas()) {
    Octets encoded(n_bytes);
    ASSERT_EQ(huffman_encode(symbols, lengths, encoded, isa), n_bytes) << isa_name(isa);
    if (first.empty()) first = encoded;
    EXPECT_EQ(encoded, first) << isa_name(isa);
    Octets decoded(symbols.size(), 0xAA);
    ASSERT_TRUE(decode_exact(encoded, lengths, decoded, isa)) << isa_name(isa);
    EXPECT_EQ(decoded, symbols) << isa_name(isa);
  }
}

constexpr std::size_t kSizes[] = {1,     2,     3,      5,      63,     64,    65,
                                  511,   513,   2048,   2049,   4099,   8191,  32768,
                                  32769, 40000, 131072, 131073, 200001, 600001};

TEST(TrzHuffman, round_trip_of_all_sizes_and_shapes) {
  for (const std::size_t n : kSizes) {
    for (const double decay : {0.05, 0.5, 0.9, 0.99}) {
      SCOPED_TRACE(testing::Message() << n << " symbols, decay " << decay);
      expect_round_trip(peaked(n, decay, 7), code_limit(n));
      expect_round_trip(peaked(n, decay, 8), 12);
    }
  }
}

TEST(TrzHuffman, round_trip_of_uniform_and_of_two_symbols) {
  Octets uniform(50000);
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    uniform[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
  }
  expect_round_trip(uniform, 8);
  Octets two(50000, 3);
  two[777] = 250;
  expect_round_trip(two, 12);
  expect_round_trip(Octets(50000, 9), 12);
  expect_round_trip(Octets(1, 9), 12);
}

TEST(TrzHuffman, lengths_are_complete_limited_and_near_the_entropy) {
  for (const double decay : {0.1, 0.5, 0.8, 0.95, 0.99}) {
    const Histogram histogram = histogram_of(peaked(200000, decay, 3));
    for (int limit = 8; limit <= 12; ++limit) {
      const CodeLengths lengths = code_lengths(histogram, limit);
      EXPECT_EQ(kraft_sum(lengths), 1.0);
      EXPECT_LE(*std::max_element(lengths.bits.begin(), lengths.bits.end()), limit);
    }
    const CodeLengths lengths = code_lengths(histogram, 12);
    const auto bits = static_cast<double>(encoded_bits(histogram, lengths));
    EXPECT_LT(bits, std::max(1.03 * entropy_bits(histogram), 200000 * 1.35)) << decay;
  }
}

TEST(TrzHuffman, lengths_of_fibonacci_counts_stay_within_the_limit) {
  Histogram histogram{};
  std::uint32_t a = 1;
  std::uint32_t b = 1;
  for (std::size_t s = 0; s < 40; ++s) {
    histogram[s] = a;
    b += a;
    std::swap(a, b);
  }
  for (int limit = 8; limit <= 12; ++limit) {
    const CodeLengths lengths = code_lengths(histogram, limit);
    EXPECT_EQ(kraft_sum(lengths), 1.0);
    EXPECT_LE(*std::max_element(lengths.bits.begin(), lengths.bits.end()), limit);
  }
}

TEST(TrzHuffman, lengths_of_random_histograms_are_complete_and_come_back) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 3000; ++trial) {
    Histogram histogram{};
    const auto n = static_cast<unsigned>(2 + random() % 255);
    for (unsigned i = 0; i < n; ++i) {
      histogram[random() % 256] = 1 + (static_cast<std::uint32_t>(random()) >> (random() % 32));
    }
    const CodeLengths lengths = code_lengths(histogram, 8 + trial % 5);
    std::uint8_t text[kLengthsBytesMax];
    const std::size_t n_text = write_lengths(lengths, text);
    ASSERT_LE(n_text, kLengthsBytesMax);
    CodeLengths back;
    const Octets exact(text, text + n_text);
    ASSERT_EQ(read_lengths(exact, back), n_text);
    EXPECT_EQ(back, lengths);
    CodeLengths truncated;
    EXPECT_EQ(read_lengths(std::span(exact).first(n_text - 1), truncated), 0U);
  }
}

TEST(TrzHuffman, lengths_that_are_no_complete_code_are_refused) {
  for (const int n_ones : {0, 3}) {
    CodeLengths lengths;
    for (int s = 0; s < n_ones; ++s) lengths.bits[static_cast<std::size_t>(s)] = 1;
    std::uint8_t text[kLengthsBytesMax];
    const std::size_t n_text = write_lengths(lengths, text);
    CodeLengths back;
    EXPECT_EQ(read_lengths({text, n_text}, back), 0U);
  }
}

TEST(TrzHuffman, random_lengths_text_never_gives_an_incomplete_code) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 20000; ++trial) {
    Octets text(random() % 200);
    for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(random());
    CodeLengths lengths;
    const std::size_t n = read_lengths(text, lengths);
    ASSERT_LE(n, text.size());
    if (n != 0) {
      EXPECT_TRUE(kraft_sum(lengths) == 1.0 || kraft_sum(lengths) == 0.5);
    }
  }
}

TEST(TrzHuffman, a_symbol_without_a_code_or_a_lack_of_room_is_refused) {
  Octets symbols = peaked(70000, 0.5, 1);
  const Histogram histogram = histogram_of(symbols);
  const CodeLengths lengths = code_lengths(histogram, 12);
  const std::uint64_t n_bytes = huffman_bytes(symbols.size(), encoded_bits(histogram, lengths));
  for (const Isa isa : isas()) {
    for (const std::size_t room : {std::size_t{0}, std::size_t{5}, std::size_t{30}, n_bytes / 2,
                                   n_bytes - 100, n_bytes - 1}) {
      Octets small(room);
      EXPECT_EQ(huffman_encode(symbols, lengths, small, isa), 0U) << room;
    }
    for (const std::size_t where : {std::size_t{0}, std::size_t{33333}, symbols.size() - 1}) {
      Octets other = symbols;
      other[where] = 100;  // This symbol does not occur.
      Octets out(2 * n_bytes);
      EXPECT_EQ(huffman_encode(other, lengths, out, isa), 0U) << where;
    }
  }
  EXPECT_EQ(encoded_bits(Histogram{{0, 1}}, CodeLengths{}), UINT64_MAX);
}

TEST(TrzHuffman, truncated_and_longer_input_is_refused) {
  for (const std::size_t n : {std::size_t{100}, std::size_t{3000}, std::size_t{40000}}) {
    const Octets symbols = peaked(n, 0.7, 2);
    const CodeLengths lengths = code_lengths(histogram_of(symbols), 11);
    Octets encoded(2 * n);
    encoded.resize(huffman_encode(symbols, lengths, encoded));
    for (const Isa isa : isas()) {
      Octets decoded(n);
      for (std::size_t size = 0; size < encoded.size(); size += 1 + size / 8) {
        EXPECT_FALSE(
            decode_exact(Octets(encoded.begin(), encoded.begin() + static_cast<long>(size)),
                         lengths, decoded, isa));
      }
      Octets longer = encoded;
      longer.push_back(0);
      EXPECT_FALSE(decode_exact(longer, lengths, decoded, isa));
    }
  }
}

TEST(TrzHuffman, flipped_bits_and_noise_stay_in_range) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t n = 1 + random() % (trial % 8 == 0 ? 150000 : 5000);
    const Octets symbols = peaked(n, 0.3 + 0.1 * (trial % 7), 12);
    const CodeLengths lengths = code_lengths(histogram_of(symbols), 8 + trial % 5);
    Octets encoded(2 * n + 64);
    encoded.resize(huffman_encode(symbols, lengths, encoded));
    ASSERT_FALSE(encoded.empty());
    if (trial % 3 == 0) {
      for (std::uint8_t& byte : encoded) byte = static_cast<std::uint8_t>(random());
    } else {
      for (int flip = 0; flip < 3; ++flip) {
        const std::size_t reach =
            trial % 3 == 1 ? std::min<std::size_t>(encoded.size(), 24) : encoded.size();
        encoded[random() % reach] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      }
    }
    Octets first;
    for (const Isa isa : isas()) {
      Octets decoded(n);
      const bool done = decode_exact(encoded, lengths, decoded, isa);
      if (!done) decoded.clear();
      if (isa == Isa::plain) first = decoded;
      EXPECT_EQ(decoded, first) << isa_name(isa);
    }
  }
}

TEST(TrzHuffman, histogram_counts_every_byte) {
  for (const std::size_t n : {0, 1, 9, 1000, 1031, 65537}) {
    const Octets bytes = peaked(n, 0.9, 4);
    Histogram expected{};
    for (const std::uint8_t byte : bytes) ++expected[byte];
    for (const Isa isa : isas()) {
      Histogram found{};
      count_bytes(bytes, found, isa);
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(TrzHuffman, a_sample_misses_no_byte_and_is_the_same_everywhere) {
  for (const std::size_t n : {1000U, 131071U, 131072U, 300007U, 1000064U}) {
    Octets bytes = peaked(n, 0.6, 4);
    bytes[n - 1] = 101;  // Once each, so that the sample hardly sees them.
    bytes[n / 3] = 102;
    bytes[n / 2] = 103;
    const Histogram all = histogram_of(bytes);
    Histogram first{};
    const std::uint64_t n_counted = count_some_bytes(bytes, first, Isa::plain);
    EXPECT_LE(n_counted, n);
    if (n > 500000) {
      EXPECT_LT(n_counted, n / 6);
    }
    std::uint64_t total = 0;
    for (std::size_t s = 0; s < 256; ++s) {
      total += first[s];
      EXPECT_LE(first[s], all[s]);
      EXPECT_EQ(first[s] == 0, all[s] == 0) << s;
    }
    EXPECT_EQ(total, n_counted);
    for (const Isa isa : isas()) {
      Histogram found{};
      EXPECT_EQ(count_some_bytes(bytes, found, isa), n_counted);
      EXPECT_EQ(found, first) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace tailrace::trz
