// Random instances of the flow shop: seeded, the same on every machine, shaped like an iteration of
// the paper's applications. Used by tests, the command line and the simulator.
//
// Source of the shape: Jin et al. 2024, 4.1 and 5.2 (Nyx: 32 to 54 chunks of 8 MB per process). Raw
// sizes are equal, so encode times differ little; encoded sizes depend on the data, so write times
// differ much. The numbers of obstacles and their shares are our choice; the paper gives none.
//
// Draws use std::mt19937_64 directly, since distributions of the standard library differ between
// libraries. Times are integer microseconds, so that the last bit of exp() has no effect.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "schedule/flow_shop.hpp"

namespace tailrace {

/// Random draws that do not depend on the library or the machine. Not thread-safe.
class RandomDraws {
 public:
  explicit RandomDraws(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high);                 ///< Number in [low, high).
  std::size_t whole(std::size_t first, std::size_t last);  ///< Integer in [first, last].
  double normal();                                         ///< Normal: mean 0, deviation 1.

 private:
  std::mt19937_64 engine_;
};

/// Parameters of an instance. Shares are of the iteration, loads of the remaining free time.
struct FlowShopShape {
  std::size_t n_jobs = 32;
  double iteration_s = 4;
  std::size_t n_main_obstacles = 8;
  std::size_t n_io_obstacles = 6;
  double main_obstacle_share = 0.45;  ///< Below 1.
  double io_obstacle_share = 0.25;    ///< Below 1.
  double main_load = 0.9;             ///< All encodes together over the main lane's free time.
  double io_load = 0.7;               ///< All writes together over the I/O lane's free time.
  double encode_sigma = 0.15;         ///< Lognormal; standard deviation of the logarithm.
  double write_sigma = 0.6;
};

/// Draw a shape in the ranges in which we measure schedulers. Obstacles cover 30-60 % of the main
/// lane and 10-40 % of the I/O lane, with 4 to 4 + n/5 of them on each. Loads are 0.6-1.1 (main)
/// and 0.4-1.1 (I/O); encode_sigma 0.05-0.3, write_sigma 0.3-0.9.
FlowShopShape random_shape(std::size_t n_jobs, std::uint64_t seed);

/// Draw an instance of a shape. Obstacles lie within the iteration and do not touch. Times are
/// integer microseconds, operations at least one. Passes check_flow_shop(). Deterministic.
/// Thread-safe.
FlowShop random_flow_shop(const FlowShopShape& shape, std::uint64_t seed);

/// Draw an instance of a drawn shape; used by tests and `tailrace-lab schedule --random`.
FlowShop random_flow_shop(std::size_t n_jobs, std::uint64_t seed);

}  // namespace tailrace
