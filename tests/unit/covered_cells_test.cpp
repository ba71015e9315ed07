// Cells of a level that finer boxes cover, and their replaced values.

#include "core/covered_cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "field/covered_values.hpp"
#include "field/field_state.hpp"

namespace tailrace {
namespace {

using Corner = std::vector<std::int64_t>;

LevelCorners corners(std::size_t n_dimensions, std::vector<Corner> boxes) {
  LevelCorners level{n_dimensions, {}};
  for (const Corner& box : boxes) level.numbers.insert(level.numbers.end(), box.begin(), box.end());
  return level;
}

std::shared_ptr<const BoxSeries> series_of(const LevelCorners& level, std::size_t n_components) {
  auto series = std::make_shared<BoxSeries>();
  for (std::size_t b = 0; b < level.n_boxes(); ++b) {
    Shape cells;
    for (std::size_t axis = level.n_dimensions; axis-- > 0;) {
      cells.push_back(static_cast<std::uint64_t>(level.high(b, axis) - level.low(b, axis) + 1));
    }
    if (series->runs.empty() || series->runs.back().cells != cells) {
      series->runs.push_back({0, cells});
    }
    ++series->runs.back().n_boxes;
  }
  for (std::size_t c = 0; c < n_components; ++c) series->components.push_back(std::to_string(c));
  return series;
}

TEST(CoveredParts, are_within_their_boxes_and_whole_cells_only) {
  // Along i 5 to 12 of the finer level: the first cell of 2 is covered by half.
  const auto parts = covered_parts(corners(2, {{0, 0, 7, 3}, {8, 0, 15, 3}}),
                                   corners(2, {{5, 2, 12, 5}, {14, -4, 19, 1}}), Corner{2, 2});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].box, 0U);
  EXPECT_EQ(parts[0].cells, (Box{{0, 7}, {1, 1}}));  // The second box: i = 7 to 9, j = -2 to 0.
  EXPECT_EQ(parts[1].box, 0U);
  EXPECT_EQ(parts[1].cells, (Box{{1, 3}, {2, 3}}));  // The first: i = 3 to 5, j = 1 to 2.
  EXPECT_EQ(parts[2].box, 1U);
  EXPECT_EQ(parts[2].cells, (Box{{0, 0}, {1, 2}}));
}

TEST(CoveredParts, of_other_ratios_and_negative_indices) {
  const auto parts = covered_parts(corners(3, {{-8, -8, -8, -1, -1, -1}}),
                                   corners(3, {{-32, -7, -16, -5, -1, -1}}), Corner{4, 1, 2});
  ASSERT_EQ(parts.size(), 1U);
  // Along i -32 to -5 in fours is -8 to -2.
  EXPECT_EQ(parts[0].cells, (Box{{0, 1, 0}, {8, 7, 7}}));
  EXPECT_TRUE(covered_parts(corners(1, {{0, 9}}), corners(1, {{3, 3}}), Corner{2}).empty());
  EXPECT_TRUE(covered_parts(corners(1, {{0, 9}}), corners(1, {}), Corner{2}).empty());
}

/// Reference implementation with a set of all finer cells of each box.
bool is_covered(const LevelCorners& finer, const Corner& cell, std::int64_t ratio) {
  for (std::size_t f = 0; f < finer.n_boxes(); ++f) {
    bool whole = true;
    for (std::size_t axis = 0; axis < cell.size(); ++axis) {
      whole = whole && cell[axis] * ratio >= finer.low(f, axis) &&
              (cell[axis] + 1) * ratio - 1 <= finer.high(f, axis);
    }
    if (whole) return true;
  }
  return false;
}

