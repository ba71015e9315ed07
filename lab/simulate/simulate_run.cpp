// The run: blocks of nodes on threads, summed in the blocks' order.

#include "simulate/simulate_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "exec/thread_team.hpp"

namespace tailrace {
namespace {

/// Sums are made per block and then over blocks in order, so that they do not depend on threads.
constexpr std::size_t kBlocksMost = 64;

/// Contribution of a block of nodes to one mode.
struct ModePart {
  std::vector<VirtualIteration> iterations;
  double slowest_run_s = 0;  ///< Slowest rank, if ranks continue independently.
  double slowest_computation_s = 0;
};

struct BlockPart {
  std::vector<ModePart> modes;
  std::vector<VirtualEvent> events;
};

/// Add the members that a rank's outcome and an iteration's sums share to the latter.
template <class Part>
void add_common(const Part& part, VirtualIteration& sum) {
  sum.computation_s = std::max(sum.computation_s, part.computation_s);
  sum.total_s = std::max(sum.total_s, part.total_s);
  sum.makespan_s = std::max(sum.makespan_s, part.makespan_s);
  sum.planned_s = std::max(sum.planned_s, part.planned_s);
  sum.peak_bytes = std::max(sum.peak_bytes, part.peak_bytes);
  sum.exposed_s += part.exposed_s;
  sum.back_pressure_s += part.back_pressure_s;
  sum.encode_s += part.encode_s;
  sum.write_s += part.write_s;
  sum.n_encoded += part.n_encoded;
  sum.n_written += part.n_written;
  sum.n_writes += part.n_writes;
  sum.written_bytes += part.written_bytes;
}

void add_rank(const VirtualOutcome& outcome, VirtualIteration& sum) {
  add_common(outcome, sum);
  for (std::size_t lane = 0; lane < outcome.delays.size(); ++lane) {
    const VirtualDelays& delays = outcome.delays[lane];
    sum.delay_s += delays.total_s;
    sum.n_delayed[lane] += delays.n_delayed;
    sum.longest_delay_s = std::max(sum.longest_delay_s, delays.longest_s);
  }
}

void add_part(const VirtualIteration& part, VirtualIteration& sum) {
  add_common(part, sum);
  sum.longest_delay_s = std::max(sum.longest_delay_s, part.longest_delay_s);
  sum.delay_s += part.delay_s;
  for (std::size_t lane = 0; lane < sum.n_delayed.size(); ++lane) {
    sum.n_delayed[lane] += part.n_delayed[lane];
  }
}

/// All iterations of one node, in all modes.
class NodeRun {
 public:
  NodeRun(const VirtualWorkload& workload, const VirtualRunSettings& settings, std::size_t node,
          BlockPart& part)
      : workload_(workload), settings_(settings), node_(node), part_(part) {
    const std::size_t first = node * workload.ranks_per_node;
    const std::size_t last = std::min(first + workload.ranks_per_node, workload.n_ranks);
    for (std::size_t rank = first; rank < last; ++rank) stories_.push_back(workload.open(rank));
    run_s_.assign(settings.modes.size(), std::vector<double>(stories_.size()));
    computation_s_.assign(stories_.size(), 0);
  }

  Status run() {
    for (std::size_t iteration = 0; iteration < workload_.n_iterations; ++iteration) {
      ranks_.clear();
      for (const auto& story : stories_) ranks_.push_back(story->next());
      for (std::size_t m = 0; m < settings_.modes.size(); ++m) {
        TAILRACE_TRY(run_mode(m, iteration).within(fmt::format("node {}", node_)));
      }
      loads_s_.resize(ranks_.size());
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        loads_s_[r].clear();
        for (const JobCost& job : ranks_[r].actual.jobs) loads_s_[r].push_back(job.write_s);
      }
    }
    for (std::size_t m = 0; m < settings_.modes.size(); ++m) {
      ModePart& part = part_.modes[m];
      for (std::size_t r = 0; r < stories_.size(); ++r) {
        part.slowest_run_s = std::max(part.slowest_run_s, run_s_[m][r]);
        part.slowest_computation_s = std::max(part.slowest_computation_s, computation_s_[r]);
      }
    }
    return Status();
  }

 private:
  Status run_mode(std::size_t m, std::size_t iteration) {
    VirtualSettings node = settings_.node;
    node.mode = settings_.modes[m];
    const bool traced = settings_.n_traced_ranks > 0 && node_ == 0 &&
                        node.mode == settings_.traced_mode &&
                        iteration + 1 == workload_.n_iterations;
    TAILRACE_TAKE(const auto outcomes,
                  simulate_node(ranks_, node, loads_s_, traced ? &part_.events : nullptr));
    for (std::size_t r = 0; r < outcomes.size(); ++r) {
      const VirtualOutcome& outcome = outcomes[r];
      add_rank(outcome, part_.modes[m].iterations[iteration]);
      run_s_[m][r] += outcome.total_s;
      if (m == 0) computation_s_[r] += outcome.computation_s;
    }
    return Status();
  }

