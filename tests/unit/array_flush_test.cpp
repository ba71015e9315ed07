// Flushes of staged values: chunks encoded once, bounds satisfied, memory that spills, lengths that
// grow, variables of every type.

#include <cmath>
#include <filesystem>

#include "array/array_staging.hpp"
#include "array_support.hpp"
#include "container_support.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "netcdf_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

std::vector<float> smooth(std::uint64_t n, double phase) {
  std::vector<float> values(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(100 * std::sin(0.01 * static_cast<double>(i) + phase));
  }
  return values;
}

class ArrayFlushRanks : public ::testing::TestWithParam<int> {};

TEST(ArrayFlush, RowByRowEncodesEachChunkOnce) {
  const TestFolder folder;
  auto file = created(make_self_comm(), folder / "rows.nc", array_options("memory=8MiB"));
  ASSERT_NE(file, nullptr);
  constexpr std::uint64_t kRows = 4000;
  constexpr std::uint64_t kColumns = 1000;  // 16 MB in all, of which 4 MiB may be staged
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {kRows, kColumns})));
  for (std::uint64_t row = 0; row < kRows; ++row) {
    EXPECT_OK(put_values(*file, 0, {{row, 0}, {1, kColumns}, {}},
                         smooth(kColumns, static_cast<double>(row))));
    EXPECT_OK(file->end_collective_put());
  }
  EXPECT_OK(file->flush());
  const ArrayFileReport& report = file->report();
  EXPECT_GT(report.n_flushes, 3U);
  EXPECT_EQ(report.staged_bytes, kRows * kColumns * sizeof(float));
  EXPECT_EQ(report.n_chunks_merged, 0U);
  EXPECT_EQ(report.lost_bytes, 0U);
  EXPECT_LT(report.raw_bytes, kRows * kColumns * sizeof(float) * 3 / 2);  // edge chunks
  for (std::uint64_t row = 0; row < kRows; row += 137) {
    EXPECT_EQ(get_values<float>(*file, 0, {{row, 0}, {1, kColumns}, {}}),
              smooth(kColumns, static_cast<double>(row)));
  }
  EXPECT_OK(file->close());
}

/// Modes async and in_situ are for programs on PnetCDF and HDF5. Ranks of a Python program read by
/// themselves after a flush.
TEST(ArrayFlush, ArraysOfPythonDoNotGoBesideTheProgram) {
  const TestFolder folder;
  for (const std::string mode : {"mode=async", "mode=in_situ"}) {
    const auto refused =
        ArrayFile::create(make_self_comm(), folder / "beside.nc", array_options(mode));
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
    EXPECT_NE(refused.status().message().find(mode), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "beside.nc.partial"));
  }
}

TEST(ArrayFlush, ElementByElementBecomesOneBox) {
  StagingMemory memory(64 << 20, "");
  StagingLog log(memory, sizeof(double));
  for (std::uint64_t i = 0; i < 300; ++i) {
    for (std::uint64_t j = 0; j < 200; ++j) {
      const double value = static_cast<double>(i * 200 + j);
      ASSERT_TRUE(log.put({{i, j}, {1, 1}, {}}, std::as_bytes(std::span(&value, 1))).ok());
    }
  }
  EXPECT_LE(log.n_entries(), 20U);  // three for each block of memory
  std::vector<double> values(4);
  log.lay_over({{299, 198}, {1, 2}, {}}, std::as_writable_bytes(std::span(values).first(2)));
  EXPECT_EQ(values[1], 299 * 200 + 199);
  log.clear();
  EXPECT_EQ(memory.held_bytes() + memory.spilled_bytes(), 0U);
}

TEST(ArrayFlush, ScatteredElementsStayCheap) {
  StagingMemory memory(64 << 20, "");
  StagingLog log(memory, sizeof(float));
  constexpr std::uint64_t kPuts = 20000;
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    const float value = static_cast<float>(i);
    ASSERT_TRUE(
        log.put({{i * 7919 % 100003, i % 17}, {1, 1}, {}}, std::as_bytes(std::span(&value, 1)))
            .ok());
  }
  EXPECT_LT(memory.held_bytes(), kPuts * 200);  // 72 each, and room to grow
}

