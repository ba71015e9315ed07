// Calibrations with fading memory, and the combination of sample and previous step.

#include "model/size_history.hpp"

#include <algorithm>
#include <cmath>

namespace tailrace {
namespace {

/// Number of chunks in memory; older ones fade. Large enough to average the noise of single
/// samples, small enough to follow a simulation over a few steps.
constexpr double kMemoryChunks = 32;
/// Initial weight of an assumed deviation, in observations. Each observation reduces the weight by
/// a factor of e, since the assumption may be ten times the deviation of a quiet field.
constexpr double kAssumptionWeight = 2;
/// Maximum error factor. A source that is off by more does not predict the next chunk (one that has
/// become constant, say), and counts as this factor.
constexpr double kRatioMax = 4;

/// Assumed deviations of a sample with unknown spread, and of a step's change. The latter is twice
/// the value of Jin et al. 2024 (III-D: 1.45 %), so that the second step of a turbulent field is
/// not trusted too much.
constexpr double kSampleDeviation = 0.1;
constexpr double kChangeDeviation = 0.03;
/// Initial trust: a sample's bias is unknown, whereas unchanged sizes are a reasonable guess.
constexpr double kSampleTrust = 0;
constexpr double kChangeTrust = 2;

double log_of_bytes(double bytes) { return std::log(std::max(bytes, 1.0)); }

}  // namespace

void SizeHistory::Errors::add(double error) {
  batch_sum_ += error;
  batch_squares_ += error * error;
  batch_count_ += 1;
}

void SizeHistory::Errors::take_out_mean() {
  if (batch_count_ == 0) return;
  // The mean uses one degree of freedom: a single chunk reveals nothing about the deviation.
  batch_squares_ = std::max(batch_squares_ - batch_sum_ * batch_sum_ / batch_count_, 0.0);
  batch_count_ -= 1;
}

void SizeHistory::Errors::end_batch() {
  if (weight_ > kMemoryChunks) {
    squares_ *= kMemoryChunks / weight_;
    weight_ = kMemoryChunks;
  }
  squares_ += batch_squares_;
  weight_ += batch_count_;
  batch_sum_ = batch_squares_ = batch_count_ = 0;
}

double SizeHistory::Errors::variance(double assumed) const {
  if (weight_ == 0) return assumed;
  // A mean square of few errors is itself uncertain: widen it, like Student's distribution.
  const double seen = squares_ / weight_ * (1 + 2 / weight_);
  const double trust = kAssumptionWeight * std::exp(-weight_);
  return (seen * weight_ + trust * assumed) / (weight_ + trust);
}

double SizeHistory::Calibration::variance(double assumed_deviation) const {
  const double spread = errors_.variance(assumed_deviation * assumed_deviation);
  return weight_ > 0 ? spread * (1 + 1 / weight_) : spread;
}

void SizeHistory::Calibration::add(double log_ratio) {
  const double limit = std::log(kRatioMax);
  const double error = std::clamp(log_ratio - mean_, -limit, limit);
  errors_.add(error);
  batch_sum_ += error;
  batch_count_ += 1;
}

void SizeHistory::Calibration::end_batch() {
  if (batch_count_ == 0) return;
  if (weight_ == 0) errors_.take_out_mean();
  errors_.end_batch();
  weight_ = std::min(weight_, kMemoryChunks) + batch_count_;
  mean_ += batch_sum_ / weight_;
  batch_sum_ = batch_count_ = 0;
}

SizeHistory::SizeHistory() : of_sample_(kSampleTrust), of_previous_(kChangeTrust) {}

std::optional<SizeHistory::LogForecast> SizeHistory::log_forecast(
    std::uint64_t chunk_index, std::optional<double> sampled_bytes, double sample_spread) const {
  const auto previous = previous_bytes_.find(chunk_index);
  std::optional<LogForecast> by_sample;
  std::optional<LogForecast> by_previous;
  if (sampled_bytes) {
    by_sample = {log_of_bytes(*sampled_bytes) + of_sample_.mean(),
                 of_sample_.variance(sample_spread > 0 ? sample_spread : kSampleDeviation)};
  }
  if (previous != previous_bytes_.end()) {
    by_previous = {log_of_bytes(previous->second) + of_previous_.mean(),
                   of_previous_.variance(kChangeDeviation)};
  }
  if (!by_sample || !by_previous) return by_sample ? by_sample : by_previous;
  const double variance = 1 / (1 / by_sample->variance + 1 / by_previous->variance);
  const double mean = variance * (by_sample->mean / by_sample->variance +
                                  by_previous->mean / by_previous->variance);
  // Errors of both sources are usually correlated, so use the observed errors of the combination.
  return LogForecast{mean, of_both_.variance(variance)};
}

std::optional<SizeForecast> SizeHistory::forecast(std::uint64_t chunk_index,
                                                  std::optional<double> sampled_bytes,
                                                  double sample_spread) const {
  const std::optional<LogForecast> expected =
      log_forecast(chunk_index, sampled_bytes, sample_spread);
  if (!expected) return std::nullopt;
  const double bytes = std::exp(expected->mean);
  return SizeForecast{bytes, bytes * std::sqrt(expected->variance)};
}

void SizeHistory::record(std::uint64_t chunk_index, std::optional<double> sampled_bytes,
                         std::uint64_t encoded_bytes) {
  const double actual = log_of_bytes(static_cast<double>(encoded_bytes));
  const auto previous = previous_bytes_.find(chunk_index);
  if (sampled_bytes) of_sample_.add(actual - log_of_bytes(*sampled_bytes));
  if (previous != previous_bytes_.end()) of_previous_.add(actual - log_of_bytes(previous->second));
  if (sampled_bytes && previous != previous_bytes_.end()) {
    of_both_.add(actual - log_forecast(chunk_index, sampled_bytes, 0)->mean);
  }
  recorded_bytes_[chunk_index] = static_cast<double>(encoded_bytes);
}

void SizeHistory::end_batch() {
  of_sample_.end_batch();
  of_previous_.end_batch();
  of_both_.end_batch();
  for (const auto& [chunk_index, bytes] : recorded_bytes_) previous_bytes_[chunk_index] = bytes;
  recorded_bytes_.clear();
}

void SizeHistory::forget_chunks() {
  previous_bytes_.clear();
  recorded_bytes_.clear();
}

bool SizeHistory::has_previous(std::uint64_t chunk_index) const {
  return previous_bytes_.contains(chunk_index);
}

}  // namespace tailrace
