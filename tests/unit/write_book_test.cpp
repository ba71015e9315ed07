// codec trz,book=auto over several steps, on 1 to 4 ranks that are threads: which fields get a
// book, when it is renewed, and that a failed step leaves none.

#include "field/field_book.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "describe/stored_file.hpp"
#include "engine_support.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "thread_comm.hpp"
#include "trz/client_data.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kExtent = 48;
const Shape kShape = {kExtent, kExtent, kExtent};
constexpr double kBound = 1e-3;

/// A field that evolves; mostly its noise must be coded.
float value_of(const Shape& at, int step, double noise) {
  std::uint64_t hash = static_cast<std::uint64_t>(step) + 1;
  for (const std::uint64_t x : at) hash = (hash ^ x) * 0x9E3779B97F4A7C15U;
  const double share = static_cast<double>(hash >> 40) * 0x1p-24 - 0.5;
  return static_cast<float>(std::sin(0.1 * static_cast<double>(at[0]) + 0.05 * step) *
                                std::cos(0.2 * static_cast<double>(at[1])) +
                            noise * share * share * share);
}

std::vector<float> values_in(const Box& box, int step, double noise) {
  std::vector<float> values;
  values.reserve(box.n_elements());
  for_each_position(box, [&](const Shape& at) { values.push_back(value_of(at, step, noise)); });
  return values;
}

/// Slab of one of `n` ranks with values; the others have none.
Box slab(int rank, int n) {
  if (rank >= n) return {{0, 0, 0}, {0, 0, 0}};
  const auto r = static_cast<std::uint64_t>(rank);
  const auto parts = static_cast<std::uint64_t>(n);
  const std::uint64_t start = kExtent * r / parts;
  return {{start, 0, 0}, {kExtent * (r + 1) / parts - start, kExtent, kExtent}};
}

std::string step_path(int step) { return "/step_" + std::to_string(step) + "/u"; }

/// One rank's calls for a file.
struct RankRun {
  int rank = 0;
  int n_ranks = 1;
  Writer& writer;
  std::string options = "codec=trz,book=auto,bound=abs=1e-3,chunk=8x48x48";
  double noise = 0.05;
  int n_with_values = 1;

  FieldOptions field_options() const {
    FileOptions parsed;
    const Status read = apply_file_options(options, parsed);
    EXPECT_TRUE(read.ok()) << read.message();
    return parsed.field_defaults;
  }
  std::size_t define(const std::string& path) const {
    const auto index = writer.define_field({path, DType::f32, kShape, field_options(), false});
    EXPECT_TRUE(index.ok()) << index.status().message();
    return *index;
  }
  Result<StepReport> put_and_end(std::size_t field, int step) const {
    const Box box = slab(rank, n_with_values);
    const std::vector<float> values = values_in(box, step, noise);
    EXPECT_TRUE(writer.put(field, box, values.data(), true).ok());
    return writer.end_step();
  }
  /// Writes a new dataset, as most simulations do.
  Result<StepReport> new_dataset(int step) const {
    return put_and_end(define(step_path(step)), step);
  }
};

class WriteBook : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { ASSERT_TRUE(register_filter_class(&hdf5::trz_filter_class()).ok()); }

  /// Runs `body` on all ranks of a file that is created or opened.
  void on_ranks(const std::function<void(RankRun)>& body, bool append = false,
                int n_with_values = 0, StepMode mode = StepMode::sync) {
    const int n_ranks = GetParam();
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      FileOptions options;
      options.sync = false;
      options.n_threads = 1;
      options.replace = true;
      options.mode = mode;
      auto writer = append ? Writer::open(std::move(comm), path_, options)
                           : Writer::create(std::move(comm), path_, options);
      ASSERT_TRUE(writer.ok()) << writer.status().message();
      RankRun run{rank, n_ranks, **writer};
      run.n_with_values = n_with_values == 0 ? n_ranks : n_with_values;
      body(run);
      const Status closed = (*writer)->close();
      EXPECT_TRUE(closed.ok()) << closed.message();
    });
  }

  std::vector<std::uint8_t> book_in(const std::string& field) const {
    const auto file = StoredFile::open(path_);
    if (!file.ok()) return ADD_FAILURE() << file.status().message(), std::vector<std::uint8_t>();
    const auto list = (*file)->list(CatalogDetail::storage);
    EXPECT_TRUE(list.ok()) << list.status().message();
    const FilterSpec filter = list->datasets.at(list->find(field).value()).storage.filters.at(0);
    const auto data = trz::read_client_words(filter.final_client_data);
    EXPECT_TRUE(data.ok()) << data.status().message();
    return data->request.book_bytes;
  }

  void expect_values(const std::string& field, const std::vector<int>& steps, double noise) const {
    const std::vector<std::byte> bytes = read_field(path_, field);
    ASSERT_EQ(bytes.size(), steps.size() * n_elements(kShape) * sizeof(float));
    std::vector<float> found(bytes.size() / sizeof(float));
    std::memcpy(found.data(), bytes.data(), bytes.size());
    std::size_t at = 0;
    for (const int step : steps) {
      double largest = 0;
      for (const float value : values_in(whole_box(kShape), step, noise)) {
        largest = std::max(largest, std::abs(static_cast<double>(found[at++]) - value));
      }
      EXPECT_LE(largest, kBound) << field << ", step " << step;
    }
  }

  TestFolder folder_;
  std::string path_ = folder_ / "out.h5";
};

