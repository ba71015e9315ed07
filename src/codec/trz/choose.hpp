// Choose: which predictor a chunk gets, from a sample of its values.
//
// Short runs along x, scattered over the chunk (scattered samples tell two to four times more than
// cubes of the same volume), are put on the lattice; per run and candidate the mean size of the
// codes gives an entropy, that of the two-sided geometric distribution with this mean, since groups
// of codes adapt to the local size. The mean over the runs is the candidate's cost in bits a value.
// Everything is integer sums or IEEE arithmetic in one order: the choice is the same everywhere.

#pragma once

#include <cstddef>

#include "codec/trz/interpolation.hpp"
#include "codec/trz/lorenzo.hpp"
#include "codec/trz/trz.hpp"
#include "codec/trz/workspace.hpp"

namespace tailrace::trz {

/// How the values of a chunk are predicted.
struct Prediction {
  bool interpolated = false;
  int order = 0;              ///< Of Lorenzo; 0: none.
  InterpolationPlan plan;     ///< If interpolated.
  double bits_per_value = 0;  ///< Estimated cost, patches not included.
};

/// What the sample says.
struct Sampled {
  double offset = 0;         ///< A typical value, representable in T: the lattice's origin.
  double special_share = 0;  ///< Of values that are NaN, Inf or fill.
  double misfit_share = 0;   ///< Of the others: those that their lattice point does not approach
                             ///< within the bound, so that Lorenzo would have to patch them.
  double coarse_share = 0;   ///< Of the others: those whose own spacing exceeds the bound; there
                             ///< interpolation would have to patch them, too.
  bool all_equal = false;    ///< All sampled values have the same bits.
  Prediction best;
  Prediction second;  ///< The best of another kind, for the ratio preset.
};

/// Sample a chunk. T: float, double. `extents` as in lorenzo.hpp.
/// Not collective. Thread-safe. Cost: at most about 3 % of encoding a chunk of 1 MB.
template <class T>
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa);

/// Entropy in bits of the two-sided geometric distribution with mean magnitude m >= 0.
double entropy_of_mean(double mean);

}  // namespace tailrace::trz
