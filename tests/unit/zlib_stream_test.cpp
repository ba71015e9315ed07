// Zlib streams of several encoders: zlib decodes them, their sizes are checked, and too little room
// is reported.

#include "codec/zlib_stream.hpp"
#include "support/test_tier.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tailrace::test {
namespace {

using ByteVector = std::vector<std::byte>;

struct FreeCompressor {
  void operator()(libdeflate_compressor* one) const { libdeflate_free_compressor(one); }
};

class Encoder {
 public:
  explicit Encoder(int level) : level_(level), compressor_(libdeflate_alloc_compressor(level)) {}
  std::size_t room(const ByteVector& values) const {
    return libdeflate_zlib_compress_bound(compressor_.get(), values.size());
  }
  std::size_t plain_bytes(const ByteVector& values) const {
    ByteVector to(room(values));
    return libdeflate_zlib_compress(compressor_.get(), values.data(), values.size(), to.data(),
                                    to.size());
  }
  /// The stream, in `room` bytes exactly; empty if it does not fit. Checks that nothing is written
  /// beyond.
  ByteVector encode(const ByteVector& values, std::size_t room) const {
    constexpr std::byte guard{0xA5};
    ByteVector to(room + 64, guard);
    const std::size_t n =
        encode_zlib_stream(*compressor_, level_, values, std::span(to).first(room));
    EXPECT_LE(n, room);
    EXPECT_TRUE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(room), to.end(),
                            [&](std::byte one) { return one == guard; }));
    to.resize(n);
    return to;
  }

 private:
  int level_;
  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor_;
};

/// Decoded by zlib, not by our decoder.
ByteVector decoded(const ByteVector& stream, std::size_t n) {
  ByteVector values(n + 1);
  uLongf n_values = values.size();
  const int state = uncompress(reinterpret_cast<Bytef*>(values.data()), &n_values,
                               reinterpret_cast<const Bytef*>(stream.data()), stream.size());
  EXPECT_EQ(state, Z_OK);
  values.resize(n_values);
  return values;
}

ByteVector random_bytes(std::size_t n, unsigned n_symbols, unsigned seed) {
  std::mt19937 numbers(seed);
  ByteVector bytes(n);
  for (std::byte& one : bytes) one = std::byte(numbers() % n_symbols);
  return bytes;
}

void append(ByteVector& to, const ByteVector& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Smooth values with some noise, shuffled: noise at the front and repetitions at the back, or
/// reversed.
template <class T>
ByteVector shuffled_field(std::size_t n, bool big_endian) {
  std::mt19937 numbers(7);
  ByteVector bytes(n * sizeof(T));
  for (std::size_t i = 0; i < n; ++i) {
    const double noise = static_cast<double>(numbers() % 1000) * 1e-5;
    const T value = static_cast<T>(273 + 20 * std::sin(static_cast<double>(i) * 1e-4) + noise);
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
    if (big_endian) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(T)),
                   bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * sizeof(T)));
    }
  }
  ByteVector planes(bytes.size());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < sizeof(T); ++b) planes[b * n + i] = bytes[i * sizeof(T) + b];
  }
  return planes;
}

TEST(ZlibStream, ZlibReadsWhatFieldsBecomeAndTheirSizesAreLibdeflates) {
  TierSample some(3);
  for (const std::size_t n : {4096U, 20000U, 65536U, 200001U}) {
    for (const bool big_endian : {false, true}) {
      for (const ByteVector& values :
           {shuffled_field<float>(n, big_endian), shuffled_field<double>(n, big_endian)}) {
        for (const int level : {1, 4, 6, 9, 12}) {
          if (!some.take()) continue;
          SCOPED_TRACE(std::to_string(n) + " at level " + std::to_string(level));
          const Encoder encoder(level);
          const ByteVector stream = encoder.encode(values, encoder.room(values));
          EXPECT_EQ(decoded(stream, values.size()), values);
          const auto plain = static_cast<double>(encoder.plain_bytes(values));
          // libdeflate's level 1 divides into blocks only by length.
          const double within = level == 1 ? 1.02 : 1.005;
          EXPECT_LT(static_cast<double>(stream.size()), within * plain + 32);
        }
      }
    }
  }
}

TEST(ZlibStream, NoiseStaysAsItIs) {
  const ByteVector values = random_bytes(1 << 20, 256, 1);
  const Encoder encoder(4);
  const ByteVector stream = encoder.encode(values, encoder.room(values));
  EXPECT_LT(stream.size(), values.size() + values.size() / 4000);
  EXPECT_EQ(stream[2], std::byte{0});  // A stored block that is not the last one.
  EXPECT_EQ(decoded(stream, values.size()), values);
}

