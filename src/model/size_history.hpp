// SizeHistory: what is learned of one field's chunk sizes from step to step, and within a step.
//
// Three sources of a size: a sample of the chunk (biased in the same way for all chunks of a field:
// a running calibration removes that), the same chunk's size in the previous step times the drift
// of the field (Jin et al. 2024, III-D: 1.45 % mean change), and both, weighted by how well each
// did before. Everything is learned of log(actual / forecast), so that "a tenth too small" and "a
// tenth too large" weigh the same and no size becomes negative.
//
// What is recorded counts from the next end_batch() on. That keeps the deviation honest: an error
// is measured against what was known when the forecast was made, so that a change common to all
// chunks of a step shows in it.

#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tailrace {

/// A size with its standard deviation, both in bytes.
struct SizeForecast {
  double encoded_bytes = 0;
  double deviation_bytes = 0;
};

/// Of one field on one rank. Not thread-safe.
class SizeHistory {
 public:
  SizeHistory();
  /// Forecast a chunk's size. `sampled_bytes` is an Estimate's raw value, if there is one, and
  /// `sample_spread` its spread (0: not known), which counts until the field has shown its own.
  /// Nothing where there is neither a sample nor a previous step.
  std::optional<SizeForecast> forecast(std::uint64_t chunk_index,
                                       std::optional<double> sampled_bytes,
                                       double sample_spread = 0) const;

  /// Learn what became of a chunk, with the sample that was taken of it, if any.
  void record(std::uint64_t chunk_index, std::optional<double> sampled_bytes,
              std::uint64_t encoded_bytes);
  /// What was recorded since the last call counts in forecasts from here on. Call it after each
  /// step; or after each chunk, where the next one's forecast is made after that.
  void end_batch();
  /// Forget the sizes of single chunks (other chunks are this rank's now); calibrations stay.
  void forget_chunks();
  bool has_previous(std::uint64_t chunk_index) const;

 private:
  /// How far forecasts were off, in logarithms; older ones fade.
  class Errors {
   public:
    void add(double error);
    void end_batch();
    /// The mean square, or `assumed` as long as next to nothing has been seen.
    double variance(double assumed) const;
    /// The batch's errors have their mean taken out: it was a bias that is corrected from now on.
    void take_out_mean();

   private:
    double squares_ = 0;
    double weight_ = 0;
    double batch_sum_ = 0;
    double batch_squares_ = 0;
    double batch_count_ = 0;
  };
  /// What one source must be multiplied by, and how far it is off then. In logarithms.
  class Calibration {
   public:
    /// `trust`: how many chunks the assumption is worth that the source is right as it stands.
    explicit Calibration(double trust) : weight_(trust) {}
    double mean() const { return mean_; }
    double variance(double assumed_deviation) const;
    void add(double log_ratio);
    void end_batch();

   private:
    double weight_;  ///< Chunks that the mean stands for.
    double mean_ = 0;
    double batch_sum_ = 0;
    double batch_count_ = 0;
    Errors errors_;
  };
  /// The logarithm of a size, and its variance.
  struct LogForecast {
    double mean = 0;
    double variance = 0;
  };
  std::optional<LogForecast> log_forecast(std::uint64_t chunk_index,
                                          std::optional<double> sampled_bytes,
                                          double sample_spread) const;

  std::map<std::uint64_t, double> previous_bytes_;
  std::map<std::uint64_t, double> recorded_bytes_;  ///< Since the last end_batch().
  Calibration of_sample_;
  Calibration of_previous_;
  Errors of_both_;
};

}  // namespace tailrace
