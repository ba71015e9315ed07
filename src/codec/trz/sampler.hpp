// Sampler: short runs of values, scattered over a chunk, and what codes they would make.
//
// Scattered samples tell two to four times more than cubes of the same volume. The same runs each
// time; everything is integer sums or IEEE arithmetic in one order.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/trz/lorenzo.hpp"
#include "codec/trz/sample_kernels.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRunsMax = 128;
inline constexpr std::size_t kSeenPerRun = 4;  ///< Values of each run that look() keeps.

/// Bits a value of every candidate.
using Costs = std::array<double, n_sample_candidates>;

/// The chunk as all samplers of it see it.
template <class T>
struct SampledValues {
  const T* values = nullptr;
  const T* fill = nullptr;  ///< Null for none.
  T bound = 0;              ///< Rounded down to T.
  double offset = 0;        ///< The lattice's origin.
  double step = 1;

  bool special(T value) const;
};

/// What a first look at a chunk tells.
template <class T>
struct FirstLook {
  T typical = 0;  ///< A median of the ordinary values.
  double special_share = 0;
  double mixed_share = 0;  ///< Of runs that have special values and ordinary ones.
  bool all_equal = false;
  std::array<T, kRunsMax * kSeenPerRun> seen;  ///< Ordinary values, in the order of the runs.
  std::size_t n_seen = 0;
};

/// Shares of values that a lattice does not serve.
struct LatticeFit {
  double misfit_share = 0;
  double coarse_share = 0;
};

/// The runs of a chunk under certain extents.
template <class T>
class Sampler {
 public:
  Sampler(const SampledValues<T>& chunk, const Extents& extents, std::size_t values_per_run);

  FirstLook<T> look() const;
  LatticeFit fit() const;
  /// Costs of all candidates that the extents have axes for; the others' are kNoCost.
  Costs costs(Isa isa) const;
  std::size_t n_axes() const { return n_axes_; }

 private:
  struct Run {
    std::size_t t, z, y, x;
  };
  const T* value_at(const Run& run, std::size_t i) const;
  void load_row(const Run& run, std::size_t row, double held, double* out,
                const SampleKernels& kernels) const;

  SampledValues<T> chunk_;
  Extents extents_;
  std::size_t n_axes_;
  std::size_t n_runs_ = 0;
  std::array<Run, kRunsMax> runs_;
};

inline constexpr double kNoCost = 1000;

/// A row by the kernel for its type; false if it has special values.
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

/// A small generator that scatters positions, the same ones each time.
struct Scatter {
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  std::size_t below(std::size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(((state >> 32) * limit) >> 32);
  }
};

}  // namespace tailrace::trz
