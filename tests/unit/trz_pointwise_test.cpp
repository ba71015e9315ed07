// The pointwise transform: its bound at every edge, values that it must leave out, and equal
// results on every instruction set.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "trz/base/error_bound.hpp"
#include "trz/predict/pointwise.hpp"
#include "unit/trz_isas.hpp"

namespace tailrace::trz {
namespace {

template <class T, class Y>
struct Types {
  using Value = T;
  using Work = Y;
  static constexpr DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  static constexpr DType work = sizeof(Y) == 4 ? DType::f32 : DType::f64;
};

template <class Pair>
class PointwiseTest : public testing::Test {};
using Pairs = testing::Types<Types<float, float>, Types<float, double>, Types<double, double>>;
TYPED_TEST_SUITE(PointwiseTest, Pairs);

/// Bounds whose plan works in the pair's type.
template <class Pair>
std::vector<double> bounds() {
  std::vector<double> all;
  for (const double p : {0.9, 0.5, 0.3, 0.1, 1e-2, 1e-3, 0x1p-12, 2.4e-4, 1e-4, 1e-5, 0x1p-20, 1e-6,
                         1e-7, 0x1p-26}) {
    const auto plan = PointwisePlan::for_bound(Pair::dtype, p);
    if (plan && plan->work == Pair::work) all.push_back(p);
  }
  return all;
}

/// Values of every magnitude, dense near powers of two, and all special values.
template <class T>
std::vector<T> hard_values(std::size_t n, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  const T specials[] = {T(0),
                        -T(0),
                        Limits::quiet_NaN(),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::max(),
                        Limits::lowest(),
                        Limits::min(),
                        Limits::denorm_min(),
                        -999,
                        1,
                        2,
                        -4};
  for (T& x : values) {
    const std::uint64_t pick = random() % 16;
    const int exponent =
        Limits::min_exponent - 3 + static_cast<int>(random() % (2 * Limits::max_exponent + 2));
    const T sign = random() % 2 == 0 ? T(1) : T(-1);
    const T mantissa = 1 + static_cast<T>(random() >> 11) * T(0x1p-53);
    if (pick == 0) {
      x = specials[random() % std::size(specials)];
    } else if (pick < 4) {
      x = std::ldexp(sign, exponent);
      for (std::uint64_t step = random() % 3; step > 0; --step) {
        x = std::nextafter(x, random() % 2 == 0 ? T(0) : Limits::max());
      }
    } else if (pick < 8) {
      x = sign * mantissa * 1000;
    } else {
      x = std::ldexp(sign * mantissa, exponent);
    }
  }
  return values;
}

template <class T, class Y>
struct Transformed {
  std::vector<Y> y;
  std::vector<std::uint8_t> signs;
  std::vector<std::uint64_t> words;
  PatchMap patches;

  Transformed(const std::vector<T>& values, const PointwisePlan& plan, Isa isa,
              const T* fill = nullptr)
      : y(values.size()),
        signs(pointwise_sign_bytes(values.size())),
        words(PatchMap::words_of(values.size())),
        patches(words.data(), values.size()) {
    pointwise_forward<T, Y>(values.data(), values.size(), plan, fill, y.data(), signs.data(),
                            patches, isa);
  }
};

/// The number farthest from y that is still within the bound of y.
template <class Y>
Y pushed(Y y, double bound, bool up) {
  const Y target = up ? std::numeric_limits<Y>::infinity() : -std::numeric_limits<Y>::infinity();
  Y far = static_cast<Y>(static_cast<double>(y) + (up ? bound : -bound));
  while (exceeds_bound(static_cast<double>(y), static_cast<double>(far), bound)) {
    far = std::nextafter(far, -target);
  }
  return far;
}

TYPED_TEST(PointwiseTest, EveryOrdinaryValueIsWithinTheBoundAtBothEnds) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  const std::vector<T> values = hard_values<T>(40000 + 17, 1);
  for (const double p : bounds<TypeParam>()) {
    const PointwisePlan plan = *PointwisePlan::for_bound(TypeParam::dtype, p);
    Transformed<T, Y> coded(values, plan, best_isa());
    for (const bool up : {false, true}) {
      std::vector<Y> far = coded.y;
      for (Y& y : far) y = pushed(y, plan.y_bound, up);
      std::vector<T> decoded(values.size());
      pointwise_inverse<T, Y>(far.data(), coded.signs.data(), far.size(), decoded.data(),
                              best_isa());
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (coded.patches.test(i)) continue;
        ASSERT_FALSE(exceeds_pointwise_bound(double{values[i]}, double{decoded[i]}, p))
            << values[i] << " became " << decoded[i] << " under " << p;
      }
      EXPECT_EQ((pointwise_check<T, Y>(values.data(), far.data(), coded.signs.data(), far.size(), p,
                                       coded.patches, best_isa())),
                0U);
    }
  }
}

