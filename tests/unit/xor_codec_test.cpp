// The codec xor. Both builds of its kernels give the same bytes and values, and no chunk exceeds
// encoded_bytes_max(). No input makes the decoder access memory out of range.
//
// codec_conformance_test.cpp tests that values return bit for bit with the registry's settings.
// tests/python/test_xor.py checks the format with a second decoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "unit/codec_samples.hpp"
#include "xor/xor_chunk.hpp"

namespace tailrace::neighbour_xor {
namespace {

using tailrace::test::Random;
using Bytes = std::vector<std::byte>;

/// Encodes with a build; the buffer has exactly the required size.
Bytes encoded_by(Build build, const ChunkType& type, const Bytes& values) {
  Bytes encoded(encoded_bytes_max(values.size()));
  const Result<std::size_t> n = encode(type, values, encoded, build);
  EXPECT_TRUE(n.ok()) << n.status().message();
  encoded.resize(n.ok() ? *n : 0);
  return encoded;
}

void check(const ChunkType& type, const Bytes& values) {
  const Bytes plain = encoded_by(Build::plain, type, values);
  for (const Build build : {Build::plain, Build::avx2}) {
    if (!build_supported(build)) continue;
    EXPECT_EQ(encoded_by(build, type, values), plain);
    Bytes decoded(values.size(), std::byte{0xA5});
    const Status done = decode(plain, decoded, build);
    ASSERT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(decoded, values);
  }
}

/// Words with random numbers of bits, so that every form occurs.
Bytes odd_widths(std::size_t n_words, std::size_t word_bytes, unsigned least, unsigned greatest,
                 unsigned shift, Random& random) {
  Bytes bytes(n_words * word_bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < n_words; ++i) {
    const unsigned width = least + static_cast<unsigned>(random.next() % (greatest - least + 1));
    const std::uint64_t bits =
        width == 0 ? 0 : random.next() >> (64 - width) | std::uint64_t{1} << (width - 1);
    value ^= bits << shift;
    std::memcpy(bytes.data() + i * word_bytes, &value, word_bytes);
  }
  return bytes;
}

TEST(XorCodec, BuildsAgreeOnEveryWidthAndForm) {
  Random random;
  for (const std::size_t word_bytes : {1U, 2U, 4U, 8U}) {
    const auto n_bits = static_cast<unsigned>(8 * word_bytes);
    for (unsigned least = 0; least <= n_bits; least += 1 + least / 8) {
      for (const unsigned range : {0U, 1U, 3U, 9U, 15U, 16U, 40U}) {
        const unsigned greatest = std::min(n_bits, least + range);
        const unsigned shift = random.next() % 3 == 0 ? (n_bits - greatest) / 2 : 0;
        const std::size_t n = 1 + random.next() % 2500;
        SCOPED_TRACE(std::to_string(word_bytes) + " bytes, widths " + std::to_string(least) +
                     " to " + std::to_string(greatest) + ", " + std::to_string(n) + " words");
        check({.element_bytes = word_bytes, .shape = {n}, .dimension = 1},
              odd_widths(n, word_bytes, least, greatest, shift, random));
      }
    }
  }
}

/// The decoder copies the end of a chunk to a place where it may read beyond it. These chunks end
/// at every byte of their last blocks.
TEST(XorCodec, EveryLengthAroundTheCopiedEndReturns) {
  Random random;
  for (std::size_t n = 3250; n < 3330; ++n) {
    check({.element_bytes = 4, .shape = {n}, .dimension = 1}, odd_widths(n, 4, 20, 20, 0, random));
  }
}

TEST(XorCodec, EveryShapeAndDimensionReturns) {
  const Shape shapes[] = {{1},         {7},          {1023},        {1024},           {1025},
                          {5000},      {3, 5},       {700, 6},      {40, 33},         {2, 31, 33},
                          {9, 11, 64}, {2, 1, 3000}, {3, 4, 5, 70}, {2, 3, 4, 5, 60}, {}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : tailrace::test::all_dtypes) {
      for (const auto& sample : tailrace::test::samples_of(dtype, n_elements(shape))) {
        for (int dimension = 0; dimension <= 3; ++dimension) {
          SCOPED_TRACE(sample.name + ", " + shape_text(shape) + ", dimension " +
                       std::to_string(dimension));
          check({.element_bytes = dtype_bytes(dtype), .shape = shape, .dimension = dimension},
                sample.bytes);
        }
      }
    }
  }
}

TEST(XorCodec, ElementsOfAnyLengthAndMisalignedOnesReturn) {
  Random random;
  for (const std::size_t element_bytes : {3U, 5U, 12U, 16U, 40U}) {
    Bytes values(element_bytes * 700);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] =
          static_cast<std::byte>(i % element_bytes == 0 ? random.next() : i % element_bytes);
    }
    const ChunkType type = {.element_bytes = element_bytes, .shape = {700}, .dimension = 0};
    check(type, values);
    EXPECT_LT(encoded_by(Build::plain, type, values).size(), values.size());
  }
  const Bytes words = odd_widths(3001, 8, 10, 30, 0, random);
  Bytes moved(words.size() + 1);
  std::memcpy(moved.data() + 1, words.data(), words.size());
  const ChunkType type = {.element_bytes = 8, .shape = {3001}, .dimension = 0};
  for (const Build build : {Build::plain, Build::avx2}) {
    if (!build_supported(build)) continue;
    Bytes encoded(encoded_bytes_max(words.size()));
    const auto given = std::span<const std::byte>(moved).subspan(1);
    const Result<std::size_t> n = encode(type, given, encoded, build);
    ASSERT_TRUE(n.ok());
    Bytes decoded(moved.size());
    EXPECT_TRUE(decode(std::span(encoded).first(*n), std::span(decoded).subspan(1), build).ok());
    EXPECT_TRUE(std::equal(words.begin(), words.end(), decoded.begin() + 1));
  }
}

