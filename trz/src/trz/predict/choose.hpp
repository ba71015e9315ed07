// Choice of a chunk's predictor, from a sample of its values.
//
// The sample quantises short runs along x, scattered over the chunk. The sizes of the codes that
// each candidate would produce there give its cost in bits per value. A candidate is a predictor
// with one of several extents. Extents are the chunk's, or have axes folded together, because a
// slow axis whose neighbours are unrelated harms prediction. They may also fold rows at a period of
// the values: particles often have the order of a former lattice. If the values lie on a coarser
// lattice (decimals, counts), a step of this lattice gives further candidates. All arithmetic is
// integer sums or IEEE operations in a fixed order, so that the choice is the same on every
// machine.

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

// --- Periods: the length at which a long row is better folded into several.
//
// Particles are often stored in the order of their initial lattice, and arrays of several
// dimensions are often submitted as one row: then values one period apart are neighbours. Only
// periods that divide the row's length are usable, so the search tries only those, on a few runs.

/// Find a period of the chunk's rows, along x, that makes differences of order two smaller than
/// differences along x only. 0: none.
template <class T>
std::size_t find_period(const SampledValues<T>& chunk, const Extents& extents,
                        std::size_t values_per_run, Isa isa);

// --- Quantum: the spacing of the lattice on which the values lie already.
//
// Decimals with one or three places, counts, packed integers with a scale: such values are
// multiples of a quantum, plus an offset. If the quantum exceeds the step for the bound, codes on
// the values' lattice are smaller and, up to rounding, exact.

/// Find the quantum of a sample of finite values, if it is greater than `least`; 0: none detected.
/// Sorts the values. IEEE arithmetic in a fixed order: the same on every machine.
template <class T>
double find_quantum(std::span<T> values, double least);

/// Predictor of a chunk and its parameters.
struct Prediction {
  bool interpolated = false;
  int order = 0;                 ///< Order of Lorenzo; 0: none.
  InterpolationPlan plan;        ///< Parameters if interpolated.
  Extents extents{1, 1, 1, 1};   ///< Extents that the predictor uses.
  double step = 0;               ///< Step of the values' lattice; 0: the step for the bound.
  double bits_per_value = 1000;  ///< Estimated cost.
};

inline constexpr std::size_t kPredictionsMax = 64;

/// Results of sampling a chunk.
struct Sampled {
  double offset = 0;         ///< A typical value, representable in T: the lattice's origin.
  double special_share = 0;  ///< Share of values that are NaN, Inf or fill.
  double misfit_share = 0;   ///< Share of ordinary values farther than the bound from their lattice
                             ///< point. Lorenzo must patch them.
  double coarse_share = 0;   ///< Share of ordinary values whose floating-point spacing exceeds the
                             ///< bound. Interpolation must patch them, too.
  bool all_equal = false;    ///< All sampled values have the same bits.
  bool has_fill = false;     ///< True if a fill value was found although none was named.
  double fill = 0;           ///< The found fill value, used as if named.
  double fill_steps = 0;     ///< Distance in steps of the fill value from the nearest other value.
  std::array<Prediction, kPredictionsMax> predictions;  ///< All candidates, the best first.
  std::size_t n_predictions = 0;

  const Prediction& best() const { return predictions[0]; }
  /// Fill value, named or found; null for none. Stores a found value in `found`.
  template <class T>
  const T* fill_of(const T* named, T& found) const {
    found = static_cast<T>(fill);
    return has_fill ? &found : named;
  }
};

/// Sample a chunk. T: float, double. `extents` are those of lorenzo.hpp. Without a `fill`, the
/// sample detects a value that fills much of the chunk and lies far from all others. An example is
/// -9999 for missing measurements, where each edge would be a large code.
/// Not collective. Thread-safe. Cost: at most about 3 % of encoding a chunk of 1 MB.
template <class T>
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa);

/// Like sample_chunk(), for values from a source. The caller sets `source` and `fill` of `chunk`;
/// the function sets its other members.
template <class T>
Sampled sample_values(SampledValues<T> chunk, const Extents& extents, double bound,
                      const Settings& settings, Isa isa);

// --- Estimate: the number of bytes that encode() would produce, from a sample of the values.

/// Estimate the encoded size of a chunk of `type` whose contents resemble `values`. The shape of
/// `values` replaces type.shape. Not collective. Thread-safe if each thread has a workspace.
/// @returns encoded_bytes in [1, encoded_bytes_max].
Estimate estimate_chunk(const ChunkType& type, const Settings& settings,
                        const StridedValues& values, Workspace& workspace);

}  // namespace tailrace::trz
