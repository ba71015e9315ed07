// Fitted interpolation: the pyramid of interpolation.hpp with weights fitted per chunk.
// Neighbouring codes predict the magnitude of each code. Used by preset max.
//
// The new points of a level form seven classes, by the axes along which their index is odd. A class
// is predicted after all lower classes are complete, from groups of neighbours. These are two pairs
// along each of its axes, and the corners of the squares and the cube around it. Within a class
// only the contexts depend on other points, those of the previous rows. So the weights are fitted
// class by class to decoded values (closed loop, least squares over a sample), as are the weights
// of the contexts. Format: trz/docs/trz-format.md, section 11.
// Source: QoZ and HPEZ (Liu et al. 2022, 2024) for fitted weights, lossless image coding (Wu and
// Memon 1997) for contexts by magnitude. The groups, the order and the format are ours.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "trz/kernels/fitted_kernels.hpp"
#include "trz/predict/interpolation.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/predict/least_squares.hpp"

namespace tailrace::trz {
namespace {

// --- classes: numbers below 8 whose bits are the axes along which a point is odd (1 x, 2 y, 4 z).

constexpr std::size_t kClasses8 = 8;
constexpr std::size_t kAxes = 3;
constexpr std::size_t kOwnLevelsMax = 8;
/// Levels with fewer new points use usual_model() instead of fitted weights.
constexpr std::size_t kOwnPointsMin = 4096;

constexpr int kWeightUnit = 512;  ///< Weights of predictions are multiples of 1 / kWeightUnit.
constexpr int kWeightMax = 4095;
/// Unit: 1 / kContextUnit; the least sum is at most 32 times it.
constexpr int kContextWeightMax = 2047;
constexpr int kContextLeastMax = 65535;

constexpr bool is_odd(std::size_t cls, std::size_t axis) { return (cls >> axis & 1U) != 0; }
constexpr std::size_t n_odd_axes(std::size_t cls) {
  return (cls & 1U) + (cls >> 1 & 1U) + (cls >> 2 & 1U);
}

/// Weights of one class. group[0] follows from the other groups. near, aslant, before and least are
/// weights of contexts.
struct ClassModel {
  std::array<int, kFittedGroups> group{};
  int near = 0;
  int aslant = 0;
  int before = 0;
  int least = 0;
};
using LevelModel = std::array<ClassModel, kClasses8>;

/// Number of groups of a class: pairs and far pairs of each axis, then squares and the cube.
constexpr std::size_t n_groups_of(std::size_t cls) {
  constexpr std::size_t of_axes[4] = {0, 2, 5, 10};
  return of_axes[n_odd_axes(cls)];
}

/// Number of values of group g: 2 for pairs, 4 for squares, 8 for the cube.
constexpr std::size_t n_taps_of(std::size_t cls, std::size_t g) {
  if (g < 2 * n_odd_axes(cls)) return 2;
  return n_odd_axes(cls) == 3 && g == kFittedGroups - 1 ? 8 : 4;
}

/// Set group[0] so that all weights sum to 1: a constant predicts itself.
void complete(std::size_t cls, ClassModel& model) {
  int others = 0;
  for (std::size_t g = 1; g < n_groups_of(cls); ++g) {
    others += model.group[g] * static_cast<int>(n_taps_of(cls, g) / 2);
  }
  model.group[0] = kWeightUnit / 2 - others;
}

bool has_aslant(std::size_t cls) { return cls != 1; }

/// Model without a fit: a cubic along each axis, and contexts from the mean magnitude around.
ClassModel usual_model(std::size_t cls) {
  ClassModel model;
  const int n_odd = static_cast<int>(n_odd_axes(cls));
  for (std::size_t g = 1; g < 2 * n_odd_axes(cls); ++g) {
    model.group[g] = g % 2 == 0 ? 288 / n_odd : -32 / n_odd;
  }
  complete(cls, model);
  model.near = 192 / n_odd;
  model.aslant = has_aslant(cls) ? 24 : 0;
  model.before = 24;
  model.least = 32;
  return model;
}

// --- grids: values or magnitudes of one class of a level, with padding on all sides.

constexpr std::size_t kRoomBefore = 1;
constexpr std::size_t kRoomBehind = 2;

/// Extents and strides of one class of a level, x first.
struct Shape3 {
  std::array<std::size_t, kAxes> n{};
  std::array<std::size_t, kAxes> stride{1, 0, 0};
  std::array<bool, kAxes> has_room{true, false, false};
  std::size_t origin = 0;  ///< Offset of the first value.
  std::size_t n_held = 0;  ///< Number of entries including padding.
  std::size_t count() const { return n[0] * n[1] * n[2]; }
};

Shape3 shape_of(const FittedExtents& level, std::size_t cls) {
  const std::array<std::size_t, kAxes> extent = {level.e.x, level.e.y, level.e.z};
  Shape3 shape;
  std::size_t stride = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const bool whole = axis == 2 && level.planar;
    shape.n[axis] = whole               ? (is_odd(cls, axis) ? 0 : extent[axis])
                    : is_odd(cls, axis) ? extent[axis] / 2
                                        : (extent[axis] + 1) / 2;
    shape.has_room[axis] = axis == 0 || (extent[axis] > 1 && !whole);
    shape.stride[axis] = stride;
    if (shape.has_room[axis]) shape.origin += stride * kRoomBefore;
    stride *= shape.n[axis] + (shape.has_room[axis] ? kRoomBefore + kRoomBehind : 0);
  }
  shape.n_held = shape.count() == 0 ? 0 : stride;
  return shape;
}

/// Visit the first position of each line along `axis`: along x of each row, along y of each plane,
/// along z of the grid. The visitor handles the neighbouring lines along faster axes, including
/// padding.
template <class Visitor>
void for_each_line(const Shape3& shape, std::size_t axis, Visitor visit) {
  const std::size_t outer = axis == 2 ? 1 : shape.n[2];
  const std::size_t middle = axis == 0 ? shape.n[1] : 1;
  for (std::size_t k = 0; k < outer; ++k) {
    for (std::size_t j = 0; j < middle; ++j) {
      visit(shape.origin + k * shape.stride[2] + j * shape.stride[1]);
    }
  }
}

template <class T>
struct Grid {
  T* base = nullptr;
  Shape3 shape;
  T* row(std::size_t z, std::size_t y) const {
    return base + shape.origin + z * shape.stride[2] + y * shape.stride[1];
  }
};

/// Extrapolate values beyond the ends along the axes where a class is even, x first, for classes
/// whose neighbours lie there. Uses a parabola through three values. Uses a straight line if the
/// level ends with an odd point, which has no value after it.
template <class T>
void extend(const Grid<T>& grid, const FittedExtents& level, std::size_t cls) {
  const Shape3& shape = grid.shape;
  const std::array<std::size_t, kAxes> extent = {level.e.x, level.e.y, level.e.z};
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!shape.has_room[axis] || is_odd(cls, axis)) continue;
    const bool bent = shape.n[axis] > 2;
    const bool bent_behind = bent && extent[axis] % 2 == 1;
    const std::size_t stride = shape.stride[axis];
    const std::size_t run = stride;  // Adjacent entries: one along x, a row, a plane.
    const std::size_t n = shape.n[axis];
    const std::size_t back = axis == 0 ? 0 : axis == 1 ? kRoomBefore : shape.origin - stride;
    for_each_line(shape, axis, [&](std::size_t at) {
      T* first = grid.base + at - back;
      T* last = first + (n - 1) * stride;
      for (std::size_t i = 0; i < run; ++i) {
        if (n == 1) {
          *(first + i - stride) = last[stride + i] = last[2 * stride + i] = first[i];
          continue;
        }
        const T slope_first = first[i] - first[stride + i];
        const T slope_last = last[i] - *(last + i - stride);
        *(first + i - stride) =
            bent ? slope_first * T(3) + first[2 * stride + i] : first[i] + slope_first;
        last[stride + i] =
            bent_behind ? slope_last * T(3) + *(last + i - 2 * stride) : last[i] + slope_last;
        last[2 * stride + i] = bent_behind ? last[stride + i] : last[stride + i] + slope_last;
      }
    });
  }
}

