// Choose: which predictor a chunk gets, from a sample of its values.
//
// Short runs along x, scattered over the chunk, are put on the lattice; the sizes of the codes that
// every candidate would make there give its cost in bits a value. Candidates are predictors under
// one of several extents: a chunk's own, axes folded together (a slow axis that says nothing about
// its neighbour does harm), and rows folded at a period that the values show (particles on what was
// a lattice). Where the values stand on a coarser lattice of their own (decimals, counts), a step
// of this lattice is another candidate. Everything is integer sums or IEEE arithmetic in one order:
// the choice is the same everywhere.

#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "trz/base/box.hpp"
#include "trz/base/estimate.hpp"
#include "trz/predict/interpolation.hpp"
#include "trz/predict/lorenzo.hpp"
#include "trz/predict/sampler.hpp"
#include "trz/trz.hpp"
#include "trz/workspace.hpp"

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

/// How the values of a chunk are predicted.
struct Prediction {
  bool interpolated = false;
  int order = 0;                 ///< Of Lorenzo; 0: none.
  InterpolationPlan plan;        ///< If interpolated.
  Extents extents{1, 1, 1, 1};   ///< As the predictor is to see the chunk.
  double step = 0;               ///< Of the lattice, if the values' own; 0: by the bound.
  double bits_per_value = 1000;  ///< Estimated cost.
};

inline constexpr std::size_t kPredictionsMax = 64;

/// What the sample says.
struct Sampled {
  double offset = 0;         ///< A typical value, representable in T: the lattice's origin.
  double special_share = 0;  ///< Of values that are NaN, Inf or fill.
  double misfit_share = 0;   ///< Of the others: those that their lattice point does not approach
                             ///< within the bound, so that Lorenzo would have to patch them.
  double coarse_share = 0;   ///< Of the others: those whose own spacing exceeds the bound; there
                             ///< interpolation would have to patch them, too.
  bool all_equal = false;    ///< All sampled values have the same bits.
  bool has_fill = false;     ///< Nobody named a fill value, but one stands out:
  double fill = 0;           ///< this one, to be taken as if it had been named,
  double fill_steps = 0;     ///< so many steps from the nearest other value seen.
  std::array<Prediction, kPredictionsMax> predictions;  ///< All candidates, the best first.
  std::size_t n_predictions = 0;

  const Prediction& best() const { return predictions[0]; }
  /// The fill value, named or found; null for none. `found` keeps a found one.
  template <class T>
  const T* fill_of(const T* named, T& found) const {
    found = static_cast<T>(fill);
    return has_fill ? &found : named;
  }
};

/// Sample a chunk. T: float, double. `extents` as in lorenzo.hpp. Without a `fill`, a value that
/// fills much of the chunk and lies far from all others (-9999 for what was not measured) is found:
/// each of its edges would be a large code.
/// Not collective. Thread-safe. Cost: at most about 3 % of encoding a chunk of 1 MB.
template <class T>
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa);

/// The same of values that are to be had from a source: `chunk` says where they are and which value
/// fills; the rest of it is set here.
template <class T>
Sampled sample_values(SampledValues<T> chunk, const Extents& extents, double bound,
                      const Settings& settings, Isa isa);

// --- Estimate: how many bytes encode() would make of a chunk, from a sample of its values.

/// What encode() would make of a chunk of `type` that looked like `values`, whose shape stands in
/// for type.shape. Not collective. Thread-safe, a workspace each.
/// @returns encoded_bytes in [1, encoded_bytes_max].
Estimate estimate_chunk(const ChunkType& type, const Settings& settings,
                        const StridedValues& values, Workspace& workspace);

}  // namespace tailrace::trz
