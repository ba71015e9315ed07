// guard= through the engine: fields in steps, over time, continued, and arrays that are added to.
// What a file keeps is judged by breaks_guards(), which the encoder does not use.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/option_table.hpp"
#include "describe/field_attributes.hpp"
#include "engine_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

/// A wave through 0 along every axis.
std::vector<float> guarded_waves(const Shape& shape, const Box& box, double phase = 0) {
  std::vector<float> values;
  for_each_position(box, [&](const Shape& at) {
    double value = phase;
    for (std::size_t d = 0; d < at.size(); ++d) {
      value += std::sin(0.2 * static_cast<double>(at[d]) + static_cast<double>(d));
    }
    values.push_back(static_cast<float>(value / static_cast<double>(shape.size())));
  });
  return values;
}

/// All values of a field, by our own reader, which needs no plug-in; empty if that fails.
std::vector<float> floats_in(const std::string& path, const std::string& field) {
  Result<std::unique_ptr<InputFile>> input = open_input_file(path, {}, ReadOptions());
  if (!input.ok()) return {};
  const std::vector<StoredDataset>& fields = (*input)->fields();
  const auto found = std::ranges::find(fields, field, &StoredDataset::path);
  if (found == fields.end()) return {};
  std::vector<float> values(n_elements(found->shape));
  const Status read =
      (*input)->read(static_cast<std::size_t>(found - fields.begin()), whole_box(found->shape),
                     std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(read.ok()) << read.message();
  return values;
}

std::uint64_t n_broken_in(const ValueGuards& guards, std::span<const float> original,
                          std::span<const float> decoded) {
  EXPECT_EQ(original.size(), decoded.size());
  if (original.size() != decoded.size()) return UINT64_MAX;
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < original.size(); ++i) {
    n += breaks_guards(guards, static_cast<double>(original[i]), static_cast<double>(decoded[i]))
             ? 1
             : 0;
  }
  return n;
}

Guards guards_from(const std::string& text) {
  const Result<Guards> guards = parse_guards(text);
  EXPECT_TRUE(guards.ok()) << text;
  return guards.ok() ? *guards : Guards();
}

std::string recorded_guards(const std::string& path, const std::string& field) {
  const Result<std::vector<FieldAttributes>> all =
      read_field_attributes(path, std::vector<std::string>{field});
  return all.ok() ? guards_text(all->front().guards) : "unreadable";
}

/// One step of a field, every rank with random boxes of it.
Result<StepReport> write_guarded(int n_ranks, const std::string& path, const Shape& shape,
                                 const std::string& options_text, bool append = false,
                                 double phase = 0) {
  std::mt19937 random(11);
  const std::vector<Box> boxes = random_boxes(shape, static_cast<std::size_t>(n_ranks) * 3, random);
  Result<StepReport> result = Status(Code::internal, "not run");
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::size_t>(comm->rank());
    const auto run = [&]() -> Result<StepReport> {
      FileOptions options;
      options.sync = false;
      TAILRACE_TRY(apply_file_options(options_text, options));
      auto writer = append ? Writer::open(std::move(comm), path, options)
                           : Writer::create(std::move(comm), path, options);
      if (!writer.ok()) return writer.status();
      TAILRACE_TAKE(
          const std::size_t index,
          (*writer)->define_field({"/u", DType::f32, shape, options.field_defaults, false}));
      std::vector<std::vector<float>> held;
      for (std::size_t b = rank; b < boxes.size(); b += static_cast<std::size_t>(n_ranks)) {
        held.push_back(guarded_waves(shape, boxes[b], phase));
        TAILRACE_TRY((*writer)->put(index, boxes[b], held.back().data()));
      }
      Result<StepReport> report = (*writer)->end_step();
      TAILRACE_TRY((*writer)->close());
      return report;
    };
    Result<StepReport> mine = run();
    if (rank == 0) result = std::move(mine);
  });
  return result;
}

class EngineGuards : public ::testing::TestWithParam<int> {};

