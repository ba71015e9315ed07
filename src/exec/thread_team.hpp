// ThreadTeam: persistent helper threads. Reads use them for many short loops and for work ahead of
// these; the lanes of a step for work that is posted in each step.
//
// run_on_threads() starts new threads, which costs as much as decoding a small chunk. A team's
// helpers sleep between loops. A loop has priority; posted tasks run when no loop needs the
// helpers. The first call that can use helpers starts them.
//
// An exception that leaves a helper thread would terminate the process. A loop's task that throws
// fails with the exception's text (local_part); a posted task must not throw.
//
// A forked child has none of its parent's threads. In it, a team does all work on the calling
// thread, and its destructor waits for no thread.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Number of threads for each rank: `n_requested`, or for 0 the cores divided by the node's ranks.
std::uint64_t threads_of_each(std::uint64_t n_requested, const Comm& comm);

/// Start a thread that does `work`. The result is not joinable if the system refuses a thread (a
/// limit on processes, no memory). The caller must then do the work otherwise: a rank that gave up
/// here would keep the others waiting.
template <class Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return std::thread();
  } catch (const std::bad_alloc&) {
    return std::thread();
  }
}

/// Scheduling of a team's helpers when another thread occupies the core at their wake-up.
enum class ThreadPriority : std::uint8_t {
  equal,   ///< Default of the system: a thread that has slept may preempt it.
  waiting  ///< They wait for their turn: the running thread goes on (SCHED_BATCH of Linux).
};

class ThreadTeam {
 public:
  /// @param n_threads  including the caller; >= 1.
  explicit ThreadTeam(std::uint64_t n_threads, ThreadPriority manners = ThreadPriority::equal)
      : n_threads_(n_threads), shared_(std::make_unique<Shared>()) {
    shared_->manners = manners;
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  /// Drop posted tasks that have not begun, and wait for the others.
  ~ThreadTeam();

  std::uint64_t n_threads() const { return n_threads_; }
  /// Start the missing helpers, also if the system has refused one before. For callers that need
  /// their number. @returns the number of helpers.
  std::uint64_t start_helpers();
  /// Run task(0, lane) ... task(n_tasks - 1, lane), each once, on at most `n_lanes` threads,
  /// including the caller. After a failure no further task begins. `lane` < n_lanes identifies the
  /// thread. One loop at a time. Tasks make no MPI calls. @returns the first failure.
  Status run(std::size_t n_tasks, std::uint64_t n_lanes,
             const std::function<Status(std::size_t, std::size_t)>& task);
  /// Post a task for a helper; it must not throw. Without helpers (n_threads 1) it is dropped. From
  /// any thread after start_helpers(). @returns true if the task will run.
  bool post(std::function<void()> task);
  /// Wait until every posted task is done and destroyed.
  void finish_posted();
  /// Drop posted tasks that have not begun, and wait until no posted task is running.
  void drop_posted();
  /// End the helpers like the destructor; the next call that can use helpers starts new ones.
  void end();

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
  /// State shared with the helpers; a forked child leaves it untouched, since the helpers are the
  /// parent's.
  struct Shared {
    ThreadPriority manners = ThreadPriority::equal;
    std::mutex mutex;
    std::condition_variable wake;  ///< Helpers wait for a loop, a posted task, or the end.
    std::condition_variable done;  ///< The caller waits for helpers.
    std::vector<std::thread> helpers;
    std::deque<std::function<void()>> posted;
    Loop* current = nullptr;
    std::size_t n_posted_running = 0;
    bool ending = false;

    void help();
    void work(Loop& loop, std::size_t lane);
  };

  bool start();
  bool has_helpers() const;

  std::uint64_t n_threads_;
  bool refused_ = false;  ///< The system has refused a helper.
  int pid_ = 0;           ///< Process that started the helpers; 0: none started.
  std::unique_ptr<Shared> shared_;
};

// --- run_on_threads: independent tasks on many chunks or fields, before a step's lanes start.
//
// Meant for short work without a lane, such as sampling. The executor's lanes have queues instead.

/// Run task(0) ... task(n_tasks - 1), each once, on n_threads threads including the caller. After a
/// failure no further task begins. Not collective; tasks make no MPI or HDF5 calls.
/// @returns the first failure.
Status run_on_threads(std::size_t n_tasks, std::uint64_t n_threads,
                      const std::function<Status(std::size_t)>& task);

/// Do long work of the main thread while other ranks may wait for claims. If the tail needs
/// service, the work runs on a separate thread and the main thread serves the tail.
/// @returns the result of the work. Without a thread the caller does it, and the tail waits.
Status serve_while(Tail& tail, const std::function<Status()>& work);

}  // namespace tailrace
