// The rule of the lanes; the header describes it.
//
// Pure: the time is an argument, so that the simulator and the executor can share the rule.

#include "schedule/lane_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tailrace {

// --- The gaps of a lane. A gap of length 0 is dropped, although an operation of length 0 would
// fit; such an operation goes into the next gap.

LaneGaps::LaneGaps(std::span<const Obstacle> obstacles) {
  gaps_.reserve(obstacles.size() + 1);
  double free_s = 0;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.start_s > free_s) gaps_.push_back({free_s, obstacle.start_s});
    free_s = obstacle.end_s;
  }
  gaps_.push_back({free_s});
}

double LaneGaps::place(double ready_s, double length_s) {
  std::size_t i = 0;
  double start_s = std::max(gaps_[i].start_s, ready_s);
  while (start_s + length_s > gaps_[i].end_s + kFitSlackS) {
    ++i;  // Ends at the last gap, which has no end.
    start_s = std::max(gaps_[i].start_s, ready_s);
  }
  const Gap behind = {start_s + length_s, gaps_[i].end_s};
  gaps_[i].end_s = start_s;
  const auto here = gaps_.begin() + static_cast<std::ptrdiff_t>(i);
  const bool left_before = gaps_[i].end_s > gaps_[i].start_s;
  const bool left_behind = behind.end_s > behind.start_s;
  if (left_before && left_behind) {
    gaps_.insert(here + 1, behind);
  } else if (left_behind) {
    *here = behind;
  } else if (!left_before) {
    gaps_.erase(here);
  }
  return start_s;
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double length_or_infinity(double length_s) { return std::isnan(length_s) ? infinity : length_s; }

}  // namespace

LaneOutlook lane_outlook(std::span<const Obstacle> forecast, std::size_t n_begun, bool blocked,
                         double now_s, double margin_s) {
  LaneOutlook outlook;
  outlook.now_s = now_s;
  outlook.blocked = blocked;
  const bool more_to_come = n_begun < forecast.size();
  const double start_s = more_to_come ? forecast[n_begun].start_s : infinity;
  outlook.overdue_from_s = start_s + std::max(margin_s, kLaneGraceS);
  outlook.free_until_s = blocked ? now_s : start_s - std::max(margin_s, 0.0);
  outlook.overdue = !blocked && now_s >= outlook.overdue_from_s;
  return outlook;
}

double lane_margin_s(double deviations, double spread_s, double mean_encode_s) {
  return std::min(deviations * spread_s, mean_encode_s);
}

LaneOutlook unlimited_outlook() { return {0, false, infinity, false, infinity}; }

std::optional<std::size_t> pick_operation(std::span<const double> lengths_s,
                                          const LaneOutlook& outlook) {
  if (outlook.blocked || lengths_s.empty()) return std::nullopt;
  if (outlook.overdue) {
    const auto shorter = [](double a, double b) {
      return length_or_infinity(a) < length_or_infinity(b);
    };
    const auto shortest = std::min_element(lengths_s.begin(), lengths_s.end(), shorter);
    return static_cast<std::size_t>(shortest - lengths_s.begin());
  }
  const double room_s = outlook.free_until_s - outlook.now_s + kLaneRoundingS;
  for (std::size_t i = 0; i < lengths_s.size(); ++i) {
    if (length_or_infinity(lengths_s[i]) <= room_s) return i;
  }
  return std::nullopt;
}

}  // namespace tailrace
