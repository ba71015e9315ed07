// Lattice coding: converts floating-point values of a chunk to predicted, quantised codes and back.
//
// Shared by chunks with an absolute bound and chunks with a pointwise bound, whose transformed
// values have an absolute one. Covers prediction, its parameters, and the code sections. The caller
// handles patches and the rest of the chunk.

#pragma once

#include <optional>

#include "trz/chunk_header.hpp"
#include "trz/entropy/code_sections.hpp"
#include "trz/predict/choose.hpp"

namespace tailrace::trz {

/// Make the lattice for a bound; nothing if its step is denormal or overflows in T.
template <class T>
std::optional<Lattice<T>> make_lattice(double bound, double offset);

/// Values to code, and the parameters of coding them.
template <class T>
struct LatticeJob {
  const T* values = nullptr;
  Extents extents{1, 1, 1, 1};
  Lattice<T> lattice;
  const T* fill = nullptr;
  /// Decoded values of every second point along each axis, for a refinement. Null otherwise.
  const T* coarse = nullptr;
  Prediction prediction;
  CodeForm form = CodeForm::grouped;
  SectionChoice sections;
};

/// Extents for interpolation: time folded into depth.
Extents folded_to_three(const Extents& extents);

std::size_t values_in(const Extents& extents);

/// Number of codes of a job: one per value, except for values that `coarse` supplies.
template <class T>
std::size_t codes_of(const LatticeJob<T>& job);

/// Predict and quantise all values into prepared `codes`. @returns false if out of memory.
template <class T>
bool predict_all(const LatticeJob<T>& job, OutgoingCodes& codes, PatchMap& patches,
                 Workspace& workspace);

/// Write the prediction's parameters and the code sections. @returns false if out of memory or if
/// `out` is full.
template <class T>
bool write_lattice(const LatticeJob<T>& job, OutgoingCodes& codes, ChunkWriter& out,
                   Workspace& workspace);

/// Reason why a chunk cannot be decoded.
enum class DecodeFailure : std::uint8_t { none, corrupt, newer, book_missing, memory_out };

/// Failure to decode a chunk because the head of a chunk within it cannot be read.
constexpr DecodeFailure failure_within(HeadFailure failure) {
  return needs_newer(failure) ? DecodeFailure::newer : DecodeFailure::corrupt;
}

/// Read parameters and sections, and reconstruct all values but the patches.
/// @param coarse  for a refinement, like in its job; null: none.
template <class T>
DecodeFailure read_lattice(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                           Workspace& workspace, const T* coarse = nullptr);

/// Describe the parameters as text for `describe`.
template <class T>
std::string lattice_text(ChunkReader& in);

// --- Nested chunks: a complete chunk of every second value, and the values between (nested.cpp).

/// True if an inner chunk is possible: an axis is longer than the top of a pyramid.
bool can_nest(const Extents& extents);

/// Extents of a chunk of every second value along each axis, without axes that become 1.
Extents halved(const Extents& extents);

/// Number of values of the areas for read_inner(), for at most `views` chunks inside one another.
std::size_t inner_area_values(Extents extents, int views);

/// Decode an inner chunk, including its head, into an area of inner_area_values(). The area
/// receives the values that predict finer ones, then equally many decoded values, then the areas of
/// deeper chunks.
template <class T>
DecodeFailure read_inner(std::span<const std::uint8_t> chunk, const Extents& extents, int views_max,
                         const Book* book, T* area, Workspace& workspace);

/// Copy an inner chunk's values with all patches from an area of read_inner() to their positions in
/// a chunk of these extents.
template <class T>
void put_patched_coarse(const T* area, const Extents& extents, T* values);

/// Read the rest of a nested chunk after its head, all but its patches. Uses Slot nested.
template <class T>
DecodeFailure read_nested(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                          Workspace& workspace);

// --- Fitted interpolation: the pyramid of interpolation.hpp with weights fitted per chunk.
// Neighbouring codes predict the magnitude of each code. Used by preset max.

/// Extents for fitting: {1, z, y, x}, each 1 or at least kFittedExtentMin. Multiplies shorter axes
/// into their neighbours. Nothing if the chunk has too few values.
inline constexpr std::size_t kFittedExtentMin = 8;
std::optional<Extents> fitted_extents(const Extents& extents);

/// Factors for the steps of coarse levels, as in InterpolationPlan.
struct LevelSteps {
  std::uint8_t alpha_16 = 16;
  std::uint8_t beta_16 = 16;
};

/// Upper bound of the bytes that write_fitted() writes.
std::size_t fitted_bytes_max(std::size_t n_values);

/// Predict, quantise and write all values but the patches. T: float, double.
/// @param planar  interpolate within each plane only, with the same weights for all planes.
/// @param fill  values equal to it become patches; null for none.
/// Not collective. Thread-safe if each thread has a workspace. Uses Slots codes, widths, pyramid,
/// coarse, rows, sample and those of write_modelled().
/// @returns false if out of memory or if `out` is full.
template <class T>
bool write_fitted(const T* values, const Extents& extents, bool planar, const LevelSteps& steps,
                  const Lattice<T>& lattice, const T* fill, PatchMap& patches, ChunkWriter& out,
                  Workspace& workspace);

/// Inverse of write_fitted(): read all values but the patches.
template <class T>
DecodeFailure read_fitted(ChunkReader& in, const Extents& extents, T* values, Workspace& workspace);

}  // namespace tailrace::trz
