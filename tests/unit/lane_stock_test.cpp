// Resources that lanes keep from step to step: the same threads, and the same memory for values,
// under the cap. They are counted by the system's threads, and by page faults.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/block_keep.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

TEST(BlockKeep, GivesAgainWhatFits) {
  BlockKeep blocks;
  Buffer first = blocks.take(kMiB);
  const std::byte* const place = first.data();
  blocks.give(std::move(first));
  EXPECT_EQ(blocks.kept_bytes(), kMiB);
  EXPECT_FALSE(blocks.take(2 * kMiB).data() == place);    // too small
  EXPECT_FALSE(blocks.take(kMiB - 100).data() == place);  // the block exceeds the counted size
  const Buffer again = blocks.take(kMiB);
  EXPECT_EQ(again.data(), place);
  EXPECT_EQ(again.n_bytes(), kMiB);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  blocks.give(Buffer(1000));  // malloc caches small blocks itself
  EXPECT_EQ(blocks.kept_bytes(), 0U);
}

TEST(BlockKeep, ForgetsWhatAStepHadNoUseFor) {
  BlockKeep blocks;
  blocks.give(Buffer(kMiB));
  blocks.give(Buffer(4 * kMiB));
  blocks.end_step();
  for (int step = 0; step < 3; ++step) {
    Buffer used = blocks.take(kMiB);
    blocks.give(std::move(used));
    blocks.end_step();
    EXPECT_EQ(blocks.kept_bytes(), kMiB);
  }
  blocks.end_step();
  EXPECT_EQ(blocks.kept_bytes(), 0U);
}

TEST(MemoryBudget, KeptBlocksGiveWay) {
  BlockKeep blocks;
  MemoryBudget budget(4 * kMiB, &blocks);
  ASSERT_TRUE(budget.try_take(3 * kMiB));
  for (int i = 0; i < 2; ++i) budget.keep(Buffer(kMiB));  // the second one exceeds the budget
  EXPECT_EQ(blocks.kept_bytes(), kMiB);
  budget.give_back(3 * kMiB);
  for (int i = 0; i < 2; ++i) budget.keep(Buffer(kMiB));
  EXPECT_EQ(blocks.kept_bytes(), 3 * kMiB);
  EXPECT_FALSE(budget.try_take(kMiB, 4 * kMiB));
  EXPECT_EQ(blocks.kept_bytes(), 3 * kMiB);
  ASSERT_TRUE(budget.try_take(2 * kMiB));
  EXPECT_EQ(blocks.kept_bytes(), 2 * kMiB);
  ASSERT_TRUE(budget.try_take(2 * kMiB));
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  EXPECT_EQ(budget.peak_bytes(), 4 * kMiB);
}

/// The ids of this process's threads; the system does not reuse them soon.
std::set<std::string> thread_numbers() {
  std::set<std::string> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    numbers.insert(entry.path().filename().string());
  }
  return numbers;
}

/// Pages that the calling thread has touched for the first time.
std::uint64_t n_page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

class LaneStockOfAWriter : public testing::TestWithParam<const char*> {
 protected:
  /// Six fields of half a MiB each.
  void create(const std::string& more) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options(std::string(GetParam()) + ",fsync=off" + more, options).ok());
    auto writer = Writer::create(make_self_comm(), folder_ / "out.h5", options);
    ASSERT_DONE(writer.status());
    writer_ = std::move(*writer);
    for (int f = 0; f < 6; ++f) {
      FieldDefinition definition{
          "/f" + std::to_string(f), DType::f64, {65536}, options.field_defaults, false};
      definition.options.over_time = true;
      ASSERT_DONE(writer_->define_field(definition).status());
    }
    values_ = values_of({65536}, {{0}, {65536}}, DType::f64);
  }
  void step() {
    for (std::size_t f = 0; f < 6; ++f) {
      ASSERT_DONE(writer_->put(f, {{0}, {65536}}, values_.data()));
    }
    ASSERT_DONE(writer_->end_step().status());
  }

  const TestFolder folder_;
  std::unique_ptr<Writer> writer_;
  std::vector<std::byte> values_;
};

TEST_P(LaneStockOfAWriter, ThreadsStayUntilItIsClosed) {
  std::thread([] {}).join();  // Makes the thread sanitizer start its own thread.
  const std::set<std::string> before = thread_numbers();
  create(",codec=trz");
  for (int i = 0; i < 3; ++i) step();
  const std::set<std::string> first = thread_numbers();
  EXPECT_GT(first.size(), before.size());
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(thread_numbers(), first);
  ASSERT_DONE(writer_->close());
  EXPECT_EQ(thread_numbers().size(), before.size());
}

/// A step is 3 MiB of values, 768 pages. Handing it over must not touch any of them for the first
/// time.
TEST_P(LaneStockOfAWriter, ValuesAreTakenIntoMemoryThatWasThereBefore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory from being used again";
#endif
  for (const char* codec : {",codec=trz", ",codec=none", ",codec=deflate"}) {
    create(codec);
    // Values that still wait for their write have no block to return at the next step.
    const auto completed_step = [&] {
      step();
      ASSERT_DONE(writer_->wait().status());
    };
    for (int i = 0; i < 4; ++i) completed_step();
    // The minimum of some rounds: a kernel short of memory may reclaim pages meanwhile.
    std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
    for (int round = 0; round < 20 && fewest >= 10U * 200; ++round) {
      const std::uint64_t n_before = n_page_faults();
      for (int i = 0; i < 10; ++i) completed_step();
      fewest = std::min(fewest, n_page_faults() - n_before);
    }
    EXPECT_LT(fewest, 10U * 200) << codec;
    ASSERT_DONE(writer_->close());
    std::filesystem::remove(folder_ / "out.h5");
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LaneStockOfAWriter,
                         testing::Values("mode=sync,threads=2", "mode=async,threads=2",
                                         "mode=in_situ,threads=2", "mode=in_situ"));

}  // namespace
}  // namespace tailrace::test
