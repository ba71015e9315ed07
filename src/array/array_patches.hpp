// The chunks that a flush touches: which rank writes each and where it lies (ChunkPlaces), and how
// the puts of all ranks are merged into it (PatchedChunks).

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
#include "array/kept_originals.hpp"
#include "core/codec.hpp"
#include "core/storage.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

// --- ChunkPlaces: addresses of the stored chunks of a file that is being written, and the owner of
// each touched chunk.
//
// A chunk's home (exec/chunk_homes.hpp) stores its place in the file. In each flush the home learns
// which ranks have values for the chunk. It makes one of those with about the most values the
// owner, by turns, and sends it the chunk's place. So no rank knows all chunks, and none reads the
// index again. Puts may overlap; the last one wins.
//
// Invariant 1: in a flush, only one rank writes a chunk. Invariant 2: the places are those of the
// last committed flush.

/// Chunk for which this rank has values, and their number. It exceeds the number of elements if
/// puts overlap.
struct ChunkClaim {
  std::uint64_t chunk_index = 0;
  std::uint64_t n_elements = 0;
};

/// Variable of a flush; the same on every rank except for the claims.
struct PatchedField {
  std::size_t variable = 0;
  ChunkGrid grid;
  std::vector<ChunkClaim> claims;  ///< Ascending.
  std::vector<bool> growing;       ///< Per dimension.
};

struct PatchOwnership {
  Ownership ownership;             ///< Jobs without parts: see exec/field_plan.hpp.
  std::vector<ChunkPlace> before;  ///< One per job: the chunk in the file.
  /// Claims of this rank that stay staged until their chunk is complete.
  std::vector<ChunkKey> held_back;
};

class ChunkPlaces {
 public:
  /// Assign an owner to each touched chunk. With `hold_back`, chunks that are surely incomplete
  /// stay staged. Collective. Cost: like ask_homes(), without slabs. @error internal, on this rank
  /// only.
  Result<PatchOwnership> assign_owners(Comm& comm, std::span<const PatchedField> fields,
                                       bool hold_back);
  /// Record the places of chunks that were written and committed. Collective: a sparse exchange of
  /// 44 bytes a chunk.
  /// @returns bytes of the places that these chunks had before, summed over the chunks whose home
  /// is this rank.
  /// @error internal, on this rank only.
  Result<std::uint64_t> keep(Comm& comm, std::span<const PatchedField> fields,
                             std::span<const WrittenChunk> written);
  /// Load the places of a variable's chunks in an opened file. Collective: as keep().
  /// @param chunks  at rank 0, all of them; elsewhere none.
  Status load(Comm& comm, const PatchedField& field, std::span<const StoredChunk> chunks);
  /// Forget the places of a variable's chunks. Not collective, alike everywhere.
  void forget(std::size_t variable) { places(variable).clear(); }

 private:
  using Places = std::unordered_map<std::uint64_t, ChunkPlace>;  ///< Keyed by chunk number.
  Places& places(std::size_t variable);

  std::vector<Places> places_;
};

// --- ChunkOrder: the latest put of each element of a chunk, so far.

class ChunkOrder {
 public:
  explicit ChunkOrder(std::uint64_t n_elements)
      : of_element_(n_elements, kNobodyYet),
        most_origins_(std::max<std::uint64_t>(n_elements / 16, 64)) {}

  /// Copy `n` elements from `from` into `values`, `stride` apart in the chunk, starting at `first`.
  /// Elements that have a later put keep their value: one of a later epoch, or of the same epoch
  /// and a higher rank. Puts of one rank must come in their order.
  void lay(std::uint64_t first, std::uint64_t n, std::uint64_t stride, const std::byte* from,
           std::size_t element_bytes, std::uint64_t epoch, int rank, std::byte* values);
  /// Call visit(first, end, epoch) for runs of elements that were put in one epoch.
  void for_each_run(const std::function<void(std::uint64_t first, std::uint64_t end,
                                             std::uint64_t epoch)>& visit) const;
  std::uint64_t held_bytes() const {
    return of_element_.size() * sizeof(std::uint32_t) + origins_.capacity() * sizeof(Origin);
  }
  /// Memory per element. It is larger only if small groups of elements were put by separate calls.
  static constexpr std::uint64_t kBytesPerElement = sizeof(std::uint32_t) + 1;

