// LevelWalk: one level of the pyramid, axis after axis (InterpolationPlan::last_axis 0, 1, 2).
//
// Determines the order of rows and the addresses of their neighbours; the coder codes them.

#pragma once

#include "trz/kernels/interpolation_rows.hpp"

namespace tailrace::trz {

/// Input, output and scratch memory of the walk over one level.
template <class T>
struct LevelWork {
  LevelExtents extents;
  const T* original = nullptr;  ///< This level's values, dense; encoder only.
  Planes<T> coarse;             ///< Next coarser level's reconstruction, rows with ghost room.
  Planes<T> even_rows;          ///< Scratch: one plane of even-x rows, with ghost room.
  Planes<T> recon;              ///< This level's reconstruction, or scratch for a part of it.
  bool keep_all = true;         ///< True if the caller needs all of recon afterwards.
  T* discard = nullptr;
  int last_axis = 0;
  std::size_t index_scale = 1;  ///< 2^level: distance of this level's points in the chunk.
  std::size_t chunk_row = 0, chunk_plane = 0;  ///< Strides of the chunk.
};

template <class T, class Coder>
class LevelWalk {
 public:
  LevelWalk(const LevelWork<T>& work, const InterpolationPlan& plan, Coder& coder)
      : work_(work),
        coder_(coder),
        along_x_(weights_of<T>(plan.spline[0])),
        along_y_(weights_of<T>(plan.spline[1])),
        along_z_(weights_of<T>(plan.spline[2])) {}

  void run() {
    const LevelExtents& e = work_.extents;
    if (work_.last_axis != 2 || e.z == 1) {
      for (std::size_t z = 0; z < e.z; ++z) plane(z);
      return;
    }
    for (std::size_t z = 0; z < e.z; z += 2) {
      plane(z);
      if (z >= 4) whole_plane(z - 3);
    }
    const std::size_t last_even = (e.z - 1) / 2 * 2;
    const std::size_t first_missing = last_even >= 4 ? last_even - 1 : 1;
    for (std::size_t z = first_missing; z < e.z; z += 2) whole_plane(z);
  }

 private:
  std::size_t n_even_x() const { return (work_.extents.x + 1) / 2; }
  std::size_t n_odd_x() const { return work_.extents.x / 2; }
  bool odd_x_at_end() const { return work_.extents.x % 2 == 0; }

  const T* original(std::size_t z, std::size_t y) const {
    return work_.original + (z * work_.extents.y + y) * work_.extents.x;
  }

  Task<T> task(std::size_t z, std::size_t y, std::size_t x, std::size_t stride, std::size_t n) {
    Task<T> t;
    if constexpr (Coder::encoding) t.row.x = original(z, y) + x;
    t.row.stride = stride;
    t.row.n = n;
    t.first_index = (z * work_.chunk_plane + y * work_.chunk_row + x) * work_.index_scale;
    t.index_stride = stride * work_.index_scale;
    return t;
  }

  /// Even-x values of row (z, y), once they are known.
  T* even_row(std::size_t z, std::size_t y) const {
    return z % 2 == 0 && y % 2 == 0 ? work_.coarse.row(z / 2, y / 2) : work_.even_rows.row(0, y);
  }

  /// Predict the row at odd position k from rows of `source(k)`, and store it at `to` (null:
  /// discard).
  template <class Source>
  void predict(Task<T> t, std::size_t k, std::size_t n_even, const RowWeights<T>& uniform,
               Source source, T* to) {
    const EdgeChoice<T> edge = choose_edge<T>(k, n_even, uniform);
    t.row.a = source(edge.a);
    t.row.b = source(edge.b);
    t.row.c = source(edge.c);
    t.row.d = source(edge.d);
    t.row.recon = to;
    t.row.where = to == nullptr ? Reconstruct::discard : Reconstruct::plain;
    coder_.run(t, edge.weights);
  }

  /// Predict odd x of row (z, y) from its even ones; stores the complete row in recon if `wanted`.
  void odd_x(std::size_t z, std::size_t y, bool wanted) {
    T* even = even_row(z, y);
    set_ghosts(even, n_even_x(), odd_x_at_end(), along_x_);
    T* to = wanted ? work_.recon.row(z, y) : nullptr;
    if (to != nullptr && !odd_x_at_end()) to[work_.extents.x - 1] = even[n_even_x() - 1];
    if (n_odd_x() == 0) return;
    Task<T> t = task(z, y, 1, 2, n_odd_x());
    t.row.a = even - 1;
    t.row.b = even;
    t.row.c = even + 1;
    t.row.d = even + 2;
    t.row.recon = to;
    t.row.where = to == nullptr ? Reconstruct::discard : Reconstruct::interleave;
    coder_.run(t, along_x_);
  }

  void plane(std::size_t z) {
    const LevelExtents& e = work_.extents;
    const std::size_t n_even_y = (e.y + 1) / 2;
    const std::size_t n_even_z = (e.z + 1) / 2;
    if (z % 2 == 1) {
      for (std::size_t y = 0; y < e.y; y += 2) {
        predict(
            task(z, y, 0, 2, n_even_x()), z / 2, n_even_z, along_z_,
            [&](std::size_t k) { return work_.coarse.row(k, y / 2); }, even_row(z, y));
      }
    }
    if (work_.last_axis == 0) {
      for (std::size_t y = 1; y < e.y; y += 2) {
        predict(
            task(z, y, 0, 2, n_even_x()), y / 2, n_even_y, along_y_,
            [&](std::size_t k) { return even_row(z, 2 * k); }, even_row(z, y));
      }
      for (std::size_t y = 0; y < e.y; ++y) odd_x(z, y, work_.keep_all);
      return;
    }
    for (std::size_t y = 0; y < e.y; y += 2) odd_x(z, y, true);
    const bool wanted = work_.keep_all || work_.last_axis == 2;
    for (std::size_t y = 1; y < e.y; y += 2) {
      predict(
          task(z, y, 0, 1, e.x), y / 2, n_even_y, along_y_,
          [&](std::size_t k) { return work_.recon.row(z, 2 * k); },
          wanted ? work_.recon.row(z, y) : nullptr);
    }
  }

  /// Predict odd plane z from the complete even planes around it.
  void whole_plane(std::size_t z) {
    const LevelExtents& e = work_.extents;
    const std::size_t n_even_z = (e.z + 1) / 2;
    const bool dense = work_.recon.row_stride == e.x;
    const std::size_t n_rows = dense ? 1 : e.y;
    const std::size_t n = dense ? e.x * e.y : e.x;
    for (std::size_t y = 0; y < n_rows; ++y) {
      predict(
          task(z, y, 0, 1, n), z / 2, n_even_z, along_z_,
          [&](std::size_t k) { return work_.recon.row(2 * k, y); },
          work_.keep_all ? work_.recon.row(z, y) : nullptr);
    }
  }

  const LevelWork<T>& work_;
  Coder& coder_;
  RowWeights<T> along_x_, along_y_, along_z_;
};

}  // namespace tailrace::trz