TEST(CoveredCells, marks_are_those_of_every_cell_looked_at_alone) {
  std::mt19937 random(7);
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 30; ++trial) {
    const auto rank = static_cast<std::size_t>(number(1, 3));
    const std::int64_t ratio = number(1, 4);
    const auto some_boxes = [&](int n, std::int64_t scale) {
      std::vector<Corner> boxes;
      for (int b = 0; b < n; ++b) {
        Corner low(rank);
        Corner high(rank);
        for (std::size_t axis = 0; axis < rank; ++axis) {
          low[axis] = number(-10, 10) * scale + number(0, int(scale) - 1);
          high[axis] = low[axis] + number(0, 5 * int(scale));
        }
        low.insert(low.end(), high.begin(), high.end());
        boxes.push_back(low);
      }
      return boxes;
    };
    const LevelCorners level = corners(rank, some_boxes(9, 1));
    const LevelCorners finer = corners(rank, some_boxes(12, ratio));
    const std::size_t n_components = 3;
    const CoveredCells cells(series_of(level, n_components),
                             covered_parts(level, finer, Corner(rank, ratio)));
    std::vector<std::uint8_t> expected;
    for (std::size_t b = 0; b < level.n_boxes(); ++b) {
      std::vector<std::uint8_t> of_box;
      const auto low = [&](std::size_t axis) { return axis < rank ? level.low(b, axis) : 0; };
      const auto high = [&](std::size_t axis) { return axis < rank ? level.high(b, axis) : 0; };
      for (std::int64_t k = low(2); k <= high(2); ++k) {
        for (std::int64_t j = low(1); j <= high(1); ++j) {
          for (std::int64_t i = low(0); i <= high(0); ++i) {
            Corner cell{i, j, k};
            cell.resize(rank);
            of_box.push_back(is_covered(finer, cell, ratio) ? 1 : 0);
          }
        }
      }
      for (std::size_t c = 0; c < n_components; ++c) {
        expected.insert(expected.end(), of_box.begin(), of_box.end());
      }
    }
    std::vector<std::uint8_t> marks(expected.size());
    EXPECT_EQ(cells.mark(0, marks), std::ranges::count(expected, 1) > 0);
    EXPECT_EQ(marks, expected);
    // In parts, also beyond the end.
    for (std::size_t first = 0; first < expected.size(); first += 37) {
      std::vector<std::uint8_t> piece(37);
      const std::size_t n = std::min<std::size_t>(37, expected.size() - first);
      const bool any = cells.mark(first, piece);
      std::vector<std::uint8_t> wanted(expected.begin() + std::ptrdiff_t(first),
                                       expected.begin() + std::ptrdiff_t(first + n));
      wanted.resize(37);
      EXPECT_EQ(piece, wanted);
      EXPECT_EQ(any, std::ranges::count(wanted, 1) > 0);
    }
    // Components are stored one after the other.
    std::uint64_t at = 0;
    for (std::size_t b = 0; b < level.n_boxes(); ++b) {
      std::uint64_t n_cells = 1;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        n_cells *= static_cast<std::uint64_t>(level.high(b, axis) - level.low(b, axis) + 1);
      }
      for (std::size_t c = 0; c < n_components; ++c, at += n_cells) {
        EXPECT_EQ(cells.component_end(at), at + n_cells);
        EXPECT_EQ(cells.component_end(at + n_cells - 1), at + n_cells);
      }
    }
    EXPECT_EQ(cells.component_end(at), UINT64_MAX);
    EXPECT_EQ(cells.checksum(), CoveredCells(series_of(level, n_components),
                                             covered_parts(level, finer, Corner(rank, ratio)))
                                    .checksum());
  }
}

/// Values and marks of covered cells, in the corner of a box of these cells.
template <class T>
struct Values {
  Shape shape;
  std::vector<T> values;
  std::vector<std::uint8_t> covered;

  Values(Shape of, const Shape& first_covered) : shape(std::move(of)) {
    for_each_position(whole_box(shape), [&](const Shape& at) {
      double value = 3;
      bool all = true;
      for (std::size_t d = 0; d < at.size(); ++d) {
        value += static_cast<double>(d + 1) * static_cast<double>(at[d]);
        all = all && at[d] >= first_covered[d];
      }
      values.push_back(static_cast<T>(value));
      covered.push_back(all ? 1 : 0);
    });
  }
  std::vector<T> replaced(bool smooth, std::optional<double> fill = std::nullopt) const {
    std::vector<T> made = values;
    const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
    replace_covered(dtype, shape, covered, smooth, fill, std::as_writable_bytes(std::span(made)));
    return made;
  }
};

