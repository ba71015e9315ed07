// Charts: the arithmetic of axes, and well-formed files for every kind of figure. People judge
// their appearance.

#include "chart/chart.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "chart/axis_scale.hpp"

namespace tailrace::chart {
namespace {

std::vector<std::string> labels(const AxisScale& scale, std::size_t n_labels) {
  std::vector<std::string> out;
  for (const Tick& tick : axis_ticks(scale, n_labels)) {
    if (!tick.label.empty()) out.push_back(tick.label);
  }
  return out;
}

using Labels = std::vector<std::string>;

TEST(ChartAxis, LinearTicksAreOneTwoOrFiveTimesAPowerOfTen) {
  const AxisScale scale = fit_axis({}, {0.3, 9.7}, 5);
  EXPECT_EQ(scale.least, 0);  // 0.3 is close enough to 0.
  EXPECT_EQ(scale.greatest, 10);
  EXPECT_EQ(labels(scale, 5), (Labels{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(labels(fit_axis({}, {-0.12, 0.31}, 5), 5), (Labels{"-0.2", "0.0", "0.2", "0.4"}));
  EXPECT_EQ(labels(fit_axis({}, {1000.02, 1000.1}, 4), 4),
            (Labels{"1000.02", "1000.04", "1000.06", "1000.08", "1000.10"}));
}

TEST(ChartAxis, LargeAndSmallNumbersShareAPowerOfTen) {
  const AxisScale large = fit_axis({}, {0, 3.2e10}, 4);
  EXPECT_EQ(large.exponent, 9);
  EXPECT_EQ(labels(large, 4), (Labels{"0", "10", "20", "30", "40"}));
  const AxisScale small = fit_axis({}, {0, 4e-5}, 4);
  EXPECT_EQ(small.exponent, -6);
  EXPECT_EQ(labels(small, 4), (Labels{"0", "10", "20", "30", "40"}));
}

TEST(ChartAxis, LogarithmicTicksLabelDecadesAndFewDecadesFully) {
  Axis axis;
  axis.logarithmic = true;
  const AxisScale narrow = fit_axis(axis, {1, 512}, 10);
  EXPECT_EQ(narrow.greatest, 1000);
  EXPECT_EQ(labels(narrow, 10),
            (Labels{"1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"}));
  EXPECT_EQ(axis_ticks(narrow, 10).size(), 28U);  // With the minor ones: 3 decades of 9, and 1000.
  EXPECT_EQ(labels(fit_axis(axis, {0.1, 4e6}, 9), 9),
            (Labels{"10⁻¹", "10⁰", "10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"}));
  const AxisScale wide = fit_axis(axis, {1e-30, 1e30}, 6);
  EXPECT_LE(labels(wide, 6).size(), 7U);
  EXPECT_GE(labels(wide, 6).size(), 4U);
}

TEST(ChartAxis, WhatIsDemandedIsKept) {
  Axis axis;
  axis.least = 1.0;
  axis.greatest = 1.25;
  const AxisScale scale = fit_axis(axis, {0, 70}, 5);
  EXPECT_EQ(scale.least, 1.0);
  EXPECT_EQ(scale.greatest, 1.25);
  axis.logarithmic = true;
  axis.least = -1;  // A logarithmic axis cannot begin below 0.
  EXPECT_EQ(fit_axis(axis, {0.5, 1}, 5).least, 0.5);
}

TEST(ChartAxis, IntervalsAreNeverEmptyNorInfinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double greatest = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  for (const bool logarithmic : {false, true}) {
    for (const auto& values : std::vector<std::vector<double>>{{},
                                                               {NAN, infinity, -infinity},
                                                               {0},
                                                               {7},
                                                               {-3},
                                                               {-greatest, greatest},
                                                               {least, greatest},
                                                               {least},
                                                               {greatest},
                                                               {1, std::nextafter(1, 2)}}) {
      DataRange range;
      for (const double value : values) extend(range, value, logarithmic);
      Axis axis;
      axis.logarithmic = logarithmic;
      const AxisScale scale = fit_axis(axis, range, 6);
      EXPECT_TRUE(std::isfinite(scale.least) && std::isfinite(scale.greatest));
      EXPECT_LT(scale.least, scale.greatest);
      const std::vector<Tick> ticks = axis_ticks(scale, 6);
      EXPECT_LT(ticks.size(), 1000U);
      for (const double value : {range.least, range.greatest}) {
        if (!range.empty()) {
          EXPECT_GE(scale.position(value), -1e-6);
          EXPECT_LE(scale.position(value), 1 + 1e-6);
        }
      }
    }
  }
}

TEST(ChartAxis, NumbersAreShort) {
  EXPECT_EQ(short_number(12.345), "12.3");
  EXPECT_EQ(short_number(3000), "3000");
  EXPECT_EQ(short_number(0.00312), "0.00312");
  EXPECT_EQ(short_number(1.2e9), "1.2×10⁹");
  EXPECT_EQ(short_number(0), "0");
}

Panel series_panel() {
  const double infinity = std::numeric_limits<double>::infinity();
  Panel panel;
  panel.title = "sizes & <times>";
  panel.x = {"measured (bytes)", true, {}, {}};
  panel.y = {"predicted (bytes)", true, {}, {}};
  panel.series = {{"temperature", {1, 10, 100}, {1.1, 9, 101}, Mark::points},
                  {"broken", {0, NAN, infinity, 5, 1e308}, {1, 2, 3, -1, 7}, Mark::line},
                  {"longer x", {1, 2, 3}, {2}, Mark::line_and_points, true, 5},
                  {"none", {}, {}, Mark::line}};
  panel.diagonal = true;
  return panel;
}

/// A panel of each kind, with every mistake that callers may make.
Figure every_kind() {
  Figure figure;
  figure.title = "every kind";
  Panel bars;
  bars.title = std::string("bytes that are no UTF-8: \xff\xfe \xc3");
  bars.bars = Bars{{"one", "a category with a name that nothing can hold on a page"},
                   {{"encode", {1, NAN}}, {"write", {2, 3, 4}}, {"other", {-1}}}};
  Panel log_bars = bars;
  log_bars.y.logarithmic = true;
  Panel gantt;
  gantt.gantt = Gantt{{"encode thread 1", "I/O"},
                      {{0, 0, 1, 0, "#1"},
                       {1, 1, 2, 1, "#1"},
                       {7, 0, 1, 0, "no row"},
                       {0, NAN, 1, 0, ""},
                       {0, 2, 1, 0, "backwards"}},
                      {"encode", "write"}};
  Panel empty_bars;
  empty_bars.bars = Bars{};
  Panel empty_gantt;
  empty_gantt.gantt = Gantt{};
  figure.panels = {series_panel(), bars, log_bars, gantt, Panel{}, empty_bars, empty_gantt};
  return figure;
}

#ifdef TAILRACE_WITH_CAIRO

class ChartFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const {
    return ::testing::TempDir() + "tailrace-" + std::to_string(::getpid()) + "-" + name;
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The names that follow `before` up to a quote or bracket.
std::multiset<std::string> names(const std::string& text, const std::string& before) {
  std::multiset<std::string> out;
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    out.insert(text.substr(at, text.find_first_of("\")", at) - at));
  }
  return out;
}

TEST(ChartSvg, HoldsTheSeries) {
  Figure figure;
  figure.panels = {series_panel()};
  const Result<std::string> svg = figure_svg(figure);
  ASSERT_TRUE(svg.ok()) << svg.status().message();
  EXPECT_EQ(svg->rfind("<svg", 0), 0U);
  EXPECT_NE(svg->find("</svg>"), std::string::npos);
  EXPECT_NE(svg->find("temperature"), std::string::npos);
  EXPECT_NE(svg->find("sizes &amp; &lt;times&gt;"), std::string::npos);

  // Without one mark of its series the figure has one stroke less. The axes stay, because their
  // limits are fixed.
  figure.panels[0].x.least = figure.panels[0].y.least = 1;
  figure.panels[0].x.greatest = figure.panels[0].y.greatest = 1000;
  const Result<std::string> all = figure_svg(figure);
  figure.panels[0].series[0].x.pop_back();
  const Result<std::string> less = figure_svg(figure);
  ASSERT_TRUE(all.ok() && less.ok());
  EXPECT_EQ(count(*all, "<path"), count(*less, "<path") + 1);
}

TEST(ChartSvg, NamesAreDefinedOnceAndDifferBetweenDrawings) {
  const Result<std::string> first = figure_svg(every_kind());
  Figure other = every_kind();
  other.panels.pop_back();
  const Result<std::string> second = figure_svg(other);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string page = *first + *second;
  const std::multiset<std::string> defined = names(page, " id=\"");
  ASSERT_FALSE(defined.empty());
  EXPECT_EQ(std::set<std::string>(defined.begin(), defined.end()).size(), defined.size());
  for (const char* before : {"href=\"#", "url(#"}) {
    const std::multiset<std::string> used = names(page, before);
    EXPECT_FALSE(used.empty());
    for (const std::string& name : used) EXPECT_EQ(defined.count(name), 1U) << name;
  }
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("inf"), std::string::npos);
}

TEST(ChartSvg, IsTheSameForTheSameFigure) {
  const Result<std::string> first = figure_svg(every_kind());
  const Result<std::string> second = figure_svg(every_kind());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(*first == *second);  // A failure would print both texts; EXPECT_TRUE omits them.
}

TEST_F(ChartFile, PngHasTwoPixelsAPoint) {
  Figure figure = every_kind();
  figure.panels.resize(1);
  const std::string file = path("chart.png");
  const Status status = write_figure(figure, file);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::string bytes = content(file);
  ASSERT_GT(bytes.size(), 1000U);
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const auto big_endian = [&](std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  };
  EXPECT_EQ(big_endian(16), 2U * (480 + 28));
  EXPECT_EQ(big_endian(20), 2U * (340 + 28 + 30));
  ::unlink(file.c_str());
}

TEST_F(ChartFile, SvgHasItsDeclaration) {
  const std::string file = path("chart.svg");
  ASSERT_TRUE(write_figure(every_kind(), file).ok());
  EXPECT_EQ(content(file).rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg", 0), 0U);
  ::unlink(file.c_str());
}

TEST_F(ChartFile, WhatCannotBeWrittenIsSaid) {
  const Status ending = write_figure(every_kind(), path("chart.pdf"));
  EXPECT_EQ(ending.code(), Code::invalid_argument);
  EXPECT_NE(ending.message().find("chart.pdf"), std::string::npos);
  EXPECT_NE(ending.message().find(".svg or .png"), std::string::npos);
  EXPECT_EQ(write_figure(every_kind(), path("no/such/folder.png")).code(), Code::not_found);
  ASSERT_EQ(::symlink("/dev/full", path("full.svg").c_str()), 0);
  EXPECT_EQ(write_figure(every_kind(), path("full.svg")).code(), Code::no_space);
  ::unlink(path("full.svg").c_str());
}

#else

TEST(ChartFile, WithoutCairoSaysSo) {
  const Status status = write_figure(every_kind(), "/nowhere/chart.png");
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("cairo"), std::string::npos);
  EXPECT_EQ(figure_svg(every_kind()).status().code(), Code::unsupported);
}

#endif

}  // namespace
}  // namespace tailrace::chart
