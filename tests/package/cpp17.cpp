// A C++17 program over all of tailrace.hpp and reader.hpp that older standards could break. It
// writes FILE and reads it back; python/test_cpp17.py compiles it by both standards.

#include <array>
#include <cstdio>
#include <string_view>
#include <tailrace/reader.hpp>
#include <tailrace/tailrace.hpp>
#include <vector>

namespace {

template <class Values, class = void>
constexpr bool can_be_put = false;
template <class Values>
constexpr bool
    can_be_put<Values, std::void_t<decltype(std::declval<const tailrace::Field<double>&>().put(
                           std::declval<Values>()))>> = true;
template <class Values, class = void>
constexpr bool can_be_viewed = false;
template <class Values>
constexpr bool can_be_viewed<
    Values, std::void_t<decltype(tailrace::view(std::declval<Values>(), tailrace::Extents{1}))>> =
    true;

// Values that die at the end of the statement are refused when the program is compiled.
static_assert(!can_be_put<std::vector<double>> && !can_be_put<std::array<double, 3>>);
static_assert(!can_be_put<const std::vector<double>> && !can_be_put<std::vector<float>&>);
static_assert(can_be_put<std::vector<double>&> && can_be_put<const std::vector<double>&>);
static_assert(can_be_put<tailrace::Span<const double>> && can_be_put<tailrace::Span<double>>);
static_assert(!can_be_viewed<std::vector<double>> && !can_be_viewed<std::array<double, 1>>);
static_assert(can_be_viewed<std::vector<double>&> && can_be_viewed<const double*>);

/// A class shaped like std::mdspan.
struct Strided {
  using value_type = double;
  double* data_handle() const { return values; }
  std::size_t rank() const { return 1; }
  int extent(std::size_t) const { return 4; }
  int stride(std::size_t) const { return 2; }
  double* values;
};

int write(const char* path) {
  tailrace::File file = tailrace::File::create(
      path, tailrace::serial(), tailrace::Options().codec("deflate").set("threads", 1));
  const int ny = 4;
  const std::size_t nx = 6;
  auto u = file.define<double>("/u", {{"y", ny}, {"x", nx}});
  auto v = file.define<float>("/v", std::vector<int>{ny});
  auto strided = file.define<double>("/strided", {4});
  auto raw = file.define("/raw", TAILRACE_I32, {3});
  file.set_coordinate("/x", std::vector<double>{0, 1, 2, 3, 4, 5}, "m");
  file.set_attribute("/", "levels", std::array<int, 2>{1, 2});
  u.set_attribute("units", "K");
  std::vector<double> halo(6 * (nx + 2), -1.0);
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < nx; ++x) {
      halo[(y + 1) * (nx + 2) + x + 1] = 10.0 * static_cast<double>(y) + static_cast<double>(x);
    }
  }
  u.put({{0, 0}, {ny, nx}}, tailrace::view(halo, {ny + 2, nx + 2}).interior(1));
  const float four[4] = {1, 2, 3, 4};
  v.put(four);
  std::array<double, 8> pairs{0, 9, 1, 9, 2, 9, 3, 9};
  strided.put_copy(tailrace::Box::from_start_end({0}, {4}), Strided{pairs.data()});
  const std::vector<int> numbers = {7, 8, 9};
  raw.put({0, 3},
          tailrace::Span<const std::byte>(reinterpret_cast<const std::byte*>(numbers.data()), 12));
  const tailrace::StepReport report = file.end_step();
  file.idle_until([] { return true; });
  file.close();
  return report.fields.empty() ? 1 : 0;
}

int read(const char* path) {
  tailrace::Reader reader = tailrace::Reader::open(path);
  const std::vector<double> u = reader.read<double>("/u", {{1, 0}, {2, 6}});
  std::vector<float> v(2);
  reader.read("/v", {{1}, {2}}, v);
  const std::vector<double> strided = reader.read<double>("/strided");
  const std::string units = reader.attribute<std::string>("/u", "units");
  const bool right = u[0] == 10 && u[11] == 25 && v[0] == 2 && strided[3] == 3 && units == "K";
  std::printf("%s\n", right ? "as written" : "wrong values");
  return right ? 0 : 1;
}

}  // namespace

int main(int, char** argv) { return write(argv[1]) != 0 ? 1 : read(argv[1]); }