TEST(ArrayFlush, StagingSpillsBeyondItsCap) {
  const TestFolder folder;
  StagingMemory memory(1 << 20, folder / "");
  StagingLog log(memory, 8);
  std::vector<double> values(64 << 10);
  for (std::uint64_t i = 0; i < 16; ++i) {
    std::fill(values.begin(), values.end(), static_cast<double>(i));
    ASSERT_TRUE(
        log.put({{i * 2, 0}, {1, values.size()}, {}}, std::as_bytes(std::span(values))).ok());
  }
  EXPECT_LE(memory.held_bytes(), std::uint64_t{1} << 20);
  EXPECT_GE(memory.spilled_bytes(), std::uint64_t{7} << 20);
  EXPECT_TRUE(memory.over_cap());
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
  for (std::uint64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(reinterpret_cast<const double*>(log.values(i))[17], static_cast<double>(i));
  }
  log.clear();
  EXPECT_EQ(memory.spilled_bytes(), 0U);
}

/// Free space of the spill file is returned while other parts remain in use.
TEST(ArrayFlush, SpilledSpaceIsGivenBack) {
  const TestFolder folder;
  StagingMemory memory(0, folder / "");
  const std::uint64_t block_bytes = 1 << 20;
  const auto kept = memory.allocate(block_bytes);
  ASSERT_TRUE(kept.ok());
  std::memset(kept->data, 7, block_bytes);
  const auto first = memory.allocate(block_bytes);
  ASSERT_TRUE(first.ok());
  memory.release(*first);
  const std::uint64_t free_before = std::filesystem::space(folder / "").free;
  for (int i = 0; i < 300; ++i) {
    const auto block = memory.allocate(block_bytes);
    ASSERT_TRUE(block.ok()) << block.status().message();
    memory.release(*block);
  }
  // Other programs use the disk, too, but hardly 200 MiB of it at this moment.
  EXPECT_LT(free_before, std::filesystem::space(folder / "").free + (200U << 20));
  EXPECT_EQ(kept->data[block_bytes - 1], std::byte{7});
  memory.release(*kept);
}

/// Single elements, none next to another, need more memory for their positions than for their
/// values. A flush that holds them back must still free memory.
TEST(ArrayFlush, HoldingBackMakesRoom) {
  const TestFolder folder;
  auto file = created(make_self_comm(), folder / "odd.nc",
                      array_options("memory=4MB,codec=deflate,chunk=100000"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f64, {100000})));
  for (std::uint64_t i = 0; i < 40000; ++i) {
    ASSERT_TRUE(put_values(*file, 0, {{2 * i}, {1}, {}}, std::vector<double>{1}).ok());
    if (i % 100 == 99) {
      ASSERT_TRUE(file->end_collective_put().ok());
    }
  }
  EXPECT_LT(file->report().n_flushes, 20U);
  EXPECT_OK(file->close());
}

/// A flush in flight has the lengths of its hand-over, whatever the ranks put meanwhile.
TEST_P(ArrayFlushRanks, LaterPutsDoNotLengthenTheFileOfAFlushInFlight) {
  const TestFolder folder;
  for (const std::string mode : {"mode=async", "mode=in_situ"}) {
    const std::string path = folder / "flight.nc";
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      const auto rank = static_cast<std::uint64_t>(comm->rank());
      const std::uint64_t width = 64 * static_cast<std::uint64_t>(comm->n_ranks());
      const bool root = comm->is_root();
      ArrayFileOptions options = array_options("*: chunk=1x64,codec=deflate;" + mode);
      options.file.door = Door::pnetcdf;
      const auto file = created(std::move(comm), path, options);
      ASSERT_NE(file, nullptr);
      EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, width})));
      const auto put = [&](std::uint64_t step) {
        EXPECT_OK(put_values(*file, 0, {{step, 64 * rank}, {1, 64}, {}},
                             smooth(64, static_cast<double>(step))));
      };
      const auto length_in_file = [&] {
        auto reader = Reader::open(make_self_comm(), path, ReadOptions());
        EXPECT_OK(reader.status());
        return reader.ok() ? (*reader)->model().dimensions[0].length : 0;
      };
      put(0);
      EXPECT_OK(file->flush_concurrently());  // Creates the dataset, and so ends at once.
      EXPECT_EQ(file->report().n_flushes, 1U);
      put(1);
      EXPECT_OK(file->flush_concurrently());
      EXPECT_EQ(file->report().n_flushes, 1U);
      put(5 + rank);
      EXPECT_OK(file->end_collective_put());
      EXPECT_EQ(file->report().n_flushes, 2U);
      EXPECT_EQ(file->model().dimensions[0].length, 5U + width / 64);
      if (root) {
        EXPECT_EQ(length_in_file(), 2U);
      }
      // A rank's own puts are visible to all in a collective read.
      std::vector<float> values(64);
      const std::vector<ReadRequest> requests = {
          {0, {{5, 0}, {1, 64}, {}}, std::as_writable_bytes(std::span(values)).data()}};
      EXPECT_OK(file->get_all(requests));
      EXPECT_EQ(values, smooth(64, 5.0));
      put(2);
      EXPECT_OK(file->flush_concurrently());
      EXPECT_OK(file->close());
      if (root) {
        EXPECT_EQ(length_in_file(), 5U + width / 64);
      }
    });
  }
}

