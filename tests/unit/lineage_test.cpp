// Lineages: the field of an earlier step that a new field follows, and what the new field inherits.

#include "field/lineage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <mutex>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "field/field_state.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

FieldState field_of(const std::string& path, const Shape& shape = {8, 8}) {
  FieldState field;
  field.definition.path = path;
  field.definition.shape = shape;
  field.definition.options.codec = "trz";
  field.resolved.chunk_shape = shape;
  return field;
}

std::vector<FieldState> fields_of(const std::vector<std::string>& paths) {
  std::vector<FieldState> fields;
  for (const std::string& path : paths) fields.push_back(field_of(path));
  return fields;
}

/// Commits a step of these fields, each with `encoded_bytes` of 1000.
void keep(LineageTable& table, std::vector<FieldState>& fields, std::uint64_t encoded_bytes = 500,
          const std::string& chosen = "") {
  StepReport report;
  std::vector<FieldState*> active;
  for (FieldState& field : fields) {
    active.push_back(&field);
    FieldReport entry;
    entry.raw_bytes = 1000;
    entry.encoded_bytes = encoded_bytes;
    if (!chosen.empty()) {
      entry.candidates.emplace_back();
      entry.candidates[0].codec = chosen;
    }
    report.fields.push_back(entry);
  }
  table.keep(active, report);
}

std::vector<std::uint64_t> lineages_of(const std::vector<FieldState>& fields) {
  std::vector<std::uint64_t> numbers;
  for (const FieldState& field : fields) numbers.push_back(field.learned.inherited.lineage);
  return numbers;
}

TEST(Lineage, DigitsOfPathsCountAsOne) {
  EXPECT_EQ(normalised_path("/step_0010/density"), "/step_#/density");
  EXPECT_EQ(normalised_path("/7/v2x33"), "/#/v#x#");
  EXPECT_EQ(normalised_path("/u"), "/u");
}

