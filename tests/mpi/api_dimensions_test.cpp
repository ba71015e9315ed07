// Named dimensions of the public API: names, coordinates, time; errors; continued files.

#include <array>
#include <filesystem>

#include "api_support.hpp"

namespace {

using namespace api_test;

const Shape kPlane{24, 10};

/// Returns the path of the scale of each dimension of a dataset; "" without one.
std::vector<std::string> scales(const std::string& path, const std::string& dataset_path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, dataset_path.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::vector<hvl_t> lists(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  std::vector<std::string> names(lists.size());
  H5Sclose(space);
  if (H5Aexists(dataset, "DIMENSION_LIST") > 0) {
    const hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    EXPECT_GE(H5Aread(attribute, type, lists.data()), 0);
    for (std::size_t d = 0; d < lists.size(); ++d) {
      EXPECT_EQ(lists[d].len, 1U) << dataset_path << ", dimension " << d;
      const hid_t scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, lists[d].p);
      std::array<char, 256> name{};
      H5Iget_name(scale, name.data(), name.size());
      names[d] = name.data();
      H5Dclose(scale);
      H5free_memory(lists[d].p);
    }
    H5Tclose(type);
    H5Aclose(attribute);
  }
  H5Dclose(dataset);
  H5Fclose(file);
  return names;
}

using Names = std::vector<std::string>;
using tailrace::Field;

/// The values of a step: of two fields over time, and its time.
struct Series {
  explicit Series(tailrace::File& opened)
      : file(&opened),
        u(opened.define<double>("/u", {{"y", kPlane[0]}, {"x", kPlane[1]}}, "over-time=on")),
        mean(opened.define<float>("/mean", {{"y", kPlane[0]}}, "over-time=on")) {
    opened.set_coordinate("/x", all_values<float>({kPlane[1]}, 3, rough_value), "m");
    opened.set_coordinate("/y", std::vector<int>(kPlane[0], 7));
  }
  void put(std::uint64_t step) {
    put_boxes<double>(u, mine(cut(kPlane, n_ranks())), step, rough_value<double>);
    put_boxes<float>(mean, mine(cut({kPlane[0]}, n_ranks())), step, rough_value<float>);
    file->set_time(0.5 * static_cast<double>(step), "days since 2000-01-01");
  }
  tailrace::File* file;
  Field<double> u;
  Field<float> mean;
};

void check_series(const std::string& path, std::uint64_t n_steps) {
  if (!is_root()) return;
  const StockFile stock(path);
  std::vector<double> times;
  std::vector<double> all;
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    times.push_back(0.5 * static_cast<double>(step));
    for (const double value : all_values<double>(kPlane, step, rough_value)) all.push_back(value);
  }
  EXPECT_EQ(stock.read<double>("/time"), times);
  EXPECT_EQ(differences(stock.read<double>("/u"), all), "");
  EXPECT_EQ(stock.read<float>("/x"), all_values<float>({kPlane[1]}, 3, rough_value));
  EXPECT_EQ(stock.text("/x", "units"), "m");
  EXPECT_EQ(stock.text("/time", "units"), "days since 2000-01-01");
  EXPECT_EQ(scales(path, "/u"), (Names{"/time", "/y", "/x"}));
  EXPECT_EQ(scales(path, "/mean"), (Names{"/time", "/y"}));
  EXPECT_EQ(scales(path, "/time"), (Names{""}));
}

TEST(ApiDimensions, NamesCoordinatesAndTimeInEveryMode) {
  for (const char* options : {"mode=sync", "mode=async", "mode=in_situ",
                              "bound=rel=1e-2,codec=none", "compatibility=everyone"}) {
    const std::string path = scratch();
    for (std::uint64_t begin : {0U, 3U}) {
      auto file =
          begin == 0 ? create(path, std::string("replace=on,") + options) : open(path, options);
      Series series(file);
      for (std::uint64_t step = begin; step < begin + 3; ++step) {
        series.put(step);
        file.end_step();
      }
      file.close();
      if (std::string(options).find("bound") == std::string::npos) check_series(path, begin + 3);
    }
  }
}

