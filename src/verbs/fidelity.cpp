// The measures of a map, the search for the Kolmogorov-Smirnov statistic, and the passes over
// fields.
//
// One pass reads a field for all measures and a first histogram. Further passes refine the
// histogram until the statistic is known to its tolerance.

#include "verbs/fidelity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <type_traits>
#include <utility>

#include "codec/value_lanes.hpp"
#include "verbs/chunk_tiles.hpp"
#include "verbs/map_similarity.hpp"

namespace tailrace::verbs {

// --- Exact sums

namespace {

/// Exponent of bit 0 of the lowest limb: the smallest denormal is 2^-1074.
constexpr int kLeastExponent = -1074;

}  // namespace

void ExactSum::carry() {
  n_since_carry_ = 0;
  std::int64_t carried = 0;
  for (std::size_t i = 0; i + 1 < kNotFinite; ++i) {
    const std::int64_t limb = static_cast<std::int64_t>(limbs_[i]) + carried;
    carried = limb >> kLimbBits;  // Rounds down, so that the rest is not negative.
    limbs_[i] = static_cast<std::uint64_t>(limb) & 0xFFFFFFFFU;
  }
  limbs_[kNotFinite - 1] += static_cast<std::uint64_t>(carried);
}

double ExactSum::value() const {
  if (limbs_[kNotFinite] != 0) return std::numeric_limits<double>::quiet_NaN();
  ExactSum magnitude = *this;
  const bool negative = static_cast<std::int64_t>(limbs_[kNotFinite - 1]) < 0;
  if (negative) {
    for (std::size_t i = 0; i < kNotFinite; ++i) magnitude.limbs_[i] = 0 - magnitude.limbs_[i];
  }
  magnitude.carry();
  std::size_t top = kNotFinite;
  while (top > 0 && magnitude.limbs_[top - 1] == 0) --top;
  double sum = 0;
  // Four limbs contain more digits than a double. Summing from the lowest up keeps rounding small.
  for (std::size_t i = top > 4 ? top - 4 : 0; i < top; ++i) {
    sum += std::ldexp(static_cast<double>(magnitude.limbs_[i]),
                      kLeastExponent + static_cast<int>(i * kLimbBits));
  }
  return negative ? -sum : sum;
}

// --- The Kolmogorov-Smirnov statistic

namespace {

std::uint64_t distance_of(std::uint64_t difference) {
  return static_cast<std::int64_t>(difference) < 0 ? 0 - difference : difference;
}

}  // namespace

void DistributionSearch::start(std::uint64_t least, std::uint64_t greatest) {
  runs_.clear();
  if (least > 0) runs_.push_back({0, least - 1});
  runs_.push_back({least, greatest});
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  if (greatest < last) runs_.push_back({greatest + 1, last});
  lay_out();
}

bool DistributionSearch::next(std::uint64_t n_values) {
  const auto allowed =
      static_cast<std::uint64_t>(std::floor(tolerance * static_cast<double>(n_values)));
  std::uint64_t before = 0;
  for (const Run& run : runs_) before = judge(run, first_pass_ ? before : run.before);
  first_pass_ = false;
  const auto is_decided = [&](const Run& run) {
    if (run.most > most_ + allowed) return false;
    at_most_ = std::max(at_most_, run.most);
    return true;
  };
  std::erase_if(waiting_, is_decided);
  // Refine the runs with the greatest limits first: their results may decide the others.
  std::sort(waiting_.begin(), waiting_.end(), [](const Run& a, const Run& b) {
    return a.most != b.most ? a.most < b.most : a.first < b.first;
  });
  const std::size_t n_taken = std::min(waiting_.size(), n_bins_ / 2);
  runs_.assign(waiting_.end() - static_cast<std::ptrdiff_t>(n_taken), waiting_.end());
  waiting_.resize(waiting_.size() - n_taken);
  std::ranges::sort(runs_, {}, &Run::first);
  if (runs_.empty()) return false;
  lay_out();
  return true;
}

void DistributionSearch::lay_out() {
  const std::size_t n_each = std::bit_floor(n_bins_ / runs_.size());
  std::size_t n_all = 0;
  for (Run& run : runs_) {
    run.shift = 0;
    while (((run.last - run.first) >> run.shift) >= n_each) ++run.shift;
    run.first_bin = n_all;
    n_all += run.n_bins();
  }
  counts_.assign(2 * n_all, 0);
  const std::uint64_t span = runs_.back().last - runs_.front().first;
  bucket_shift_ = 0;
  while ((span >> bucket_shift_) >= 4 * runs_.size()) ++bucket_shift_;
  behind_.clear();
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    // All buckets after the previous run's, up to this run's.
    const std::uint64_t bucket = (runs_[r].first - runs_.front().first) >> bucket_shift_;
    behind_.resize(bucket + 1, static_cast<std::uint32_t>(r));
  }
  behind_.resize((span >> bucket_shift_) + 2, static_cast<std::uint32_t>(runs_.size()));
}