/// Extend magnitudes beyond the ends with the nearest one.
void repeat_ends(const Grid<std::uint16_t>& grid) {
  const Shape3& shape = grid.shape;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!shape.has_room[axis]) continue;
    const std::size_t stride = shape.stride[axis];
    const std::size_t back = axis == 0 ? 0 : axis == 1 ? kRoomBefore : shape.origin - stride;
    for_each_line(shape, axis, [&](std::size_t at) {
      std::uint16_t* first = grid.base + at - back;
      std::uint16_t* last = first + (shape.n[axis] - 1) * stride;
      for (std::size_t i = 0; i < stride; ++i) {
        *(first + i - stride) = first[i];
        last[stride + i] = last[i];
      }
    });
  }
}

/// State of one level: grids of values and magnitudes for each class; class 0 is the coarser level.
template <class T>
struct FittedLevel {
  FittedExtents extents;
  std::array<Grid<T>, kClasses8> values;
  std::array<Grid<std::uint16_t>, kClasses8> magnitudes;
  bool has(std::size_t cls) const { return values[cls].shape.n_held != 0; }
};

/// Memory of all levels: two alternating grids for class 0, one for each other class.
template <class T>
class FittedMemory {
 public:
  bool prepare(const FittedLevels& levels, Workspace& workspace) {
    std::size_t n_coarse = 0;
    std::size_t n_classes = 0;
    for (int l = 0; l < levels.n_levels; ++l) {
      n_coarse = std::max(n_coarse, shape_of(levels.at(l), 0).n_held);
      std::size_t n = 0;
      for (std::size_t cls = 1; cls < kClasses8; ++cls) n += shape_of(levels.at(l), cls).n_held;
      n_classes = std::max(n_classes, n);
    }
    n_coarse_ = n_coarse;
    const std::size_t n = 2 * n_coarse + n_classes;
    values_ = workspace.area<T>(Slot::coarse, n);
    magnitudes_ = workspace.area<std::uint16_t>(Slot::rows, n);
    return values_ != nullptr && magnitudes_ != nullptr;
  }

