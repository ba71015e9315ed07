// Bounds that swamp the data: the rule itself, and its use by the Writer and array files.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "field/range_evidence.hpp"
#include "policy/bound_width.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// n values from `least` to `greatest`.
std::vector<double> ramp(double least, double greatest, std::size_t n = 1000) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(least +
                     (greatest - least) * static_cast<double>(i) / static_cast<double>(n - 1));
  }
  return values;
}

std::vector<double> amid(std::vector<double> values, const std::vector<double>& more) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), more.begin(),
                more.end());
  return values;
}

template <class T>
BoundVerdict verdict_of(const std::vector<double>& values, const std::string& bound,
                        DType dtype = DType::f64) {
  std::vector<T> typed;
  for (const double value : values) typed.push_back(static_cast<T>(value));
  const auto bytes = std::as_bytes(std::span(typed));
  const ErrorBound asked = parse_error_bound(bound).value();
  const ValueRange range = value_range(dtype, bytes);
  const double absolute = absolute_bound(asked, range.least, range.greatest);
  return judge_bound(asked, absolute, facts_of(range, count_below(dtype, bytes, absolute)));
}

BoundWidth width_of(const std::vector<double>& values, const std::string& bound = "rel=1e-3") {
  return verdict_of<double>(values, bound).width;
}

TEST(BoundWidth, RepeatedExtremesFarFromAllOtherValuesAreFill) {
  const std::vector<double> salinity = ramp(4.6, 40.8);
  for (const double fill : {-1e10, 1e10, -1e34, 1e20, 9.96921e36, -9999.0, 99999.0}) {
    for (const char* bound : {"rel=1e-3", "rel=1e-6", "psnr=80"}) {
      const BoundVerdict verdict = verdict_of<double>(amid(salinity, {fill, fill}), bound);
      EXPECT_EQ(verdict.width, BoundWidth::fill) << fill << " " << bound;
      EXPECT_EQ(verdict.extreme, fill);
      EXPECT_EQ(verdict.n_extreme, 2U);
      EXPECT_EQ(verdict.rest_least, 4.6);
      EXPECT_EQ(verdict.rest_greatest, 40.8);
      EXPECT_TRUE(verdict.refused(false));
      EXPECT_FALSE(verdict.refused(true));
    }
    EXPECT_EQ(width_of(amid(salinity, {fill, fill}), "abs=1e3"), BoundWidth::fine);
    EXPECT_EQ(width_of(amid(salinity, {fill, fill}), "pw_rel=1e-3"), BoundWidth::fine);
  }
  EXPECT_EQ(width_of(amid(salinity, {kNotANumber, kInfinite, -kInfinite, 1e34, 1e34})),
            BoundWidth::fill);
  const BoundVerdict single =
      verdict_of<float>(amid(salinity, {-1e34, -1e34}), "rel=1e-3", DType::f32);
  EXPECT_EQ(single.width, BoundWidth::fill);
  EXPECT_EQ(value_text(single.extreme, DType::f32), "-1e+34");
  EXPECT_EQ(
      verdict_of<std::int32_t>(amid(ramp(0, 50), {-32768, -32768}), "rel=1e-3", DType::i32).width,
      BoundWidth::fill);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(width_of(amid(ramp(-1, 1), {most, most})), BoundWidth::fill);
}

TEST(BoundWidth, ExtremesTenTimesTheSpreadAwayAreSuspect) {
  EXPECT_EQ(width_of(amid(ramp(4.6, 40.8), {-999, -999})), BoundWidth::suspect);
  // Zero counts as an ordinary value.
  EXPECT_EQ(width_of(amid(ramp(300, 300.5), std::vector<double>(5000, 0))), BoundWidth::suspect);
}

