// Lorenzo prediction on the lattice (dual quantisation), and no prediction.
//
// Every value is first put on the lattice, q = round((x - offset) / step), by itself; then the
// integers q are predicted from their neighbours, exactly, in modular 32-bit arithmetic. So the
// decoder's only operation in floating point is offset + q * step, and errors cannot drift. Order 0
// is no prediction (the code is q), 1 differences along the last axis, 2 along the last two, 3 and
// 4 likewise: code = sum over the corners of the unit cube with alternating signs. Neighbours
// outside the chunk count as q = 0. Codes come in row-major order.
// Where a value fails, its q is the q of the value before it in row-major order (0 for the first),
// so that masked regions cost next to nothing, and the value is marked as a patch.
// Source: Tian et al. (cuSZ) for dual quantisation; Ibarria et al. for the predictor.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/entropy/code_stream.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/predict/lattice.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// A chunk's extents, slowest axis first, leading ones 1: {t, z, y, x}. None is 0.
using Extents = std::array<std::size_t, 4>;

/// Encode all values (row-major, n = product of extents). T: float, double.
/// @param fill  null, or a value whose every occurrence is to become a patch (equal by ==).
/// Not collective. Thread-safe with a workspace per thread. Uses Slot::rows.
/// @returns false when the workspace has no memory left.
template <class T>
bool lorenzo_encode(const T* values, const Extents& extents, int order, const Lattice<T>& lattice,
                    const T* fill, CodeWriter& codes, PatchMap& patches, Workspace& workspace);

/// The inverse, all but the patches. @returns false when memory is out or the codes failed.
template <class T>
bool lorenzo_decode(CodeReader& codes, const Extents& extents, int order, const Lattice<T>& lattice,
                    T* values, Workspace& workspace);

/// The lattice points of all values, without prediction; those that fail become patches, and hold
/// the point before them.
template <class T>
void quantise_all(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                  std::int32_t* q, PatchMap& patches, Isa isa);

/// The same without a lattice: 32-bit integers, exactly (wrapping). Used for the integer dtypes
/// (widened or narrowed to 32 bits) and for floats kept exactly through an order-preserving cast.
bool lorenzo_encode_integers(const std::int32_t* values, const Extents& extents, int order,
                             CodeWriter& codes, Workspace& workspace);
bool lorenzo_decode_integers(CodeReader& codes, const Extents& extents, int order,
                             std::int32_t* values, Workspace& workspace);

}  // namespace tailrace::trz
