// Device: the accelerator that the applications offload their kernels to.
//
// How it is emulated. Production codes (Nyx, WarpX: Jin et al. 2024, 5.1) compute on GPUs, and the
// host's thread waits. Here the device is one worker thread per rank, a lane of the CPU: it really
// computes the kernels, while the main thread, as with a GPU, has nothing to do and lends itself to
// StepOutput::idle_until. One difference remains: the worker takes a core that a GPU would leave
// free. With a core per rank to spare nothing is lost; else --device-stretch F makes the device
// busy for F times the kernel's own time and asleep for the rest, so that the host has the share
// 1 - 1/F of a core, as it would beside a slower accelerator. A real GPU takes this class's place:
// launch() enqueues on a stream, done() asks its event, wait() synchronises.

#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace app {

class Device {
 public:
  /// @param stretch  busy time over computing time of a kernel, >= 1.
  explicit Device(double stretch = 1);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Start a kernel and return at once. One at a time: done() must be true. The kernel makes no MPI
  /// calls and touches nothing that the main thread uses meanwhile.
  void launch(std::function<void()> kernel);
  /// Whether the last kernel has ended. Cheap; any thread.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Sleep until it has, and rethrow what it threw.
  void wait();

 private:
  void work();

  double stretch_;
  std::atomic<bool> done_{true};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> kernel_;
  std::exception_ptr thrown_;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace app