TEST(ApiDimensions, CoordinatesStayExactUnderTheBoundOfTheFile) {
  const std::string path = scratch();
  auto file = create(path, "bound=abs=0.4");
  const Shape whole{4096};
  auto x = file.define<double>("/x", {{"x", 4096}});
  auto u = file.define<double>("/u", {{"x", 4096}});
  put_boxes<double>(x, mine(cut(whole, n_ranks())), 1, smooth_value<double>);
  put_boxes<double>(u, mine(cut(whole, n_ranks())), 1, smooth_value<double>);
  file.set_time(1.0 / 3);
  file.end_step();
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(stock.read<double>("/x"), all_values<double>(whole, 1, smooth_value));
  EXPECT_EQ(stock.read<double>("/time"), std::vector<double>{1.0 / 3});
  EXPECT_TRUE(stock.has_attribute("/u", "tailrace_absolute_bound"));
  EXPECT_EQ(scales(path, "/u"), (Names{"/x"}));
}

TEST(ApiDimensions, AGroupPerStepSharesTheDimensionsAboveIt) {
  const std::string path = scratch();
  auto file = create(path);
  file.set_coordinate("/x", std::vector<double>{1, 2, 3});
  for (int step = 0; step < 5; ++step) {
    const std::string group = "/step_" + std::to_string(step);
    auto u = file.define<float>(group + "/u", {{"cell", 4}, {"x", 3}});
    put_boxes<float>(u, mine(cut({4, 3}, n_ranks())), 0, rough_value<float>);
    file.end_step();
  }
  file.close();
  if (!is_root()) return;
  EXPECT_EQ(scales(path, "/step_0/u"), (Names{"/step_0/cell", "/x"}));
  EXPECT_EQ(scales(path, "/step_4/u"), (Names{"/step_4/cell", "/x"}));
}

TEST(ApiDimensions, SeveralStepsInAChunkAndALaterCoordinate) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path) : open(path);
    auto u = file.define<double>("/u", {{"y", kPlane[0]}, {"x", kPlane[1]}},
                                 "over-time=on,chunk=4x24x10");
    if (run == 1) file.set_coordinate("/x", std::vector<double>(kPlane[1], 2.5));
    for (std::uint64_t step = 6 * static_cast<std::uint64_t>(run); step < 6U * (run + 1U); ++step) {
      put_boxes<double>(u, mine(cut(kPlane, n_ranks())), step, rough_value<double>);
      file.set_time(static_cast<double>(step));
      file.end_step();
    }
    file.close();
    if (!is_root()) continue;
    EXPECT_EQ(StockFile(path).shape("/u"), (Shape{6U * (run + 1U), kPlane[0], kPlane[1]}));
    EXPECT_EQ(StockFile(path).read<double>("/time").size(), 6U * (run + 1U));
    EXPECT_EQ(scales(path, "/u"), (Names{"/time", "/y", "/x"}));
  }
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).read<double>("/x"), std::vector<double>(kPlane[1], 2.5));
}

TEST(ApiDimensions, AFailedStepLeavesNoCoordinateAndCanBeRepeated) {
  const std::string path = scratch();
  auto file = create(path);
  for (int attempt = 0; attempt < 2; ++attempt) {
    Series series(file);
    series.put(0);
    if (attempt == 0 && rank() == n_ranks() - 1) {
      ASSERT_EQ(tailrace_file_fail_step(file.handle(), "no values"), TAILRACE_OK);
    }
    const Outcome outcome = outcome_of([&] { file.end_step(); });
    if (attempt == 0) expect_everywhere(outcome, TAILRACE_ERROR_INVALID_ARGUMENT, {"no values"});
    if (attempt == 1) {
      EXPECT_EQ(outcome.text, "");
    }
  }
  file.close();
  check_series(path, 1);
}

TEST(ApiDimensions, FrontLayout) {
  const std::string path = scratch();
  auto file = create(path, "layout=front");
  auto u = file.define<double>("/g/u", {{"y", kPlane[0]}, {"x", kPlane[1]}});
  file.set_coordinate("/x", std::vector<double>(kPlane[1], 0.25), "m");
  put_boxes<double>(u, mine(cut(kPlane, n_ranks())), 0, rough_value<double>);
  file.close();
  if (!is_root()) return;
  EXPECT_EQ(scales(path, "/g/u"), (Names{"/g/y", "/x"}));
  EXPECT_EQ(StockFile(path).read<double>("/x"), std::vector<double>(kPlane[1], 0.25));
}

