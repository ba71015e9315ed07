// Random instances. Lengths are shares of random weights: the weights of n free windows and n
// obstacles are scaled to the totals that the shape specifies. The operations of a lane are scaled
// likewise, so that an instance has exactly the requested load.

#include "simulate/random_flow_shop.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tailrace {
namespace {

constexpr double kTickS = 1e-6;  ///< Resolution of all times.

double on_ticks(double seconds) { return std::max(std::round(seconds / kTickS), 1.0) * kTickS; }

/// Scale `weights` to the sum `total`.
void scale_to(std::vector<double>& weights, double total) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight *= total / sum;
}

/// Draw obstacles. Windows vary more than obstacles: an application computes in similar phases, but
/// the waiting between them has arbitrary lengths.
std::vector<Obstacle> draw_obstacles(RandomDraws& draws, std::size_t n_obstacles, double covered_s,
                                     double free_s) {
  std::vector<double> lengths_s(n_obstacles);
  std::vector<double> windows_s(n_obstacles + 1);
  for (double& weight : lengths_s) weight = draws.uniform(0.5, 1.5);
  for (double& weight : windows_s) weight = draws.uniform(0.1, 1.9);
  if (n_obstacles == 0) return {};
  scale_to(lengths_s, covered_s);
  scale_to(windows_s, free_s);
  std::vector<Obstacle> obstacles;
  double ticks = 0;  // Counted in ticks, so that rounding cannot make two obstacles touch.
  for (std::size_t i = 0; i < n_obstacles; ++i) {
    const double start = ticks + std::max(std::round(windows_s[i] / kTickS), 1.0);
    ticks = start + std::max(std::round(lengths_s[i] / kTickS), 1.0);
    obstacles.push_back({start * kTickS, ticks * kTickS});
  }
  return obstacles;
}

std::vector<double> draw_operations(RandomDraws& draws, std::size_t n_jobs, double sigma,
                                    double total_s) {
  std::vector<double> lengths_s(n_jobs);
  for (double& length_s : lengths_s) length_s = std::exp(sigma * draws.normal());
  scale_to(lengths_s, total_s);
  for (double& length_s : lengths_s) length_s = on_ticks(length_s);
  return lengths_s;
}

}  // namespace

double RandomDraws::uniform(double low, double high) {
  const double unit = static_cast<double>(engine_() >> 11) * 0x1p-53;
  return low + (high - low) * unit;
}

std::size_t RandomDraws::whole(std::size_t first, std::size_t last) {
  return first + static_cast<std::size_t>(engine_() % (last - first + 1));
}

double RandomDraws::normal() {
  // Box and Muller 1958; 1 - u, since the logarithm of 0 is undefined.
  const double radius = std::sqrt(-2 * std::log(1 - uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * uniform(0, 1));
}

FlowShopShape random_shape(std::size_t n_jobs, std::uint64_t seed) {
  RandomDraws draws(seed);
  FlowShopShape shape;
  shape.n_jobs = n_jobs;
  shape.n_main_obstacles = draws.whole(4, 4 + n_jobs / 5);
  shape.n_io_obstacles = draws.whole(4, 4 + n_jobs / 5);
  shape.main_obstacle_share = draws.uniform(0.3, 0.6);
  shape.io_obstacle_share = draws.uniform(0.1, 0.4);
  shape.main_load = draws.uniform(0.6, 1.1);
  shape.io_load = draws.uniform(0.4, 1.1);
  shape.encode_sigma = draws.uniform(0.05, 0.3);
  shape.write_sigma = draws.uniform(0.3, 0.9);
  return shape;
}

FlowShop random_flow_shop(const FlowShopShape& shape, std::uint64_t seed) {
  RandomDraws draws(seed);
  FlowShop shop;
  shop.iteration_s = shape.iteration_s;
  const double main_covered_s = shape.main_obstacle_share * shape.iteration_s;
  const double io_covered_s = shape.io_obstacle_share * shape.iteration_s;
  const double main_free_s = shape.iteration_s - main_covered_s;
  const double io_free_s = shape.iteration_s - io_covered_s;
  shop.obstacles.main = draw_obstacles(draws, shape.n_main_obstacles, main_covered_s, main_free_s);
  shop.obstacles.io = draw_obstacles(draws, shape.n_io_obstacles, io_covered_s, io_free_s);
  if (shape.n_jobs == 0) return shop;
  const std::vector<double> encodes_s =
      draw_operations(draws, shape.n_jobs, shape.encode_sigma, shape.main_load * main_free_s);
  const std::vector<double> writes_s =
      draw_operations(draws, shape.n_jobs, shape.write_sigma, shape.io_load * io_free_s);
  for (std::size_t job = 0; job < shape.n_jobs; ++job) {
    shop.jobs.push_back({encodes_s[job], writes_s[job]});
  }
  return shop;
}

FlowShop random_flow_shop(std::size_t n_jobs, std::uint64_t seed) {
  // Separate stream for the times: the shape has drawn from `seed`.
  return random_flow_shop(random_shape(n_jobs, seed), ~seed);
}

}  // namespace tailrace
