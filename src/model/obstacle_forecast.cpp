// Estimates of ObstacleForecast; the header explains the method.
//
// Deviations are means of distances times sqrt(pi/2). For a normal distribution this is the
// standard deviation, but outliers influence it less.

#include "model/obstacle_forecast.hpp"

#include <algorithm>
#include <cmath>

namespace tailrace {
namespace {

/// Weight of the newest iteration. Under jitter s the forecast's error is sqrt(2 / (2 - rate)) s,
/// under a drift of d per iteration d / rate.
constexpr double rate = 0.4;
/// Weight for deviations, about which a single iteration reveals less.
constexpr double kDeviationRate = 0.15;
constexpr double kDeviationOfMeanDistance = 1.2533141373155003;  // sqrt(pi / 2)

/// Half width of the gate in deviations: one normal value in 16,000 lies outside.
constexpr double kGateDeviations = 4;
/// Minimum deviation, as a share of an iteration, until this many iterations have been compared
/// (Jin et al. 2024, 5.4.1, observe 1 %).
constexpr std::size_t kNComparisonsToTrust = 4;
constexpr double kAssumedShare = 0.02;
/// Minimum deviation at all times: clocks and marks have jitter.
constexpr double least_share = 0.0005;
constexpr double kLeastDeviationS = 20e-6;

/// An obstacle present in less than this share of the iterations is forgotten. If it was seen once,
/// this happens in the third iteration without it.
constexpr double kLeastPresence = 0.1;
/// Minimum length: check_flow_shop() rejects empty obstacles.
constexpr double kLeastLengthS = 1e-9;

/// Find for each of `from` the nearest of `to`, which is not empty; both are sorted.
std::vector<std::size_t> nearest(const std::vector<double>& from, const std::vector<double>& to) {
  std::vector<std::size_t> nearest_of(from.size());
  std::size_t j = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    while (j + 1 < to.size() && std::abs(to[j + 1] - from[i]) <= std::abs(to[j] - from[i])) ++j;
    nearest_of[i] = j;
  }
  return nearest_of;
}

}  // namespace

void ObstacleForecast::Spread::add(double mean_distance_s) {
  ++n_added_;
  const double weight = std::max(1 / static_cast<double>(n_added_), kDeviationRate);
  deviation_s_ += weight * (kDeviationOfMeanDistance * mean_distance_s - deviation_s_);
}

double ObstacleForecast::Spread::gate_s(double iteration_s) const {
  double deviation_s = std::max({deviation_s_, least_share * iteration_s, kLeastDeviationS});
  if (n_added_ < kNComparisonsToTrust) {
    deviation_s = std::max(deviation_s, kAssumedShare * iteration_s);
  }
  return kGateDeviations * deviation_s;
}

std::optional<double> ObstacleForecast::Estimate::add(double seen_s, double gate_s) {
  const double off_s = seen_s - value_s_;
  cut_ = false;
  if (std::abs(off_s) <= gate_s) {
    value_s_ += rate * off_s;
    suspect_s_ = std::numeric_limits<double>::quiet_NaN();
    return std::abs(off_s);
  }
  if (std::isnan(suspect_s_)) {
    suspect_s_ = seen_s;
    cut_ = true;
    return std::nullopt;
  }
  if (std::abs(seen_s - suspect_s_) <= gate_s) {  // A lasting change.
    value_s_ = (seen_s + suspect_s_) / 2;
    suspect_s_ = std::numeric_limits<double>::quiet_NaN();
    return std::nullopt;
  }
  // Outside again, but elsewhere: the gate is too narrow.
  value_s_ = seen_s;
  suspect_s_ = seen_s;
  return gate_s;
}

std::vector<std::size_t> ObstacleForecast::match(const std::vector<Tracked>& tracked,
                                                 const std::vector<Obstacle>& seen) {
  std::vector<std::size_t> expected;
  for (std::size_t i = 0; i < tracked.size(); ++i) {
    if (tracked[i].expected()) expected.push_back(i);
  }
  // The number is as expected: match in order, wherever the obstacles have moved.
  if (expected.size() == seen.size()) return expected;

  // Otherwise match mutual nearest neighbours. Such pairs do not cross.
  std::vector<std::size_t> tracked_of(seen.size(), tracked.size());
  if (tracked.empty() || seen.empty()) return tracked_of;
  std::vector<double> tracked_s;
  tracked_s.reserve(tracked.size());
  std::vector<double> seen_s;
  seen_s.reserve(seen.size());
  for (const Tracked& it : tracked) tracked_s.push_back(it.start.value_s());
  for (const Obstacle& it : seen) seen_s.push_back(it.start_s);
  const std::vector<std::size_t> to_seen = nearest(tracked_s, seen_s);
  const std::vector<std::size_t> to_tracked = nearest(seen_s, tracked_s);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (to_seen[to_tracked[i]] == i) tracked_of[i] = to_tracked[i];
  }
  return tracked_of;
}

