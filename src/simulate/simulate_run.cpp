// The run: blocks of nodes on threads, added up in the blocks' order.

#include "simulate/simulate_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "exec/thread_team.hpp"

namespace tailrace {
namespace {

/// Sums are made per block and then over blocks in order: the same on any number of threads.
constexpr std::size_t blocks_most = 64;

/// What a block of nodes adds to one mode.
struct ModePart {
  std::vector<VirtualIteration> iterations;
  double slowest_run_s = 0;  ///< Of the ranks, each going on by itself.
  double slowest_computation_s = 0;
};

struct BlockPart {
  std::vector<ModePart> modes;
  std::vector<VirtualEvent> events;
};

/// What a rank's outcome and an iteration's sums have in common, added to the latter.
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
  std::vector<std::vector<double>> loads_s_;  ///< Of the iteration before.
  std::vector<std::vector<double>> run_s_;    ///< By mode and rank.
  std::vector<double> computation_s_;         ///< By rank.
};

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
    if (!settings.synchronized) continue;
    result.run_s += iteration.total_s;
    result.computation_s += iteration.computation_s;
  }
  return result;
}

}  // namespace

Result<VirtualRunResult> simulate_run(const VirtualWorkload& workload,
                                      const VirtualRunSettings& settings) {
  if (settings.modes.empty()) return Status(Code::invalid_argument, "modes: there is none to run");
  const std::size_t n_nodes = workload.n_nodes();
  const std::size_t n_blocks = std::min(n_nodes, blocks_most);
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
