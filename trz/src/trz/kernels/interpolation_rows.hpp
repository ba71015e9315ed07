// Interpolation rows: coders of rows, ghost values at the ends of rows, and weights on edges.
//
// The walks over a level (level_walk.hpp, joint_walk.hpp) are templates over a coder. EncodingRows
// turns a row into codes and marks failing values; DecodingRows turns codes into a row. So encoder
// and decoder always use the same order and the same neighbours.

#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "trz/kernels/interpolation_kernels.hpp"
#include "trz/predict/interpolation.hpp"

namespace tailrace::trz {

template <class T>
const InterpolationRowKernels<T>& row_kernels(Isa isa) {
  if constexpr (sizeof(T) == 4) {
    return interpolation_kernels(isa).f32;
  } else {
    return interpolation_kernels(isa).f64;
  }
}

template <class T>
const JointRowKernels<T>& joint_row_kernels(Isa isa) {
  if constexpr (sizeof(T) == 4) {
    return joint_kernels(isa).f32;
  } else {
    return joint_kernels(isa).f64;
  }
}

template <class T>
RowWeights<T> weights_of(RowSpline spline) {
  RowWeights<T> weights;
  switch (spline) {
    case RowSpline::linear: weights.near = T(0.5); break;
    case RowSpline::cubic:
      weights.near = T(0.5625);
      weights.far = T(-0.0625);
      weights.inverse_far = T(-16);
      break;
    case RowSpline::natural:
      weights.near = T(0.575);
      weights.far = T(-0.075);
      weights.inverse_far = T(1) / weights.far;
      break;
  }
  return weights;
}

// --- coders: a row to codes, codes to a row ----------------------------------------------------

/// A row to code, and the positions of its values in the chunk (finest level) or the pyramid.
template <class T>
struct Task {
  InterpolationRow<T> row;
  std::size_t first_index = 0;   ///< Row-major index of the row's first value in the chunk.
  std::size_t index_stride = 1;  ///< Distance between indices of successive values.
};

/// Rows for joint prediction, and the positions of their values in the chunk.
template <class T>
struct JointTask {
  JointRows<T> rows;
  std::size_t first_index = 0;   ///< Row-major index of the first row's first value.
  std::size_t index_stride = 2;  ///< Distance between indices of successive values.
  std::size_t index_pitch = 0;   ///< Distance between the first indices of successive rows.
};

/// Part of joint rows: `n_rows` rows from row `first` on. If a row is too long, the part begins at
/// value `begin` of a single row.
template <class T>
JointRows<T> joint_part(const JointRows<T>& rows, std::size_t first, std::size_t n_rows,
                        std::size_t begin) {
  JointRows<T> part = rows;
  part.n = std::min(kRowCodes, rows.n - begin);
  part.n_rows = n_rows;
  if (part.x != nullptr) part.x += first * rows.x_pitch + 2 * begin;
  for (int k = 0; k < rows.n_axes; ++k) {
    const std::size_t shift = first * rows.axes[k].pitch + begin;
    part.axes[k].a += shift;
    part.axes[k].b += shift;
    part.axes[k].c += shift;
    part.axes[k].d += shift;
  }
  if (part.recon != nullptr) part.recon += first * rows.recon_pitch + begin;
  if (part.full != nullptr) part.full += first * rows.full_pitch + 2 * begin;
  return part;
}

/// Visit rows in parts of at most kRowCodes codes: visit(part, first row, first value in the row).
/// Parts are complete rows, or pieces of one row.
template <class T, class Visitor>
void for_each_part(const JointRows<T>& rows, Visitor visit) {
  const std::size_t at_once = rows.n < kRowCodes ? kRowCodes / rows.n : 1;
  for (std::size_t first = 0; first < rows.n_rows; first += at_once) {
    const std::size_t n_rows = std::min(at_once, rows.n_rows - first);
    for (std::size_t begin = 0; begin < rows.n; begin += kRowCodes) {
      visit(joint_part(rows, first, n_rows, begin), first, begin);
    }
  }
}

template <class T>
class EncodingRows {
 public:
  static constexpr bool encoding = true;

