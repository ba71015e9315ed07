// The chunks that a flush touches: who writes each and where it lies (ChunkPlaces), and how it is
// laid together from what ranks have staged (PatchedChunks).

#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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

// --- ChunkOrder: who has put each element of a chunk last, so far.

class ChunkOrder {
 public:
  explicit ChunkOrder(std::uint64_t n_elements)
      : of_element_(n_elements, nobody_yet),
        most_origins_(std::max<std::uint64_t>(n_elements / 16, 64)) {}

  /// Lay `n` elements, `stride` apart in the chunk from `first` on, whose values are `from`, over
  /// `values`, wherever nobody has put later: of a later epoch, or of the same and a rank that goes
  /// before. What one rank puts twice comes in its order.
  void lay(std::uint64_t first, std::uint64_t n, std::uint64_t stride, const std::byte* from,
           std::size_t element_bytes, std::uint64_t epoch, int rank, std::byte* values);
  /// Call visit(first, end, epoch) for the runs of elements of one epoch that somebody has put.
  void for_each_run(const std::function<void(std::uint64_t first, std::uint64_t end,
                                             std::uint64_t epoch)>& visit) const;
  std::uint64_t held_bytes() const {
    return of_element_.size() * sizeof(std::uint32_t) + origins_.capacity() * sizeof(Origin);
  }
  /// What an element takes: more only where each few were put by a call of their own.
  static constexpr std::uint64_t bytes_per_element = sizeof(std::uint32_t) + 1;

 private:
  static constexpr std::uint32_t nobody_yet = UINT32_MAX;
  struct Origin {
    std::uint64_t epoch = 0;
    int rank = 0;
    auto operator<=>(const Origin&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::uint32_t number_of(const Origin& origin);
  void drop_unseen();

  std::vector<std::uint32_t> of_element_;
  std::vector<Origin> origins_;
  std::size_t most_origins_;  ///< With so many, those go of which no element is left.
};

// --- PatchedChunks: the chunks of one variable in one flush, laid together from what ranks have
// staged.
//
// The owner of a chunk lays what other ranks send and what it has staged itself over each other, in
// the order of their epochs (of equal ones its own last, before it those of higher ranks), marks in
// a bitmap which elements were put, and fills the rest by the chunk as the file has it, or by the
// fill value. Pieces come in any order. As long as they take no more than the chunk they wait for
// all; once there are more, they are laid at once, and a ChunkOrder tells which elements later ones
// may still take: so many ranks that put the same elements cost their chunk's owner no more memory
// than two. A rank whose own puts overlap so much sends what is left of them. A chunk in which
// decoded values of a lossy codec remain is stored raw, so that values keep their bound however
// often their neighbours are rewritten (array_file.hpp, invariant 3).

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
    /// Extents at the last commit, where values within these change with the next commit alone: a
    /// chunk without filters is written elsewhere, and the commit moves it. Empty: such a chunk is
    /// overwritten where it lies.
    Shape committed;
  };

  /// `log` and `storage` must stay while chunks are laid together.
  PatchedChunks(Variable variable, const StagingLog& log, Storage& storage);

  /// What this rank has staged stands in another log now, entry by entry as it was. Before any
  /// chunk is laid together.
  void read_from(const StagingLog& log) { log_ = &log; }

  /// Chunks that this rank has values for.
  std::vector<ChunkClaim> claims() const;
  /// As the owner: what the file holds of a chunk.
  void set_before(std::uint64_t chunk_index, const ChunkPlace& place);
  /// What this rank's slabs of a chunk would take in a log of their own, beside their values.
  std::uint64_t entry_bytes(std::uint64_t chunk_index) const;
  /// Whether an unfiltered chunk is rewritten where it lies, so that the index stays as it is.
  bool stays_in_place(std::uint64_t chunk_index) const {
    return fixed_address(chunk_index).has_value();
  }
  /// Stage this rank's slabs of a chunk once more, in another log. @error as of StagingLog::put
  Status copy_staged(std::uint64_t chunk_index, StagingLog& to) const;
  /// Chunks that were completed by what the file holds. Thread-safe.
  std::uint64_t n_merged() const { return n_merged_; }
  /// The most that pieces of others, and the order of elements, have taken at once. Thread-safe.
  std::uint64_t peak_bytes() const;

