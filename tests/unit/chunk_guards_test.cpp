// Guards of a chunk's values together: sums, and the order of neighbours. Exact sums and
// comparisons of neighbours judge them; they share no code with the encoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/trz.hpp"
#include "unit/trz_support.hpp"
#include "verbs/fidelity.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;

/// Waves around an offset, with noise.
template <class T>
std::vector<T> waves(const Shape& shape, double offset, double noise) {
  Random random(21);
  std::vector<T> values;
  for_each_position(whole_box(shape), [&](const Shape& at) {
    double value = offset + noise * (random.unit() - 0.5);
    for (std::size_t d = 0; d < at.size(); ++d) {
      value += std::sin(0.13 * static_cast<double>(at[d]) + static_cast<double>(d));
    }
    values.push_back(static_cast<T>(value));
  });
  return values;
}

/// Encodes, checks the bound, decodes.
template <class T>
std::vector<T> decoded(const Case& chunk, std::size_t* n_bytes = nullptr) {
  Workspace workspace;
  std::vector<std::byte> encoded;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &encoded)) << chunk.text();
  std::vector<T> values(chunk.n_values());
  EXPECT_TRUE(
      decode(encoded, std::as_writable_bytes(std::span(values)), chunk.type.book, workspace).ok());
  if (n_bytes != nullptr) *n_bytes = encoded.size();
  return values;
}

/// Error of the sum of the counted values, divided by its tolerance.
template <class T>
double sum_over_tolerance(const std::vector<T>& x, const std::vector<T>& y, const Shape& shape,
                          const Shape& counted, T fill = std::numeric_limits<T>::infinity()) {
  verbs::ExactSum sum;
  T greatest = 0;
  const Box box{Shape(shape.size(), 0), counted.empty() ? shape : counted};
  for_each_position(box, [&](const Shape& at) {
    std::size_t i = 0;
    for (std::size_t d = 0; d < at.size(); ++d) i = i * shape[d] + at[d];
    if (!std::isfinite(x[i]) || x[i] == fill) return;
    sum.add(static_cast<double>(y[i]));
    sum.add(-static_cast<double>(x[i]));
    greatest = std::max({greatest, std::fabs(x[i]), std::fabs(y[i])});
  });
  sum.carry();
  const double excess = std::fabs(sum.value());
  return excess == 0 ? 0 : excess / sum_tolerance(greatest);
}

template <class T>
void check_sums_of_each_form() {
  struct Cut {
    Shape shape;
    Shape counted;
  };
  const std::vector<Cut> cuts = {
      {{20000}, {}},          {{20000}, {777}},   {{130, 140}, {}},
      {{130, 140}, {130, 3}}, {{30, 32, 34}, {}}, {{30, 32, 34}, {7, 32, 30}},
      {{9, 10, 11, 12}, {}},  {{5}, {}},          {{9, 10, 11, 12}, {1, 1, 1, 1}}};
  for (const auto& [shape, counted] : cuts) {
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
      for (const double offset : {0.0, 300.0}) {
        const std::vector<T> values = waves<T>(shape, offset, 0.05);
        Case chunk = whole::case_of(values, shape, 0.01, preset);
        Guards asked;
        asked.sum = true;
        asked.sign = offset == 0;
        ValueGuards guards(asked, 0, 0);
        guards.counted = counted;
        std::size_t n_free = 0;
        const std::vector<T> before = decoded<T>(chunk, &n_free);
        chunk.type.guards = &guards;
        std::size_t n_kept = 0;
        const std::vector<T> after = decoded<T>(chunk, &n_kept);
        EXPECT_LE(sum_over_tolerance(values, after, shape, counted), 1) << chunk.text();
        for (std::size_t i = 0; asked.sign && i < values.size(); ++i) {
          ASSERT_EQ(values[i] > 0, after[i] > 0) << i;
        }
        if (n_elements(counted.empty() ? shape : counted) < 1000) continue;
        EXPECT_GT(sum_over_tolerance(values, before, shape, counted), 1) << chunk.text();
        EXPECT_LT(n_kept, n_free + n_free / 2) << chunk.text();
      }
    }
  }
}

TEST(ChunkGuards, SumsStay) {
  check_sums_of_each_form<float>();
  check_sums_of_each_form<double>();
}

/// Errors that all have one sign, and values none of which can absorb the remainder.
TEST(ChunkGuards, SumsOfAwkwardValuesStay) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(5);
  Guards asked;
  asked.sum = true;
  std::vector<std::vector<float>> cases;
  for (const float level : {0.0F, 1.0F, 1e6F, 3e38F, 1e-40F}) {
    std::vector<float> steps(5000, level);
    for (std::size_t i = 0; i < steps.size(); i += 3) steps[i] = level + 0.007F * level;
    cases.push_back(steps);
  }
  std::vector<float> specials(5000);
  for (std::size_t i = 0; i < specials.size(); ++i) {
    const float value = static_cast<float>(random.unit());
    specials[i] = i % 5 == 0 ? kNaN : i % 7 == 0 ? kInfinity : i % 11 == 0 ? 1e30F : value;
  }
  cases.push_back(specials);
  std::vector<float> noise(5000);
  for (float& value : noise) value = static_cast<float>(random.unit());
  cases.push_back(noise);
  for (const std::vector<float>& values : cases) {
    for (const double bound : {1e-45, 1e-3, 0.01, 10.0, 1e30}) {
      for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
        Case chunk = whole::case_of(values, {50, 100}, bound, preset);
        chunk.type.fill_value = 1e30;
        ValueGuards guards(asked, 0, 0);
        chunk.type.guards = &guards;
        const std::vector<float> after = decoded<float>(chunk);
        EXPECT_LE(sum_over_tolerance(values, after, {50, 100}, {}, 1e30F), 1) << chunk.text();
      }
    }
  }
}

