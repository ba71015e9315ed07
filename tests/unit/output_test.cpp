// The output's names and its lock: who may write, what may be replaced, and what is never touched.
// The numbers are the invariants of output/output.hpp.

#include "output/output.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "exec/comm_factory.hpp"
#include "exec/thread_team.hpp"
#include "hdf5/recover.hpp"
#include "support/options_of.hpp"
#include "verbs/recover_file.hpp"
#include "write/write.hpp"

namespace tailrace::test {
namespace {

namespace fs = std::filesystem;

/// `options_of(text)` with fsync=off.
FileOptions unsynced(const std::string& text) {
  FileOptions options = options_of(text);
  options.sync = false;
  return options;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<std::unique_ptr<Writer>> create(const std::string& path, const std::string& options = "") {
  return Writer::create(make_self_comm(), path, unsynced(options));
}

Result<std::unique_ptr<Writer>> append(const std::string& path) {
  return Writer::open(make_self_comm(), path, unsynced(""));
}

/// Writes a step with one small field of this name.
Status write_step(Writer& writer, const std::string& name) {
  FieldDefinition definition;
  definition.path = name;
  definition.dtype = DType::f32;
  definition.shape = {16};
  const Result<std::size_t> field = writer.define_field(definition);
  if (!field.ok()) return field.status();
  static const float values[16] = {1, 2, 3};
  TAILRACE_TRY(writer.put(*field, {{0}, {16}}, values));
  return writer.end_step().status();
}

void make_output(const std::string& path) {
  auto writer = create(path);
  ASSERT_TRUE(writer.ok()) << text_of(writer.status());
  ASSERT_DONE(write_step(**writer, "/first"));
  ASSERT_DONE((*writer)->close());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Counts the writes that are announced to be synced later, and those that are not.
class ExpectingStorage final : public StorageOver {
 public:
  struct Seen {
    int n_expected = 0;
    int n_not_expected = 0;
    int n_syncs = 0;
  };
  ExpectingStorage(std::unique_ptr<Storage> inner, Seen& seen)
      : StorageOver(std::move(inner)), seen_(seen) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    ++(expects_ ? seen_.n_expected : seen_.n_not_expected);
    return inner_->write_at(address, bytes);
  }
  void expect_sync() override {
    expects_ = true;
    inner_->expect_sync();
  }
  Status sync() override {
    ++seen_.n_syncs;
    return inner_->sync();
  }

 private:
  Seen& seen_;
  bool expects_ = false;
};

/// Data that will be synced are passed to the disk while later data are written, in new and in old
/// files.
TEST(Output, TheStorageKnowsFromTheFirstWriteThatItWillBeSynced) {
  const TestFolder folder;
  for (const bool sync : {true, false}) {
    const std::string path = folder / (sync ? "synced.h5" : "unsynced.h5");
    ExpectingStorage::Seen seen;
    FileOptions options = unsynced("");
    options.sync = sync;
    options.open_storage = [&](const std::string& name,
                               bool create) -> Result<std::unique_ptr<Storage>> {
      TAILRACE_TAKE(auto inner, open_posix_storage(name, create, false));
      return std::unique_ptr<Storage>(std::make_unique<ExpectingStorage>(std::move(inner), seen));
    };
    for (const char* const field : {"/first", "/second"}) {
      const bool first = field == std::string("/first");
      auto writer = first ? Writer::create(make_self_comm(), path, options)
                          : Writer::open(make_self_comm(), path, options);
      ASSERT_TRUE(writer.ok()) << text_of(writer.status());
      ASSERT_DONE(write_step(**writer, field));
      ASSERT_DONE((*writer)->close());
      EXPECT_EQ(seen.n_expected > 0, sync);
      EXPECT_EQ(seen.n_not_expected > 0, !sync);
      EXPECT_EQ(seen.n_syncs > 0, sync);
    }
  }
}

/// Passing data to the disk early does not change the file, for any sizes of writes.
TEST(Output, WhatIsGivenToTheDiskEarlyIsWhatWasWritten) {
  const TestFolder folder;
  auto storage = open_posix_storage(folder / "file", true, false);
  ASSERT_TRUE(storage.ok()) << text_of(storage.status());
  (*storage)->expect_sync();
  std::vector<std::byte> expected(40'000'003);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<std::byte>((i * 2654435761U) >> 11);
  }
  const std::size_t n_bytes[] = {1, 4095, 1 << 20, 9 << 20, 77};
  std::size_t end = expected.size();  // Backwards, so that pages are written in two halves.
  for (std::size_t w = 0; end > 0; ++w) {
    const std::size_t n = std::min(n_bytes[w % std::size(n_bytes)], end);
    end -= n;
    ASSERT_DONE((*storage)->write_at(end, std::span(expected).subspan(end, n)));
  }
  ASSERT_DONE((*storage)->sync());
  std::vector<std::byte> read(expected.size());
  ASSERT_DONE((*storage)->read_at(0, read));
  EXPECT_TRUE(read == expected);
}

/// Invariant 5: the second writer changes nothing, whatever it requests, and the first continues.
TEST(Output, TwoWritersOfAFileExcludeEachOther) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  const std::string before = contents(path);
  auto first = append(path);
  ASSERT_TRUE(first.ok()) << text_of(first.status());
  for (const auto& second : {append(path), create(path, "replace=on")}) {
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Code::io_error);
    EXPECT_NE(second.status().message().find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_EQ(contents(path), before);
  ASSERT_DONE(write_step(**first, "/second"));
  // Also after the first commit of a new file, which has another inode by then.
  EXPECT_FALSE(append(path).ok());
  ASSERT_DONE((*first)->close());
  EXPECT_EQ(names_in(fs::path(path).parent_path()), std::vector<std::string>{"out.h5"});
  auto third = append(path);
  ASSERT_TRUE(third.ok());
  ASSERT_DONE((*third)->close());
}

/// Invariant 5: a creator owns the name from the beginning, also after its first commit.
TEST(Output, ACreatorKeepsOthersOut) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  auto first = create(path, "replace=on");
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(create(path, "replace=on").ok());
  ASSERT_DONE(write_step(**first, "/a"));
  EXPECT_FALSE(create(path, "replace=on").ok());
  EXPECT_FALSE(append(path).ok());
  ASSERT_DONE(write_step(**first, "/b"));
  ASSERT_DONE((*first)->close());
}

/// The lock file of a killed job is taken over; recover names and removes it.
TEST(Output, ADeadJobsLockIsTakenOver) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  const pid_t child = ::fork();
  if (child == 0) {
    WriterLock lock;
    if (!lock.take(path).ok()) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(lock_path_of(path)));
  EXPECT_EQ(writer_of(path), "");
  const auto looked = verbs::recover_file({path, false});
  ASSERT_TRUE(looked.ok()) << text_of(looked.status());
  EXPECT_THAT(looked->report.findings, ::testing::Contains(::testing::HasSubstr("lock file")));
  ASSERT_TRUE(verbs::recover_file({path, true}).ok());
  EXPECT_FALSE(fs::exists(lock_path_of(path)));
  const std::string dead = "host elsewhere\nprocess 7\nsince then\nstart 1\n";
  std::ofstream(lock_path_of(path)) << dead;
  auto writer = append(path);
  ASSERT_TRUE(writer.ok()) << text_of(writer.status());
  std::vector<std::string> log;
  (*writer)->on_log([&](const std::string& line) { log.push_back(line); });
  EXPECT_EQ(log, std::vector<std::string>{
                     "\"" + path +
                     "\": another job (process 7 on elsewhere, since then) died while "
                     "writing the file"});
  ASSERT_DONE((*writer)->close());
  std::ofstream(lock_path_of(path)) << dead;
  WriterLock lock;
  ASSERT_DONE(lock.take(path));
  EXPECT_NE(lock.taken_over_from().find("elsewhere"), std::string::npos);
}

