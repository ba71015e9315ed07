// Kernels of the Lorenzo predictor: values to lattice integers, their differences, and back.
//
// The driver (lorenzo.cpp) works on pieces: up to a few thousand values in row-major order, in
// complete rows or parts of rows. quantise() and restore() do not depend on rows. difference() and
// sum() find their neighbours in memory: the row above is q[i - row], `plane` has the y-differences
// of the previous plane, `volume` the z-differences of the previous volume. Integer arithmetic is
// modular, in uint32 or uint64.
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kPieceValues = 2048;  ///< Most values in one piece.

template <class T>
struct LatticeKernels {
  /// Compute q[i] of n values. Values equal to `fill` (null: no fill value) fail. Returns false if
  /// any value fails; q is then invalid.
  bool (*quantise)(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                   std::int32_t* q);
  /// Like quantise, but set bit i % 64 of failed[i / 64] if value i fails; q[i] is then undefined.
  /// Bits from n on are 0.
  void (*quantise_careful)(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                           std::int32_t* q, std::uint64_t* failed);
  /// Compute values[i] = offset + q[i] * step.
  void (*restore)(const std::int32_t* q, std::size_t n, const Lattice<T>& lattice, T* values);
};

/// Memory and position of a piece. difference() reads q, sum() writes it. Word: int32_t, int64_t.
template <class Word>
struct PieceOf {
  int order = 1;           ///< Order of the predictor, 0..4.
  Word* q = nullptr;       ///< Integers of the piece. Order >= 2: q[-row] .. q[-1] are valid, too.
  Word* plane = nullptr;   ///< Order >= 3: differences at this piece's place; read, then replaced.
  Word* volume = nullptr;  ///< Order 4: the same for the previous volume.
  std::size_t row = 0;     ///< Values in a complete row.
  std::size_t at = 0;      ///< Position of the first value in its row.
  std::size_t n = 0;
  Word carry = 0;  ///< Last difference of the previous piece, used if at > 0; updated.
};

using LorenzoPiece = PieceOf<std::int32_t>;
using WidePiece = PieceOf<std::int64_t>;

struct LorenzoKernels {
  LatticeKernels<float> f32;
  LatticeKernels<double> f64;
  void (*difference)(LorenzoPiece& piece, std::int32_t* codes);
  void (*sum)(LorenzoPiece& piece, const std::int32_t* codes);
  /// Like difference and sum, with 64-bit codes as two of 32 bits: code = high * 2^32 + low, where
  /// low is signed.
  void (*difference_wide)(WidePiece& piece, std::int32_t* low, std::int32_t* high);
  void (*sum_wide)(WidePiece& piece, const std::int32_t* low, const std::int32_t* high);
};

TRZ_DECLARE_KERNELS(LorenzoKernels, lorenzo_kernels)

}  // namespace tailrace::trz
