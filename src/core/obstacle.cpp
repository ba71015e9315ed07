// Merging of obstacles, so that an application which marks every message of its own costs no more
// memory than one that marks its phases.

#include "core/obstacle.hpp"

#include <algorithm>
#include <numeric>

namespace tailrace {

void merge_obstacles(std::vector<Obstacle>& obstacles, std::size_t n_most) {
  if (n_most == 0 || obstacles.size() <= n_most) return;
  const std::size_t n_closed = obstacles.size() - n_most;
  const auto gap_s = [&](std::size_t i) { return obstacles[i + 1].start_s - obstacles[i].end_s; };
  const auto closes_before = [&](std::size_t a, std::size_t b) {
    return gap_s(a) != gap_s(b) ? gap_s(a) < gap_s(b) : a < b;
  };
  std::vector<std::size_t> gaps(obstacles.size() - 1);
  std::iota(gaps.begin(), gaps.end(), std::size_t{0});
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(n_closed) - 1,
                   gaps.end(), closes_before);
  std::vector<bool> closed(gaps.size(), false);
  for (std::size_t i = 0; i < n_closed; ++i) closed[gaps[i]] = true;
  std::size_t n_kept = 1;
  for (std::size_t i = 1; i < obstacles.size(); ++i) {
    if (closed[i - 1]) {
      obstacles[n_kept - 1].end_s = obstacles[i].end_s;
    } else {
      obstacles[n_kept++] = obstacles[i];
    }
  }
  obstacles.resize(n_kept);
}

}  // namespace tailrace