TYPED_TEST(PointwiseTest, BinsAreNearlyAsWideAsTheyCouldBe) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  std::vector<T> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<T>(i) * T(0x1p-12);
  for (const double p : bounds<TypeParam>()) {
    if (p > 0.5 || p < 1.5e-6) continue;  // stored as 0.5; rounding needs its share
    const PointwisePlan plan = *PointwisePlan::for_bound(TypeParam::dtype, p);
    Transformed<T, Y> coded(values, plan, best_isa());
    std::vector<Y> far = coded.y;
    for (Y& y : far) y = pushed(y, plan.y_bound, true);
    std::vector<T> decoded(values.size());
    pointwise_inverse<T, Y>(far.data(), coded.signs.data(), far.size(), decoded.data(), best_isa());
    double least = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      least = std::min(least, (double{decoded[i]} / double{values[i]} - 1) / p);
    }
    EXPECT_GT(least, p < 2e-6 ? 0.8 : 0.9) << p;
  }
}

TYPED_TEST(PointwiseTest, WhatHasNoMagnitudeIsPatchedAndHeld) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  using Limits = std::numeric_limits<T>;
  const double p = bounds<TypeParam>().front();
  const PointwisePlan plan = *PointwisePlan::for_bound(TypeParam::dtype, p);
  std::vector<T> values(300, T(-7));
  for (std::size_t i = 0; i < 130; ++i) values[i] = Limits::quiet_NaN();  // leading, two blocks
  values[140] = 0;
  values[141] = -T(0);
  values[142] = Limits::infinity();
  values[143] = Limits::denorm_min();
  values[144] = Limits::max();
  values[145] = -999;
  values[299] = Limits::quiet_NaN();
  const T fill = -999;
  const Transformed<T, Y> coded(values, plan, best_isa(), &fill);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool special = i < 130 || (i >= 140 && i <= 145) || i == 299;
    EXPECT_EQ(coded.patches.test(i), special) << i;
    EXPECT_EQ(coded.y[i], coded.y[135]) << i;
    EXPECT_TRUE(special || ((coded.signs[i / 8] >> (i % 8)) & 1) == 1);
  }
  const std::vector<T> nothing(70, Limits::quiet_NaN());
  const Transformed<T, Y> empty(nothing, plan, best_isa());
  EXPECT_EQ(empty.patches.count(), nothing.size());
  EXPECT_EQ(empty.y, std::vector<Y>(nothing.size(), Y(0)));
}

TYPED_TEST(PointwiseTest, CheckFindsEveryViolation) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  std::mt19937_64 random(3);
  const std::vector<T> values = hard_values<T>(20000 + 5, 4);
  for (const double p : bounds<TypeParam>()) {
    const PointwisePlan plan = *PointwisePlan::for_bound(TypeParam::dtype, p);
    Transformed<T, Y> coded(values, plan, best_isa());
    std::vector<Y> far = coded.y;
    for (Y& y : far) {
      const double push = static_cast<double>(random() % 2001) * 1e-3 - 1;
      y = static_cast<Y>(static_cast<double>(y) + 1.2 * push * plan.y_bound);
    }
    std::vector<T> decoded(values.size());
    pointwise_inverse<T, Y>(far.data(), coded.signs.data(), far.size(), decoded.data(), best_isa());
    for (const Isa isa : isas()) {
      Transformed<T, Y> fresh(values, plan, isa);
      const std::size_t before = fresh.patches.count();
      const std::size_t n = pointwise_check<T, Y>(values.data(), far.data(), fresh.signs.data(),
                                                  far.size(), p, fresh.patches, isa);
      EXPECT_EQ(fresh.patches.count(), before + n);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool bad = coded.patches.test(i) ||
                         exceeds_pointwise_bound(double{values[i]}, double{decoded[i]}, p);
        ASSERT_EQ(fresh.patches.test(i), bad) << i << " under " << p;
      }
    }
  }
}