TEST(Lineage, OfSeveralTheNearestNumbersMatch) {
  LineageTable table;
  auto first = fields_of({"/step_9/level_0/u", "/step_9/level_1/u", "/step_9/level_2/u"});
  table.inherit(first);
  EXPECT_EQ(lineages_of(first), (std::vector<std::uint64_t>{1, 2, 3}));
  keep(table, first);
  auto next = fields_of({"/step_10/level_2/u", "/step_10/level_1/u"});
  table.inherit(next);
  EXPECT_EQ(lineages_of(next), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(next[0].learned.inherited.age, 1U);
  keep(table, next);
  EXPECT_EQ(table.n_lineages(), 3U);
}

TEST(Lineage, OtherShapesBoundsAndCodecsAreOthers) {
  LineageTable table;
  auto first = fields_of({"/step_0/u"});
  table.inherit(first);
  keep(table, first);
  auto others = fields_of({"/step_1/u", "/step_1/u", "/step_1/u", "/step_1/w"});
  others[0].definition.shape = {16, 8};
  others[1].definition.options.bound = {BoundMode::abs, 1e-3};
  others[2].definition.options.codec_settings = {{"preset", "ratio"}};
  table.inherit(others);
  for (const FieldState& field : others) EXPECT_GT(field.learned.inherited.lineage, 1U);
  auto same = fields_of({"/step_1/u"});
  table.inherit(same);
  EXPECT_EQ(same[0].learned.inherited.lineage, 1U);
}

TEST(Lineage, FieldsOverTimeAndThoseInTheFileHaveNone) {
  LineageTable table;
  auto fields = fields_of({"/a", "/b", "/c", "/d"});
  fields[0].definition.options.over_time = true;
  fields[1].life = FieldLife::in_file;
  fields[2].life = FieldLife::retired;
  fields[3].definition.shape.clear();
  table.inherit(fields);
  EXPECT_EQ(lineages_of(fields), (std::vector<std::uint64_t>{0, 0, 0, 0}));
  keep(table, fields);
  EXPECT_EQ(table.n_lineages(), 0U);
}

TEST(Lineage, SizesAndBooksPassOnOnlyFromCommittedSteps) {
  LineageTable table;
  auto first = fields_of({"/step_0/u"});
  first[0].puts.push_back({{{0, 0}, {8, 8}}, nullptr, nullptr, {}});
  table.inherit(first);
  first[0].learned.history.record(0, std::nullopt, 400);
  first[0].learned.history.end_batch();
  first[0].learned.book.next = {1, 2, 3};
  keep(table, first);

  auto failed = fields_of({"/step_1/u"});
  table.inherit(failed);
  failed[0].learned.history.record(0, std::nullopt, 4000);
  failed[0].learned.history.end_batch();
  failed[0].learned.book.next = {9};

  auto next = fields_of({"/step_2/u"});
  next[0].puts.push_back({{{0, 0}, {8, 8}}, nullptr, nullptr, {}});
  table.inherit(next);
  EXPECT_EQ(next[0].learned.book.next, (std::vector<std::uint8_t>{1, 2, 3}));
  ASSERT_TRUE(next[0].learned.history.has_previous(0));
  EXPECT_NEAR(next[0].learned.history.forecast(0, std::nullopt)->encoded_bytes, 400, 1);

  auto elsewhere = fields_of({"/step_3/u"});  // The rank now puts another part of the field.
  elsewhere[0].puts.push_back({{{0, 0}, {4, 8}}, nullptr, nullptr, {}});
  table.inherit(elsewhere);
  EXPECT_FALSE(elsewhere[0].learned.history.has_previous(0));
}

TEST(Lineage, TheCodecHoldsUntilSizesDriftOrStepsHavePassed) {
  LineageTable table;
  auto fields = fields_of({"/step_0/u"});
  const auto step = [&](std::uint64_t encoded_bytes, const std::string& chosen) {
    fields = fields_of({"/step_1/u"});
    table.inherit(fields);
    const std::string before = fields[0].learned.inherited.codec;
    keep(table, fields, encoded_bytes, chosen);
    return before;
  };
  EXPECT_EQ(step(500, "zstd,level=3"), "");
  for (std::uint64_t age = 1; age < LineageTable::kChooseEvery; ++age) {
    EXPECT_EQ(step(510, ""), "zstd,level=3") << age;
  }
  EXPECT_EQ(step(500, "trz"), "");  // Sixteen steps have passed.
  EXPECT_EQ(step(700, ""), "trz");
  EXPECT_EQ(step(700, "lz4"), "");  // 1.4 times the bytes on which the choice was based.
  EXPECT_EQ(step(700, ""), "lz4");
}

TEST(Lineage, TheTableForgetsWhatIsNotUsed) {
  LineageTable table;
  for (int i = 0; i < 1000; ++i) {
    std::string name = "/";
    for (int rest = i; rest >= 0; rest = rest / 26 - 1) {
      name += static_cast<char>('a' + rest % 26);
    }
    auto fields = fields_of({name, "/step_" + std::to_string(i) + "/u"});
    table.inherit(fields);
    EXPECT_EQ(fields[1].learned.inherited.age, static_cast<std::uint64_t>(i));
    keep(table, fields);
  }
  EXPECT_LE(table.n_lineages(), LineageTable::kForgetAfter + 1);
}

// --- through the writer

class LineageWrite : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(register_filter_class(&hdf5::trz_filter_class()).ok());
    ::setenv("TAILRACE_PROFILE", "built-in", 1);
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
  }

  /// Writes steps with a new dataset each, with codec=auto; returns the reports of rank 0.
  std::vector<StepReport> write_steps(const std::string& options, int n_steps) {
    std::vector<StepReport> reports;
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      const auto rank = static_cast<std::uint64_t>(comm->rank());
      const auto n_ranks = static_cast<std::uint64_t>(comm->n_ranks());
      FileOptions parsed;
      parsed.sync = false;
      ASSERT_TRUE(apply_file_options(options, parsed).ok());
      auto writer = Writer::create(std::move(comm), folder_ / "out.h5", parsed);
      ASSERT_TRUE(writer.ok()) << writer.status().message();
      for (int step = 0; step < n_steps; ++step) {
        const auto field = (*writer)->define_field({"/step_" + std::to_string(step) + "/u",
                                                    DType::f32,
                                                    {64 * n_ranks, 64},
                                                    parsed.field_defaults,
                                                    false});
        ASSERT_TRUE(field.ok());
        std::vector<float> values(64 * 64);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::uint64_t hash =
              (i + 7919U * static_cast<unsigned>(step)) * 0x9E3779B97F4A7C15U;
          const double noise = static_cast<double>(hash >> 40) * 0x1p-24;
          values[i] = static_cast<float>(std::sin(0.01 * static_cast<double>(i)) + 0.02 * noise);
        }
        ASSERT_TRUE((*writer)->put(*field, {{64 * rank, 0}, {64, 64}}, values.data()).ok());
        const Result<StepReport> report = (*writer)->end_step();
        ASSERT_TRUE(report.ok()) << report.status().message();
        if (rank == 0) reports.push_back(*report);
      }
      ASSERT_TRUE((*writer)->close().ok());
    });
    return reports;
  }

  TestFolder folder_;
};

TEST_P(LineageWrite, TheChoiceOfACodecIsMadeOnce) {
  const std::vector<StepReport> reports = write_steps("bound=abs=1e-3", 4);
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_FALSE(reports[0].fields[0].candidates.empty());
  for (std::size_t step = 1; step < 4; ++step) {
    EXPECT_TRUE(reports[step].fields[0].candidates.empty()) << step;
    EXPECT_EQ(reports[step].fields[0].codec, reports[0].fields[0].codec) << step;
  }
}

TEST_P(LineageWrite, SizesOfTheStepBeforeForetellThoseOfTheNextDataset) {
  const std::vector<StepReport> reports =
      write_steps("codec=trz,bound=abs=1e-3,layout=predictive,chunk=16x64", 4);
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_LT(reports[3].fields[0].mean_size_error, 0.02);
  EXPECT_LT(reports[3].fields[0].mean_size_error, reports[0].fields[0].mean_size_error);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LineageWrite, ::testing::Values(1, 3),
                         [](const auto& ranks) { return std::to_string(ranks.param) + "ranks"; });

}  // namespace
}  // namespace tailrace::test