TEST(BoundWidth, WhatFieldsAreLikeIsFine) {
  const std::vector<double> zeros(5000, 0);
  for (const std::vector<double>& values : std::vector<std::vector<double>>{
           {},
           {kNotANumber, kInfinite},
           std::vector<double>(100, 7),             // constant
           amid(zeros, std::vector<double>(9, 1)),  // a mask
           amid(std::vector<double>(50, -1), std::vector<double>(50, 1)),
           amid(zeros, ramp(0.5, 1)),                                // zero outside a region
           amid(ramp(0, 4095), std::vector<double>(500, 4095)),      // a saturated sensor
           amid(ramp(10, 1e6), {1e6 + 10, 1e6 + 20, 1e6 + 30}),      // a counter, spike times
           amid(std::vector<double>(500, 5), {5.1, 5.2, 6.5, 7.5}),  // constant but for a few
           ramp(250, 310)}) {
    EXPECT_EQ(width_of(values), BoundWidth::fine) << values.size();
  }
  // Too few other values for a spread.
  EXPECT_NE(width_of(amid({1, 1.5, 2}, {1e5, 1e5})), BoundWidth::fill);
}

TEST(BoundWidth, OneOutlierAndBroadDistributionsAreBroad) {
  EXPECT_EQ(width_of(amid(ramp(4.6, 40.8), {-1e10})), BoundWidth::broad);
  std::vector<double> densities;
  for (int i = 0; i < 1000; ++i) densities.push_back(std::exp(0.015 * i));
  const BoundVerdict verdict = verdict_of<double>(densities, "rel=1e-2");
  EXPECT_EQ(verdict.width, BoundWidth::broad);
  EXPECT_NEAR(verdict.share_below, 1 + std::log(1e-2) / 15, 0.02);
  EXPECT_EQ(width_of(densities, "rel=1e-6"), BoundWidth::fine);
  EXPECT_EQ(width_of(densities, "psnr=40"), BoundWidth::broad);
  // Zeros do not count, so a mostly empty field is not broad.
  EXPECT_EQ(width_of(amid(ramp(0.5, 1), std::vector<double>(5000, 0))), BoundWidth::fine);
}

TEST(BoundWidth, ARecordedBoundOfTheRangeWithoutTheExtremeIsFine) {
  const std::vector<double> values = amid(ramp(4.6, 40.8), {-1e10, -1e10});
  const auto bytes = std::as_bytes(std::span(values));
  const ErrorBound asked{BoundMode::rel, 1e-3};
  const double declared = absolute_bound(asked, 4.6, 40.8);
  const ValueFacts facts =
      facts_of(value_range(DType::f64, bytes), count_below(DType::f64, bytes, declared));
  EXPECT_TRUE(judge_bound(asked, declared, facts).fine());
}

TEST(BoundWidth, AnAbsoluteBoundOfHalfTheRangeErases) {
  const std::vector<double> rain = ramp(0, 2.6e-4);
  for (const char* bound : {"abs=1.3e-4", "abs=0.01", "abs=1e300"}) {
    const BoundVerdict verdict = verdict_of<double>(rain, bound);
    EXPECT_EQ(verdict.width, BoundWidth::erasing) << bound;
    EXPECT_FALSE(verdict.refused(false));
  }
  EXPECT_EQ(width_of(rain, "abs=1.2e-4"), BoundWidth::fine);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(width_of({-most, most}, "abs=1e308"), BoundWidth::fine);
  EXPECT_EQ(width_of({-most, most}, "abs=1.79e308"), BoundWidth::fine);
  EXPECT_EQ(width_of({-1e308, 1e308}, "abs=1e308"), BoundWidth::erasing);
  for (const std::vector<double>& none : {std::vector<double>{}, std::vector<double>(100, 7.0)}) {
    EXPECT_EQ(width_of(none, "abs=1e3"), BoundWidth::fine);
  }
  const ErrorBound asked = parse_error_bound("abs=0.01").value();
  const std::string text = remark_text({"/pr", "field \"/pr\"", DType::f64, asked, 0.01},
                                       verdict_of<double>(rain, "abs=0.01"));
  EXPECT_EQ(text,
            "field \"/pr\": bound abs=0.01 is at least half of the range of its values, 0 to "
            "0.00026, and may erase their differences; bound=rel=1e-3 would be abs=2.6e-07 here");
  // A guard limits the error relative to each value, whatever the bound.
  EXPECT_TRUE(judged_by_range(asked, Guards()));
  EXPECT_FALSE(judged_by_range(asked, parse_guards("log=0.01").value()));
  EXPECT_FALSE(judged_by_range(parse_error_bound("rel=0.1").value(), Guards()));
}

