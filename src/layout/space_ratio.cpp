// Figure 9 as a parabola through its three known points, and eq. 3.

#include "layout/space_ratio.hpp"

#include <algorithm>

namespace tailrace {

double space_ratio(const SpaceGoal& goal) {
  if (goal.ratio > 0) return goal.ratio;
  // Through (0, smallest), (1/2, usual) and (1, largest).
  const double w = std::clamp(goal.performance_weight, 0.0, 1.0);
  const double bend = 2 * (smallest_space_ratio + largest_space_ratio - 2 * usual_space_ratio);
  const double slope = largest_space_ratio - smallest_space_ratio - bend;
  return smallest_space_ratio + w * (slope + w * bend);
}

double space_ratio_at(double ratio, double compression_ratio) {
  if (compression_ratio <= widened_above_ratio) return ratio;
  // An R_space above 2, which only a user can have named, is not narrowed.
  return std::max(ratio, std::min(largest_widened_ratio, 1 + (ratio - 1) * widening));
}

}  // namespace tailrace
