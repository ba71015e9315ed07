// Smooth continuation by a pyramid: each level has half as many cells along each axis as the level
// below. Upwards, a cell becomes the mean of the known cells below it; far from all known cells
// only coarse levels have values. Downwards, open cells are interpolated from the level above, then
// smoothed towards the mean of their neighbours, as a potential would be.

#include "field/covered_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "codec/value_lanes.hpp"
#include "field/field_state.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace {
namespace {

enum State : std::uint8_t { known, open, ignored };
constexpr int kNSweeps = 2;  // Smoothing sweeps on each level.

using Extents = std::array<std::size_t, 3>;

Extents extents_of(const Shape& shape) {
  Extents extents{1, 1, 1};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    extents[d + 3 - shape.size()] = static_cast<std::size_t>(shape[d]);
  }
  return extents;
}

template <class T>
struct Level {
  Extents n{1, 1, 1};
  std::span<T> values;
  std::vector<std::uint8_t> state;
  std::vector<T> own;  ///< Storage of `values`, except on the lowest level.

  std::size_t at(std::size_t z, std::size_t y, std::size_t x) const {
    return (z * n[1] + y) * n[2] + x;
  }
};

template <class Visit>
void for_each_cell(const Extents& n, Visit&& visit) {
  for (std::size_t z = 0; z < n[0]; ++z) {
    for (std::size_t y = 0; y < n[1]; ++y) {
      for (std::size_t x = 0; x < n[2]; ++x) visit(z, y, x);
    }
  }
}

template <class T>
Level<T> level_above(const Level<T>& below) {
  Level<T> above;
  for (std::size_t d = 0; d < 3; ++d) above.n[d] = (below.n[d] + 1) / 2;
  above.own.resize(above.n[0] * above.n[1] * above.n[2]);
  above.values = above.own;
  above.state.resize(above.own.size());
  for_each_cell(above.n, [&](std::size_t z, std::size_t y, std::size_t x) {
    const Extents end{std::min(2 * z + 2, below.n[0]), std::min(2 * y + 2, below.n[1]),
                      std::min(2 * x + 2, below.n[2])};
    // Each value counts an eighth, so that no sum of finite values overflows.
    double sum = 0;
    int n_known = 0;
    bool any_open = false;
    for (std::size_t k = 2 * z; k < end[0]; ++k) {
      for (std::size_t j = 2 * y; j < end[1]; ++j) {
        for (std::size_t i = 2 * x; i < end[2]; ++i) {
          const std::size_t cell = below.at(k, j, i);
          any_open = any_open || below.state[cell] == open;
          if (below.state[cell] != known) continue;
          sum += static_cast<double>(below.values[cell]) / 8;
          ++n_known;
        }
      }
    }
    const std::size_t cell = above.at(z, y, x);
    above.state[cell] = n_known > 0 ? known : any_open ? open : ignored;
    if (n_known > 0) above.values[cell] = static_cast<T>(sum * (8.0 / n_known));
  });
  return above;
}

/// The two cells of the level above that enclose a cell along one axis, the nearer one first, and
/// the weight of the nearer one. The axis has `n` cells in that level.
struct Between {
  std::size_t near = 0;
  std::size_t far = 0;
  double weight = 1;
};
Between between(std::size_t at, std::size_t n_below, std::size_t n) {
  const std::size_t near = at / 2;
  if (n_below == n) return {at, at, 1};  // The axis has one cell.
  if (at % 2 == 0) return near == 0 ? Between{near, near, 1} : Between{near, near - 1, 0.75};
  return near + 1 == n ? Between{near, near, 1} : Between{near, near + 1, 0.75};
}

template <class T>
double interpolated(const Level<T>& above, const Between& z, const Between& y, const Between& x) {
  double sum = 0;
  double weights = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    const bool far_z = (corner & 4U) != 0;
    const bool far_y = (corner & 2U) != 0;
    const bool far_x = (corner & 1U) != 0;
    const double weight = (far_z ? 1 - z.weight : z.weight) * (far_y ? 1 - y.weight : y.weight) *
                          (far_x ? 1 - x.weight : x.weight);
    const std::size_t cell =
        above.at(far_z ? z.far : z.near, far_y ? y.far : y.near, far_x ? x.far : x.near);
    if (weight == 0 || above.state[cell] == ignored) continue;
    sum += weight * static_cast<double>(above.values[cell]);
    weights += weight;
  }
  return sum / weights;  // The nearest cell lies above an open one, so it is never ignored.
}

template <class T>
void interpolate(const Level<T>& above, Level<T>& level) {
  for_each_cell(level.n, [&](std::size_t z, std::size_t y, std::size_t x) {
    const std::size_t cell = level.at(z, y, x);
    if (level.state[cell] != open) return;
    level.values[cell] = static_cast<T>(interpolated(above, between(z, level.n[0], above.n[0]),
                                                     between(y, level.n[1], above.n[1]),
                                                     between(x, level.n[2], above.n[2])));
  });
}

/// Each open cell becomes the mean of its neighbours.
template <class T>
void smooth_once(Level<T>& level) {
  const Extents stride{level.n[1] * level.n[2], level.n[2], 1};
  for_each_cell(level.n, [&](std::size_t z, std::size_t y, std::size_t x) {
    const std::size_t cell = level.at(z, y, x);
    if (level.state[cell] != open) return;
    const Extents at{z, y, x};
    double sum = 0;
    int n = 0;
    const auto add = [&](std::size_t neighbour) {
      if (level.state[neighbour] == ignored) return;
      sum += static_cast<double>(level.values[neighbour]) / 8;
      ++n;
    };
    for (std::size_t d = 0; d < 3; ++d) {
      if (at[d] > 0) add(cell - stride[d]);
      if (at[d] + 1 < level.n[d]) add(cell + stride[d]);
    }
    if (n > 0) level.values[cell] = static_cast<T>(sum * (8.0 / n));
  });
}