/// Runs `define` and a step, and expects the same failure of the step, or of a call before it, on
/// every rank. Afterwards the file takes a step that is right.
template <class Define>
void expect_refused(tailrace_error code, std::initializer_list<const char*> parts, Define&& define,
                    const std::string& options = "") {
  const std::string path = scratch();
  auto file = create(path, "replace=on," + options);
  (void)outcome_of([&] { define(file); });
  expect_everywhere(outcome_of([&] { file.end_step(); }), code, parts);
  Series series(file);
  for (std::uint64_t step = 0; step < 2; ++step) {
    series.put(step);
    file.end_step();
  }
  file.close();
  check_series(path, 2);
}

void define_and_put(tailrace::File& file, const std::string& path, tailrace::Dimensions shape,
                    const std::string& options = "", const std::string& time_name = "") {
  auto field = file.define<float>(path, shape, options, time_name);
  put_boxes<float>(field, mine(cut(shape.shape(), n_ranks())), 0, rough_value<float>);
}

TEST(ApiDimensions, MisfitsAreNamedOnEveryRank) {
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT,
                 {"field \"/b\": dimension \"x\" has length 5, but 4 in \"/a\""}, [](auto& file) {
                   define_and_put(file, "/a", {{"x", 4}});
                   define_and_put(file, "/b", {{"y", 4}, {"x", 5}});
                 });
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT,
                 {"field \"/a\": dimension \"x\" has length 4, but 3 in \"/x\""}, [](auto& file) {
                   define_and_put(file, "/a", {{"x", 4}});
                   file.set_coordinate("/x", std::array<float, 3>{});
                 });
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT,
                 {"field \"/a\": dimension \"x\" has length 4, but 3 in \"/x\""}, [](auto& file) {
                   file.set_coordinate("/x", std::array<float, 3>{});
                   define_and_put(file, "/a", {{"x", 4}}, "over-time=on,chunk=3x4");
                 });
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT, {"field \"/a\"", "time", "grows with the steps"},
                 [](auto& file) {
                   define_and_put(file, "/a", {{"time", 4}});
                   file.set_time(1);
                 });
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT, {"field \"/a\", dimension \"b/c\""},
                 [](auto& file) {
                   define_and_put(file, "/a", {{"b/c", 4}});
                 });
  expect_refused(TAILRACE_ERROR_INVALID_ARGUMENT, {"field \"/a\"", "needs over-time=on"},
                 [](auto& file) {
                   define_and_put(file, "/a", {{"x", 4}}, "", "clock");
                 });
  expect_refused(TAILRACE_ERROR_ALREADY_EXISTS,
                 {"field \"/x\": dimension \"x\" of \"/a\" needs the name \"/x\""}, [](auto& file) {
                   define_and_put(file, "/x", {4});
                   define_and_put(file, "/a", {{"x", 4}});
                 });
  expect_refused(TAILRACE_ERROR_ALREADY_EXISTS, {"coordinate \"/x\": \"/x\" is a field"},
                 [](auto& file) {
                   define_and_put(file, "/x", {4});
                   file.set_coordinate("/x", std::array<float, 4>{});
                 });
  if (n_ranks() == 1) return;
  expect_refused(TAILRACE_ERROR_DISAGREEMENT, {"ranks disagree on coordinate \"/x\""},
                 [](auto& file) {
                   file.set_coordinate("/x", std::array<int, 2>{1, rank()});
                 });
}

