// What a thread keeps from call to call, also while the process ends.
//
// HDF5 closes what a program has left open in a handler of exit(), and may run filters there. By
// then the variables of that thread have been destroyed. What it keeps is made anew then, and
// nobody frees it.

#pragma once

#include <utility>

namespace tailrace {

/// One for each thread and type. Freed when the thread ends.
template <class Kept>
Kept& kept_by_thread() {
  thread_local Kept* kept = nullptr;  // Destroyed by nobody, so that it may be asked at any time.
  struct End {
    ~End() { delete std::exchange(kept, nullptr); }
  };
  if (kept == nullptr) {
    kept = new Kept;
    [[maybe_unused]] thread_local const End end;
    static_cast<void>(&end);
  }
  return *kept;
}

}  // namespace tailrace