TEST(ZlibStream, BytesWithoutMatchesAreCodedAsLiterals) {
  const ByteVector values = random_bytes(1 << 20, 100, 1);
  const Encoder encoder(4);
  const ByteVector stream = encoder.encode(values, encoder.room(values));
  EXPECT_EQ(stream[2] & std::byte{7}, std::byte{0b100});  // A dynamic block, not the last.
  EXPECT_LT(static_cast<double>(stream.size()), std::log2(100) / 8 * 1.02 * (1 << 20));
  EXPECT_EQ(decoded(stream, values.size()), values);
}

class NoiseThatComesAgain : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(OfSymbols, NoiseThatComesAgain, ::testing::Values(3, 8, 12, 16, 40, 256));

/// Counts of bytes alone do not reveal the repetition.
TEST_P(NoiseThatComesAgain, IsFoundAtAnyDistance) {
  TierSample some(3);
  for (const std::size_t period : {1U, 3U, 180U, 1447U, 7777U, 20011U, 31000U}) {
    if (!some.take()) continue;
    SCOPED_TRACE(period);
    // Repeated only once, then other noise: like rows that are equal in pairs.
    ByteVector pairs;
    ByteVector tiled;
    for (unsigned i = 0; pairs.size() < (1U << 18); ++i) {
      const ByteVector row = random_bytes(period, GetParam(), i);
      append(pairs, row);
      append(pairs, row);
      append(tiled, random_bytes(period, GetParam(), 5));
    }
    for (const ByteVector& values : {pairs, tiled}) {
      const Encoder encoder(4);
      const ByteVector stream = encoder.encode(values, encoder.room(values));
      EXPECT_EQ(decoded(stream, values.size()), values);
      EXPECT_LT(static_cast<double>(stream.size()),
                1.01 * static_cast<double>(encoder.plain_bytes(values)) + 32);
    }
  }
}

TEST(ZlibStream, PartsOfAllKindsInAnyOrder) {
  std::mt19937 numbers(11);
  const auto number = [&](unsigned below) { return static_cast<unsigned>(numbers() % below); };
  for (int turn = 0; turn < tier_rounds(120, 4); ++turn) {
    SCOPED_TRACE(turn);
    ByteVector values;
    const unsigned n_parts = 1 + number(6);
    for (unsigned part = 0; part < n_parts; ++part) {
      const std::size_t n = 1 + number(turn % 2 == 0 ? 40000 : 150000);
      switch (number(5)) {
        case 0: append(values, random_bytes(n, 256, number(1U << 31))); break;
        case 1: append(values, random_bytes(n, 2 + number(254), number(1U << 31))); break;
        case 2: append(values, ByteVector(n, std::byte(number(256)))); break;
        case 3: {
          const ByteVector word = random_bytes(1 + number(300), 256, number(1U << 31));
          for (std::size_t i = 0; i < n; ++i) values.push_back(word[i % word.size()]);
          break;
        }
        default: {
          ByteVector rare(n, std::byte{7});  // One byte almost everywhere: a code of few bits.
          for (std::size_t i = 0; i < n; i += 1 + number(9)) rare[i] = std::byte(number(256));
          append(values, rare);
        }
      }
    }
    const Encoder encoder(1 + static_cast<int>(number(12)));
    const ByteVector stream = encoder.encode(values, encoder.room(values));
    ASSERT_FALSE(stream.empty());
    ASSERT_EQ(decoded(stream, values.size()), values);
    // Room for the stream and for fast writes beyond it; with less, the encoder reports failure.
    EXPECT_EQ(encoder.encode(values, stream.size() + 160), stream);
    for (int i = 0; i < 4; ++i) {
      const std::size_t less = number(static_cast<unsigned>(stream.size()));
      EXPECT_TRUE(encoder.encode(values, less).empty());
    }
  }
}

TEST(ZlibStream, AnyLengthFitsTheRoomThatLibdeflateAsksFor) {
  const ByteVector noise = random_bytes(300000, 256, 3);
  ByteVector mixed = noise;  // Every other 32 KiB twice: parts are searched, for next to nothing.
  for (std::size_t at = 0; at + 65536 < mixed.size(); at += 65536) {
    for (std::size_t i = 0; i < 600; ++i) mixed[at + 20000 + i] = mixed[at + 19000 + i];
  }
  const Encoder encoder(4);
  for (const ByteVector& all : {noise, mixed}) {
    for (std::size_t n = 0; n <= all.size(); n += n < 40 ? 1 : 8191) {
      const ByteVector values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
      const ByteVector stream = encoder.encode(values, encoder.room(values));
      ASSERT_FALSE(stream.empty()) << n;
      ASSERT_EQ(decoded(stream, n), values);
    }
  }
}

TEST(ZlibStream, NextToNoRoomIsRefused) {
  const ByteVector noise = random_bytes(40000, 256, 3);
  for (std::size_t room = 0; room < 40; ++room) {
    EXPECT_TRUE(Encoder(4).encode(noise, room).empty());
  }
}

}  // namespace
}  // namespace tailrace::test