TEST(XorCodec, NoiseTakesExactlyTheMost) {
  Random random;
  for (const std::size_t n : {1U, 15U, 16U, 127U, 1000U, 9000U}) {
    for (const std::size_t element_bytes : {1U, 4U, 8U}) {
      Bytes values(n * element_bytes);
      for (std::byte& byte : values) byte = static_cast<std::byte>(random.next());
      const ChunkType type = {.element_bytes = element_bytes, .shape = {n}, .dimension = 0};
      const Bytes encoded = encoded_by(best_build(), type, values);
      EXPECT_LE(encoded.size(), encoded_bytes_max(values.size()));
      if (n >= 16) {
        EXPECT_EQ(encoded.size(), encoded_bytes_max(values.size()));
      }
      check(type, values);
    }
  }
  EXPECT_EQ(encoded_bytes_max(0), 10U);
  EXPECT_EQ(encoded_bytes_max(127), 137U);
  EXPECT_EQ(encoded_bytes_max(128), 139U);
}

TEST(XorCodec, AConstantChunkTakesAFewBytes) {
  Bytes values(8'000'000, std::byte{0});
  for (std::size_t at = 0; at < values.size(); at += 8) values[at + 3] = std::byte{77};
  const ChunkType type = {.element_bytes = 8, .shape = {1000000}, .dimension = 0};
  EXPECT_LT(encoded_by(best_build(), type, values).size(), 200U);
  check(type, values);
}

/// zlib's CRC-32, so that damage passes the checksum.
std::uint32_t crc_32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

void seal(Bytes& chunk) {
  if (chunk.size() < 8) return;
  const std::uint32_t crc = crc_32(std::span<const std::byte>(chunk).subspan(8));
  std::memcpy(chunk.data() + 4, &crc, sizeof crc);
}

/// Expects the same result from every build. Both buffers end with the bytes, so that the address
/// sanitizer detects any access out of range.
void check_damaged(const Bytes& chunk, std::size_t n_values_bytes) {
  const auto given = std::make_unique<std::byte[]>(chunk.size());
  std::copy(chunk.begin(), chunk.end(), given.get());
  Bytes first;
  for (const Build build : {Build::plain, Build::avx2}) {
    if (!build_supported(build)) continue;
    Bytes values(n_values_bytes);
    const Status done = decode({given.get(), chunk.size()}, values, build);
    if (!done.ok()) {
      EXPECT_EQ(done.code(), Code::corrupt);
      values.clear();
    }
    if (build == Build::plain) first = values;
    EXPECT_EQ(values, first);
  }
}

