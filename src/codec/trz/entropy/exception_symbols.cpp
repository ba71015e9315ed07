// Exceptions as bytes and bits: see exception_symbols.hpp.

#include "codec/trz/entropy/exception_symbols.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace tailrace::trz {
namespace {

constexpr unsigned kPlainSymbols = 224;  ///< Symbols that are z itself.
constexpr unsigned kLeastLength = 8;     ///< Bits of the smallest z that has none.

std::uint32_t zigzag(std::int32_t code) {
  return (static_cast<std::uint32_t>(code) << 1) ^ static_cast<std::uint32_t>(code >> 31);
}

std::int32_t unzigzag(std::uint32_t z) {
  return static_cast<std::int32_t>((z >> 1) ^ (0U - (z & 1U)));
}

unsigned symbol_of(std::uint32_t z) {
  if (z < kPlainSymbols) return z;
  return kPlainSymbols + static_cast<unsigned>(std::bit_width(z)) - kLeastLength;
}

/// Bits behind a symbol: L - 1, or 0.
unsigned bits_behind(unsigned symbol) {
  return symbol < kPlainSymbols ? 0 : symbol - kPlainSymbols + kLeastLength - 1;
}

}  // namespace

unsigned exception_symbol(std::int32_t code) { return symbol_of(zigzag(code)); }

std::size_t exception_bit_bytes(std::span<const std::uint8_t> symbols) {
  std::size_t n_bits = 0;
  unsigned largest = 0;
  for (const std::uint8_t symbol : symbols) {
    n_bits += bits_behind(symbol);
    largest = symbol > largest ? symbol : largest;
  }
  if (largest >= kExceptionSymbols) return std::numeric_limits<std::size_t>::max();
  return (n_bits + 7) / 8;
}

std::size_t put_exception_symbols(std::span<const std::int32_t> codes, std::uint8_t* symbols,
                                  std::uint8_t* bits) {
  std::uint8_t* const begin = bits;
  std::uint64_t held = 0;
  unsigned n_held = 0;  // Below 8 between two codes.
  for (const std::int32_t code : codes) {
    const std::uint32_t z = zigzag(code);
    const unsigned symbol = symbol_of(z);
    *symbols++ = static_cast<std::uint8_t>(symbol);
    const unsigned n = bits_behind(symbol);
    held |= (z & ((std::uint64_t{1} << n) - 1)) << n_held;
    n_held += n;
    std::memcpy(bits, &held, sizeof held);
    bits += n_held / 8;
    held >>= n_held / 8 * 8;
    n_held %= 8;
  }
  return static_cast<std::size_t>(bits - begin) + (n_held == 0 ? 0 : 1);
}

bool take_exception_symbols(std::span<const std::uint8_t> symbols,
                            std::span<const std::uint8_t> bits, std::int32_t* codes) {
  // This also says that every symbol is one, and that no bit is missing below.
  if (exception_bit_bytes(symbols) != bits.size()) return false;
  std::size_t position = 0;  // In bits.
  for (const std::uint8_t symbol : symbols) {
    std::uint64_t held = 0;
    const std::size_t first = position / 8;
    if (first + sizeof held <= bits.size()) {
      std::memcpy(&held, bits.data() + first, sizeof held);
    } else if (first < bits.size()) {
      std::memcpy(&held, bits.data() + first, bits.size() - first);
    }
    const unsigned n = bits_behind(symbol);
    const std::uint32_t leading = std::uint32_t{1} << n;
    const auto low = static_cast<std::uint32_t>(held >> (position % 8)) & (leading - 1);
    position += n;
    *codes++ = unzigzag(n == 0 ? symbol : leading | low);
  }
  return true;
}

}  // namespace tailrace::trz
