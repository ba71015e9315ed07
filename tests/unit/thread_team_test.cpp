// ThreadTeam: each task runs once, failures stop a loop, posted work is done or dropped.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "container_support.hpp"
#include "exec/thread_team.hpp"

namespace tailrace::test {
namespace {

TEST(ThreadTeam, RunsEachTaskOnceOn_1_2_5_Threads) {
  for (const std::uint64_t n_threads : {1U, 2U, 5U}) {
    ThreadTeam team(n_threads);
    for (const std::size_t n_tasks : {0U, 1U, 3U, 200U}) {
      for (const std::uint64_t n_lanes : {1U, 2U, 9U}) {
        std::vector<std::atomic<int>> done(n_tasks);
        std::atomic<bool> lanes_fit{true};
        ASSERT_DONE(team.run(n_tasks, n_lanes, [&](std::size_t i, std::size_t lane) {
          ++done[i];
          if (lane >= std::min(n_lanes, n_threads)) lanes_fit = false;
          return Status();
        }));
        for (const std::atomic<int>& n : done) EXPECT_EQ(n, 1);
        EXPECT_TRUE(lanes_fit);
      }
    }
  }
}

TEST(ThreadTeam, AFailureEndsTheLoop) {
  for (const std::uint64_t n_threads : {1U, 3U}) {
    ThreadTeam team(n_threads);
    std::atomic<std::size_t> n_done{0};
    const Status run = team.run(100000, n_threads, [&](std::size_t i, std::size_t) {
      ++n_done;
      return i == 10 ? Status(Code::corrupt, "ten") : Status();
    });
    EXPECT_EQ(run.code(), Code::corrupt);
    EXPECT_LT(n_done, 100000U);
  }
}

/// An exception of a task is its failure, because nothing else on its thread would catch it.
TEST(ThreadTeam, ATaskThatThrowsHasFailed) {
  for (const std::uint64_t n_threads : {1U, 3U}) {
    ThreadTeam team(n_threads);
    const auto throws = [](std::size_t i) {
      if (i == 10) throw std::bad_alloc();
      if (i == 20) throw std::runtime_error("twenty");
      return Status();
    };
    const auto in_team = [&](std::size_t i, std::size_t) { return throws(i); };
    EXPECT_EQ(team.run(15, n_threads, in_team).code(), Code::out_of_memory);
    EXPECT_EQ(run_on_threads(15, n_threads, throws).code(), Code::out_of_memory);
    const Status other =
        run_on_threads(30, n_threads, [&](std::size_t i) { return throws(i + 11); });
    EXPECT_EQ(other.code(), Code::internal);
    EXPECT_EQ(other.message(), "twenty");
  }
}

TEST(ThreadTeam, PostedWorkIsDoneBesideLoopsAndDroppedAtTheEnd) {
  ThreadTeam alone(1);
  EXPECT_FALSE(alone.post([] {}));
  ThreadTeam team(3);
  std::atomic<int> n_posted{0};
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(team.post([&] { ++n_posted; }));
    ASSERT_DONE(team.run(7, 3, [](std::size_t, std::size_t) { return Status(); }));
  }
  team.drop_posted();
  const int n_done = n_posted;
  EXPECT_LE(n_done, 50);
  std::atomic<bool> done{false};
  ASSERT_TRUE(team.post([&] { done = true; }));
  while (!done) std::this_thread::yield();
  EXPECT_EQ(n_posted, n_done);
}

/// A caller that waits for posted work finds it finished, and none of it left.
TEST(ThreadTeam, PostedWorkIsFinishedAndGone) {
  ThreadTeam team(3);
  ASSERT_EQ(team.start_helpers(), 2U);
  for (int i = 0; i < 200; ++i) {
    auto done = std::make_shared<std::atomic<int>>(0);
    for (int t = 0; t < 5; ++t) {
      ASSERT_TRUE(team.post([done] { ++*done; }));
    }
    team.finish_posted();
    EXPECT_EQ(*done, 5);
    EXPECT_EQ(done.use_count(), 1);
    if (i % 50 == 0) team.end();
  }
}

#if defined(__linux__)
/// Helpers of low priority do not preempt the thread that wakes them, unless the program has
/// another policy.
TEST(ThreadTeam, HelpersMayHaveToWaitForTheirTurn) {
  if (::sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "another policy";
  for (const auto& [manners, policy] : {std::pair(ThreadPriority::equal, SCHED_OTHER),
                                        std::pair(ThreadPriority::waiting, SCHED_BATCH)}) {
    ThreadTeam team(2, manners);
    int found = -1;
    ASSERT_TRUE(team.post([&] { found = ::sched_getscheduler(0); }));
    team.finish_posted();
    EXPECT_EQ(found, policy);
  }
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}
#endif

/// A forked process has none of the team's threads: it runs all tasks itself, and its exit waits
/// for none.
TEST(ThreadTeam, AForkedChildHasNoHelpers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot follow a fork of several threads";
#endif
  auto team = std::make_unique<ThreadTeam>(3);
  ASSERT_EQ(team->start_helpers(), 2U);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    int n_done = 0;
    const Status run = team->run(10, 3, [&](std::size_t, std::size_t) {
      ++n_done;
      return Status();
    });
    const bool posted = team->post([] {});
    team->finish_posted();
    team->drop_posted();
    const std::uint64_t n_helpers = team->start_helpers();
    team.reset();
    ::_exit(run.ok() && n_done == 10 && !posted && n_helpers == 0 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::atomic<bool> done{false};
  ASSERT_TRUE(team->post([&] { done = true; }));
  team->finish_posted();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tailrace::test
