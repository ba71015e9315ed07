// trz and the error bound: values and bounds that are difficult because of rounding, overflow and
// special patterns.
//
// Every check is exact (trz/base/error_bound.hpp, and also long double for f32). One value beyond
// the bound fails, and so does one changed bit where bits must stay.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::round_trip;

template <class T>
constexpr DType dtype_of() {
  return sizeof(T) == 4 ? DType::f32 : DType::f64;
}

template <class T>
Case case_of(const std::vector<T>& values, BoundKind kind, double bound) {
  Case chunk;
  chunk.type.dtype = dtype_of<T>();
  chunk.type.shape = {values.size()};
  chunk.type.kind = kind;
  chunk.type.bound = bound;
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  chunk.values.assign(bytes, bytes + values.size() * sizeof(T));
  return chunk;
}

/// Every predictor and preset, in one and three dimensions where the size allows.
void expect_round_trips(Case chunk, Workspace& workspace) {
  const std::uint64_t n = chunk.n_values();
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    for (const Predictor predictor :
         {Predictor::automatic, Predictor::none, Predictor::lorenzo, Predictor::interpolation}) {
      for (const int last_axis : {-1, 1, 3}) {
        chunk.settings.preset = preset;
        chunk.settings.predictor = predictor;
        chunk.settings.last_axis = last_axis;
        chunk.type.shape = {n};
        EXPECT_TRUE(round_trip(chunk, workspace));
        if (n % 49 != 0) continue;
        chunk.type.shape = {7, 7, n / 49};
        EXPECT_TRUE(round_trip(chunk, workspace));
      }
    }
  }
}

template <class T>
class TrzBound : public ::testing::Test {
 protected:
  Workspace workspace_;
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TrzBound, Floats);

constexpr std::size_t kValues = 49 * 29;

TYPED_TEST(TrzBound, EveryKindOfDataUnderEveryKindOfBound) {
  test::TierSample some(3);
  for (int data = 0; data < static_cast<int>(Data::n_kinds); ++data) {
    for (const double bound : {1e-6, 1e-3, 0.5, 1.0, 1e10}) {
      if (!some.take()) continue;
      Case chunk = case_of(std::vector<TypeParam>(kValues), BoundKind::absolute, bound);
      chunk.data = static_cast<Data>(data);
      Random random(static_cast<std::uint64_t>(data) + 1);
      trz_cases::make_values(chunk, random);
      expect_round_trips(chunk, this->workspace_);
      chunk.type.kind = BoundKind::pointwise;
      chunk.type.bound = std::min(bound, 0.9);
      EXPECT_TRUE(round_trip(chunk, this->workspace_));
      chunk.type.kind = BoundKind::exact;
      EXPECT_TRUE(round_trip(chunk, this->workspace_));
    }
  }
}

TYPED_TEST(TrzBound, BoundsAtTheEndsOfTheRange) {
  test::TierSample some(5);
  using Limits = std::numeric_limits<TypeParam>;
  for (const double bound :
       {0.0, std::numeric_limits<double>::denorm_min(), static_cast<double>(Limits::denorm_min()),
        static_cast<double>(Limits::min()), static_cast<double>(Limits::min()) * 65536,
        static_cast<double>(Limits::max()) / 4, static_cast<double>(Limits::max()),
        std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity()}) {
    for (const Data data : {Data::smooth, Data::huge, Data::denormals, Data::decades,
                            Data::random_bits, Data::specials}) {
      if (!some.take()) continue;
      Case chunk = case_of(std::vector<TypeParam>(kValues), BoundKind::absolute, bound);
      chunk.data = data;
      Random random(7);
      trz_cases::make_values(chunk, random);
      expect_round_trips(chunk, this->workspace_);
    }
  }
}

TYPED_TEST(TrzBound, OddMultiplesOfTheBound) {
  // Every value lies exactly between two codes of a lattice of step 2 x bound.
  for (const double bound : {0.5, 0.1, 1.0 / 3, 3.0}) {
    std::vector<TypeParam> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = static_cast<TypeParam>(bound * static_cast<double>(2 * ((i * 7919) % 501) + 1));
    }
    expect_round_trips(case_of(values, BoundKind::absolute, bound), this->workspace_);
  }
}