template <class T>
class CoveredValuesOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CoveredValuesOf, Reals);

TYPED_TEST(CoveredValuesOf, others_stay_and_covered_ones_lie_between_them) {
  using T = TypeParam;
  const std::vector<std::pair<Shape, Shape>> cases = {{{100}, {60}},
                                                      {{7}, {1}},
                                                      {{20, 31}, {5, 9}},
                                                      {{16, 16, 16}, {8, 8, 8}},
                                                      {{1, 9, 13}, {0, 2, 12}},
                                                      {{5, 6, 7}, {1, 0, 0}}};
  for (const auto& [shape, first_covered] : cases) {
    const Values<T> some(shape, first_covered);
    for (const bool smooth : {true, false}) {
      const std::vector<T> made = some.replaced(smooth);
      const auto [least, greatest] = std::ranges::minmax(some.values);
      std::set<T> taken;
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (some.covered[i] == 0) {
          EXPECT_EQ(made[i], some.values[i]);
          continue;
        }
        taken.insert(made[i]);
        EXPECT_GE(made[i], least);
        EXPECT_LE(made[i], greatest);
      }
      if (!smooth) {
        EXPECT_EQ(taken.size(), 1U);
      }
    }
  }
}

TYPED_TEST(CoveredValuesOf, a_hole_in_a_plane_is_filled_smoothly) {
  using T = TypeParam;
  Values<T> some({24, 24}, {0, 0});
  for (std::size_t i = 0; i < some.covered.size(); ++i) {
    const std::size_t y = i / 24;
    const std::size_t x = i % 24;
    some.covered[i] = y >= 8 && y < 16 && x >= 8 && x < 16 ? 1 : 0;
  }
  const std::vector<T> made = some.replaced(true);
  // The range is 1 * 23 + 2 * 23.
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], some.values[i], 4);
}

TYPED_TEST(CoveredValuesOf, what_is_no_number_stays_and_is_not_gone_by) {
  using T = TypeParam;
  Values<T> some({16, 16}, {8, 8});
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  constexpr T infinity = std::numeric_limits<T>::infinity();
  some.values[3] = nan;
  some.values[7 * 16 + 9] = infinity;
  some.values[9 * 16 + 7] = T{1e30F};
  some.values[12 * 16 + 12] = nan;  // Covered.
  for (const bool smooth : {true, false}) {
    const std::vector<T> made = some.replaced(smooth, static_cast<double>(T{1e30F}));
    EXPECT_TRUE(std::isnan(made[3]));
    EXPECT_EQ(made[7 * 16 + 9], infinity);
    EXPECT_EQ(made[9 * 16 + 7], T{1e30F});
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (some.covered[i] == 0) continue;
      EXPECT_GE(made[i], 3);
      EXPECT_LE(made[i], 3 + 15 + 2 * 15);
    }
  }
  // No valid value at all.
  std::ranges::fill(some.values, nan);
  for (const bool smooth : {true, false}) EXPECT_EQ(some.replaced(smooth)[8 * 16 + 8], 0);
  // Sums of the greatest numbers do not overflow.
  std::ranges::fill(some.values, std::numeric_limits<T>::max());
  for (const bool smooth : {true, false}) {
    EXPECT_TRUE(std::isfinite(some.replaced(smooth)[15 * 16 + 15]));
  }
}

TYPED_TEST(CoveredValuesOf, all_of_a_chunk_become_their_mean) {
  using T = TypeParam;
  const Values<T> some({4, 5}, {0, 0});
  double sum = 0;
  for (const T value : some.values) sum += value;
  for (const bool smooth : {true, false}) {
    for (const T value : some.replaced(smooth)) EXPECT_NEAR(value, sum / 20, 1e-5);
  }
}

TEST(CoveredOption, is_for_levels_of_plotfiles) {
  FieldDefinition field;
  field.path = "/u";
  field.shape = {100};
  field.options.drop_covered = true;
  const Status checked = check_definition(field);
  EXPECT_EQ(checked.code(), Code::invalid_argument);
  EXPECT_NE(checked.message().find("covered=drop applies only to plotfile levels"),
            std::string::npos);
}

}  // namespace
}  // namespace tailrace