TEST_P(EngineGuards, ChunksThatRanksShareKeepThem) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {31, 33, 35};
  const std::vector<float> original = guarded_waves(shape, whole_box(shape));
  const auto [least, greatest] = std::ranges::minmax(original);
  const std::string guard = "sign+threshold=0.3+minmax";
  const ValueGuards guards(guards_from(guard), static_cast<double>(least),
                           static_cast<double>(greatest));
  for (const char* codec : {"codec=trz", "codec=trz,preset=ratio", "codec=auto"}) {
    const std::string options = std::string(codec) + ",bound=rel=1e-2,chunk=16x16x16,replace=on";
    ASSERT_TRUE(write_guarded(GetParam(), path, shape, options).ok());
    EXPECT_GT(n_broken_in(guards, original, floats_in(path, "/u")), 10U) << codec;
    EXPECT_EQ(recorded_guards(path, "/u"), "none");
    const Result<StepReport> report =
        write_guarded(GetParam(), path, shape, options + ",guard=" + guard);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(n_broken_in(guards, original, floats_in(path, "/u")), 0U) << codec;
    EXPECT_EQ(recorded_guards(path, "/u"), guard);
  }
}

TEST_P(EngineGuards, GradientsFollowFromTheBound) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {40, 50};
  const std::string options = "codec=trz,bound=abs=0.1,chunk=16x16,guard=gradient=0.03";
  const Result<StepReport> report = write_guarded(GetParam(), path, shape, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->fields[0].absolute_bound, 0.015);
  EXPECT_EQ(report->fields[0].bound.value, 0.1);
  const std::vector<float> x = guarded_waves(shape, whole_box(shape));
  const std::vector<float> y = floats_in(path, "/u");
  ASSERT_EQ(x.size(), y.size());
  double largest = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    for (const std::size_t j : {i + 1, i + 50}) {
      if (j >= x.size() || (j == i + 1 && j % 50 == 0)) continue;
      const double before = static_cast<double>(x[j]) - static_cast<double>(x[i]);
      largest = std::max(largest,
                         std::abs(static_cast<double>(y[j]) - static_cast<double>(y[i]) - before));
    }
  }
  EXPECT_LE(largest, 0.03);
  EXPECT_GT(largest, 0.01);
  EXPECT_EQ(recorded_guards(path, "/u"), "gradient=0.03");
}

/// Chunks at the field's ends, too, of which only a part is values; and neighbours in two chunks.
TEST_P(EngineGuards, SumsOfChunksAndOrdersStay) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {31, 33, 35};
  const ChunkGrid grid{shape, {16, 16, 16}};
  const std::vector<float> x = guarded_waves(shape, whole_box(shape));
  for (const char* over_time : {"", ",over-time=on"}) {
    const bool grows = *over_time != '\0';
    const std::string guard = grows ? "sum+monotone=2" : "sum+monotone=1";
    const Result<StepReport> report = write_guarded(
        GetParam(), path, shape,
        "codec=trz,bound=abs=0.01,chunk=16x16x16,replace=on,guard=" + guard + over_time);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(recorded_guards(path, "/u"), guard);
    const std::vector<float> y = floats_in(path, "/u");
    ASSERT_EQ(x.size(), y.size());
    for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
      long double excess = 0;
      for_each_position(grid.clipped_box(chunk), [&](const Shape& at) {
        const std::size_t i = (at[0] * shape[1] + at[1]) * shape[2] + at[2];
        excess += static_cast<long double>(y[i]) - static_cast<long double>(x[i]);
      });
      EXPECT_LE(std::fabs(excess), sum_tolerance(1.1F)) << chunk;
    }
    std::uint64_t n_moved = 0;
    for (std::size_t i = 0; i + 35 < x.size(); ++i) {
      n_moved += x[i] != y[i] ? 1 : 0;
      if (i / 35 % 33 == 32) continue;
      ASSERT_FALSE(turns_order(x[i], x[i + 35], y[i], y[i + 35])) << i;
    }
    EXPECT_GT(n_moved, x.size() / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineGuards, ::testing::Values(1, 2, 3, 4));

TEST(EngineGuardsOverTime, AStepThatIsAddedKeepsWhatTheFileRecords) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {60, 70};
  const std::string options = "codec=trz,bound=abs=0.02,over-time=on";
  ASSERT_TRUE(write_guarded(2, path, shape, options + ",guard=sign").ok());
  // Said again or not: the dataset keeps signs. Something else is refused.
  const Result<StepReport> silent = write_guarded(2, path, shape, options, true, 0.001);
  ASSERT_TRUE(silent.ok()) << silent.status().message();
  ASSERT_TRUE(write_guarded(2, path, shape, options + ",guard=sign", true, 0.002).ok());
  const Result<StepReport> other =
      write_guarded(2, path, shape, options + ",guard=zero", true, 0.003);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("the file has it with guard=sign, not zero"),
            std::string::npos)
      << other.status().message();
  EXPECT_EQ(recorded_guards(path, "/u"), "sign");
  const std::vector<float> decoded = floats_in(path, "/u");
  const std::size_t n = n_elements(shape);
  ASSERT_EQ(decoded.size(), 3 * n);
  const ValueGuards guards(guards_from("sign"), 0, 0);
  for (std::size_t step = 0; step < 3; ++step) {
    const std::vector<float> original =
        guarded_waves(shape, whole_box(shape), 0.001 * static_cast<double>(step));
    EXPECT_EQ(n_broken_in(guards, original, std::span(decoded).subspan(step * n, n)), 0U) << step;
  }
}

