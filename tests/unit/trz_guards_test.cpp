// Guards of trz: properties of decoded values in addition to the bound, in every form of a chunk.
// The judge is breaks_guards(), the definition, which shares no code with the encoder's kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/trz.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;

double number_at(const Case& chunk, std::span<const std::byte> values, std::size_t i) {
  if (chunk.type.dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
  return value;
}

/// Number of finite, non-fill values that break a guard. All others return bit for bit, as
/// round_trip checks.
std::uint64_t n_guards_broken(const Case& chunk, const ValueGuards& guards,
                              std::span<const std::byte> encoded) {
  Workspace workspace;
  std::vector<std::byte> decoded(chunk.values.size());
  EXPECT_TRUE(decode(encoded, decoded, chunk.type.book, workspace).ok());
  std::optional<double> fill = chunk.type.fill_value;
  if (fill && chunk.type.dtype == DType::f32) fill = static_cast<double>(static_cast<float>(*fill));
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < chunk.n_values(); ++i) {
    const double x = number_at(chunk, chunk.values, i);
    if (!std::isfinite(x) || x == fill) continue;
    n += breaks_guards(guards, x, number_at(chunk, decoded, i)) ? 1 : 0;
  }
  return n;
}

/// Random combinations of thresholds among the values and between them, signs, zeros and extremes.
ValueGuards random_guards(const Case& chunk, Random& random) {
  const ValueRange range = value_range(chunk.type.dtype, chunk.values, chunk.type.fill_value);
  Guards guards;
  guards.sign = random.chance(0.3);
  guards.zero = random.chance(0.3);
  guards.minmax = random.chance(0.3) && !range.empty();
  for (std::size_t k = random.below(4); k > 0; --k) {
    const double value = number_at(chunk, chunk.values, random.below(chunk.n_values()));
    if (!std::isfinite(value)) continue;
    guards.thresholds.push_back(random.chance(0.5) ? value
                                                   : value + chunk.type.bound * random.unit());
  }
  std::erase_if(guards.thresholds, [](double v) { return !std::isfinite(v); });
  for (const double exponent : {0.0, 0.5, 2.0, -1.0, 3.0}) {
    if (random.chance(0.15)) guards.functions.push_back({exponent, std::exp(-9 * random.unit())});
  }
  std::ranges::sort(guards.thresholds);
  return {guards, range.least, range.greatest};
}

std::string form_of(std::span<const std::byte> encoded) {
  const Result<ChunkSummary> summary = describe(encoded);
  return summary.ok() ? summary->method.substr(0, summary->method.find_first_of(" ,")) : "";
}

/// A chunk encoded without guards and with them.
struct BothWays {
  std::vector<std::byte> free;
  std::vector<std::byte> kept;
  std::uint64_t n_broken_free = 0;
};

/// Encodes both ways. The guarded chunk must break nothing.
BothWays both_ways(Case chunk, const ValueGuards& guards) {
  BothWays both;
  Workspace workspace;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &both.free));
  both.n_broken_free = n_guards_broken(chunk, guards, both.free);
  chunk.type.guards = &guards;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &both.kept));
  EXPECT_EQ(n_guards_broken(chunk, guards, both.kept), 0U) << chunk.text();
  return both;
}

TEST(TrzGuards, RandomChunksKeepRandomGuards) {
  Random random(20261125);
  std::map<Preset, std::uint64_t> n_guarded;  // Chunks that violate a guard unguarded.
  std::map<std::string, std::uint64_t> n_by_method;
  for (int round = 0; round < test::tier_rounds(4000, 5); ++round) {
    trz_cases::Limits limits;
    limits.integers = false;
    limits.n_values_max = round % 20 == 0 ? 40000 : 3000;
    const Case chunk = trz_cases::random_case(random, limits);
    if (chunk.type.kind == BoundKind::exact || chunk.n_values() == 0) continue;
    const ValueGuards guards = random_guards(chunk, random);
    if (guards.empty()) continue;
    const BothWays both = both_ways(chunk, guards);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
    if (both.n_broken_free == 0) continue;
    ++n_guarded[chunk.settings.preset];
    ++n_by_method[form_of(both.kept)];
  }
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    EXPECT_GT(n_guarded[preset], unsigned(test::tier_rounds(50, 5))) << static_cast<int>(preset);
  }
  EXPECT_GT(n_by_method.size(), 4U);
}