  FittedLevel<T> level(const FittedExtents& extents, int l) const {
    FittedLevel<T> level;
    level.extents = extents;
    std::size_t at = (l % 2 == 0 ? 0 : n_coarse_);
    for (std::size_t cls = 0; cls < kClasses8; ++cls) {
      const Shape3 shape = shape_of(extents, cls);
      level.values[cls] = {values_ + at, shape};
      level.magnitudes[cls] = {magnitudes_ + at, shape};
      at = cls == 0 ? 2 * n_coarse_ : at + shape.n_held;
    }
    return level;
  }

 private:
  T* values_ = nullptr;
  std::uint16_t* magnitudes_ = nullptr;
  std::size_t n_coarse_ = 0;
};

template <class T>
const FittedRowKernels<T>& fitted_rows(const FittedKernels& kernels) {
  if constexpr (sizeof(T) == 4) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

// --- neighbours of a row

template <class T>
GridRows<T> rows_of(const Grid<T>& grid) {
  return {grid.row(0, 0), static_cast<std::ptrdiff_t>(grid.shape.stride[1]),
          static_cast<std::ptrdiff_t>(grid.shape.stride[2])};
}

/// Neighbours that predict the rows of a class, in the order of the groups. The caller moves to a
/// row.
template <class T>
FittedRow<T> row_of(const FittedLevel<T>& level, std::size_t cls, const ClassModel& model) {
  FittedRow<T> row;
  row.n_groups = n_groups_of(cls);
  std::size_t g = 0;
  const auto next = [&](const Grid<T>& from, std::size_t n_taps) -> auto& {
    auto& group = row.groups[g];
    group.rows = rows_of(from);
    group.n_taps = n_taps;
    group.weight = static_cast<T>(model.group[g]) * (T(1) / T(kWeightUnit));
    ++g;
    return group;
  };
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!is_odd(cls, axis)) continue;
    const Grid<T>& from = level.values[cls ^ (1U << axis)];
    const auto stride = static_cast<std::ptrdiff_t>(from.shape.stride[axis]);
    next(from, 2).tap[1] = stride;
    auto& far = next(from, 2);
    far.tap[0] = -stride;
    far.tap[1] = 2 * stride;
  }
  for (const std::size_t corner : {3U, 5U, 6U, 7U}) {  // Axes of a square or the cube.
    if ((cls & corner) != corner) continue;
    const Grid<T>& from = level.values[cls ^ corner];
    auto& group = next(from, std::size_t{1} << n_odd_axes(corner));
    for (std::size_t k = 0; k < group.n_taps; ++k) {
      std::size_t bit = 0;
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        if (!is_odd(corner, axis)) continue;
        if ((k >> bit++ & 1U) != 0) {
          group.tap[k] += static_cast<std::ptrdiff_t>(from.shape.stride[axis]);
        }
      }
    }
  }
  return row;
}

/// Magnitudes around the rows of a class. The caller moves to a row.
template <class T>
ContextRow contexts_of(const FittedLevel<T>& level, std::size_t cls, const ClassModel& model) {
  ContextRow row;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!is_odd(cls, axis)) continue;
    const Grid<std::uint16_t>& from = level.magnitudes[cls ^ (1U << axis)];
    row.near[row.n_near++] = {rows_of(from), nullptr,
                              static_cast<std::ptrdiff_t>(from.shape.stride[axis])};
  }
  for (const std::size_t square : {3U, 5U, 6U}) {
    const std::size_t other = cls ^ square;
    if (other > cls || !level.has(other)) continue;
    const Grid<std::uint16_t>& from = level.magnitudes[other];
    // Greater index along axes where this class is odd, smaller where the other is.
    std::ptrdiff_t shift[2];
    std::size_t n_shifts = 0;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (!is_odd(square, axis)) continue;
      const auto stride = static_cast<std::ptrdiff_t>(from.shape.stride[axis]);
      shift[n_shifts++] = is_odd(cls, axis) ? stride : -stride;
    }
    GridRows<std::uint16_t> rows = rows_of(from);
    row.aslant[row.n_aslant++] = {rows, nullptr, shift[0]};
    rows.begin += shift[1];
    row.aslant[row.n_aslant++] = {rows, nullptr, shift[0]};
  }
  row.own = rows_of(level.magnitudes[cls]);
  row.near_weight = model.near;
  row.aslant_weight = model.aslant;
  row.before_weight = model.before;
  row.least = model.least;
  return row;
}

