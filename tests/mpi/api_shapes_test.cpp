// The public API on every kind of field and decomposition: HDF5 must read the values that were put.

#include <cmath>
#include <functional>
#include <limits>

#include "api_support.hpp"

namespace {

using namespace api_test;

/// Fields of one file, whose values are compared after the file is closed.
class RoundTrip {
 public:
  RoundTrip() : path_(scratch()), file_(create(path_)) {}

  /// Adds a field whose boxes are dealt from `first_rank` on.
  template <class T>
  void add(const Shape& shape, const std::vector<Box>& boxes, const std::string& options = {},
           int first_rank = 0) {
    const std::string name = "/group/field_" + std::to_string(n_fields_);
    const std::uint64_t seed = n_fields_++;
    auto field = file_.define<T>(name, shape, options);
    put_boxes<T>(field, mine(boxes, first_rank), seed, rough_value<T>);
    checks_.push_back([=](const StockFile& stock) {
      EXPECT_EQ(stock.shape(name), shape) << options;
      EXPECT_EQ(differences(stock.read<T>(name), all_values<T>(shape, seed, rough_value<T>)), "")
          << options;
    });
  }

  void finish() {
    file_.close();
    if (!is_root()) return;
    const StockFile stock(path_);
    for (const auto& check : checks_) check(stock);
  }

