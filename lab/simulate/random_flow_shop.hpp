// Random instances of the flow shop: seeded, identical on every machine, shaped like an iteration
// of the paper's applications. Tests, the command line and the simulator use them.
//
// Source of the shape: Jin et al. 2024, 4.1 and 5.2. Nyx has 32 to 54 chunks a process. Chunks are
// of 8 MB raw, so that encode times differ little; their encoded sizes depend on the data, so that
// write times differ much. Numbers of obstacles and their shares are our choice; the paper gives
// none.
//
// Draws are computed directly from std::mt19937_64, because the distributions of standard libraries
// differ. Times are whole microseconds, which hides differences in the last bit of exp().

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
  double normal();                                         ///< Normal, mean 0, deviation 1.

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
  double main_load = 0.9;             ///< Sum of encodes over the main lane's free time.
  double io_load = 0.7;               ///< Sum of writes over the I/O lane's free time.
  double encode_sigma = 0.15;         ///< Times are lognormal; deviation of the logarithm.
  double write_sigma = 0.6;
};

/// Draw a shape from the ranges in which we measure schedulers. Obstacles cover 30-60 % of the main
/// lane and 10-40 % of the I/O lane, with 4 to 4 + n/5 obstacles on each. Loads are 0.6-1.1 (main)
/// and 0.4-1.1 (I/O), encode_sigma is 0.05-0.3, write_sigma 0.3-0.9.
FlowShopShape random_shape(std::size_t n_jobs, std::uint64_t seed);

/// Draw an instance of this shape. Obstacles lie within the iteration and do not touch. Times are
/// whole microseconds, those of operations at least one. Passes check_flow_shop(). Deterministic.
/// Thread-safe.
FlowShop random_flow_shop(const FlowShopShape& shape, std::uint64_t seed);

/// Draw an instance of a random shape, as tests and `tailrace-lab schedule --random` do.
FlowShop random_flow_shop(std::size_t n_jobs, std::uint64_t seed);

}  // namespace tailrace
