// JointWalk: one level of the pyramid, with every new point predicted along all possible axes.
//
// A new point that is odd along one axis has known neighbours only along that axis. A point that is
// odd along two or three axes can use all of them. The weighted mean of the predictions then has a
// smaller error and less quantisation noise than any single one. Order of the rows:
//   even plane z:  odd x of even rows (x); odd rows: even x (y), then odd x (x and y).
//   odd plane z, directly after even plane z + 3 (the remaining ones at the end):
//                  even rows: even x (z), then odd x (x and z); odd rows: even x (y and z), then
//                  odd x (x, y and z).
// Each step is one run over all its rows of the plane. Rows are stored as two halves, even x and
// odd x, so that all loads are contiguous. If the z (or y) extent of a level is 1, the level has
// only the even plane (even rows).

#pragma once

#include "trz/kernels/interpolation_rows.hpp"
#include "trz/predict/level_walk.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kPlaneBytesAhead = std::size_t{1} << 18;  ///< A quarter of an L2.

/// Memory of the halves: up to four even planes and one odd plane, of y rows each, with ghost room.
template <class T>
struct JointHalves {
  T* even = nullptr;
  T* odd = nullptr;
  std::size_t row_stride = 0;
  std::size_t plane_stride = 0;
  std::size_t n_even = 4;  ///< Number of even planes in memory.

  static std::size_t even_planes(std::size_t n_z) {
    return std::min<std::size_t>(4, (n_z + 1) / 2);
  }
  static std::size_t planes(std::size_t n_z) { return even_planes(n_z) + (n_z > 1 ? 1 : 0); }
  std::size_t place(std::size_t z) const { return z % 2 == 1 ? n_even : (z / 2) % n_even; }
  T* even_row(std::size_t z, std::size_t y) const {
    return even + place(z) * plane_stride + y * row_stride;
  }
  T* odd_row(std::size_t z, std::size_t y) const {
    return odd + place(z) * plane_stride + y * row_stride;
  }
};

