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

// --- FineTimers: naps of some microseconds last about as long as they say.
//
// Linux lets every sleep of an ordinary thread end up to 50 us late (its timer slack), which is
// many times the nap itself where ranks wait for each other: end_step on two ranks took 4.6 ms with
// a slack of 1 us, 6.8 ms without. The thread may be the application's own, so its slack is put
// back.

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace tailrace {

/// While it lives, the calling thread's sleeps end within a microsecond of their time.
class FineTimers {
 public:
#if defined(__linux__)
  FineTimers() : slack_ns_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
  }
  ~FineTimers() {
    if (slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns_), 0, 0, 0);
  }
#else
  FineTimers() = default;
#endif
  FineTimers(const FineTimers&) = delete;
  FineTimers& operator=(const FineTimers&) = delete;

 private:
#if defined(__linux__)
  int slack_ns_;
#endif
};

}  // namespace tailrace
