// LaneClock: the step's time axis, and the sum and overlap of two lanes' busy intervals.

#pragma once

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace tailrace {

/// Seconds since a common start, on the monotonic clock.
class LaneClock {
 public:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The intervals in which a lane was busy; several threads may belong to it and overlap.
class BusyIntervals {
 public:
  using Interval = std::pair<double, double>;

  void add(double start_s, double end_s) {
    const std::scoped_lock lock(mutex_);
    intervals_.emplace_back(start_s, end_s);
  }
  /// Sorted and merged: disjoint, in order.
  std::vector<Interval> merged() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Interval> intervals_;
};

/// Total length of disjoint intervals, in seconds.
double total_s(const std::vector<BusyIntervals::Interval>& intervals);
/// Length of the time that lies in both lists; each disjoint and in order.
double overlap_s(const std::vector<BusyIntervals::Interval>& a,
                 const std::vector<BusyIntervals::Interval>& b);

}  // namespace tailrace
