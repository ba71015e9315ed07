// Helpers that sleep until a loop or a posted task is there.
//
// Invariant 1: loop_ is null when run() returns, and no helper is in the loop any more.
// Invariant 2: every field of Loop but `next` is used under mutex_.

#include "exec/thread_team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tailrace {

std::uint64_t threads_of_each(std::uint64_t n_asked, const Comm& comm) {
  if (n_asked > 0) return n_asked;
  // Asked once: the C library reads a file for it, a tenth of what opening a small file takes.
  static const unsigned n_cores = std::thread::hardware_concurrency();
  return std::max(1U, n_cores / static_cast<unsigned>(std::max(1, comm.n_ranks_on_node())));
}

ThreadTeam::~ThreadTeam() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    posted_.clear();
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::start() {
  if (!helpers_.empty()) return;
  helpers_.reserve(n_threads_ - 1);
  while (helpers_.size() + 1 < n_threads_) {
    std::thread helper = start_thread([this] { help(); });
    if (!helper.joinable()) break;
    helpers_.push_back(std::move(helper));
  }
  n_threads_ = helpers_.size() + 1;
}

void ThreadTeam::work(Loop& loop, std::size_t lane) {
  for (std::size_t i = loop.next++; i < loop.n_tasks; i = loop.next++) {
    Status done = (*loop.task)(i, lane);
    if (done.ok()) continue;
    const std::scoped_lock lock(mutex_);
    if (loop.failure.ok()) loop.failure = std::move(done);
    loop.next = loop.n_tasks;
  }
}

Status ThreadTeam::run(std::size_t n_tasks, std::uint64_t n_lanes,
                       const std::function<Status(std::size_t, std::size_t)>& task) {
  const std::uint64_t n_wanted = std::min<std::uint64_t>({n_lanes, n_threads_, n_tasks});
  if (n_wanted <= 1) {
    for (std::size_t i = 0; i < n_tasks; ++i) TAILRACE_TRY(task(i, 0));
    return Status();
  }
  start();
  Loop loop;
  loop.n_tasks = n_tasks;
  loop.task = &task;
  {
    const std::scoped_lock lock(mutex_);
    loop.n_lanes_left = n_wanted - 1;
    loop_ = &loop;
  }
  for (std::uint64_t i = 1; i < n_wanted; ++i) wake_.notify_one();
  work(loop, 0);
  std::unique_lock lock(mutex_);
  loop_ = nullptr;  // Who has not joined yet stays away.
  done_.wait(lock, [&] { return loop.n_at_work == 0; });
  return loop.failure;
}

bool ThreadTeam::post(std::function<void()> task) {
  if (n_threads_ <= 1) return false;
  start();
  if (helpers_.empty()) return false;
  {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void ThreadTeam::drop_posted() {
  std::unique_lock lock(mutex_);
  posted_.clear();
  done_.wait(lock, [&] { return n_posted_running_ == 0; });
}

void ThreadTeam::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto loop_waits = [&] { return loop_ != nullptr && loop_->n_lanes_left > 0; };
    wake_.wait(lock, [&] { return ending_ || loop_waits() || !posted_.empty(); });
    if (loop_waits()) {
      Loop& loop = *loop_;
      --loop.n_lanes_left;
      const std::size_t lane = loop.n_lanes_taken++;
      ++loop.n_at_work;
      lock.unlock();
      work(loop, lane);
      lock.lock();
      --loop.n_at_work;
      done_.notify_all();
      continue;
    }
    if (ending_) return;
    if (posted_.empty()) continue;
    const std::function<void()> task = std::move(posted_.front());
    posted_.pop_front();
    ++n_posted_running_;
    lock.unlock();
    task();
    lock.lock();
    --n_posted_running_;
    done_.notify_all();
  }
}

// --- Threads that take the next task until there is none.

Status run_on_threads(std::size_t n_tasks, std::uint64_t n_threads,
                      const std::function<Status(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first_failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < n_tasks; i = next++) {
      const Status done = task(i);
      if (done.ok()) continue;
      const std::scoped_lock lock(mutex);
      if (first_failure.ok()) first_failure = done;
      next = n_tasks;
    }
  };
  std::vector<std::thread> helpers;
  for (std::uint64_t t = 1; t < std::min<std::uint64_t>(n_threads, n_tasks); ++t) {
    std::thread helper = start_thread(work);
    if (!helper.joinable()) break;
    helpers.push_back(std::move(helper));
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return first_failure;
}

Status serve_while(Tail& tail, const std::function<Status()>& work) {
  constexpr std::chrono::microseconds service_interval{50};
  if (!tail.needs_service()) return work();
  Status worked;
  std::atomic<bool> done{false};
  std::thread worker = start_thread([&] {
    worked = work();
    done = true;
  });
  if (!worker.joinable()) return Status(Code::out_of_memory, "the system refuses a thread");
  while (!done) {
    tail.service();
    std::this_thread::sleep_for(service_interval);
  }
  worker.join();
  return worked;
}

}  // namespace tailrace