/// A wave around 0 in each dimension, with a little noise.
template <class T>
std::vector<T> waves_through_zero(const Shape& shape) {
  Random random(7);
  std::vector<T> values(n_elements(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t rest = i;
    double value = 0.001 * (random.unit() - 0.5);
    for (std::size_t d = shape.size(); d-- > 0;) {
      value += std::sin(0.15 * static_cast<double>(rest % shape[d]) + static_cast<double>(d));
      rest /= shape[d];
    }
    values[i] = static_cast<T>(value);
  }
  return values;
}

/// The cost of a guard, and proof that it is needed: for each number of dimensions, type and
/// preset.
template <class T>
void check_each_form() {
  const std::array<Shape, 4> shapes = {{Shape{30000}, {170, 180}, {30, 32, 34}, {9, 12, 16, 18}}};
  Guards asked;
  asked.sign = true;
  asked.thresholds = {0.1, 0.5};  // Neither 0.1 nor its neighbours are exact in f32.
  const ValueGuards guards(asked, 0, 0);
  for (const Shape& shape : shapes) {
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
      const Case chunk = whole::case_of(waves_through_zero<T>(shape), shape, 0.01, preset);
      const BothWays both = both_ways(chunk, guards);
      EXPECT_GT(both.n_broken_free, 10U) << chunk.text();
      EXPECT_GT(both.kept.size(), both.free.size()) << chunk.text();
      EXPECT_LT(both.kept.size(), chunk.values.size() / 2) << chunk.text();
    }
  }
}

TEST(TrzGuards, EveryPresetTypeAndDimension) {
  check_each_form<float>();
  check_each_form<double>();
}

TEST(TrzGuards, FittedAndVocabularyChunksKeepThem) {
  Guards asked;
  asked.sign = true;
  const ValueGuards guards(asked, 0, 0);
  const Case fitted =
      whole::case_of(waves_through_zero<float>({40, 40, 40}), {40, 40, 40}, 0.01, Preset::max);
  const BothWays of_fitted = both_ways(fitted, guards);
  EXPECT_EQ(form_of(of_fitted.kept), "fitted");
  EXPECT_GT(of_fitted.n_broken_free, 0U);

  // Three hundred materials, some so near to 0 that the lattice rounds them to it.
  Random random(3);
  std::vector<float> materials(300);
  for (float& material : materials) material = static_cast<float>(2 * random.unit() - 1);
  for (std::size_t k = 0; k < 20; ++k) materials[k] *= 0.00004F;
  std::vector<float> map(40000);
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = materials[random.below(materials.size())];
  const BothWays of_words = both_ways(whole::case_of(map, {200, 200}, 1e-4, Preset::ratio), guards);
  EXPECT_EQ(form_of(of_words.free), "vocabulary");
  EXPECT_EQ(form_of(of_words.kept), "vocabulary");
  EXPECT_GT(of_words.n_broken_free, 0U);
}

/// Each nested chunk satisfies the guards with its own patches.
TEST(TrzGuards, ChunksWithCoarseViewsKeepThem) {
  Guards asked;
  asked.sign = true;
  const ValueGuards guards(asked, 0, 0);
  Random random(4);
  std::vector<float> values = waves_through_zero<float>({48, 48, 48});
  for (float& value : values) value += static_cast<float>(0.05 * random.unit());
  Case chunk = whole::case_of(values, {48, 48, 48}, 0.001, Preset::standard);
  chunk.settings.predictor = Predictor::interpolation;
  chunk.settings.coarse_views = 2;
  const BothWays both = both_ways(chunk, guards);
  EXPECT_TRUE(coarse_view(both.free, 2));
  EXPECT_TRUE(coarse_view(both.kept, 2));
  EXPECT_GT(both.n_broken_free, 10U);
}

/// Signs and zeros follow from a pointwise bound; thresholds and extremes do not.
TEST(TrzGuards, PointwiseBounds) {
  Guards asked;
  asked.minmax = true;
  asked.thresholds = {-0.7, 0.25};
  const std::vector<double> values = waves_through_zero<double>({100, 100});
  const auto [least, greatest] = std::ranges::minmax(values);
  const ValueGuards guards(asked, least, greatest);
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    const Case chunk = whole::case_of(values, {100, 100}, 0.02, preset, BoundKind::pointwise);
    EXPECT_GT(both_ways(chunk, guards).n_broken_free, 10U);
  }
}

