// Sampler: placement of the runs, loading of values and neighbours, and totals.

#include "trz/predict/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "trz/entropy/code_stream.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kRunsMin = 8;
constexpr std::size_t kShortAxis = 16;

constexpr unsigned kAlongY = 1;
constexpr unsigned kAlongZ = 2;
/// Axes, other than x, along which a candidate interpolates.
constexpr auto kInterpolatedAlong = [] {
  std::array<unsigned, n_sample_candidates> along{};
  for (const SampleCandidate c : {linear_y, cubic_y, natural_y, far_y, joint_xy})
    along[c] = kAlongY;
  for (const SampleCandidate c : {linear_z, cubic_z, natural_z, far_z, joint_xz})
    along[c] = kAlongZ;
  along[joint_yz] = along[joint_xyz] = kAlongY | kAlongZ;
  return along;
}();

auto bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
auto bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

std::size_t axes_of(const Extents& extents) {
  std::size_t n = 4;
  while (n > 1 && extents[4 - n] == 1) --n;
  return n;
}

/// Correct the sums of Lorenzo at a chunk's edges, where neighbours outside count as zero.
template <class Run>
void at_edges(const Run& run, std::size_t n_axes, std::uint64_t* sums) {
  if (n_axes >= 2 && run.y == 0) {
    sums[lorenzo2] = sums[lorenzo1];
    if (n_axes >= 3) sums[lorenzo3] = sums[lorenzo2_xz];
  }
  if (n_axes >= 3 && run.z == 0) {
    sums[lorenzo2_xz] = sums[lorenzo1];
    sums[lorenzo3] = sums[lorenzo2];
  }
  if (n_axes >= 4 && run.t == 0) sums[lorenzo4] = sums[lorenzo3];
}

}  // namespace

template <class T>
bool SampledValues<T>::special(T value) const {
  return !std::isfinite(value) || (fill != nullptr && value == *fill);
}

template <class T>
Sampler<T>::Sampler(const SampledValues<T>& chunk, const Extents& extents,
                    std::size_t values_per_run)
    : chunk_(chunk), extents_(extents), n_axes_(axes_of(extents)) {
  const std::size_t n = extents[0] * extents[1] * extents[2] * extents[3];
  n_runs_ = std::clamp(n / values_per_run, kRunsMin, chunk.runs_max);
  // Strata along the slowest axes sample every part of the chunk.
  Scatter scatter;
  const std::size_t n_rows = n / extents[3];
  for (std::size_t r = 0; r < n_runs_; ++r) {
    const std::size_t low = n_rows * r / n_runs_;
    const std::size_t high = std::max(low + 1, n_rows * (r + 1) / n_runs_);
    const std::size_t row = std::min(low + scatter.below(high - low), n_rows - 1);
    // Avoid the ends of rows if rows are long enough: then whole vectors can be loaded.
    const std::size_t first_x = extents[3] >= 2 * kRowValues ? kRunMargin : 0;
    const std::size_t beyond = kRunValues + first_x;
    const std::size_t n_starts =
        extents[3] > first_x + beyond ? extents[3] - beyond - first_x + 1 : 1;
    const std::size_t low_x = n_rows >= n_runs_ ? 0 : n_starts * r / n_runs_;
    const std::size_t high_x = n_rows >= n_runs_ ? n_starts : n_starts * (r + 1) / n_runs_;
    const std::size_t x = low_x + (high_x > low_x ? scatter.below(high_x - low_x) : 0);
    runs_[r] = {row / (extents[1] * extents[2]), row / extents[2] % extents[1], row % extents[2],
                first_x + std::min(x, n_starts - 1)};
  }
}

template <class T>
FirstLook<T> Sampler<T>::look() const {
  FirstLook<T> seen;
  std::size_t n_special = 0;
  T buffer[kRunValues];
  const auto first = bits_of(here(runs_[0], buffer).at(0));
  seen.all_equal = true;
  std::size_t n_mixed = 0;
  for (std::size_t r = 0; r < n_runs_; ++r) {
    chunk_.prefetch(row_begin(runs_[r]) + runs_[r].x, 1);
  }
  for (std::size_t r = 0; r < n_runs_; ++r) {
    const std::size_t n_special_before = n_special;
    const RunHere values = here(runs_[r], buffer);
    for (std::size_t i = 0; i < kRunValues; i += kRunValues / kSeenPerRun) {
      const T value = values.at(i);
      seen.all_equal = seen.all_equal && bits_of(value) == first;
      if (chunk_.special(value)) {
        ++n_special;
      } else {
        seen.seen[seen.n_seen++] = value;
      }
    }
    const std::size_t n_here = n_special - n_special_before;
    n_mixed += n_here != 0 && n_here != kSeenPerRun ? 1 : 0;
  }
  seen.mixed_share = static_cast<double>(n_mixed) / static_cast<double>(n_runs_);
  seen.special_share = static_cast<double>(n_special) / static_cast<double>(n_runs_ * kSeenPerRun);
  if (seen.n_seen > 0) {
    std::array<T, kRunsMax * kSeenPerRun> sorted{};
    const auto end = std::copy_n(seen.seen.begin(), seen.n_seen, sorted.begin());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(seen.n_seen / 2);
    std::nth_element(sorted.begin(), middle, end);
    seen.typical = *middle + T(0);  // +0, never -0.
  }
  return seen;
}