/// Others can write into the folder, so the contents of a lock file are not trusted.
TEST(Output, ALockFileThatSaysAnythingIsNotBelieved) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Descriptor held(::open(lock_path_of(path).c_str(), O_RDWR | O_CREAT, 0666));
  ASSERT_EQ(::flock(held.fd(), LOCK_EX), 0);
  for (const std::string text : {"host here\nprocess ../../7\nsince then\nstart 1\n",
                                 "host \x1b[2J\nprocess 7\nsince then\nstart 1\n",
                                 "host here\nprocess 7\nsince then\nstart one\n"}) {
    std::ofstream(lock_path_of(path)) << text;
    EXPECT_EQ(writer_of(path), "another job");
    WriterLock lock;
    EXPECT_EQ(lock.take(path).message(), "\"" + path + "\" is being written by another job");
  }
  std::ofstream(lock_path_of(path)) << "host here\nprocess 7\nsince then\nstart 1\n";
  EXPECT_EQ(writer_of(path), "another job (process 7 on here, since then)");
}

/// Invariant 6: without `replace`, a file that appears while this one is written stays.
TEST(Output, AFileThatAppearsMeanwhileStays) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  auto writer = create(path);
  ASSERT_TRUE(writer.ok());
  std::ofstream(path) << "somebody else's";
  const Status written = write_step(**writer, "/a");
  EXPECT_EQ(written.code(), Code::already_exists) << text_of(written);
  EXPECT_EQ(contents(path), "somebody else's");
  writer->reset();
}