std::uint64_t DistributionSearch::judge(const Run& run, std::uint64_t before) {
  for (std::size_t b = 0; b < run.n_bins(); ++b) {
    const std::uint64_t n_original = counts_[2 * (run.first_bin + b)];
    const std::uint64_t n_decoded = counts_[2 * (run.first_bin + b) + 1];
    const std::uint64_t first = run.first + (std::uint64_t{b} << run.shift);
    const std::uint64_t last =
        first + std::min(run.last - first, (std::uint64_t{1} << run.shift) - 1);
    // If a bin contains values of only one file, the distance is greatest at an edge.
    if (n_original > 0 && n_decoded > 0 && first < last) {
      const std::uint64_t most =
          std::max(distance_of(before + n_original), distance_of(before - n_decoded));
      waiting_.push_back({first, last, before, most});
    }
    before += n_original - n_decoded;
    most_ = std::max(most_, distance_of(before));
  }
  return before;
}

namespace {

// --- Spectra

ValuePair times(const ValuePair& x, const ValuePair& y) {
  return {x.original * y.original - x.decoded * y.decoded,
          x.original * y.decoded + x.decoded * y.original};
}

ValuePair on_circle(double turns) {
  const double angle = 2 * std::numbers::pi * turns;
  return {std::cos(angle), std::sin(angle)};
}

/// The discrete Fourier transform of n complex numbers, for any n. If n is a power of two, it
/// splits the numbers in halves. Otherwise it computes a convolution (Bluestein 1970) by such
/// transforms.
class Fourier {
 public:
  explicit Fourier(std::size_t n) : n_(n), factors_(n) {
    const bool whole = std::has_single_bit(n);
    for (std::size_t k = 0; k < n; ++k) {
      // Reduce squares as integers; the angle would lose their digits.
      const std::size_t part = whole ? k : k * k % (2 * n);
      factors_[k] = on_circle(-static_cast<double>(part) / static_cast<double>(whole ? n : 2 * n));
    }
    if (whole) return;
    inner_ = std::make_unique<Fourier>(std::bit_ceil(2 * n - 1));
    work_.resize(inner_->n_);
    kernel_.assign(inner_->n_, {});
    for (std::size_t k = 0; k < n; ++k) {
      kernel_[k] = {factors_[k].original, -factors_[k].decoded};
      if (k > 0) kernel_[inner_->n_ - k] = kernel_[k];
    }
    inner_->transform(kernel_);
  }

  void transform(std::span<ValuePair> values) {
    if (inner_ == nullptr) return by_halves(values);
    std::fill(work_.begin(), work_.end(), ValuePair());
    for (std::size_t k = 0; k < n_; ++k) work_[k] = times(values[k], factors_[k]);
    inner_->transform(work_);
    // Compute the inverse transform as the conjugate of the transform of the conjugate.
    for (std::size_t k = 0; k < work_.size(); ++k) {
      work_[k] = times(work_[k], kernel_[k]);
      work_[k].decoded = -work_[k].decoded;
    }
    inner_->transform(work_);
    const auto scale = static_cast<double>(work_.size());
    for (std::size_t k = 0; k < n_; ++k) {
      values[k] = times({work_[k].original / scale, -work_[k].decoded / scale}, factors_[k]);
    }
  }

