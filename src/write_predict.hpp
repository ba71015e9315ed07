// Predicting a step: what each of a rank's chunks will weigh and take, before any is encoded.
//
// Sizes come from a sample of the chunk where its values lie, from the same chunk's previous step,
// or both (model/size_history.hpp); times from the machine profile. Layouts that reserve and orders
// of work other than "given" need it; otherwise nothing is sampled.

#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "exec/executor.hpp"
#include "exec/job_forecast.hpp"
#include "exec/reserve.hpp"
#include "model/machine_profile.hpp"
#include "schedule/order.hpp"
#include "write_fields.hpp"

namespace tailrace {

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

/// The active fields as far as ownership is concerned.
std::vector<OwnedField> owned_fields(std::span<FieldState* const> active);

/// What the lanes must know of the active fields; `fields` are all of the writer's.
std::vector<FieldPlan> make_field_plans(const std::vector<FieldState>& fields,
                                        std::span<FieldState* const> active);

/// Whether this step's layouts, order or trace want forecasts. The same on all ranks.
bool sizes_are_asked_for(std::span<FieldState* const> active, const FileOptions& options);

/// Forecast all of this rank's jobs, order them, and lay out when each should run.
/// Not collective. Cost: a sample of each chunk (about 2 % of its encode time) on n_threads
/// threads.
/// @error as of ChunkEstimator.
Status forecast_jobs(std::span<FieldState* const> active, const Ownership& ownership,
                     const FileOptions& options, const MachineProfile& profile,
                     const WorkForce& force, StepPlan& step);

/// Learn from what the step has shown, and report how good the forecasts were. After add_up_step.
/// Collective. Cost: three allreduces of O(fields) numbers.
void learn_from_step(Comm& comm, std::span<FieldState* const> active, const Ownership& ownership,
                     const StepPlan& step, std::span<const WrittenChunk> written,
                     StepReport& report);

}  // namespace tailrace
