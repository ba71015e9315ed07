// The choice of a predictor: the same with every instruction set. Periods and quanta are found, and
// costs grow with the codes.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trz/entropy/code_stream.hpp"
#include "trz/predict/choose.hpp"

namespace tailrace::trz {
namespace {

/// A generator of small, even noise in [-0.5, 0.5).
class Noise {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 33) * 0x1p-31 - 0.5;
  }

 private:
  std::uint64_t state_ = 1;
};

template <class T>
std::vector<T> smooth_field(const Extents& e, double noise) {
  std::vector<T> values;
  Noise random;
  for (std::size_t t = 0; t < e[0]; ++t) {
    for (std::size_t z = 0; z < e[1]; ++z) {
      for (std::size_t y = 0; y < e[2]; ++y) {
        for (std::size_t x = 0; x < e[3]; ++x) {
          const double u = 0.3 * static_cast<double>(t) + 0.11 * static_cast<double>(z) -
                           0.07 * static_cast<double>(y) + 0.05 * static_cast<double>(x);
          values.push_back(static_cast<T>(100 * u * (1 - 0.01 * u) + noise * random.next()));
        }
      }
    }
  }
  return values;
}

void expect_same(const Sampled& a, const Sampled& b) {
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.misfit_share, b.misfit_share);
  ASSERT_EQ(a.n_predictions, b.n_predictions);
  for (std::size_t k = 0; k < a.n_predictions; ++k) {
    const Prediction& p = a.predictions[k];
    const Prediction& q = b.predictions[k];
    EXPECT_EQ(p.interpolated, q.interpolated) << k;
    EXPECT_EQ(p.order, q.order) << k;
    EXPECT_EQ(p.extents, q.extents) << k;
    EXPECT_EQ(p.step, q.step) << k;
    EXPECT_EQ(p.bits_per_value, q.bits_per_value) << k;
    EXPECT_EQ(p.plan.last_axis, q.plan.last_axis) << k;
    EXPECT_EQ(p.plan.axis_weight, q.plan.axis_weight) << k;
    EXPECT_EQ(p.plan.alpha_16, q.plan.alpha_16) << k;
  }
}

template <class T>
void expect_same_under_all_isas(const Extents& extents, double noise, bool masked) {
  std::vector<T> values = smooth_field<T>(extents, noise);
  const T fill = T(-999);
  if (masked) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / 37 % 3 == 0) values[i] = fill;
      if (i % 1009 == 0) values[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  for (const double bound : {1e-3, 0.1, 10.0}) {
    const auto sample = [&](Isa isa) {
      return sample_chunk<T>(values.data(), extents, masked ? &fill : nullptr, bound, {}, isa);
    };
    const Sampled plain = sample(Isa::plain);
    ASSERT_GT(plain.n_predictions, 0U);
    for (const Isa isa : {Isa::avx2, Isa::avx512}) {
      if (isa_supported(isa)) expect_same(plain, sample(isa));
    }
  }
}

TEST(TrzChoose, SameUnderAllInstructionSets) {
  for (const bool masked : {false, true}) {
    expect_same_under_all_isas<float>({1, 1, 1, 5000}, 1, masked);
    expect_same_under_all_isas<float>({1, 1, 3, 8192}, 1, masked);
    expect_same_under_all_isas<float>({1, 20, 30, 50}, 1, masked);
    expect_same_under_all_isas<float>({6, 20, 30, 40}, 1, masked);
    expect_same_under_all_isas<double>({1, 33, 17, 65}, 0.01, masked);
  }
}

TEST(TrzChoose, TinyChunksHaveAChoice) {
  for (const Extents& e : {Extents{1, 1, 1, 2}, Extents{1, 1, 2, 2}, Extents{2, 2, 2, 2},
                           Extents{1, 3, 2, 5}, Extents{1, 1, 7, 3}}) {
    const std::vector<float> values = smooth_field<float>(e, 1);
    const Sampled sampled = sample_chunk<float>(values.data(), e, nullptr, 0.5, {}, best_isa());
    ASSERT_GT(sampled.n_predictions, 0U);
    const Extents& chosen = sampled.best().extents;
    EXPECT_EQ(chosen[0] * chosen[1] * chosen[2] * chosen[3], values.size());
  }
}

TEST(TrzChoose, KeepsToWhatTheUserWants) {
  const Extents extents{1, 32, 32, 64};
  const std::vector<float> values = smooth_field<float>(extents, 1);
  const auto best = [&](const Settings& settings) {
    return sample_chunk<float>(values.data(), extents, nullptr, 0.1, settings, best_isa()).best();
  };
  Settings settings;
  settings.predictor = Predictor::lorenzo;
  settings.dimensions = 2;
  EXPECT_FALSE(best(settings).interpolated);
  EXPECT_EQ(best(settings).order, 2);
  settings = {};
  settings.predictor = Predictor::none;
  EXPECT_EQ(best(settings).order, 0);
  settings = {};
  settings.predictor = Predictor::interpolation;
  settings.last_axis = 1;
  settings.spline = Spline::linear;
  EXPECT_TRUE(best(settings).interpolated);
  EXPECT_EQ(best(settings).plan.last_axis, 1);
  EXPECT_EQ(best(settings).plan.spline[0], RowSpline::linear);
  EXPECT_EQ(best(settings).extents, extents);
}

