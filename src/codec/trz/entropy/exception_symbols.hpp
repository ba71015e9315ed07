// Exceptions as bytes for the entropy coder, and the bits that it would gain nothing on.
//
// An exception is a whole code (group_kernels.hpp), most often a little too large for its group, at
// the edge of a mask as large as the field's values. Let z = 2 c for c >= 0, else -2 c - 1. Below
// 224 its symbol is z itself; otherwise the symbol is 224 + L - 8, where L = 8..32 is the number of
// bits of z, and the L - 1 bits below the leading one follow in a string of bits, low ones first.
// Measured against "255 and 32 bits" on 130 pairs of field and bound: chunks 1.1 to 1.9 % smaller
// on average from rel 1e-3 to 1e-6, and 3 to 5 % where fields have masks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tailrace::trz {

inline constexpr unsigned kExceptionSymbols = 249;  ///< Symbols are below this.

/// The symbol of one exception, for histograms.
unsigned exception_symbol(std::int32_t code);

/// Bytes of the string of bits that exceptions with these symbols have; SIZE_MAX if one is none.
std::size_t exception_bit_bytes(std::span<const std::uint8_t> symbols);

/// Write one symbol per code, and the string of bits, filled up with zeros to a whole byte.
/// `bits` has room for 4 bytes a code and 8 more (all of which may be overwritten). Returns the
/// bytes of the string. Thread-safe. Cost: O(n), about 1 ns a code.
std::size_t put_exception_symbols(std::span<const std::int32_t> codes, std::uint8_t* symbols,
                                  std::uint8_t* bits);

/// The inverse. Returns false if a symbol is none, or bits.size() is not exception_bit_bytes().
/// Then `codes` are unspecified; nothing is read or written out of range.
bool take_exception_symbols(std::span<const std::uint8_t> symbols,
                            std::span<const std::uint8_t> bits, std::int32_t* codes);

}  // namespace tailrace::trz