  const VirtualWorkload& workload_;
  const VirtualRunSettings& settings_;
  std::size_t node_;
  BlockPart& part_;
  std::vector<std::unique_ptr<VirtualStory>> stories_;
  std::vector<VirtualRank> ranks_;
  std::vector<std::vector<double>> loads_s_;  ///< Write times of the iteration before.
  std::vector<std::vector<double>> run_s_;    ///< Indexed by mode and rank.
  std::vector<double> computation_s_;         ///< Indexed by rank.
};

// --- the costs of a step

constexpr double record_bytes = 40;    // exec/field_plan's WrittenChunk
constexpr double kNumberBytes = 8;     // one number of a report, sent to rank 0
constexpr double reduced_bytes = 16;   // MixedNumber
constexpr double kAnswerBytes = 3072;  // least size of a broadcast: MpiComm's block
constexpr double kLetterBytes = 16;    // message of MpiTail
/// Sums of write_report: per field, per step, and forecasts in mode in_situ.
constexpr double kNumbersOfField = 8;
constexpr double kNumbersOfStep = 21;
constexpr double kForecastsOfField = 2;
constexpr double kForecastsOfStep = 2;
/// Agreement at the start of a step: equal definitions, no failure, a repetition of the last step.
constexpr double kOpeningNumbers = 5;

VirtualStepCosts costs_of_filters(const VirtualStepShape& shape, const StepConstants& constants) {
  const MessageCosts& messages = constants.messages;
  const auto n_ranks = static_cast<double>(shape.n_ranks);
  VirtualStepCosts costs;
  costs.index_s = n_ranks * shape.n_chunks * constants.index_s;  // on every rank, after sorting
  costs.commit_s = constants.commit_s + shape.n_datasets * constants.dataset_s;
  if (shape.n_ranks < 2) return costs;
  // Collectives of a dataset: whether the I/O can be collective, number of chunks, whether any
  // chunk must be read, a barrier after modifications, MPI-IO's two file views. Waiting ranks do
  // not sleep.
  constexpr double n_small = 6;
  costs.agree_s = shape.n_datasets * n_small *
                  (messages.allreduce_s(shape.n_ranks, kNumberBytes) - messages.wait_s);
  // Numbers of chunks; entries to be distributed, placed and inserted; MPI-IO's offsets.
  const double n_own = shape.n_chunks / shape.n_datasets;
  for (const double n_bytes : {8.0, 36 * n_own, 40 * n_own, 29 * n_own, 16.0}) {
    costs.gather_s += shape.n_datasets * messages.allgather_s(shape.n_ranks, n_bytes);
  }
  return costs;
}

}  // namespace

double VirtualStepCosts::exposed_s(double iteration_s) const {
  const double at_root_s = index_s + commit_s;
  // The next step waits for the part that the thread has not finished.
  const double waited_s = overlapped ? std::max(at_root_s - iteration_s, 0.0) : at_root_s;
  return agree_s + gather_s + copy_s + claims_s + waited_s;
}

VirtualStepCosts step_costs(VirtualMode mode, const VirtualStepShape& shape,
                            const StepConstants& constants) {
  if (mode == VirtualMode::hdf5_filters) return costs_of_filters(shape, constants);
  const MessageCosts& messages = constants.messages;
  const bool raw = mode == VirtualMode::sync_raw || mode == VirtualMode::async_raw;
  const bool sync = mode == VirtualMode::sync_raw || mode == VirtualMode::sync_encoded;
  const bool balances = mode == VirtualMode::in_situ && shape.balances;
  // Uncompressed data is contiguous: it has no chunks to list.
  const double n_chunks = raw ? 0 : shape.n_chunks;
  const double n_all_chunks = static_cast<double>(shape.n_ranks) * n_chunks;
  VirtualStepCosts costs;
  costs.overlapped = !sync && shape.metadata_in_background;
  costs.index_s = n_all_chunks * constants.index_s;
  costs.commit_s = constants.commit_s + shape.n_datasets * constants.dataset_s;
  if (!sync && shape.hold_copy && constants.copy_bytes_per_s > 0) {
    costs.copy_s = shape.raw_bytes / constants.copy_bytes_per_s;
  }

  costs.agree_s = messages.allreduce_s(shape.n_ranks, kAnswerBytes);
  if (sync) costs.agree_s += messages.allreduce_s(shape.n_ranks, kOpeningNumbers * reduced_bytes);
  // Nonblocking consensus: a message, its answer, a barrier.
  if (balances) costs.agree_s += 2 * messages.message_s(0) + messages.allreduce_s(shape.n_ranks, 0);

  double n_numbers = kNumbersOfStep + shape.n_datasets * kNumbersOfField;
  if (!sync) n_numbers += kOpeningNumbers;
  if (mode == VirtualMode::in_situ) {
    n_numbers += kForecastsOfStep + shape.n_datasets * kForecastsOfField;
  }
  const double n_others = static_cast<double>(shape.n_ranks) - 1;
  costs.gather_s =
      messages.gather_s(shape.n_ranks, kNumberBytes * n_numbers + record_bytes * n_chunks) +
      n_others * n_numbers * constants.number_s + n_all_chunks * constants.record_s;

  if (raw || shape.n_nodes < 2) return costs;  // On one node a claim is an atomic add.
  const double n_other_nodes = static_cast<double>(shape.n_nodes) - 1;
  const double request_s = 2 * messages.message_s(kLetterBytes) + messages.wait_s;
  if (sync) {
    // Each write claims; all but the first claim during the write before. Rank 0 answers every
    // node.
    const double answered_s = std::max(request_s, 2 * n_other_nodes * messages.overhead_s);
    const double write_s = shape.n_writes > 0 ? shape.write_s / shape.n_writes : 0;
    costs.claims_s = std::min(shape.n_writes, 1.0) * answered_s +
                     std::max(shape.n_writes - 1, 0.0) * std::max(answered_s - write_s, 0.0);
  } else {
    // Each node sends one claim, receives the answer, and reports its end.
    costs.claims_s = request_s + 3 * n_other_nodes * messages.overhead_s;
  }
  return costs;
}