 private:
  std::string path_;
  tailrace::File file_;
  std::uint64_t n_fields_ = 0;
  std::vector<std::function<void(const StockFile&)>> checks_;
};

TEST(ApiShapes, OneToFourDimensionsThatDoNotDivide) {
  RoundTrip trip;
  for (const Shape& shape : {Shape{1009}, Shape{61, 47}, Shape{13, 17, 11}, Shape{5, 7, 6, 9}}) {
    trip.add<float>(shape, cut(shape, n_ranks()));
    trip.add<double>(shape, cut(shape, 3 * n_ranks() + 1), "", 1);
  }
  trip.finish();
}

TEST(ApiShapes, BoxesThatCrossChunkBorders) {
  const std::vector<std::pair<Shape, const char*>> cases = {
      {{61, 47}, "chunk=16x16"},       {{61, 47}, "chunk=61x1"},
      {{61, 47}, "chunk=64x64"},       {{61, 47}, "chunk=2k"},
      {{13, 17, 11}, "chunk=5x4x3"},   {{13, 17, 11}, "chunk=1x17x2"},
      {{5, 7, 6, 9}, "chunk=2x3x4x5"}, {{1009}, "chunk=256"}};
  RoundTrip trip;
  for (const auto& [shape, chunk] : cases) {
    trip.add<float>(shape, cut(shape, n_ranks()), chunk);
    trip.add<std::int32_t>(shape, cut(shape, 5 * n_ranks()), chunk, 2);
  }
  trip.finish();
}

TEST(ApiShapes, LayoutsAndCodecs) {
  const Shape shape{45, 38};
  RoundTrip trip;
  for (const char* options :
       {"layout=claimed,codec=none", "layout=claimed,codec=deflate,level=9", "layout=dense",
        "layout=dense,codec=none,chunk=8x8", "layout=contiguous,codec=none",
        "layout=claimed,codec=deflate,chunk=7x9"}) {
    trip.add<double>(shape, cut(shape, n_ranks() + 2), options);
  }
  trip.finish();
}

TEST(ApiShapes, OneRankHasEverything) {
  const Shape shape{40, 30};
  RoundTrip trip;
  trip.add<float>(shape, {Box({0, 0}, shape)}, "chunk=16x16", n_ranks() - 1);
  trip.finish();
}

template <class T>
void add_all_shapes(RoundTrip& trip) {
  const Shape shape{29, 31};
  trip.add<T>(shape, cut(shape, n_ranks() + 1), "chunk=10x10");
  trip.add<T>({}, cut({}, 1), "", n_ranks() - 1);
  trip.add<T>({0, 7}, {});
}

TEST(ApiShapes, EveryDtype) {
  RoundTrip trip;
  add_all_shapes<float>(trip);
  add_all_shapes<double>(trip);
  add_all_shapes<std::int8_t>(trip);
  add_all_shapes<std::int16_t>(trip);
  add_all_shapes<std::int32_t>(trip);
  add_all_shapes<std::int64_t>(trip);
  add_all_shapes<std::uint8_t>(trip);
  add_all_shapes<std::uint16_t>(trip);
  add_all_shapes<std::uint32_t>(trip);
  add_all_shapes<std::uint64_t>(trip);
  trip.finish();
}

TEST(ApiShapes, FileOptionsAreDefaultsOfFields) {
  const std::string path = scratch();
  auto file = create(path, "codec=none,chunk=8x8,threads=2,memory=64MiB,buffer=64k,align=512");
  const Shape shape{33, 20};
  auto plain = file.define<float>("/plain", shape);
  auto packed = file.define<float>("/packed", shape, "codec=deflate");
  // The chunk shape applies only to fields with as many dimensions.
  auto line = file.define<float>("/line", Shape{30});
  put_boxes<float>(line, mine(cut(Shape{30}, n_ranks())), 3, rough_value<float>);
  put_boxes<float>(plain, mine(cut(shape, n_ranks())), 1, rough_value<float>);
  put_boxes<float>(packed, mine(cut(shape, n_ranks())), 2, rough_value<float>);
  const tailrace::StepReport report = file.end_step();
  file.close();
  ASSERT_EQ(report.fields.size(), 3U);
  EXPECT_EQ(report.fields[0].codec, "none");
  EXPECT_EQ(report.fields[1].codec, "deflate");
  EXPECT_EQ(report.fields[0].n_chunks, 15U);
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(differences(stock.read<float>("/plain"), all_values<float>(shape, 1, rough_value)), "");
  EXPECT_EQ(differences(stock.read<float>("/packed"), all_values<float>(shape, 2, rough_value)),
            "");
}

template <class T>
void put_extremes(tailrace::File& file, const std::string& name, std::vector<T>& values) {
  using Limits = std::numeric_limits<T>;
  values = {Limits::lowest(), Limits::max(), Limits::min(), T(0), T(1)};
  auto field = file.define(name, tailrace::dtype_of<T>(), {values.size()}, "codec=deflate");
  if (is_last()) field.put_copy(std::as_bytes(std::span(values)));
}

TEST(ApiShapes, ExtremesSurviveExactly) {
  const std::string path = scratch();
  auto file = create(path);
  std::vector<float> f32;
  std::vector<double> f64;
  std::vector<std::int8_t> i8;
  std::vector<std::int64_t> i64;
  std::vector<std::uint16_t> u16;
  std::vector<std::uint64_t> u64;
  put_extremes(file, "/f32", f32);
  put_extremes(file, "/f64", f64);
  put_extremes(file, "/i8", i8);
  put_extremes(file, "/i64", i64);
  put_extremes(file, "/u16", u16);
  put_extremes(file, "/u64", u64);
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(differences(stock.read<float>("/f32"), f32), "");
  EXPECT_EQ(differences(stock.read<double>("/f64"), f64), "");
  EXPECT_EQ(differences(stock.read<std::int8_t>("/i8"), i8), "");
  EXPECT_EQ(differences(stock.read<std::int64_t>("/i64"), i64), "");
  EXPECT_EQ(differences(stock.read<std::uint16_t>("/u16"), u16), "");
  EXPECT_EQ(differences(stock.read<std::uint64_t>("/u64"), u64), "");
}

TEST(ApiShapes, ScalarsAndEmptyDatasets) {
  const std::string path = scratch();
  auto file = create(path);
  const double pi = 3.14159;
  auto scalar = file.define<double>("/scalar", {});
  if (is_root()) scalar.put(std::span(&pi, 1));
  file.define<float>("/nothing", {0});
  auto none = file.define<std::int32_t>("/none", {3, 0, 5});
  none.put(Box({0, 0, 0}, {3, 0, 5}), {});
  const tailrace::StepReport report = file.end_step();
  EXPECT_EQ(report.raw_bytes, sizeof pi);
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(stock.read<double>("/scalar"), std::vector<double>{pi});
  EXPECT_EQ(stock.shape("/scalar"), Shape{});
  EXPECT_EQ(stock.shape("/nothing"), Shape{0});
  EXPECT_EQ(stock.shape("/none"), (Shape{3, 0, 5}));
}

TEST(ApiShapes, ParticlesWithAnotherCountOnEachRank) {
  const std::string path = scratch();
  auto file = create(path, "chunk=4k");
  std::mt19937 random(17);
  for (int step = 0; step < 3; ++step) {
    std::vector<std::uint64_t> counts;
    std::uint64_t total = 0;
    std::uint64_t first = 0;
    for (int r = 0; r < n_ranks(); ++r) {
      counts.push_back((r + step) % 3 == 1 ? 0 : random() % 5000);
      if (r < rank()) first += counts.back();
      total += counts.back();
    }
    const Box box(first, counts[static_cast<std::size_t>(rank())]);
    const std::string group = "/step_" + std::to_string(step);
    auto x = file.define<double>(group + "/x", {total});
    auto id = file.define<std::int64_t>(group + "/id", {total});
    put_boxes<double>(x, {box}, 1, rough_value<double>);
    put_boxes<std::int64_t>(id, {box}, 2, rough_value<std::int64_t>);
    file.end_step();
    if (!is_root()) continue;
    const StockFile stock(path);  // while the file is still being written
    EXPECT_EQ(
        differences(stock.read<double>(group + "/x"), all_values<double>({total}, 1, rough_value)),
        "");
    EXPECT_EQ(differences(stock.read<std::int64_t>(group + "/id"),
                          all_values<std::int64_t>({total}, 2, rough_value)),
              "");
  }
  file.close();
}

TEST(ApiShapes, BoundsHoldOnEveryValue) {
  const std::string path = scratch();
  const Shape shape{50, 60};
  auto file = create(path, "codec=portable,chunk=16x16,verify=on");
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"/abs", "bound=abs=1e-3"}, {"/rel", "bound=rel=1e-4"}, {"/psnr", "bound=psnr=70"}};
  std::vector<tailrace::Field<double>> defined;
  for (const auto& [name, options] : fields) {
    defined.push_back(file.define<double>(name, shape, options));
    put_boxes<double>(defined.back(), mine(cut(shape, 2 * n_ranks())), 3, smooth_value<double>);
  }
  auto single = file.define<float>("/single", shape, "bound=abs=1e-2");
  put_boxes<float>(single, mine(cut(shape, n_ranks())), 4, smooth_value<float>);
  const tailrace::StepReport report = file.end_step();
  file.close();

  ASSERT_EQ(report.fields.size(), 4U);
  const auto expected = all_values<double>(shape, 3, smooth_value);
  const auto [least, greatest] = std::minmax_element(expected.begin(), expected.end());
  const double range = *greatest - *least;
  EXPECT_DOUBLE_EQ(report.fields[0].absolute_bound, 1e-3);
  EXPECT_NEAR(report.fields[1].absolute_bound, 1e-4 * range, 1e-12);
  EXPECT_LE(report.fields[2].absolute_bound, range * std::pow(10.0, -70.0 / 20) * (1 + 1e-12));
  for (const auto& field : report.fields) {
    EXPECT_TRUE(field.verified);
    EXPECT_LE(field.max_error, field.absolute_bound);
    EXPECT_GT(field.max_error, 0);
    EXPECT_GT(field.ratio, 1);
  }
  if (!is_root()) return;
  const StockFile stock(path);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto found = stock.read<double>(fields[f].first);
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      largest = std::max(largest, std::abs(found[i] - expected[i]));
    }
    EXPECT_LE(largest, report.fields[f].absolute_bound) << fields[f].first;
    EXPECT_NEAR(largest, report.fields[f].max_error, 1e-9) << fields[f].first;
  }
}

