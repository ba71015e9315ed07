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
#include "trz/joined.hpp"
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
      chunk_of({0x50, 1, 4, 2}),             // A vocabulary without words.
      chunk_of({0x60, 1, 8, 0, 16, 16}),     // Fitted, without a step.
  };
  for (const Bytes& bytes : all) {
    for (const std::size_t n : {0U, 1U, 4U, 8U, 4096U}) {
      EXPECT_EQ(decode_code(bytes, n, nullptr, workspace), Code::corrupt) << bytes.size();
    }
  }
  EXPECT_EQ(decode_code(chunk_of({0x00, 0, 1, 2, 3, 4}), 4, nullptr, workspace), Code::ok);
}

TEST(TrzHostile, ChunksOfALaterTrzAreRefusedByName) {
  Workspace workspace;
  for (const Encoded& one : small_chunks(20, 300)) {
    const auto expect_refused = [&](std::size_t at, unsigned byte, const std::string& why) {
      Bytes bytes = one.bytes;
      bytes[at] = static_cast<std::byte>(byte);
      make_checksum_fit(bytes);
      Bytes values(one.chunk.values.size());
      const Status status = decode(bytes, values, one.chunk.type.book, workspace);
      EXPECT_EQ(status.code(), Code::corrupt);
      EXPECT_EQ(status.message(), "trz chunk: " + why);
      EXPECT_EQ(describe(bytes).status().message(), status.message());
    };
    const auto expect_newer = [&](std::size_t at, unsigned byte, const std::string& why) {
      expect_refused(at, byte, "needs a newer trz: " + why);
    };
    for (unsigned version = 2; version < 8; ++version) {
      expect_refused(kVersionAt, version,
                     "format version " + std::to_string(version) +
                         " is of a development version older than format 1, which no release "
                         "reads; write the data again");
    }
    for (const unsigned version : {0U, 8U, 255U}) {
      expect_newer(kVersionAt, version,
                   "format version " + std::to_string(version) + ", expected 1");
    }
    const auto n_extents = static_cast<unsigned>(one.bytes[kExtentsAt]);
    EXPECT_LE(n_extents, 4U);
    for (unsigned bit = 3; bit < 8; ++bit) {
      const char* const texts[] = {"0x08", "0x10", "0x20", "0x40", "0x80"};
      expect_newer(kExtentsAt, n_extents | 1U << bit,
                   std::string("unknown feature bits ") + texts[bit - 3]);
    }
    expect_newer(kExtentsAt, 0xFF, "unknown feature bits 0xf8");
    const auto kinds = static_cast<unsigned>(one.bytes[kKindsAt]);
    for (unsigned method = kMethods; method < 16; ++method) {
      expect_newer(kKindsAt, method << 4 | (kinds & 0x0FU),
                   "unknown method " + std::to_string(method));
    }
    for (unsigned dtype = 10; dtype < 16; ++dtype) {
      expect_newer(kKindsAt, (kinds & 0xF0U) | dtype,
                   "unknown element type " + std::to_string(dtype));
    }
  }
}

TEST(TrzHostile, ChunksOfALaterTrzWithinOthersAreRefusedByName) {
  Case chunk;
  chunk.type.shape = {40, 40, 40};
  chunk.type.bound = 1e-3;
  chunk.settings.predictor = Predictor::interpolation;
  chunk.settings.coarse_views = 1;
  Random random(4);
  trz_cases::make_values(chunk, random);
  Workspace workspace;
  Bytes nested;
  ASSERT_TRUE(round_trip(chunk, workspace, &nested));
  const std::optional<ByteRange> inner = coarse_view(nested, 1);
  ASSERT_TRUE(inner);
  Bytes joined(joined_bytes_max(nested.size(), nested.size()));
  joined.resize(join(nested, 1000, nested, joined).value());
  const auto expect_newer = [&](Bytes bytes, std::size_t begin, std::size_t n_bytes) {
    bytes[begin + kExtentsAt] |= std::byte{8};
    seal({reinterpret_cast<std::uint8_t*>(bytes.data()) + begin, n_bytes});
    make_checksum_fit(bytes);
    Bytes values(chunk.values.size());
    EXPECT_EQ(decode(bytes, values, nullptr, workspace).message(),
              "trz chunk: needs a newer trz: unknown form of a chunk within it");
  };
  expect_newer(nested, inner->begin, inner->n_bytes);
  expect_newer(joined, joined.size() - nested.size(), nested.size());
}

/// Chunks of 2000 values, of one NaN, and of 5 and 300 words (ranks of one byte and of two).
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
    EXPECT_EQ(one.bytes[8], std::byte{0x51}) << describe(one.bytes)->method;
    all.push_back(std::move(one));
  }
  return all;
}

TEST(TrzHostile, AVocabularyIsOfItsMethodAlone) {
  Workspace workspace;
  for (const Encoded& one : vocabulary_chunks()) {
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