TYPED_TEST(TrzBound, SignalsBelowAnUlpOfTheirOffset) {
  const double ulp = std::ldexp(1.0, 1 - std::numeric_limits<TypeParam>::digits);
  for (const double offset : {1.0, -1e6, 3e30}) {
    for (const double share : {0.25, 0.5, 1.0, 2.0, 3.0, 16.0}) {
      std::vector<TypeParam> values(kValues);
      for (std::size_t i = 0; i < kValues; ++i) {
        values[i] = static_cast<TypeParam>(offset * (1 + ulp * static_cast<double>((i * 37) % 64)));
      }
      const double bound = std::fabs(offset) * ulp * share;
      expect_round_trips(case_of(values, BoundKind::absolute, bound), this->workspace_);
    }
  }
}

TYPED_TEST(TrzBound, SpecialValuesReturnBitForBit) {
  using Bits = std::conditional_t<sizeof(TypeParam) == 4, std::uint32_t, std::uint64_t>;
  constexpr auto infinity = std::numeric_limits<TypeParam>::infinity();
  constexpr Bits exponent = std::bit_cast<Bits>(infinity);
  std::vector<Bits> bits = {exponent,
                            exponent | 1,              // Signalling NaN
                            static_cast<Bits>(~0ULL),  // NaN, all ones
                            std::bit_cast<Bits>(TypeParam(-0.0)),
                            1,
                            std::bit_cast<Bits>(-infinity),
                            std::bit_cast<Bits>(std::numeric_limits<TypeParam>::max()),
                            std::bit_cast<Bits>(std::numeric_limits<TypeParam>::lowest())};
  for (const std::size_t every : {1U, 3U, 50U, 1000U}) {
    std::vector<TypeParam> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = static_cast<TypeParam>(i % 100);
      if (i % every == 0) values[i] = std::bit_cast<TypeParam>(bits[i / every % bits.size()]);
    }
    for (const BoundKind kind : {BoundKind::exact, BoundKind::absolute, BoundKind::pointwise}) {
      expect_round_trips(case_of(values, kind, 0.01), this->workspace_);
    }
  }
}

TYPED_TEST(TrzBound, NegativeZeroUnderABoundOfZero) {
  std::vector<TypeParam> values(kValues, TypeParam(0));
  for (std::size_t i = 0; i < kValues; i += 5) values[i] = TypeParam(-0.0);
  expect_round_trips(case_of(values, BoundKind::absolute, 0), this->workspace_);
  expect_round_trips(case_of(values, BoundKind::exact, 0), this->workspace_);
  expect_round_trips(case_of(values, BoundKind::pointwise, 0.1), this->workspace_);
}

TYPED_TEST(TrzBound, FillValuesInAndOutOfTheFieldsRange) {
  test::TierSample some(5);
  for (const double fill :
       {0.0, -0.0, 5.0, 1e20, -1e34, 1e300, std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::infinity()}) {
    for (const double share : {0.001, 0.3, 0.99}) {
      Random random(99);
      std::vector<TypeParam> values(kValues);
      for (std::size_t i = 0; i < kValues; ++i) {
        values[i] = static_cast<TypeParam>(0.01 * static_cast<double>(i % 1000));
        if (random.chance(share)) values[i] = static_cast<TypeParam>(fill);
      }
      for (const BoundKind kind : {BoundKind::exact, BoundKind::absolute, BoundKind::pointwise}) {
        if (!some.take()) continue;
        Case chunk = case_of(values, kind, 0.05);
        chunk.type.fill_value = fill;
        expect_round_trips(chunk, this->workspace_);
      }
    }
  }
}

