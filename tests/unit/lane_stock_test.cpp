// What lanes keep from step to step: the same threads. Counted by those that the system knows of.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace::test {
namespace {

/// The threads that this process has, by their numbers, which are not used twice in a while.
std::set<std::string> thread_numbers() {
  std::set<std::string> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    numbers.insert(entry.path().filename().string());
  }
  return numbers;
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

INSTANTIATE_TEST_SUITE_P(Modes, LaneStockOfAWriter,
                         testing::Values("mode=sync,threads=2", "mode=async,threads=2",
                                         "mode=in_situ,threads=2", "mode=in_situ"));

}  // namespace
}  // namespace tailrace::test