  EncodingRows(const Lattice<T>& lattice, const T* fill, CodeWriter& codes, PatchMap& patches,
               Isa isa)
      : kernels_(row_kernels<T>(isa)),
        joint_kernels_(joint_row_kernels<T>(isa)),
        lattice_(lattice),
        fill_(fill),
        codes_(codes),
        patches_(patches) {}

  void set_step(T step) {
    lattice_.step = step;
    lattice_.inverse_step = T(1) / step;
  }

  void run(const Task<T>& task, const RowWeights<T>& weights) {
    for (std::size_t begin = 0; begin < task.row.n; begin += kRowCodes) {
      InterpolationRow<T> part = task.row;
      part.n = std::min(kRowCodes, task.row.n - begin);
      part.x += begin * part.stride;
      part.a += begin;
      part.b += begin;
      part.c += begin;
      part.d += begin;
      if (part.where == Reconstruct::plain) part.recon += begin;
      if (part.where == Reconstruct::interleave) part.recon += 2 * begin;
      std::int32_t* codes = codes_.reserve(part.n);
      if (!kernels_.encode(part, weights, lattice_, fill_, codes)) {
        carefully(part, weights, codes, task.first_index + begin * task.index_stride,
                  task.index_stride);
      }
      codes_.commit(part.n);
    }
  }

  void run(const JointTask<T>& task) {
    for_each_part(task.rows, [&](const JointRows<T>& part, std::size_t first, std::size_t begin) {
      const std::size_t n_codes = part.n * part.n_rows;
      std::int32_t* codes = codes_.reserve(n_codes);
      if (!joint_kernels_.encode(part, lattice_, fill_, codes)) {
        joint_kernels_.encode_careful(part, lattice_, fill_, codes, failed_);
        const std::size_t index =
            task.first_index + first * task.index_pitch + begin * task.index_stride;
        for (std::size_t r = 0; r < part.n_rows; ++r) {
          mark_failed(failed_ + r * part.n, part.n, index + r * task.index_pitch,
                      task.index_stride);
        }
      }
      codes_.commit(n_codes);
    });
  }

  /// Encode a single value, as on the top level.
  T one(T value, T prediction, std::size_t index) {
    InterpolationRow<T> row;
    T recon = prediction;
    row.x = &value;
    row.a = row.b = row.c = row.d = &prediction;
    row.recon = &recon;
    row.n = 1;
    RowWeights<T> weights;
    weights.edge = true;
    weights.four[1] = T(1);
    run({row, index, 1}, weights);
    return recon;
  }

 private:
  void carefully(const InterpolationRow<T>& part, const RowWeights<T>& weights, std::int32_t* codes,
                 std::size_t index, std::size_t index_stride) {
    kernels_.encode_careful(part, weights, lattice_, fill_, codes, failed_);
    mark_failed(failed_, part.n, index, index_stride);
  }

  void mark_failed(const std::uint8_t* failed, std::size_t n, std::size_t index,
                   std::size_t index_stride) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, failed + i, sizeof eight);
      for (; eight != 0; eight &= eight - 1) {
        const auto k = static_cast<std::size_t>(std::countr_zero(eight)) / 8;
        patches_.mark(index + (i + k) * index_stride);
      }
    }
    for (; i < n; ++i) {
      if (failed[i] != 0) patches_.mark(index + i * index_stride);
    }
  }

  const InterpolationRowKernels<T>& kernels_;
  const JointRowKernels<T>& joint_kernels_;
  Lattice<T> lattice_;
  const T* fill_;
  CodeWriter& codes_;
  PatchMap& patches_;
  std::uint8_t failed_[kRowCodes];
};

template <class T>
class DecodingRows {
 public:
  static constexpr bool encoding = false;

  DecodingRows(CodeReader& codes, Isa isa)
      : kernels_(row_kernels<T>(isa)), joint_kernels_(joint_row_kernels<T>(isa)), codes_(codes) {}

  void set_step(T step) { step_ = step; }

