// trz and bytes that its encoder never wrote: truncated, flipped, invented, with a valid checksum.
//
// The checksum finds every change of one bit and all truncations. If an attacker makes the checksum
// match, the bytes must give an error or some values. Nothing is read or written out of range (the
// sanitizers' builds run this), and memory stays bounded. The fuzzers (tests/fuzz) continue from
// here.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/trz_cases.hpp"
#include "trz/chunk_header.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

struct Encoded {
  Case chunk;
  Bytes bytes;
};

std::vector<Encoded> small_chunks(std::uint64_t n_seeds, std::uint64_t n_values_max) {
  std::vector<Encoded> all;
  Workspace workspace;
  for (std::uint64_t seed = 1; seed <= n_seeds; ++seed) {
    Random random(seed);
    Encoded one{trz_cases::random_case(random, {n_values_max, true, true}), {}};
    EXPECT_TRUE(round_trip(one.chunk, workspace, &one.bytes)) << "seed " << seed;
    all.push_back(std::move(one));
  }
  return all;
}

Code decode_code(const Bytes& bytes, std::size_t n_values_bytes, const Book* book,
                 Workspace& workspace) {
  Bytes values(n_values_bytes);
  return decode(bytes, values, book, workspace).code();
}

void make_checksum_fit(Bytes& bytes) {
  if (bytes.size() >= kChecksummedFrom) {
    seal({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  }
}

TEST(TrzHostile, EveryTruncationIsFound) {
  Workspace workspace;
  for (const Encoded& one : small_chunks(60, 300)) {
    for (std::size_t n = 0; n < one.bytes.size(); ++n) {
      const Bytes cut(one.bytes.begin(), one.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      ASSERT_EQ(decode_code(cut, one.chunk.values.size(), one.chunk.type.book, workspace),
                Code::corrupt)
          << one.chunk.text() << " cut to " << n;
      ASSERT_FALSE(describe(cut).ok());
    }
    Bytes longer = one.bytes;
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode_code(longer, one.chunk.values.size(), one.chunk.type.book, workspace),
              Code::corrupt);
  }
}

TEST(TrzHostile, EveryFlippedBitIsFound) {
  Workspace workspace;
  for (Encoded& one : small_chunks(40, 200)) {
    for (std::size_t bit = 0; bit < 8 * one.bytes.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1U << (bit % 8));
      one.bytes[bit / 8] ^= mask;
      ASSERT_EQ(decode_code(one.bytes, one.chunk.values.size(), one.chunk.type.book, workspace),
                Code::corrupt)
          << one.chunk.text() << " bit " << bit;
      one.bytes[bit / 8] ^= mask;
    }
  }
}

TEST(TrzHostile, OutputsOfTheWrongSize) {
  Workspace workspace;
  for (const Encoded& one : small_chunks(60, 300)) {
    const std::size_t n = one.chunk.values.size();
    for (const std::size_t wrong : {std::size_t{0}, n / 2, n - 1, n + 1, n + 8, 2 * n + 8}) {
      if (wrong == n) continue;
      if (n == 0 && wrong > (std::size_t{1} << 40)) continue;
      EXPECT_EQ(decode_code(one.bytes, wrong, one.chunk.type.book, workspace), Code::corrupt)
          << one.chunk.text() << ": " << wrong << " for " << n;
    }
  }
}

TEST(TrzHostile, TruncatedWithAFittingChecksum) {
  Workspace workspace;
  for (const Encoded& one : small_chunks(60, 300)) {
    for (std::size_t n = 0; n < one.bytes.size(); ++n) {
      Bytes cut(one.bytes.begin(), one.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      make_checksum_fit(cut);
      EXPECT_NE(decode_code(cut, one.chunk.values.size(), one.chunk.type.book, workspace), Code::ok)
          << one.chunk.text() << " cut to " << n;
    }
  }
}

TEST(TrzHostile, MutatedWithAFittingChecksum) {
  Random random(2024);
  for (Encoded& one : small_chunks(150, 600)) {
    for (int round = 0; round < 200; ++round) {
      Bytes bytes = one.bytes;
      for (std::uint64_t k = 1 + random.below(4); k > 0; --k) {
        // The parameters are at the front and are hit more often.
        const std::size_t reach =
            random.chance(0.5) ? std::min<std::size_t>(bytes.size(), 48) : bytes.size();
        bytes[random.below(reach)] = static_cast<std::byte>(random.next());
      }
      make_checksum_fit(bytes);
      EXPECT_TRUE(whole::stays_in_bounds(bytes, one.chunk.values.size(), one.chunk.type.book));
    }
  }
}

TEST(TrzHostile, HeadsThatMakeNoSense) {
  const auto chunk_of = [](std::initializer_list<unsigned> behind_checksum) {
    Bytes bytes = {std::byte{'T'}, std::byte{'R'}, std::byte{'Z'}, std::byte{1},
                   std::byte{0},   std::byte{0},   std::byte{0},   std::byte{0}};
    for (const unsigned byte : behind_checksum) bytes.push_back(static_cast<std::byte>(byte));
    make_checksum_fit(bytes);
    return bytes;
  };
  Workspace workspace;
  const std::vector<Bytes> all = {
      {},
      chunk_of({}),
      chunk_of({0x00}),
      chunk_of({0x0F, 0}),                 // No such type
      chunk_of({0xF0, 0}),                 // No such method
      chunk_of({0x00, 5, 2, 2, 2, 2, 2}),  // Too many extents
      chunk_of({0x00, 1, 1}),              // An extent of 1
      chunk_of({0x00, 2, 2, 0}),           // An extent of 0
      chunk_of({0x00, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}),
      chunk_of({0x10, 4,    0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F,
                0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}),  // Beyond 64 bits
      chunk_of({0x30, 1, 0x80}),             // A varint without an end.
      chunk_of({0x31, 1, 0}),                // A lattice without values.
      chunk_of({0x20, 1, 0}),                // Exact, without values.
      chunk_of({0x40, 1, 0}),                // Pointwise, without values.
      chunk_of({0x10, 1, 0}),                // One value, without its bytes.
      chunk_of({0x32, 1, 2, 8, 0, 16, 16}),  // A lattice of integers.
      chunk_of({0x50, 1, 4, 2}),             // A vocabulary in version 1.
      chunk_of({0x60, 1, 8, 0, 16, 16}),     // Fitted in version 1.
  };
  for (const Bytes& bytes : all) {
    for (const std::size_t n : {0U, 1U, 4U, 8U, 4096U}) {
      EXPECT_EQ(decode_code(bytes, n, nullptr, workspace), Code::corrupt) << bytes.size();
    }
  }
  Bytes other_version = chunk_of({0x00, 0, 1, 2, 3, 4});
  EXPECT_EQ(decode_code(other_version, 4, nullptr, workspace), Code::ok);
  other_version[3] = std::byte{2};
  make_checksum_fit(other_version);
  EXPECT_EQ(decode_code(other_version, 4, nullptr, workspace), Code::corrupt);
}

/// Chunks of the second version: 2000 values, of one NaN, and of 5 and 300 words (ranks of one byte
/// and of two).
std::vector<Encoded> vocabulary_chunks() {
  std::vector<Encoded> all;
  Workspace workspace;
  for (const std::uint64_t n_words : {5, 300}) {
    Encoded one;
    Random random(n_words);
    std::vector<double> words(n_words);
    for (double& word : words) word = 1000 * random.unit();
    std::vector<double> values(8 * n_words + 2000);
    for (double& value : values) value = words[random.below(n_words)] + 1e-5 * random.unit();
    values[700] = std::nan("");
    one.chunk.type.dtype = DType::f64;
    one.chunk.type.shape = {values.size()};
    one.chunk.type.bound = 1e-3;
    one.chunk.settings.preset = Preset::ratio;
    const auto bytes = std::as_bytes(std::span(values));
    one.chunk.values.assign(bytes.begin(), bytes.end());
    EXPECT_TRUE(round_trip(one.chunk, workspace, &one.bytes));
    EXPECT_EQ(one.bytes[3], std::byte{2}) << describe(one.bytes)->method;
    EXPECT_EQ(one.bytes[8], std::byte{0x51});
    all.push_back(std::move(one));
  }
  return all;
}

TEST(TrzHostile, AVocabularyIsOfTheSecondVersionAlone) {
  Workspace workspace;
  for (Encoded& one : vocabulary_chunks()) {
    for (const int version : {0, 1, 3, 255}) {
      one.bytes[3] = static_cast<std::byte>(version);
      make_checksum_fit(one.bytes);
      EXPECT_EQ(decode_code(one.bytes, one.chunk.values.size(), nullptr, workspace), Code::corrupt);
    }
    one.bytes[3] = std::byte{2};
    for (const unsigned method : {0x01U, 0x11U, 0x21U, 0x31U, 0x41U, 0x61U, 0x52U}) {
      Bytes other = one.bytes;
      other[8] = static_cast<std::byte>(method);
      make_checksum_fit(other);
      EXPECT_EQ(decode_code(other, one.chunk.values.size(), nullptr, workspace), Code::corrupt);
    }
  }
}

TEST(TrzHostile, VocabulariesMutatedWithAFittingChecksum) {
  Random random(11);
  for (const Encoded& one : vocabulary_chunks()) {
    // At the front are the number of words, their lattice, the length of the ranks and their form;
    // patches are at the end.
    for (int round = 0; round < 6000; ++round) {
      Bytes bytes = one.bytes;
      trz_cases::damage(bytes, 40, random);
      EXPECT_TRUE(whole::stays_in_bounds(bytes, one.chunk.values.size(), nullptr));
    }
  }
}

TEST(TrzHostile, ThinChunksOfInterpolationNeedLittleMemory) {
  // Their rows have padding on both sides, which must not become a multiple of the chunk.
  for (const Shape& shape :
       {Shape{20000, 2}, Shape{2, 10000, 2}, Shape{10000, 2, 2}, Shape{9, 9, 2500}, Shape{200000},
        Shape{3, 60000}, Shape{100, 200, 2}}) {
    Case chunk;
    chunk.type.shape = shape;
    chunk.type.bound = 0.01;
    chunk.data = Data::rough;
    Random random(3);
    trz_cases::make_values(chunk, random);
    chunk.settings.predictor = Predictor::interpolation;
    for (int last_axis = 0; last_axis <= 3; ++last_axis) {
      chunk.settings.last_axis = last_axis;
      Workspace encoder;
      Bytes bytes;
      EXPECT_TRUE(round_trip(chunk, encoder, &bytes));
      Workspace decoder;
      EXPECT_EQ(decode_code(bytes, chunk.values.size(), nullptr, decoder), Code::ok);
      EXPECT_LE(decoder.held_bytes(), 8 * chunk.values.size() + (std::size_t{1} << 20))
          << chunk.text();
    }
  }
}

TEST(TrzHostile, AMissingBookIsSaidToBeMissing) {
  Workspace workspace;
  Case chunk;
  chunk.type.shape = {32, 32, 32};
  chunk.type.bound = 0.5;
  chunk.data = Data::rough;
  Random random(5);
  trz_cases::make_values(chunk, random);
  BookHistograms histograms;
  for (Histogram* histogram : {&histograms.class_ids, &histograms.exceptions}) histogram->fill(3);
  for (Histogram& histogram : histograms.class_bytes) histogram.fill(1);
  const Book book = Book::from_histograms(histograms);
  histograms.class_ids[1] = 7000;
  const Book other = Book::from_histograms(histograms);
  chunk.type.book = &book;
  Bytes bytes;
  ASSERT_TRUE(round_trip(chunk, workspace, &bytes));
  const std::size_t n = chunk.values.size();
  EXPECT_EQ(decode_code(bytes, n, &book, workspace), Code::ok);
  EXPECT_EQ(decode_code(bytes, n, nullptr, workspace), Code::not_found);
  EXPECT_EQ(decode_code(bytes, n, &other, workspace), Code::not_found);
}

}  // namespace
}  // namespace tailrace::trz
