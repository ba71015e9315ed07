// Virtual execution: one iteration of the ranks of a node on a clock that is computed, not read.
//
// The decisions are the product's own: schedule_flow_shop() plans, lane_outlook() and
// pick_operation() say what a lane starts next, balance_writes() who writes what. Only their
// surroundings are simulated: the application, which needs its lanes at the times of its actual
// obstacles; encodes and writes, which take their actual lengths; the write buffer and the cap on
// memory. Source: Jin et al. 2024, 5.4.1: the application and our operations are executed one after
// the other on each lane, so that an operation that is under way makes the application late.
//
// The application's clock is one: what makes it late on either lane shifts all of its later
// obstacles, on both lanes, and the end of its iteration. docs/decisions.md says what is left out.
//
// Invariant 1: every job is encoded once and written once, in every mode.
// Invariant 2: an obstacle begins late by its lane's one running operation at most, beyond what
//   obstacles before it were late.
// Invariant 3: the outcome depends on the arguments alone.

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
  sync_encoded,   ///< Encoded and written after the iteration, both at once.
  async_raw,      ///< Written in the background, whatever the application does there.
  async_encoded,  ///< Encoded on threads and cores of our own; written likewise.
  in_situ,        ///< Encoded and written in the idle time of both lanes, by a plan.
  hdf5_filters  ///< HDF5's collective writes with filters: after the iteration, encode then write.
};

struct VirtualModeEntry {
  VirtualMode mode;
  std::string_view name;     ///< "sync-raw", "in-situ", ...
  std::string_view summary;  ///< For --help.
};
std::span<const VirtualModeEntry> virtual_mode_registry();
std::string_view virtual_mode_name(VirtualMode mode);
/// @error invalid_argument  no mode of this name; lists those there are.
Result<VirtualMode> parse_virtual_mode(std::string_view name);

/// One rank's iteration: as it was expected, and as it comes. Both have the same jobs.
struct VirtualRank {
  FlowShop forecast;
  FlowShop actual;  ///< iteration_s: the application's own time, without any output.
  std::vector<std::uint64_t> raw_bytes;      ///< By job. Empty: not known; no buffer, no cap.
  std::vector<std::uint64_t> encoded_bytes;  ///< By job, as they come out.
  double main_margin_s = 0;                  ///< Kept free before an expected obstacle.
  double io_margin_s = 0;
};

struct VirtualSettings {
  VirtualMode mode = VirtualMode::in_situ;
  Scheduler scheduler = Scheduler::ext_johnson_bf;
  SearchBudget budget;
  BalanceRule balance = BalanceRule::off;  ///< Mode in_situ.
  std::size_t n_threads = 1;               ///< Encode threads; mode in_situ: the main lane's own.
  std::uint64_t buffer_bytes = 16U << 20;  ///< Largest single write.
  std::uint64_t memory_bytes = 0;          ///< Cap of a rank; 0: none.
  bool hold_copy = false;                  ///< Values count against the cap until encoded.
  /// An obstacle of the I/O lane waits for the write under way (5.4.1). Off: both go on, as where
  /// a thread writes while the application's messages travel.
  bool waits_for_writes = true;
  /// What the application has waited for our operations moves the forecast of its later obstacles.
  bool shift_forecast = false;
  /// Seconds that a write of so many bytes is expected to take. Empty: as long as its chunks
  /// together, a chunk that is not encoded in proportion to its bytes.
  std::function<double(double n_bytes)> write_s;
};

/// A job of a rank of the node.
struct VirtualJob {
  std::size_t rank = 0;
  std::size_t job = 0;
};

/// What a lane did, for traces and tests. Seconds since the iteration began.
struct VirtualEvent {
  enum class Kind : std::uint8_t { obstacle, encode, write, delay };
  Kind kind = Kind::obstacle;
  Lane lane = Lane::main;
  std::size_t rank = 0;          ///< Within the node; of the lane.
  std::vector<VirtualJob> jobs;  ///< A write may hold several, and others' where it is balanced.
  std::uint64_t n_bytes = 0;
  double start_s = 0;
  double end_s = 0;
};

/// How the application was made late on a lane.
struct VirtualDelays {
  std::size_t n_delayed = 0;  ///< Obstacles.
  double total_s = 0;
  double longest_s = 0;
};

/// One rank's iteration as it went.
struct VirtualOutcome {
  double computation_s = 0;    ///< The application alone.
  double application_s = 0;    ///< End of the application's own part, delays included.
  double makespan_s = 0;       ///< End of the last write of this lane or of this rank's jobs.
  double total_s = 0;          ///< The later of both: the next iteration can begin.
  double planned_s = 0;        ///< Mode in_situ: the plan's makespan, before balancing.
  double exposed_s = 0;        ///< total_s - application_s
  double back_pressure_s = 0;  ///< Waiting for memory before the iteration could go on.
  std::array<VirtualDelays, 2> delays;  ///< By Lane.
  std::size_t n_encoded = 0;
  std::size_t n_written = 0;  ///< Chunks, by this rank's lane.
  std::size_t n_writes = 0;
  double encode_s = 0;  ///< Busy.
  double write_s = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< Of memory, as the cap counts it.

  double overhead_s() const { return total_s - computation_s; }
  const VirtualDelays& delays_of(Lane lane) const { return delays[static_cast<std::size_t>(lane)]; }
};

/// Run one iteration of a node's ranks. `loads_s`: by rank the writes of the iteration before, by
/// job, for balancing; empty: as forecast. `events`: all that happened, by start; null: not kept.
/// Not collective. Thread-safe. Cost: O(jobs log jobs) a rank, beside the plan's.
/// @error invalid_argument  jobs or bytes of a rank do not match, an instance that
///   check_flow_shop() refuses, or a cap that no chunk fits; names the rank.
Result<std::vector<VirtualOutcome>> simulate_node(std::span<const VirtualRank> ranks,
                                                  const VirtualSettings& settings,
                                                  std::span<const std::vector<double>> loads_s = {},
                                                  std::vector<VirtualEvent>* events = nullptr);

/// The same of one rank alone.
Result<VirtualOutcome> simulate_rank(const VirtualRank& rank, const VirtualSettings& settings,
                                     std::vector<VirtualEvent>* events = nullptr);

}  // namespace tailrace