TEST(ApiDimensions, EntriesOfFieldsThatShareATimeBelongTogether) {
  const std::string path = scratch();
  auto file = create(path);
  auto a = file.define<float>("/a", {{"x", 4}}, "over-time=on");
  auto b = file.define<float>("/b", {{"x", 4}}, "over-time=on");
  auto rare = file.define<float>("/rare", {{"x", 4}}, "over-time=on", "rare_time");
  const auto put = [&](const Field<float>& field) {
    put_boxes<float>(field, mine(cut({4}, n_ranks())), 0, rough_value<float>);
  };
  put(a);
  put(b);
  put(rare);
  file.end_step();
  put(a);
  file.end_step();
  put(a);
  put(b);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"field \"/b\"", "length 2 along dimension \"time\", which has length 3"});
  put(a);
  put(rare);
  file.end_step();
  auto late = file.define<float>("/late", {{"x", 4}}, "over-time=on");
  put(a);
  put(late);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"field \"/late\"", "length 1 along dimension \"time\", which has length 4"});
  file.close();
  if (!is_root()) return;
  EXPECT_EQ(scales(path, "/rare"), (Names{"/rare_time", "/x"}));
  EXPECT_EQ(StockFile(path).shape("/rare_time"), Shape{2});
  EXPECT_EQ(StockFile(path).shape("/time"), Shape{3});
}

TEST(ApiDimensions, AContinuedFileKeepsItsNames) {
  const std::string path = scratch();
  {
    auto file = create(path);
    Series series(file);
    series.put(0);
    file.close();
  }
  {
    auto file = open(path);
    auto u = file.define<double>("/u", {{"lat", kPlane[0]}, {"x", kPlane[1]}}, "over-time=on");
    put_boxes<double>(u, mine(cut(kPlane, n_ranks())), 1, rough_value<double>);
    file.set_time(0.5);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/u\"", "(time, y, x), not (time, lat, x)"});
    file.set_coordinate("/x", std::vector<float>(kPlane[1], 9));
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_ALREADY_EXISTS,
                      {"coordinate \"/x\"", "with other values"});
    file.set_coordinate("/u/z", std::vector<float>(3, 9));
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"coordinate \"/u/z\": \"/u\" is a field"});
    auto late = file.define<float>("/late", {{"y", kPlane[0]}}, "over-time=on");
    put_boxes<float>(late, mine(cut({kPlane[0]}, n_ranks())), 1, rough_value<float>);
    Series series(file);
    series.put(1);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/late\"", "length 1 along dimension \"time\", which has length 2"});
    file.close();
  }
  auto file = open(path);
  Series series(file);
  series.put(1);
  file.close();
  check_series(path, 2);
}

/// A finished run that is started again defines and sets everything once more, and has no step.
TEST(ApiDimensions, AFinishedRunStartedAgainNeedsNoStep) {
  const std::string path = scratch();
  for (const char* chunk : {"", ",chunk=2x24x10"}) {
    for (int run = 0; run < 3; ++run) {
      auto file = run == 0 ? create(path, "replace=on") : open(path);
      auto u = file.define<double>("/u", {{"y", kPlane[0]}, {"x", kPlane[1]}},
                                   std::string("over-time=on") + chunk);
      u.set_attribute("units", "K");
      file.set_coordinate("/x", std::vector<int>(kPlane[1], 4));
      if (run == 2) file.set_attribute("/", "finished", 1);
      if (run == 0) {
        put_boxes<double>(u, mine(cut(kPlane, n_ranks())), 0, rough_value<double>);
        file.end_step();
      }
      EXPECT_EQ(outcome_of([&] { file.close(); }).text, "");
    }
    if (!is_root()) continue;
    const StockFile stock(path);
    EXPECT_EQ(stock.shape("/u"), (Shape{1, kPlane[0], kPlane[1]}));
    EXPECT_TRUE(stock.has_attribute("/", "finished"));
  }
}

TEST(ApiDimensions, AFileWithoutNamesGetsThemWhenItIsContinued) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path) : open(path);
    const tailrace::Dimensions plain(kPlane);
    const tailrace::Dimensions named{{"y", kPlane[0]}, {"x", kPlane[1]}};
    auto u = file.define<double>("/u", run == 0 ? plain : named, "over-time=on");
    put_boxes<double>(u, mine(cut(kPlane, n_ranks())), 0, rough_value<double>);
    file.close();
  }
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).shape("/u"), (Shape{2, kPlane[0], kPlane[1]}));
  EXPECT_EQ(scales(path, "/u"), (Names{"/time", "/y", "/x"}));
}

// --- times: each entry of a field has one, or none has

