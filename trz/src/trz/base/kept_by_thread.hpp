// kept_by_thread(): an object per thread that persists between calls, usable even during exit().
//
// HDF5 closes objects that a program has left open in an exit() handler, and may run filters there.
// The thread_local variables of that thread are already destroyed at this point. In that case the
// object is constructed again and never freed.

#pragma once

#include <utility>

namespace tailrace {

/// The calling thread's object of type `Kept`, constructed on first use and freed when the thread
/// ends.
template <class Kept>
Kept& kept_by_thread() {
  thread_local Kept* kept = nullptr;  // A pointer has no destructor, so it is always readable.
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
