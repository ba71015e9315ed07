// ThreadTeam: helper threads that stay: for reads, many short loops and work ahead of them; for the
// lanes of a step, work that is posted in each.
//
// run_on_threads starts its threads anew, which costs as much as decoding a small chunk. Here the
// helpers sleep between loops. A loop comes first; what was posted is done when no loop needs the
// helpers. Threads are started by the first call that has use for them.
//
// Nothing catches what is thrown on a thread of ours but the thread itself, and the job would end:
// a loop's task that throws has failed with that text (local_part), and a posted task must not
// throw.
//
// A process that fork() has made has none of its parent's threads: there a team does all by the
// calling thread, and its end waits for nobody.

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
  } catch (const std::bad_alloc&) {
    return std::thread();
  }
}

/// What a team's helpers do with a core that somebody else has when they are woken.
enum class Manners : std::uint8_t {
  equal,   ///< As any thread: who has slept may take it at once.
  waiting  ///< They wait until it is their turn: the caller goes on first (SCHED_BATCH of Linux).
};

class ThreadTeam {
 public:
  /// @param n_threads  of which the caller's is one; >= 1.
  explicit ThreadTeam(std::uint64_t n_threads, Manners manners = Manners::equal)
      : n_threads_(n_threads), shared_(std::make_unique<Shared>()) {
    shared_->manners = manners;
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  /// Drops what was posted and not begun, waits for the rest.
  ~ThreadTeam();

  std::uint64_t n_threads() const { return n_threads_; }
  /// Start those helpers that are missing, also where the system has refused one before. For who
  /// must know how many there are. @returns how many.
  std::uint64_t start_helpers();
  /// Run task(0, lane) ... task(n_tasks - 1, lane), each once, on at most `n_lanes` threads, the
  /// caller's among them; after a failure no further task is begun. `lane` < n_lanes tells the
  /// threads apart. One loop at a time. Tasks make no MPI calls. @returns the first failure.
  Status run(std::size_t n_tasks, std::uint64_t n_lanes,
             const std::function<Status(std::size_t, std::size_t)>& task);
  /// Have a helper do this some time; it does not throw. Without helpers (n_threads 1) it is
  /// dropped. From any thread after start_helpers(). @returns whether it will be done.
  bool post(std::function<void()> task);
  /// Wait until all that was posted is done, and gone.
  void finish_posted();
  /// Drop what was posted and not begun; wait until nothing that was posted is under way.
  void drop_posted();
  /// As the destructor; the next call that has use for helpers starts new ones.
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
  /// What the helpers use; a forked child leaves it as it is, since they are the parent's.
  struct Shared {
    Manners manners = Manners::equal;
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
  int pid_ = 0;           ///< Of the process that started the helpers; 0: there are none.
  std::unique_ptr<Shared> shared_;
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