/// Fill in the neighbours beyond the ends of a complete row of magnitudes.
void repeat_row_ends(std::uint16_t* row, std::size_t n) {
  row[-1] = row[0];
  row[n] = row[n - 1];
}

/// Call visit(z, y, class of the row's even points, plane in that class) for each row of a level.
template <class Visitor>
void for_each_row(const FittedExtents& level, Visitor visit) {
  for (std::size_t z = 0; z < level.e.z; ++z) {
    for (std::size_t y = 0; y < level.e.y; ++y) {
      visit(z, y, level.class_of_plane(z) + 2 * (y % 2), level.place_of_plane(z));
    }
  }
}

/// Fill both grids of class 0 of the next finer level from all classes of this one.
template <class T>
void gather_level(const FittedLevel<T>& level, const FittedLevel<T>& finer,
                  const FittedKernels& kernels) {
  for_each_row(level.extents, [&](std::size_t z, std::size_t y, std::size_t even, std::size_t at) {
    const std::size_t n_even = level.values[even].shape.n[0];
    const std::size_t n_odd = level.values[even + 1].shape.n[0];
    fitted_rows<T>(kernels).interleave(level.values[even].row(at, y / 2), n_even,
                                       level.values[even + 1].row(at, y / 2), n_odd,
                                       finer.values[0].row(z, y));
    kernels.interleave_magnitudes(level.magnitudes[even].row(at, y / 2), n_even,
                                  level.magnitudes[even + 1].row(at, y / 2), n_odd,
                                  finer.magnitudes[0].row(z, y));
  });
  extend(finer.values[0], finer.extents, 0);
  repeat_ends(finer.magnitudes[0]);
}

// --- fits

// Number of sample points per class: 1/8 of its points, clamped; 16 per row if that suffices.
constexpr std::size_t kSamplePart = 8;
constexpr std::size_t kSamplesMin = 1024;
constexpr std::size_t kSamplesMax = 4096;
constexpr std::size_t kSamplesOfRow = 16;

/// Visit scattered points of a class: visit(z, y, points) for up to kFitLanes points of a row.
template <class Visitor>
void for_each_sample(const Shape3& shape, Visitor visit) {
  const std::size_t n_x = shape.n[0];
  const std::size_t n_rows = shape.n[1] * shape.n[2];
  const std::size_t wanted = std::clamp(shape.count() / kSamplePart, kSamplesMin, kSamplesMax);
  const std::size_t rows_wanted = wanted / std::min(kSamplesOfRow, n_x);
  const std::size_t row_stride = std::max<std::size_t>(1, n_rows / rows_wanted) | 1U;
  const std::size_t of_row = std::max(kSamplesOfRow, wanted / n_rows);
  const std::size_t stride = std::max<std::size_t>(1, n_x / of_row);
  std::size_t first = 0;
  for (std::size_t r = 0; r < n_rows; r += row_stride) {
    first = (first + 1) % stride;
    for (std::size_t x = first; x < n_x; x += kFitLanes * stride) {
      const std::size_t n = std::min(kFitLanes, (n_x - x + stride - 1) / stride);
      visit(r / shape.n[1], r % shape.n[1], FitPoints{x, stride, n});
    }
  }
}

/// Fit the weights of a class's groups to `original`; unchanged if the fit fails. The second
/// round gives samples less weight if the first round's weights predict them badly. Otherwise the
/// few edges of masks and peaks would dominate the fit.
template <class T, class Original>
void fit_groups(const FittedLevel<T>& level, std::size_t cls, T step, const T* fill,
                Original original, const FittedKernels& kernels, ClassModel& model) {
  const std::size_t n_unknown = n_groups_of(cls) - 1;
  double weights[kFittedGroups] = {};
  FittedRow<T> row = row_of(level, cls, model);
  for (int round = 0; round < 2; ++round) {
    FitSums sums;
    const GroupFit<T> how{1 / static_cast<double>(step), fill, round > 0 ? weights : nullptr};
    for_each_sample(level.values[cls].shape,
                    [&](std::size_t z, std::size_t y, const FitPoints& points) {
                      row.move_to(z, y);
                      fitted_rows<T>(kernels).fit(row, original(z, y), points, how, sums);
                    });
    if (!LeastSquares(n_unknown, sums).solve(weights)) return;
    for (std::size_t g = 0; g < n_unknown; ++g) {
      model.group[g + 1] = rounded(weights[g], kWeightUnit, kWeightMax);
    }
    complete(cls, model);
  }
}