TYPED_TEST(PointwiseTest, AllInstructionSetsAgreeAtEveryLength) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  const double p = bounds<TypeParam>().back();
  const PointwisePlan plan = *PointwisePlan::for_bound(TypeParam::dtype, p);
  for (const std::size_t n : {1, 7, 8, 63, 64, 65, 127, 2048, 2049, 4095, 10000}) {
    const std::vector<T> values = hard_values<T>(n, static_cast<unsigned>(n));
    const Transformed<T, Y> plain(values, plan, Isa::plain);
    std::vector<T> plain_decoded(n);
    pointwise_inverse<T, Y>(plain.y.data(), plain.signs.data(), n, plain_decoded.data(),
                            Isa::plain);
    for (const Isa isa : isas()) {
      const Transformed<T, Y> other(values, plan, isa);
      EXPECT_EQ(std::memcmp(other.y.data(), plain.y.data(), n * sizeof(Y)), 0) << isa_name(isa);
      EXPECT_EQ(other.signs, plain.signs);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(other.patches.test(i), plain.patches.test(i));
      }
      std::vector<T> decoded(n);
      pointwise_inverse<T, Y>(other.y.data(), other.signs.data(), n, decoded.data(), isa);
      EXPECT_EQ(std::memcmp(decoded.data(), plain_decoded.data(), n * sizeof(T)), 0);
    }
  }
}

TYPED_TEST(PointwiseTest, InverseTakesAnyBits) {
  using T = typename TypeParam::Value;
  using Y = typename TypeParam::Work;
  std::mt19937_64 random(5);
  std::vector<Y> y(6400);
  for (Y& one : y) {
    if constexpr (sizeof(Y) == 4) {
      one = std::bit_cast<Y>(static_cast<std::uint32_t>(random()));
    } else {
      one = std::bit_cast<Y>(random());
    }
  }
  y[0] = std::numeric_limits<Y>::quiet_NaN();
  y[1] = std::numeric_limits<Y>::infinity();
  y[2] = -std::numeric_limits<Y>::infinity();
  const std::vector<std::uint8_t> signs(pointwise_sign_bytes(y.size()), 0xA5);
  std::vector<T> reference(y.size());
  pointwise_inverse<T, Y>(y.data(), signs.data(), y.size(), reference.data(), Isa::plain);
  for (const Isa isa : isas()) {
    std::vector<T> decoded(y.size());
    pointwise_inverse<T, Y>(y.data(), signs.data(), y.size(), decoded.data(), isa);
    EXPECT_EQ(std::memcmp(decoded.data(), reference.data(), y.size() * sizeof(T)), 0);
    for (const T x : decoded) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(Pointwise, InverseWorksInPlace) {
  const std::vector<double> values = hard_values<double>(1000, 6);
  const PointwisePlan plan = *PointwisePlan::for_bound(DType::f64, 1e-3);
  Transformed<double, double> coded(values, plan, best_isa());
  std::vector<double> apart(values.size());
  pointwise_inverse<double, double>(coded.y.data(), coded.signs.data(), coded.y.size(),
                                    apart.data(), best_isa());
  pointwise_inverse<double, double>(coded.y.data(), coded.signs.data(), coded.y.size(),
                                    coded.y.data(), best_isa());
  EXPECT_EQ(std::memcmp(apart.data(), coded.y.data(), apart.size() * sizeof(double)), 0);
}

TEST(Pointwise, PlansSayWhereTheyHelp) {
  const auto useful = [](DType dtype, double bound) {
    return PointwisePlan::for_bound(dtype, bound).has_value();
  };
  EXPECT_TRUE(useful(DType::f32, 1e-3));
  EXPECT_FALSE(useful(DType::f32, 1e-7));
  EXPECT_TRUE(useful(DType::f64, 1e-7));
  EXPECT_FALSE(useful(DType::f64, 1e-9));
  EXPECT_FALSE(useful(DType::i32, 1e-3));
  EXPECT_FALSE(useful(DType::f64, 0));
  EXPECT_FALSE(useful(DType::f64, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(PointwisePlan::for_bound(DType::f32, 5)->y_bound,
            PointwisePlan::for_bound(DType::f32, 0.5)->y_bound);
  // Fixed: the map itself is part of the format.
  const PointwisePlan identity{DType::f64, 1, 1};
  const std::vector<double> values = {1, 1.5, 2, 3, 0.75, 1024, -1.25};
  const Transformed<double, double> coded(values, identity, best_isa());
  const std::vector<double> expected = {
      0,  0x1.2bec333018867p-1, 1, 0x1.95f619980c434p+0, -0x1.a827999fcef32p-2,
      10, 0x1.4810f8b2341f1p-2};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(coded.y[i], expected[i]) << std::hexfloat << coded.y[i];
  }
}

}  // namespace
}  // namespace tailrace::trz