TEST(ApiShapes, PointwiseBoundsHoldOnEveryValue) {
  const std::string path = scratch();
  const Shape shape{50, 60};
  auto file = create(path, "codec=portable,chunk=16x16,verify=on");
  const auto values = [](std::uint64_t index, std::uint64_t seed) {
    if (index % 7 == 0) return 0.0;  // zeros stay zeros
    return std::exp(10 * smooth_value<double>(index, seed)) * (index % 3 == 0 ? -1 : 1);
  };
  auto field = file.define<double>("/x", shape, tailrace::Options().pointwise_bound(0.01));
  auto count = file.define<std::int32_t>("/n", shape, "bound=pw_rel=0.01");
  put_boxes<double>(field, mine(cut(shape, 2 * n_ranks())), 3, values);
  put_boxes<std::int32_t>(count, mine(cut(shape, n_ranks())), 4, rough_value<std::int32_t>);
  const tailrace::StepReport report = file.end_step();
  file.close();

  ASSERT_EQ(report.fields.size(), 2U);
  EXPECT_EQ(report.fields[0].bound, "pw_rel=0.01");
  EXPECT_EQ(report.fields[0].absolute_bound, 0);
  EXPECT_EQ(report.fields[0].pointwise_bound, 0.01);
  EXPECT_LE(report.fields[0].max_error, 0.01);
  EXPECT_EQ(report.fields[1].pointwise_bound, 0);
  if (!is_root()) return;
  const StockFile stock(path);
  const auto expected = all_values<double>(shape, 3, values);
  const auto found = stock.read<double>("/x");
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_LE(std::abs(found[i] - expected[i]), 0.01 * std::abs(expected[i]));
    if (expected[i] == 0) continue;
    largest = std::max(largest, std::abs(found[i] / expected[i] - 1));
  }
  EXPECT_NEAR(largest, report.fields[0].max_error, 1e-9);
  EXPECT_EQ(
      differences(stock.read<std::int32_t>("/n"), all_values<std::int32_t>(shape, 4, rough_value)),
      "");
  EXPECT_EQ(stock.text("/x", "tailrace_bound_mode"), "pw_rel");
  EXPECT_EQ(stock.numbers<double>("/x", "tailrace_bound_asked"), std::vector<double>{0.01});
}

