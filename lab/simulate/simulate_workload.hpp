// Workload of the simulator: successive iterations of many ranks, generated or recorded.
//
// A story returns one rank's iterations one by one, so that those of all ranks are never in memory
// together. The noise is that of Jin et al. 2024, 5.4.1: normal, on starts and ends of obstacles,
// on ratios and on both throughputs. Applications are shaped like the paper's (4.1, 5.1, 5.4.2).
// The paper does not give the length of an iteration and the busy share of a lane; these are our
// choice.

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

/// Relative standard deviations: of obstacles (to the iteration's length), ratios and throughputs.
struct VirtualNoise {
  double obstacles = 0.01;
  double ratio = 0.10;
  double encode = 0.05;
  double write = 0.05;
};

/// Mean durations of operations.
struct VirtualCosts {
  std::function<double(double raw_bytes, double encoded_bytes)> encode_s;
  std::function<double(double n_bytes)> write_s;
};

/// Application to generate: every rank has the same work and data, except for the ratios.
struct VirtualApplication {
  std::string name = "uniform";
  double iteration_s = 4;
  std::size_t n_main_obstacles = 10;
  std::size_t n_io_obstacles = 8;
  double main_busy_share = 0.5;  ///< Share of the iteration, in [0, 1).
  double io_busy_share = 0.25;
  std::size_t n_fields = 8;
  std::uint64_t field_bytes = 64U << 20;  ///< Bytes of a rank.
  std::uint64_t chunk_bytes = 8U << 20;
  double mean_ratio = 16;
  /// Difference of the largest and least mean ratio within a node: the paper's "maximum
  /// difference".
  double ratio_difference = 0;
  double chunk_spread = 0.3;  ///< Deviation of the logarithm of ratios within a rank.
};

/// Find an application by name. @error invalid_argument  unknown name; lists the known ones.
Result<VirtualApplication> virtual_application(std::string_view name);
std::span<const VirtualApplication> virtual_applications();

/// Iterations of one rank, in order. Not thread-safe.
class VirtualStory {
 public:
  virtual ~VirtualStory() = default;
  virtual VirtualRank next() = 0;
};

/// Ranks on nodes, with their iterations.
struct VirtualWorkload {
  std::size_t n_ranks = 1;
  std::size_t ranks_per_node = 1;  ///< The last node may have fewer.
  std::size_t n_iterations = 10;
  /// Open a rank's story, which is the same on every call. Thread-safe.
  std::function<std::unique_ptr<VirtualStory>(std::size_t rank)> open;

  std::size_t n_nodes() const { return (n_ranks + ranks_per_node - 1) / ranks_per_node; }
};

/// Source of every rank's forecast and of its deviations.
struct VirtualStorySettings {
  VirtualNoise noise;
  VirtualCosts costs;
  std::uint64_t seed = 1;
  /// Obstacles are forecast from earlier iterations by model/obstacle_forecast, as in the product.
  /// False: they are known except for the noise, as in the paper's simulation.
  bool learned = false;
  /// Standard deviations kept free before an expected obstacle. Recordings use them by
  /// lane_margin_s().
  double margin = 1;
  bool io_margin = true;  ///< Keep the margin on the I/O lane, too; the product has none there.
};

/// Generate a workload. Not collective. @error invalid_argument  names the invalid number.
Result<VirtualWorkload> generated_workload(const VirtualApplication& application,
                                           std::size_t n_ranks, std::size_t ranks_per_node,
                                           std::size_t n_iterations,
                                           const VirtualStorySettings& settings);

/// Mean ratios of a node's ranks, indexed by rank within the node. Normal numbers, then shifted and
/// scaled so that their mean is `mean` and their range `difference`; none is below 1.1.
std::vector<double> node_ratios(std::size_t n_ranks, double mean, double difference,
                                std::uint64_t seed);

/// Mean encode time of the jobs; 0 without jobs.
double mean_encode_s(std::span<const JobCost> jobs);

/// Seed for one of many independent streams.
std::uint64_t stream_seed(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

/// Actual obstacles: starts and ends deviate by `sigma_s`; obstacles stay in order and disjoint.
LaneObstacles noisy_obstacles(const LaneObstacles& expected, double sigma_s, std::uint64_t seed);

}  // namespace tailrace
