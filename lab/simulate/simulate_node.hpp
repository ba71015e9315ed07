// Virtual execution: one iteration of a node's ranks on a simulated clock.
//
// The decisions are those of the product: schedule_flow_shop() plans, lane_outlook() and
// pick_operation() choose what a lane starts next, balance_writes() moves writes between ranks. The
// rest is simulated: the application, which needs its lanes at the times of its actual obstacles;
// encodes and writes, which take their actual times; the write buffer and the cap on memory.
// Source: Jin et al. 2024, 5.4.1: each lane executes the application and our operations one after
// the other, so that an operation in flight delays the application.
//
// The application has one clock: a delay on either lane shifts all later obstacles on both lanes,
// and the end of the iteration. lab/simulate/README.md lists what the model omits.
//
// Invariant 1: every job is encoded once and written once, in every mode.
//
// Invariant 2: an obstacle is delayed by at most the one operation that runs on its lane, in
// addition to the delays of earlier obstacles.
//
// Invariant 3: the outcome depends on the arguments only.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/trace.hpp"
#include "schedule/balance.hpp"
#include "schedule/flow_shop.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Ways to output an iteration's data.
enum class VirtualMode : std::uint8_t {
  sync_raw,       ///< Written after the iteration, not compressed: the paper's baseline.
  sync_encoded,   ///< Encoded and written after the iteration, both concurrently.
  async_raw,      ///< Written in the background, concurrently with the application.
  async_encoded,  ///< Encoded by threads on dedicated cores; written in the background.
  in_situ,        ///< Encoded and written in the idle time of both lanes, by a plan.
  hdf5_filters  ///< HDF5's collective writes with filters: after the iteration, encode then write.
};

struct VirtualModeEntry {
  VirtualMode mode;
  std::string_view name;     ///< "sync-raw", "in-situ", ...
  std::string_view summary;  ///< Text for --help.
};
std::span<const VirtualModeEntry> virtual_mode_registry();
std::string_view virtual_mode_name(VirtualMode mode);
/// Find a mode by name. @error invalid_argument  unknown name; lists the known ones.
Result<VirtualMode> parse_virtual_mode(std::string_view name);

/// One rank's iteration, as forecast and as it actually is. Both have the same jobs.
struct VirtualRank {
  FlowShop forecast;
  FlowShop actual;  ///< iteration_s: the application's own time, without any output.
  std::vector<std::uint64_t> raw_bytes;      ///< Indexed by job. Empty: unknown; no buffer, no cap.
  std::vector<std::uint64_t> encoded_bytes;  ///< Indexed by job; actual sizes.
  double main_margin_s = 0;                  ///< Time kept free before an expected obstacle.
  double io_margin_s = 0;
};

struct VirtualSettings {
  VirtualMode mode = VirtualMode::in_situ;
  Scheduler scheduler = Scheduler::ext_johnson_bf;
  SearchBudget budget;
  BalanceRule balance = BalanceRule::off;  ///< Used in mode in_situ.
  std::size_t n_threads = 1;               ///< Encode threads; in_situ encodes on the main lane.
  std::uint64_t buffer_bytes = 16U << 20;  ///< Largest single write.
  std::uint64_t memory_bytes = 0;          ///< Memory cap of a rank; 0: none.
  bool hold_copy = false;                  ///< Values count against the cap until encoded.
  /// Obstacles on the I/O lane wait for the write in flight (5.4.1). False: both proceed
  /// concurrently, as if a thread wrote while the application's messages travel.
  bool waits_for_writes = true;
  /// Delays that our operations caused shift the forecast of later obstacles.
  bool shift_forecast = false;
  /// Expected seconds of a write of `n_bytes`. Empty: the sum of its chunks' forecasts, which modes
  /// without compression scale to the raw bytes.
  std::function<double(double n_bytes)> write_s;
};

/// Job of a rank of the node.
struct VirtualJob {
  std::size_t rank = 0;
  std::size_t job = 0;
};

/// Event on a lane, for traces and tests. Seconds since the start of the iteration.
struct VirtualEvent {
  enum class Kind : std::uint8_t { obstacle, encode, write, delay };
  Kind kind = Kind::obstacle;
  Lane lane = Lane::main;
  std::size_t rank = 0;          ///< Rank of the lane, counted within the node.
  std::vector<VirtualJob> jobs;  ///< A write may contain several, also of other ranks.
  std::uint64_t n_bytes = 0;
  double start_s = 0;
  double end_s = 0;
};

/// Delays of the application on one lane.
struct VirtualDelays {
  std::size_t n_delayed = 0;  ///< Number of delayed obstacles.
  double total_s = 0;
  double longest_s = 0;
};

/// Outcome of one rank's iteration.
struct VirtualOutcome {
  double computation_s = 0;    ///< Time of the application without output.
  double application_s = 0;    ///< End of the application's own part, delays included.
  double makespan_s = 0;       ///< End of the last write by this lane or of this rank's jobs.
  double total_s = 0;          ///< The later of both, when the next iteration can start.
  double planned_s = 0;        ///< Mode in_situ: the plan's makespan, before balancing.
  double exposed_s = 0;        ///< total_s - application_s
  double back_pressure_s = 0;  ///< Time the application waited for memory at the hand-over.
  std::array<VirtualDelays, 2> delays;  ///< Indexed by Lane.
  std::size_t n_encoded = 0;
  std::size_t n_written = 0;  ///< Chunks written by this rank's lane.
  std::size_t n_writes = 0;
  double encode_s = 0;  ///< Busy time.
  double write_s = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< Peak memory, as the cap counts it.

  double overhead_s() const { return total_s - computation_s; }
  const VirtualDelays& delays_of(Lane lane) const { return delays[static_cast<std::size_t>(lane)]; }
};

/// Run one iteration of a node's ranks. `loads_s`: write times of the iteration before, by rank and
/// job, for balancing; empty: the forecast. `events`: receives all events, sorted by start; may be
/// null. Not collective. Thread-safe. Cost: O(jobs log jobs) per rank, plus the plans.
/// @error invalid_argument  names the rank: its jobs or bytes do not match, check_flow_shop()
/// rejects an instance, or a chunk exceeds the cap.
Result<std::vector<VirtualOutcome>> simulate_node(std::span<const VirtualRank> ranks,
                                                  const VirtualSettings& settings,
                                                  std::span<const std::vector<double>> loads_s = {},
                                                  std::vector<VirtualEvent>* events = nullptr);

/// Run one iteration of a single rank.
Result<VirtualOutcome> simulate_rank(const VirtualRank& rank, const VirtualSettings& settings,
                                     std::vector<VirtualEvent>* events = nullptr);

}  // namespace tailrace
