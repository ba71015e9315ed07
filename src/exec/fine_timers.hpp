// FineTimers: naps of some microseconds last about as long as they say.
//
// Linux lets every sleep of an ordinary thread end up to 50 us late (its timer slack), which is
// many times the nap itself where ranks wait for each other: end_step on two ranks took 4.6 ms with
// a slack of 1 us, 6.8 ms without. The thread may be the application's own, so its slack is put
// back.

#pragma once

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