TEST(TrzChoose, FindsThePeriodOfRows) {
  // A sawtooth of period 96 whose teeth differ slowly, with a rough pattern.
  std::vector<double> pattern;
  Noise random;
  for (int i = 0; i < 96; ++i) pattern.push_back(100 * random.next());
  std::vector<float> values;
  for (std::size_t i = 0; i < 96U * 640U; ++i) {
    values.push_back(static_cast<float>(pattern[i % 96] + 1e-5 * static_cast<double>(i / 96)));
  }
  const Extents extents{1, 1, 1, values.size()};
  SampledValues<float> chunk{values.data(), nullptr, 0.01F};
  chunk.step = 0.02;
  EXPECT_EQ(find_period(chunk, extents, 4096, best_isa()), 96U);
  const Sampled sampled =
      sample_chunk<float>(values.data(), extents, nullptr, 0.01, {}, best_isa());
  EXPECT_EQ(sampled.best().extents, (Extents{1, 1, 640, 96}));

  std::vector<float> noise;
  for (std::size_t i = 0; i < 65536; ++i) noise.push_back(static_cast<float>(random.next()));
  chunk.values = noise.data();
  EXPECT_EQ(find_period(chunk, {1, 1, 1, 65536}, 4096, best_isa()), 0U);
}

TEST(TrzChoose, FindsTheQuantum) {
  Noise random;
  for (const double quantum : {0.1, 0.001, 1.0, 0.25, 7.0, 0.0125}) {
    std::vector<float> values;
    for (int i = 0; i < 300; ++i) {
      values.push_back(
          static_cast<float>(53 * quantum + std::nearbyint(3000 * random.next()) * quantum));
    }
    EXPECT_NEAR(find_quantum(std::span(values), quantum / 3), quantum, quantum * 1e-5) << quantum;
    EXPECT_EQ(find_quantum(std::span(values), quantum * 1.5), 0) << quantum;
  }
  std::vector<float> values;
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(random.next()));
  EXPECT_EQ(find_quantum(std::span(values), 1e-5), 0);
  EXPECT_EQ(find_quantum(std::span(values).first(5), 1e-5), 0);
}

TEST(TrzChoose, CodesValuesOnTheirOwnLattice) {
  Noise random;
  std::vector<float> values;
  for (int i = 0; i < 64 * 64 * 16; ++i) {
    values.push_back(static_cast<float>(std::nearbyint(500 * random.next()) / 10));
  }
  const Extents extents{1, 16, 64, 64};
  const auto best = [&](double bound) {
    return sample_chunk<float>(values.data(), extents, nullptr, bound, {}, best_isa()).best();
  };
  EXPECT_EQ(best(1e-3).step, 0.1);
  EXPECT_EQ(best(0.2).step, 0);
}

TEST(TrzChoose, FindsAFillValueFarFromTheOthersAlone) {
  const Extents extents{1, 16, 64, 64};
  const auto sampled_with = [&](float every_third, const float* named) {
    std::vector<float> values = smooth_field<float>(extents, 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / 41 % 3 == 0) values[i] = every_third;
    }
    const Sampled plain = sample_chunk<float>(values.data(), extents, named, 0.1, {}, Isa::plain);
    const Sampled here = sample_chunk<float>(values.data(), extents, named, 0.1, {}, best_isa());
    EXPECT_EQ(plain.has_fill, here.has_fill);
    expect_same(plain, here);
    return plain;
  };
  for (const float far : {-9999.0F, 1e20F, -1e34F}) {
    const Sampled sampled = sampled_with(far, nullptr);
    EXPECT_TRUE(sampled.has_fill) << far;
    EXPECT_EQ(static_cast<float>(sampled.fill), far);
    EXPECT_NEAR(sampled.special_share, 1.0 / 3, 0.1);
    EXPECT_FALSE(sampled_with(far, &far).has_fill) << "it is named";
  }
  EXPECT_FALSE(sampled_with(-300.0F, nullptr).has_fill) << "an end of the others' range";
  EXPECT_FALSE(sampled_with(100.0F, nullptr).has_fill) << "within it";
  EXPECT_FALSE(sampled_with(std::numeric_limits<float>::infinity(), nullptr).has_fill);
}

TEST(TrzChoose, CostsGrowWithTheCodes) {
  const RunCosts& table = RunCosts::table();
  double before = 0;
  EXPECT_EQ(entropy_of_mean(0), 0);
  EXPECT_EQ(table.of(0), 0);
  for (double mean = 1.0 / 64; mean < 0x1p19; mean *= 1.37) {
    const double entropy = entropy_of_mean(mean);
    EXPECT_GT(entropy, before);
    EXPECT_NEAR(table.of_mean(mean), entropy, 0.02 + 0.01 * entropy);
    EXPECT_NEAR(table.mean_of(table.of_mean(mean)), mean, 0.07 * mean);
    before = entropy;
  }
  EXPECT_NEAR(log2_of(1000), 9.9657842847, 1e-5);
  EXPECT_NEAR(entropy_of_mean(1), 2.5431, 0.001);
}

}  // namespace
}  // namespace tailrace::trz