TEST(BoundWidth, TheSampleCountsLikeAllValues) {
  for (const std::size_t n : {10UL, 2048UL, 100000UL}) {
    for (const std::size_t piece : {1UL, 100UL, 8192UL, n}) {
      const std::vector<double> values = amid(ramp(-1, 3, n), std::vector<double>(n, 0));
      MagnitudeSample sample;
      const std::span all(values);
      for (std::size_t at = 0; at < all.size(); at += piece) {
        sample.add(DType::f64, std::as_bytes(all.subspan(at, std::min(piece, all.size() - at))),
                   std::nullopt);
      }
      const auto n_nonzero = static_cast<double>(sample.n_nonzero());
      EXPECT_NEAR(n_nonzero, static_cast<double>(n), 0.1 * static_cast<double>(n)) << piece;
      const double share = static_cast<double>(sample.n_below(0.5)) / n_nonzero;
      EXPECT_NEAR(share, n == 10 ? 0.2 : 0.25, 0.05) << n << " in pieces of " << piece;
      if (n > 10) {
        EXPECT_NEAR(sample.lower_quartile(), 0.5, 0.1);
      }
    }
  }
}

// --- The Writer.

constexpr std::uint64_t kSaltRows = 12;
constexpr std::uint64_t kSaltRow = 1000;

/// A row of salinity, with a fill value in the rows from `first_filled` on.
std::vector<float> salinity_row(std::uint64_t row, float fill, std::uint64_t first_filled) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < kSaltRow; ++i) {
    const bool filled = row >= first_filled && i % 10 == 0;
    values.push_back(filled ? fill : 20 + 15 * std::sin(0.01F * static_cast<float>(i + row)));
  }
  return values;
}

struct Written {
  Status status;
  std::vector<std::string> lines;
};

/// One step of "/s" and an ordinary "/t". @returns the status of every rank, and rank 0's log.
Written write_salinity(const std::string& path, int n_ranks, const std::string& options,
                       std::uint64_t first_filled, float fill = -1e10F) {
  std::vector<Status> ended(static_cast<std::size_t>(n_ranks));
  Written written;
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::size_t>(comm->rank());
    const auto n = static_cast<std::uint64_t>(n_ranks);
    FileOptions file_options;
    file_options.sync = false;
    ASSERT_TRUE(apply_file_options("replace=on", file_options).ok());
    auto writer = Writer::create(std::move(comm), path, file_options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    if (rank == 0) {
      (*writer)->on_log([&](const std::string& line) { written.lines.push_back(line); });
    }
    FieldDefinition salinity{"/s", DType::f32, {kSaltRows, kSaltRow}, {}, false};
    ASSERT_TRUE(apply_field_options(options, salinity.options).ok());
    const auto s = (*writer)->define_field(salinity);
    ASSERT_TRUE(s.ok());
    std::vector<std::vector<float>> held;
    for (std::uint64_t row = rank; row < kSaltRows; row += n) {
      held.push_back(salinity_row(row, fill, first_filled));
      EXPECT_OK((*writer)->put(*s, {{row, 0}, {1, kSaltRow}}, held.back().data()));
    }
    ended[rank] = (*writer)->end_step().status();
    EXPECT_OK((*writer)->close());
  });
  for (const Status& status : ended) EXPECT_EQ(status.message(), ended[0].message());
  written.status = ended[0];
  return written;
}

