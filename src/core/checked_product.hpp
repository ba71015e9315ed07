// Products of sizes from untrusted headers.

#pragma once

#include <cstdint>

namespace tailrace {

/// Set `product` to a * b. @returns false on overflow of 64 bits
inline bool multiply_checked(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

}  // namespace tailrace
