// Deferred steps (modes async and in_situ). The file has the same values as in mode sync, whatever
// the application does in between. A failure in the background fails on every rank. Ranks are
// threads (ThreadComm).

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <thread>

#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "support/options_of.hpp"
#include "thread_comm.hpp"
#include "write/recording.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kRows = 24;
constexpr std::uint64_t kColumns = 40;
constexpr std::uint64_t kSteps = 5;

/// Part of the field that `rank` holds: rows, in one slab whose borders are not chunk borders.
Box slab(int rank, int n_ranks) {
  const auto n = static_cast<std::uint64_t>(n_ranks);
  const auto r = static_cast<std::uint64_t>(rank);
  const std::uint64_t first = kRows * r / n;
  return {{first, 0}, {kRows * (r + 1) / n - first, kColumns}};
}

float value_of(std::uint64_t step, std::uint64_t row, std::uint64_t column) {
  return static_cast<float>(1000 * step + row) + 0.5F * static_cast<float>(column % 7);
}

std::vector<float> values_of_step(std::uint64_t step, const Box& box) {
  std::vector<float> values;
  for (std::uint64_t r = 0; r < box.count[0]; ++r) {
    for (std::uint64_t c = 0; c < box.count[1]; ++c) {
      values.push_back(value_of(step, box.start[0] + r, box.start[1] + c));
    }
  }
  return values;
}

/// Work between two steps: marks, both kinds of idle time, and time for the lanes.
void compute(Writer& writer, std::uint64_t step) {
  writer.mark(Lane::main, true);
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  writer.mark(Lane::main, false);
  writer.mark(Lane::io, true);
  writer.idle(0.001, {});
  writer.mark(Lane::io, false);
  int n_asked = 0;
  writer.idle(std::numeric_limits<double>::infinity(),
              [&] { return ++n_asked > static_cast<int>(step); });
}

/// Expects the values of all steps of /u, an over-time field.
void expect_values(const std::string& path, std::uint64_t n_steps, double bound) {
  const std::vector<std::byte> bytes = read_field(path, "/u");
  ASSERT_EQ(bytes.size(), n_steps * kRows * kColumns * sizeof(float));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  std::size_t i = 0;
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    for (std::uint64_t r = 0; r < kRows; ++r) {
      for (std::uint64_t c = 0; c < kColumns; ++c, ++i) {
        ASSERT_NEAR(values[i], value_of(step, r, c), bound) << step << " " << r << " " << c;
      }
    }
  }
}

struct HandOverCase {
  std::string name;
  std::string options;
  double bound = 0;
};

std::vector<HandOverCase> hand_over_cases() {
  std::vector<HandOverCase> cases;
  for (const std::string mode : {"async", "in_situ"}) {
    const std::string text = "mode=" + mode;
    cases.push_back({mode + "_copy", text + ",codec=portable,bound=abs=0.01", 0.01});
    cases.push_back({mode + "_promise", text + ",hold=promise,codec=deflate", 0});
    cases.push_back({mode + "_uncompressed", text + ",codec=none", 0});
    cases.push_back({mode + "_arena", text + ",layout=arena,codec=portable,bound=abs=0.1", 0.1});
    cases.push_back({mode + "_predictive", text + ",layout=predictive,codec=deflate", 0});
    cases.push_back({mode + "_threads", text + ",threads=2,codec=deflate,trace-file=/dev/null", 0});
    cases.push_back({mode + "_no_fsync", text + ",fsync=off,codec=deflate,buffer=1k", 0});
  }
  cases.push_back(
      {"in_situ_johnson", "mode=in_situ,lab.scheduler=ext-johnson+bf,codec=deflate", 0});
  return cases;
}

class HandOver : public testing::TestWithParam<std::tuple<HandOverCase, int>> {};

