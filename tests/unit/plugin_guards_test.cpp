// Values and bounds for which lossy plug-ins have crashed, so that they must not receive them.

#include "hdf5/plugin_known.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tailrace {
namespace {

template <class T>
bool sperr_takes(const std::vector<T>& values, double bound) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  return guard_sperr(dtype, std::as_bytes(std::span(values)), bound) == nullptr;
}

TEST(PluginGuards, SperrTakesOrdinaryValuesUnderOrdinaryBounds) {
  EXPECT_TRUE(sperr_takes<float>({1, -2, 3}, 1e-3));
  EXPECT_TRUE(sperr_takes<double>({1, -2, 3e20}, 1e17));
}

TEST(PluginGuards, SperrCrashesOnTheseBoundsOfFillValues) {
  // climate.h5, coads_airt: values of 25 and a fill value of -1e34, rel=1e-2.
  EXPECT_FALSE(sperr_takes<float>({25, -1e34F}, 1e32));
  EXPECT_FALSE(sperr_takes<double>({25, -1e34}, 1e32));
  EXPECT_FALSE(sperr_takes<float>({1e20F, 1}, 1e19));
}

TEST(PluginGuards, SperrCrashesOnTheseValues) {
  EXPECT_FALSE(sperr_takes<float>({std::numeric_limits<float>::quiet_NaN()}, 1));
  EXPECT_FALSE(sperr_takes<double>({std::numeric_limits<double>::infinity()}, 1));
  EXPECT_FALSE(sperr_takes<double>({1e6}, 1e-9));
}

}  // namespace
}  // namespace tailrace
