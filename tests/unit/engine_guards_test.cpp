// guard= through the engine: fields in steps, over time, continued, and arrays that grow. The
// file's values are judged by breaks_guards(), which the encoder does not use.

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

/// A wave around 0 along every axis.
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

/// All values of a field, read with our own reader, which needs no plug-in; empty if that fails.
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

/// Writes one step of a field; every rank has random boxes of it.
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

/// Includes partial chunks at the field's ends, and neighbours in two chunks.
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

/// Deviations of a file's values from the bounds of regions, value by value.
struct KeptRegions {
  std::uint64_t n_beyond = 0;  ///< Outside the bound of their region, or of the field.
  std::uint64_t n_inside = 0;
  std::uint64_t n_looser = 0;  ///< Values outside all regions, beyond the tightest bound.
};

/// @param regions  regions of the array's indexes, in the order of guards_from().
KeptRegions kept_regions(const Guards& guards, const Shape& shape, double bound,
                         std::span<const float> x, std::span<const float> y) {
  KeptRegions kept;
  EXPECT_EQ(x.size(), y.size());
  if (x.size() != y.size()) return {UINT64_MAX, 0, 0};
  double tightest = bound;
  for (const RegionGuard& region : guards.regions) tightest = std::min(tightest, region.most);
  std::size_t i = 0;
  for_each_position(whole_box(shape), [&](const Shape& at) {
    double allowed = bound;
    for (const RegionGuard& region : guards.regions) {
      bool inside = true;
      for (std::size_t d = 0; d < at.size(); ++d) {
        inside = inside && at[d] >= region.begin[d] && at[d] < region.end[d];
      }
      if (inside) allowed = std::min(allowed, region.most);
    }
    const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    ++i;
    kept.n_beyond += error > allowed ? 1 : 0;
    kept.n_inside += allowed < bound ? 1 : 0;
    kept.n_looser += allowed == bound && error > tightest ? 1 : 0;
  });
  return kept;
}

/// Boxes that end within chunks, with chunks that extend beyond the field's ends, combined with
/// other guards.
TEST_P(EngineGuards, RegionsKeepBoundsOfTheirOwn) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {31, 33, 35};
  const std::vector<float> x = guarded_waves(shape, whole_box(shape));
  const double bound = 0.01;
  for (const char* text :
       {"region=5..20x*x30..:1e-04", "region=0..16x0..16x0..16:0.001",
        "sign+sum+monotone=1+region=2..3x4..30x*:0+region=20..31x1..2x3..9:5e-04"}) {
    for (const char* codec : {"codec=trz", "codec=trz,preset=max", "codec=auto"}) {
      const std::string options =
          std::string(codec) + ",bound=abs=0.01,chunk=16x16x16,replace=on,guard=" + text;
      const Result<StepReport> report = write_guarded(GetParam(), path, shape, options);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(report->fields[0].absolute_bound, bound);
      const Guards guards = guards_from(text);
      const std::vector<float> y = floats_in(path, "/u");
      const KeptRegions kept = kept_regions(guards, shape, bound, x, y);
      EXPECT_EQ(kept.n_beyond, 0U) << options;
      EXPECT_GT(kept.n_inside, 100U);
      EXPECT_GT(kept.n_looser, 5000U) << options;
      EXPECT_EQ(recorded_guards(path, "/u"), text);
      if (guards.sign) {
        EXPECT_EQ(n_broken_in(ValueGuards(guards_from("sign"), 0, 0), x, y), 0U);
      }
    }
  }
  // The guards are needed: without them values deviate.
  ASSERT_TRUE(
      write_guarded(GetParam(), path, shape, "codec=trz,bound=abs=0.01,chunk=16x16x16,replace=on")
          .ok());
  EXPECT_GT(
      kept_regions(guards_from("region=5..20x*x30..:1e-04"), shape, bound, x, floats_in(path, "/u"))
          .n_beyond,
      1000U);
}

