// Fidelity: effects of compression on a field beyond its largest error, for authors who publish it.
//
// The measures are mean bias, root mean square error, correlation, the two-sample
// Kolmogorov-Smirnov statistic, similarity of maps (SSIM) and power spectra. They cover the values
// that are finite and not fill in both files. A map is a plane of the last two dimensions that are
// longer than 1. Fields are read in boxes of complete maps, as many as memory allows; ranks share
// the boxes. docs/repack.md defines each number.
// Invariant: the numbers do not depend on ranks or memory. Sums over values are exact (ExactSum),
// counts are integers, and one rank measures each map completely.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "describe/input_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "verbs/report_fields.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {

/// A sum of doubles without rounding, so that neither order nor ranks change it. After carry(), the
/// sums of all ranks can be added limb by limb (modulo 2^64).
class ExactSum {
 public:
  /// Limbs of 32 bits each; the lowest bit is the smallest denormal. The last limb counts values
  /// that are not finite.
  static constexpr std::size_t kNLimbs = 71;

  void add(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto exponent = static_cast<unsigned>(bits >> 52U) & 0x7FFU;
    if (exponent == 0x7FFU) {
      ++limbs_[kNotFinite];
      return;
    }
    std::uint64_t digits = bits & ((std::uint64_t{1} << 52U) - 1);
    if (exponent != 0) digits |= std::uint64_t{1} << 52U;
    const unsigned place = exponent == 0 ? 0 : exponent - 1;
    const unsigned shift = place % kLimbBits;
    const std::size_t limb = place / kLimbBits;
    const std::uint64_t low = (digits << shift) & 0xFFFFFFFFU;
    const std::uint64_t rest = digits >> (kLimbBits - shift);  // Up to 53 bits, for two limbs.
    const std::uint64_t sign = bits >> 63U;
    const auto signed_part = [&](std::uint64_t part) { return (part ^ (0 - sign)) + sign; };
    limbs_[limb] += signed_part(low);
    limbs_[limb + 1] += signed_part(rest & 0xFFFFFFFFU);
    limbs_[limb + 2] += signed_part(rest >> 32U);
    if (++n_since_carry_ == 1U << 30U) carry();
  }
  /// Propagate the carries, so that sums of many ranks fit into the limbs.
  void carry();
  /// The sum, within 2 units in the last place; NaN if an infinity or a NaN was added. Call carry()
  /// first.
  double value() const;
  std::span<std::uint64_t> limbs() { return limbs_; }

 private:
  static constexpr unsigned kLimbBits = 32;
  static constexpr std::size_t kNotFinite = kNLimbs - 1;

  std::array<std::uint64_t, kNLimbs> limbs_{};  ///< Two's complement.
  std::uint32_t n_since_carry_ = 0;
};

/// Search for the greatest distance between two empirical distributions of equally many values, as
/// a number of values. It uses a histogram over ordered keys and refines the bins that may contain
/// the distance. Each pass counts all values, each on one rank; next() needs the counts summed over
/// all ranks.
class DistributionSearch {
 public:
  /// Tolerance of the distance, as a fraction of the number of values: finer than a report needs,
  /// and exact for fields of fewer than 10^5 values.
  static constexpr double tolerance = 1e-5;

  /// @param n_bins  number of bins per pass; >= 64.
  explicit DistributionSearch(std::size_t n_bins) : n_bins_(n_bins) {}
  /// Start a search that uses most bins between these keys.
  void start(std::uint64_t least, std::uint64_t greatest);
  void count(std::uint64_t original, std::uint64_t decoded) {
    count_one(original, 0);
    count_one(decoded, 1);
  }
  std::span<std::uint64_t> counts() { return counts_; }
  /// @returns true if another pass over all values is needed.
  bool next(std::uint64_t n_values);
  /// Greatest distance found so far, and upper limit of the greatest distance.
  std::uint64_t most() const { return most_; }
  std::uint64_t at_most() const { return std::max(most_, at_most_); }

 private:
  /// Keys [first, last] in bins of 2^shift keys.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t before = 0;  ///< Originals minus decoded values below `first`, modulo 2^64.
    std::uint64_t most = 0;    ///< Upper limit of the distance within the run.
    unsigned shift = 0;
    std::size_t first_bin = 0;

    std::size_t n_bins() const { return ((last - first) >> shift) + 1; }
  };

  void lay_out();
  void count_one(std::uint64_t key, std::size_t file) {
    const std::uint64_t least = runs_.front().first;
    if (key < least || key > runs_.back().last) return;
    const std::uint64_t bucket = (key - least) >> bucket_shift_;
    const auto begin = runs_.begin();
    auto run = std::upper_bound(begin + behind_[bucket], begin + behind_[bucket + 1], key,
                                [](std::uint64_t k, const Run& r) { return k < r.first; });
    if (run == begin) return;
    --run;
    if (key > run->last) return;
    ++counts_[2 * (run->first_bin + ((key - run->first) >> run->shift)) + file];
  }
  /// @returns the difference after the run.
  std::uint64_t judge(const Run& run, std::uint64_t before);

  std::size_t n_bins_;
  std::vector<Run> runs_;     ///< Runs of this pass, in key order.
  std::vector<Run> waiting_;  ///< Runs for a later pass.
  /// Number of runs that start before each bucket, so that a lookup searches few runs. Buckets hold
  /// 2^bucket_shift_ keys and start at the first run's first key.
  std::vector<std::uint32_t> behind_;
  unsigned bucket_shift_ = 0;
  std::vector<std::uint64_t> counts_;
  bool first_pass_ = true;
  std::uint64_t most_ = 0;
  std::uint64_t at_most_ = 0;
};

