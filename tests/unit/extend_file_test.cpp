// A file is extended while another thread writes behind its end.

#include "exec/comm_factory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "container_support.hpp"

namespace tailrace::test {
namespace {

using Extend = Status (*)(int, std::uint64_t, const std::string&);

class ExtendFile : public ::testing::TestWithParam<Extend> {
 protected:
  void SetUp() override {
    path_ = folder_ / "file";
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(descriptor_, 0);
  }
  void TearDown() override { ::close(descriptor_); }
  std::uint64_t n_bytes() const {
    struct stat facts {};
    EXPECT_EQ(::fstat(descriptor_, &facts), 0);
    return std::uint64_t(facts.st_size);
  }
  Status extend(std::uint64_t n) { return GetParam()(descriptor_, n, path_); }

  TestFolder folder_;
  std::string path_;
  int descriptor_ = -1;
};

TEST_P(ExtendFile, GrowsWithZerosAndNeverShrinks) {
  ASSERT_EQ(::pwrite(descriptor_, "tail", 4, 0), 4);
  ASSERT_DONE(extend(5));
  EXPECT_EQ(n_bytes(), 5U);
  ASSERT_DONE(extend(300'001));
  EXPECT_EQ(n_bytes(), 300'001U);
  ASSERT_DONE(extend(7));
  EXPECT_EQ(n_bytes(), 300'001U);
  std::vector<char> content(300'001, 'x');
  ASSERT_EQ(::pread(descriptor_, content.data(), content.size(), 0), ssize_t(content.size()));
  EXPECT_EQ(std::memcmp(content.data(), "tail", 4), 0);
  EXPECT_TRUE(std::all_of(content.begin() + 4, content.end(), [](char c) { return c == 0; }));
}

/// Writers race to ever higher addresses, while others extend the file to where the writers are
/// about to write. If extending read the length first and then set it, some record would be cut
/// off.
TEST_P(ExtendFile, LosesNothingThatIsWrittenMeanwhile) {
  constexpr std::uint64_t record_bytes = 16;
  constexpr std::uint64_t n_records = 60'000;
  const std::vector<char> record(record_bytes, 'r');
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t at = next++; at < n_records; at = next++) {
        EXPECT_EQ(::pwrite(descriptor_, record.data(), record_bytes, off_t(at * record_bytes)),
                  ssize_t(record_bytes));
      }
    });
    threads.emplace_back([&] {
      while (next < n_records) EXPECT_TRUE(extend(next * record_bytes + 8).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<char> content(n_records * record_bytes);
  ASSERT_EQ(::pread(descriptor_, content.data(), content.size(), 0), ssize_t(content.size()));
  EXPECT_TRUE(std::all_of(content.begin(), content.end(), [](char c) { return c == 'r'; }));
}

TEST_P(ExtendFile, SaysWhichFileAndWhy) {
  const int reading = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const Status refused = GetParam()(reading, 100, path_);
  ::close(reading);
  EXPECT_EQ(refused.code(), Code::io_error);
  EXPECT_NE(refused.message().find(path_), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Ways, ExtendFile, ::testing::Values(&extend_file, &append_zeros),
                         [](const auto& test) {
                           return std::string(test.index == 0 ? "Allocating" : "Appending");
                         });

}  // namespace
}  // namespace tailrace::test
