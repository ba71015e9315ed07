// The stream of codes between a predictor and the entropy stage, and estimates of its size.

#include "trz/entropy/code_stream.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trz/kernels/sample_kernels.hpp"

namespace tailrace::trz {

double log2_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  const double t = (m - 1.5) / (m + 1.5);  // m = 1.5 (1 + t) / (1 - t), |t| <= 0.2
  const double t2 = t * t;
  const double series =
      t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 * (1.0 / 9 + t2 / 11)))));
  constexpr double log2_of_e = 1.4426950408889634;
  constexpr double log2_of_1_5 = 0.5849625007211562;
  return exponent + log2_of_1_5 + 2 * log2_of_e * series;
}

double entropy_of_mean(double mean) {
  if (!(mean > 0)) return 0;
  const double theta = (std::sqrt(1 + mean * mean) - 1) / mean;
  if (!(theta < 1)) return 64;
  return -log2_of((1 - theta) / (1 + theta)) - mean * log2_of(theta);
}

RunCosts::RunCosts() : cost_() {
  for (std::size_t i = 0; i <= kEntries; ++i) {
    const double sum = std::bit_cast<double>((kFirst + i) << 48);
    cost_[i] = entropy_of_mean(sum / kRunValues);
  }
}

double RunCosts::of_mean(double mean) const {
  const double sum = mean * kRunValues;
  if (!(sum >= 1)) return sum * cost_[0];
  return sum < 0x1p31 ? interpolated(sum) : cost_[kEntries];
}

double RunCosts::mean_of(double cost) const {
  if (!(cost >= cost_[0])) return cost / cost_[0] / kRunValues;
  const auto above = std::upper_bound(cost_.begin(), cost_.end(), cost);
  const auto at = static_cast<std::uint64_t>(above - cost_.begin()) - 1;
  return std::bit_cast<double>((kFirst + at) << 48) / kRunValues;
}

const RunCosts& RunCosts::table() {
  static const RunCosts costs;
  return costs;
}

// --- CodeWriter and CodeReader: the stream between the predictors and the groups.

void CodeWriter::drain() {
  const std::size_t n_whole = n_held_ / kGroupCodes;
  if (form_ == CodeForm::grouped) {
    kernels_.split(buffer_, n_whole, grouped);
  } else {
    planes = kernels_.pack(buffer_, n_whole, widths, planes);
    widths += n_whole;
  }
  n_groups += n_whole;
  const std::size_t n_rest = n_held_ - n_whole * kGroupCodes;
  std::memmove(buffer_, buffer_ + n_whole * kGroupCodes, n_rest * sizeof(std::int32_t));
  n_held_ = n_rest;
}

void CodeWriter::finish() {
  const std::size_t n_short = n_held_ % kGroupCodes;
  if (n_short != 0) {
    std::memset(buffer_ + n_held_, 0, (kGroupCodes - n_short) * sizeof(std::int32_t));
    n_held_ += kGroupCodes - n_short;
  }
  drain();
}

void CodeReader::refill(std::size_t n) {
  const std::size_t n_held = n_end_ - n_begin_;
  std::memmove(buffer_, buffer_ + n_begin_, n_held * sizeof(std::int32_t));
  n_begin_ = 0;
  n_end_ = n_held;
  // Read all groups that fit: join() is faster over many groups at a time.
  std::size_t n_groups = (2 * kRowCodes - n_held) / kGroupCodes;
  if (n_groups > n_groups_left_) n_groups = n_groups_left_;
  if (!failed_ && n_groups > 0) {
    if (form_ == CodeForm::grouped) {
      failed_ = !kernels_.join(grouped, n_groups, buffer_ + n_held);
    } else {
      planes = kernels_.unpack(widths, n_groups, planes, buffer_ + n_held);
      widths += n_groups;
    }
    n_groups_left_ -= n_groups;
    if (!failed_) n_end_ += n_groups * kGroupCodes;
  }
  if (n_end_ < n) {
    std::memset(buffer_ + n_end_, 0, (n - n_end_) * sizeof(std::int32_t));
    n_end_ = n;
    failed_ = true;
  }
}

}  // namespace tailrace::trz
