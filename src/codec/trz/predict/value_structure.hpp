// What a chunk's values show of their making: a period along rows, and a quantum.

#pragma once

#include <cstddef>
#include <span>

#include "codec/trz/predict/sampler.hpp"

namespace tailrace::trz {

// --- Periods: at which length a long row is better folded into several.
//
// Particles are often kept in the order of the lattice on which they started, and arrays of several
// dimensions are often handed over as one: then the values one period back are neighbours. Only
// periods that divide the row's length can be used, so those alone are tried, on a few runs.

/// A period of the chunk's rows, along x, at which differences of order two would be smaller than
/// those along x alone; 0 if there is none.
template <class T>
std::size_t find_period(const SampledValues<T>& chunk, const Extents& extents,
                        std::size_t values_per_run, Isa isa);

// --- Quantum: the spacing of the lattice that values stand on already.
//
// Decimals with one or three places, counts, packed integers with a scale: such values are
// multiples of a quantum, plus an offset. Where it is coarser than the lattice of the bound, codes
// on the values' own lattice are smaller and, up to rounding, exact.

/// The quantum of a sample of finite values, more than `least`; 0 if there is none to be seen.
/// Sorts the values. IEEE arithmetic in one order: the same on every machine.
template <class T>
double find_quantum(std::span<T> values, double least);

}  // namespace tailrace::trz