TEST_P(WriteBook, TheNextDatasetHasTheBookOfTheStepBefore) {
  std::vector<StepReport> reports;
  on_ranks([&](const RankRun& run) {
    for (int step = 0; step < 4; ++step) {
      const Result<StepReport> report = run.new_dataset(step);
      ASSERT_TRUE(report.ok()) << report.status().message();
      if (run.rank == 0) reports.push_back(*report);
    }
  });
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[0].fields[0].book_bytes, 0U);
  EXPECT_TRUE(book_in(step_path(0)).empty());
  const std::vector<std::uint8_t> book = book_in(step_path(1));
  for (int step = 1; step < 4; ++step) {
    const FieldReport& field = reports[static_cast<std::size_t>(step)].fields[0];
    EXPECT_EQ(field.book_bytes, book.size()) << step;
    EXPECT_LT(field.book_ratio_loss, 0.005) << step;
    EXPECT_EQ(book_in(step_path(step)), book) << step;  // Kept while it costs little.
  }
  // The time saved is measured by a chunk encoded both ways: rank 0's first chunk with the book.
  EXPECT_NE(reports[3].fields[0].book_saved_s, 0);
  for (int step = 0; step < 4; ++step) expect_values(step_path(step), {step}, 0.05);
}

TEST_P(WriteBook, RanksWithoutChunksTakePart) {
  on_ranks(
      [&](const RankRun& run) {
        for (int step = 0; step < 2; ++step) ASSERT_TRUE(run.new_dataset(step).ok());
      },
      false, 1);
  EXPECT_FALSE(book_in(step_path(1)).empty());
  expect_values(step_path(1), {1}, 0.05);
}

TEST_P(WriteBook, AnExpensiveBookIsRenewed) {
  constexpr int n_steps = 16;  // Enough steps for every rank to count a chunk of the changed field.
  const auto noise_of = [](int step) { return step < 3 ? 0.05 : 0.02; };
  std::vector<StepReport> reports;
  on_ranks([&](RankRun run) {
    run.options = "codec=trz,book=auto,book_loss=1,bound=abs=1e-3,chunk=8x48x48";
    for (int step = 0; step < n_steps; ++step) {
      run.noise = noise_of(step);
      const Result<StepReport> report = run.new_dataset(step);
      ASSERT_TRUE(report.ok()) << report.status().message();
      if (run.rank == 0) reports.push_back(*report);
    }
  });
  ASSERT_EQ(reports.size(), static_cast<std::size_t>(n_steps));
  EXPECT_EQ(book_in(step_path(3)), book_in(step_path(1)));  // The change was not known yet.
  EXPECT_NE(book_in(step_path(n_steps - 1)), book_in(step_path(3)));
  double most = 0;
  for (const StepReport& report : reports) {
    most = std::max(most, report.fields[0].book_ratio_loss);
  }
  EXPECT_GT(most, 0.01);
  EXPECT_LT(reports.back().fields[0].book_ratio_loss, 0.01);
  for (const int step : {3, n_steps - 1}) expect_values(step_path(step), {step}, noise_of(step));
}