/// One field over time, put with or without the time of its step.
struct Timed {
  explicit Timed(tailrace::File& opened, const std::string& options = "over-time=on",
                 const std::string& path = "/u")
      : file(&opened), u(opened.define<double>(path, {{"x", 8}}, options)) {}
  void put(std::uint64_t step) {
    put_boxes<double>(u, mine(cut({8}, n_ranks())), step, rough_value<double>);
  }
  void set_time(std::uint64_t step) { file->set_time(static_cast<double>(step), "s"); }
  void write(std::uint64_t step) {
    put(step);
    set_time(step);
    file->end_step();
  }
  tailrace::File* file;
  Field<double> u;
};

void check_times(const std::string& path, std::uint64_t n_steps) {
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).shape("/u"), (Shape{n_steps, 8}));
  EXPECT_EQ(StockFile(path).shape("/time"), Shape{n_steps});
}

TEST(ApiTimes, AForgottenTimeFailsItsOwnStep) {
  for (const char* mode : {"mode=sync", "mode=async"}) {
    for (const char* field : {"over-time=on", "over-time=on,chunk=3x8"}) {
      const std::string path = scratch();
      auto file = create(path, std::string("replace=on,") + mode);
      Timed timed(file, field);
      timed.write(0);
      timed.write(1);
      timed.put(2);  // The last step, or one in the middle.
      expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                        {"field \"/u\"", "entry 2", "without a time", "set_time"});
      timed.write(2);
      timed.write(3);
      file.close();
      check_times(path, 4);
    }
  }
}

TEST(ApiTimes, AForgottenTimeFailsTheFirstStepOfAContinuedFile) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path) : open(path);
    Timed timed(file);
    if (run == 1) {
      timed.put(1);
      expect_everywhere(outcome_of([&] { file.close(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                        {"field \"/u\"", "entry 1", "set_time"});
      continue;
    }
    timed.write(0);
    file.close();
  }
  check_times(path, 1);
}

TEST(ApiTimes, ALateFirstTimeNamesTheEntriesWithoutOne) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path) : open(path);
    Timed timed(file);
    for (int step = 0; step < 2 && run == 0; ++step) {
      timed.put(0);
      file.end_step();
    }
    timed.put(2);
    timed.set_time(2);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/time\"", "entries 0 to 1 of \"/u\"", "set_time"});
    file.close();
  }
}

TEST(ApiTimes, ATimeWithoutAFieldIsAnError) {
  for (const char* field : {"over-time=on", "over-time=on,chunk=3x8"}) {
    const std::string path = scratch();
    auto file = create(path, "replace=on");
    Timed timed(file, field);
    timed.write(0);
    for (int attempt = 0; attempt < 2; ++attempt) {
      timed.set_time(1);
      expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                        {"field \"/time\"", "puts no field over dimension \"time\"", "\"/u\""});
    }
    timed.write(1);
    file.close();
    check_times(path, 2);
  }
}

TEST(ApiTimes, TwoTimesInAStepAreNamed) {
  const std::string path = scratch();
  auto file = create(path);
  Timed timed(file);
  timed.write(0);
  timed.put(1);
  timed.set_time(1);
  EXPECT_NE(outcome_of([&] { timed.set_time(1); }).text.find("called twice in this step"),
            std::string::npos);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"field \"/time\": set_time was called twice in this step"});
  timed.write(1);
  file.close();
  check_times(path, 2);
}

/// One field over time without names.
struct Unnamed {
  explicit Unnamed(tailrace::File& opened, const std::string& options)
      : file(&opened), u(opened.define<double>("/u", {8}, options)) {}
  void put(std::uint64_t step) {
    put_boxes<double>(u, mine(cut({8}, n_ranks())), step, rough_value<double>);
  }
  void write(std::uint64_t step) {
    put(step);
    file->set_time(static_cast<double>(step), "s");
    file->end_step();
  }
  tailrace::File* file;
  Field<double> u;
};

constexpr std::array<const char*, 2> kChunksOfOneAndOfThreeSteps = {"over-time=on",
                                                                    "over-time=on,chunk=3x8"};

