// Exceptions as symbols and bits: every code is restored, and damaged input is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "trz/entropy/code_sections.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace::trz {
namespace {

std::vector<std::int32_t> awkward_codes() {
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  std::vector<std::int32_t> codes = {
      0, 111, 112, -112, -113, least, least + 1, std::numeric_limits<std::int32_t>::max()};
  for (int b = 0; b < 31; ++b) {
    for (const std::int32_t d : {-1, 0, 1}) {
      codes.push_back((1 << b) + d);
      codes.push_back(-((1 << b) + d));
    }
  }
  test::Random random;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t r = random.next();
    codes.push_back(static_cast<std::int32_t>(r) >> (r >> 32) % 32);
  }
  return codes;
}

TEST(TrzExceptions, EveryCodeReturns) {
  const std::vector<std::int32_t> codes = awkward_codes();
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{6}, codes.size()}) {
    const std::span<const std::int32_t> some(codes.data() + codes.size() - n, n);
    std::vector<std::uint8_t> symbols(n);
    std::vector<std::uint8_t> bits(4 * n + 8);
    bits.resize(put_exception_symbols(some, symbols.data(), bits.data()));
    EXPECT_EQ(bits.size(), exception_bit_bytes(symbols));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(symbols[i], exception_symbol(some[i]));
    std::vector<std::int32_t> back(n);
    ASSERT_TRUE(take_exception_symbols(symbols, bits, back.data()));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), back.begin()));
  }
}

TEST(TrzExceptions, BytesAreThoseOfTheDocument) {
  // z = 223 is a symbol; 224 and 511 have 8 and 9 bits, of which 7 and 8
  // follow.
  const std::vector<std::int32_t> codes = {-112, 112, -256};
  std::vector<std::uint8_t> symbols(3);
  std::vector<std::uint8_t> bits(20);
  bits.resize(put_exception_symbols(codes, symbols.data(), bits.data()));
  EXPECT_EQ(symbols, (std::vector<std::uint8_t>{223, 224, 225}));
  EXPECT_EQ(bits, (std::vector<std::uint8_t>{0x60 | 0x80, 0x7F}));
}

TEST(TrzExceptions, DamagedInputIsRefused) {
  const std::vector<std::int32_t> codes = awkward_codes();
  std::vector<std::uint8_t> symbols(codes.size());
  std::vector<std::uint8_t> bits(4 * codes.size() + 8);
  bits.resize(put_exception_symbols(codes, symbols.data(), bits.data()));
  std::vector<std::int32_t> back(codes.size());
  const std::span<const std::uint8_t> whole(bits);
  EXPECT_FALSE(take_exception_symbols(symbols, whole.first(bits.size() - 1), back.data()));
  EXPECT_FALSE(take_exception_symbols(symbols, {}, back.data()));
  for (const unsigned wrong : {kExceptionSymbols, 255U}) {
    std::vector<std::uint8_t> damaged = symbols;
    damaged[17] = static_cast<std::uint8_t>(wrong);
    EXPECT_FALSE(take_exception_symbols(damaged, bits, back.data()));
  }
}

}  // namespace
}  // namespace tailrace::trz
