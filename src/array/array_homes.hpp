// ChunkHomes: where the stored chunks of a file that is being written lie, dealt out to the ranks;
// and who writes a touched chunk next.
//
// Every chunk has a home rank, by its position. The home knows the chunk's place in the file, hears
// in each flush which ranks have values for it, makes the one with the most of them its owner, and
// tells the owner what the file holds of it. So no rank knows all chunks, and none reads the index
// again. Overlaps are fine: whatever comes last is laid last.
//
// Invariant 1: a chunk is written by one rank in a flush. Invariant 2: the places are those of the
// last flush that was committed.

#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/box.hpp"
#include "core/comm.hpp"
#include "exec/field_plan.hpp"
#include "exec/ownership.hpp"
#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

/// Where a chunk lies; encoded_bytes 0: nowhere yet.
struct ChunkPlace {
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// Numbers of chunks that stay the same while unlimited dimensions grow.
class ChunkNumbers {
 public:
  /// @param growing  per dimension.
  ChunkNumbers(const ChunkGrid& grid, const std::vector<bool>& growing);
  std::uint64_t number(std::uint64_t chunk_index) const;

 private:
  ChunkGrid grid_;
  Shape extents_;  ///< Chunks per dimension, as far as they will ever count.
};

/// A chunk for which this rank has values, and how many (more than there are where puts overlap).
struct ChunkClaim {
  std::uint64_t chunk_index = 0;
  std::uint64_t n_elements = 0;
};

/// A variable in a flush; the same on every rank but for the claims.
struct PatchedField {
  std::size_t variable = 0;
  ChunkGrid grid;
  ChunkNumbers numbers;
  std::vector<ChunkClaim> claims;  ///< Ascending.
  std::vector<bool> growing = {};  ///< Per dimension; empty: none.
};

struct PatchOwnership {
  Ownership ownership;              ///< Jobs without parts: see exec/field_plan.hpp.
  std::vector<ChunkPlace> before;   ///< One per job: the chunk as the file has it.
  std::vector<ChunkKey> held_back;  ///< This rank's claims that wait for the rest of their chunk.
};

class ChunkHomes {
 public:
  /// Decide who writes what. `hold_back`: chunks of which elements are surely missing stay staged.
  /// Collective. Cost: two sparse exchanges of 24 bytes per chunk touched.
  PatchOwnership settle(Comm& comm, std::span<const PatchedField> fields, bool hold_back);
  /// Chunks have been written and committed. Collective: a sparse exchange.
  /// @returns bytes of the places that they had before, as far as this rank is their home.
  std::uint64_t keep(Comm& comm, std::span<const PatchedField> fields,
                     std::span<const WrittenChunk> written);
  /// Learn the chunks that a variable has in an opened file. Collective: a sparse exchange.
  /// @param chunks  at rank 0, all of them; elsewhere none.
  void load(Comm& comm, const PatchedField& field, std::span<const StoredChunk> chunks);

 private:
  using Places = std::unordered_map<std::uint64_t, ChunkPlace>;
  Places& places(std::size_t variable);

  std::vector<Places> places_;
};

}  // namespace tailrace