/// Invariant 7: steps written into a file without a name would be lost silently, and the file that
/// now has the name belongs to another job.
TEST(Output, AFileThatIsRemovedOrReplacedMeanwhileIsNamed) {
  for (const char* mode : {"mode=sync", "mode=async"}) {
    for (const bool replaced : {false, true}) {
      for (const bool committed : {false, true}) {
        SCOPED_TRACE(std::string(mode) + (replaced ? " replaced" : " removed") +
                     (committed ? " in place" : " temporary"));
        const TestFolder folder;
        const std::string path = folder / "out.h5";
        auto writer = create(path, mode);
        ASSERT_TRUE(writer.ok()) << text_of(writer.status());
        if (committed) {
          ASSERT_DONE(write_step(**writer, "/kept"));
          ASSERT_DONE((*writer)->wait().status());
        }
        const std::string name = committed ? path : path + kPartialSuffix;
        fs::rename(name, folder / "moved");
        if (replaced) std::ofstream(name) << "somebody else's";
        Status lost = write_step(**writer, "/lost");
        if (lost.ok()) lost = (*writer)->wait().status();
        EXPECT_EQ(lost.code(), Code::io_error) << text_of(lost);
        EXPECT_NE(lost.message().find(replaced ? "was replaced by another file" : "was removed"),
                  std::string::npos)
            << text_of(lost);
        (void)(*writer)->close();
        writer->reset();
        EXPECT_EQ(fs::exists(name), replaced);
        if (replaced) {
          EXPECT_EQ(contents(name), "somebody else's");
        }
      }
    }
  }
}

/// Invariant 6: a link leads to its target, and the new file inherits the target's mode.
TEST(Output, AReplacedFileKeepsItsModeAndItsLinks) {
  const TestFolder folder;
  const std::string target = folder / "target.h5";
  const std::string link = folder / "link.h5";
  make_output(target);
  ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("target.h5", link.c_str()), 0);
  auto writer = create(link, "replace=on");
  ASSERT_TRUE(writer.ok()) << text_of(writer.status());
  ASSERT_DONE(write_step(**writer, "/new"));
  ASSERT_DONE((*writer)->close());
  EXPECT_TRUE(fs::is_symlink(link));
  struct stat facts {};
  ASSERT_EQ(::stat(target.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_EQ(names_in(fs::path(target).parent_path()),
            (std::vector<std::string>{"link.h5", "target.h5"}));
}

/// Invariant 6: only regular files are replaced, also under the temporary name. The new file takes
/// only the name of the replaced file: a hard-linked backup stays.
TEST(Output, OtherHardLinksOfAReplacedFileKeepIt) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  fs::create_hard_link(path, folder / "backup.h5");
  const std::string before = contents(path);
  auto writer = create(path, "replace=on");
  ASSERT_TRUE(writer.ok()) << text_of(writer.status());
  ASSERT_DONE(write_step(**writer, "/other"));
  ASSERT_DONE((*writer)->close());
  EXPECT_EQ(contents(folder / "backup.h5"), before);
  EXPECT_NE(contents(path), before);
}

