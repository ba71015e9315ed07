// Planning a step: who encodes each chunk, what each of a rank's chunks will weigh and take, and
// who writes it.

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

// --- Ownership: which rank encodes which chunk, and who must send it what.
//
// A chunk that lies wholly within one rank's boxes belongs to that rank, and nobody else hears of
// it. A chunk that several ranks share is announced to its home (exec/chunk_homes.hpp), which
// checks that the boxes neither overlap nor leave holes, and makes the rank with the largest part
// the owner; of equals the lowest.
//
// Coverage of the chunks that were not announced is proved without talking about each: every chunk
// has a pseudo-random number; the sum over all chunks as claimed (wholly held, or complete at a
// home) must equal the sum over all chunks that exist, of which each rank adds up 1/ranks. A hole
// or a double claim goes unnoticed with probability 2^-64. If the sums differ, everything is
// announced once more, only to name the culprit.

/// A field as far as ownership is concerned; grid and holes are the same on all ranks.
struct OwnedField {
  std::string path;
  ChunkGrid grid;
  bool allow_holes = false;
  std::span<const PutRecord> puts;  ///< This rank's.
};

/// The active fields as far as ownership is concerned.
std::vector<OwnedField> owned_fields(std::span<FieldState* const> active);

/// Ownership of all chunks of `fields`, from what this rank holds to who encodes what. `fields` and
/// their puts must stay where they are.
class Settlement {
 public:
  /// Claim what this rank holds wholly. Not collective. Cost: O(own chunks + all chunks / ranks).
  Settlement(Comm& comm, std::span<const OwnedField> fields);
  ~Settlement();
  Settlement(const Settlement&) = delete;
  Settlement& operator=(const Settlement&) = delete;

  /// What all ranks together must know: is any chunk shared, and is every chunk claimed? To be
  /// reduced along with whatever the ranks reduce next; then it says what is left to be done.
  RankNumbers numbers();
  /// Do it. `waiting`: numbers that were not reduced yet, its own among them. `check` says what
  /// else keeps this rank from its part of what is settled so far. Collective. Cost: one agreement;
  /// where chunks are shared two sparse exchanges, and an agreement more if the ranks did not know;
  /// where coverage is bad, two exchanges and an agreement more.
  /// @error bad_coverage  boxes overlap or leave holes; the text names field, box and ranks.
  /// @error internal  as of ask_homes(). The same on every rank.
  /// @param along  numbers that become all ranks' with the first agreement.
  Result<Ownership> finish(RankNumbers waiting,
                           const std::function<Status(const Ownership&)>& check,
                           RankNumbers along = {});

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

/// Values from a BoxSource cannot travel in pieces: each such put must be whole chunks.
/// Not collective. @error invalid_argument  a pulled part shares its chunk; names the field.
Status check_pulled_chunks(std::span<const OwnedField> fields, const Ownership& ownership);

// --- Predicting a step: what each of a rank's chunks will weigh and take, before any is encoded.
//
// Sizes come from a sample of the chunk where its values lie, from the same chunk's previous step,
// or both (model/size_history.hpp); times from the machine profile. Layouts that reserve and orders
// of work other than "given" need it; otherwise nothing is sampled.

/// A rank's part of a step before any of it is encoded.
struct StepPlan {
  std::vector<FieldPlan> fields;         ///< One per active field.
  std::vector<JobForecast> forecasts;    ///< One per job; empty where nobody asks.
  std::vector<std::size_t> order;        ///< Of work; empty: as given.
  std::vector<std::size_t> write_order;  ///< Of writes; empty: as chunks are encoded.
  std::vector<PlannedJob> timeline;      ///< When each job should run.
  Reservations reservations;
  double predict_s = 0;  ///< Spent on all this.
};

/// Who does the work.
struct WorkForce {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads of each rank.
};

/// What the lanes must know of the active fields.
std::vector<FieldPlan> make_field_plans(std::span<FieldState* const> active);

/// Whether this step's layouts, order or trace want forecasts. The same on all ranks.
bool sizes_are_asked_for(std::span<FieldState* const> active, const FileOptions& options);

/// Forecast all of this rank's jobs, order them, and lay out when each should run.
/// Not collective. Cost: a sample of each chunk (about 2 % of its encode time) on n_threads
/// threads.
/// @error as of ChunkEstimator.
Status forecast_jobs(std::span<FieldState* const> active, const Ownership& ownership,
                     const FileOptions& options, const MachineProfile& profile,
                     const WorkForce& force, StepPlan& step);

/// How the forecasts of one field's chunks went.
struct ForecastSums {
  double predicted_bytes = 0;
  double size_errors = 0;  ///< Each relative to the chunk's true size.
};

/// Learn from what this rank's chunks have shown. Not collective.
/// @returns this rank's sums, one per active field.
std::vector<ForecastSums> learn_sizes(std::span<FieldState* const> active,
                                      const Ownership& ownership, const StepPlan& step,
                                      std::span<const WrittenChunk> written);

/// What this rank's chunks are going to take of the file's end, so that places on other nodes are
/// asked for before they are needed: by their history, or else by what as many values of their
/// field took in its last step. Samples err too much to take space by. 0: it cannot tell.
/// Not collective; other ranks may not know better, and each says its own.
std::uint64_t bytes_to_claim(std::span<FieldState* const> active, const Ownership& ownership,
                             const StepPlan& step);

/// Learn that from a step that was written. Not collective.
void learn_claims(std::span<FieldState* const> active, const StepPlan& step,
                  std::span<const WrittenChunk> written);

// --- Balancing: which of a rank's writes another rank of its node makes. Mode in_situ.
//
// The ranks of a node tell each other how long each of their writes should take, and all come to
// the same moves (schedule/balance.hpp). Loads are this step's forecasts, which rest on the
// previous steps where the paper takes the previous step itself. Source: Jin et al. 2024, 3.4.

/// Who writes each of this rank's jobs: its rank on the node; -1 is this rank itself. Empty where
/// nothing moves. Jobs of layout arena stay, since their places are not known one by one.
/// Collective. Cost: a message of O(own jobs) to each rank of the node, one consensus; O(n log n)
/// for the n writes of the node.
std::vector<int> balance_step(Comm& comm, const SharedWrites& shared, BalanceRule rule,
                              const Ownership& ownership, const StepPlan& plan);

}  // namespace tailrace