TEST_P(HandOver, WritesWhatModeSyncWrites) {
  const auto& [chosen, n_ranks] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const FileOptions options = options_of(chosen.options + ",chunk=8x16");
  const bool promise = options.hold_promise;
  run_ranks(n_ranks, [&, n = n_ranks](std::unique_ptr<Comm> comm) {
    const Box box = slab(comm->rank(), n);
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    FieldDefinition definition{"/u", DType::f32, {kRows, kColumns}, options.field_defaults, false};
    definition.options.over_time = true;
    const auto field = (*writer)->define_field(definition);
    ASSERT_TRUE(field.ok());
    std::vector<float> kept[2];
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      std::vector<float>& values = kept[step % 2];
      values = values_of_step(step, box);
      ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
      const Result<StepReport> report = (*writer)->end_step();
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(report->completed, step > 0);
      if (step > 0) {
        EXPECT_EQ(report->step_index, step - 1);
      }
      if (!promise) std::fill(values.begin(), values.end(), -1.0F);  // allowed again
      compute(**writer, step);
    }
    const auto last = (*writer)->wait();
    ASSERT_TRUE(last.ok()) << last.status().message();
    ASSERT_TRUE(last->has_value());
    EXPECT_EQ((*last)->step_index, kSteps - 1);
    EXPECT_GT((*last)->exposed_s, 0);
    const auto again = (*writer)->wait();
    ASSERT_TRUE(again.ok());
    EXPECT_FALSE(again->has_value());
    EXPECT_TRUE((*writer)->close().ok());
  });
  expect_values(path, kSteps, chosen.bound);
}

INSTANTIATE_TEST_SUITE_P(Modes, HandOver,
                         testing::Combine(testing::ValuesIn(hand_over_cases()),
                                          testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

/// A new dataset with attributes in each step; close() ends the last one.
TEST(HandOverGroups, EachStepHasItsOwnOn2Ranks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const FileOptions options = options_of("mode=in_situ,codec=deflate,chunk=8x16");
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const Box box = slab(comm->rank(), 2);
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    std::vector<float> values;
    for (std::uint64_t step = 0; step < 3; ++step) {
      const std::string group = "/step_" + std::to_string(step);
      const auto field = (*writer)->define_field(
          {group + "/u", DType::f32, {kRows, kColumns}, options.field_defaults, false});
      ASSERT_TRUE(field.ok());
      ASSERT_TRUE(
          (*writer)->set_attribute(group, "time", {std::vector<double>{double(step)}}).ok());
      values = values_of_step(step, box);
      ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
      if (step == 2) break;
      ASSERT_TRUE((*writer)->end_step().ok());
      compute(**writer, step);
    }
    ASSERT_TRUE((*writer)->close().ok());
  });
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto bytes = read_field(path, "/step_" + std::to_string(step) + "/u");
    const std::vector<float> expected = values_of_step(step, {{0, 0}, {kRows, kColumns}});
    ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
  }
}