/// Fit the weights of a class's contexts to its magnitudes.
template <class T>
void fit_contexts(const FittedLevel<T>& level, std::size_t cls, const FittedKernels& kernels,
                  ClassModel& model) {
  FitSums sums;
  ContextRow row = contexts_of(level, cls, model);
  for_each_sample(level.values[cls].shape,
                  [&](std::size_t z, std::size_t y, const FitPoints& points) {
                    row.move_to(z, y);
                    kernels.fit_contexts(row, row.own.row(z, y), points, sums);
                  });
  double weights[kFitUnknowns];
  if (!LeastSquares(kContextUnknowns, sums).solve(weights)) return;
  model.near = rounded(weights[0], kContextUnit, kContextWeightMax);
  model.aslant = rounded(weights[1], kContextUnit, kContextWeightMax);
  model.before = rounded(weights[2], kContextUnit, kContextWeightMax);
  model.least = rounded(weights[3], kContextUnit, kContextLeastMax);
}

// --- parameters

struct FittedModel {
  std::size_t n_own = 0;  ///< Number of levels with fitted weights, from the finest on.
  std::array<LevelModel, kOwnLevelsMax> own;
};

/// Visit each stored number of a class's weights, with its maximum.
template <class Model, class Visitor>
void for_each_weight(std::size_t cls, Model& model, Visitor visit) {
  for (std::size_t g = 1; g < n_groups_of(cls); ++g) visit(model.group[g], kWeightMax);
  visit(model.near, kContextWeightMax);
  visit(model.aslant, kContextWeightMax);
  visit(model.before, kContextWeightMax);
  visit(model.least, kContextLeastMax);
}

void write_models(const FittedLevels& levels, const FittedModel& model, ChunkWriter& out) {
  out.number(static_cast<std::uint8_t>(model.n_own));
  for (std::size_t l = 0; l < model.n_own; ++l) {
    for (std::size_t cls = 1; cls < kClasses8; ++cls) {
      if (shape_of(levels.at(static_cast<int>(l)), cls).n_held == 0) continue;
      for_each_weight(cls, model.own[l][cls], [&](int weight, int) { out.varint(zigzag(weight)); });
    }
  }
}

bool read_models(const FittedLevels& levels, FittedModel& model, ChunkReader& in) {
  model.n_own = in.number<std::uint8_t>();
  if (model.n_own > kOwnLevelsMax || model.n_own > static_cast<std::size_t>(levels.top())) {
    return false;
  }
  for (std::size_t l = 0; l < model.n_own; ++l) {
    for (std::size_t cls = 1; cls < kClasses8; ++cls) {
      if (shape_of(levels.at(static_cast<int>(l)), cls).n_held == 0) continue;
      bool within = true;
      for_each_weight(cls, model.own[l][cls], [&](int& weight, int limit) {
        const std::uint64_t z = in.varint();
        within = within && z <= 2 * static_cast<std::uint64_t>(limit);
        weight = within ? unzigzag(static_cast<std::uint32_t>(z)) : 0;
      });
      if (!within || in.failed()) return false;
      complete(cls, model.own[l][cls]);
    }
  }
  return true;
}

template <class T>
T step_of(const Lattice<T>& lattice, const LevelSteps& steps, int level) {
  InterpolationPlan plan;
  plan.alpha_16 = steps.alpha_16;
  plan.beta_16 = steps.beta_16;
  return level_step(lattice.step, plan, level);
}

ClassModel model_of(const FittedModel& model, int level, std::size_t cls) {
  const auto l = static_cast<std::size_t>(level);
  return l < model.n_own ? model.own[l][cls] : usual_model(cls);
}

// --- encoding

template <class T>
class FittedEncoder {
 public:
  FittedEncoder(const FittedLevels& levels, const LevelSteps& steps, const Lattice<T>& lattice,
                const T* fill, PatchMap& patches, Workspace& workspace)
      : levels_(levels),
        steps_(steps),
        lattice_(lattice),
        fill_(fill),
        patches_(patches),
        workspace_(workspace),
        kernels_(fitted_kernels(workspace.isa())) {}

  bool run(const T* values, ChunkWriter& out) {
    const std::size_t n = levels_.at(0).count();
    codes_ = workspace_.area<std::int32_t>(Slot::codes, n);
    const std::size_t n_top = levels_.at(levels_.top()).count();
    contexts_ = workspace_.area<std::uint8_t>(Slot::widths, n);
    if (codes_ == nullptr || contexts_ == nullptr || !memory_.prepare(levels_, workspace_) ||
        !make_pyramid(values)) {
      return false;
    }
    for (int l = 0; l < levels_.top() && static_cast<std::size_t>(l) < kOwnLevelsMax; ++l) {
      if (levels_.at(l).count() - levels_.at(l + 1).count() < kOwnPointsMin) break;
      model_.n_own = static_cast<std::size_t>(l) + 1;
    }
    code_top();
    for (int l = levels_.top() - 1; l >= 0; --l) code_level(l);
    out.number(static_cast<std::uint8_t>(levels_.at(0).planar ? 1 : 0));
    out.number(steps_.alpha_16);
    out.number(steps_.beta_16);
    out.number(lattice_.step);
    out.number(lattice_.offset);
    write_models(levels_, model_, out);
    for (std::size_t i = 0; i < n_top; ++i) out.varint(zigzag(codes_[i]));
    return write_modelled(codes_ + n_top, contexts_ + n_top, n_codes_ - n_top, out, workspace_);
  }

