// The k-th allocation fails, for every k. The call must report it, from any thread; the program
// must not end, and no thread may wait forever.
//
// This file replaces the program's operator new. Sanitizers have their own, which stays.

#include <gtest/gtest.h>
#include <hdf5.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "concat/concat_write.hpp"
#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "exec/thread_team.hpp"
#include "support/test_tier.hpp"
#include "write/write.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAILRACE_TEST_REFUSES 0
#else
#define TAILRACE_TEST_REFUSES 1
#endif

namespace tailrace::test {
namespace {

/// Allocations until one fails; below 0: none fails.
std::atomic<long> requests_left{-1};
std::atomic<bool> refused{false};

[[maybe_unused]] bool refuses_now() {
  if (requests_left.load(std::memory_order_relaxed) < 0) return false;
  if (requests_left.fetch_sub(1) != 0) return false;
  refused = true;
  return true;
}

}  // namespace
}  // namespace tailrace::test

#if TAILRACE_TEST_REFUSES
void* operator new(std::size_t n_bytes) {
  if (tailrace::test::refuses_now()) throw std::bad_alloc();
  void* const memory = std::malloc(n_bytes > 0 ? n_bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace tailrace::test {
namespace {

/// Distance between two failing allocations. The merge tier fails every seventh.
int refusal_stride() { return tier_stride(11); }

/// Runs `work` with its k-th allocation failing, for each k of the tier until all allocations
/// succeed.
/// @returns the number of runs that failed.
int refuse_each(const std::function<Status()>& work) {
  int n_failed = 0;
  for (int k = 0; k < 20000; k += refusal_stride()) {
    refused = false;
    requests_left = k;
    const Status done = local_part(work);
    requests_left = -1;
    if (!refused) {
      EXPECT_TRUE(done.ok()) << text_of(done);
      return n_failed;
    }
    if (done.ok()) continue;  // The allocation was not essential.
    ++n_failed;
    EXPECT_EQ(done.code(), Code::out_of_memory) << k << ": " << text_of(done);
  }
  ADD_FAILURE() << "it never ends";
  return n_failed;
}

TEST(NoMemory, LoopsOfThreads) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  const auto task = [](std::size_t i) {
    const std::vector<std::size_t> some(i + 1, i);
    return some.back() == i ? Status() : Status(Code::internal, "another value");
  };
  ThreadTeam team(3);
  EXPECT_GT(refuse_each([&] {
              return team.run(20, 3, [&](std::size_t i, std::size_t) { return task(i); });
            }),
            0);
  EXPECT_GT(refuse_each([&] { return run_on_threads(20, 3, task); }), 0);
}

/// Two threads push while the lane writes; a round reports an allocation failure of any of them.
TEST(NoMemory, TheWritingThread) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  const TestFolder folder;
  const std::unique_ptr<Comm> comm = make_self_comm();
  for (const bool dedup : {false, true}) {
    const auto write_some = [&]() -> Status {
      std::filesystem::remove(folder / "out");
      TAILRACE_TAKE(const auto storage, open_posix_storage(folder / "out", true, false));
      TAILRACE_TAKE(const auto tail, comm->create_tail(0));
      ConcatWriteLane::Settings settings;
      settings.write_buffer_bytes = 100;  // so that the pushing threads have to wait
      settings.dedup = dedup;
      ConcatWriteLane lane(*storage, *tail, settings);
      const Status pushed = run_on_threads(2, 2, [&](std::size_t thread) {
        for (std::uint64_t i = 0; i < 40; ++i) {
          Buffer bytes(20 + i);
          std::memset(bytes.data(), static_cast<int>(i), bytes.n_bytes());
          lane.push({2 * i + thread, 0, std::nullopt, std::move(bytes)});
        }
        return Status();
      });
      const Status written = lane.finish_round(*comm);
      return pushed.ok() ? written : pushed;
    };
    EXPECT_GT(refuse_each(write_some), 0);
  }
}

/// A file of two steps, the first of which may have lacked memory. Either step is complete or
/// absent, and reported steps are present. Incomplete metadata on rank 0 end the use of the file.
class TwoSteps {
 public:
  explicit TwoSteps(const std::string& more) {
    const std::string options = "replace=on,fsync=off,threads=2,chunk=20x15,codec=deflate," + more;
    EXPECT_TRUE(apply_file_options(options, options_).ok());
  }

  /// @returns the status of the first step.
  Status write(int k) {
    const ssize_t n_open_before = ::H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
    auto writer = Writer::create(make_self_comm(), path_, options_);
    EXPECT_TRUE(writer.ok()) << k;
    const Status first = write_step(**writer, "/a", k);
    const Status second = write_step(**writer, "/b", -1);
    const bool broken = !second.ok();
    if (broken) {
      EXPECT_NE(second.message().find("last commit"), std::string::npos) << text_of(second);
      EXPECT_FALSE(first.ok()) << k;
    }
    EXPECT_EQ((*writer)->close().ok(), !broken) << k;
    writer = Status(Code::internal, "gone");
    EXPECT_EQ(holds("/b"), !broken) << k;
    EXPECT_TRUE(holds("/a") || !first.ok()) << k;
    EXPECT_EQ(::H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), n_open_before) << k;
    n_broken += broken ? 1 : 0;
    std::filesystem::remove(path_);
    return first;
  }

  int n_broken = 0;

 private:
  Status write_step(Writer& writer, const std::string& name, int k) {
    const auto index = writer.define_field({name, DType::f32, shape_, options_.field_defaults});
    if (!index.ok()) return index.status();
    TAILRACE_TRY(writer.put(*index, whole_box(shape_), values_.data()));
    requests_left = k;
    const Status ended = local_part([&] {
      TAILRACE_TRY(writer.end_step().status());
      return writer.wait().status();
    });
    requests_left = -1;
    return ended;
  }

  /// True if the file has the field, which must then be complete.
  bool holds(const std::string& name) {
    if (!std::filesystem::exists(path_)) return false;
    const std::vector<std::byte> found = read_field(path_, name);
    EXPECT_TRUE(found.empty() || found == values_) << name;
    return !found.empty();
  }

  TestFolder folder_;
  std::string path_ = folder_ / "out.h5";
  Shape shape_ = {40, 30};
  std::vector<std::byte> values_ = values_of(shape_, whole_box(shape_), DType::f32);
  FileOptions options_;
};

/// Memory runs out while a chunk is in flight, with a plain field and one of two steps per chunk.
/// Both fields have the steps that succeeded, and a step that was complete when its call failed.
Status write_beside_a_flight(const FileOptions& options, const std::string& path, int k) {
  const Shape shape = {40, 30};
  auto writer = Writer::create(make_self_comm(), path, options);
  EXPECT_TRUE(writer.ok());
  FieldDefinition plain{"/plain", DType::f32, shape, options.field_defaults};
  plain.options.over_time = true;
  FieldDefinition definition = plain;
  definition.path = "/u";
  definition.options.chunk_shape = Shape{2, 20, 15};
  const auto gathered = (*writer)->define_field(definition);
  const auto other = (*writer)->define_field(plain);
  EXPECT_TRUE(gathered.ok() && other.ok());
  Status of_refused;
  bool well = true;
  std::vector<float> expected;
  for (int step = 0; step < 6; ++step) {
    const std::vector<float> values(40 * 30, static_cast<float>(step));
    EXPECT_TRUE((*writer)->put(*gathered, whole_box(shape), values.data()).ok());
    EXPECT_TRUE((*writer)->put(*other, whole_box(shape), values.data(), true).ok());
    requests_left = step == 2 ? k : -1;
    const Status ended = local_part([&] { return (*writer)->end_step().status(); });
    requests_left = -1;
    if (step == 2) of_refused = ended;
    well = well && (ended.ok() || step == 2);
    if (ended.ok()) expected.insert(expected.end(), values.begin(), values.end());
  }
  well = (*writer)->close().ok() && well;
  writer = Status(Code::internal, "gone");
  if (!well) return of_refused;
  // If a chunk was lost in flight, the field lacks its last step, too.
  const std::vector<std::byte> found = read_field(path, "/u");
  EXPECT_EQ(found.size() % (1200 * sizeof(float)), 0U) << k;
  EXPECT_GE(found.size() + 2 * 1200 * sizeof(float), expected.size() * sizeof(float)) << k;
  std::vector<float> steps(found.size() / sizeof(float));
  std::memcpy(steps.data(), found.data(), found.size());
  for (std::size_t i = 1200; i < steps.size(); ++i) {
    if (steps[i] >= steps[i - 1200] + (i % 1200 == 0 ? 1 : 0)) continue;
    ADD_FAILURE() << "a step came twice, or was changed: " << k;
    break;
  }
  const std::vector<std::byte> beside = read_field(path, "/plain");
  EXPECT_EQ(found, beside) << k;
  return of_refused;
}

/// The first step of a field lacks memory, together with a field that is put once. Whether that
/// step exists or not, later accepted steps are in the file.
Status write_first_of_gathered(const FileOptions& options, const std::string& path, int k) {
  const Shape shape = {40, 30};
  auto writer = Writer::create(make_self_comm(), path, options);
  EXPECT_TRUE(writer.ok());
  FieldDefinition definition{"/once", DType::f32, shape, options.field_defaults};
  const auto once = (*writer)->define_field(definition);
  definition.path = "/u";
  definition.options.over_time = true;
  definition.options.chunk_shape = Shape{2, 20, 15};
  const auto index = (*writer)->define_field(definition);
  EXPECT_TRUE(once.ok() && index.ok());
  Status of_first;
  bool well = true;
  std::vector<float> taken;  // The first step may exist although its call failed.
  for (const float step : {0.0F, 1.0F, 2.0F, 3.0F}) {
    const std::vector<float> values(40 * 30, step);
    if (step == 0) {
      EXPECT_TRUE((*writer)->put(*once, whole_box(shape), values.data(), true).ok());
    }
    if (!(*writer)->put(*index, whole_box(shape), values.data()).ok())
      break;  // The field was
              // discarded with the
              // step.
    requests_left = step == 0 ? k : -1;
    const Status ended = local_part([&] { return (*writer)->end_step().status(); });
    requests_left = -1;
    if (step == 0) of_first = ended;
    well = well && (ended.ok() || step == 0);
    if (step > 0 && ended.ok()) taken.insert(taken.end(), values.begin(), values.end());
  }
  well = (*writer)->close().ok() && well;
  writer = Status(Code::internal, "gone");
  EXPECT_TRUE(well || taken.empty()) << k;
  if (!well || taken.empty()) return of_first;
  const std::vector<std::byte> found = read_field(path, "/u");
  const auto wanted = std::as_bytes(std::span(taken));
  const std::span<const std::byte> last(found.data() + found.size() - wanted.size(), wanted.size());
  EXPECT_TRUE(std::ranges::equal(last, wanted)) << k;
  return of_first;
}

/// Two steps per chunk: the second may lack memory, and a third follows. The file has the reported
/// steps in order, and the waiting step is not lost.
Status write_gathered(const FileOptions& options, const std::string& path, int k) {
  const Shape shape = {40, 30};
  const auto values_at = [](float step) { return std::vector<float>(40 * 30, step); };
  auto writer = Writer::create(make_self_comm(), path, options);
  EXPECT_TRUE(writer.ok());
  FieldDefinition definition{"/u", DType::f32, shape, options.field_defaults};
  definition.options.over_time = true;
  definition.options.chunk_shape = Shape{2, 20, 15};
  const auto index = (*writer)->define_field(definition);
  EXPECT_TRUE(index.ok());
  std::vector<float> expected;
  Status of_refused;
  Status of_last;
  for (const float step : {0.0F, 1.0F, 2.0F}) {
    const std::vector<float> values = values_at(step);
    EXPECT_TRUE((*writer)->put(*index, whole_box(shape), values.data()).ok());
    requests_left = step == 1 ? k : -1;
    of_last = local_part([&] {
      TAILRACE_TRY((*writer)->end_step().status());
      return (*writer)->wait().status();
    });
    requests_left = -1;
    if (step == 1) of_refused = of_last;
    if (of_last.ok()) expected.insert(expected.end(), values.begin(), values.end());
  }
  const bool broken = !of_last.ok();
  EXPECT_EQ((*writer)->close().ok(), !broken) << k;
  writer = Status(Code::internal, "gone");
  if (broken) return of_refused;
  const std::vector<std::byte> found = read_field(path, "/u");
  const auto wanted = std::as_bytes(std::span(expected));
  // Memory may run out after the step is done. Then the step exists although its call failed.
  const std::vector<float> all_three = [&] {
    std::vector<float> all = values_at(0);
    for (const float step : {1.0F, 2.0F}) all.insert(all.end(), 1200, step);
    return all;
  }();
  const bool as_said = std::ranges::equal(found, wanted);
  EXPECT_TRUE(as_said || std::ranges::equal(found, std::as_bytes(std::span(all_three)))) << k;
  return of_refused;
}

class NoMemoryInAStep : public ::testing::TestWithParam<const char*> {};

TEST_P(NoMemoryInAStep, OfOneRank) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  TwoSteps steps(GetParam());
  int n_failed = 0;
  for (int k = 0; k < 20000; k += refusal_stride()) {
    refused = false;
    const Status first = steps.write(k);
    if (!refused) break;
    if (first.ok()) continue;  // The allocation was not essential.
    ++n_failed;
  }
  EXPECT_FALSE(refused);
  EXPECT_GT(n_failed, 20 / refusal_stride());
  EXPECT_GT(steps.n_broken, 5 / refusal_stride());
}

