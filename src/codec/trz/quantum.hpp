// Quantum: the spacing of the lattice that values stand on already.
//
// Decimals with one or three places, counts, packed integers with a scale: such values are
// multiples of a quantum, plus an offset. Where it is coarser than the lattice of the bound, codes
// on the values' own lattice are smaller and, up to rounding, exact.

#pragma once

#include <cstddef>
#include <span>

namespace tailrace::trz {

/// The quantum of a sample of finite values, more than `least`; 0 if there is none to be seen.
/// Sorts the values. IEEE arithmetic in one order: the same on every machine.
template <class T>
double find_quantum(std::span<T> values, double least);

}  // namespace tailrace::trz