TEST_P(WriteBook, AFailedStepTeachesNothing) {
  on_ranks([&](RankRun run) {
    ASSERT_TRUE(run.new_dataset(0).ok());
    run.noise = 0.8;
    if (run.rank == run.n_ranks - 1) {
      run.writer.note_failure(Status(Code::io_error, "the application gave out"));
    }
    EXPECT_FALSE(run.new_dataset(1).ok());
    run.noise = 0.05;
    ASSERT_TRUE(run.new_dataset(2).ok());
  });
  const std::vector<std::uint8_t> after_failure = book_in(step_path(2));
  EXPECT_FALSE(after_failure.empty());
  on_ranks([&](const RankRun& run) {
    ASSERT_TRUE(run.new_dataset(0).ok());
    ASSERT_TRUE(run.new_dataset(2).ok());
  });
  EXPECT_EQ(book_in(step_path(2)), after_failure);
}

TEST_P(WriteBook, OverTimeTheFirstStepHasABookAndAnotherRunGoesOnWithIt) {
  const auto two_steps = [](int first) {
    return [first](RankRun run) {
      run.options += ",over-time=on";
      const std::size_t field = run.define("/u");
      for (int step = first; step < first + 2; ++step) {
        const Result<StepReport> report = run.put_and_end(field, step);
        ASSERT_TRUE(report.ok()) << report.status().message();
        EXPECT_GT(report->fields[0].book_bytes, 0U);
        EXPECT_LT(report->fields[0].book_ratio_loss, 0.02);
      }
    };
  };
  on_ranks(two_steps(0));
  const std::vector<std::uint8_t> book = book_in("/u");
  EXPECT_FALSE(book.empty());
  on_ranks(two_steps(2), true);
  EXPECT_EQ(book_in("/u"), book);
  expect_values("/u", {0, 1, 2, 3}, 0.05);
}

TEST_P(WriteBook, WhatHasNoUseForABookHasNone) {
  for (const char* options : {"codec=trz,book=auto,chunk=8x48x48",
                              "codec=trz,book=auto,preset=fast,bound=abs=1e-3,chunk=8x48x48"}) {
    on_ranks([&](RankRun run) {
      run.options = options;
      for (int step = 0; step < 2; ++step) {
        const Result<StepReport> report = run.new_dataset(step);
        ASSERT_TRUE(report.ok()) << report.status().message();
        EXPECT_EQ(report->fields[0].book_bytes, 0U);
      }
    });
    EXPECT_TRUE(book_in(step_path(1)).empty()) << options;
    expect_values(step_path(1), {1}, 0.05);
  }
}

TEST_P(WriteBook, AWrongThresholdIsRefusedOnAllRanks) {
  on_ranks([&](RankRun run) {
    run.options = "codec=trz,book=auto,book_loss=200,bound=abs=1e-3";
    const FieldDefinition wrong{step_path(0), DType::f32, kShape, run.field_options(), false};
    const Status refused = run.writer.define_field(wrong).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.message().find("book_loss"), std::string::npos) << refused.message();
    run.options = "codec=trz,book=auto,bound=abs=1e-3";
    EXPECT_TRUE(run.new_dataset(0).ok());
  });
}

TEST_P(WriteBook, PointwiseBoundsHaveBooksToo) {
  on_ranks([&](RankRun run) {
    run.options = "codec=trz,book=auto,bound=pw_rel=1e-3,chunk=8x48x48";
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(run.new_dataset(step).ok());
  });
  EXPECT_FALSE(book_in(step_path(1)).empty());
}

TEST_P(WriteBook, StepsThatAreHandedOverTeachTheNextToo) {
  for (const StepMode mode : {StepMode::async, StepMode::in_situ}) {
    on_ranks(
        [](const RankRun& run) {
          for (int step = 0; step < 3; ++step) ASSERT_TRUE(run.new_dataset(step).ok());
          const Result<std::optional<StepReport>> last = run.writer.wait();
          ASSERT_TRUE(last.ok() && last->has_value());
          EXPECT_GT((*last)->fields[0].book_bytes, 0U);
        },
        false, 0, mode);
    EXPECT_TRUE(book_in(step_path(0)).empty());
    EXPECT_FALSE(book_in(step_path(1)).empty());
    EXPECT_EQ(book_in(step_path(2)), book_in(step_path(1)));
    for (int step = 0; step < 3; ++step) expect_values(step_path(step), {step}, 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, WriteBook, ::testing::Values(1, 2, 3, 4),
                         [](const auto& ranks) { return std::to_string(ranks.param) + "ranks"; });

}  // namespace
}  // namespace tailrace::test
