// Lorenzo prediction on the lattice (dual quantisation), and coding without prediction.
//
// Every value is first quantised independently, q = round((x - offset) / step). The integers q are
// then predicted from their neighbours, exactly, in modular 32-bit arithmetic. So the decoder's
// only floating-point operation is offset + q * step, and errors cannot accumulate. Order 0 is no
// prediction (the code is q). Order 1 takes differences along the last axis, 2 along the last two,
// and 3 and 4 accordingly: code = sum over the corners of the unit cube with alternating signs.
// Neighbours outside the chunk have q = 0. Codes are in row-major order.
// A value that fails becomes a patch and gets the q of the previous value in row-major order, 0 for
// the first. So masked regions cost almost nothing.
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

/// Extents of a chunk, slowest axis first, leading ones 1: {t, z, y, x}. None is 0.
using Extents = std::array<std::size_t, 4>;

/// Encode all values (row-major, n = product of extents). T: float, double.
/// @param fill  all values equal to it (by ==) become patches; null for none.
/// Not collective. Thread-safe if each thread has a workspace. Uses Slot::rows.
/// @returns false if out of memory.
template <class T>
bool lorenzo_encode(const T* values, const Extents& extents, int order, const Lattice<T>& lattice,
                    const T* fill, CodeWriter& codes, PatchMap& patches, Workspace& workspace);

/// Decode all values but the patches. @returns false if out of memory or the codes failed.
template <class T>
bool lorenzo_decode(CodeReader& codes, const Extents& extents, int order, const Lattice<T>& lattice,
                    T* values, Workspace& workspace);

/// Compute the lattice points of all values, without prediction. Values that fail become patches
/// and get the point of the previous value.
template <class T>
void quantise_all(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                  std::int32_t* q, PatchMap& patches, Isa isa);

/// Lorenzo coding of 32-bit integers without a lattice, exact (wrapping). Used for integer dtypes
/// (widened or narrowed to 32 bits) and for lossless floats, through an order-preserving cast.
bool lorenzo_encode_integers(const std::int32_t* values, const Extents& extents, int order,
                             CodeWriter& codes, Workspace& workspace);
bool lorenzo_decode_integers(CodeReader& codes, const Extents& extents, int order,
                             std::int32_t* values, Workspace& workspace);

}  // namespace tailrace::trz
