// Order of work: in which order a rank encodes its chunks, so that the I/O lane starts early and
// ends with the encode lane.
//
// Source: Jin et al. 2022, III-E, algorithm 1 (insertion: O(n^2) evaluations of O(n) each; ours
// evaluates an insertion in O(1) by prefix and suffix maxima). Johnson 1954 is the optimum for one
// encode thread and one I/O lane without obstacles. Plain orders stand beside them for comparison.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// What a chunk is expected to cost. Seconds.
struct JobCost {
  double encode_s = 0;
  double write_s = 0;
};

enum class OrderRule : std::uint8_t {
  given,           ///< By field, then by chunk index.
  largest_first,   ///< Longest write first.
  smallest_first,  ///< Shortest encode first.
  insertion,       ///< Jin et al. 2022, algorithm 1.
  johnson          ///< Johnson's rule.
};

struct OrderEntry {
  OrderRule rule;
  std::string_view name;     ///< "given", "largest-first", ...
  std::string_view summary;  ///< For --help.
};
std::span<const OrderEntry> order_registry();
/// @error invalid_argument  no rule of this name; lists those there are.
Result<OrderRule> parse_order(std::string_view name);

/// The order of work: a permutation of the jobs' indices. Deterministic; equals stay as given.
/// Not collective. Thread-safe. Cost: O(n log n); insertion O(n^2) up to 500 jobs, above that it
/// takes the jobs in runs of 500 and plans each run with the write time that is left of the last.
/// @param jobs       seconds; what is no number above 0 counts as 0.
/// @param n_threads  encode threads. Insertion and Johnson's rule, made for one, then take them for
///                   one that is n_threads times as fast.
std::vector<std::size_t> order_jobs(std::span<const JobCost> jobs, OrderRule rule,
                                    std::size_t n_threads = 1);

/// One planned operation pair.
struct PlannedJob {
  std::size_t job = 0;
  std::size_t thread = 0;  ///< Encode thread.
  double encode_start_s = 0;
  double encode_end_s = 0;
  double write_start_s = 0;
  double write_end_s = 0;
};

/// When each job would run: whichever thread is free takes the next job of `order`, and one I/O
/// lane writes chunks in the order in which they become ready. Sorted as `order`. Not collective.
/// Thread-safe. Cost: O(n log n). @param n_threads  0 counts as 1.
std::vector<PlannedJob> plan_timeline(std::span<const JobCost> jobs,
                                      std::span<const std::size_t> order, std::size_t n_threads);

/// The end of the last write of plan_timeline; for one thread TIME of algorithm 1. Cost as there.
double makespan_s(std::span<const JobCost> jobs, std::span<const std::size_t> order,
                  std::size_t n_threads);

}  // namespace tailrace