TEST_P(ArrayFlushRanks, BoundHoldsUnderPartialRewrites) {
  const TestFolder folder;
  const int n_ranks = GetParam();
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    auto file = created(std::move(comm), folder / "lossy.nc",
                        array_options("codec=trz,bound=abs=0.01,chunk=40x40"));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {100, 100})));
    const Slab all{{0, 0}, {100, 100}, {}};
    std::vector<float> expected = smooth(10000, 0);
    if (rank == 0) EXPECT_OK(put_values(*file, 0, all, expected));
    EXPECT_OK(file->flush());
    const std::uint64_t n_first = file->report().n_chunks;
    EXPECT_EQ(n_first, 9U);
    EXPECT_EQ(file->report().n_raw_chunks, 0U);
    std::mt19937 random(7);
    for (int round = 0; round < 12; ++round) {
      const int who = static_cast<int>(random() % static_cast<unsigned>(n_ranks));
      const Slab slab = random_slab({100, 100}, random);
      const std::vector<float> values = smooth(slab.n_elements(), round);
      scatter_part(part_within(slab, whole_box({100, 100})), slab,
                   reinterpret_cast<const std::byte*>(values.data()), whole_box({100, 100}),
                   reinterpret_cast<std::byte*>(expected.data()), sizeof(float));
      if (who == rank) EXPECT_OK(put_values(*file, 0, slab, values));
      EXPECT_OK(file->flush());
      const std::vector<float> now = get_values<float>(*file, 0, all);
      float largest = 0;
      for (std::size_t i = 0; i < now.size(); ++i) {
        largest = std::max(largest, std::abs(now[i] - expected[i]));
      }
      EXPECT_LE(largest, 0.01F) << "round " << round;
    }
    EXPECT_GT(file->report().n_chunks_merged, 0U);
    EXPECT_GT(file->report().n_raw_chunks, 0U);
    // After a complete put, everything is encoded again.
    const std::uint64_t n_raw = file->report().n_raw_chunks;
    if (rank == n_ranks - 1) EXPECT_OK(put_values(*file, 0, all, expected));
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->report().n_raw_chunks, n_raw);
    EXPECT_OK(file->close());
  });
}

TEST_P(ArrayFlushRanks, LaterPutsOfOtherRanksStay) {
  const int n_ranks = GetParam();
  const TestFolder folder;
  constexpr std::uint64_t kRows = 40;
  constexpr std::uint64_t kColumns = 30;
  for (const char* options : {"codec=deflate,chunk=16x16", "layout=contiguous,codec=none"}) {
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      auto file = created(std::move(comm), folder / "order.nc", array_options(""));
      ASSERT_NE(file, nullptr);
      EXPECT_OK(file->change_model(one_variable(ModelType::f32, {kRows, kColumns})));
      EXPECT_OK(file->set_variable_options(0, options));
      const Slab all{{0, 0}, {kRows, kColumns}, {}};
      std::vector<float> expected(kRows * kColumns);
      // In every turn one rank puts a strided slab over all earlier puts of the others.
      for (std::uint64_t turn = 0; turn < 12; ++turn) {
        Slab slab = all;
        if (turn > 0) {
          slab = {{turn % 5, turn % 7}, {9, 7}, {1 + turn % 4, 1 + turn % 3}};
        }
        const auto value = static_cast<float>(turn + 1);
        for_each_position({{0, 0}, slab.count}, [&](const Shape& at) {
          const std::uint64_t row = slab.start[0] + at[0] * slab.stride_of(0);
          const std::uint64_t column = slab.start[1] + at[1] * slab.stride_of(1);
          expected[row * kColumns + column] = value;
        });
        if (static_cast<int>(turn * 7 % static_cast<std::uint64_t>(n_ranks)) == rank) {
          EXPECT_OK(put_values(*file, 0, slab, std::vector<float>(slab.n_elements(), value)));
        }
        EXPECT_OK(file->end_collective_put());
      }
      EXPECT_OK(file->flush());
      EXPECT_EQ(get_values<float>(*file, 0, all), expected) << options;
      EXPECT_OK(file->close());
    });
  }
}