TEST(ApiTimes, AFieldWithoutNamesNeedsATimeInEachStep) {
  for (const char* mode : {"mode=sync", "mode=async"}) {
    for (const char* options : kChunksOfOneAndOfThreeSteps) {
      const std::string path = scratch();
      for (int run = 0; run < 2; ++run) {
        auto file = run == 0 ? create(path, std::string(mode) + ",replace=on") : open(path, mode);
        Unnamed timed(file, options);
        const std::uint64_t first = run == 0 ? 0 : 4;
        for (std::uint64_t step = first; step < first + 2; ++step) timed.write(step);
        timed.put(first + 2);
        const std::string entry = "entry " + std::to_string(first + 2);
        expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                          {"field \"/u\"", entry.c_str(), "without a time", "set_time"});
        timed.write(first + 2);
        timed.write(first + 3);
        file.close();
      }
      check_times(path, 8);
    }
  }
}

TEST(ApiTimes, AFieldWithoutNamesNeedsATimeInAContinuedFile) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path) : open(path);
    Unnamed timed(file, "over-time=on");
    if (run == 0) {
      timed.write(0);
      file.close();
      continue;
    }
    timed.put(1);
    expect_everywhere(outcome_of([&] { file.close(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/u\"", "entry 1", "set_time"});
  }
  check_times(path, 1);
}

TEST(ApiTimes, ALateFirstTimeBesideAFieldWithoutNamesIsAnError) {
  for (const char* options : kChunksOfOneAndOfThreeSteps) {
    const std::string path = scratch();
    auto file = create(path, "replace=on");
    Unnamed timed(file, options);
    for (std::uint64_t step = 0; step < 2; ++step) {
      timed.put(step);
      file.end_step();
    }
    timed.put(2);
    file.set_time(2);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/u\"", "length 3, but \"/time\" has 1 entry", "set_time",
                       "from the first one on"});
    timed.put(2);
    file.end_step();
    file.close();
    if (!is_root()) continue;
    EXPECT_EQ(StockFile(path).shape("/u"), (Shape{3, 8}));
    EXPECT_FALSE(StockFile(path).has("/time"));
  }
}

/// The named field has a time every second step; the other one has entries of its own.
TEST(ApiTimes, AFieldWithoutNamesNeedsNoTimeBesideANamedOne) {
  const std::string path = scratch();
  for (int run = 0; run < 2; ++run) {
    auto file = run == 0 ? create(path, "replace=on") : open(path);
    auto u = file.define<double>("/u", {{"x", 8}}, "over-time=on");
    auto diagnostic = file.define<double>("/diagnostic", {8}, "over-time=on");
    for (std::uint64_t step = 0; step < 4; ++step) {
      const std::uint64_t entry = 4 * static_cast<std::uint64_t>(run) + step;
      put_boxes<double>(diagnostic, mine(cut({8}, n_ranks())), entry, rough_value<double>);
      if (step % 2 == 0) {
        put_boxes<double>(u, mine(cut({8}, n_ranks())), entry, rough_value<double>);
        file.set_time(static_cast<double>(entry), "s");
      }
      EXPECT_EQ(outcome_of([&] { file.end_step(); }).text, "") << step;
    }
    file.close();
  }
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).shape("/diagnostic"), (Shape{8, 8}));
  EXPECT_EQ(StockFile(path).shape("/time"), (Shape{4}));
}

TEST(ApiTimes, ValuesThatDifferBetweenRanksAreADisagreement) {
  if (n_ranks() == 1) return;
  for (const char* mode : {"mode=sync", "mode=async"}) {
    const std::string path = scratch();
    auto file = create(path, std::string(mode) + ",replace=on");
    Timed timed(file);
    timed.write(0);
    timed.put(1);
    file.set_time(is_last() ? 2.5 : 1.5);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_DISAGREEMENT,
                      {"set_time for \"/time\"", "rank 0 has 1.5", "has 2.5"});
    timed.put(1);
    file.set_time(is_last() ? -0.0 : 0.0);  // Equal times.
    EXPECT_EQ(outcome_of([&] { file.end_step(); }).text, "");
    file.close();
    check_times(path, 2);
  }
}