 private:
  void by_halves(std::span<ValuePair> values) const {
    for (std::size_t i = 1, j = 0; i < n_; ++i) {
      std::size_t bit = n_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(values[i], values[j]);
    }
    for (std::size_t half = 1; half < n_; half *= 2) {
      const std::size_t stride = n_ / (2 * half);
      for (std::size_t first = 0; first < n_; first += 2 * half) {
        for (std::size_t k = 0; k < half; ++k) {
          ValuePair& even = values[first + k];
          ValuePair& odd = values[first + k + half];
          const ValuePair turned = times(odd, factors_[k * stride]);
          odd = {even.original - turned.original, even.decoded - turned.decoded};
          even = {even.original + turned.original, even.decoded + turned.decoded};
        }
      }
    }
  }

  std::size_t n_;
  std::vector<ValuePair> factors_;
  std::unique_ptr<Fourier> inner_;  ///< Null: n is a power of two.
  std::vector<ValuePair> kernel_;
  std::vector<ValuePair> work_;
};

/// Limit below which a map or line has too few frequencies to be meaningful.
constexpr std::size_t kLeastExtent = 8;
constexpr std::size_t kMostBands = 256;

/// Power of both files' values by frequency. Values become anomalies from their map's mean (0 if
/// missing) under a Hann window. Without the window, a jump between opposite edges would hide all
/// small scales.
class MapSpectrum {
 public:
  MapSpectrum(std::size_t rows, std::size_t columns)
      : rows_(rows),
        columns_(columns),
        n_bands_(std::min(kMostBands, (rows > 1 ? std::min(rows, columns) : columns) / 2)),
        along_row_(columns),
        along_column_(rows),
        column_(rows),
        column_weights_(columns) {
    for (std::size_t c = 0; c < columns; ++c) column_weights_[c] = hann(c, columns);
  }

  std::size_t n_bands() const { return n_bands_; }

  /// Add to both sums of each band. Overwrites the map's values. @returns true if it has any value.
  bool add(const MapView& map, std::span<ExactSum> original, std::span<ExactSum> decoded) {
    if (!take_anomalies(map)) return false;
    for (std::size_t r = 0; r < rows_; ++r) along_row_.transform(map.row(r));
    for (std::size_t c = 0; rows_ > 1 && c < columns_; ++c) {
      for (std::size_t r = 0; r < rows_; ++r) column_[r] = map.values[r * columns_ + c];
      along_column_.transform(column_);
      for (std::size_t r = 0; r < rows_; ++r) map.values[r * columns_ + c] = column_[r];
    }
    std::vector<ValuePair> power(n_bands_ + 1);
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < columns_; ++c) {
        const std::size_t band = band_of(r, c);
        if (band == 0 || band > n_bands_) continue;
        // Two real transforms for the cost of one: the symmetric part belongs to the original.
        const ValuePair& here = map.values[r * columns_ + c];
        const ValuePair& there =
            map.values[(rows_ - r) % rows_ * columns_ + (columns_ - c) % columns_];
        power[band].original +=
            squares(here.original + there.original, here.decoded - there.decoded);
        power[band].decoded +=
            squares(here.decoded + there.decoded, there.original - here.original);
      }
    }
    const double n = static_cast<double>(rows_) * static_cast<double>(columns_);
    for (std::size_t b = 0; b < n_bands_; ++b) {
      original[b].add(power[b + 1].original / (4 * n * n));
      decoded[b].add(power[b + 1].decoded / (4 * n * n));
    }
    return true;
  }

 private:
  static double squares(double x, double y) { return x * x + y * y; }

  bool take_anomalies(const MapView& map) const {
    ValuePair mean;
    double n = 0;
    for (const ValuePair& pair : map.values) {
      if (pair.missing()) continue;
      mean.original += pair.original;
      mean.decoded += pair.decoded;
      ++n;
    }
    if (n == 0) return false;
    for (std::size_t r = 0; r < rows_; ++r) {
      const double row_weight = rows_ > 1 ? hann(r, rows_) : 1;
      for (std::size_t c = 0; c < columns_; ++c) {
        ValuePair& pair = map.values[r * columns_ + c];
        const double weight = row_weight * column_weights_[c];
        pair = pair.missing() ? ValuePair()
                              : ValuePair{(pair.original - mean.original / n) * weight,
                                          (pair.decoded - mean.decoded / n) * weight};
      }
    }
    return true;
  }

  static double hann(std::size_t i, std::size_t n) {
    return 0.5 -
           0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
  }

  /// Band of a frequency f in cycles per grid step: the integer nearest to 2 n_bands f.
  std::size_t band_of(std::size_t r, std::size_t c) const {
    const auto frequency = [](std::size_t k, std::size_t n) {
      return static_cast<double>(std::min(k, n - k)) / static_cast<double>(n);
    };
    const double down = rows_ > 1 ? frequency(r, rows_) : 0;
    const double along = frequency(c, columns_);
    const double f = std::sqrt(down * down + along * along);
    return static_cast<std::size_t>(std::floor(2 * static_cast<double>(n_bands_) * f + 0.5));
  }

  std::size_t rows_;
  std::size_t columns_;
  std::size_t n_bands_;
  Fourier along_row_;
  Fourier along_column_;
  std::vector<ValuePair> column_;
  std::vector<double> column_weights_;
};