TEST_P(ArrayFlushRanks, LaterTextsOfOtherRanksStay) {
  const TestFolder folder;
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const int n_ranks = comm->n_ranks();
    auto file = created(std::move(comm), folder / "texts.nc", array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::text, {6})));
    for (int turn = 0; turn < 2 * n_ranks; ++turn) {  // the last is rank 0
      const std::vector<std::string> words(5, "turn " + std::to_string(turn));
      const Slab slab{{turn == 2 * n_ranks - 1 ? 1U : 0U}, {5}, {}};
      if (n_ranks - 1 - turn % n_ranks == rank) EXPECT_OK(file->put_texts(0, slab, words));
      EXPECT_OK(file->end_collective_put());
    }
    EXPECT_OK(file->flush());
    const std::string last = "turn " + std::to_string(2 * n_ranks - 1);
    const std::string before = "turn " + std::to_string(2 * n_ranks - 2);
    const auto texts = file->get_texts(0, {{0}, {6}, {}});
    ASSERT_TRUE(texts.ok()) << texts.status().message();
    EXPECT_EQ(*texts, (std::vector<std::string>{before, last, last, last, last, last}));
    EXPECT_OK(file->close());
  });
}

TEST_P(ArrayFlushRanks, RecordsGrowAndTypesKeepTheirValues) {
  const TestFolder folder;
  const std::string path = folder / "records.nc";
  const auto n_ranks = static_cast<std::uint64_t>(GetParam());
  NetcdfModel model;
  model.netcdf4 = true;
  model.dimensions = {{"time", 0, 0, true, false},
                      {"x", 0, 8 * n_ranks, false, false},
                      {"name", 0, 5, false, false},
                      {"none", 0, 0, false, false}};
  model.groups.push_back({"/g", 0, {}});
  model.variables = {variable_of("time", ModelType::f64, {0}),
                     variable_of("field", ModelType::f32, {0, 1}),
                     variable_of("label", ModelType::text_char, {0, 2}),
                     variable_of("count", ModelType::i64, {}),
                     variable_of("never", ModelType::i16, {0, 1}),
                     variable_of("empty", ModelType::f64, {3}),
                     variable_of("words", ModelType::text, {0}, 1)};
  constexpr std::uint64_t kSteps = 7;
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = created(std::move(comm), path,
                        array_options("codec=trz,bound=rel=1e-3; time: codec=deflate"));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(model));
    for (std::uint64_t t = 0; t < kSteps; ++t) {
      EXPECT_OK(put_values(*file, 1, {{t, 8 * rank}, {1, 8}, {}},
                           smooth(8, static_cast<double>(t * n_ranks + rank))));
      if (rank == 0) {
        EXPECT_OK(put_values(*file, 0, {{t}, {1}, {}}, std::vector<double>{0.1 * double(t)}));
        EXPECT_OK(put_values(*file, 2, {{t, 0}, {1, 5}, {}},
                             std::vector<char>{'s', 't', 'e', 'p', char('0' + t)}));
      }
      if (rank == n_ranks - 1) {
        EXPECT_OK(put_values(*file, 3, {{}, {}, {}}, std::vector<std::int64_t>{1LL << t}));
        const std::vector<std::string> word{"w" + std::to_string(t)};
        EXPECT_OK(file->put_texts(6, {{t}, {1}, {}}, word));
      }
      EXPECT_OK(t % 3 == 2 ? file->flush() : file->end_collective_put());
      EXPECT_EQ(file->model().dimensions[0].length, t + 1);
    }
    EXPECT_OK(file->flush());
    EXPECT_EQ(get_values<std::int64_t>(*file, 3, {}), std::vector<std::int64_t>{1LL << 6});
    EXPECT_EQ(get_values<double>(*file, 0, {{6}, {1}, {}}), std::vector<double>{0.1 * 6});
    EXPECT_EQ(get_values<char>(*file, 2, {{3, 4}, {2, 1}, {}}), (std::vector<char>{'3', '4'}));
    EXPECT_EQ(get_values<std::int16_t>(*file, 4, {{5, 0}, {1, 2}, {}}),
              (std::vector<std::int16_t>{-32767, -32767}));
    const auto words = file->get_texts(6, {{2}, {3}, {}});
    ASSERT_TRUE(words.ok()) << words.status().message();
    EXPECT_EQ(*words, (std::vector<std::string>{"w2", "w3", "w4"}));
    EXPECT_OK(file->close());
  });
  const NetcdfModel read = model_of(path);
  ASSERT_EQ(read.variables.size(), 7U);
  EXPECT_EQ(read.dimensions[0].length, kSteps);
  EXPECT_EQ(read_field(path, "/time").size(), kSteps * sizeof(double));
}

