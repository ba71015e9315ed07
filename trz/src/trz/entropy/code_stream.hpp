// Codes on their way from a predictor to the entropy stage, and what they would cost there.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/group_kernels.hpp"

namespace tailrace::trz {

// --- Code cost: bits that a group of codes takes, from the sum of their magnitudes.
//
// Groups of codes adapt to the local size, so a run of codes with mean magnitude m costs about the
// entropy of the two-sided geometric distribution with this mean. No logarithm of the C library,
// which may differ between machines: IEEE arithmetic in one order alone.

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

// --- CodeWriter and CodeReader: the stream of codes between a predictor and the entropy stage.
//
// A predictor produces (or consumes) exactly one code per value, in an order of its own that the
// format fixes. It works row by row: reserve() room, fill it, commit(); or take() codes. Behind,
// complete groups of 64 go to group_kernels at once, while they are in the cache; the last group is
// filled up with zeros. kRowCodes is the longest row; longer rows are cut by the predictor.

inline constexpr std::size_t kRowCodes = 4096;

/// How codes become bytes: grouped classes for Huffman, or bit packing (the fast preset).
enum class CodeForm : std::uint8_t { grouped, packed };

class CodeWriter {
 public:
  CodeWriter(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer)
      : kernels_(kernels), form_(form), buffer_(buffer) {}

  /// Entries that `buffer` must have.
  static constexpr std::size_t buffer_codes = 2 * kRowCodes + 2 * kGroupCodes;

  /// Room for n <= kRowCodes codes, in a row; stays valid until the next reserve().
  std::int32_t* reserve(std::size_t n) {
    if (n_held_ + n > 2 * kRowCodes) drain();
    return buffer_ + n_held_;
  }
  /// The n codes last reserved are there.
  void commit(std::size_t n) { n_held_ += n; }
  /// Fill the last group with zeros and hand everything on.
  void finish();

  GroupCursor grouped;             ///< Set by the owner before the first reserve().
  std::uint8_t* widths = nullptr;  ///< Of the packed form, likewise; advanced.
  std::uint8_t* planes = nullptr;
  std::size_t n_groups = 0;  ///< Handed on so far.

 private:
  void drain();

  const GroupKernels& kernels_;
  CodeForm form_;
  std::int32_t* buffer_;
  std::size_t n_held_ = 0;
};

class CodeReader {
 public:
  /// n_groups: all there are; the streams hold that many (checked before).
  CodeReader(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer, std::size_t n_groups)
      : kernels_(kernels), form_(form), buffer_(buffer), n_groups_left_(n_groups) {}

  /// The next n <= kRowCodes codes, in a row; valid until the next take(). Zeros once the stream
  /// has failed or ended.
  const std::int32_t* take(std::size_t n) {
    if (n_end_ - n_begin_ < n) refill(n);
    const std::int32_t* codes = buffer_ + n_begin_;
    n_begin_ += n;
    return codes;
  }
  bool failed() const { return failed_; }

  GroupCursor grouped;
  const std::uint8_t* widths = nullptr;
  const std::uint8_t* planes = nullptr;

 private:
  void refill(std::size_t n);

  const GroupKernels& kernels_;
  CodeForm form_;
  std::int32_t* buffer_;
  std::size_t n_groups_left_;
  std::size_t n_begin_ = 0;
  std::size_t n_end_ = 0;
  bool failed_ = false;
};

}  // namespace tailrace::trz