// --- Passes over a field

/// Map values to integers in the same order; both zeros have the same key.
template <class T>
std::uint64_t ordered_key(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto bits = std::bit_cast<Bits>(value + T{0});
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    return (bits & sign) != 0 ? static_cast<Bits>(~bits) : (bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) ^ (std::uint64_t{1} << 63U);
  } else {
    return value;
  }
}

/// Kolmogorov's limiting distribution: the probability of a greater distance between two samples of
/// n independent values each from the same distribution.
double kolmogorov_p(double statistic, std::uint64_t n) {
  const double x = statistic * std::sqrt(static_cast<double>(n) / 2);
  if (!(x > 0)) return 1;
  double sum = 0;
  if (x < 1) {
    for (int k = 1; k < 40; k += 2) {
      sum += std::exp(-k * k * std::numbers::pi * std::numbers::pi / (8 * x * x));
    }
    return 1 - std::sqrt(2 * std::numbers::pi) / x * sum;
  }
  for (int k = 1; k < 40; ++k) sum += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  return sum;
}

/// Plan for reading a field: boxes of complete maps (or pieces of a line), a run of them per rank.
struct FidelityPlan {
  ChunkTiles of_original;
  ChunkTiles of_compressed;
  std::size_t rows = 0;              ///< Rows of a map; 1: a piece of a line. 0: maps are not
                                     ///< measured.
  std::size_t columns = 0;           ///< Columns of a map, or values of a piece of a line.
  Shape axes;                        ///< Dimensions of a map, from 0.
  Shape grid;                        ///< Number of maps along each preceding dimension.
  std::uint64_t held_bytes_max = 0;  ///< Cache limit of each file's reader, excluding the box.
  std::string left_out;              ///< Reason why maps are not measured; empty: they are, or the
                                     ///< field has none.

  std::size_t n_values() const { return rows * columns; }
};

/// Values of a piece of a line; lines are measured in pieces.
constexpr std::uint64_t piece_values = 4096;
/// Values of a line that are read in one call.
constexpr std::uint64_t kLineBoxValues = 256 * piece_values;

std::uint64_t box_bytes_of(const FidelityTask& task, const Shape& box) {
  return n_elements(box) * dtype_bytes(task.dtype);
}

/// The largest box of complete maps that memory allows; empty: memory cannot hold one map.
Shape map_box(const FidelityTask& task, std::size_t first_map_dimension, std::uint64_t room) {
  Shape stored = task.compressed_chunk;
  stored.resize(task.shape.size(), 1);
  std::uint64_t map_values = 1;
  for (std::size_t d = first_map_dimension; d < stored.size(); ++d) {
    stored[d] = task.shape[d];
    map_values *= task.shape[d];
  }
  const std::uint64_t pair_bytes = map_values * sizeof(ValuePair);
  Shape box = box_shape_for(task.shape, stored, task.dtype);
  while (2 * box_bytes_of(task, box) + pair_bytes > room) {
    const auto leading = box.begin() + static_cast<std::ptrdiff_t>(first_map_dimension);
    const auto longest = std::max_element(box.begin(), leading);
    if (longest == leading || *longest == 1) return {};
    *longest = (*longest + 1) / 2;
  }
  return box;
}

