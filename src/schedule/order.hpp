// Order of work: the order in which a rank encodes its chunks, so that the I/O lane starts early
// and ends together with the encode lane.
//
// Source: Jin et al. 2022, III-E, algorithm 1 (insertion: O(n^2) evaluations of O(n) each; ours
// evaluates an insertion in O(1) by prefix and suffix maxima). Johnson 1954 is the optimum for one
// encode thread and one I/O lane without obstacles. Includes plain orders for comparison.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// Expected cost of a chunk. Seconds.
struct JobCost {
  double encode_s = 0;
  double write_s = 0;
};

enum class OrderRule : std::uint8_t {
  given,           ///< Sorted by field, then by chunk index.
  largest_first,   ///< Longest write first.
  smallest_first,  ///< Shortest encode first.
  insertion,       ///< Jin et al. 2022, algorithm 1.
  johnson          ///< Johnson's rule.
};

struct OrderEntry {
  OrderRule rule;
  std::string_view name;     ///< "given", "largest-first", ...
  std::string_view summary;  ///< Help text for --help.
};
std::span<const OrderEntry> order_registry();
/// Parse a rule's name. @error invalid_argument  unknown name; the text lists the known ones.
Result<OrderRule> parse_order(std::string_view name);

/// Compute the order of work: a permutation of the jobs' indices. Deterministic; equal jobs retain
/// their order. Not collective. Thread-safe.
/// Cost: O(n log n). insertion is O(n^2) up to 500 jobs. Above that it plans runs of 500 jobs, each
/// with the write time that remains of the previous run.
/// @param jobs       seconds; a value that is not a number above 0 counts as 0.
/// @param n_threads  encode threads. Insertion and Johnson's rule, which are for one thread, assume
/// one that is n_threads times as fast.
std::vector<std::size_t> order_jobs(std::span<const JobCost> jobs, OrderRule rule,
                                    std::size_t n_threads = 1);

/// Planned times of one job.
struct PlannedJob {
  std::size_t job = 0;
  std::size_t thread = 0;  ///< Encode thread.
  double encode_start_s = 0;
  double encode_end_s = 0;
  double write_start_s = 0;
  double write_end_s = 0;
};

/// Simulate the jobs: each free thread encodes the next job of `order`, and one I/O lane writes
/// chunks in the order in which they become ready. The result is in the order of `order`. Not
/// collective.
/// Thread-safe. Cost: O(n log n). @param n_threads  0 counts as 1.
std::vector<PlannedJob> plan_timeline(std::span<const JobCost> jobs,
                                      std::span<const std::size_t> order, std::size_t n_threads);

/// End of the last write of plan_timeline(), with the same cost; for one thread TIME of algorithm
/// 1.
double makespan_s(std::span<const JobCost> jobs, std::span<const std::size_t> order,
                  std::size_t n_threads);

}  // namespace tailrace