TEST_P(EngineGuards, RegionsUnderOtherBoundsAndViews) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {40, 50};
  const std::vector<float> x = guarded_waves(shape, whole_box(shape));
  const std::string text = "region=7..23x11..40:1e-04";
  for (const char* bound : {"bound=pw_rel=0.05", "bound=rel=0.01", "bound=abs=0.02,coarse=1"}) {
    const Result<StepReport> report = write_guarded(
        GetParam(), path, shape, "codec=trz,chunk=16x16,replace=on,guard=" + text + "," + bound);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const KeptRegions kept = kept_regions(guards_from(text), shape, 0.05, x, floats_in(path, "/u"));
    EXPECT_EQ(kept.n_beyond, 0U) << bound;
    EXPECT_EQ(kept.n_inside, 16U * 29U);
    EXPECT_GT(kept.n_looser, 300U) << bound;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineGuards, ::testing::Values(1, 2, 3, 4));

TEST(EngineGuardsOverTime, AStepThatIsAddedKeepsWhatTheFileRecords) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {60, 70};
  const std::string options = "codec=trz,bound=abs=0.02,over-time=on";
  ASSERT_TRUE(write_guarded(2, path, shape, options + ",guard=sign").ok());
  // The dataset keeps its guard of signs, whether it is requested again or not. Another guard is
  // refused.
  const Result<StepReport> silent = write_guarded(2, path, shape, options, true, 0.001);
  ASSERT_TRUE(silent.ok()) << silent.status().message();
  ASSERT_TRUE(write_guarded(2, path, shape, options + ",guard=sign", true, 0.002).ok());
  const Result<StepReport> other =
      write_guarded(2, path, shape, options + ",guard=zero", true, 0.003);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("in the file it has guard=sign, not zero"),
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

/// A region of a field over time applies to every step.
TEST(EngineGuardsOverTime, RegionsAreOfEveryStep) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {60, 70};
  const std::string options = "codec=trz,bound=abs=0.02,over-time=on,chunk=32x32";
  ASSERT_TRUE(write_guarded(2, path, shape, options + ",guard=region=*x3..40x50..:0.001").ok());
  const Result<StepReport> silent = write_guarded(2, path, shape, options, true, 0.001);
  ASSERT_TRUE(silent.ok()) << silent.status().message();
  EXPECT_EQ(recorded_guards(path, "/u"), "region=*x3..40x50..:0.001");
  const std::vector<float> decoded = floats_in(path, "/u");
  const std::size_t n = n_elements(shape);
  ASSERT_EQ(decoded.size(), 2 * n);
  for (std::size_t step = 0; step < 2; ++step) {
    const std::vector<float> original =
        guarded_waves(shape, whole_box(shape), 0.001 * static_cast<double>(step));
    const KeptRegions kept = kept_regions(guards_from("region=3..40x50..:0.001"), shape, 0.02,
                                          original, std::span(decoded).subspan(step * n, n));
    EXPECT_EQ(kept.n_beyond, 0U) << step;
    EXPECT_EQ(kept.n_inside, 37U * 20U);
    EXPECT_GT(kept.n_looser, 1000U);
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
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,guard=convex"), "one or more of sign, zero");
  expect_guard_words(refusal("codec=trz,bound=pw_rel=0.01,guard=sum"),
                     "needs a bound of mode abs, rel or psnr");
  expect_guard_words(refusal("codec=trz,coarse=1,bound=abs=0.01,guard=sum"),
                     "applies to whole chunks");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,guard=monotone=2"), "have no such axis");
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,chunk=2x40,guard=monotone=0"),
                     "are too thin");
  // Axis 0 is time in this field, and other steps continue along it.
  expect_guard_words(refusal("codec=trz,bound=abs=0.01,over-time=on,guard=monotone=0"),
                     "are too thin");
  EXPECT_OK(refusal("codec=trz,guard=monotone=7"));  // Without loss.
  EXPECT_OK(refusal("codec=auto,bound=abs=0.01,over-time=on,guard=monotone=2"));
  EXPECT_EQ(recorded_guards(path, "/u"), "monotone=2");
  // A gradient needs only a bound from the codec; a lossless codec satisfies every guard.
  EXPECT_OK(refusal("codec=portable,bound=abs=0.01,guard=gradient=0.01"));
  EXPECT_EQ(recorded_guards(path, "/u"), "gradient=0.01");
  EXPECT_OK(refusal("codec=deflate,guard=sign+minmax+gradient=1"));
  EXPECT_EQ(recorded_guards(path, "/u"), "none");
}

