// Algorithm 1 of Liang et al. 2019: its trials, savings and results.

#include "model/dump_time.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

namespace tailrace {
namespace {

using Setting = PredictorSetting;

struct Tried {
  Setting best;
  std::vector<Setting> order;
};

/// Seconds for dimensions 1, 2, 3 and for regression.
Tried search(std::size_t n_dimensions, double one, double two, double three, double regression) {
  const std::map<Setting, double> seconds = {{Setting::dimension_1, one},
                                             {Setting::dimension_2, two},
                                             {Setting::dimension_3, three},
                                             {Setting::regression, regression}};
  Tried tried{};
  tried.best = search_predictor(n_dimensions, [&](Setting setting) {
    tried.order.push_back(setting);
    return seconds.at(setting);
  });
  return tried;
}

TEST(ParameterSearch, RegressionEndsTheSearch) {
  const Tried tried = search(3, 2, 0, 0, 1);
  EXPECT_EQ(tried.best, Setting::regression);
  EXPECT_EQ(tried.order, (std::vector<Setting>{Setting::dimension_1, Setting::regression}));
}

TEST(ParameterSearch, ThreeDimensionsAreNotTriedWhereTwoAreWorseThanOne) {
  const Tried tried = search(3, 1, 2, 0, 3);
  EXPECT_EQ(tried.best, Setting::dimension_1);
  EXPECT_EQ(tried.order, (std::vector<Setting>{Setting::dimension_1, Setting::regression,
                                               Setting::dimension_2}));
}

TEST(ParameterSearch, TwoOrThreeDimensions) {
  EXPECT_EQ(search(3, 3, 2, 1, 4).best, Setting::dimension_3);
  EXPECT_EQ(search(3, 3, 1, 2, 4).best, Setting::dimension_2);
  EXPECT_EQ(search(3, 3, 1, 2, 4).order.size(), 4U);
}

TEST(ParameterSearch, PredictsAlongNoMoreDimensionsThanTheDataHave) {
  EXPECT_EQ(search(2, 3, 2, 1, 4).best, Setting::dimension_2);
  EXPECT_EQ(search(1, 3, 2, 1, 4).best, Setting::dimension_1);
  EXPECT_EQ(search(1, 3, 2, 1, 2).best, Setting::regression);
  EXPECT_EQ(search(0, 3, 2, 1, 2).best, Setting::dimension_1);
}

TEST(ParameterSearch, WhatCannotBeUsedNeverWins) {
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(search(3, 1, 2, 3, never).best, Setting::dimension_1);
  EXPECT_EQ(search(3, never, 2, 3, 5).best, Setting::regression);
  EXPECT_EQ(search(3, 2, 1, never, 5).best, Setting::dimension_2);
}

TEST(ParameterSearch, SettingsInTheWordsOfTheCommandLine) {
  EXPECT_EQ(predictor_setting_text(Setting::dimension_3), "predictor=lorenzo,dimension=3");
  EXPECT_EQ(predictor_setting_text(Setting::regression), "predictor=interpolation");
}

}  // namespace
}  // namespace tailrace