TEST(Output, OthersFilesAreNeverTouched) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const std::string victim = folder / "victim";
  std::ofstream(victim) << "precious";
  ASSERT_EQ(::symlink("victim", (path + kPartialSuffix).c_str()), 0);
  EXPECT_EQ(create(path).status().code(), Code::already_exists);
  EXPECT_EQ(create(path, "replace=on").status().code(), Code::already_exists);
  EXPECT_EQ(contents(victim), "precious");
  fs::remove(path + kPartialSuffix);
  std::ofstream(path + kPartialSuffix) << "a user's notes";
  EXPECT_EQ(create(path, "replace=on").status().code(), Code::already_exists);
  EXPECT_EQ(contents(path + kPartialSuffix), "a user's notes");
  fs::remove(path + kPartialSuffix);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Status refused = create(path, "replace=on").status();
  EXPECT_EQ(refused.code(), Code::invalid_argument) << text_of(refused);
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_EQ(names_in(fs::path(path).parent_path()), (std::vector<std::string>{"out.h5", "victim"}));
}

/// Steps that a dead job committed under the temporary name are kept, unless they may be replaced.
TEST(Output, CommittedStepsOfADeadJobAreKept) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  fs::rename(path, path + kPartialSuffix);
  EXPECT_EQ(create(path).status().code(), Code::already_exists);
  EXPECT_TRUE(fs::exists(path + kPartialSuffix));
  auto writer = create(path, "replace=on");
  ASSERT_TRUE(writer.ok());
  ASSERT_DONE(write_step(**writer, "/a"));
  ASSERT_DONE((*writer)->close());
  // A file without a commit can be replaced without loss.
  std::ofstream(folder / "other.h5.partial") << std::string(5000, '\0');
  auto other = create(folder / "other.h5");
  ASSERT_TRUE(other.ok()) << text_of(other.status());
  ASSERT_DONE((*other)->close());
}

/// Invariant 7, while threads of the parent run.
TEST(Output, AForkedChildChangesNothing) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot follow a fork of several threads";
#endif
  for (const char* mode : {"", "mode=async"}) {
    const TestFolder folder;
    const std::string path = folder / "out.h5";
    auto writer = create(path, mode);
    ASSERT_TRUE(writer.ok());
    ASSERT_DONE(write_step(**writer, "/a"));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = !(*writer)->end_step().ok() && !(*writer)->close().ok();
      writer->reset();
      ::_exit(refused ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ASSERT_DONE(write_step(**writer, "/b"));
    ASSERT_DONE((*writer)->close());
    const auto report = inspect_and_recover(path, false);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->state, FileState::whole);
  }
}