/// Guards that no value is near leave every byte unchanged.
TEST(TrzGuards, NothingNearCostsNothing) {
  Guards asked;
  asked.sign = true;
  asked.thresholds = {-5, 1e300};
  const ValueGuards guards(asked, 0, 0);
  std::vector<float> values = waves_through_zero<float>({24, 40, 32});
  for (float& value : values) value += 10;
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    const BothWays both = both_ways(whole::case_of(values, {24, 40, 32}, 0.01, preset), guards);
    EXPECT_EQ(both.free, both.kept);
  }
}

/// Zeros of both signs, denormals, NaN and infinities among values that the lattice rounds to 0.
TEST(TrzGuards, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = waves_through_zero<float>({4000});
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] = i % 2 == 0 ? 0.0F : -0.0F;
  for (std::size_t i = 3; i < values.size(); i += 11) values[i] = i % 2 == 0 ? 1e-41F : -1e-41F;
  values[100] = std::numeric_limits<float>::quiet_NaN();
  values[200] = kInfinity;
  values[300] = -kInfinity;
  for (const bool sign : {true, false}) {
    Guards asked;
    asked.sign = sign;
    asked.zero = !sign;
    const ValueGuards guards(asked, 0, 0);
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
      EXPECT_GT(both_ways(whole::case_of(values, {4000}, 0.01, preset), guards).n_broken_free,
                100U);
    }
  }
}

TEST(Guards, TextsAreReadAndWritten) {
  for (const char* text : {"none", "sign", "zero", "minmax", "threshold=273.15",
                           "sign+threshold=-1e+30+threshold=1e-07+minmax+gradient=0.5",
                           "laplacian=0.5+power=-2:1e-07+log=0.01+sum+monotone=0+monotone=2"}) {
    const Result<Guards> guards = parse_guards(text);
    ASSERT_TRUE(guards.ok()) << guards.status().message();
    EXPECT_EQ(guards_text(*guards), text);
  }
  const Result<Guards> mixed = parse_guards("gradient=2+threshold=+3+threshold=-0.0+sign+sign");
  EXPECT_FALSE(mixed.ok());  // from_chars does not accept "+3".
  const Result<Guards> ordered = parse_guards("gradient=2+threshold=3+threshold=-0.0+sign+sign");
  ASSERT_TRUE(ordered.ok());
  EXPECT_EQ(guards_text(*ordered), "sign+threshold=0+threshold=3+gradient=2");
  EXPECT_EQ(ordered->bound_within(5, 3), 1);
  EXPECT_EQ(ordered->bound_within(0.5, 3), 0.5);
  for (const char* text : {"",
                           "+",
                           "sign+",
                           "+sign",
                           "signs",
                           "sign=1",
                           "threshold",
                           "threshold=",
                           "threshold=x",
                           "threshold=nan",
                           "threshold=inf",
                           "gradient=0",
                           "gradient=-1",
                           "gradient=1+gradient=2",
                           "gradient=5e-324",
                           "none+sign",
                           "threshold=1e",
                           "laplacian",
                           "laplacian=0",
                           "log=0",
                           "log=101",
                           "log=1+log=2",
                           "power=2",
                           "power=0:1",
                           "power=9:1",
                           "power=1.5:1",
                           "power=2:0",
                           "power=:1",
                           "power=2:1+power=2:3",
                           "sum=1",
                           "monotone",
                           "monotone=-1",
                           "monotone=32",
                           "monotone=0.5"}) {
    EXPECT_FALSE(parse_guards(text).ok()) << text;
  }
  std::string many;
  for (int k = 0; k < 65; ++k) many += (k > 0 ? "+threshold=" : "threshold=") + std::to_string(k);
  EXPECT_FALSE(parse_guards(many).ok());
}

TEST(Guards, ALaplacianFollowsFromTheBound) {
  Guards guards;
  guards.laplacian = 1;
  EXPECT_EQ(guards.bound_within(5, 1), 0.25);
  EXPECT_EQ(guards.bound_within(5, 2), 0.125);
  EXPECT_EQ(guards.bound_within(0.1, 2), 0.1);
  EXPECT_EQ(guards.bound_within(5, 0), 5);  // A scalar has no neighbours.
  for (const double laplacian : {0.1, 1 / 3.0, 1e-300, 7e20}) {
    guards.laplacian = laplacian;
    for (std::size_t n_axes = 1; n_axes <= kMaxRank; ++n_axes) {
      const double bound = guards.bound_within(1e300, n_axes);
      EXPECT_LE(std::fma(bound, 4 * static_cast<double>(n_axes), -laplacian), 0) << n_axes;
      EXPECT_GT(bound, 0.999 * laplacian / (4 * static_cast<double>(n_axes))) << n_axes;
    }
  }
}

