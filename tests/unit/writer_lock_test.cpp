// Taking over a file from a dead job, and refusing one whose job may be alive.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "container_support.hpp"
#include "hdf5/writer_lock.hpp"

namespace tailrace::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// A process that starts something and lives until it is killed.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<bool()>& begin) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char ok = begin() ? 1 : 0;
      if (::write(ends[1], &ok, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char ok = 0;
    EXPECT_EQ(::read(ends[0], &ok, 1), 1);
    EXPECT_EQ(ok, 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~OtherProcess() { kill(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

/// Rank 0 of a job, and two processes that simulate other nodes.
struct DyingJob {
  explicit DyingJob(const std::string& path)
      : root([&] { return lock.take(path).ok(); }),
        node([&] { return nodes.join(path), true; }),
        another([&] { return nodes.join(path), true; }) {}
  WriterLock lock;
  NodesLock nodes;
  OtherProcess root;
  OtherProcess node;
  OtherProcess another;
};

TEST(WriterLock, ADeadJobIsTakenOverWhenNoneOfItsNodesWritesAnyMore) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  DyingJob job(path);
  WriterLock mine;
  EXPECT_THAT(mine.take(path, milliseconds(50)).message(), HasSubstr("is being written by"));
  job.root.kill();
  for (OtherProcess* one : {&job.node, &job.another}) {
    const Status refused = mine.take(path, milliseconds(120));
    EXPECT_EQ(refused.code(), Code::io_error);
    EXPECT_THAT(refused.message(), HasSubstr("on other nodes"));
    EXPECT_TRUE(std::filesystem::exists(lock_path_of(path)));  // Nothing was changed.
    one->kill();
  }
  EXPECT_TRUE(mine.take(path, milliseconds(0)).ok());
  EXPECT_THAT(mine.taken_over_from(), HasSubstr("another job"));
  EXPECT_FALSE(std::filesystem::exists(nodes_lock_path_of(path)));
}

TEST(WriterLock, NodesThatEndMeanwhileAreWaitedFor) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  DyingJob job(path);
  job.root.kill();
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(200));
    job.node.kill();
    job.another.kill();
  });
  WriterLock mine;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(mine.take(path).ok());
  EXPECT_GT(std::chrono::steady_clock::now() - begin, milliseconds(100));
  end.join();
}

