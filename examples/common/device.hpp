// Device: the accelerator to which the applications offload their kernels.
//
// The device is emulated. Production codes (Nyx, WarpX: Jin et al. 2024, 5.1) compute on GPUs, and
// the host's thread waits. Here the device is one worker thread per rank, a lane of the CPU, which
// actually computes the kernels. As with a GPU, the main thread meanwhile has nothing to do and
// donates its time to StepOutput::idle_until.
//
// One difference remains: the worker occupies a core that a GPU would leave free. With a spare core
// per rank this has no effect. Otherwise use --device-stretch F: the device is then busy for F
// times the kernel's own time and sleeps for the rest. The host gets the share 1 - 1/F of a core,
// as it would with a slower accelerator.
//
// A real GPU can replace this class: launch() enqueues on a stream, done() queries its event,
// wait() synchronises.

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

  /// Starts a kernel and returns immediately. Only one kernel at a time: done() must be true. The
  /// kernel must not call MPI or touch anything that the main thread uses meanwhile.
  void launch(std::function<void()> kernel);
  /// True if the last kernel has ended. Cheap; may be called from any thread.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Sleeps until the kernel has ended, and rethrows its exception.
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