 private:
  bool make_pyramid(const T* values) {
    std::size_t n = 0;
    for (int l = 1; l < levels_.n_levels; ++l) n += levels_.at(l).count();
    T* to = workspace_.area<T>(Slot::pyramid, n + 1);
    if (to == nullptr) return false;
    original_[0] = values;
    for (int l = 1; l < levels_.n_levels; ++l) {
      original_[static_cast<std::size_t>(l)] = to;
      subsample(original_[static_cast<std::size_t>(l) - 1], levels_.at(l - 1).e, to,
                levels_.at(l).planar);
      to += levels_.at(l).count();
    }
    return true;
  }

  /// Compute codes of up to kFittedPart values, and patch those that failed.
  void quantise(const T* x, const T* p, std::size_t n, std::size_t index, std::size_t index_stride,
                const Lattice<T>& lattice, std::int32_t* codes, T* recon) {
    std::uint8_t failed[kFittedPart];
    fitted_rows<T>(kernels_).encode(x, p, n, lattice, fill_, codes, recon, failed);
    if (std::memchr(failed, 1, n) == nullptr) return;
    for (std::size_t i = 0; i < n; ++i) {
      if (failed[i] != 0) patches_.mark(index + i * index_stride);
    }
  }

  Lattice<T> lattice_of(int l) const {
    Lattice<T> lattice = lattice_;
    lattice.step = step_of(lattice_, steps_, l);
    lattice.inverse_step = T(1) / lattice.step;
    return lattice;
  }

  std::size_t index_of(int l, std::size_t z, std::size_t y, std::size_t x) const {
    const LevelExtents& chunk = levels_.at(0).e;
    if (levels_.at(0).planar) return z * chunk.y * chunk.x + ((y * chunk.x + x) << l);
    return ((z * chunk.y + y) * chunk.x + x) << l;
  }

  void code_top() {
    const int l = levels_.top();
    const LevelExtents& e = levels_.at(l).e;
    const Lattice<T> lattice = lattice_of(l);
    const FittedLevel<T> finer = memory_.level(levels_.at(l - 1), l - 1);
    T prediction = lattice_.offset;
    const T* x = original_[static_cast<std::size_t>(l)];
    for (std::size_t z = 0; z < e.z; ++z) {
      for (std::size_t y = 0; y < e.y; ++y) {
        for (std::size_t i = 0; i < e.x; ++i) {
          std::int32_t* code = codes_ + n_codes_++;
          const T p = prediction;
          quantise(x++, &p, 1, index_of(l, z, y, i), 1, lattice, code, &prediction);
          finer.values[0].row(z, y)[i] = prediction;
          kernels_.magnitudes(code, 1, finer.magnitudes[0].row(z, y) + i);
        }
      }
    }
    extend(finer.values[0], finer.extents, 0);
    repeat_ends(finer.magnitudes[0]);
  }

  void code_level(int l) {
    const FittedLevel<T> level = memory_.level(levels_.at(l), l);
    for (std::size_t cls = 1; cls < kClasses8; ++cls) {
      if (level.has(cls)) code_class(level, l, cls);
    }
    if (l > 0) gather_level(level, memory_.level(levels_.at(l - 1), l - 1), kernels_);
  }

  void code_class(const FittedLevel<T>& level, int l, std::size_t cls) {
    const bool is_own = static_cast<std::size_t>(l) < model_.n_own;
    const Lattice<T> lattice = lattice_of(l);
    const LevelExtents& e = levels_.at(l).e;
    const T* from = original_[static_cast<std::size_t>(l)];
    const auto original = [&](std::size_t z, std::size_t y) {
      const std::size_t plane = level.extents.plane_of(cls, z);
      return from + (plane * e.y + 2 * y + (cls >> 1 & 1U)) * e.x + (cls & 1U);
    };
    ClassModel model = usual_model(cls);
    if (is_own) fit_groups<T>(level, cls, lattice.step, fill_, original, kernels_, model);
    const Shape3& shape = level.values[cls].shape;
    const std::int32_t* const first_code = codes_ + n_codes_;
    FittedRow<T> row = row_of(level, cls, model);
    for (std::size_t z = 0; z < shape.n[2]; ++z) {
      for (std::size_t y = 0; y < shape.n[1]; ++y) {
        row.move_to(z, y);
        code_row(level, l, cls, row, original(z, y), lattice, z, y);
      }
    }
    extend(level.values[cls], level.extents, cls);
    repeat_ends(level.magnitudes[cls]);
    if (is_own) fit_contexts(level, cls, kernels_, model);
    if (is_own) model_.own[static_cast<std::size_t>(l)][cls] = model;
    std::uint8_t* contexts = contexts_ + (first_code - codes_);
    ContextRow around = contexts_of(level, cls, model);
    for (std::size_t z = 0; z < shape.n[2]; ++z) {
      for (std::size_t y = 0; y < shape.n[1]; ++y) {
        around.move_to(z, y);
        for (std::size_t begin = 0; begin < shape.n[0]; begin += kFittedPart) {
          const std::size_t n = std::min(kFittedPart, shape.n[0] - begin);
          kernels_.contexts(around, begin, n, contexts);
          contexts += n;
        }
      }
    }
  }

