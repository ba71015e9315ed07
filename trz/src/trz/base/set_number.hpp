// Access to an optional number that is safe where the program traps floating-point exceptions.

#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace tailrace {

/// The number; null if it is not set or is NaN. Uses no floating-point operation: compilers may
/// compare the memory of an unset optional before they test its flag. A signalling NaN or a
/// denormal number there raises an exception, which a program may trap (gfortran -ffpe-trap).
inline const double* set_number(const std::optional<double>& number) {
  if (!number) return nullptr;
  constexpr std::uint64_t kInfinityBits = 0x7FF0000000000000U;
  const std::uint64_t magnitude_bits = std::bit_cast<std::uint64_t>(*number) & (~0ULL >> 1U);
  return magnitude_bits > kInfinityBits ? nullptr : &*number;
}

}  // namespace tailrace
