// Code cost: bits that a group of codes takes, from the sum of their magnitudes.
//
// Groups of codes adapt to the local size, so a run of codes with mean magnitude m costs about the
// entropy of the two-sided geometric distribution with this mean. No logarithm of the C library,
// which may differ between machines: IEEE arithmetic in one order alone.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tailrace::trz {

/// log2 of a normal positive number, to about 1e-6.
double log2_of(double value);

/// Entropy in bits of the two-sided geometric distribution with mean magnitude m >= 0.
double entropy_of_mean(double mean);

/// The same of a run of kRunValues codes, from their sum, by interpolation in a table.
class RunCosts {
 public:
  /// The table, made at the first call. Thread-safe.
  static const RunCosts& table();

  double of(std::uint64_t sum) const {
    return sum == 0 ? 0 : interpolated(static_cast<double>(sum));
  }
  /// From the mean magnitude, which may be any number >= 0.
  double of_mean(double mean) const;
  /// The mean magnitude that makes this cost.
  double mean_of(double cost) const;

 private:
  RunCosts();
  /// For sums of 1 and more.
  double interpolated(double sum) const {
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    const auto at = static_cast<std::size_t>((bits >> 48) - kFirst);
    const double part = static_cast<double>(bits & 0xFFFFFFFFFFFFULL) * 0x1p-48;
    return cost_[at] + (cost_[at + 1] - cost_[at]) * part;
  }
  static constexpr std::uint64_t kFirst = 1023U << 4;  ///< Sixteen entries from each power of two.
  static constexpr std::size_t kEntries = 512;         ///< 16 for each of 32: sums below 2^31.
  std::array<double, kEntries + 1> cost_;
};

}  // namespace tailrace::trz
