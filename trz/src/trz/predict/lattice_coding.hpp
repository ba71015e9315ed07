// Lattice coding: a chunk of floating-point values to predicted, quantised codes and back.
//
// The part that chunks with an absolute bound and chunks with a pointwise bound (whose transformed
// values have an absolute one) have in common: prediction, its parameters, and the code sections.
// Patches and everything around are the caller's.

#pragma once

#include <optional>

#include "trz/entropy/code_sections.hpp"
#include "trz/predict/choose.hpp"

namespace tailrace::trz {

/// The lattice for a bound; nothing if T cannot carry it (denormal or overflowing step).
template <class T>
std::optional<Lattice<T>> make_lattice(double bound, double offset);

/// What is coded, and how.
template <class T>
struct LatticeJob {
  const T* values = nullptr;
  Extents extents{1, 1, 1, 1};
  Lattice<T> lattice;
  const T* fill = nullptr;
  /// Of a refinement: every second value along each axis, as the decoder will have them.
  const T* coarse = nullptr;
  Prediction prediction;
  CodeForm form = CodeForm::grouped;
  SectionChoice sections;
};

/// Extents as interpolation sees them: time folded into depth.
Extents folded_to_three(const Extents& extents);

std::size_t values_in(const Extents& extents);

/// The codes that a job has: one a value, but for those that `coarse` brings.
template <class T>
std::size_t codes_of(const LatticeJob<T>& job);

/// Predict and quantise all values; `codes` has been prepared. False when memory is out.
template <class T>
bool predict_all(const LatticeJob<T>& job, OutgoingCodes& codes, PatchMap& patches,
                 Workspace& workspace);

/// Write the prediction's parameters and the code sections. False when memory or room is out.
template <class T>
bool write_lattice(const LatticeJob<T>& job, OutgoingCodes& codes, ChunkWriter& out,
                   Workspace& workspace);

/// Why a chunk does not decode.
enum class DecodeFailure : std::uint8_t { none, corrupt, book_missing, memory_out };

/// Read them and reconstruct all values but the patches.
/// @param coarse  of a refinement, as in its job; null: there is none.
template <class T>
DecodeFailure read_lattice(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                           Workspace& workspace, const T* coarse = nullptr);

/// The parameters alone, as a text for `describe`.
template <class T>
std::string lattice_text(ChunkReader& in);

// --- Nested chunks: a whole chunk of every second value, and what lies between (nested.cpp).

/// Whether there is a coarser chunk to nest: an axis is longer than the top of a pyramid.
bool can_nest(const Extents& extents);

/// The extents of a chunk of every second value along each axis; those of 1 fall away.
Extents halved(const Extents& extents);

/// Values of the areas below, for at most `views` chunks within one another.
std::size_t inner_area_values(Extents extents, int views);

/// Decode an inner chunk, head and all, into an area of inner_area_values(): what finer values are
/// predicted from, then, as many again, the values themselves; behind them deeper chunks'.
template <class T>
DecodeFailure read_inner(std::span<const std::uint8_t> chunk, const Extents& extents, int views_max,
                         const Book* book, T* area, Workspace& workspace);

/// The inner chunk's values, all patches in place, from an area of read_inner() into the places of
/// a chunk of these extents.
template <class T>
void put_patched_coarse(const T* area, const Extents& extents, T* values);

/// What follows the head of a nested chunk, all but its patches. Uses Slot nested.
template <class T>
DecodeFailure read_nested(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                          Workspace& workspace);

// --- Fitted interpolation: the pyramid of interpolation.hpp, with weights that each chunk finds
// for itself, and codes whose neighbours say how large they will be. What preset max adds.

/// The extents under which a chunk is fitted: {1, z, y, x}, each 1 or at least kFittedExtentMin,
/// shorter ones multiplied into their neighbours. Nothing where the chunk has fewer values.
inline constexpr std::size_t kFittedExtentMin = 8;
std::optional<Extents> fitted_extents(const Extents& extents);

/// Where steps of coarse levels come from: as in InterpolationPlan.
struct LevelSteps {
  std::uint8_t alpha_16 = 16;
  std::uint8_t beta_16 = 16;
};

/// Upper limit of write_fitted's bytes.
std::size_t fitted_bytes_max(std::size_t n_values);

/// Predict, quantise and write all values but the patches. T: float, double.
/// @param planar  planes are interpolated each by itself, with weights of all.
/// @param fill  values equal to it become patches; null for none.
/// Not collective. Thread-safe with a workspace each. Uses Slots codes, widths, pyramid, coarse,
/// rows, sample and those of write_modelled.
/// @returns false when memory or room is out.
template <class T>
bool write_fitted(const T* values, const Extents& extents, bool planar, const LevelSteps& steps,
                  const Lattice<T>& lattice, const T* fill, PatchMap& patches, ChunkWriter& out,
                  Workspace& workspace);

/// The inverse.
template <class T>
DecodeFailure read_fitted(ChunkReader& in, const Extents& extents, T* values, Workspace& workspace);

}  // namespace tailrace::trz
