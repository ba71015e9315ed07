// Common parts of all test programs on several ranks: rank numbers, scratch files, main().
//
// Every rank runs every test. A watchdog ends a hanging test after kTestSeconds, so that a deadlock
// is a failure and not a wait. The test's name is the last one printed.

#pragma once

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace api_test {

constexpr unsigned kTestSeconds = 600;

inline int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

inline int n_ranks() {
  int value = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

inline bool is_root() { return rank() == 0; }
inline bool is_last() { return rank() + 1 == n_ranks(); }

/// Rank 0's text on every rank. Collective.
inline std::string from_root(std::string text) {
  std::uint64_t n_bytes = text.size();
  MPI_Bcast(&n_bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  text.resize(n_bytes);
  MPI_Bcast(text.data(), static_cast<int>(n_bytes), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

/// A folder that all ranks share, and its removal.
inline std::string& scratch_folder() {
  static std::string folder;
  return folder;
}

/// Path of a file of this test; it contains the test's name.
inline std::string scratch(const std::string& name = "out.h5") {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string file = std::string(test->test_suite_name()) + "." + test->name() + "." + name;
  std::replace(file.begin(), file.end(), '/', '_');
  return scratch_folder() + "/" + file;
}

// --- running ----------------------------------------------------------------------------------

/// Prints failures with the rank; rank 0 also prints everything else. Includes the watchdog.
class RankListener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    name_ = std::string(test.test_suite_name()) + "." + test.name();
    MPI_Barrier(MPI_COMM_WORLD);
    alarm(kTestSeconds);
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (is_root() || !result.failed()) return;
    std::fprintf(stderr, "rank %d: %s: %s:%d\n%s\n", rank(), name_.c_str(),
                 result.file_name() ? result.file_name() : "", result.line_number(),
                 result.message());
  }

  std::string name_;  // googletest's lock, held in the calls above, forbids asking there
};

inline void on_alarm(int) {
  // Only async-signal-safe calls.
  const char* text = "a test of the API hangs; its name is the last one printed\n";
  (void)!write(STDERR_FILENO, text, std::strlen(text));
  _exit(3);
}

/// The main() of a test program. Every rank fails if one rank does.
inline int run(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  testing::InitGoogleTest(&argc, argv);
  std::signal(SIGALRM, on_alarm);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (!is_root()) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankListener);

  std::string folder;
  if (is_root()) {
    folder = (std::filesystem::temp_directory_path() / "tailrace_api_XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) folder.clear();
  }
  scratch_folder() = from_root(folder);

  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (is_root() && !folder.empty()) std::filesystem::remove_all(folder);
  MPI_Finalize();
  return failed;
}

}  // namespace api_test
