// The device's worker thread: waits for a kernel, computes it, reports its end.

#include "common/device.hpp"

#include <chrono>
#include <utility>

namespace app {

Device::Device(double stretch) : stretch_(stretch), worker_([this] { work(); }) {}

Device::~Device() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Device::launch(std::function<void()> kernel) {
  {
    const std::lock_guard lock(mutex_);
    kernel_ = std::move(kernel);
    done_.store(false, std::memory_order_release);
  }
  changed_.notify_all();
}

void Device::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done(); });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Device::work() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || kernel_; });
    if (!kernel_) return;
    const std::function<void()> kernel = std::exchange(kernel_, nullptr);
    lock.unlock();
    std::exception_ptr thrown;
    const Clock::time_point start = Clock::now();
    try {
      kernel();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (stretch_ > 1) {
      const Clock::duration computed = Clock::now() - start;
      std::this_thread::sleep_until(
          start + std::chrono::duration_cast<Clock::duration>(computed * stretch_));
    }
    lock.lock();
    thrown_ = thrown;
    done_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace app
