// Periods: at which length a long row is better folded into several.
//
// Particles are often kept in the order of the lattice on which they started, and arrays of several
// dimensions are often handed over as one: then the values one period back are neighbours. Only
// periods that divide the row's length can be used, so those alone are tried, on a few runs.

#pragma once

#include <cstddef>

#include "codec/trz/sampler.hpp"

namespace tailrace::trz {

/// A period of the chunk's rows, along x, at which differences of order two would be smaller than
/// those along x alone; 0 if there is none.
template <class T>
std::size_t find_period(const SampledValues<T>& chunk, const Extents& extents,
                        std::size_t values_per_run, Isa isa);

}  // namespace tailrace::trz
