// Interval arithmetic of the lanes.

#include "exec/lane_clock.hpp"

#include <algorithm>

namespace tailrace {

std::vector<BusyIntervals::Interval> BusyIntervals::merged() const {
  std::vector<Interval> sorted;
  {
    const std::scoped_lock lock(mutex_);
    sorted = intervals_;
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Interval> merged;
  for (const Interval& interval : sorted) {
    if (!merged.empty() && interval.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, interval.second);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

double total_s(const std::vector<BusyIntervals::Interval>& intervals) {
  double total = 0;
  for (const auto& [start, end] : intervals) total += end - start;
  return total;
}

double overlap_s(const std::vector<BusyIntervals::Interval>& a,
                 const std::vector<BusyIntervals::Interval>& b) {
  double total = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    total += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    (a[i].second < b[j].second ? i : j) += 1;
  }
  return total;
}

}  // namespace tailrace