FidelityPlan plan_fidelity(const FidelityTask& task, std::uint64_t memory_bytes) {
  FidelityPlan plan;
  std::vector<std::size_t> long_dimensions;
  for (std::size_t d = 0; d < task.shape.size(); ++d) {
    if (task.shape[d] > 1) long_dimensions.push_back(d);
  }
  Shape box;
  if (long_dimensions.size() == 1) {
    const std::size_t d = long_dimensions[0];
    plan.axes = {d};
    box.assign(task.shape.size(), 1);
    box[d] = std::min(task.shape[d], kLineBoxValues);
    plan.rows = 1;
    plan.columns = static_cast<std::size_t>(std::min(task.shape[d], piece_values));
  } else if (long_dimensions.size() > 1) {
    const std::size_t d = long_dimensions[long_dimensions.size() - 2];
    plan.axes = {d, long_dimensions.back()};
    box = map_box(task, d, memory_bytes - memory_bytes / 8);
    plan.rows = static_cast<std::size_t>(task.shape[d]);
    plan.columns = static_cast<std::size_t>(task.shape[long_dimensions.back()]);
    plan.grid.assign(task.shape.begin(), task.shape.begin() + static_cast<std::ptrdiff_t>(d));
    if (box.empty()) {
      plan.left_out =
          fmt::format("SSIM and spectra: a map of {} x {} values needs {} bytes of --memory",
                      plan.rows, plan.columns,
                      plan.n_values() * (2 * dtype_bytes(task.dtype) + sizeof(ValuePair)) * 8 / 7);
      plan.rows = plan.columns = 0;
    }
  }
  if (box.empty()) box = box_shape_for(task.shape, task.compressed_chunk, task.dtype);
  plan.of_compressed = ChunkTiles({task.shape, box}, task.compressed_chunk);
  plan.of_original = ChunkTiles({task.shape, box}, task.original_chunk);
  const auto used_bytes = 2 * box_bytes_of(task, box) + plan.n_values() * sizeof(ValuePair);
  plan.held_bytes_max = (memory_bytes - std::min(memory_bytes, used_bytes)) / 2;
  return plan;
}

/// A similarity that accumulates on this rank.
struct SimilaritySum {
  std::uint64_t n_maps = 0;
  ExactSum sum;
  double least = std::numeric_limits<double>::infinity();
  std::uint64_t least_map = 0;

  void add(std::optional<double> found, std::uint64_t map) {
    if (!found) return;
    ++n_maps;
    sum.add(*found);
    if (*found > least || (*found == least && map > least_map)) return;
    least = *found;
    least_map = map;
  }
};

class FidelityMeasure {
 public:
  FidelityMeasure(TileReader& original, TileReader& compressed, const VerbRanks& ranks,
                  const FidelityTask& task, const FidelityPlan& plan, std::size_t n_bins)
      : original_(original),
        compressed_(compressed),
        ranks_(ranks),
        task_(task),
        plan_(plan),
        origin_(task.range.empty() ? 0 : task.range.least / 2 + task.range.greatest / 2),
        search_(n_bins),
        pairs_(plan.n_values()) {
    const bool wide = plan.rows == 1 || plan.rows >= kLeastExtent;
    if (wide && plan.columns >= kLeastExtent) spectrum_.emplace(plan.rows, plan.columns);
    const std::size_t n_bands = spectrum_ ? spectrum_->n_bands() : 0;
    for (auto* power : {&original_power_, &decoded_power_}) power->resize(n_bands);
  }