TEST(ApiShapes, SpecialValuesSurviveALossyCodec) {
  const std::string path = scratch();
  const Shape shape{40, 16};
  auto values = all_values<float>(shape, 1, smooth_value<float>);
  values[3] = std::numeric_limits<float>::infinity();
  values[77] = -std::numeric_limits<float>::infinity();
  values[200] = std::numeric_limits<float>::quiet_NaN();
  values[300] = -999.0F;
  auto file = create(path);
  auto field = file.define<float>("/field", shape, "codec=portable,bound=rel=1e-3,fill=-999");
  for (const Box& box : mine(cut(shape, n_ranks()))) {
    std::vector<float> part;
    for (std::uint64_t i = 0; i < box.count[0]; ++i) {
      const auto row = values.begin() +
                       static_cast<std::ptrdiff_t>((box.start[0] + i) * shape[1] + box.start[1]);
      part.insert(part.end(), row, row + static_cast<std::ptrdiff_t>(box.count[1]));
    }
    field.put_copy(box, part);
  }
  const tailrace::StepReport report = file.end_step();
  file.close();
  EXPECT_LT(report.fields.at(0).absolute_bound, 0.03) << "the fill value is not part of the range";
  if (!is_root()) return;
  const auto found = StockFile(path).read<float>("/field");
  for (const std::size_t i : {3U, 77U, 300U}) EXPECT_EQ(found[i], values[i]);
  EXPECT_TRUE(std::isnan(found[200]));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isfinite(values[i])) {
      EXPECT_LE(std::abs(double(found[i]) - double(values[i])), report.fields[0].absolute_bound);
    }
  }
}

