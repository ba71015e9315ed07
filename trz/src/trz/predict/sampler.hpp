// Sampler: short runs of values, scattered over a chunk, and the codes that candidates would
// produce.
//
// Scattered runs are two to four times more informative than cubes of the same volume. The runs are
// the same each time; all arithmetic is integer sums or IEEE operations in a fixed order.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/sample_kernels.hpp"
#include "trz/predict/lorenzo.hpp"
#include "trz/predict/value_source.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRunsMax = 128;
inline constexpr std::size_t kSeenPerRun = 4;  ///< Values of each run that look() stores.

/// Bits per value of every candidate.
using Costs = std::array<double, n_sample_candidates>;

/// A chunk's values and lattice, shared by all samplers of the chunk.
template <class T>
struct SampledValues {
  const T* values = nullptr;
  const T* fill = nullptr;  ///< Null for none.
  T bound = 0;              ///< Rounded down to T.
  double offset = 0;        ///< Origin of the lattice.
  double step = 1;
  const ValueSource<T>* source = nullptr;  ///< Replaces `values` if not null.

  std::size_t runs_max = kRunsMax;  ///< Maximum number of runs; smaller for a rough answer.
  bool find_fill = true;            ///< Detect a fill value if none is named.

  bool special(T value) const;
  void prefetch(std::size_t first, std::size_t n) const {
    if (source != nullptr) {
      source->prefetch(first, n);
    } else {
      prefetch_values(values + first, n);
    }
  }
  /// Return n values in row-major order from `first` on: a pointer to them in place, or to a copy
  /// in `buffer`.
  const T* run(std::size_t first, std::size_t n, T* buffer) const {
    return source == nullptr ? values + first : source->run(first, n, buffer);
  }
};

/// Results of a first look at a chunk.
template <class T>
struct FirstLook {
  T typical = 0;  ///< Median of the ordinary values.
  double special_share = 0;
  double mixed_share = 0;  ///< Share of runs with both special and ordinary values.
  bool all_equal = false;
  std::array<T, kRunsMax * kSeenPerRun> seen;  ///< Ordinary values, in the order of the runs.
  std::size_t n_seen = 0;
};

/// Shares of values that the lattice cannot represent.
struct LatticeFit {
  double misfit_share = 0;
  double coarse_share = 0;
};

/// Runs of a chunk under given extents.
template <class T>
class Sampler {
 public:
  Sampler(const SampledValues<T>& chunk, const Extents& extents, std::size_t values_per_run);

  FirstLook<T> look() const;
  LatticeFit fit() const;
  /// Costs of all candidates that the extents have axes for; kNoCost for the others.
  Costs costs(Isa isa) const;
  std::size_t n_axes() const { return n_axes_; }

 private:
  struct Run {
    std::size_t t, z, y, x;
  };
  std::size_t row_begin(const Run& run) const {
    return ((run.t * extents_[1] + run.z) * extents_[2] + run.y) * extents_[3];
  }
  /// Values of a run: kRunValues, or fewer at the end of its row.
  struct RunHere {
    const T* values;
    std::size_t n;
    T at(std::size_t i) const { return values[i < n ? i : n - 1]; }
  };
  RunHere here(const Run& run, T* buffer) const {
    const std::size_t left = extents_[3] - run.x;
    const std::size_t n = left < kRunValues ? left : kRunValues;
    return {chunk_.run(row_begin(run) + run.x, n, buffer), n};
  }
  /// Start of a row near a run, and the part of the row that the sampler reads.
  struct Row {
    std::size_t begin, first, n;
  };
  Row row_of(const Run& run, std::size_t row) const;
  void load_row(const Run& run, std::size_t row, double held, double* out,
                const SampleKernels& kernels) const;

  SampledValues<T> chunk_;
  Extents extents_;
  std::size_t n_axes_;
  std::size_t n_runs_ = 0;
  std::array<Run, kRunsMax> runs_;
};

inline constexpr double kNoCost = 1000;

/// Load a row with the kernel of its type; false if it has special values.
template <class T>
bool load_row(const SampleKernels& kernels, const T* from, const SampledValues<T>& chunk, T fill,
              double* row) {
  const double inverse_step = 1 / chunk.step;
  if constexpr (sizeof(T) == 4) {
    return kernels.load_f32(from, chunk.offset, inverse_step, fill, row);
  } else {
    return kernels.load_f64(from, chunk.offset, inverse_step, fill, row);
  }
}

/// Deterministic generator of scattered positions.
struct Scatter {
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  std::size_t below(std::size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(((state >> 32) * limit) >> 32);
  }
};

/// Nearest valid position on an axis.
inline std::size_t clamped(std::ptrdiff_t at, std::size_t extent) {
  return static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(at, 0, static_cast<std::ptrdiff_t>(extent) - 1));
}

/// Position of a neighbour; beyond an edge, of the neighbour on the other side.
inline std::size_t neighbour(std::size_t at, int by, std::size_t extent) {
  const auto here = static_cast<std::ptrdiff_t>(at);
  const auto end = static_cast<std::ptrdiff_t>(extent);
  return clamped(here + by < 0 || here + by >= end ? here - by : here + by, extent);
}

}  // namespace tailrace::trz
