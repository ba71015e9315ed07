// What the simulator runs: iterations of many ranks, generated or recorded, one after the other.
//
// A story tells one rank's iterations in turn, so that nobody ever holds those of all ranks. The
// noise is that of Jin et al. 2024, 5.4.1: normal, on starts and ends of obstacles, on ratios and
// on both throughputs. Applications are shaped like the paper's (4.1, 5.1, 5.4.2); what the paper
// does not say (how long an iteration is, how much of it a lane is busy) is our choice.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/simulate_node.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Standard deviations, relative: of the iteration's length, of a ratio, of a throughput.
struct VirtualNoise {
  double obstacles = 0.01;
  double ratio = 0.10;
  double encode = 0.05;
  double write = 0.05;
};

/// How long operations take on average.
struct VirtualCosts {
  std::function<double(double raw_bytes, double encoded_bytes)> encode_s;
  std::function<double(double n_bytes)> write_s;
};

/// An application to generate: every rank does and holds the same, but for the ratios.
struct VirtualApplication {
  std::string name = "uniform";
  double iteration_s = 4;
  std::size_t n_main_obstacles = 10;
  std::size_t n_io_obstacles = 8;
  double main_busy_share = 0.5;  ///< Of the iteration, in [0, 1).
  double io_busy_share = 0.25;
  std::size_t n_fields = 8;
  std::uint64_t field_bytes = 64U << 20;  ///< Of a rank.
  std::uint64_t chunk_bytes = 8U << 20;
  double mean_ratio = 16;
  /// Largest less least mean ratio of the ranks of a node: the paper's "maximum difference".
  double ratio_difference = 0;
  double chunk_spread = 0.3;  ///< Of ratios within a rank: deviation of their logarithm.
};

/// The applications known by name. @error invalid_argument  lists those there are.
Result<VirtualApplication> virtual_application(std::string_view name);
std::span<const VirtualApplication> virtual_applications();

/// One rank's iterations in turn. Not thread-safe.
class VirtualStory {
 public:
  virtual ~VirtualStory() = default;
  virtual VirtualRank next() = 0;
};

/// Ranks on nodes, and what happens on them.
struct VirtualWorkload {
  std::size_t n_ranks = 1;
  std::size_t ranks_per_node = 1;  ///< The last node may hold fewer.
  std::size_t n_iterations = 10;
  /// Thread-safe; the story of a rank is the same whoever asks.
  std::function<std::unique_ptr<VirtualStory>(std::size_t rank)> open;

  std::size_t n_nodes() const { return (n_ranks + ranks_per_node - 1) / ranks_per_node; }
};

/// What every rank's forecast is made of and how it comes.
struct VirtualStorySettings {
  VirtualNoise noise;
  VirtualCosts costs;
  std::uint64_t seed = 1;
  /// Obstacles are forecast by model/obstacle_forecast from the iterations before, as in the
  /// product; else they are known but for the noise, as in the paper's simulation.
  bool learned = false;
  /// Standard deviations kept free before an expected obstacle; recordings: as lane_margin_s()
  /// says.
  double margin = 1;
  bool io_margin = true;  ///< On the I/O lane, too; the product keeps none there.
};

/// Generate. Not collective. @error invalid_argument  names the number that cannot be.
Result<VirtualWorkload> generated_workload(const VirtualApplication& application,
                                           std::size_t n_ranks, std::size_t ranks_per_node,
                                           std::size_t n_iterations,
                                           const VirtualStorySettings& settings);

/// The mean ratios of a node's ranks: normal, then shifted and stretched so that their mean is
/// `mean` and the largest less the least `difference`; none below 1.1. By rank within the node.
std::vector<double> node_ratios(std::size_t n_ranks, double mean, double difference,
                                std::uint64_t seed);

/// What a chunk's encoding is expected to take; 0 if there are none.
double mean_encode_s(std::span<const JobCost> jobs);

/// A seed of its own for each of many streams.
std::uint64_t stream_seed(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

/// The obstacles as they come: starts and ends off by `sigma_s`, in order and disjoint.
LaneObstacles noisy_obstacles(const LaneObstacles& expected, double sigma_s, std::uint64_t seed);

}  // namespace tailrace
