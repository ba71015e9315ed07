// Threads that take the next task until there is none.

#include "exec/run_on_threads.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace tailrace {

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
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return first_failure;
}

}  // namespace tailrace