  void run(const Task<T>& task, const RowWeights<T>& weights) {
    for (std::size_t begin = 0; begin < task.row.n; begin += kRowCodes) {
      InterpolationRow<T> part = task.row;
      part.n = std::min(kRowCodes, task.row.n - begin);
      part.a += begin;
      part.b += begin;
      part.c += begin;
      part.d += begin;
      part.recon += part.where == Reconstruct::interleave ? 2 * begin : begin;
      kernels_.decode(part, weights, step_, codes_.take(part.n));
    }
  }

  void run(const JointTask<T>& task) {
    for_each_part(task.rows, [&](const JointRows<T>& part, std::size_t, std::size_t) {
      joint_kernels_.decode(part, step_, codes_.take(part.n * part.n_rows));
    });
  }

  T one(T, T prediction, std::size_t) {
    T recon = prediction;
    InterpolationRow<T> row;
    row.a = row.b = row.c = row.d = &prediction;
    row.recon = &recon;
    row.n = 1;
    RowWeights<T> weights;
    weights.edge = true;
    weights.four[1] = T(1);
    run({row, 0, 1}, weights);
    return recon;
  }

 private:
  const InterpolationRowKernels<T>& kernels_;
  const JointRowKernels<T>& joint_kernels_;
  CodeReader& codes_;
  T step_ = 0;
};

// --- ghosts and edges --------------------------------------------------------------------------

/// Set the ghost values beyond the ends of a row of n_even points, so that all its points can be
/// predicted with uniform weights. row[-1] and row[n_even] follow a parabola. If the last odd point
/// lies beyond the last even one, row[n_even + 1] makes its prediction a linear extrapolation.
template <class T>
void set_ghosts(T* row, std::size_t n_even, bool odd_at_end, const RowWeights<T>& w) {
  T* const end = row + n_even;
  if (n_even == 1) {
    row[-1] = end[0] = end[1] = row[0];
    return;
  }
  const T last = end[-1];
  const T slope = last - end[-2];
  if (n_even == 2) {
    row[-1] = row[0] - slope;
    end[0] = last + slope;
  } else {
    row[-1] = (row[0] - row[1]) * T(3) + row[2];
    end[0] = slope * T(3) + end[-3];
  }
  end[1] = end[0];
  if (!odd_at_end) return;
  const T line = last + slope * T(0.5);
  if (w.far == T(0)) {
    end[0] = last + slope;
  } else {
    end[1] = (line - (last + end[0]) * w.near) * w.inverse_far - end[-2];
  }
}

/// Weights and neighbours of odd position k (between even positions k and k + 1) of an axis with
/// n_even points. A missing neighbour is replaced by b, with weight 0.
template <class T>
struct EdgeChoice {
  RowWeights<T> weights;
  std::size_t a, b, c, d;
};

template <class T>
EdgeChoice<T> choose_edge(std::size_t k, std::size_t n_even, const RowWeights<T>& uniform) {
  const bool has_a = k >= 1;
  const bool has_c = k + 1 < n_even;
  const bool has_d = k + 2 < n_even;
  EdgeChoice<T> edge{uniform, has_a ? k - 1 : k, k, has_c ? k + 1 : k, has_d ? k + 2 : k};
  if (has_a && has_d) return edge;
  RowWeights<T>& w = edge.weights;
  w.edge = true;
  const auto set = [&w](T a, T b, T c, T d) {
    w.four[0] = a;
    w.four[1] = b;
    w.four[2] = c;
    w.four[3] = d;
  };
  if (!has_c) {
    if (has_a) {
      set(T(-0.5), T(1.5), T(0), T(0));
    } else {
      set(T(0), T(1), T(0), T(0));
    }
  } else if (uniform.far == T(0) || (!has_a && !has_d)) {
    set(T(0), T(0.5), T(0.5), T(0));
  } else if (has_d) {
    set(T(0), T(0.375), T(0.75), T(-0.125));
  } else {
    set(T(-0.125), T(0.75), T(0.375), T(0));
  }
  return edge;
}

}  // namespace tailrace::trz
