// Parts shared by all ways to encode a chunk: the input, the result of an attempt, and the guards.
// trz_encode.cpp selects the ways to try; the longer ones have files of their own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/chunk_guards.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/trz.hpp"
#include "trz/value_guards.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kHeadBytesMax = 64;
inline constexpr std::size_t kSlack = 64;

/// Result of one way to encode: bytes in the workspace's trial area, nothing, or a failure.
struct Attempt {
  std::span<std::uint8_t> chunk;  ///< Empty: this way does not pay or does not apply.
  bool memory_out = false;
  std::size_t n_patches = 0;
};

inline Attempt out_of_memory() { return {{}, true}; }

/// Other presets than ratio and max compare with exact coding only chunks above this fraction of
/// the values' bytes. kMostExactPresent applies if a fill value was found, to the bytes of the
/// other values.
inline constexpr double kMostExact = 0.5;
inline constexpr double kMostExactPresent = 0.33;

/// Input and state that all ways to encode share.
struct Work {
  const ChunkType& type;
  const Settings& settings;
  std::span<const std::byte> values;
  std::size_t n_values;
  ChunkHead head;
  Workspace& workspace;
  BookHistograms* counted;              ///< Null: not wanted.
  const ValueGuards* guards = nullptr;  ///< Null: none, or no value is close enough to break one.
  double most_exact = kMostExact;
};

/// Choose how byte sections are coded, given the expected bits per value.
SectionChoice sections_for(const Work& work, double bits_per_value);

/// Head of a chunk whose predictor uses other extents than the array's.
inline ChunkHead head_of(const Work& work, Method method, const Extents& extents) {
  ChunkHead head = work.head;
  head.method = method;
  head.extents = extents;
  return head;
}

/// Patch values that break guards; requires that there are guards.
/// @param decoded  all values but the patches, as the decoder will compute them.
/// @returns the patches' values: the originals, or `decoded`.
template <class T>
const T* keep_guards(const Work& work, const T* values, const T* fill, T* decoded,
                     PatchMap& patches) {
  const ValueGuards& guards = *work.guards;
  const std::size_t n = patches.n_values();
  mark_broken(guards, values, decoded, n, patches);
  if (!guards.of_chunks()) return values;
  GuardedChunk<T> chunk{guards, work.type.shape, work.type.bound, fill, values, decoded,
                        n,      patches};
  keep_chunk_guards(chunk);
  return decoded;
}

/// Code values that lie on few lattice points: the points as an inner chunk on the lattice, and
/// each value's rank among them as exact integers.
template <class T>
Attempt encode_vocabulary(Work& work, const Lattice<T>& lattice, const T* fill, bool is_found,
                          std::size_t to_beat);

/// Append bit planes to a coarser chunk (refined.hpp), in the trial area.
/// @param coarser  the same values within 2^bit_planes times the lattice's bound; not in Slot
/// trial, nested or refined.
template <class T>
Attempt encode_refined(Work& work, const Lattice<T>& lattice, const T* fill,
                       std::span<const std::uint8_t> coarser);

}  // namespace tailrace::trz
