// Obstacle: a stretch of an iteration in which the application needs a lane for itself.
//
// The application marks them (compute_begin/end, background_begin/end); exec records them, model
// forecasts the next iteration's, schedule plans around them. Paper: unavailability interval,
// [a_i, b_i] on the main thread, [a'_i, b'_i] on the background thread (Jin et al. 2024, 3.1).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tailrace {

/// The two machines of the flow shop.
enum class Lane : std::uint8_t {
  main,  ///< Encodes in the application's idle time (paper: main thread).
  io     ///< Writes while the application does not communicate (paper: background thread).
};

/// Seconds since the iteration began, [start_s, end_s).
struct Obstacle {
  double start_s = 0;
  double end_s = 0;

  double length_s() const { return end_s - start_s; }
};

/// Of both lanes; each list sorted and disjoint.
struct LaneObstacles {
  std::vector<Obstacle> main;
  std::vector<Obstacle> io;

  const std::vector<Obstacle>& of(Lane lane) const { return lane == Lane::main ? main : io; }
  std::vector<Obstacle>& of(Lane lane) { return lane == Lane::main ? main : io; }
};

/// Most obstacles of a lane that are recorded and forecast of one iteration.
inline constexpr std::size_t lane_obstacles_max = 10'000;

/// Reduce sorted, disjoint obstacles to `n_most` by merging those between which the gaps are
/// shortest: what is lost is idle time of which the least use could be made. `n_most` > 0.
/// Not collective. Thread-safe. Cost: O(obstacles).
void merge_obstacles(std::vector<Obstacle>& obstacles, std::size_t n_most);

}  // namespace tailrace