TEST(EngineGuardsRefused, RegionsThatAreNoneOfTheField) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {40, 40};
  const auto refusal = [&](const std::string& options) {
    return write_guarded(2, path, shape, "replace=on,bound=abs=0.01," + options).status();
  };
  expect_guard_words(
      refusal("codec=portable,guard=region=*x*:0.001"),
      "codec portable: it cannot keep guard=region=*x*:0.001; these codecs can: trz");
  expect_guard_words(refusal("codec=trz,guard=region=*:0.001"),
                     "it has 1 axes, the dataset has shape 40x40");
  expect_guard_words(refusal("codec=trz,guard=region=30..41x*:0.001"),
                     "field \"/u\": guard=region=30..41x*:0.001: it exceeds the shape 40x40 along "
                     "axis 0");
  expect_guard_words(refusal("codec=trz,guard=region=*x40..:0.001"), "exceeds the shape");
  expect_guard_words(refusal("codec=trz,over-time=on,guard=region=*x*:0.001"), "it has 2 axes");
  expect_guard_words(refusal("codec=trz,over-time=on,guard=region=2..x*x*:0.001"),
                     "the first axis of a field over time is time");
  expect_guard_words(refusal("codec=trz,guard=region=/mask:0.001"),
                     "a mask works only with tailrace repack");
  expect_guard_words(refusal("codec=trz,guard=region=40:0.001"),
                     "is not a range A..B; expected A..B");
  // A lossless codec satisfies every guard.
  EXPECT_OK(refusal("codec=deflate,guard=region=*:0.001"));
  EXPECT_EQ(recorded_guards(path, "/u"), "none");
}

/// Values that arrive piece by piece are combined with decoded values of the file.
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
      expect_guard_words(done, "which added values could break");
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

/// Rewritten completely and in part, by ranks that share chunks.
TEST(EngineGuardsArrays, ValuesThatAreAddedKeepRegions) {
  const TestFolder folder;
  const std::string path = folder / "u.h5";
  const Shape shape = {64, 64};
  const std::string text = "region=10..50x20..45:5e-04";
  ASSERT_TRUE(
      write_guarded(1, path, shape, "codec=trz,bound=abs=0.02,chunk=32x32,guard=" + text).ok());
  std::vector<float> expected = guarded_waves(shape, whole_box(shape));
  const std::vector<float> turned = guarded_waves(shape, whole_box(shape), 0.05);
  constexpr std::uint64_t kFirst = 7;
  constexpr std::uint64_t kHalf = 20;
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    const Slab part = Slab::of({{kFirst + rank * kHalf, 0}, {kHalf, 64}});
    EXPECT_OK(file->put(
        0, part,
        std::as_bytes(std::span(turned).subspan((kFirst + rank * kHalf) * 64, kHalf * 64))));
    EXPECT_OK(file->close());
  });
  std::copy_n(turned.begin() + kFirst * 64, 2 * kHalf * 64, expected.begin() + kFirst * 64);
  const KeptRegions kept =
      kept_regions(guards_from(text), shape, 0.02, expected, floats_in(path, "/u"));
  EXPECT_EQ(kept.n_beyond, 0U);
  EXPECT_EQ(kept.n_inside, 40U * 25U);
  EXPECT_EQ(recorded_guards(path, "/u"), text);
}

}  // namespace
}  // namespace tailrace::test
