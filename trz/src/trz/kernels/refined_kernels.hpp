// Kernels of bit planes: the cells that values lie in, as bits side by side, and values by cells.
//
// A value by the first `n_read` of its cell's `n_planes` bits is the middle of what these leave:
// coarser + c * half_cell, with c = (2 known + 1) 2^(n_planes - n_read) - 2^n_planes. c is a whole
// number, so that there are two operations of the values' type, each rounded once, and every
// machine comes to the same bits. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// Values that are looked at together.
inline constexpr std::size_t kCellBlock = 64;

/// What finding cells needs.
template <class T>
struct CellPlan {
  int n_planes;  ///< 1..8
  T half_cell;
  T inverse_cell;  ///< 1 / (2 half_cell), about.
  T bound;         ///< With all planes; 2^n_planes times it is finite.
  T fill;          ///< Does not hold by itself; NaN: there is none.
};

/// One floating-point type's kernels.
template <class T>
struct RefinedKernelsOf {
  /// The cells of n <= kCellBlock values. @returns whether all are nearer than the bound of every
  /// level, and none is the fill value.
  bool (*find_cells)(const T* values, const T* coarser, std::size_t n, const CellPlan<T>& plan,
                     std::uint8_t* cells);
  /// Values by the first n_read planes of (n + 7) / 8 bytes each, one behind the other; n_read
  /// >= 1. Infinities and NaN stay.
  void (*refine)(T* values, std::size_t n, int n_planes, int n_read, T half_cell,
                 const std::uint8_t* planes);
};

struct RefinedKernels {
  RefinedKernelsOf<float> of_f32;
  RefinedKernelsOf<double> of_f64;
  /// The highest bits of all cells, then the next ones: planes of (n + 7) / 8 bytes each. `cells`
  /// has zeros up to the next multiple of eight.
  void (*pack)(const std::uint8_t* cells, std::size_t n, int n_planes, std::uint8_t* planes);

  template <class T>
  const RefinedKernelsOf<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return of_f32;
    } else {
      return of_f64;
    }
  }
};

TRZ_DECLARE_KERNELS(RefinedKernels, refined_kernels)

}  // namespace tailrace::trz
