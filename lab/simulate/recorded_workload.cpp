// Iterations of recorded ranks, with forecasts and noise.

#include "simulate/recorded_workload.hpp"

#include <algorithm>
#include <utility>

#include "model/obstacle_forecast.hpp"
#include "schedule/lane_rule.hpp"
#include "simulate/random_flow_shop.hpp"

namespace tailrace {
namespace {

/// Stream of random draws, different from those of generated workloads.
constexpr std::uint64_t kReplayStream = 7;

class RecordedStory : public VirtualStory {
 public:
  RecordedStory(std::shared_ptr<const Recording> recording, std::size_t rank,
                const VirtualStorySettings& settings)
      : recording_(std::move(recording)),
        iterations_(recording_->ranks[rank % recording_->ranks.size()]),
        settings_(settings),
        rank_(rank) {
    learn(iterations_.front());
  }

  VirtualRank next() override {
    const RecordedRankIteration& before = iterations_[position_];
    position_ = position_ + 1 < iterations_.size() ? position_ + 1 : 1;
    const RecordedRankIteration& now = iterations_[position_];
    VirtualRank rank;
    rank.forecast = before.seen;
    rank.forecast.obstacles = seen_.next();
    rank.forecast.iteration_s = seen_.iteration_s();
    rank.main_margin_s = lane_margin_s(settings_.margin, seen_.spread_s(Lane::main),
                                       mean_encode_s(rank.forecast.jobs));
    if (settings_.io_margin) rank.io_margin_s = settings_.margin * seen_.spread_s(Lane::io);
    rank.actual = now.seen;
    rank.raw_bytes = now.raw_bytes;
    rank.encoded_bytes = now.encoded_bytes;
    add_noise(rank);
    if (settings_.costs.write_s) {
      // Storage other than the recorded one: the model's time, multiplied by the noise.
      for (std::size_t job = 0; job < rank.actual.jobs.size(); ++job) {
        const double noise = now.seen.jobs[job].write_s > 0
                                 ? rank.actual.jobs[job].write_s / now.seen.jobs[job].write_s
                                 : 1;
        const auto bytes = static_cast<double>(rank.encoded_bytes[job]);
        rank.actual.jobs[job].write_s = settings_.costs.write_s(bytes) * noise;
        rank.forecast.jobs[job].write_s =
            settings_.costs.write_s(static_cast<double>(before.encoded_bytes[job]));
      }
    }
    learn(now);
    return rank;
  }

 private:
  void learn(const RecordedRankIteration& iteration) {
    seen_.add_iteration(iteration.seen.obstacles, iteration.seen.iteration_s);
  }

  void add_noise(VirtualRank& rank) {
    const VirtualNoise& noise = settings_.noise;
    const std::uint64_t position = (static_cast<std::uint64_t>(rank_) << 24) + n_drawn_++;
    const std::uint64_t seed = stream_seed(settings_.seed, kReplayStream, position);
    rank.actual.obstacles =
        noisy_obstacles(rank.actual.obstacles, noise.obstacles * rank.actual.iteration_s, ~seed);
    RandomDraws draws(seed);
    for (std::size_t job = 0; job < rank.actual.jobs.size(); ++job) {
      const double size = 1 / std::max(1 + noise.ratio * draws.normal(), 0.2);
      rank.encoded_bytes[job] =
          static_cast<std::uint64_t>(static_cast<double>(rank.encoded_bytes[job]) * size);
      rank.actual.jobs[job].encode_s /= std::max(1 + noise.encode * draws.normal(), 0.2);
      rank.actual.jobs[job].write_s *= size / std::max(1 + noise.write * draws.normal(), 0.2);
    }
  }

  std::shared_ptr<const Recording> recording_;
  const std::vector<RecordedRankIteration>& iterations_;
  VirtualStorySettings settings_;
  std::size_t rank_;
  ObstacleForecast seen_;
  std::size_t position_ = 0;
  std::size_t n_drawn_ = 0;
};

}  // namespace

Result<VirtualWorkload> recorded_workload(std::shared_ptr<const Recording> recording,
                                          std::size_t n_ranks, std::size_t ranks_per_node,
                                          std::size_t n_iterations,
                                          const VirtualStorySettings& settings) {
  if (recording == nullptr || recording->ranks.empty() || recording->ranks.front().size() < 2) {
    return Status(Code::invalid_argument, "recording: expected at least two iterations per rank");
  }
  if (n_ranks == 0 || ranks_per_node == 0 || n_iterations == 0) {
    return Status(Code::invalid_argument, "ranks, ranks per node and iterations must be above 0");
  }
  VirtualWorkload workload{n_ranks, ranks_per_node, n_iterations, {}};
  workload.open = [recording = std::move(recording),
                   settings](std::size_t rank) -> std::unique_ptr<VirtualStory> {
    return std::make_unique<RecordedStory>(recording, rank, settings);
  };
  return workload;
}

}  // namespace tailrace
