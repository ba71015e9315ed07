// MemoryBudget: the cap on what the lanes of one rank hold at once, and the largest they held.

#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace tailrace {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t cap_bytes) : cap_bytes_(cap_bytes) {}

  /// Take `n_bytes` if they fit under the cap and leave `keep_free_bytes` of it. Thread-safe.
  bool try_take(std::uint64_t n_bytes, std::uint64_t keep_free_bytes = 0) {
    const std::scoped_lock lock(mutex_);
    if (held_bytes_ + n_bytes + keep_free_bytes > cap_bytes_) return false;
    held_bytes_ += n_bytes;
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    return true;
  }
  void give_back(std::uint64_t n_bytes) {
    const std::scoped_lock lock(mutex_);
    held_bytes_ -= n_bytes;
  }
  std::uint64_t peak_bytes() const {
    const std::scoped_lock lock(mutex_);
    return peak_bytes_;
  }
  std::uint64_t cap_bytes() const { return cap_bytes_; }

 private:
  mutable std::mutex mutex_;
  std::uint64_t cap_bytes_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace tailrace