/// Noise on rank 0, constants elsewhere, so that rank 0 has nearly all the bytes to write.
class HandOverBalance : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(HandOverBalance, MovesWritesAndKeepsTheValues) {
  const auto& [rule, n_ranks] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const FileOptions options =
      options_of("mode=in_situ,codec=deflate,chunk=8x64," +
                 (rule == "off" ? std::string("writers=each") : "lab.balance=" + rule));
  const auto n = static_cast<std::uint64_t>(n_ranks);
  const Shape shape = {128 * n, 64};
  std::vector<std::uint32_t> all(n_elements(shape), 7);
  std::mt19937 random(3);
  std::generate_n(all.begin(), 128 * 64, [&] { return static_cast<std::uint32_t>(random()); });
  run_ranks(n_ranks, [&, rule = rule, n_ranks = n_ranks](std::unique_ptr<Comm> comm) {
    const std::uint64_t first = 128 * static_cast<std::uint64_t>(comm->rank());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    FieldDefinition definition{"/u", DType::u32, shape, options.field_defaults, false};
    definition.options.over_time = true;
    const auto field = (*writer)->define_field(definition);
    std::uint64_t n_moved = 0;
    for (std::uint64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE((*writer)->put(*field, {{first, 0}, {128, 64}}, all.data() + first * 64).ok());
      ASSERT_TRUE((*writer)->end_step().ok());
      if (step == 1) compute(**writer, step);
      const auto report = (*writer)->wait();
      ASSERT_TRUE(report.ok() && report->has_value()) << report.status().message();
      n_moved += (*report)->n_moved_writes;
    }
    RecordProperty("n_moved_writes", static_cast<int>(n_moved));
    // The donor may win the race for a moved chunk and write it itself.
    if (rule == "off" || n_ranks == 1) {
      EXPECT_EQ(n_moved, 0U);
    }
    EXPECT_TRUE((*writer)->close().ok());
  });
  const std::vector<std::byte> bytes = read_field(path, "/u");
  ASSERT_EQ(bytes.size(), 3 * all.size() * sizeof(std::uint32_t));
  for (std::size_t step = 0; step < 3; ++step) {
    const std::size_t n_bytes = all.size() * sizeof(std::uint32_t);
    EXPECT_EQ(std::memcmp(bytes.data() + step * n_bytes, all.data(), n_bytes), 0) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, HandOverBalance,
                         testing::Combine(testing::Values("off", "paper", "best"),
                                          testing::Values(1, 2, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

/// A cap for two chunks: end_step must encode some itself, and reports it.
TEST(HandOverMemory, StaysUnderTheCapAndSaysThatItWaited) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  for (const std::string mode : {"async", "in_situ"}) {
    const FileOptions options =
        options_of("mode=" + mode + ",memory=4MiB,codec=deflate,chunk=128x512,replace=on");
    run_ranks(1, [&](std::unique_ptr<Comm> comm) {
      auto writer = Writer::create(std::move(comm), path, options);
      ASSERT_TRUE(writer.ok());
      const Shape shape = {4096, 512};  // 8 MiB in 32 chunks of 256 KiB
      const auto field =
          (*writer)->define_field({"/u", DType::f32, shape, options.field_defaults, false});
      ASSERT_TRUE(field.ok());
      const Box box = whole_box(shape);
      std::vector<std::byte> values = values_of(shape, box, DType::f32);
      const std::vector<std::byte> expected = values;
      ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
      ASSERT_TRUE((*writer)->end_step().ok());
      std::fill(values.begin(), values.end(), std::byte{1});
      const auto report = (*writer)->wait();
      ASSERT_TRUE(report.ok() && report->has_value()) << report.status().message();
      EXPECT_LE((*report)->peak_memory_bytes, 4U << 20);
      EXPECT_GT((*report)->backpressure_s, 0);
      ASSERT_TRUE((*writer)->close().ok());
      EXPECT_EQ(read_field(path, "/u"), expected);
    });
  }
}

/// lab.record= gives the simulator the recorded events of each rank.
TEST(HandOverRecord, WritesTheIterationsOf2Ranks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const std::string record = folder / "iterations.json";
  const FileOptions options =
      options_of("mode=in_situ,codec=deflate,chunk=8x16,lab.record=" + record);
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const Box box = slab(comm->rank(), 2);
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    FieldDefinition definition{"/u", DType::f32, {kRows, kColumns}, options.field_defaults, false};
    definition.options.over_time = true;
    const auto field = (*writer)->define_field(definition);
    const std::vector<float> values = values_of_step(0, box);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
      ASSERT_TRUE((*writer)->end_step().ok());
      compute(**writer, step);
    }
    ASSERT_TRUE((*writer)->close().ok());
  });
  std::ifstream file(record);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Result<Recording> recording = parse_recording(text);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  ASSERT_EQ(recording->ranks.size(), 2U);
  for (const auto& iterations : recording->ranks) {
    ASSERT_EQ(iterations.size(), kSteps - 1);
    for (const RecordedRankIteration& iteration : iterations) {
      EXPECT_GE(iteration.seen.obstacles.main.size(),
                2U);  // before, between and after the idle times
      EXPECT_EQ(iteration.seen.obstacles.io.size(), 1U);
      ASSERT_FALSE(iteration.seen.jobs.empty());
      for (std::size_t j = 0; j < iteration.seen.jobs.size(); ++j) {
        EXPECT_GT(iteration.seen.jobs[j].encode_s, 0);
        EXPECT_EQ(iteration.raw_bytes[j], 8 * 16 * sizeof(float));
        EXPECT_GT(iteration.encoded_bytes[j], 0U);
      }
    }
  }
}

