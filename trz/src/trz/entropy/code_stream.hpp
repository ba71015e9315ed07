// The stream of codes between a predictor and the entropy stage, and estimates of its size.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/group_kernels.hpp"

namespace tailrace::trz {

// --- Code cost: bits per code, estimated from the sum of the codes' magnitudes.
//
// Groups of codes adapt to the local magnitude. So the cost of a run of codes with mean magnitude m
// is about the entropy of the two-sided geometric distribution with this mean. The C library's
// logarithm may differ between machines, so this code uses IEEE arithmetic in one fixed order.

/// log2 of a normal positive number, with an error of about 1e-6.
double log2_of(double value);

/// Entropy, in bits, of the two-sided geometric distribution with this mean magnitude (>= 0).
double entropy_of_mean(double mean);

/// Bits per code in a run of kRunValues codes, interpolated in a table of entropy_of_mean().
class RunCosts {
 public:
  /// The table; made by the first call. Thread-safe.
  static const RunCosts& table();

  /// Cost of a run, given the sum of its magnitudes.
  double of(std::uint64_t sum) const {
    return sum == 0 ? 0 : interpolated(static_cast<double>(sum));
  }
  /// Cost of a run, given its mean magnitude (any number >= 0).
  double of_mean(double mean) const;
  /// Mean magnitude of a run with this cost, rounded down to an entry of the table.
  double mean_of(double cost) const;

 private:
  RunCosts();
  /// Cost of a sum >= 1.
  double interpolated(double sum) const {
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    const auto at = static_cast<std::size_t>((bits >> 48) - kFirst);
    const double part = static_cast<double>(bits & 0xFFFFFFFFFFFFULL) * 0x1p-48;
    return cost_[at] + (cost_[at + 1] - cost_[at]) * part;
  }
  static constexpr std::uint64_t kFirst = 1023U << 4;  ///< Sixteen entries per power of two.
  static constexpr std::size_t kEntries = 512;         ///< 32 powers of two: sums below 2^32.
  std::array<double, kEntries + 1> cost_;
};

// --- CodeWriter and CodeReader: the stream of codes between a predictor and the entropy stage.
//
// A predictor produces (or consumes) exactly one code per value, in the order that the format fixes
// for this predictor. It works row by row: reserve() space, fill it, commit(); or take() codes. The
// stream passes complete groups of 64 codes to group_kernels while they are still in the cache. The
// last group is padded with zeros. kRowCodes is the longest row; predictors split longer rows.

inline constexpr std::size_t kRowCodes = 4096;

/// Conversion of codes to bytes: grouped classes for Huffman coding, or bit packing (preset fast).
enum class CodeForm : std::uint8_t { grouped, packed };

class CodeWriter {
 public:
  CodeWriter(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer)
      : kernels_(kernels), form_(form), buffer_(buffer) {}

  /// Number of entries that `buffer` must have.
  static constexpr std::size_t kBufferCodes = 2 * kRowCodes + 2 * kGroupCodes;

  /// Contiguous space for n <= kRowCodes codes; valid until the next reserve().
  std::int32_t* reserve(std::size_t n) {
    if (n_held_ + n > 2 * kRowCodes) drain();
    return buffer_ + n_held_;
  }
  /// Append the n codes written into the reserved space.
  void commit(std::size_t n) { n_held_ += n; }
  /// Pad the last group with zeros and pass all remaining groups on.
  void finish();

  GroupCursor grouped;             ///< Output of the grouped form; set before the first reserve().
  std::uint8_t* widths = nullptr;  ///< Output of the packed form, likewise; advanced by writing.
  std::uint8_t* planes = nullptr;
  std::size_t n_groups = 0;  ///< Number of groups passed on so far.

 private:
  void drain();

  const GroupKernels& kernels_;
  CodeForm form_;
  std::int32_t* buffer_;
  std::size_t n_held_ = 0;
};

class CodeReader {
 public:
  /// @param n_groups  number of groups in the streams, as checked by the caller.
  CodeReader(const GroupKernels& kernels, CodeForm form, std::int32_t* buffer, std::size_t n_groups)
      : kernels_(kernels), form_(form), buffer_(buffer), n_groups_left_(n_groups) {}

  /// The next n <= kRowCodes codes, contiguous; valid until the next take(). Zeros after the stream
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
