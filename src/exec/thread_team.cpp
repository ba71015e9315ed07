// Helpers that sleep until a loop or a posted task arrives.
//
// Invariant 1: when run() returns, current is null and no helper is in the loop.
// Invariant 2: every field of Loop but `next` is used under the mutex.

#include "exec/thread_team.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tailrace {

std::uint64_t threads_of_each(std::uint64_t n_requested, const Comm& comm) {
  if (n_requested > 0) return n_requested;
  // Query once: the C library reads a file for it, a tenth of the cost of opening a small file.
  static const unsigned n_cores = std::thread::hardware_concurrency();
  return std::max(1U, n_cores / static_cast<unsigned>(std::max(1, comm.n_ranks_on_node())));
}

ThreadTeam::~ThreadTeam() {
  end();
  if (pid_ != 0) (void)shared_.release();  // In this forked copy, threads seem to wait there.
}

void ThreadTeam::end() {
  if (!has_helpers()) return;
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->ending = true;
    shared_->posted.clear();
  }
  shared_->wake.notify_all();
  for (std::thread& helper : shared_->helpers) helper.join();
  shared_->helpers.clear();
  shared_->ending = false;
  pid_ = 0;
}

bool ThreadTeam::has_helpers() const { return pid_ != 0 && pid_ == ::getpid(); }

std::uint64_t ThreadTeam::start_helpers() {
  refused_ = false;
  return start() ? shared_->helpers.size() : 0;
}

/// Start missing helpers. @returns true if the team has any.
bool ThreadTeam::start() {
  if (pid_ != 0 && !has_helpers()) return false;
  std::vector<std::thread>& helpers = shared_->helpers;
  helpers.reserve(n_threads_ - 1);
  while (!refused_ && helpers.size() + 1 < n_threads_) {
    std::thread helper = start_thread([shared = shared_.get()] { shared->help(); });
    refused_ = !helper.joinable();
    if (refused_) break;
    helpers.push_back(std::move(helper));
    pid_ = ::getpid();
  }
  return !helpers.empty();
}

void ThreadTeam::Shared::work(Loop& loop, std::size_t lane) {
  for (std::size_t i = loop.next++; i < loop.n_tasks; i = loop.next++) {
    Status failure = local_part([&] { return (*loop.task)(i, lane); });
    if (failure.ok()) continue;
    const std::scoped_lock lock(mutex);
    if (loop.failure.ok()) loop.failure = std::move(failure);
    loop.next = loop.n_tasks;
  }
}

Status ThreadTeam::run(std::size_t n_tasks, std::uint64_t n_lanes,
                       const std::function<Status(std::size_t, std::size_t)>& task) {
  const std::uint64_t n_wanted = std::min<std::uint64_t>({n_lanes, n_threads_, n_tasks});
  if (n_wanted <= 1 || !start()) {
    for (std::size_t i = 0; i < n_tasks; ++i) {
      TAILRACE_TRY(local_part([&] { return task(i, 0); }));
    }
    return Status();
  }
  Loop loop;
  loop.n_tasks = n_tasks;
  loop.task = &task;
  {
    const std::scoped_lock lock(shared_->mutex);
    loop.n_lanes_left = n_wanted - 1;
    shared_->current = &loop;
  }
  for (std::uint64_t i = 1; i < n_wanted; ++i) shared_->wake.notify_one();
  shared_->work(loop, 0);
  std::unique_lock lock(shared_->mutex);
  shared_->current = nullptr;  // Helpers that have not joined yet stay away.
  shared_->done.wait(lock, [&] { return loop.n_at_work == 0; });
  return loop.failure;
}

bool ThreadTeam::post(std::function<void()> task) {
  if (n_threads_ <= 1 || !start()) return false;
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->posted.push_back(std::move(task));
  }
  shared_->wake.notify_one();
  return true;
}

void ThreadTeam::finish_posted() {
  if (!has_helpers()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait(lock,
                     [&] { return shared_->posted.empty() && shared_->n_posted_running == 0; });
}

void ThreadTeam::drop_posted() {
  if (!has_helpers()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->posted.clear();
  shared_->done.wait(lock, [&] { return shared_->n_posted_running == 0; });
}

namespace {

/// Let the helper wait for its turn. Linux gives a core to an ordinary thread that wakes up, since
/// that has slept. On full nodes an encode thread thus took the core for a millisecond from the
/// thread that had woken it, within end_step. Another policy of the process is kept.
void wait_for_turns() {
#if defined(__linux__)
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_OTHER) (void)::sched_setscheduler(0, SCHED_BATCH, &none);
#endif
}

}  // namespace

void ThreadTeam::Shared::help() {
  if (manners == ThreadPriority::waiting) wait_for_turns();
  std::unique_lock lock(mutex);
  while (true) {
    const auto loop_waits = [&] { return current != nullptr && current->n_lanes_left > 0; };
    wake.wait(lock, [&] { return ending || loop_waits() || !posted.empty(); });
    if (loop_waits()) {
      Loop& joined = *current;
      --joined.n_lanes_left;
      const std::size_t lane = joined.n_lanes_taken++;
      ++joined.n_at_work;
      lock.unlock();
      work(joined, lane);
      lock.lock();
      --joined.n_at_work;
      done.notify_all();
      continue;
    }
    if (ending) return;
    if (posted.empty()) continue;
    std::function<void()> task = std::move(posted.front());
    posted.pop_front();
    ++n_posted_running;
    lock.unlock();
    task();
    task = nullptr;  // Also destroy its captures before anyone learns that it is done.
    lock.lock();
    --n_posted_running;
    done.notify_all();
  }
}

// --- Threads that take the next task until none is left.

Status run_on_threads(std::size_t n_tasks, std::uint64_t n_threads,
                      const std::function<Status(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first_failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < n_tasks; i = next++) {
      Status done = local_part([&] { return task(i); });
      if (done.ok()) continue;
      const std::scoped_lock lock(mutex);
      if (first_failure.ok()) first_failure = std::move(done);
      next = n_tasks;
    }
  };
  const std::uint64_t n_wanted = std::min<std::uint64_t>(n_threads, n_tasks);
  std::vector<std::thread> helpers;
  helpers.reserve(n_wanted);
  for (std::uint64_t t = 1; t < n_wanted; ++t) {
    std::thread helper = start_thread(work);
    if (!helper.joinable()) break;
    helpers.push_back(std::move(helper));
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return first_failure;
}

Status serve_while(Tail& tail, const std::function<Status()>& work) {
  if (!tail.needs_service()) return work();
  Status worked;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::thread worker = start_thread([&] {
    worked = local_part(work);
    const std::scoped_lock lock(mutex);
    done = true;
    ended.notify_one();
  });
  // Without a thread: serve other ranks late rather than not do the work.
  if (!worker.joinable()) return local_part(work);
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, kTailServiceInterval, [&] { return done; })) {
    lock.unlock();
    tail.service();
    lock.lock();
  }
  lock.unlock();
  worker.join();
  return worked;
}

}  // namespace tailrace