  /// Measure the field. Collective. @param shift  rotates the deal, so that successive fields of
  /// one box go to different ranks.
  Result<Fidelity> measure(std::size_t shift) {
    shift_ = shift;
    const Status mine = visit_dtype(task_.dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        // The range of 64-bit integers is rounded and may exceed the type's.
        search_.start(0, std::numeric_limits<std::uint64_t>::max());
      } else if (!task_.range.empty()) {
        search_.start(ordered_key(static_cast<T>(task_.range.least)),
                      ordered_key(static_cast<T>(task_.range.greatest)));
      }
      return for_each_box([&](const Box& box) { measure_box<T>(box); });
    });
    TAILRACE_TRY(ranks_.comm.agree(mine));
    share();
    Fidelity fidelity = result();
    if (n_values_ > 0) TAILRACE_TRY(find_ks(fidelity));
    return fidelity;
  }

 private:
  template <class Visit>
  Status for_each_box(Visit&& visit) {
    const std::uint64_t n_boxes = plan_.of_compressed.grid().n_chunks();
    const auto n_ranks = static_cast<std::uint64_t>(ranks_.comm.n_ranks());
    const std::uint64_t place = (static_cast<std::uint64_t>(ranks_.comm.rank()) + shift_) % n_ranks;
    const std::uint64_t each = n_boxes / n_ranks;
    const std::uint64_t more = n_boxes % n_ranks;  // The first ranks get one more.
    const std::uint64_t first = place * each + std::min(place, more);
    const std::uint64_t end = first + each + (place < more ? 1 : 0);
    for (std::uint64_t position = first; position < end; ++position) {
      const Box box =
          plan_.of_compressed.grid().clipped_box(plan_.of_compressed.chunk_at(position));
      from_.resize(box.n_elements() * dtype_bytes(task_.dtype));
      to_.resize(from_.size());
      TAILRACE_TRY(original_.read(task_.original_index, plan_.of_original, box, from_));
      TAILRACE_TRY(compressed_.read(task_.compressed_index, plan_.of_compressed, box, to_));
      visit(box);
    }
    return Status();
  }

  /// Call `visit(i, x, y, valid)` for each pair; valid: both are finite and not fill.
  template <class T, class Visit>
  void for_each_pair(Visit&& visit) const {
    const std::optional<T> fill = fill_as<T>(task_.fill_value);
    const std::optional<T> decoded_fill =
        task_.compressed_fill_value ? fill_as<T>(task_.compressed_fill_value) : fill;
    const auto counts = [](T value, const std::optional<T>& masked) {
      if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) return false;
      }
      return !masked || value != *masked;
    };
    for (std::size_t i = 0; i < from_.size() / sizeof(T); ++i) {
      T x;
      T y;
      std::memcpy(&x, from_.data() + i * sizeof(T), sizeof(T));
      std::memcpy(&y, to_.data() + i * sizeof(T), sizeof(T));
      visit(i, x, y, counts(x, fill) && counts(y, decoded_fill));
    }
  }

  template <class T>
  void measure_box(const Box& box) {
    const std::size_t n_map = plan_.n_values();
    const std::uint64_t first_map = n_map == 0 ? 0 : map_number(box);
    for_each_pair<T>([&](std::size_t i, T x, T y, bool counts) {
      if (counts) {
        add_pair(static_cast<double>(x), static_cast<double>(y));
        search_.count(ordered_key(x), ordered_key(y));
      }
      if (n_map == 0) return;
      constexpr double none = std::numeric_limits<double>::quiet_NaN();
      pairs_[i % n_map] = counts ? ValuePair{static_cast<double>(x), static_cast<double>(y)}
                                 : ValuePair{none, none};
      if (i % n_map == n_map - 1) measure_map(first_map + i / n_map);
    });
  }

  /// Number of the first map of a box, row-major over the dimensions before the maps.
  std::uint64_t map_number(const Box& box) const {
    std::uint64_t number = 0;
    for (std::size_t d = 0; d < plan_.grid.size(); ++d) {
      number = number * plan_.grid[d] + box.start[d];
    }
    return number;
  }

  void add_pair(double x, double y) {
    ++n_values_;
    const double error = y - x;
    const double anomaly = x - origin_;
    moments_[errors].add(error);
    moments_[squared_errors].add(error * error);
    moments_[anomalies].add(anomaly);
    moments_[squared_anomalies].add(anomaly * anomaly);
    moments_[products].add(anomaly * error);
  }

  void measure_map(std::uint64_t number) {
    const MapView map{pairs_, plan_.rows, plan_.columns};
    if (plan_.rows > 1) {
      ssim_.add(ssim(map, task_.range), number);
      data_ssim_.add(data_ssim(map), number);
    }
    if (spectrum_ && spectrum_->add(map, original_power_, decoded_power_)) ++n_spectra_;
  }

  /// Add up all ranks' sums and counts. Collective.
  void share() {
    std::vector<std::uint64_t> numbers{n_values_, n_spectra_, ssim_.n_maps, data_ssim_.n_maps};
    std::vector<ExactSum*> sums{&ssim_.sum, &data_ssim_.sum};
    for (ExactSum& sum : moments_) sums.push_back(&sum);
    for (ExactSum& sum : original_power_) sums.push_back(&sum);
    for (ExactSum& sum : decoded_power_) sums.push_back(&sum);
    for (ExactSum* sum : sums) {
      sum->carry();
      numbers.insert(numbers.end(), sum->limbs().begin(), sum->limbs().end());
    }
    ranks_.comm.allreduce(std::span(numbers), Reduction::sum);
    n_values_ = numbers[0];
    n_spectra_ = numbers[1];
    ssim_.n_maps = numbers[2];
    data_ssim_.n_maps = numbers[3];
    const std::uint64_t* from = numbers.data() + 4;
    for (ExactSum* sum : sums) {
      std::copy_n(from, ExactSum::kNLimbs, sum->limbs().begin());
      from += ExactSum::kNLimbs;
      sum->carry();
    }
    for (SimilaritySum* one : {&ssim_, &data_ssim_}) {
      std::array<double, 1> least{one->least};
      ranks_.comm.allreduce(std::span<double>(least), Reduction::min);
      constexpr auto nowhere = std::numeric_limits<std::uint64_t>::max();
      std::array<std::uint64_t, 1> map{one->least == least[0] ? one->least_map : nowhere};
      ranks_.comm.allreduce(std::span<std::uint64_t>(map), Reduction::min);
      one->least = least[0];
      one->least_map = map[0];
    }
  }

  double mean_of(std::size_t moment) const {
    return moments_[moment].value() / static_cast<double>(n_values_);
  }

  static std::optional<Similarity> similarity_of(const SimilaritySum& found) {
    if (found.n_maps == 0) return std::nullopt;
    return Similarity{found.n_maps, found.sum.value() / static_cast<double>(found.n_maps),
                      found.least, found.least_map};
  }

  Fidelity result() const {
    Fidelity fidelity;
    fidelity.n_values = n_values_;
    if (n_values_ > 0) set_moments(fidelity);
    if (plan_.rows > 1) fidelity.map_shape.push_back(plan_.rows);
    if (plan_.rows > 0) fidelity.map_shape.push_back(plan_.columns);
    if (plan_.rows > 0) fidelity.map_axes = plan_.axes;
    fidelity.map_grid = plan_.grid;
    fidelity.ssim = similarity_of(ssim_);
    fidelity.data_ssim = similarity_of(data_ssim_);
    if (!plan_.left_out.empty()) fidelity.left_out.push_back(plan_.left_out);
    for (std::size_t b = 0; n_spectra_ > 0 && b < original_power_.size(); ++b) {
      const auto n = static_cast<double>(n_spectra_);
      fidelity.spectrum.frequency.push_back(static_cast<double>(b + 1) /
                                            (2 * static_cast<double>(original_power_.size())));
      fidelity.spectrum.original.push_back(original_power_[b].value() / n);
      // Both transforms of a map share one, so equal values would differ in rounding.
      const auto& decoded = task_.equal ? original_power_ : decoded_power_;
      fidelity.spectrum.decoded.push_back(decoded[b].value() / n);
    }
    return fidelity;
  }

  void set_moments(Fidelity& fidelity) const {
    const auto if_finite = [](double value) { return value_if(std::isfinite(value), value); };
    const double error = mean_of(errors);
    const double anomaly = mean_of(anomalies);
    const double square = mean_of(squared_errors);
    fidelity.mean_bias = if_finite(error);
    fidelity.root_mean_square_error = if_finite(std::sqrt(square));
    // Use the moments of the errors, which are small; those of the decoded values would cancel.
    const double variance = mean_of(squared_anomalies) - anomaly * anomaly;
    const double covariance = mean_of(products) - anomaly * error;
    const double of_decoded = variance + 2 * covariance + (square - error * error);
    if (!(variance > 0) || !(of_decoded > 0)) return;
    fidelity.correlation =
        if_finite((variance + covariance) / std::sqrt(variance) / std::sqrt(of_decoded));
  }

  /// Find the Kolmogorov-Smirnov statistic. Collective.
  Status find_ks(Fidelity& fidelity) {
    if (task_.equal) {
      fidelity.ks_statistic = 0;
      fidelity.ks_p_value = 1;
      return Status();
    }
    ranks_.comm.allreduce(search_.counts(), Reduction::sum);
    while (search_.next(n_values_)) {
      const Status mine = visit_dtype(task_.dtype, [&]<class T>() {
        return for_each_box([&](const Box&) {
          for_each_pair<T>([&](std::size_t, T x, T y, bool counts) {
            if (counts) search_.count(ordered_key(x), ordered_key(y));
          });
        });
      });
      TAILRACE_TRY(ranks_.comm.agree(mine));
      ranks_.comm.allreduce(search_.counts(), Reduction::sum);
    }
    const auto n = static_cast<double>(n_values_);
    fidelity.ks_statistic = static_cast<double>(search_.most()) / n;
    fidelity.ks_at_most = static_cast<double>(search_.at_most()) / n;
    fidelity.ks_p_value = kolmogorov_p(*fidelity.ks_statistic, n_values_);
    return Status();
  }

  /// Sums over values. An anomaly is an original minus the middle of the originals' range.
  enum Moment : std::uint8_t {
    errors,
    squared_errors,
    anomalies,
    squared_anomalies,
    products,
    n_moments
  };

  TileReader& original_;
  TileReader& compressed_;
  const VerbRanks& ranks_;
  const FidelityTask& task_;
  const FidelityPlan& plan_;
  double origin_;
  DistributionSearch search_;
  std::vector<ValuePair> pairs_;  ///< Values of the current map.
  std::optional<MapSpectrum> spectrum_;
  std::size_t shift_ = 0;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  std::uint64_t n_values_ = 0;
  std::uint64_t n_spectra_ = 0;
  std::array<ExactSum, n_moments> moments_;
  SimilaritySum ssim_;
  SimilaritySum data_ssim_;
  std::vector<ExactSum> original_power_;
  std::vector<ExactSum> decoded_power_;
};