  void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const override;
  void lay_pieces(std::uint64_t chunk_index, int peer, std::span<const std::byte> pieces,
                  Buffer& values) override;
  Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) override;
  std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const override;
  std::uint64_t extra_bytes() const override;

 private:
  /// One bit per element of a whole chunk, row-major.
  using Bitmap = std::vector<std::uint64_t>;
  struct Pieces {
    int rank = 0;
    Bytes bytes;
  };
  /// A chunk under way: what other ranks have sent, or what has been made of it.
  struct Patched {
    std::vector<Pieces> pieces;
    std::uint64_t piece_bytes = 0;
    std::unique_ptr<ChunkOrder> order;
    std::uint64_t counted_bytes = 0;
  };
  struct Link {
    std::uint64_t chunk_index = 0;
    std::size_t entry = 0;
  };
  /// Where an entry's elements of a chunk stand.
  struct OwnPart {
    std::size_t entry = 0;
    SlabPart part;                       ///< Of its slab;
    std::span<const ChunkPiece> pieces;  ///< of a scattered one.
    std::uint64_t n_elements = 0;
  };
  /// Elements of a chunk that were put together: `n` from `first` on, `stride` apart.
  struct Row {
    std::uint64_t first = 0;
    std::uint64_t n = 0;
    std::uint64_t stride = 1;
    const std::byte* values = nullptr;
    std::uint64_t epoch = 0;
  };
  using RowVisit = std::function<void(const Row& row)>;

  std::span<const Link> links_of(std::uint64_t chunk_index) const;
  std::uint64_t chunk_elements() const { return n_elements(variable_.grid.chunk_shape); }
  std::uint64_t chunk_bytes() const { return chunk_elements() * variable_.element_bytes; }
  std::vector<StagedRun> runs_of(std::size_t entry, const SlabPart& part) const;
  OwnPart part_of(const Link& link, const Box& clipped) const;
  void add_part(ByteWriter& writer, std::size_t entry, const SlabPart& part) const;
  std::uint64_t n_runs_of(const OwnPart& own, std::uint64_t chunk_index) const;
  void add_scattered(ByteWriter& writer, const OwnPart& own) const;
  Status copy_scattered(std::uint64_t chunk_index, const OwnPart& own, StagingLog& to) const;
  void add_remains(ByteWriter& writer, std::uint64_t chunk_index) const;
  void for_each_own_row(std::uint64_t chunk_index, const RowVisit& visit) const;
  void for_each_row_sent(std::uint64_t chunk_index, std::span<const std::byte> pieces,
                         const RowVisit& visit) const;
  void lay_in_order(std::uint64_t chunk_index, const Pieces& pieces, ChunkOrder& order,
                    Buffer& values) const;
  void lay_waiting(std::uint64_t chunk_index, Patched& patched, Buffer& values) const;
  void count_held(Patched& patched);
  Patched take_patched(std::uint64_t chunk_index);
  Bitmap lay_all(std::uint64_t chunk_index, Patched patched, Buffer& values) const;
  bool lay_apart(std::uint64_t chunk_index, const Patched& patched, Buffer& values,
                 Bitmap& put) const;
  void fill_unput(const Bitmap& put, Buffer& values) const;
  void to_other_order(Buffer& values) const;

  Variable variable_;
  const StagingLog* log_;
  Storage& storage_;
  std::vector<Link> links_;                       ///< By chunk, then in the order of the puts.
  std::map<std::size_t, ChunkPieces> scattered_;  ///< By entry.
  std::map<std::uint64_t, ChunkPlace> before_;
  std::atomic<std::uint64_t> n_merged_{0};

  mutable std::mutex mutex_;  ///< Guards what follows, but a chunk whose pieces still come.
  std::set<std::uint64_t> overwritten_;  ///< Chunks of which committed values change.
  std::map<std::uint64_t, Patched> patched_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace tailrace