TEST_P(ArrayFlushRanks, ReadAllSeesEveryRanksValues) {
  const TestFolder folder;
  const auto n_ranks = static_cast<std::uint64_t>(GetParam());
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = created(std::move(comm), folder / "all.nc", array_options("chunk=3x4"));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, 10})));
    EXPECT_OK(put_values(*file, 0, {{rank, 0}, {1, 10}, {}}, smooth(10, double(rank))));
    EXPECT_OK(file->end_collective_put());
    std::vector<float> values(10);
    const std::uint64_t other = (rank + 1) % n_ranks;
    const ReadRequest request{
        0, {{other, 0}, {1, 10}, {}}, reinterpret_cast<std::byte*>(values.data())};
    EXPECT_OK(file->get_all(std::span(&request, 1)));
    EXPECT_EQ(values, smooth(10, double(other)));
    EXPECT_OK(file->close());
  });
}

/// Values that have not been put are fill values, also in a variable that the file lacks so far.
TEST_P(ArrayFlushRanks, ReadAllOfAVariableDefinedSinceTheLastFlush) {
  const TestFolder folder;
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), folder / "new.nc", array_options("chunk=3"));
    ASSERT_NE(file, nullptr);
    NetcdfModel model = one_variable(ModelType::f32, {10});
    EXPECT_OK(file->change_model(model));
    EXPECT_OK(put_values(*file, 0, {{0}, {10}, {}}, smooth(10, 1)));
    EXPECT_OK(file->flush());
    model.variables.push_back(model.variables[0]);
    model.variables[1].name = "later";
    EXPECT_OK(file->change_model(model));
    std::vector<float> old(10);
    std::vector<float> values(10);
    const std::vector<ReadRequest> requests = {
        {0, {{0}, {10}, {}}, reinterpret_cast<std::byte*>(old.data())},
        {1, {{0}, {10}, {}}, reinterpret_cast<std::byte*>(values.data())}};
    EXPECT_OK(file->get_all(requests));
    EXPECT_EQ(old, smooth(10, 1));
    EXPECT_EQ(values, std::vector<float>(10, 9.9692099683868690e+36F));
    EXPECT_EQ(get_values<float>(*file, 1, {{0}, {10}, {}}), values);
    EXPECT_OK(file->close());
  });
}

TEST_P(ArrayFlushRanks, AnOpenedFileIsWrittenOn) {
  const TestFolder folder;
  const std::string path = folder / "again.nc";
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options("chunk=4x4,codec=trz,bound=abs=0.1"));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, 10})));
    if (file->comm().is_root()) {
      EXPECT_OK(put_values(*file, 0, {{0, 0}, {10, 10}, {}}, smooth(100, 0)));
    }
    EXPECT_OK(file->close());
  });
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const int last = comm->n_ranks() - 1;
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(file->model().variables.size(), 1U);
    const std::vector<float> before = get_values<float>(*file, 0, {{0, 0}, {10, 10}, {}});
    if (rank == last) EXPECT_OK(put_values(*file, 0, {{3, 3}, {9, 2}, {}}, smooth(18, 5)));
    NetcdfModel more = file->model();
    more.variables.push_back(variable_of("w", ModelType::i32, {0, 1}));
    EXPECT_OK(file->change_model(more));
    if (rank == 0) {
      EXPECT_OK(put_values(*file, 1, {{0, 0}, {1, 2}, {}}, std::vector<std::int32_t>{4, 5}));
    }
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->model().dimensions[0].length, 12U);
    const std::vector<float> now = get_values<float>(*file, 0, {{0, 0}, {12, 10}, {}});
    const std::vector<float> put = smooth(18, 5);
    for (std::size_t i = 0; i < 12; ++i) {
      for (std::size_t j = 0; j < 10; ++j) {
        const bool mine = i >= 3 && j >= 3 && j < 5;
        const float expected = mine     ? put[(i - 3) * 2 + j - 3]
                               : i < 10 ? before[i * 10 + j]
                                        : 9.9692099683868690e+36F;
        EXPECT_EQ(now[i * 10 + j], expected) << i << ", " << j;
      }
    }
    EXPECT_OK(file->close());
  });
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    auto file = opened(std::move(comm), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(get_values<std::int32_t>(*file, 1, {{0, 0}, {1, 3}, {}}),
              (std::vector<std::int32_t>{4, 5, -2147483647}));
    EXPECT_EQ(file->put(0, {{0, 0}, {0, 0}, {}}, {}).code(), Code::invalid_argument);
    EXPECT_OK(file->close());
  });
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayFlushRanks, ::testing::Values(1, 2, 3, 4),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace tailrace::test
