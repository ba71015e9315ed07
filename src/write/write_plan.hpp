// Planning of a step: the rank that encodes each chunk, forecasts of sizes and times, and the rank
// that writes each chunk.

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/executor.hpp"
#include "exec/placer.hpp"
#include "exec/shared_writes.hpp"
#include "field/field_state.hpp"
#include "model/machine_profile.hpp"
#include "schedule/balance.hpp"
#include "schedule/order.hpp"

namespace tailrace {

// --- Ownership: the rank that encodes each chunk, and the ranks that must send it values.
//
// A chunk that lies completely within one rank's boxes belongs to that rank, without any message. A
// chunk that several ranks share is announced to its home (exec/chunk_homes.hpp). The home checks
// that the boxes neither overlap nor leave holes. It makes the rank with the largest part the
// owner; of equals the lowest.
//
// Coverage of chunks that were not announced is proved without a message for each. Every chunk has
// a pseudo-random number. The sum over all claimed chunks (completely held, or complete at a home)
// must equal the sum over all existing chunks; each rank adds up 1/ranks of the latter. A hole or a
// double claim goes unnoticed with probability 2^-64. If the sums differ, all chunks are announced
// once more, only to name the culprit.

/// Part of a field that ownership needs; grid and holes are the same on all ranks.
struct OwnedField {
  std::string path;
  ChunkGrid grid;
  bool allow_holes = false;
  std::span<const PutRecord> puts;  ///< Puts of this rank.
};

/// Return the parts of the active fields that ownership needs.
std::vector<OwnedField> owned_fields(std::span<FieldState* const> active);

/// Agreement on the owners of all chunks of `fields`, from this rank's puts. `fields` and their
/// puts must stay valid and unchanged.
class OwnerAssignment {
 public:
  /// Claim the chunks that this rank holds completely. Not collective. Cost: O(own chunks + all
  /// chunks / ranks).
  OwnerAssignment(Comm& comm, std::span<const OwnedField> fields);
  ~OwnerAssignment();
  OwnerAssignment(const OwnerAssignment&) = delete;
  OwnerAssignment& operator=(const OwnerAssignment&) = delete;

  /// Numbers to be reduced over all ranks, along with the next reduction: is any chunk shared, and
  /// is every chunk claimed? Afterwards they show what is left to do.
  RankNumbers numbers();
  /// Complete the agreement. Collective. Cost: one agreement. If chunks are shared: two sparse
  /// exchanges, and one more agreement if the ranks did not know that before. If coverage is bad:
  /// two exchanges and one more agreement.
  /// @param waiting  numbers that were not reduced yet, including those of this object.
  /// @param check  returns any other failure of this rank in its part of the ownership so far.
  /// @param along  numbers that the first agreement reduces.
  /// @error bad_coverage  boxes overlap or leave holes; the text names field, box and ranks.
  /// @error internal  as for ask_homes(). The same on every rank.
  Result<Ownership> finish(RankNumbers waiting,
                           const std::function<Status(const Ownership&)>& check,
                           RankNumbers along = {});

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

/// Check that each put from a BoxSource is a whole chunk: such values cannot be sent in pieces. Not
/// collective. @error invalid_argument  a pulled part shares its chunk; names the field.
Status check_pulled_chunks(std::span<const OwnedField> fields, const Ownership& ownership);

// --- Forecasts: size and time of each of a rank's chunks, before any is encoded.
//
// Sizes come from a sample of the chunk in its memory, from the same chunk's previous step, or from
// both (model/size_history.hpp). Times come from the machine profile. Only layouts that reserve,
// and orders of work other than "given", need forecasts; otherwise nothing is sampled.

/// Plan of a rank's part of a step, before any of it is encoded.
struct StepPlan {
  std::vector<FieldPlan> fields;         ///< One per active field.
  std::vector<JobForecast> forecasts;    ///< One per job; empty if not needed.
  std::vector<std::size_t> order;        ///< Order of encoding; empty: as given.
  std::vector<std::size_t> write_order;  ///< Order of writes; empty: as chunks are encoded.
  std::vector<PlannedJob> timeline;      ///< Expected time of each job.
  Reservations reservations;
  double predict_s = 0;  ///< Time spent on the plan.
};

/// Numbers of ranks and threads.
struct WorkForce {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads of each rank.
};

/// Make the lanes' plans of the active fields.
std::vector<FieldPlan> make_field_plans(std::span<FieldState* const> active);

/// True if this step's layouts, order or trace need forecasts. The same on all ranks.
bool needs_forecasts(std::span<FieldState* const> active, const FileOptions& options);

/// Forecast all of this rank's jobs, order them, and compute their timeline. Not collective. Cost:
/// a sample of each chunk (about 2 % of its encode time) on n_threads threads.
/// @error as for ChunkEstimator.
Status forecast_jobs(std::span<FieldState* const> active, const Ownership& ownership,
                     const FileOptions& options, const MachineProfile& profile,
                     const WorkForce& force, StepPlan& step);

/// Errors of the forecasts of one field's chunks.
struct ForecastSums {
  double predicted_bytes = 0;
  double size_errors = 0;  ///< Sum of errors, each relative to the chunk's true size.
};

/// Learn from the sizes of this rank's chunks. Not collective.
/// @returns this rank's sums, one per active field.
std::vector<ForecastSums> learn_sizes(std::span<FieldState* const> active,
                                      const Ownership& ownership, const StepPlan& step,
                                      std::span<const WrittenChunk> written);

/// Forecast the bytes that this rank's chunks will claim at the file's end, so that other nodes can
/// request them ahead. The forecast uses their history, or the ratio of encoded to put bytes in the
/// field's last step. Samples are not used: they err too much. 0: unknown. Not collective; each
/// rank passes its own number, without knowing those of others.
std::uint64_t bytes_to_claim(std::span<FieldState* const> active, const Ownership& ownership,
                             const StepPlan& step);

/// Learn the claimed bytes of a written step. Not collective.
void learn_claims(std::span<FieldState* const> active, const StepPlan& step,
                  std::span<const WrittenChunk> written);

// --- Balancing: the writes of a rank that another rank of its node makes. Mode in_situ.
//
// The ranks of a node exchange the expected time of each of their writes, and each computes the
// same moves (schedule/balance.hpp). Loads are this step's forecasts, which are based on previous
// steps; the paper uses the previous step itself. Source: Jin et al. 2024, 3.4.

/// Return the writer of each of this rank's jobs: its rank on the node; -1 is this rank. Empty if
/// nothing moves. Jobs of layout arena stay, since their places are not known one by one.
/// Collective. Cost: a message of O(own jobs) to each rank of the node, one consensus; O(n log n)
/// for the n writes of the node.
std::vector<int> balance_step(Comm& comm, const SharedWrites& shared, BalanceRule rule,
                              const Ownership& ownership, const StepPlan& plan);

}  // namespace tailrace