TEST(WriterLock, WhoClosesLeavesNoFile) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  {
    WriterLock lock;
    ASSERT_TRUE(lock.take(path).ok());
    NodesLock node;
    node.join(path);
    EXPECT_TRUE(std::filesystem::exists(nodes_lock_path_of(path)));
    node.release();
    lock.release();
    EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
    WriterLock next;
    EXPECT_TRUE(next.take(path, milliseconds(0)).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string job_on(const std::string& host) {
  return "host " + host + "\nprocess 12\nsince 2026-11-05T10:00:00Z\nstart 0\n";
}

std::string this_host() {
  std::array<char, 256> name{};
  EXPECT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  return name.data();
}

/// Runs `test` in a process with private mounts. `folder` is on a file system whose locks may be
/// invisible to other nodes. Returns true if that file system could be mounted.
bool where_locks_are_not_known_to_be_seen(const std::string& folder,
                                          const std::function<void()>& test) {
  constexpr int cannot = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool apart = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", folder.c_str(), "ramfs", 0, nullptr) == 0;
    if (!apart) ::_exit(cannot);
    test();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  EXPECT_TRUE(code == 0 || code == cannot) << code;
  return code != cannot;
}

TEST(WriterLock, AJobOfAnotherNodeIsNotTakenForDeadWhereItsLockMayNotBeSeen) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const bool was_there = where_locks_are_not_known_to_be_seen(folder / "", [&] {
    write_text(lock_path_of(path), job_on("elsewhere"));
    WriterLock mine;
    const Status refused = mine.take(path, milliseconds(0));
    EXPECT_EQ(refused.code(), Code::io_error);
    EXPECT_THAT(refused.message(), HasSubstr("process 12 on elsewhere"));
    EXPECT_THAT(refused.message(), HasSubstr("if that job is dead, remove \"" + path + ".lock\""));
    EXPECT_THAT(writer_of(path), HasSubstr("if that job is dead"));
    write_text(lock_path_of(path), "");  // It has only just been made there.
    EXPECT_EQ(mine.take(path, milliseconds(0)).code(), Code::io_error);

    // A node of that job saw rank 0's lock, so this process would see it, too.
    write_text(lock_path_of(path), job_on("elsewhere"));
    write_text(nodes_lock_path_of(path), "locks are seen between nodes\n");
    EXPECT_EQ(writer_of(path), "");
    EXPECT_TRUE(mine.take(path, milliseconds(0)).ok());
    EXPECT_FALSE(std::filesystem::exists(nodes_lock_path_of(path)));
    mine.release();
    write_text(lock_path_of(path), job_on(this_host()));
    EXPECT_TRUE(mine.take(path, milliseconds(0)).ok());
  });
  if (!was_there) GTEST_SKIP() << "needs a file system mounted, which root may";
}

TEST(WriterLock, AJobOfAnotherNodeIsDeadWhereItsLockWouldBeSeen) {
  const TestFolder folder;  // On a local disk, or in memory.
  const std::string path = folder / "out.h5";
  write_text(lock_path_of(path), job_on("elsewhere"));
  WriterLock mine;
  EXPECT_TRUE(mine.take(path, milliseconds(0)).ok());
  EXPECT_THAT(mine.taken_over_from(), HasSubstr("on elsewhere"));
}

TEST(WriterLock, AnotherNodeNotesThatItSeesTheLock) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const auto noted = [&] { return std::filesystem::file_size(nodes_lock_path_of(path)) > 0; };
  const bool was_there = where_locks_are_not_known_to_be_seen(folder / "", [&] {
    NodesLock node;
    write_text(lock_path_of(path), job_on("elsewhere"));
    node.join(path);
    EXPECT_FALSE(noted());  // The lock is not held.
    const Descriptor held(::open(lock_path_of(path).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(held.fd(), LOCK_EX), 0);
    node.join(path);
    EXPECT_TRUE(noted());
    node.release();
    std::filesystem::remove(nodes_lock_path_of(path));
    write_text(lock_path_of(path), job_on(this_host()));
    node.join(path);
    EXPECT_FALSE(noted());  // Processes on the same node would see the lock in any case.
  });
  if (!was_there) GTEST_SKIP() << "needs a file system mounted, which root may";
}

TEST(WriterLock, WhatIsAnothersMeanwhileStays) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  WriterLock first;
  ASSERT_TRUE(first.take(path).ok());
  std::filesystem::remove(lock_path_of(path));  // By a process that considers it dead.
  WriterLock second;
  ASSERT_TRUE(second.take(path).ok());
  first.release();
  EXPECT_TRUE(std::filesystem::exists(lock_path_of(path)));
  WriterLock third;
  EXPECT_FALSE(third.take(path).ok());
}

TEST(WriterLock, WhereRank0EndsAloneTheOthersAreWaitedFor) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  NodesLock node;
  {
    WriterLock root;
    ASSERT_TRUE(root.take(path).ok());
    node.join(path);
  }
  WriterLock next;
  EXPECT_THAT(next.take(path, milliseconds(50)).message(), HasSubstr("on other nodes"));
  EXPECT_FALSE(std::filesystem::exists(lock_path_of(path)));
  node.release();
  EXPECT_FALSE(std::filesystem::exists(nodes_lock_path_of(path)));
  EXPECT_TRUE(next.take(path, milliseconds(0)).ok());
}

TEST(WriterLock, AForkedProcessKeepsNobodyWaiting) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  WriterLock root;
  ASSERT_TRUE(root.take(path).ok());
  NodesLock node;
  node.join(path);
  const OtherProcess child([] { return true; });
  node.release();
  root.release();
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
  EXPECT_TRUE(root.take(path, milliseconds(0)).ok());
}

TEST(WriterLock, ALinkToAnotherFileIsNotWritten) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const bool was_there = where_locks_are_not_known_to_be_seen(folder / "", [&] {
    write_text(folder / "other", "kept");
    std::filesystem::create_hard_link(folder / "other", nodes_lock_path_of(path));
    write_text(lock_path_of(path), job_on("elsewhere"));
    const Descriptor held(::open(lock_path_of(path).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(held.fd(), LOCK_EX), 0);
    NodesLock node;
    node.join(path);
    EXPECT_EQ(std::filesystem::file_size(folder / "other"), 4U);
  });
  if (!was_there) GTEST_SKIP() << "needs a file system mounted, which root may";
}

TEST(WriterLock, AFolderThatTakesNoFilesIsTakenAsItIs) {
  NodesLock node;
  node.join("/proc/none/out.h5");
  WriterLock lock;
  EXPECT_TRUE(lock.take("/proc/none/out.h5").ok());
}

}  // namespace
}  // namespace tailrace::test