TEST(BoundWidthWriter, AFieldWithAnUndeclaredFillIsRefusedOnEveryRank) {
  const TestFolder folder;
  const std::string path = folder / "a.h5";
  for (const int n_ranks : {1, 3}) {
    SCOPED_TRACE(n_ranks);
    for (const char* bound : {"bound=rel=1e-3", "codec=trz,bound=psnr=80"}) {
      // The fill values are in all ranks' rows, then in one rank's rows only.
      for (const std::uint64_t first : {0U, 11U}) {
        const Written written = write_salinity(path, n_ranks, bound, first);
        EXPECT_EQ(written.status.code(), Code::invalid_argument) << bound;
        for (const char* words : {"\"/s\"", "-1e+10", "fill=-1e+10", "allow-wide-bound=on"}) {
          EXPECT_NE(written.status.message().find(words), std::string::npos)
              << words << " in " << written.status.message();
        }
        const std::uint64_t n_filled = (kSaltRows - first) * kSaltRow / 10;
        EXPECT_NE(written.status.message().find(std::to_string(n_filled) + " times"),
                  std::string::npos);
      }
    }
    for (const char* options :
         {"bound=rel=1e-3,fill=-1e10", "bound=abs=1e-2", "bound=pw_rel=1e-3"}) {
      const Written written = write_salinity(path, n_ranks, options, 4);
      EXPECT_OK(written.status);
      EXPECT_TRUE(written.lines.empty()) << options;
    }
    const Written exact = write_salinity(path, n_ranks, "codec=deflate,bound=rel=1e-3", 4);
    EXPECT_OK(exact.status);
    ASSERT_EQ(exact.lines.size(), 1U);
    EXPECT_NE(exact.lines[0].find("codec deflate has no loss, so bound rel=0.001 does nothing"),
              std::string::npos);
    const Written allowed = write_salinity(path, n_ranks, "bound=rel=1e-3,allow-wide-bound=on", 4);
    EXPECT_OK(allowed.status);
    ASSERT_EQ(allowed.lines.size(), 1U);
    EXPECT_NE(allowed.lines[0].find("-1e+10"), std::string::npos);
    EXPECT_OK(write_salinity(path, n_ranks, "bound=rel=1e-3", kSaltRows).status);
  }
}

TEST(BoundWidthWriter, TargetsAreRefusedToo) {
  const TestFolder folder;
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options("target=psnr=60,fsync=off", options).ok());
    const auto row = static_cast<std::uint64_t>(comm->rank());
    auto writer = Writer::create(std::move(comm), folder / "t.h5", options);
    ASSERT_TRUE(writer.ok());
    const auto s =
        (*writer)->define_field({"/s", DType::f32, {2, kSaltRow}, options.field_defaults, false});
    ASSERT_TRUE(s.ok());
    const std::vector<float> values = salinity_row(row, 1e34F, 1);
    EXPECT_OK((*writer)->put(*s, {{row, 0}, {1, kSaltRow}}, values.data()));
    const Status ended = (*writer)->end_step().status();
    EXPECT_EQ(ended.code(), Code::invalid_argument);
    EXPECT_NE(ended.message().find("1e+34"), std::string::npos) << ended.message();
    EXPECT_OK((*writer)->close());
  });
}

TEST(BoundWidthWriter, AnErasingBoundGetsOneRemark) {
  const TestFolder folder;
  for (const int n_ranks : {1, 3}) {
    // Ranks see parts of the range: with 3, some hold narrower ones.
    const Written erased =
        write_salinity(folder / "e.h5", n_ranks, "bound=abs=20,codec=trz", kSaltRows);
    EXPECT_OK(erased.status);
    ASSERT_EQ(erased.lines.size(), 1U) << n_ranks;
    for (const char* words : {"\"/s\"", "abs=20 is at least half", "rel=1e-3"}) {
      EXPECT_NE(erased.lines[0].find(words), std::string::npos) << erased.lines[0];
    }
    for (const char* fine : {"bound=abs=10,codec=trz", "bound=abs=20,codec=trz,guard=gradient=1"}) {
      EXPECT_TRUE(write_salinity(folder / "e.h5", n_ranks, fine, kSaltRows).lines.empty()) << fine;
    }
    // One row differs from all others, on one rank.
    EXPECT_TRUE(
        write_salinity(folder / "e.h5", n_ranks, "bound=abs=20,codec=trz", 11, 500).lines.empty());
  }
}

