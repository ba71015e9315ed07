// Exact coding: a sample of a chunk, and the cost of its words for each order of prediction.
//
// The sample consists of runs of 64 values, scattered over the chunk, with their real neighbours.
// The cost of the codes is that of the streams into which groups split them. It is exact except for
// the loss of a Huffman code against the entropy.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/exact/exact.hpp"

namespace tailrace::trz {

/// Properties of a chunk, inferred from up to 1024 single values.
struct ExactLook {
  std::uint64_t origin = 0;       ///< Integer of a typical value.
  std::uint64_t origin_bits = 0;  ///< Bits of the typical value.
  std::uint64_t factor = 1;       ///< Common factor of all differences seen.
  std::uint64_t range = 0;        ///< Greatest minus least integer, without special values.
  bool has_special = false;
  std::uint64_t special = 0;
  double repeated_share = 0;  ///< Share of values that repeat another one, without special values.
};

class ExactSample {
 public:
  ExactSample(const ExactValues& values, Workspace& workspace);

  /// False if out of memory.
  bool ok() const { return codes_ != nullptr; }

  ExactLook look();

  /// Cost in bits per value of the best order, and of order 0 (unpredicted).
  struct Costs {
    int best_order = 0;
    double best_bits = 0;
    double unpredicted_bits = 0;
    double low_bits = 0;          ///< Bits of the best order's low words, if wide.
    double special_bits = 0;      ///< Bits for the special values' positions; included above.
    double special_share = 0;     ///< Share of special values in the sample.
    std::size_t table_bytes = 0;  ///< Bytes of Huffman tables, once per chunk.
  };
  /// Measure the cost of the words (or wide words) made with `plan`. Sets all members of Costs.
  Costs measure(const ExactPlan& plan, bool wide);

 private:
  static constexpr std::size_t kRunValues = 64;
  static constexpr std::size_t kRunsMax = 128;
  static constexpr std::size_t kOrders = 5;
  using Run64 = std::array<std::int64_t, kRunValues>;

  struct Seen;
  std::size_t see(Seen* seen) const;
  static const Seen* find_mask(const Seen* seen, std::size_t* first, std::size_t* last);
  template <class Word>
  std::uint64_t load_run(std::size_t start, std::size_t n, const ExactPlan& plan,
                         std::int64_t* words) const;
  void predict_run(std::size_t run, std::size_t start, std::size_t n, const ExactPlan& plan,
                   bool wide);
  void zero_outside(std::size_t start, std::size_t n, Run64* rows) const;
  double split_bits(const std::int32_t* codes, std::size_t* table_bytes);

  ExactValues values_;
  Workspace& workspace_;
  std::size_t n_values_ = 0;
  std::size_t element_bytes_ = 0;
  int axes_ = 1;  ///< Greatest useful order: number of axes up to the slowest longer than 1.
  std::size_t n_runs_ = 0;
  std::array<std::size_t, kRunsMax> starts_{};
  std::size_t n_changes_ = 0;  ///< Changes between special and other values within runs.
  std::size_t n_special_ = 0;
  std::int64_t* codes_ = nullptr;  ///< kOrders times kRunsMax * kRunValues codes.
  std::uint8_t* streams_ = nullptr;
};

}  // namespace tailrace::trz