TEST(HandOverRefusals, AreTheSameOnEveryRankOf3) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const FileOptions options = options_of("mode=async,layout=dense,codec=deflate");
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    const Box box = slab(comm->rank(), 3);
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    const auto field = (*writer)->define_field(
        {"/u", DType::f32, {kRows, kColumns}, options.field_defaults, false});
    const std::vector<float> values = values_of_step(0, box);
    ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
    const Result<StepReport> report = (*writer)->end_step();
    EXPECT_EQ(report.status().code(), Code::unsupported);
    EXPECT_NE(report.status().message().find("layout dense"), std::string::npos)
        << report.status().message();
    EXPECT_TRUE((*writer)->close().ok());
  });
}

/// Writes fail from some moment on, on every rank; later they succeed again.
class FailingStorage final : public StorageOver {
 public:
  FailingStorage(std::unique_ptr<Storage> inner, std::atomic<bool>& failing)
      : StorageOver(std::move(inner)), failing_(failing) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (failing_.load()) return Status(Code::no_space, "write refused by the test");
    return inner_->write_at(address, bytes);
  }

 private:
  std::atomic<bool>& failing_;
};

TEST(HandOverFailures, OfAWriteComeWithTheNextCallOnEveryRankOf3) {
  for (const std::string mode : {"async", "in_situ"}) {
    const TestFolder folder;
    const std::string path = folder / "out.h5";
    std::atomic<bool> failing = false;
    FileOptions options = options_of("mode=" + mode + ",codec=deflate,chunk=8x16");
    options.open_storage = [&](const std::string& name,
                               bool create) -> Result<std::unique_ptr<Storage>> {
      Result<std::unique_ptr<Storage>> inner = open_posix_storage(name, create, false);
      if (!inner.ok()) return inner.status();
      return std::unique_ptr<Storage>(std::make_unique<FailingStorage>(std::move(*inner), failing));
    };
    run_ranks(3, [&](std::unique_ptr<Comm> comm) {
      const Box box = slab(comm->rank(), 3);
      Comm& ranks = *comm;
      auto writer = Writer::create(std::move(comm), path, options);
      ASSERT_TRUE(writer.ok());
      FieldDefinition definition{
          "/u", DType::f32, {kRows, kColumns}, options.field_defaults, false};
      definition.options.over_time = true;
      const auto field = (*writer)->define_field(definition);
      std::vector<Status> ended;
      for (std::uint64_t step = 0; step < 2; ++step) {
        ranks.barrier();
        if (step == 1) failing = true;
        const std::vector<float> values = values_of_step(step, box);
        ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
        ended.push_back((*writer)->end_step().status());
      }
      // Step 0 may or may not have been written before the storage failed; step 1 was not.
      const Status waited = (*writer)->wait().status();
      EXPECT_TRUE(!ended[1].ok() || !waited.ok());
      const Status& failure = ended[1].ok() ? waited : ended[1];
      EXPECT_EQ(failure.code(), Code::no_space) << failure.message();
      ranks.barrier();
      failing = false;
      (void)(*writer)->close();
    });
  }
}

TEST(HandOverEnds, WithoutACloseAfterAStepWasHandedOver) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  for (const std::string mode : {"async", "in_situ"}) {
    const FileOptions options = options_of("mode=" + mode + ",codec=deflate,chunk=8x16");
    run_ranks(2, [&](std::unique_ptr<Comm> comm) {
      const Box box = slab(comm->rank(), 2);
      auto writer = Writer::create(std::move(comm), path, options);
      ASSERT_TRUE(writer.ok());
      const auto field = (*writer)->define_field(
          {"/u", DType::f32, {kRows, kColumns}, options.field_defaults, false});
      const std::vector<float> values = values_of_step(0, box);
      ASSERT_TRUE((*writer)->put(*field, box, values.data()).ok());
      ASSERT_TRUE((*writer)->end_step().ok());
    });
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace
}  // namespace tailrace::test