TEST(BoundWidthWriter, ABroadDistributionGetsOneRemark) {
  const TestFolder folder;
  std::vector<std::string> lines;
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options("bound=rel=1e-2,fsync=off", options).ok());
    const auto row = static_cast<std::uint64_t>(comm->rank());
    auto writer = Writer::create(std::move(comm), folder / "d.h5", options);
    ASSERT_TRUE(writer.ok());
    if (row == 0) (*writer)->on_log([&](const std::string& line) { lines.push_back(line); });
    FieldDefinition field{"/rho", DType::f64, {3, 4000}, options.field_defaults, false};
    const auto rho = (*writer)->define_field(field);
    ASSERT_TRUE(rho.ok());
    std::vector<double> values;
    for (int i = 0; i < 4000; ++i) values.push_back(std::exp(0.004 * i));
    EXPECT_OK((*writer)->put(*rho, {{row, 0}, {1, 4000}}, values.data()));
    EXPECT_OK((*writer)->end_step().status());
    EXPECT_OK((*writer)->close());
  });
  ASSERT_EQ(lines.size(), 1U);
  for (const char* words : {"\"/rho\"", "pw_rel=", "guard=log=", "abs="}) {
    EXPECT_NE(lines[0].find(words), std::string::npos) << lines[0];
  }
}

// --- Array files.

TEST(BoundWidthArray, ARefusedVariableDoesNotTakeTheOthersWithIt) {
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  for (const int n_ranks : {1, 3}) {
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const auto rank = static_cast<std::uint64_t>(comm->rank());
      const auto n = static_cast<std::uint64_t>(n_ranks);
      auto file = created(std::move(comm), path, array_options("codec=trz,bound=rel=1e-3"));
      ASSERT_NE(file, nullptr);
      NetcdfModel model = one_variable(ModelType::f32, {kSaltRows, kSaltRow}, "s");
      ModelVariable other = model.variables[0];
      other.name = "t";
      model.variables.push_back(other);
      EXPECT_OK(file->change_model(model));
      for (std::uint64_t row = rank; row < kSaltRows; row += n) {
        const Slab slab{{row, 0}, {1, kSaltRow}, {}};
        EXPECT_OK(put_values(*file, 0, slab, salinity_row(row, 1e34F, 5)));
        EXPECT_OK(put_values(*file, 1, slab, salinity_row(row, 0, kSaltRows)));
      }
      const Status flushed = file->flush();
      EXPECT_EQ(flushed.code(), Code::invalid_argument);
      for (const char* words : {"/s", "1e+34", "fill_value=1e+34", "allow_wide_bound=True"}) {
        EXPECT_NE(flushed.message().find(words), std::string::npos) << flushed.message();
      }
      EXPECT_FALSE(file->close().ok());
      EXPECT_TRUE(file->take_remarks().empty());
    });
    auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    const std::vector<ModelVariable>& variables = file->model().variables;
    const auto t = std::ranges::find(variables, "t", &ModelVariable::name);
    ASSERT_NE(t, variables.end()) << n_ranks;
    const std::vector<float> values = get_values<float>(
        *file, static_cast<std::size_t>(t - variables.begin()), Slab{{3, 0}, {1, kSaltRow}, {}});
    const std::vector<float> exact = salinity_row(3, 0, kSaltRows);
    double largest = 0;
    for (std::size_t i = 0; i < kSaltRow; ++i) {
      largest = std::max(largest, std::abs(double{values[i]} - double{exact[i]}));
    }
    EXPECT_LE(largest, 0.031) << n_ranks << " " << variables.size();
    EXPECT_OK(file->close());
  }
}

TEST(BoundWidthArray, AnAllowedBoundIsARemark) {
  const TestFolder folder;
  auto file = created(make_self_comm(), folder / "a.nc",
                      array_options("codec=trz,bound=rel=1e-3,allow-wide-bound=on"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {kSaltRow})));
  EXPECT_OK(put_values(*file, 0, Slab{{0}, {kSaltRow}, {}}, salinity_row(0, -1e10F, 0)));
  EXPECT_OK(file->close());
  const std::vector<std::string> remarks = file->take_remarks();
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("-1e+10"), std::string::npos);
}

}  // namespace
}  // namespace tailrace::test