/// If a limit refuses every further thread, the existing threads write the steps.
TEST(Output, AStepNeedsNoThreadOfItsOwn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space of their own";
#endif
  for (const char* mode : {"", "mode=async", "layout=dense"}) {
    const TestFolder folder;
    const std::string path = folder / "out.h5";
    const pid_t child = ::fork();
    if (child == 0) {
      std::ifstream sizes("/proc/self/statm");
      rlim_t n_pages = 0;
      sizes >> n_pages;
      const rlim_t limit = n_pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (6U << 20);
      const rlimit most{limit, limit};
      if (::setrlimit(RLIMIT_AS, &most) != 0) ::_exit(2);
      std::vector<std::thread> kept;  // on stacks that threads of earlier tests have left
      while (true) {
        std::thread one = start_thread([] { ::pause(); });
        if (!one.joinable()) break;
        kept.push_back(std::move(one));
      }
      auto writer = create(path, std::string(mode) + (*mode != 0 ? "," : "") + "codec=deflate");
      if (!writer.ok()) ::_exit(4);
      if (!write_step(**writer, "/a").ok() || !write_step(**writer, "/b").ok()) ::_exit(5);
      ::_exit((*writer)->close().ok() ? 0 : 6);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << mode << ": exit code " << WEXITSTATUS(status);
    const auto report = inspect_and_recover(path, false);
    ASSERT_TRUE(report.ok()) << text_of(report.status());
    EXPECT_EQ(report->state, FileState::whole);
  }
}

/// A limit on file sizes is an error like a full disk. No signal ends the process, and the host's
/// signal handling is unchanged.
TEST(Output, ALimitOnFileSizesIsAnError) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  for (const bool in_situ : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_DFL);
      const rlim_t here = fs::file_size(path);
      const rlimit most{here, here};
      if (::setrlimit(RLIMIT_FSIZE, &most) != 0) ::_exit(2);
      auto writer = Writer::open(make_self_comm(), path, unsynced(in_situ ? "mode=in_situ" : ""));
      if (!writer.ok()) ::_exit(3);
      Status status = write_step(**writer, "/more");
      if (const Status closed = (*writer)->close(); status.ok()) status = closed;
      if (status.code() != Code::io_error) ::_exit(4);
      if (status.message().find("File too large") == std::string::npos) ::_exit(5);
      sigset_t blocked;
      sigset_t pending;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      ::sigpending(&pending);
      if (sigismember(&blocked, SIGXFSZ) != 0 || sigismember(&pending, SIGXFSZ) != 0) ::_exit(6);
      ::_exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "in situ " << in_situ << ": exit code " << WEXITSTATUS(status)
                         << ", signal " << WTERMSIG(status);
  }
}

/// After the first commit a new file has its final name, and failures report that name.
TEST(Output, AFailureAfterTheFirstCommitNamesTheFileAsItIs) {
  for (const char* mode : {"mode=sync", "mode=async", "mode=in_situ", "mode=sync,journal=on"}) {
    const TestFolder folder;
    const std::string path = folder / "out.h5";
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = create(path, mode);
      if (!writer.ok() || !write_step(**writer, "/first").ok()) ::_exit(2);
      if (!(*writer)->wait().ok()) ::_exit(3);
      const rlim_t here = fs::file_size(path);
      const rlimit most{here, here};
      if (::setrlimit(RLIMIT_FSIZE, &most) != 0) ::_exit(4);
      Status status = write_step(**writer, "/more");
      if (const Status closed = (*writer)->close(); status.ok()) status = closed;
      if (status.message().find("out.h5") == std::string::npos) ::_exit(5);
      ::_exit(status.message().find(kPartialSuffix) == std::string::npos ? 0 : 6);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << mode << ": exit code " << WEXITSTATUS(status);
  }
}

/// No other process can write a file while recover examines and repairs it.
TEST(Output, RecoverHoldsTheLockWhileItWorks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  make_output(path);
  fs::resize_file(path, fs::file_size(path) + 1000);
  const Descriptor watch(::inotify_init1(IN_CLOEXEC));
  ASSERT_GE(
      ::inotify_add_watch(watch.fd(), (folder / "").c_str(), IN_CREATE | IN_MODIFY | IN_DELETE), 0);
  ASSERT_TRUE(verbs::recover_file({path, true})->report.applied);
  alignas(inotify_event) std::array<char, 4096> bytes{};
  const ssize_t n_bytes = ::read(watch.fd(), bytes.data(), bytes.size());
  std::string order;
  for (ssize_t at = 0; at < n_bytes;) {
    const auto* event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    const bool lock = std::string(event->name) == "out.h5.lock";
    if ((event->mask & IN_CREATE) != 0 && lock) order += "taken ";
    if ((event->mask & IN_MODIFY) != 0 && !lock) order += "changed ";
    if ((event->mask & IN_DELETE) != 0 && lock) order += "freed ";
  }
  EXPECT_EQ(order, "taken changed freed ");
}

TEST(Output, APathWithADotIsRefusedBeforeItBreaksTheFile) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  auto writer = create(path);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(write_step(**writer, "/a/./b").code(), Code::invalid_argument);
  EXPECT_EQ((*writer)->end_step().status().code(), Code::invalid_argument);  // the failure persists
  ASSERT_DONE(write_step(**writer, "/a/b"));
  ASSERT_DONE((*writer)->close());
}

}  // namespace
}  // namespace tailrace::test
