// Learning from chunk sizes: calibration, drift, the blend, and honest deviations.

#include "model/size_history.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tailrace {
namespace {

TEST(SizeHistory, SaysNothingWithoutASource) {
  SizeHistory history;
  EXPECT_FALSE(history.forecast(7, std::nullopt));
  history.record(7, std::nullopt, 1000);
  EXPECT_FALSE(history.forecast(7, std::nullopt));  // Not before the batch ends.
  history.end_batch();
  ASSERT_TRUE(history.forecast(7, std::nullopt));
  EXPECT_FALSE(history.forecast(8, std::nullopt));
  EXPECT_NEAR(history.forecast(7, std::nullopt)->encoded_bytes, 1000, 1e-6);
}

TEST(SizeHistory, TakesASampleAsItIsUntilItKnowsBetter) {
  SizeHistory history;
  const SizeForecast first = *history.forecast(0, 500.0);
  EXPECT_NEAR(first.encoded_bytes, 500, 1e-9);
  EXPECT_GT(first.deviation_bytes, 0);
  for (std::uint64_t chunk = 0; chunk < 4; ++chunk) history.record(chunk, 500.0, 1000);
  history.end_batch();
  history.forget_chunks();
  EXPECT_FALSE(history.has_previous(0));
  const SizeForecast second = *history.forecast(9, 300.0);
  EXPECT_NEAR(second.encoded_bytes, 600, 1e-6);
  EXPECT_LT(second.deviation_bytes / second.encoded_bytes,
            first.deviation_bytes / first.encoded_bytes);
}

TEST(SizeHistory, FollowsTheDriftOfAField) {
  SizeHistory history;
  double bytes = 1e6;
  for (int step = 0; step < 12; ++step) {
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      history.record(chunk, std::nullopt, static_cast<std::uint64_t>(bytes));
    }
    history.end_batch();
    bytes *= 1.05;
  }
  EXPECT_NEAR(history.forecast(3, std::nullopt)->encoded_bytes / bytes, 1, 0.003);
}

/// Chunks whose sizes follow a random walk with this deviation, and samples with a bias and this
/// much noise. Measures the squares of forecast errors, each divided by its own deviation.
struct Trial {
  double walk = 0;
  double noise = 0;
  double mean_error = 0;  ///< Mean absolute error of the logarithm.
  double within_one = 0;  ///< Share of forecasts within one deviation.
};

Trial run(Trial trial, bool sampled, bool stepped) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  SizeHistory history;
  constexpr std::uint64_t n_chunks = 16;
  std::vector<double> logs(n_chunks);
  for (double& log : logs) log = std::log(1e6) + normal(random);
  int n = 0;
  for (int step = 0; step < 40; ++step) {
    if (!stepped) history.forget_chunks();
    for (std::uint64_t c = 0; c < n_chunks; ++c) {
      logs[c] += trial.walk * normal(random);
      const double actual = std::exp(logs[c]);
      std::optional<double> sample;
      if (sampled) sample = 0.7 * actual * std::exp(trial.noise * normal(random));
      const std::optional<SizeForecast> forecast = history.forecast(c, sample);
      history.record(c, sample, static_cast<std::uint64_t>(actual));
      if (step == 0) continue;
      const double error = std::abs(forecast->encoded_bytes - actual);
      trial.mean_error += error / actual;
      trial.within_one += error <= forecast->deviation_bytes ? 1 : 0;
      ++n;
    }
    history.end_batch();
  }
  trial.mean_error /= n;
  trial.within_one /= n;
  return trial;
}

TEST(SizeHistory, DeviationsAreHonest) {
  for (const auto& [walk, noise] : {std::pair{0.01, 0.03}, {0.1, 0.02}, {0.04, 0.05}}) {
    for (const auto& [sampled, stepped] : {std::pair{true, false}, {false, true}, {true, true}}) {
      const Trial trial = run({walk, noise}, sampled, stepped);
      EXPECT_NEAR(trial.within_one, 0.68, 0.06) << walk << " " << noise << sampled << stepped;
    }
  }
}

TEST(SizeHistory, TheBlendIsNoWorseThanTheBetterSource) {
  for (const auto& [walk, noise] : {std::pair{0.01, 0.1}, {0.1, 0.01}, {0.03, 0.03}}) {
    const double by_sample = run({walk, noise}, true, false).mean_error;
    const double by_previous = run({walk, noise}, false, true).mean_error;
    const double by_both = run({walk, noise}, true, true).mean_error;
    EXPECT_LT(by_both, 1.05 * std::min(by_sample, by_previous));
  }
}

TEST(SizeHistory, AnAbsurdSampleDoesNotSpoilTheNextForecasts) {
  SizeHistory history;
  for (int step = 0; step < 5; ++step) {
    for (std::uint64_t c = 0; c < 8; ++c) history.record(c, 1000.0, 1000);
    history.end_batch();
  }
  history.record(0, 1000.0, 100000000);
  history.end_batch();
  history.forget_chunks();
  EXPECT_NEAR(history.forecast(1, 1000.0)->encoded_bytes, 1000, 50);
  history.record(0, 0.0, 0);  // Logarithm of zero.
  history.end_batch();
  EXPECT_TRUE(std::isfinite(history.forecast(0, 0.0)->encoded_bytes));
}

}  // namespace
}  // namespace tailrace