TEST(ApiTimes, ARankThatMissesAnEndStepIsAsked) {
  if (n_ranks() == 1) return;
  const std::string who = "did rank " + std::to_string(n_ranks() - 1) + " miss an end_step?";
  for (const bool with_times : {true, false}) {
    const std::string path = scratch();
    auto file = create(path, "replace=on");
    auto u = file.define<double>("/u", {{"x", 8 * static_cast<std::uint64_t>(n_ranks())}},
                                 "over-time=on");
    const Box box({8 * static_cast<std::uint64_t>(rank())}, {8});
    const std::vector<double> values(8, 1.5);
    Outcome outcome;
    for (int step = 0; step < 2; ++step) {
      if (with_times) (void)outcome_of([&] { file.set_time(step); });
      u.put(box, values);
      const bool misses = is_last() && step == 0;
      if (!misses && outcome.text.empty()) outcome = outcome_of([&] { file.end_step(); });
      if (!is_last()) break;
    }
    expect_everywhere(outcome,
                      with_times ? TAILRACE_ERROR_INVALID_ARGUMENT : TAILRACE_ERROR_BAD_COVERAGE,
                      {who.c_str(), with_times ? "set_time was called twice" : "boxes overlap"});
    file.close();
  }
}

// --- names that nothing has

TEST(ApiNames, AnAttributeNeedsAnObject) {
  const std::string path = scratch();
  auto file = create(path);
  for (int attempt = 0; attempt < 2; ++attempt) {
    Timed timed(file, "over-time=on", "/air/temperature");
    timed.put(0);
    timed.set_time(0);
    file.set_attribute(attempt == 0 ? "/air/tempreature" : "/air/temperature", "units", "K");
    file.set_attribute("/air", "made_by", "a model");
    file.set_attribute("/air/x", "long_name", "a dimension without values");
    file.set_attribute("/notes/", "text", "in a group of its own");
    const Outcome outcome = outcome_of([&] { file.end_step(); });
    if (attempt == 1) {
      EXPECT_EQ(outcome.text, "");
      continue;
    }
    expect_everywhere(
        outcome, TAILRACE_ERROR_NOT_FOUND,
        {"attribute \"units\" of \"/air/tempreature\"", "did you mean \"/air/temperature\"?"});
  }
  file.close();
  auto again = open(path);
  again.set_attribute("/air/temperature", "valid_max", 400);
  again.set_attribute("/notes", "more", "text");
  again.set_attribute("/aire", "units", "K");
  expect_everywhere(outcome_of([&] { again.close(); }), TAILRACE_ERROR_NOT_FOUND, {"\"/aire\""});
  if (!is_root()) return;
  EXPECT_EQ(StockFile(path).text("/notes", "text"), "in a group of its own");
}

TEST(ApiNames, ACoordinateNeedsADimension) {
  for (const char* options : {"over-time=on", "over-time=on,chunk=3x8"}) {
    const std::string path = scratch();
    auto file = create(path, "replace=on");
    Timed timed(file, options);
    timed.put(0);
    timed.set_time(0);
    file.set_coordinate("/xx", std::vector<double>(8, 1), "m");
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"coordinate \"/xx\": no field has a dimension \"xx\"", "\"/x\""});
    Timed right(file, options);
    right.put(0);
    right.set_time(0);
    file.set_coordinate("/x", std::vector<double>(8, 1), "m");
    file.end_step();
    file.close();
    if (is_root()) {
      EXPECT_EQ(StockFile(path).text("/x", "units"), "m");
    }
  }
}

TEST(ApiNames, RecoverRefusesTheFileOfARunningJob) {
  const std::string path = scratch();
  auto file = create(path);
  Timed timed(file);
  for (int step = 0; step < 3; ++step) {
    expect_everywhere(
        outcome_of([&] { (void)tailrace::File::recover(path, tailrace::mpi(MPI_COMM_WORLD)); }),
        TAILRACE_ERROR_IO, {"is being written by"});
    timed.write(static_cast<std::uint64_t>(step));
  }
  file.close();
  EXPECT_TRUE(tailrace::File::recover(path, tailrace::mpi(MPI_COMM_WORLD)));
  check_times(path, 3);
}

}  // namespace