TYPED_TEST(TrzBound, ManyRowsWithOneFillEach) {
  // The joint interpolation processes many rows together; it must check all of them, not only the
  // first.
  std::vector<TypeParam> values(std::size_t{64} * 64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<TypeParam>(i % 64) * TypeParam(0.1) - TypeParam(3);
    if (i % 64 == (i / 64 * 7) % 64) values[i] = 0;
  }
  Case chunk = case_of(values, BoundKind::absolute, 0.5);
  chunk.type.fill_value = 0.0;
  for (const Shape& shape : {Shape{64, 64}, Shape{8, 8, 64}, Shape{16, 16, 16}}) {
    for (int last_axis = 0; last_axis <= 3; ++last_axis) {
      chunk.type.shape = shape;
      chunk.settings.predictor = Predictor::interpolation;
      chunk.settings.last_axis = last_axis;
      EXPECT_TRUE(round_trip(chunk, this->workspace_));
    }
  }
}

TEST(TrzBoundF32, LongDoubleAgrees) {
  // Compares the judge of the other tests with an independent one.
  Workspace workspace;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Case chunk = trz_cases::random_case(random, {20000, false, false});
    if (chunk.type.dtype != DType::f32 || chunk.type.kind != BoundKind::absolute) continue;
    std::vector<std::byte> encoded;
    ASSERT_TRUE(round_trip(chunk, workspace, &encoded));
    std::vector<float> decoded(chunk.n_values());
    ASSERT_TRUE(
        decode(encoded, std::as_writable_bytes(std::span(decoded)), chunk.type.book, workspace)
            .ok());
    const auto* original = reinterpret_cast<const float*>(chunk.values.data());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      if (!std::isfinite(original[i])) continue;
      const long double error = static_cast<long double>(original[i]) - decoded[i];
      ASSERT_LE(std::fabs(error), static_cast<long double>(chunk.type.bound)) << chunk.text();
    }
  }
}

TEST(TrzBoundJudge, SeesEverySingleWrongValue) {
  constexpr std::size_t n = 200;
  Case chunk = case_of(std::vector<float>(n, 1.0F), BoundKind::absolute, 0.25);
  chunk.type.fill_value = 7.0;
  const auto violations_of = [&chunk](std::size_t index, float original, float decoded) {
    std::vector<std::byte> values = chunk.values;
    std::memcpy(values.data() + index * sizeof(float), &original, sizeof(float));
    std::vector<std::byte> wrong = values;
    std::memcpy(wrong.data() + index * sizeof(float), &decoded, sizeof(float));
    return trz_cases::count_violations(chunk.type, values, wrong);
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t index : {0U, 63U, 64U, 130U, 199U}) {
    for (const std::optional<double> fill : {std::optional<double>(), std::optional<double>(7.0)}) {
      chunk.type.fill_value = fill;
      EXPECT_EQ(violations_of(index, 1, 1.25F), 0U);
      EXPECT_EQ(violations_of(index, 1, std::nextafter(1.25F, 2.0F)), 1U);
      EXPECT_EQ(violations_of(index, nan, 1), 1U);
      EXPECT_EQ(violations_of(index, 1, nan), 1U);
      EXPECT_EQ(violations_of(index, infinity, -infinity), 1U);
      EXPECT_EQ(violations_of(index, 1, infinity), 1U);
      EXPECT_EQ(violations_of(index, 7, 7.125F), fill ? 1U : 0U);
    }
  }
  chunk.type.kind = BoundKind::pointwise;
  EXPECT_EQ(violations_of(3, 2, 2.5F), 0U);
  EXPECT_EQ(violations_of(3, 2, std::nextafter(2.5F, 3.0F)), 1U);
  EXPECT_EQ(violations_of(3, 0, -0.0F), 1U);
  chunk.type.kind = BoundKind::exact;
  EXPECT_EQ(violations_of(3, 0, -0.0F), 1U);
  EXPECT_EQ(violations_of(3, 1, std::nextafter(1.0F, 2.0F)), 1U);
}

TEST(TrzBoundRandom, ManyChunksOfAllKinds) {
  Workspace workspace;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed * 7919);
    const Case chunk =
        trz_cases::random_case(random, {seed % 50 == 0 ? 100000U : 1500U, true, true});
    ASSERT_TRUE(round_trip(chunk, workspace)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tailrace::trz