  void code_row(const FittedLevel<T>& level, int l, std::size_t cls, const FittedRow<T>& row,
                const T* x, const Lattice<T>& lattice, std::size_t z, std::size_t y) {
    const std::size_t n_row = level.values[cls].shape.n[0];
    T* recon = level.values[cls].row(z, y);
    std::uint16_t* magnitudes = level.magnitudes[cls].row(z, y);
    T p[kFittedPart];
    for (std::size_t begin = 0; begin < n_row; begin += kFittedPart) {
      const std::size_t n = std::min(kFittedPart, n_row - begin);
      fitted_rows<T>(kernels_).predict(row, begin, n, p);
      const std::size_t index = index_of(l, level.extents.plane_of(cls, z), 2 * y + (cls >> 1 & 1U),
                                         2 * begin + (cls & 1U));
      std::int32_t* codes = codes_ + n_codes_;
      quantise(x + 2 * begin, p, n, index, std::size_t{2} << l, lattice, codes, recon + begin);
      kernels_.magnitudes(codes, n, magnitudes + begin);
      n_codes_ += n;
    }
    repeat_row_ends(magnitudes, n_row);
  }

  const FittedLevels& levels_;
  const LevelSteps& steps_;
  const Lattice<T>& lattice_;
  const T* fill_;
  PatchMap& patches_;
  Workspace& workspace_;
  const FittedKernels& kernels_;
  FittedMemory<T> memory_;
  FittedModel model_;
  std::array<const T*, kLevelsMax> original_{};
  std::int32_t* codes_ = nullptr;
  std::uint8_t* contexts_ = nullptr;
  std::size_t n_codes_ = 0;
};

// --- decoding

template <class T>
class FittedDecoder {
 public:
  FittedDecoder(const FittedLevels& levels, Workspace& workspace)
      : levels_(levels), workspace_(workspace), kernels_(fitted_kernels(workspace.isa())) {}

  /// Decode everything after the form byte.
  DecodeFailure run(ChunkReader& in, T* values) {
    steps_.alpha_16 = in.number<std::uint8_t>();
    steps_.beta_16 = in.number<std::uint8_t>();
    lattice_.step = in.number<T>();
    lattice_.offset = in.number<T>();
    if (steps_.alpha_16 < 16 || steps_.beta_16 < 16 || !read_models(levels_, model_, in)) {
      return DecodeFailure::corrupt;
    }
    if (!memory_.prepare(levels_, workspace_)) return DecodeFailure::memory_out;
    if (!read_top(in)) return DecodeFailure::corrupt;
    if (!codes_.open(in, workspace_)) {
      return codes_.memory_out() ? DecodeFailure::memory_out : DecodeFailure::corrupt;
    }
    for (int l = levels_.top() - 1; l >= 0; --l) read_level(l, values);
    return codes_.finished() ? DecodeFailure::none : DecodeFailure::corrupt;
  }

 private:
  bool read_top(ChunkReader& in) {
    const int l = levels_.top();
    const LevelExtents& e = levels_.at(l).e;
    const T step = step_of(lattice_, steps_, l);
    const FittedLevel<T> finer = memory_.level(levels_.at(l - 1), l - 1);
    T prediction = lattice_.offset;
    for (std::size_t z = 0; z < e.z; ++z) {
      for (std::size_t y = 0; y < e.y; ++y) {
        for (std::size_t i = 0; i < e.x; ++i) {
          const std::uint64_t number = in.varint();
          if (number > 0xFFFFFFFFU) return false;
          const std::int32_t code = unzigzag(static_cast<std::uint32_t>(number));
          prediction = prediction + static_cast<T>(code) * step;
          finer.values[0].row(z, y)[i] = prediction;
          kernels_.magnitudes(&code, 1, finer.magnitudes[0].row(z, y) + i);
        }
      }
    }
    extend(finer.values[0], finer.extents, 0);
    repeat_ends(finer.magnitudes[0]);
    return !in.failed();
  }

