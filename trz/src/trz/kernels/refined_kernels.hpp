// Kernels of bit planes: find the cells of values, pack cells into planes, and refine values.
//
// Given the first `n_read` of its cell's `n_planes` bits, a value is the middle of the remaining
// range: coarser + c * half_cell, with c = (2 known + 1) 2^(n_planes - n_read) - 2^n_planes. Since
// c is a whole number, this takes two operations in the values' type, each rounded once. Every
// machine therefore computes the same bits. Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// Most values per call of find_cells().
inline constexpr std::size_t kCellBlock = 64;

/// Parameters of find_cells().
template <class T>
struct CellPlan {
  int n_planes;  ///< 1..8
  T half_cell;
  T inverse_cell;  ///< Approximately 1 / (2 half_cell).
  T bound;         ///< Bound with all planes; 2^n_planes times the bound is finite.
  T fill;          ///< Values equal to this fail; NaN: no fill value.
};

/// One floating-point type's kernels.
template <class T>
struct RefinedKernelsOf {
  /// Find the cells of n <= kCellBlock values. @returns true if all values are within the bound of
  /// every level and none equals the fill value.
  bool (*find_cells)(const T* values, const T* coarser, std::size_t n, const CellPlan<T>& plan,
                     std::uint8_t* cells);
  /// Refine coarser values in place by the first n_read >= 1 planes of (n + 7) / 8 bytes each,
  /// stored one after another. Infinities and NaN do not change.
  void (*refine)(T* values, std::size_t n, int n_planes, int n_read, T half_cell,
                 const std::uint8_t* planes);
};

struct RefinedKernels {
  RefinedKernelsOf<float> of_f32;
  RefinedKernelsOf<double> of_f64;
  /// Write the highest bits of all cells, then the next bits, as planes of (n + 7) / 8 bytes each.
  /// `cells` is padded with zeros to a multiple of eight.
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
