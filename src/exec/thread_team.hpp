// ThreadTeam: helper threads that stay, for reads: many short loops, and work ahead of them.
//
// run_on_threads starts its threads anew, which costs as much as decoding a small chunk. Here the
// helpers sleep between loops. A loop comes first; what was posted is done when no loop needs the
// helpers. Threads are started by the first call that has use for them.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Threads of each rank: as many as asked for or, for 0, the cores over the node's ranks.
std::uint64_t threads_of_each(std::uint64_t n_asked, const Comm& comm);

/// A thread that does `work`; none, which is not joinable, where the system refuses one (a limit on
/// processes, no memory). Then its work must be done otherwise: a rank that gave up here would keep
/// the others waiting.
template <class Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return std::thread();
  }
}

class ThreadTeam {
 public:
  /// @param n_threads  of which the caller's is one; >= 1.
  explicit ThreadTeam(std::uint64_t n_threads) : n_threads_(n_threads) {}
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  /// Drops what was posted and not begun, waits for the rest.
  ~ThreadTeam();

  std::uint64_t n_threads() const { return n_threads_; }
  /// Run task(0, lane) ... task(n_tasks - 1, lane), each once, on at most `n_lanes` threads, the
  /// caller's among them; after a failure no further task is begun. `lane` < n_lanes tells the
  /// threads apart. One loop at a time. Tasks make no MPI calls. @returns the first failure.
  Status run(std::size_t n_tasks, std::uint64_t n_lanes,
             const std::function<Status(std::size_t, std::size_t)>& task);
  /// Have a helper do this some time. Without helpers (n_threads 1) it is dropped.
  /// @returns whether it will be done.
  bool post(std::function<void()> task);
  /// Drop what was posted and not begun; wait until nothing that was posted is under way.
  void drop_posted();

 private:
  struct Loop {
    std::size_t n_tasks = 0;
    const std::function<Status(std::size_t, std::size_t)>* task = nullptr;
    std::atomic<std::size_t> next{0};
    std::size_t n_lanes_left = 0;  ///< Helpers that may still join.
    std::size_t n_lanes_taken = 1;
    std::size_t n_at_work = 0;  ///< Helpers in the loop.
    Status failure;
  };

  void start();
  void help();
  void work(Loop& loop, std::size_t lane);

  std::uint64_t n_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;  ///< Helpers wait for a loop, a posted task, or the end.
  std::condition_variable done_;  ///< The caller waits for helpers.
  std::vector<std::thread> helpers_;
  std::deque<std::function<void()>> posted_;
  Loop* loop_ = nullptr;
  std::size_t n_posted_running_ = 0;
  bool ending_ = false;
};

// --- run_on_threads: independent looks at many chunks or fields, before a step's lanes start.
//
// For short work that has no lane of its own: sampling. The executor's lanes have queues instead.

/// Run task(0) ... task(n_tasks - 1), each once, on n_threads threads of which the caller's is one;
/// after a failure no further task is begun. Not collective; tasks make no MPI or HDF5 calls.
/// @returns the first failure.
Status run_on_threads(std::size_t n_tasks, std::uint64_t n_threads,
                      const std::function<Status(std::size_t)>& task);

/// Work that takes long on the main thread, while others may wait for claims: where the tail needs
/// service, it is done on a thread of its own meanwhile.
/// @returns what the work returns.  @error out_of_memory  there is no thread to be had.
Status serve_while(Tail& tail, const std::function<Status()>& work);

}  // namespace tailrace