template <class T>
void continue_smoothly(Level<T> lowest) {
  std::vector<Level<T>> levels;
  levels.push_back(std::move(lowest));
  while (std::ranges::find(levels.back().state, open) != levels.back().state.end()) {
    levels.push_back(level_above(levels.back()));  // The last one is a single cell, and known.
  }
  for (std::size_t l = levels.size() - 1; l-- > 0;) {
    interpolate(levels[l + 1], levels[l]);
    for (int sweep = 0; sweep < kNSweeps; ++sweep) smooth_once(levels[l]);
  }
}

/// Mean of finite values that are not fill values; 0: no such values.
template <class T>
class Mean {
 public:
  void add(T value) {
    // A running mean: no sum of finite values overflows.
    mean_ += (static_cast<double>(value) - mean_) / static_cast<double>(++n_);
  }
  T value() const { return static_cast<T>(mean_); }

 private:
  double mean_ = 0;
  std::uint64_t n_ = 0;
};

template <class T>
void replace_in(const Extents& extents, std::span<const std::uint8_t> covered, bool smooth,
                std::optional<T> fill_value, std::span<T> values) {
  Level<T> level;
  level.n = extents;
  level.values = values;
  level.state.resize(values.size());
  Mean<T> mean;
  const FillTest<T> is_fill(fill_value);
  bool any_known = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool usable = std::isfinite(values[i]) && !is_fill(values[i]);
    level.state[i] = covered[i] != 0 ? open : usable ? known : ignored;
    any_known = any_known || level.state[i] == known;
    if (covered[i] != 0 && usable) mean.add(values[i]);
  }
  if (smooth && any_known) return continue_smoothly(std::move(level));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (covered[i] != 0) values[i] = mean.value();
  }
}

class CoveredValues final : public ChunkEdit {
 public:
  CoveredValues(std::shared_ptr<const CoveredCells> cells, std::optional<BoxChunks> chunks,
                const FieldDefinition& definition, const ResolvedField& resolved)
      : cells_(std::move(cells)),
        chunks_(std::move(chunks)),
        dtype_(definition.dtype),
        fill_value_(definition.options.fill_value),
        chunk_length_(resolved.chunk_shape[0]) {}

  Ways ways(std::uint64_t chunk_index, std::uint64_t n_values, bool lossy) const override {
    std::vector<std::uint8_t> covered(n_values);
    if (!cells_->mark(chunk_index * chunk_length_, covered)) return {};
    const bool whole = std::ranges::find(covered, 0) == covered.end();
    return whole ? Ways{1, false} : Ways{lossy ? 2U : 1U, true};
  }
  void apply(std::uint64_t chunk_index, std::size_t way,
             std::span<std::byte> values) const override {
    const std::size_t bytes = dtype_bytes(dtype_);
    const std::uint64_t first = chunk_index * chunk_length_;
    std::vector<std::uint8_t> covered(values.size() / bytes);
    cells_->mark(first, covered);
    const bool smooth = way == 1;
    if (chunks_ && covered.size() == chunk_length_) {
      const Shape& shape = chunks_->shapes()[chunks_->part(chunk_index).shape];
      return replace_covered(dtype_, shape, covered, smooth, fill_value_, values);
    }
    // Components are independent.
    for (std::uint64_t at = 0; at < covered.size();) {
      const std::uint64_t n =
          std::min<std::uint64_t>(cells_->component_end(first + at) - first, covered.size()) - at;
      replace_covered(dtype_, {n}, std::span(covered).subspan(at, n), smooth, fill_value_,
                      values.subspan(at * bytes, n * bytes));
      at += n;
    }
  }
  /// Two marks for each value, and the levels above with theirs: at most as many values as the
  /// chunk.
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return n_bytes + 3 * n_bytes / dtype_bytes(dtype_);
  }

 private:
  std::shared_ptr<const CoveredCells> cells_;
  std::optional<BoxChunks> chunks_;
  DType dtype_;
  std::optional<double> fill_value_;
  std::uint64_t chunk_length_;
};

}  // namespace

void replace_covered(DType dtype, const Shape& shape, std::span<const std::uint8_t> covered,
                     bool smooth, std::optional<double> fill_value, std::span<std::byte> values) {
  const auto replace = [&]<class T>() {
    std::optional<T> fill;
    if (fill_value) fill = static_cast<T>(*fill_value);
    replace_in<T>(extents_of(shape), covered, smooth, fill,
                  {reinterpret_cast<T*>(values.data()), covered.size()});
  };
  if (dtype == DType::f32) replace.operator()<float>();
  if (dtype == DType::f64) replace.operator()<double>();
}

std::shared_ptr<const ChunkEdit> edit_covered(std::shared_ptr<const CoveredCells> cells,
                                              const BoxSeries* boxes,
                                              const FieldDefinition& definition,
                                              const ResolvedField& resolved) {
  const bool encodes = !resolved.codec->filters().empty();
  if (cells == nullptr || !is_floating(definition.dtype) || !encodes) return nullptr;
  std::optional<BoxChunks> chunks;
  if (boxes != nullptr) chunks.emplace(*boxes, resolved.chunk_shape[0]);
  return std::make_shared<CoveredValues>(std::move(cells), std::move(chunks), definition, resolved);
}

NamedAttribute covered_attribute(const CoveredCells& cells) {
  return {"tailrace_covered_cells",
          {std::vector<std::uint64_t>{cells.n_cells(), cells.checksum()}}};
}

}  // namespace tailrace
