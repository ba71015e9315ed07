// Exact coding: a sample of a chunk, and what its words cost under each order of prediction.
//
// Runs of 64 values, scattered over the chunk, with the neighbours they really have. The cost of a
// run's codes is that of the streams which the groups make of them: exact but for what a Huffman
// code loses against the entropy.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/exact/exact.hpp"

namespace tailrace::trz {

/// What a few hundred values, one by one, say about all.
struct ExactLook {
  std::uint64_t origin = 0;       ///< The integer of a typical value.
  std::uint64_t origin_bits = 0;  ///< That value's own bits.
  std::uint64_t factor = 1;       ///< Of all differences seen.
  std::uint64_t range = 0;        ///< Greatest minus least integer, special values left out.
  bool has_special = false;
  std::uint64_t special = 0;
  double repeated_share = 0;  ///< Of values that occur more than once, special values left out.
};

class ExactSample {
 public:
  ExactSample(const ExactValues& values, Workspace& workspace);

  /// False when memory is out.
  bool ok() const { return codes_ != nullptr; }

  ExactLook look();

  /// Bits a value of the best order in 1..greatest, and of order 0.
  struct Costs {
    int best_order = 0;
    double best_bits = 0;
    double unpredicted_bits = 0;
    double low_bits = 0;          ///< Of the best order's low words, if wide.
    double special_bits = 0;      ///< To say where the special values are; included above.
    double special_share = 0;     ///< Of the sampled values.
    std::size_t table_bytes = 0;  ///< Huffman's tables, once a chunk.
  };
  /// What words (or wide words) made by `plan` cost. Sets best_order and all the rest.
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
  int axes_ = 1;  ///< Greatest order that makes sense.
  std::size_t n_runs_ = 0;
  std::array<std::size_t, kRunsMax> starts_{};
  std::size_t n_changes_ = 0;  ///< Of special and other values, in the runs.
  std::size_t n_special_ = 0;
  std::int64_t* codes_ = nullptr;  ///< kOrders times kRunsMax * kRunValues.
  std::uint8_t* streams_ = nullptr;
};

}  // namespace tailrace::trz
