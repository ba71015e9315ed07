// Fields for which prediction is harmful: maps of a few thousand materials, stations without most
// of their values, positions that repeat. A lossy bound must never make them larger than lossless
// coding.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/trz_cases.hpp"
#include "trz/trz.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;

/// Encoded bytes of a chunk, after a check of its bound.
std::size_t encoded_bytes(const Case& chunk) {
  Workspace workspace;
  std::vector<std::byte> encoded;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &encoded));
  return encoded.size();
}

/// Squares of 8 x 8 cells, each with one of n_materials values in random order.
template <class T>
std::vector<T> material_map(std::size_t side, std::size_t n_materials) {
  Random random(1);
  std::vector<T> materials(n_materials);
  for (T& material : materials) material = static_cast<T>(100 * random.unit());
  std::vector<std::size_t> square(side / 8 * (side / 8));
  for (std::size_t& which : square) which = random.below(n_materials);
  std::vector<T> map(side * side);
  for (std::size_t i = 0; i < map.size(); ++i) {
    map[i] = materials[square[i / side / 8 * (side / 8) + i % side / 8]];
  }
  return map;
}

/// Positions on an axis; each of n_places occurs again and again.
std::vector<float> repeated_places(std::size_t n, std::size_t n_places) {
  Random random(2);
  std::vector<float> places(n_places);
  for (float& place : places) place = static_cast<float>(50 * random.unit());
  std::vector<float> values(n);
  for (float& value : values) value = places[random.below(n_places)];
  return values;
}

TEST(TrzFewValues, TheRatioPresetIsNeverLargerThanExact) {
  const auto map = material_map<float>(256, 900);
  const auto wide_map = material_map<double>(128, 200);
  const auto places = repeated_places(60000, 60);
  const std::size_t exact_map = encoded_bytes(whole::case_of(map, {256, 256}, 0, Preset::ratio));
  const std::size_t exact_wide =
      encoded_bytes(whole::case_of(wide_map, {128, 128}, 0, Preset::ratio));
  const std::size_t exact_places = encoded_bytes(whole::case_of(places, {60000}, 0, Preset::ratio));
  for (const double bound : {1.0, 1e-2, 1e-3, 1e-4, 1e-5}) {
    EXPECT_LE(encoded_bytes(whole::case_of(map, {256, 256}, bound, Preset::ratio)), exact_map)
        << bound;
    EXPECT_LE(encoded_bytes(whole::case_of(wide_map, {128, 128}, bound, Preset::ratio)), exact_wide)
        << bound;
    EXPECT_LE(encoded_bytes(whole::case_of(places, {60000}, bound, Preset::ratio)), exact_places)
        << bound;
  }
}

/// More than a year of stations' temperatures, to a tenth; runs of days are missing.
template <class T>
std::vector<T> stations(std::size_t n_days, std::size_t n_stations, double absent, T fill) {
  Random random(3);
  std::vector<T> values(n_days * n_stations);
  for (std::size_t s = 0; s < n_stations; ++s) {
    double weather = 0;
    bool there = true;
    for (std::size_t day = 0; day < n_days; ++day) {
      weather = 0.8 * weather + 4 * (random.unit() - 0.5);
      if (random.chance(0.05)) there = !random.chance(absent);
      const double season = 10 * std::sin(0.0172 * static_cast<double>(day + 3 * s));
      values[day * n_stations + s] =
          there ? static_cast<T>(std::nearbyint(10 * (15 + season + weather)) / 10) : fill;
    }
  }
  return values;
}

/// Ranks come from a table if the lattice has up to 65,536 points between the least and the
/// greatest word; beyond that they are counted.
TEST(TrzFewValues, WordsNearAndFarAreTakenAlike) {
  constexpr double bound = 1e-3;
  for (const std::size_t n_points :
       {70U, 65533U, 65534U, 65535U, 65536U, 65537U, 65538U, 200000U}) {
    for (const std::size_t n_words : {50U, 300U}) {
      if (n_words > n_points) continue;
      Random random(n_points);
      const double step = 2 * bound * (1 - 1.0 / 1024);
      std::vector<double> words(n_words);
      for (double& word : words) word = step * static_cast<double>(random.below(n_points));
      words[0] = 0;
      words[1] = step * static_cast<double>(n_points - 1);
      std::vector<double> values(8000);
      for (double& value : values) value = words[random.below(n_words)];
      const Case chunk = whole::case_of(values, {values.size()}, bound, Preset::ratio);
      Workspace workspace;
      std::vector<std::byte> encoded;
      ASSERT_TRUE(whole::round_trip(chunk, workspace, &encoded)) << n_points << ' ' << n_words;
      // Ranks of random words have one or two bytes before coding, and 6 or 9 bits after it.
      EXPECT_LT(encoded.size(), 8000 * (n_words < 256 ? 6.0 : 9.0) / 8 + 1500) << n_points;
    }
  }
}

TEST(TrzFewValues, AFillValueThatNobodyNamedIsFound) {
  const auto series = stations<float>(1000, 40, 0.58, -9999);
  const auto wide = stations<double>(600, 40, 0.14, 1e20);
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio}) {
    for (const double bound : {0.5, 0.01}) {
      Case chunk = whole::case_of(series, {1000, 40}, bound, preset);
      const std::size_t found = encoded_bytes(chunk);
      chunk.type.fill_value = -9999;
      const std::size_t named = encoded_bytes(chunk);
      EXPECT_LE(found, named + named / 50) << chunk.text();
      chunk = whole::case_of(wide, {600, 40}, bound, preset);
      const std::size_t wide_found = encoded_bytes(chunk);
      chunk.type.fill_value = 1e20;
      EXPECT_LE(wide_found, encoded_bytes(chunk) * 51 / 50) << chunk.text();
      // A step of 1e20 leaves no useful lattice for the bound.
      EXPECT_LT(4 * wide_found, chunk.values.size()) << chunk.text();
    }
  }
}

TEST(TrzFewValues, AFillValueIsNotMaskedWhereThatIsLarger) {
  // Runs with a loose bound: the codes at their edges are smaller than their positions.
  std::vector<float> runs(60000);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i] = i / 50 % 2 == 0 ? -9999.0F
                              : static_cast<float>(20 * std::sin(static_cast<double>(i) / 300));
  }
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio}) {
    for (const double bound : {10.0, 1.0}) {
      Case chunk = whole::case_of(runs, {60000}, bound, preset);
      const std::size_t found = encoded_bytes(chunk);
      chunk.type.fill_value = 1e30;  // Does not occur; disables the search.
      // Preset ratio tries second predictions and vocabularies only with the fill value.
      const std::size_t unmasked = encoded_bytes(chunk);
      EXPECT_LE(found, preset == Preset::ratio ? unmasked * 11 / 10 : unmasked) << chunk.text();
    }
  }
  // A sample that sees nothing but the fill value is not used.
  std::vector<float> rows(std::size_t{64} * 64 * 64, -9999.0F);
  for (std::size_t i = 0; i < rows.size(); i += std::size_t{67} * 64) {
    for (std::size_t x = 0; x < 64; ++x)
      rows[i + x] = static_cast<float>(1e6 + static_cast<double>(x));
  }
  EXPECT_LT(encoded_bytes(whole::case_of(rows, {64, 64, 64}, 0.5, Preset::standard)), rows.size());
}

}  // namespace
}  // namespace tailrace::trz
