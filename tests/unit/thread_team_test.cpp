// ThreadTeam: each task once, failures stop a loop, posted work is done or dropped.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
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

}  // namespace
}  // namespace tailrace::test
