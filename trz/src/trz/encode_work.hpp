// What the ways to encode one chunk share: the work, what comes of an attempt, and the guards that
// every way keeps in the end. trz_encode.cpp tells the story; others have ways with much to
// themselves.

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

/// What came of one way to encode: bytes in the workspace's trial area, nothing, or a failure.
struct Attempt {
  std::span<std::uint8_t> chunk;  ///< Empty: this way does not pay or does not fit.
  bool memory_out = false;
  std::size_t n_patches = 0;
};

inline Attempt out_of_memory() { return {{}, true}; }

/// The other presets compare with exact coding what takes more than this part of the values' bytes:
/// of all, or, where a fill value was found, of the others.
inline constexpr double kMostExact = 0.5;
inline constexpr double kMostExactPresent = 0.33;

/// Everything that the ways to encode share.
struct Work {
  const ChunkType& type;
  const Settings& settings;
  std::span<const std::byte> values;
  std::size_t n_values;
  ChunkHead head;
  Workspace& workspace;
  BookHistograms* counted;              ///< Null: nobody asks.
  const ValueGuards* guards = nullptr;  ///< Null: none, or no value is near enough to break one.
  double most_exact = kMostExact;
};

/// How byte sections are written: at so many bits a value.
SectionChoice sections_for(const Work& work, double bits_per_value);

/// The head of a chunk whose predictor sees it under extents of its own.
inline ChunkHead head_of(const Work& work, Method method, const Extents& extents) {
  ChunkHead head = work.head;
  head.method = method;
  head.extents = extents;
  return head;
}

/// Patch what breaks guards, of which there are some. @param decoded  all values but the patches,
/// as the decoder will have them. @returns where the patches' values are: the originals, or
/// `decoded`.
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

/// Few lattice points, told apart by rank: the words as a chunk of their own on the lattice, the
/// ranks as exact integers.
template <class T>
Attempt encode_vocabulary(Work& work, const Lattice<T>& lattice, const T* fill, bool is_found,
                          std::size_t to_beat);

/// Bit planes behind a coarser chunk (refined.hpp), into the trial area.
/// @param coarser  the same values within 2^bit_planes times the lattice's bound; not in Slot
/// trial, nested or refined.
template <class T>
Attempt encode_refined(Work& work, const Lattice<T>& lattice, const T* fill,
                       std::span<const std::uint8_t> coarser);

}  // namespace tailrace::trz