std::size_t ObstacleForecast::add_lane(LaneState& lane, const std::vector<Obstacle>& seen) {
  const std::vector<std::size_t> tracked_of = match(lane.tracked, seen);
  const std::size_t n_before = lane.tracked.size();
  const double start_gate_s = lane.start_spread.gate_s(iteration_s());
  const double length_gate_s = lane.length_spread.gate_s(iteration_s());
  double start_sum_s = 0;
  double length_sum_s = 0;
  std::size_t n_starts = 0;
  std::size_t n_lengths = 0;
  std::size_t n_cut = 0;
  for (Tracked& it : lane.tracked) it.presence *= 1 - rate;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (tracked_of[i] == n_before) {
      const double presence = n_iterations_ == 0 ? 1 : rate;
      lane.tracked.push_back({Estimate(seen[i].start_s), Estimate(seen[i].length_s()), presence});
      ++n_cut;
      continue;
    }
    Tracked& it = lane.tracked[tracked_of[i]];
    it.presence += rate;
    if (const std::optional<double> off_s = it.start.add(seen[i].start_s, start_gate_s)) {
      start_sum_s += *off_s;
      ++n_starts;
    }
    if (const std::optional<double> off_s = it.length.add(seen[i].length_s(), length_gate_s)) {
      length_sum_s += *off_s;
      ++n_lengths;
    }
    if (it.start.cut() || it.length.cut()) ++n_cut;
  }
  if (n_starts > 0) lane.start_spread.add(start_sum_s / static_cast<double>(n_starts));
  if (n_lengths > 0) lane.length_spread.add(length_sum_s / static_cast<double>(n_lengths));
  std::erase_if(lane.tracked, [](const Tracked& it) { return it.presence < kLeastPresence; });
  std::stable_sort(
      lane.tracked.begin(), lane.tracked.end(),
      [](const Tracked& a, const Tracked& b) { return a.start.value_s() < b.start.value_s(); });
  return n_cut;
}

void ObstacleForecast::add_iteration(const LaneObstacles& seen, double iteration_s) {
  bool cut = false;
  if (!iteration_) {
    iteration_.emplace(iteration_s);
  } else {
    const double gate_s = iteration_spread_.gate_s(iteration_->value_s());
    if (const std::optional<double> off_s = iteration_->add(iteration_s, gate_s)) {
      iteration_spread_.add(*off_s);
    }
    cut = iteration_->cut();
  }
  std::size_t n_seen = 0;
  std::size_t n_cut = 0;
  for (const Lane lane : {Lane::main, Lane::io}) {
    std::vector<Obstacle> obstacles = seen.of(lane);
    merge_obstacles(obstacles, kLaneObstaclesMax);
    n_seen += obstacles.size();
    n_cut += add_lane(lane == Lane::main ? main_ : io_, obstacles);
  }
  if (n_iterations_ > 0 && (cut || 2 * n_cut > n_seen)) ++n_outliers_;
  ++n_iterations_;
}

std::vector<Obstacle> ObstacleForecast::next_of(const LaneState& lane) {
  std::vector<Obstacle> next;
  for (const Tracked& it : lane.tracked) {
    if (!it.expected()) continue;
    // Split overlaps caused by jitter between the two obstacles, so that both remain.
    const double earliest_s = next.empty() ? 0 : next.back().start_s + kLeastLengthS;
    const double start_s = std::max(it.start.value_s(), earliest_s);
    if (!next.empty()) next.back().end_s = std::min(next.back().end_s, start_s);
    next.push_back({start_s, start_s + std::max(it.length.value_s(), kLeastLengthS)});
  }
  return next;
}

LaneObstacles ObstacleForecast::next() const { return {next_of(main_), next_of(io_)}; }

double ObstacleForecast::iteration_s() const { return iteration_ ? iteration_->value_s() : 0; }

double ObstacleForecast::spread_s(Lane lane) const {
  return (lane == Lane::main ? main_ : io_).start_spread.deviation_s();
}

}  // namespace tailrace