// Puts from a temporary, which is destroyed before end_step() reads it.
template <class Values>
concept CanBePut = requires(tailrace::Field<double> field, Values&& values) {
  field.put({{0}, {3}}, std::forward<Values>(values));
};
template <class Values>
concept CanBePutWhole = requires(tailrace::Field<double> field, Values&& values) {
  field.put(std::forward<Values>(values));
};
static_assert(!CanBePut<std::vector<double>> && !CanBePutWhole<std::vector<double>>);
static_assert(!CanBePut<const std::vector<double>> && !CanBePutWhole<std::array<double, 3>>);
static_assert(CanBePut<std::vector<double>&> && CanBePutWhole<const std::vector<double>&>);
static_assert(CanBePut<std::span<const double>> && CanBePutWhole<std::span<double>>);
static_assert(!CanBePut<std::vector<float>&> && !CanBePut<std::span<int>>);
static_assert(!tailrace::holds_another_type_than<const std::vector<double>&, double>);

TEST(ApiShapes, CopiesFromArraysOfAnyLayout) {
  const std::string path = scratch();
  const int nx = 7;  // Any integral types are accepted.
  const short ny = 5;
  constexpr unsigned n_ghosts = 2;
  auto file = create(path);
  auto inner = file.define<double>("/inner", {n_ranks() * nx, ny});
  auto turned = file.define<double>("/turned", std::array<int, 2>{n_ranks() * nx, ny});
  auto one = file.define<double>("/one", {1L});
  auto bytes = file.define("/bytes", TAILRACE_F32, {2, 3});
  {
    const std::size_t pitch = ny + 2 * n_ghosts;
    std::vector<double> padded((nx + 2 * n_ghosts) * pitch, -1);
    std::vector<double> by_columns(std::size_t{nx} * ny);
    for (std::size_t i = 0; i < nx; ++i) {
      for (std::size_t j = 0; j < ny; ++j) {
        const double value = 1000.0 * rank() + 10.0 * double(i) + double(j);
        padded[(i + n_ghosts) * pitch + j + n_ghosts] = value;
        by_columns[i + j * nx] = value;
      }
    }
    const Box own({rank() * nx, 0}, {nx, ny});
    inner.put_copy(own, std::span<const double>(padded).subspan(n_ghosts * pitch + n_ghosts),
                   {pitch, 1});
    turned.put_copy(own, by_columns, {1, nx});
    if (is_last()) one.put_copy({0, 1}, std::array{0.5, 7.0}, {99});
    const std::array<float, 6> numbers = {0, 1, 2, 3, 4, 5};
    if (is_last()) bytes.put_copy({{0, 0}, {2, 3}}, std::as_bytes(std::span(numbers)), {1, 2});
  }  // All values are destroyed here.
  file.end_step();
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  std::vector<double> expected;
  for (int r = 0; r < n_ranks(); ++r) {
    for (int i = 0; i < nx; ++i) {
      for (int j = 0; j < ny; ++j) expected.push_back(1000.0 * r + 10.0 * i + j);
    }
  }
  EXPECT_EQ(stock.read<double>("/inner"), expected);
  EXPECT_EQ(stock.read<double>("/turned"), expected);
  EXPECT_EQ(stock.read<double>("/one"), std::vector{0.5});
  EXPECT_EQ(stock.read<float>("/bytes"), (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST(ApiShapes, HolesGetTheFillValue) {
  const std::string path = scratch();
  const Shape shape{30, 20};
  auto file = create(path, "holes=on,chunk=8x8");
  auto field = file.define<float>("/holes", shape, "fill=-7.5");
  auto zeros = file.define<std::int32_t>("/untouched", shape);
  const Box box({5, 3}, {12, 9});
  const std::vector<float> values(box.n_elements(), 2.0F);
  if (is_last()) field.put(box, values);
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  std::vector<float> expected(600, -7.5F);
  for (std::size_t i = 5; i < 17; ++i)
    for (std::size_t j = 3; j < 12; ++j) expected[i * 20 + j] = 2.0F;
  EXPECT_EQ(differences(stock.read<float>("/holes"), expected), "");
  EXPECT_EQ(stock.read<std::int32_t>(zeros.path()), std::vector<std::int32_t>(600, 0));
}

}  // namespace