  void read_level(int l, T* values) {
    const FittedLevel<T> level = memory_.level(levels_.at(l), l);
    const T step = step_of(lattice_, steps_, l);
    for (std::size_t cls = 1; cls < kClasses8; ++cls) {
      if (!level.has(cls)) continue;
      const ClassModel model = model_of(model_, l, cls);
      const Shape3& shape = level.values[cls].shape;
      FittedRow<T> row = row_of(level, cls, model);
      ContextRow around = contexts_of(level, cls, model);
      for (std::size_t z = 0; z < shape.n[2]; ++z) {
        for (std::size_t y = 0; y < shape.n[1]; ++y) {
          row.move_to(z, y);
          around.move_to(z, y);
          read_row(row, around, shape.n[0], step, level.values[cls].row(z, y),
                   level.magnitudes[cls].row(z, y));
        }
      }
      extend(level.values[cls], level.extents, cls);
      repeat_ends(level.magnitudes[cls]);
    }
    if (l > 0) {
      gather_level(level, memory_.level(levels_.at(l - 1), l - 1), kernels_);
    } else {
      deliver(level, values);
    }
  }

  void read_row(const FittedRow<T>& row, const ContextRow& around, std::size_t n_row, T step,
                T* recon, std::uint16_t* magnitudes) {
    T p[kFittedPart];
    std::int32_t codes[kFittedPart];
    std::uint8_t contexts[kFittedPart];
    for (std::size_t begin = 0; begin < n_row; begin += kFittedPart) {
      const std::size_t n = std::min(kFittedPart, n_row - begin);
      kernels_.contexts(around, begin, n, contexts);
      codes_.read(contexts, n, codes);
      fitted_rows<T>(kernels_).predict(row, begin, n, p);
      fitted_rows<T>(kernels_).decode(p, codes, n, step, recon + begin);
      kernels_.magnitudes(codes, n, magnitudes + begin);
    }
    repeat_row_ends(magnitudes, n_row);
  }

  void deliver(const FittedLevel<T>& level, T* values) const {
    for_each_row(level.extents, [&](std::size_t, std::size_t y, std::size_t even, std::size_t at) {
      fitted_rows<T>(kernels_).interleave(
          level.values[even].row(at, y / 2), level.values[even].shape.n[0],
          level.values[even + 1].row(at, y / 2), level.values[even + 1].shape.n[0], values);
      values += level.extents.e.x;
    });
  }

  const FittedLevels& levels_;
  Workspace& workspace_;
  const FittedKernels& kernels_;
  LevelSteps steps_;
  Lattice<T> lattice_;
  FittedMemory<T> memory_;
  FittedModel model_;
  ModelReader codes_;
};

}  // namespace

std::optional<Extents> fitted_extents(const Extents& extents) {
  std::array<std::size_t, kAxes> e = {extents[0] * extents[1], extents[2], extents[3]};
  // Merge a short axis with the next slower one, or failing that with the next faster one.
  const auto is_short = [](std::size_t extent) { return extent < kFittedExtentMin; };
  for (int k = 0; k < 2 && is_short(e[2]); ++k) e = {1, e[0], e[1] * e[2]};
  if (is_short(e[1])) e = {1, e[0] * e[1], e[2]};
  if (is_short(e[1])) e = {1, 1, e[1] * e[2]};
  if (is_short(e[0])) e = {1, e[0] * e[1], e[2]};
  return e[2] < kFittedExtentMin ? std::nullopt : std::optional(Extents{1, e[0], e[1], e[2]});
}

std::size_t fitted_bytes_max(std::size_t n_values) {
  // Weights: at most 14 numbers per class, of three bytes each. Codes of the top level take at most
  // five bytes, all others six.
  return kOwnLevelsMax * kClasses8 * 14 * 3 + 64 + modelled_bytes_max(n_values);
}

template <class T>
bool write_fitted(const T* values, const Extents& extents, bool planar, const LevelSteps& steps,
                  const Lattice<T>& lattice, const T* fill, PatchMap& patches, ChunkWriter& out,
                  Workspace& workspace) {
  const FittedLevels levels(extents, planar);
  return FittedEncoder<T>(levels, steps, lattice, fill, patches, workspace).run(values, out);
}

template <class T>
DecodeFailure read_fitted(ChunkReader& in, const Extents& extents, T* values,
                          Workspace& workspace) {
  // Other extents than the encoder's could need a multiple of the memory.
  if (extents[0] != 1 || fitted_extents(extents) != extents) return DecodeFailure::corrupt;
  const auto form = in.number<std::uint8_t>();
  if (form > 1) return DecodeFailure::corrupt;
  const FittedLevels levels(extents, form == 1);
  return FittedDecoder<T>(levels, workspace).run(in, values);
}

template bool write_fitted(const float*, const Extents&, bool, const LevelSteps&,
                           const Lattice<float>&, const float*, PatchMap&, ChunkWriter&,
                           Workspace&);
template bool write_fitted(const double*, const Extents&, bool, const LevelSteps&,
                           const Lattice<double>&, const double*, PatchMap&, ChunkWriter&,
                           Workspace&);
template DecodeFailure read_fitted(ChunkReader&, const Extents&, float*, Workspace&);
template DecodeFailure read_fitted(ChunkReader&, const Extents&, double*, Workspace&);

}  // namespace tailrace::trz