/// Bins of a pass's histogram: 16 bytes each.
constexpr std::size_t kLeastBins = std::size_t{1} << 12U;
constexpr std::size_t kMostBins = std::size_t{1} << 18U;

}  // namespace

Result<std::vector<Fidelity>> measure_fidelity(InputFile& original, InputFile& compressed,
                                               const VerbRanks& ranks,
                                               std::span<const FidelityTask> tasks,
                                               std::uint64_t memory_bytes) {
  const std::size_t n_bins = std::clamp(std::bit_floor(memory_bytes / 256), kLeastBins, kMostBins);
  std::vector<Fidelity> found;
  std::uint64_t total_bytes = 0;
  std::uint64_t done_bytes = 0;
  for (const FidelityTask& task : tasks) total_bytes += box_bytes_of(task, task.shape);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const FidelityPlan plan = plan_fidelity(tasks[t], memory_bytes);
    TileReader of_original(original, plan.held_bytes_max);
    TileReader of_compressed(compressed, plan.held_bytes_max);
    FidelityMeasure measure(of_original, of_compressed, ranks, tasks[t], plan, n_bins);
    TAILRACE_TAKE(Fidelity fidelity, measure.measure(t));
    found.push_back(std::move(fidelity));
    done_bytes += box_bytes_of(tasks[t], tasks[t].shape);
    ranks.show(done_bytes, total_bytes);
  }
  return found;
}

}  // namespace tailrace::verbs