 private:
  static constexpr std::uint32_t kNobodyYet = UINT32_MAX;
  struct Origin {
    std::uint64_t epoch = 0;
    int rank = 0;
    auto operator<=>(const Origin&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::uint32_t number_of(const Origin& origin);
  void drop_unseen();

  std::vector<std::uint32_t> of_element_;
  std::vector<Origin> origins_;
  std::size_t most_origins_;  ///< Origins without elements are dropped at this number.
};

// --- PatchedChunks: the chunks of one variable in one flush, merged from the values that ranks
// have staged.
//
// The owner of a chunk overlays the pieces of other ranks and its own staged values in the order of
// their epochs. At equal epochs, higher ranks come later and the owner's values last. A bitmap
// marks the elements that were put; the others are filled with the chunk's stored values, or with
// the fill value.
// Pieces arrive in any order. While they take no more memory than the chunk, they are buffered
// until all have arrived. Beyond that, they are merged immediately, and a ChunkOrder records which
// put each element comes from. So many ranks that put the same elements cost the owner no more
// memory than two. A rank whose own puts overlap that much merges them before it sends them.
// No value is encoded twice with loss, so values stay within their bound however often their
// neighbours are rewritten (array_file.hpp, invariant 3). A lossy chunk that is still incomplete is
// encoded again from the values that were put, which KeptOriginals has. Without these, a codec that
// only rounds leaves rounded values alone; trz joins new values behind all stored ones to the
// stored chunk (field/chunk_beginnings); else the chunk is stored raw.

class PatchedChunks final : public ChunkPatches {
 public:
  struct Variable {
    std::string path;
    ChunkGrid grid;
    std::size_t element_bytes = 1;
    std::vector<std::byte> fill;  ///< One element.
    const Codec* codec = nullptr;
    bool swapped = false;                ///< Elements have the other byte order in the file.
    bool alone = false;                  ///< True for a single rank: no pieces arrive.
    std::size_t number = 0;              ///< Key of its chunks in `originals`.
    std::vector<bool> growing;           ///< Per dimension.
    KeptOriginals* originals = nullptr;  ///< Null: none are kept.
    bool fill_is_exact = false;          ///< The codec leaves the fill value as it is.
    /// Extents at the last commit. Values within these may change only with the next commit, so an
    /// unfiltered chunk is written elsewhere and the commit moves it. Empty: such a chunk is
    /// overwritten in place.
    Shape committed;
  };

  /// Construct over `log` and `storage`, which must outlive the processing of all chunks.
  PatchedChunks(Variable variable, const StagingLog& log, Storage& storage);

  /// Redirect to another log that now holds this rank's staged entries, unchanged. Call before any
  /// chunk is processed.
  void read_from(const StagingLog& log) { log_ = &log; }

  /// List the chunks that this rank has values for.
  std::vector<ChunkClaim> claims() const;
  /// Set the stored place of a chunk that this rank owns.
  void set_before(std::uint64_t chunk_index, const ChunkPlace& place);
  /// Bytes that this rank's slabs of a chunk would need in a separate log, in addition to their
  /// values.
  std::uint64_t entry_bytes(std::uint64_t chunk_index) const;
  /// True if an unfiltered chunk is rewritten in place, so that the index does not change.
  bool stays_in_place(std::uint64_t chunk_index) const {
    return fixed_address(chunk_index).has_value();
  }
  /// Copy this rank's slabs of a chunk into another log. @error like StagingLog::put
  Status copy_staged(std::uint64_t chunk_index, StagingLog& to) const;
  /// Number of chunks that were completed with stored values. Thread-safe.
  std::uint64_t n_merged() const { return n_merged_; }
  /// Peak memory of buffered pieces and element orders. Thread-safe.
  std::uint64_t peak_bytes() const;

  void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const override;
  void lay_pieces(std::uint64_t chunk_index, int peer, std::span<const std::byte> pieces,
                  Buffer& values) override;
  Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) override;
  void encoded(std::uint64_t chunk_index, const EncodedBytes& chunk) override {
    if (variable_.originals == nullptr) return;
    variable_.originals->confirm(key_of(chunk_index), chunk.buffer.bytes());
  }
  /// Note where a chunk that this rank has written is, after the commit.
  void placed(std::uint64_t chunk_index, std::uint64_t address) {
    if (variable_.originals != nullptr) variable_.originals->place(key_of(chunk_index), address);
  }
  std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const override;
  std::uint64_t extra_bytes() const override;

 private:
  /// One bit per element of a full chunk, row-major.
  using Bitmap = std::vector<std::uint64_t>;
  struct Pieces {
    int rank = 0;
    Bytes bytes;
  };
  /// Chunk being merged: buffered pieces of other ranks, or their merged state.
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
  /// Part of an entry within one chunk.
  struct OwnPart {
    std::size_t entry = 0;
    SlabPart part;                       ///< Part of a slab entry.
    std::span<const ChunkPiece> pieces;  ///< Pieces of a scattered entry.
    std::uint64_t n_elements = 0;
  };
  /// Equally spaced elements of a chunk that were put together: `n` from `first` on, `stride`
  /// apart.
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
  ChunkKey key_of(std::uint64_t chunk_index) const;
  std::unique_ptr<const ChunkBeginnings> beginnings_of(std::uint64_t chunk_index, const Bitmap& put,
                                                       EncodedBytes stored, Buffer& values) const;
  void keep_original(std::uint64_t chunk_index, Bitmap put, const Buffer& values) const;
  void to_other_order(Buffer& values) const;

  Variable variable_;
  const StagingLog* log_;
  Storage& storage_;
  std::vector<Link> links_;  ///< Sorted by chunk, then in the order of the puts.
  std::map<std::size_t, ChunkPieces> scattered_;  ///< Keyed by entry.
  std::map<std::uint64_t, ChunkPlace> before_;
  std::atomic<std::uint64_t> n_merged_{0};

  /// Guards the members below, except chunks whose pieces are still arriving.
  mutable std::mutex mutex_;
  std::set<std::uint64_t> overwritten_;  ///< Chunks whose committed values change.
  std::map<std::uint64_t, Patched> patched_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace tailrace
