// Numbers of a report, each named once, reduced over the ranks in place.

#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "core/comm.hpp"

namespace tailrace {

/// Each number, this rank's before, becomes the sum (maximum, ...) of all ranks'. Whole numbers
/// among fractions travel as double, which is exact up to 2^53. Collective: one allreduce.
template <class... Numbers>
void reduce_all(Comm& comm, Reduction reduction, Numbers&... numbers) {
  using Common = std::conditional_t<(std::is_integral_v<Numbers> && ...), std::uint64_t, double>;
  Common packed[] = {static_cast<Common>(numbers)...};
  comm.allreduce(std::span<Common>(packed), reduction);
  const Common* next = packed;
  ((numbers = static_cast<Numbers>(*next++)), ...);
}

}  // namespace tailrace