TEST(XorCodec, DamageBehindTheChecksumIsSurvived) {
  Random random;
  for (const std::size_t word_bytes : {1U, 4U, 8U}) {
    for (const unsigned greatest : {3U, 8U, 30U, 64U}) {
      const auto n_bits = static_cast<unsigned>(8 * word_bytes);
      const Bytes values = odd_widths(2600, word_bytes, 0, std::min(n_bits, greatest), 0, random);
      const Bytes chunk = encoded_by(
          best_build(), {.element_bytes = word_bytes, .shape = {26, 100}, .dimension = 0}, values);
      for (int round = 0; round < 300; ++round) {
        Bytes bent = chunk;
        // The head and the first block's head are hit more often than the rest.
        const std::size_t reach =
            round % 2 == 0 ? std::min<std::size_t>(40, bent.size()) : bent.size();
        for (int flip = 0; flip <= round % 3; ++flip) {
          bent[random.next() % reach] = static_cast<std::byte>(random.next());
        }
        if (round % 5 == 0) bent.resize(random.next() % bent.size());
        seal(bent);
        check_damaged(bent, values.size());
      }
    }
  }
}

TEST(XorCodec, DamageAndWrongLengthsAreRefused) {
  Random random;
  const Bytes values = odd_widths(3000, 4, 5, 20, 0, random);
  const Bytes chunk =
      encoded_by(best_build(), {.element_bytes = 4, .shape = {3000}, .dimension = 0}, values);
  Bytes decoded(values.size());
  for (std::size_t n = 0; n < chunk.size(); n += 1 + n / 16) {
    EXPECT_EQ(decode(std::span(chunk).first(n), decoded, best_build()).code(), Code::corrupt);
  }
  for (std::size_t at = 0; at < chunk.size(); at += 1 + at / 16) {
    Bytes bent = chunk;
    bent[at] ^= std::byte{4};
    EXPECT_EQ(decode(bent, decoded, best_build()).code(), Code::corrupt) << at;
  }
  Bytes shorter(values.size() - 4);
  EXPECT_EQ(decode(chunk, shorter, best_build()).code(), Code::corrupt);
  Bytes later = chunk;
  later[3] = std::byte{2};
  EXPECT_EQ(decode(later, decoded, best_build()).message(),
            "xor: the chunk needs a newer xor: format version 2, expected 1");
  for (const auto& [bit, text] :
       {std::pair(5, "0x20"), std::pair(6, "0x40"), std::pair(7, "0x80")}) {
    later = chunk;
    later[8] |= static_cast<std::byte>(1U << bit);
    seal(later);
    EXPECT_EQ(decode(later, decoded, best_build()).message(),
              std::string("xor: the chunk needs a newer xor: unknown feature bits ") + text);
  }
  Bytes out(encoded_bytes_max(values.size()));
  EXPECT_EQ(
      encode({.element_bytes = 4, .shape = {2999}}, values, out, best_build()).status().code(),
      Code::invalid_argument);
  EXPECT_EQ(encode({.element_bytes = 4, .shape = {3000}, .dimension = 4}, values, out, best_build())
                .status()
                .code(),
            Code::invalid_argument);
  out.pop_back();
  EXPECT_EQ(
      encode({.element_bytes = 4, .shape = {3000}}, values, out, best_build()).status().code(),
      Code::invalid_argument);
}

TEST(XorCodec, ClientDataReturnAndNonsenseIsRefused) {
  const ChunkType type = {.element_bytes = 8, .shape = {3, 40, 50}, .dimension = 2};
  const Result<ClientData> data = read_client_words(client_words(type));
  ASSERT_TRUE(data.ok() && data->chunk);
  EXPECT_EQ(data->dimension, 2);
  EXPECT_EQ(data->chunk->shape, type.shape);
  EXPECT_EQ(data->chunk->element_bytes, 8U);
  EXPECT_EQ(data->chunk->dimension, 2);
  EXPECT_TRUE(read_client_words({}).ok());
  EXPECT_TRUE(read_client_words(client_words(3)).ok());
  using Words = std::vector<std::uint32_t>;
  for (const Words& words :
       {Words{0}, Words{2}, Words{1 | 4 << 8}, Words{1 | 1 << 17}, Words{1, 4}, Words{1 | 1 << 16},
        Words{1 | 1 << 16, 0, 5}, Words{1 | 1 << 16, 4, 0},
        Words{1 | 1 << 16, 8, UINT32_MAX, UINT32_MAX}, Words(40, 1 | 1 << 16)}) {
    EXPECT_EQ(read_client_words(words).status().code(), Code::invalid_argument) << words[0];
  }
}

}  // namespace
}  // namespace tailrace::neighbour_xor