namespace {

void add_step(const VirtualRunSettings& settings, const VirtualWorkload& workload,
              VirtualModeResult& result, VirtualIteration& iteration) {
  VirtualStepShape shape = settings.step_shape;
  shape.n_ranks = workload.n_ranks;
  shape.n_nodes = workload.n_nodes();
  shape.n_writes = static_cast<double>(iteration.n_writes) / static_cast<double>(workload.n_ranks);
  shape.write_s = iteration.write_s;
  shape.balances = settings.node.balance != BalanceRule::off && workload.ranks_per_node > 1;
  shape.hold_copy = settings.node.hold_copy;
  iteration.step = step_costs(result.mode, shape, *settings.step_constants);
  iteration.step_s = iteration.step.exposed_s(iteration.total_s);
  iteration.total_s += iteration.step_s;
  if (!settings.synchronized) result.run_s += iteration.step_s;
}

VirtualModeResult add_up(std::span<const BlockPart> parts, std::size_t m,
                         const VirtualWorkload& workload, const VirtualRunSettings& settings) {
  VirtualModeResult result;
  result.mode = settings.modes[m];
  result.iterations.resize(workload.n_iterations);
  for (const BlockPart& part : parts) {
    for (std::size_t i = 0; i < workload.n_iterations; ++i) {
      add_part(part.modes[m].iterations[i], result.iterations[i]);
    }
    result.run_s = std::max(result.run_s, part.modes[m].slowest_run_s);
    result.computation_s = std::max(result.computation_s, part.modes[m].slowest_computation_s);
  }
  if (settings.synchronized) result.run_s = result.computation_s = 0;
  const auto n_ranks = static_cast<double>(workload.n_ranks);
  for (VirtualIteration& iteration : result.iterations) {
    for (double* sum : {&iteration.exposed_s, &iteration.delay_s, &iteration.back_pressure_s,
                        &iteration.encode_s, &iteration.write_s}) {
      *sum /= n_ranks;
    }
    if (settings.step_constants) add_step(settings, workload, result, iteration);
    if (!settings.synchronized) continue;
    result.run_s += iteration.total_s;
    result.computation_s += iteration.computation_s;
  }
  return result;
}

}  // namespace

Result<VirtualRunResult> simulate_run(const VirtualWorkload& workload,
                                      const VirtualRunSettings& settings) {
  if (settings.modes.empty())
    return Status(Code::invalid_argument, "modes: expected at least one mode");
  const std::size_t n_nodes = workload.n_nodes();
  const std::size_t n_blocks = std::min(n_nodes, kBlocksMost);
  std::vector<BlockPart> parts(n_blocks);
  const auto run_block = [&](std::size_t block) -> Status {
    BlockPart& part = parts[block];
    part.modes.resize(settings.modes.size());
    for (ModePart& mode : part.modes) mode.iterations.resize(workload.n_iterations);
    for (std::size_t node = block * n_nodes / n_blocks; node < (block + 1) * n_nodes / n_blocks;
         ++node) {
      TAILRACE_TRY(NodeRun(workload, settings, node, part).run());
    }
    return Status();
  };
  TAILRACE_TRY(run_on_threads(n_blocks, settings.n_threads, run_block));
  VirtualRunResult result;
  for (std::size_t m = 0; m < settings.modes.size(); ++m) {
    result.modes.push_back(add_up(parts, m, workload, settings));
  }
  for (VirtualEvent& event : parts.front().events) {
    if (event.rank < settings.n_traced_ranks) result.events.push_back(std::move(event));
  }
  return result;
}

}  // namespace tailrace