template <class T, class Coder>
class JointWalk {
 public:
  JointWalk(const LevelWork<T>& work, const JointHalves<T>& halves, const InterpolationPlan& plan,
            Coder& coder)
      : work_(work), halves_(halves), coder_(coder) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      uniform_[axis] = weights_of<T>(plan.spline[axis]);
    }
    for (unsigned set = 1; set < n_axis_sets; ++set) {
      double total = 0;
      for (unsigned axis = 0; axis < 3; ++axis) {
        if ((set >> axis & 1U) != 0) total += plan.axis_weight[axis];
      }
      for (unsigned axis = 0; axis < 3; ++axis) {
        // A single axis has the full share, whatever its weight.
        const bool alone = set == 1U << axis;
        share_[set][axis] =
            alone       ? T(1)
            : total > 0 ? static_cast<T>(static_cast<double>(plan.axis_weight[axis]) / total)
                        : T(0);
      }
    }
  }

  void run() {
    const std::size_t n_z = work_.extents.z;
    for (std::size_t z = 0; z < n_z; z += 2) {
      look_ahead(z >= 4 ? -3 : 2);
      even_plane(z);
      look_ahead(5);
      if (z >= 4) odd_plane(z - 3);
    }
    const std::size_t last_even = (n_z - 1) / 2 * 2;
    for (std::size_t z = last_even >= 4 ? last_even - 1 : 1; z < n_z; z += 2) odd_plane(z);
  }

 private:
  static constexpr std::size_t kX = 0, kY = 1, kZ = 2;  // Axes, as in plans.
  static constexpr unsigned kSetX = 1, kSetY = 2, kSetZ = 4, n_axis_sets = 8;

  /// Set the distance to the plane that the kernels prefetch; 0 if a plane is too large for the
  /// cache.
  void look_ahead(std::ptrdiff_t n_planes) {
    const std::size_t n_plane = work_.extents.y * work_.extents.x;
    ahead_ = n_plane * sizeof(T) <= kPlaneBytesAhead
                 ? n_planes * static_cast<std::ptrdiff_t>(n_plane)
                 : 0;
  }

  std::size_t n_even_x() const { return (work_.extents.x + 1) / 2; }
  std::size_t n_odd_x() const { return work_.extents.x / 2; }

  /// Column of half rows, every second row of a plane: row k (y = 2 k or 2 k + 1) starts at base +
  /// k * pitch.
  struct Column {
    T* base = nullptr;
    std::size_t pitch = 0;
    T* at(std::size_t k) const { return base + k * pitch; }
  };
  Column even_x(std::size_t z, std::size_t parity_y) const {
    if (z % 2 == 0 && parity_y == 0) return {work_.coarse.row(z / 2, 0), work_.coarse.row_stride};
    return {halves_.even_row(z, parity_y), 2 * halves_.row_stride};
  }
  Column odd_x(std::size_t z, std::size_t parity_y) const {
    return {halves_.odd_row(z, parity_y), 2 * halves_.row_stride};
  }
  std::size_t n_rows(std::size_t parity_y) const { return (work_.extents.y + 1 - parity_y) / 2; }

  /// Task for n_rows rows y = parity_y + 2 k of plane z, starting at k: every second value from
  /// first_x on. The values are predicted along the axes of `set` (bit 0: x). The caller adds these
  /// axes next, x first.
  JointTask<T> task(std::size_t z, std::size_t parity_y, std::size_t k, std::size_t first_x,
                    std::size_t n_rows, unsigned set) {
    const std::size_t y = parity_y + 2 * k;
    JointTask<T> t;
    if constexpr (Coder::encoding) {
      t.rows.x = work_.original + (z * work_.extents.y + y) * work_.extents.x + first_x;
    }
    t.rows.x_pitch = 2 * work_.extents.x;
    t.rows.n = first_x == 0 ? n_even_x() : n_odd_x();
    t.rows.n_rows = n_rows;
    t.rows.n_axes = 0;
    t.rows.ahead = ahead_;
    t.first_index = (z * work_.chunk_plane + y * work_.chunk_row + first_x) * work_.index_scale;
    t.index_stride = 2 * work_.index_scale;
    t.index_pitch = 2 * work_.chunk_row * work_.index_scale;
    set_ = set;
    return t;
  }

  /// Add the x axis: the even half of the same rows, with ghosts.
  void add_x(JointTask<T>& t, const Column& even, std::size_t k) const {
    const T* row = even.at(k);
    t.rows.axes[t.rows.n_axes++] = {row - 1, row,        row + 1,
                                    row + 2, even.pitch, scaled(uniform_[kX], share_[set_][kX])};
  }

  /// Add the y axis: odd row k lies between the even rows k and k + 1 of a column.
  void add_y(JointTask<T>& t, const Column& even_rows, std::size_t k) const {
    const EdgeChoice<T> edge = choose_edge<T>(k, n_rows(0), uniform_[kY]);
    t.rows.edge = t.rows.edge || edge.weights.edge;
    t.rows.axes[t.rows.n_axes++] = {even_rows.at(edge.a), even_rows.at(edge.b),
                                    even_rows.at(edge.c), even_rows.at(edge.d),
                                    even_rows.pitch,      scaled(edge.weights, share_[set_][kY])};
  }

  /// Add the z axis: the same rows of the even planes around odd plane z.
  template <class ColumnOf>
  void add_z(JointTask<T>& t, std::size_t z, std::size_t k, ColumnOf column_of) const {
    const EdgeChoice<T> edge = choose_edge<T>(z / 2, (work_.extents.z + 1) / 2, uniform_[kZ]);
    t.rows.edge = t.rows.edge || edge.weights.edge;
    t.rows.axes[t.rows.n_axes++] = {
        column_of(2 * edge.a).at(k), column_of(2 * edge.b).at(k),
        column_of(2 * edge.c).at(k), column_of(2 * edge.d).at(k),
        column_of(2 * edge.a).pitch, scaled(edge.weights, share_[set_][kZ])};
  }

  /// Weights times an axis's share, in both forms: another axis of the row may be at an edge.
  static RowWeights<T> scaled(RowWeights<T> w, T share) {
    if (!w.edge) {
      w.four[0] = w.four[3] = w.far;
      w.four[1] = w.four[2] = w.near;
    }
    w.near *= share;
    w.far *= share;
    for (T& weight : w.four) weight *= share;
    return w;
  }

  /// Fill the ghosts of all rows of a column, for the pass along x.
  void make_ghosts(const Column& even, std::size_t n) const {
    for (std::size_t k = 0; k < n; ++k) {
      set_ghosts(even.at(k), n_even_x(), work_.extents.x % 2 == 0, uniform_[kX]);
    }
  }

  /// Visit rows k of one parity in runs that share their weights. If the y axis takes part, each
  /// row at an edge of y is a run of one; all others form one run.
  template <class Visitor>
  void for_each_run(std::size_t parity_y, bool along_y, Visitor visit) const {
    const std::size_t n = n_rows(parity_y);
    if (!along_y) {
      if (n > 0) visit(std::size_t{0}, n);
      return;
    }
    for (std::size_t k = 0; k < n;) {
      std::size_t n_run = 1;
      if (!choose_edge<T>(k, n_rows(0), uniform_[kY]).weights.edge) {
        while (k + n_run < n && !choose_edge<T>(k + n_run, n_rows(0), uniform_[kY]).weights.edge) {
          ++n_run;
        }
      }
      visit(k, n_run);
      k += n_run;
    }
  }

  /// Predict the even-x halves of the rows of one parity along the axes that `add` adds.
  template <class Add>
  void even_half(std::size_t z, std::size_t parity_y, unsigned set, Add add) {
    const Column to = even_x(z, parity_y);
    for_each_run(parity_y, (set & kSetY) != 0, [&](std::size_t k, std::size_t n) {
      JointTask<T> t = task(z, parity_y, k, 0, n, set);
      t.rows.recon = to.at(k);
      t.rows.recon_pitch = to.pitch;
      add(t, k);
      coder_.run(t);
    });
  }

  /// Predict the odd-x halves along x and the axes that `add` adds. Stores complete rows to recon
  /// if requested.
  template <class Add>
  void odd_half(std::size_t z, std::size_t parity_y, bool keep, unsigned set, Add add) {
    const Column even = even_x(z, parity_y);
    make_ghosts(even, n_rows(parity_y));
    if (work_.keep_all && work_.extents.x % 2 == 1) {
      for (std::size_t k = 0; k < n_rows(parity_y); ++k) {
        work_.recon.row(z, parity_y + 2 * k)[work_.extents.x - 1] = even.at(k)[n_even_x() - 1];
      }
    }
    if (n_odd_x() == 0) return;
    const Column to = odd_x(z, parity_y);
    for_each_run(parity_y, (set & kSetY) != 0, [&](std::size_t k, std::size_t n) {
      JointTask<T> t = task(z, parity_y, k, 1, n, set);
      if (keep) t.rows.recon = to.at(k);
      t.rows.recon_pitch = to.pitch;
      if (work_.keep_all) t.rows.full = work_.recon.row(z, parity_y + 2 * k);
      t.rows.full_pitch = 2 * work_.recon.row_stride;
      add_x(t, even, k);
      add(t, k);
      coder_.run(t);
    });
  }

  void even_plane(std::size_t z) {
    odd_half(z, 0, true, kSetX, [](JointTask<T>&, std::size_t) {});
    if (work_.extents.y == 1) return;
    even_half(z, 1, kSetY, [&](JointTask<T>& t, std::size_t k) { add_y(t, even_x(z, 0), k); });
    odd_half(z, 1, true, kSetX | kSetY,
             [&](JointTask<T>& t, std::size_t k) { add_y(t, odd_x(z, 0), k); });
  }

  void odd_plane(std::size_t z) {
    const auto even_0 = [&](std::size_t plane) { return even_x(plane, 0); };
    const auto even_1 = [&](std::size_t plane) { return even_x(plane, 1); };
    const auto odd_0 = [&](std::size_t plane) { return odd_x(plane, 0); };
    const auto odd_1 = [&](std::size_t plane) { return odd_x(plane, 1); };
    even_half(z, 0, kSetZ, [&](JointTask<T>& t, std::size_t k) { add_z(t, z, k, even_0); });
    odd_half(z, 0, true, kSetX | kSetZ,
             [&](JointTask<T>& t, std::size_t k) { add_z(t, z, k, odd_0); });
    if (work_.extents.y == 1) return;
    even_half(z, 1, kSetY | kSetZ, [&](JointTask<T>& t, std::size_t k) {
      add_y(t, even_x(z, 0), k);
      add_z(t, z, k, even_1);
    });
    odd_half(z, 1, false, kSetX | kSetY | kSetZ, [&](JointTask<T>& t, std::size_t k) {
      add_y(t, odd_x(z, 0), k);
      add_z(t, z, k, odd_1);
    });
  }

  const LevelWork<T>& work_;
  const JointHalves<T>& halves_;
  Coder& coder_;
  std::array<RowWeights<T>, 3> uniform_;
  T share_[n_axis_sets][3] = {};  ///< Share of an axis in the mean over a set of axes.
  unsigned set_ = 0;
  std::ptrdiff_t ahead_ = 0;
};

}  // namespace tailrace::trz
