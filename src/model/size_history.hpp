// SizeHistory: learns a field's chunk sizes from step to step, and within a step.
//
// A size has three sources. The first is a sample of the chunk; its bias is the same for all chunks
// of a field, and a running calibration corrects it. The second is the same chunk's size in the
// previous step times the drift of the field (Jin et al. 2024, III-D: 1.45 % mean change). The
// third is both, weighted by their past accuracy. All learning uses log(actual / forecast), so that
// "a tenth too small" and "a tenth too large" weigh the same and no size becomes negative.
//
// Recorded sizes count from the next end_batch() on, which keeps the deviation unbiased. An error
// is measured against the knowledge at the time of the forecast. So it includes changes that are
// common to all chunks of a step.

#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tailrace {

/// Forecast size with its standard deviation, in bytes.
struct SizeForecast {
  double encoded_bytes = 0;
  double deviation_bytes = 0;
};

/// Size history of one field on one rank. Not thread-safe.
class SizeHistory {
 public:
  SizeHistory();
  /// Forecast a chunk's size. `sampled_bytes` is the uncorrected value of an Estimate, if
  /// available. `sample_spread` is its spread (0: unknown), used until the field's own spread is
  /// known.
  /// @returns nothing if the chunk has neither a sample nor a previous step.
  std::optional<SizeForecast> forecast(std::uint64_t chunk_index,
                                       std::optional<double> sampled_bytes,
                                       double sample_spread = 0) const;

  /// Learn from a chunk's actual size, with its sample, if any.
  void record(std::uint64_t chunk_index, std::optional<double> sampled_bytes,
              std::uint64_t encoded_bytes);
  /// Apply the sizes recorded since the last call to later forecasts. Call it after each step, or
  /// after each chunk if the next chunk's forecast comes later.
  void end_batch();
  /// Forget the sizes of single chunks, because the rank owns other chunks now; keep calibrations.
  void forget_chunks();
  bool has_previous(std::uint64_t chunk_index) const;

 private:
  /// Errors of forecasts, in logarithms; older ones fade.
  class Errors {
   public:
    void add(double error);
    void end_batch();
    /// Mean square error; close to `assumed` while few errors are known.
    double variance(double assumed) const;
    /// Subtract the mean from the batch's errors: it was a bias, and is corrected from now on.
    void take_out_mean();

   private:
    double squares_ = 0;
    double weight_ = 0;
    double batch_sum_ = 0;
    double batch_squares_ = 0;
    double batch_count_ = 0;
  };
  /// Correction factor of one source, and the error that remains. In logarithms.
  class Calibration {
   public:
    /// @param trust  weight, in chunks, of the initial assumption that the source has no bias.
    explicit Calibration(double trust) : weight_(trust) {}
    double mean() const { return mean_; }
    double variance(double assumed_deviation) const;
    void add(double log_ratio);
    void end_batch();

   private:
    double weight_;  ///< Number of chunks that the mean is based on.
    double mean_ = 0;
    double batch_sum_ = 0;
    double batch_count_ = 0;
    Errors errors_;
  };
  /// Logarithm of a size, and its variance.
  struct LogForecast {
    double mean = 0;
    double variance = 0;
  };
  std::optional<LogForecast> log_forecast(std::uint64_t chunk_index,
                                          std::optional<double> sampled_bytes,
                                          double sample_spread) const;

  std::map<std::uint64_t, double> previous_bytes_;
  std::map<std::uint64_t, double> recorded_bytes_;  ///< Sizes since the last end_batch().
  Calibration of_sample_;
  Calibration of_previous_;
  Errors of_both_;
};

}  // namespace tailrace
