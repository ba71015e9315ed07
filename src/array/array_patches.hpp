// The chunks that a flush touches: who writes each and where it lies (ChunkPlaces), and how it is
// laid together from what ranks have staged (PatchedChunks).

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "array/array_staging.hpp"
#include "core/codec.hpp"
#include "core/storage.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

// --- ChunkPlaces: where the stored chunks of a file that is being written lie, and who writes a
// touched chunk next.
//
// A chunk's home (exec/chunk_homes.hpp) knows its place in the file, hears in each flush which
// ranks have values for it, makes the one with the most of them its owner (of equals the lowest),
// and tells it what the file holds. So no rank knows all chunks, and none reads the index again.
// Overlaps are fine: whatever comes last is laid last.
//
// Invariant 1: a chunk is written by one rank in a flush. Invariant 2: the places are those of the
// last flush that was committed.

/// A chunk for which this rank has values, and how many (more than there are where puts overlap).
struct ChunkClaim {
  std::uint64_t chunk_index = 0;
  std::uint64_t n_elements = 0;
};

/// A variable in a flush; the same on every rank but for the claims.
struct PatchedField {
  std::size_t variable = 0;
  ChunkGrid grid;
  std::vector<ChunkClaim> claims;  ///< Ascending.
  std::vector<bool> growing;       ///< Per dimension.
};

struct PatchOwnership {
  Ownership ownership;              ///< Jobs without parts: see exec/field_plan.hpp.
  std::vector<ChunkPlace> before;   ///< One per job: the chunk as the file has it.
  std::vector<ChunkKey> held_back;  ///< This rank's claims that wait for the rest of their chunk.
};

class ChunkPlaces {
 public:
  /// Decide who writes what. `hold_back`: chunks of which elements are surely missing stay staged.
  /// Collective. Cost: as of ask_homes(), without slabs. @error internal, on this rank only.
  Result<PatchOwnership> settle(Comm& comm, std::span<const PatchedField> fields, bool hold_back);
  /// Chunks have been written and committed. Collective: a sparse exchange of 44 bytes a chunk.
  /// @returns bytes of the places that they had before, as far as this rank is their home.
  /// @error internal, on this rank only.
  Result<std::uint64_t> keep(Comm& comm, std::span<const PatchedField> fields,
                             std::span<const WrittenChunk> written);
  /// Learn the chunks that a variable has in an opened file. Collective: as keep().
  /// @param chunks  at rank 0, all of them; elsewhere none.
  Status load(Comm& comm, const PatchedField& field, std::span<const StoredChunk> chunks);
  /// Forget where a variable's chunks lie. Not collective, alike everywhere.
  void forget(std::size_t variable) { places(variable).clear(); }

 private:
  using Places = std::unordered_map<std::uint64_t, ChunkPlace>;  ///< By the chunk's number.
  Places& places(std::size_t variable);

  std::vector<Places> places_;
};

/// The values of a chunk as the file has it. Not collective. Thread-safe as the storage is.
/// @param swapped_bytes  an element's, where chunks without filters have the other byte order.
/// @error corrupt, io_error, codec_failed
Result<Buffer> read_stored_values(Storage& storage, const Codec& codec, const ChunkPlace& place,
                                  std::uint64_t raw_bytes, std::size_t swapped_bytes = 1);

// --- PatchedChunks: the chunks of one variable in one flush, laid together from what ranks have
// staged.
//
// The owner of a chunk lays what other ranks send and what it has staged itself over each other, in
// the order of their epochs, marks in a bitmap which elements were put, and fills the rest by the
// chunk as the file has it, or by the fill value. Pieces come in any order, so they wait for all. A
// chunk in which decoded values of a lossy codec remain is stored raw, so that values keep their
// bound however often their neighbours are rewritten (array_file.hpp, invariant 3).

class PatchedChunks final : public ChunkPatches {
 public:
  struct Variable {
    std::string path;
    ChunkGrid grid;
    std::size_t element_bytes = 1;
    std::vector<std::byte> fill;  ///< One element.
    const Codec* codec = nullptr;
    bool swapped = false;  ///< In the file, elements have the other byte order.
    bool alone = false;    ///< There is one rank: no pieces come.
  };

  /// `log` and `storage` must stay while chunks are laid together.
  PatchedChunks(Variable variable, const StagingLog& log, Storage& storage);

  /// Chunks that this rank has values for.
  std::vector<ChunkClaim> claims() const;
  /// As the owner: what the file holds of a chunk.
  void set_before(std::uint64_t chunk_index, const ChunkPlace& place);
  /// How many of this rank's slabs have elements of a chunk.
  std::size_t n_slabs(std::uint64_t chunk_index) const { return links_of(chunk_index).size(); }
  /// Whether an unfiltered chunk is rewritten where it lies, so that the index stays as it is.
  bool stays_in_place(std::uint64_t chunk_index) const {
    return fixed_address(chunk_index).has_value();
  }
  /// Stage this rank's slabs of a chunk once more, in another log. @error as of StagingLog::put
  Status copy_staged(std::uint64_t chunk_index, StagingLog& to) const;
  /// Chunks that were completed by what the file holds. Thread-safe.
  std::uint64_t n_merged() const { return n_merged_; }

  void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const override;
  void lay_pieces(std::uint64_t chunk_index, std::span<const std::byte> pieces,
                  Buffer& values) override;
  Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) override;
  std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const override;
  std::uint64_t extra_bytes() const override;

 private:
  /// One bit per element of a whole chunk, row-major.
  using Bitmap = std::vector<std::uint64_t>;
  /// A chunk under way: what other ranks have sent.
  struct Patched {
    std::vector<Bytes> pieces;
  };
  /// A slab of a chunk, whosever it is.
  struct Piece {
    std::uint64_t epoch = 0;
    Slab slab;
    const std::byte* values = nullptr;
  };
  struct Link {
    std::uint64_t chunk_index = 0;
    std::size_t entry = 0;
  };

  std::span<const Link> links_of(std::uint64_t chunk_index) const;
  std::uint64_t chunk_elements() const { return n_elements(variable_.grid.chunk_shape); }
  std::vector<Bytes> take_pieces(std::uint64_t chunk_index);
  Bitmap lay_all(std::uint64_t chunk_index, const std::vector<Bytes>& from_others,
                 Buffer& values) const;
  void fill_unput(const Bitmap& put, Buffer& values) const;
  void to_other_order(Buffer& values) const;

  Variable variable_;
  const StagingLog& log_;
  Storage& storage_;
  std::vector<Link> links_;  ///< By chunk, then in the order of the puts.
  std::map<std::uint64_t, ChunkPlace> before_;
  std::atomic<std::uint64_t> n_merged_{0};

  std::mutex mutex_;  ///< Guards what follows.
  std::map<std::uint64_t, Patched> patched_;
};

}  // namespace tailrace