/// The claim that values keep or break a function's bound is verified with wider arithmetic.
TEST(Guards, FunctionsOfValues) {
  Random random(12);
  for (const double exponent : {0.0, 0.5, 1.0, 2.0, 5.0, 8.0, -1.0, -3.0, -8.0}) {
    std::uint64_t n_kept = 0;
    std::uint64_t n_broken = 0;
    for (int round = 0; round < 20000; ++round) {
      const double x = std::exp(6 * (random.unit() - 0.5)) * (random.chance(0.1) ? -1 : 1);
      const double y = x * (1 + std::exp(-20 * random.unit()) * (random.unit() - 0.5));
      const auto f = [&](double value) {
        const auto wide = static_cast<long double>(value);
        return exponent == 0 ? std::log(wide) : std::pow(wide, static_cast<long double>(exponent));
      };
      const long double before = f(x);
      const long double moved = std::fabs(f(y) - before);
      const bool defined = std::isfinite(before);
      const double most = defined ? static_cast<double>(moved) * std::exp(random.unit() - 0.5) : 1;
      if (!(most > 0) || most > 50) continue;
      const FunctionLimit limit({exponent, most});
      const bool keeps = limit.keeps(x, y);
      ASSERT_FALSE(keeps && limit.breaks(x, y));
      if (!defined) {
        EXPECT_EQ(keeps, x == y) << exponent << " " << x << " " << y;
        continue;
      }
      const long double slack = 1e-12L * std::fabs(before) + 1e-12L * most;
      const long double least = 1e-18L * (1 + std::fabs(before));
      if (keeps) {
        EXPECT_LE(moved, most + least) << exponent << " " << x << " " << y;
      } else {
        EXPECT_GT(moved, most - slack) << exponent << " " << x << " " << y;
      }
      if (limit.breaks(x, y)) {
        EXPECT_GT(moved, most - least) << exponent << " " << x << " " << y;
      }
      ++(keeps ? n_kept : n_broken);
    }
    EXPECT_GT(n_kept, 5000U) << exponent;
    EXPECT_GT(n_broken, 5000U) << exponent;
  }
  EXPECT_TRUE(FunctionLimit({-1, 1}).keeps(0, 0));
  EXPECT_FALSE(FunctionLimit({-1, 1}).keeps(0, 1e-9));
  EXPECT_FALSE(FunctionLimit({0, 1}).keeps(1, -1));
  EXPECT_TRUE(FunctionLimit({0, 100}).keeps(1e-300, 1e-260));
}

TEST(Guards, WhatBreaksThem) {
  Guards asked;
  asked.sign = true;
  const ValueGuards sign(asked, 0, 0);
  EXPECT_TRUE(breaks_guards(sign, 1, 0));
  EXPECT_TRUE(breaks_guards(sign, 1, -0.0));
  EXPECT_TRUE(breaks_guards(sign, -1e-300, 1e-300));
  EXPECT_TRUE(breaks_guards(sign, 0, 1));
  EXPECT_TRUE(breaks_guards(sign, -0.0, 0.0));
  EXPECT_FALSE(breaks_guards(sign, -1, -2));
  EXPECT_FALSE(breaks_guards(sign, -0.0, -0.0));
  asked = Guards();
  asked.zero = true;
  const ValueGuards zero(asked, 0, 0);
  EXPECT_FALSE(breaks_guards(zero, 1, 0));
  EXPECT_TRUE(breaks_guards(zero, 0, 1));
  asked = Guards();
  asked.thresholds = {0};
  const ValueGuards threshold(asked, 0, 0);
  EXPECT_FALSE(breaks_guards(threshold, -0.0, 0.0));
  EXPECT_TRUE(breaks_guards(threshold, 1, 0));
  asked = Guards();
  asked.minmax = true;
  const ValueGuards extremes(asked, -1, 2);
  EXPECT_TRUE(breaks_guards(extremes, 1, 2.5));
  EXPECT_TRUE(breaks_guards(extremes, -1, -0.9));
  EXPECT_TRUE(breaks_guards(extremes, 0, -1.1));
  EXPECT_FALSE(breaks_guards(extremes, 1.9, 2));
}

}  // namespace
}  // namespace tailrace::trz