/// Number of pairs along an axis whose order has changed, and of ends that are not exact.
template <class T>
std::uint64_t n_turned(const std::vector<T>& x, const std::vector<T>& y, const Shape& shape,
                       const ValueGuards::Order& order) {
  std::size_t stride = 1;
  for (std::size_t d = order.axis + 1; d < shape.size(); ++d) stride *= shape[d];
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t at = i / stride % shape[order.axis];
    const bool last = at + 1 == shape[order.axis];
    if (!order.alone && (at == 0 || last)) n += x[i] == x[i] && x[i] != y[i] ? 1 : 0;
    if (last) continue;
    n += (x[i] <= x[i + stride] && y[i] > y[i + stride]) ? 1 : 0;
    n += (x[i] >= x[i + stride] && y[i] < y[i + stride]) ? 1 : 0;
  }
  return n;
}

template <class T>
void check_orders_of_each_form() {
  const std::vector<Shape> shapes = {{20000}, {130, 140}, {30, 32, 34}, {9, 10, 11, 12}};
  std::uint64_t n_turned_free = 0;
  for (const Shape& shape : shapes) {
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::vector<T> values = waves<T>(shape, 0, 0.02);
        Case chunk = whole::case_of(values, shape, 0.01, preset);
        ValueGuards guards;
        guards.sum = axis == 0;
        guards.orders.push_back({axis, axis % 2 == 0});
        if (axis == 1) guards.orders.push_back({0, true});
        const std::vector<T> before = decoded<T>(chunk);
        chunk.type.guards = &guards;
        const std::vector<T> after = decoded<T>(chunk);
        for (const ValueGuards::Order& order : guards.orders) {
          n_turned_free += n_turned(values, before, shape, order);
          EXPECT_EQ(n_turned(values, after, shape, order), 0U) << chunk.text();
        }
        if (guards.sum) {
          EXPECT_LE(sum_over_tolerance(values, after, shape, {}), 1) << chunk.text();
        }
      }
    }
  }
  EXPECT_GT(n_turned_free, 10000U);
}

TEST(ChunkGuards, OrdersStay) {
  check_orders_of_each_form<float>();
  check_orders_of_each_form<double>();
}

/// The last chunk along an axis has no chunk behind it, so its last row need not be exact.
TEST(ChunkGuards, TheLastChunkAlongAnAxisHasOneEnd) {
  const Shape shape = {40, 30};
  const std::vector<float> values = waves<float>(shape, 0, 0.2);
  Case chunk = whole::case_of(values, shape, 0.01, Preset::standard);
  ValueGuards guards;
  guards.orders.push_back({0, false});
  guards.counted = {25, 30};
  chunk.type.guards = &guards;
  const std::vector<float> after = decoded<float>(chunk);
  EXPECT_TRUE(std::equal(values.begin(), values.begin() + 30, after.begin()));
  EXPECT_FALSE(std::equal(values.end() - 30, values.end(), after.end() - 30));
}

/// Random values, bounds and forms, combined with guards of single values.
TEST(ChunkGuards, RandomChunks) {
  Random random(20261126);
  std::uint64_t n_checked = 0;
  for (int round = 0; round < test::tier_rounds(3000, 5); ++round) {
    trz_cases::Limits limits;
    limits.integers = false;
    limits.n_values_max = round % 20 == 0 ? 40000 : 2000;
    Case chunk = trz_cases::random_case(random, limits);
    if (chunk.type.kind != BoundKind::absolute || chunk.n_values() == 0) continue;
    chunk.settings.coarse_views = 0;
    Guards asked;
    asked.sign = random.chance(0.3);
    asked.sum = random.chance(0.7);
    ValueGuards guards(asked, 0, 0);
    const Shape& shape = chunk.type.shape;
    for (std::size_t axis = 0; axis < shape.size() && axis < 3; ++axis) {
      if (random.chance(0.3)) guards.orders.push_back({axis, random.chance(0.5)});
    }
    if (random.chance(0.3)) {
      for (const std::uint64_t extent : shape) guards.counted.push_back(1 + random.below(extent));
    }
    if (!guards.of_chunks()) continue;
    chunk.type.guards = &guards;
    ++n_checked;
    const auto judge = [&]<class T>(T) {
      std::vector<T> values(chunk.n_values());
      std::memcpy(values.data(), chunk.values.data(), chunk.values.size());
      const std::vector<T> after = decoded<T>(chunk);
      if (guards.sum) {
        EXPECT_LE(sum_over_tolerance(values, after, shape, guards.counted), 1) << chunk.text();
      }
      for (ValueGuards::Order order : guards.orders) {
        order.alone = true;  // Other tests check the ends of clipped chunks.
        EXPECT_EQ(n_turned(values, after, shape, order), 0U) << chunk.text();
      }
    };
    chunk.type.dtype == DType::f32 ? judge(float{}) : judge(double{});
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
  EXPECT_GT(n_checked, unsigned(test::tier_rounds(1000, 5)));
}

}  // namespace
}  // namespace tailrace::trz