/// Fails one allocation of `write` after the other, until all succeed.
template <class Write, class Next>
void refuse_each(const std::string& mode, Write&& write, Next&& next, int least_failed) {
  const TestFolder folder;
  FileOptions options;
  const std::string text = "replace=on,fsync=off,threads=2,codec=deflate," + mode;
  ASSERT_TRUE(apply_file_options(text, options).ok());
  int n_failed = 0;
  for (int k = 0; k < 20000; k = next(k) + refusal_stride() - 1) {
    refused = false;
    const Status ended = write(options, folder / "out.h5", k);
    if (!refused) break;
    n_failed += ended.ok() ? 0 : 1;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_FALSE(refused);
  EXPECT_GT(n_failed, least_failed / refusal_stride());
}

// Testing each allocation would take a minute for all modes.

TEST_P(NoMemoryInAStep, WhatWaits) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  refuse_each(
      GetParam(), write_gathered, [](int k) { return k + 3; }, 20);
}

TEST_P(NoMemoryInAStep, AtTheFirstStepThatWaits) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  refuse_each(
      GetParam(), write_first_of_gathered, [](int k) { return k + 2; }, 20);
}

/// The first allocations precede the look at the chunk in flight.
TEST_P(NoMemoryInAStep, BesideAFlight) {
  if (!TAILRACE_TEST_REFUSES) GTEST_SKIP() << "the sanitizer has the memory";
  const auto next = [](int k) { return k < 60 ? k + 1 : k + 9; };
  refuse_each(GetParam(), write_beside_a_flight, next, 10);
}

INSTANTIATE_TEST_SUITE_P(Modes, NoMemoryInAStep,
                         ::testing::Values("mode=sync", "mode=async", "mode=in_situ,threads=1",
                                           "layout=predictive", "journal=on"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace tailrace::test