/// One field to measure.
struct FidelityTask {
  DType dtype = DType::f32;
  Shape shape;
  std::size_t original_index = 0;    ///< Index into the original's fields().
  std::size_t compressed_index = 0;  ///< Index into the compressed file's fields().
  Shape original_chunk;              ///< Shape as stored; empty: not chunked.
  Shape compressed_chunk;
  std::optional<double> fill_value;
  std::optional<double> compressed_fill_value;  ///< See VerifyTask.
  ValueRange range;                             ///< Range of the original.
  bool equal = false;                           ///< No value differs.
};

/// Mean and minimum of a similarity over the maps of a field.
struct Similarity {
  std::uint64_t n_maps = 0;
  double mean = 0;
  double least = 0;
  std::uint64_t least_map = 0;  ///< First map with the minimum, counted row-major over the other
                                ///< dimensions.
};

/// Power by spatial frequency, in cycles per grid step; means over the field's maps.
struct Spectrum {
  std::vector<double> frequency;
  std::vector<double> original;
  std::vector<double> decoded;
};

struct Fidelity {
  std::uint64_t n_values = 0;  ///< Number of values that are finite and not fill in both files.
  std::optional<double> mean_bias;
  std::optional<double> root_mean_square_error;
  std::optional<double> correlation;
  std::optional<double> ks_statistic;
  double ks_at_most = 0;  ///< Upper limit of the statistic; see docs/repack.md.
  double ks_p_value = 0;
  Shape map_shape;  ///< Two extents, one (a piece of a line), or none.
  Shape map_axes;   ///< Dimensions of a map, from 0.
  Shape map_grid;   ///< Number of maps along each preceding dimension.
  std::optional<Similarity> ssim;
  std::optional<Similarity> data_ssim;
  Spectrum spectrum;                  ///< Empty: not measured.
  std::vector<std::string> left_out;  ///< Sentences about measures that were left out, with the
                                      ///< reasons.
};

/// Measure one field after another. Collective; the same result on every rank.
/// @param memory_bytes  limit for values on a rank.
/// @error the reading error of the lowest failing rank.
Result<std::vector<Fidelity>> measure_fidelity(InputFile& original, InputFile& compressed,
                                               const VerbRanks& ranks,
                                               std::span<const FidelityTask> tasks,
                                               std::uint64_t memory_bytes);

template <class Visit>
void report_fields(const Spectrum& spectrum, Visit&& visit) {
  std::vector<std::optional<double>> ratio;
  for (std::size_t i = 0; i < spectrum.original.size(); ++i) {
    ratio.push_back(value_if(spectrum.original[i] > 0, spectrum.decoded[i] / spectrum.original[i]));
  }
  visit("frequency", spectrum.frequency);
  visit("original", spectrum.original);
  visit("decoded", spectrum.decoded);
  visit("ratio", ratio);
}

/// A similarity with the position of its minimum.
struct PlacedSimilarity {
  const Similarity& found;
  const Shape& grid;
};

template <class Visit>
void report_fields(const PlacedSimilarity& placed, Visit&& visit) {
  visit("n_maps", placed.found.n_maps);
  visit("mean", placed.found.mean);
  visit("least", placed.found.least);
  Shape at(placed.grid.size());
  std::uint64_t map = placed.found.least_map;
  for (std::size_t d = at.size(); d-- > 0; map /= placed.grid[d]) at[d] = map % placed.grid[d];
  visit("least_map", at);
}

template <class Visit>
void report_fields(const Fidelity& fidelity, Visit&& visit) {
  const auto placed = [&](const std::optional<Similarity>& found) {
    return found ? std::optional<PlacedSimilarity>({*found, fidelity.map_grid}) : std::nullopt;
  };
  const bool has_ks = fidelity.ks_statistic.has_value();
  visit("n_values", fidelity.n_values);
  visit("mean_bias", fidelity.mean_bias);
  visit("root_mean_square_error", fidelity.root_mean_square_error);
  visit("correlation", fidelity.correlation);
  visit("ks_statistic", fidelity.ks_statistic);
  visit("ks_at_most", value_if(has_ks, fidelity.ks_at_most));
  visit("ks_p_value", value_if(has_ks, fidelity.ks_p_value));
  visit("map_shape", fidelity.map_shape);
  visit("map_axes", fidelity.map_axes);
  visit("ssim", placed(fidelity.ssim));
  visit("data_ssim", placed(fidelity.data_ssim));
  visit("spectrum", value_if(!fidelity.spectrum.frequency.empty(), fidelity.spectrum));
  visit("left_out", fidelity.left_out);
}

}  // namespace tailrace::verbs