template <class T>
LatticeFit Sampler<T>::fit() const {
  const T step = static_cast<T>(chunk_.step);
  const T offset = static_cast<T>(chunk_.offset);
  std::size_t n_values = 0;
  std::size_t n_misfits = 0;
  std::size_t n_coarse = 0;
  T buffer[kRunValues];
  for (std::size_t r = 0; r < n_runs_; ++r) {
    const RunHere values = here(runs_[r], buffer);
    for (std::size_t i = 0; i < kRunValues; ++i) {
      const T value = values.at(i);
      if (chunk_.special(value)) continue;
      ++n_values;
      const T spacing = std::abs(value) * std::numeric_limits<T>::epsilon();
      if (!(spacing < chunk_.bound)) ++n_coarse;
      constexpr T limit = sizeof(T) == 4 ? T(0x1p22) : T(0x1p31);
      constexpr T rounding = sizeof(T) == 4 ? static_cast<T>(kRoundF32) : static_cast<T>(kRoundF64);
      const T t = (value - offset) / step;
      const bool is_small = std::abs(t) < limit;
      const T q = is_small ? (t + rounding) - rounding : T(0);
      if (!is_small || !(std::abs(value - (offset + q * step)) < chunk_.bound)) ++n_misfits;
    }
  }
  if (n_values == 0) return {};
  return {static_cast<double>(n_misfits) / static_cast<double>(n_values),
          static_cast<double>(n_coarse) / static_cast<double>(n_values)};
}

template <class T>
typename Sampler<T>::Row Sampler<T>::row_of(const Run& run, std::size_t row) const {
  static constexpr int at[n_sample_rows][3] = {
      {0, 0, 0},  {0, 0, -1}, {0, 0, 1},   {0, 0, -3}, {0, 0, 3},   {0, -1, 0},  {0, 1, 0},
      {0, -3, 0}, {0, 3, 0},  {0, -1, -1}, {-1, 0, 0}, {-1, 0, -1}, {-1, -1, 0}, {-1, -1, -1}};
  const Run start{neighbour(run.t, at[row][0], extents_[0]),
                  neighbour(run.z, at[row][1], extents_[1]),
                  neighbour(run.y, at[row][2], extents_[2]), 0};
  // The part of the row that exists; all of it unless the run is at an end.
  const std::size_t first = run.x < kRunMargin ? 0 : run.x - kRunMargin;
  const std::size_t end = std::min(run.x + kRunValues + kRunMargin, extents_[3]);
  return {row_begin(start), first, end - first};
}

/// Load u of one row around a run. Special values take the last ordinary one's u. Those before the
/// first ordinary value take its u, or `held` if the row has none.
template <class T>
void Sampler<T>::load_row(const Run& run, std::size_t row, double held, double* out,
                          const SampleKernels& kernels) const {
  const Row part = row_of(run, row);
  const double inverse_step = 1 / chunk_.step;
  T buffer[kRowValues];
  const T* from = chunk_.run(part.begin + part.first, part.n, buffer);
  if (part.n == kRowValues) {
    const T fill = chunk_.fill == nullptr ? std::numeric_limits<T>::quiet_NaN() : *chunk_.fill;
    if (trz::load_row(kernels, from, chunk_, fill, out)) return;
  }
  std::size_t n_leading = 0;
  bool any = false;
  for (std::size_t i = 0; i < kRowValues; ++i) {
    const std::size_t x =
        clamped(static_cast<std::ptrdiff_t>(run.x + i) - static_cast<std::ptrdiff_t>(kRunMargin),
                extents_[3]);
    const T value = from[x - part.first];
    if (!chunk_.special(value)) {
      held = std::clamp((static_cast<double>(value) - chunk_.offset) * inverse_step, -kSampleLimit,
                        kSampleLimit);
      if (!any) n_leading = i;
      any = true;
    }
    out[i] = held;
  }
  std::fill_n(out, n_leading, out[n_leading]);
}

template <class T>
Costs Sampler<T>::costs(Isa isa) const {
  const SampleKernels& kernels = sample_kernels(isa);
  const RunCosts& run_costs = RunCosts::table();
  const std::size_t n_candidates = kCandidatesOfAxes[n_axes_];
  Costs costs{};
  std::array<std::size_t, n_sample_candidates> n_summed{};
  double rows[n_sample_rows][kRowValues];
  std::uint64_t sums[n_sample_candidates];
  for (std::size_t r = 0; r < n_runs_; ++r) {
    for (std::size_t row = 0; r + 1 < n_runs_ && row < kRowsOfAxes[n_axes_]; ++row) {
      const Row next = row_of(runs_[r + 1], row);
      chunk_.prefetch(next.begin + next.first, next.n);
    }
    load_row(runs_[r], row_here, 0, rows[row_here], kernels);
    for (std::size_t row = 1; row < kRowsOfAxes[n_axes_]; ++row) {
      load_row(runs_[r], row, rows[row_here][kRunMargin], rows[row], kernels);
    }
    kernels.measure(rows, n_axes_, sums);
    at_edges(runs_[r], n_axes_, sums);
    // On a short axis it matters that even positions are not interpolated along it.
    const unsigned not_along = (extents_[2] < kShortAxis && runs_[r].y % 2 == 0 ? kAlongY : 0U) |
                               (extents_[1] < kShortAxis && runs_[r].z % 2 == 0 ? kAlongZ : 0U);
    for (std::size_t c = 0; c < n_candidates; ++c) {
      if ((kInterpolatedAlong[c] & not_along) != 0) continue;
      costs[c] += run_costs.of(sums[c]);
      ++n_summed[c];
    }
  }
  for (std::size_t c = 0; c < n_sample_candidates; ++c) {
    costs[c] = n_summed[c] == 0 ? kNoCost : costs[c] / static_cast<double>(n_summed[c]);
  }
  return costs;
}

template struct SampledValues<float>;
template struct SampledValues<double>;
template class Sampler<float>;
template class Sampler<double>;

}  // namespace tailrace::trz