void expect_guard_words(const Status& status, const std::string& words) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(EngineGuardsRefused, WhatCannotKeepThemSaysSo) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {40, 40};
  const auto refusal = [&](const std::string& options) {
    return write_guarded(2, path, shape, options + ",replace=on").status();
  };
  expect_guard_words(refusal("codec=portable,bound=abs=0.01,guard=sign"),
                     "codec portable: it cannot keep guard=sign; these codecs can: trz");
  expect_guard_words(refusal("codec=trz,bound=pw_rel=0.01,guard=gradient=1"),
                     "needs a bound of mode abs, rel or psnr");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,guard=minmax,over-time=on"),
                     "not served over time");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,guard=convex"), "there are sign, zero");
  expect_guard_words(refusal("codec=trz,bound=pw_rel=0.01,guard=sum"),
                     "needs a bound of mode abs, rel or psnr");
  expect_guard_words(refusal("codec=trz,coarse=1,bound=abs=0.01,guard=sum"), "is of whole chunks");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,guard=monotone=2"), "have no such axis");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,chunk=2x40,guard=monotone=0"),
                     "are too thin along it");
  // Axis 0 is time then, and other steps go on along it.
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,over-time=on,guard=monotone=0"),
                     "are too thin along it");
  EXPECT_OK(refusal("codec=trz,guard=monotone=7"));  // Without loss.
  EXPECT_OK(refusal("codec=auto,bound=abs=0.01,over-time=on,guard=monotone=2"));
  EXPECT_EQ(recorded_guards(path, "/u"), "monotone=2");
  // A gradient asks no more of a codec than a bound; without loss there is nothing to keep.
  EXPECT_OK(refusal("codec=portable,bound=abs=0.01,guard=gradient=0.01"));
  EXPECT_EQ(recorded_guards(path, "/u"), "gradient=0.01");
  EXPECT_OK(refusal("codec=deflate,guard=sign+minmax+gradient=1"));
  EXPECT_EQ(recorded_guards(path, "/u"), "none");
}

/// Values that come piece by piece are laid beside others that have been decoded.
TEST(EngineGuardsArrays, WhatNeedsAllValuesIsRefused) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {64, 64};
  for (const char* guard : {"minmax", "sum", "monotone=0"}) {
    const std::string options = "codec=trz,bound=abs=0.02,chunk=32x32,replace=on,guard=";
    ASSERT_TRUE(write_guarded(1, path, shape, options + guard).ok());
    const std::vector<float> more(n_elements(shape));
    run_ranks(1, [&](std::unique_ptr<Comm> comm) {
      auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
      ASSERT_NE(file, nullptr);
      Status done = file->put(0, Slab::of(whole_box(shape)), std::as_bytes(std::span(more)));
      const Status closed = file->close();
      if (done.ok()) done = closed;
      expect_guard_words(done, "which values that are added could break");
    });
  }
}

TEST(EngineGuardsArrays, ValuesThatAreAddedKeepWhatTheFileRecords) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {64, 64};
  const std::vector<float> original = guarded_waves(shape, whole_box(shape));
  ASSERT_TRUE(
      write_guarded(1, path, shape, "codec=trz,bound=abs=0.02,chunk=32x32,guard=sign").ok());
  const std::vector<float> turned = guarded_waves(shape, whole_box(shape), 0.005);
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    const Slab half = Slab::of({{rank * 32, 0}, {32, 64}});
    const std::uint64_t n_half = half.n_elements();
    EXPECT_OK(file->put(0, half, std::as_bytes(std::span(turned).subspan(rank * n_half, n_half))));
    EXPECT_OK(file->close());
  });
  const std::vector<float> decoded = floats_in(path, "/u");
  EXPECT_EQ(n_broken_in(ValueGuards(guards_from("sign"), 0, 0), turned, decoded), 0U);
  EXPECT_EQ(recorded_guards(path, "/u"), "sign");
}

}  // namespace
}  // namespace tailrace::test
