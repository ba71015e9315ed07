// Ownership: which rank encodes which chunk, and who must send it what.
//
// A chunk that lies wholly within one rank's boxes belongs to that rank, and nobody else hears of
// it. A chunk that several ranks share is announced to its home rank (chunks are dealt to homes in
// blocks); the home checks that the boxes neither overlap nor leave holes, makes the rank with the
// largest part the owner, and tells the owner who holds the rest.
//
// Coverage of the chunks that were not announced is proved without talking about each: every chunk
// has a pseudo-random number; the sum over all chunks as claimed (wholly held, or complete at a
// home) must equal the sum over all chunks that exist, of which each rank adds up 1/ranks. A hole
// or a double claim goes unnoticed with probability 2^-64. If the sums differ, everything is
// announced once more, only to name the culprit.
//
// Cost: O(own chunks + all chunks / ranks) per rank, two sparse exchanges, one allreduce.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Where a pulled field's values come from; read() is called on the rank's main thread only.
class BoxSource {
 public:
  virtual ~BoxSource() = default;
  /// Fill `values` (row-major, box.n_elements() elements of the field's dtype) with one box.
  virtual Status read(const Box& box, std::span<std::byte> values) = 0;
};

/// One put: a box and where its values are.
struct PutRecord {
  Box box;
  const std::byte* values = nullptr;  ///< Row-major over `box`; nullptr if pulled from `source`.
  BoxSource* source = nullptr;
  Buffer copy;  ///< Holds the values if the caller asked for a copy.
};

/// A field as far as ownership is concerned; grid and holes are the same on all ranks.
struct OwnedField {
  std::string path;
  ChunkGrid grid;
  bool allow_holes = false;
  std::span<const PutRecord> puts;  ///< This rank's.
};

/// A part of a chunk that lies in one of this rank's puts.
struct LocalPart {
  std::size_t put_index = 0;
  Box box;
};

/// The parts of a chunk that another rank holds, in the order in which it will send them.
struct RemoteParts {
  int rank = 0;
  std::vector<Box> boxes;
};

/// A chunk that this rank encodes, with where its values come from.
struct ChunkJob {
  std::size_t field = 0;          ///< Index into the fields given.
  std::uint64_t chunk_index = 0;  ///< Row-major in the field's grid.
  std::vector<LocalPart> local;
  std::vector<RemoteParts> remote;
};

struct ChunkKey {
  std::size_t field = 0;
  std::uint64_t chunk_index = 0;
  // clang-tidy 14 takes the 0 that the compiler puts in here for a null pointer.
  auto operator<=>(const ChunkKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Ownership {
  std::vector<ChunkJob> jobs;  ///< By field, then by chunk index.
  /// This rank's parts of chunks that others own; each chunk will be requested exactly once.
  std::map<ChunkKey, std::vector<LocalPart>> owed;
};

/// Settle ownership of all chunks of `fields`. Collective.
/// @error bad_coverage  boxes overlap or leave holes; the text names field, box and ranks. The
/// error may be on some ranks only: the caller agrees.
Result<Ownership> settle_ownership(Comm& comm, std::span<const OwnedField> fields);

/// Values from a BoxSource cannot travel in pieces: each such put must be whole chunks.
/// Not collective. @error invalid_argument  a pulled part shares its chunk; names the field.
Status check_pulled_chunks(std::span<const OwnedField> fields, const Ownership& ownership);

}  // namespace tailrace
