// One commit: what HDF5 has written and storage has not, in which order it goes out, and the commit
// as a thing that any thread can write.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- DirtyBytes: what HDF5 has written and storage has not yet. SpanSet: which addresses are
// fresh.
//
// Plain data structures for the metadata driver: no HDF5, no I/O. HDF5 writes its metadata block by
// block, nearly always the same block at the same place, but blocks are also freed and their space
// used again in other pieces; so overlaps are resolved byte by byte, the latest write winning.

/// A set of addresses, kept as disjoint half-open spans. Neighbours are joined.
class SpanSet {
 public:
  /// Add [address, address + n_bytes). Cost: O(log spans) when spans come in order.
  void insert(std::uint64_t address, std::uint64_t n_bytes);
  /// Whether every byte of [address, address + n_bytes) is in the set; an empty span always is.
  bool contains(std::uint64_t address, std::uint64_t n_bytes) const;
  /// Whether any byte of it is.
  bool overlaps(std::uint64_t address, std::uint64_t n_bytes) const;
  void clear() { end_of_.clear(); }

 private:
  std::map<std::uint64_t, std::uint64_t> end_of_;  // start -> end
};

/// Buffered writes as disjoint segments, ordered by address.
/// Invariant: segments never overlap and none is empty.
class DirtyBytes {
 public:
  enum class Kind : std::uint8_t {
    metadata,
    superblock,  ///< HDF5 wrote it as such; it has its own phase in a commit.
    raw          ///< Values.
  };
  struct Segment {
    std::vector<std::byte> bytes;
    Kind kind = Kind::metadata;
  };

  /// Record a write; it replaces what was recorded for these bytes before. Raw bytes join those
  /// that they follow.
  void put(std::uint64_t address, std::span<const std::byte> bytes, Kind kind = Kind::metadata);
  /// Forget whatever is recorded for [address, address + n_bytes).
  void drop(std::uint64_t address, std::uint64_t n_bytes);
  /// Copy the recorded bytes of [address, address + bytes.size()) over `bytes`, leaving the rest.
  void overlay(std::uint64_t address, std::span<std::byte> bytes) const;
  /// Whether all of [address, address + n_bytes) was recorded with one write.
  bool covers(std::uint64_t address, std::uint64_t n_bytes) const;
  /// One past the last recorded byte; 0 if nothing is recorded.
  std::uint64_t end() const;
  bool empty() const { return segments_.empty(); }
  void clear() { segments_.clear(); }
  const std::map<std::uint64_t, Segment>& segments() const { return segments_; }

 private:
  std::map<std::uint64_t, Segment> segments_;
};

// --- The order in which a commit writes: never a pointer before what it points to.
//
//   1. fresh blocks      nothing on disk refers to them yet
//   2. extend            the file is as long as its superblock will say      then sync
//   (journal)            the in-place writes below, durable beside the file, if wanted
//   3. superblock        the new end of file; old metadata stays valid       then sync
//   4. index blocks      old blocks rewritten: they gain entries that no header counts   then sync
//   5. object headers    old headers rewritten: the new state becomes visible            then sync
//
// A file that is created has no old blocks: its superblock is the last write and makes it one.
// Files that Tailrace made and that grow along a dimension, or by groups whose links lie in one
// header block, need no more. Other changes cannot be ordered: heaps and B-trees whose blocks check
// each other's counts, freed blocks whose space HDF5 has used again, a header that is rewritten in
// several blocks, and blocks that cross a border of pages, within which a kill can cut a write.
// Such a commit is made under the journal, asked for or not; then one sync stands for those of 3 to
// 5. Splitting the plan from its execution lets tests look at the order without a disk. Source:
// measured crash behaviour, docs/format.md; block signatures: HDF5 File Format Specification.

/// How far at the end of a commit an old block is rewritten; smaller goes first.
///
/// Arrays (EA, FA) and heaps only gain entries: leaves before heads. Version 1 B-trees lose entries
/// to fresh siblings when a node splits: whoever points at the siblings goes first, so that for a
/// moment entries can be found twice rather than not at all; that is, upper levels before lower
/// ones.
enum class BlockRank : std::uint8_t {
  other,
  index_leaf,
  index_head,
  tree_node,  ///< Among themselves by descending level.
  symbol_node,
  object_header
};

/// Tell a metadata block by its signature. Unknown ones count as `other` and go first.
BlockRank rank_block(std::span<const std::byte> block);

/// One write; the bytes belong to the DirtyBytes that the plan was made from, except superblocks.
struct PlannedWrite {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

struct CommitPlan {
  std::vector<PlannedWrite> fresh;  ///< By address.
  std::uint64_t file_bytes = 0;     ///< The file's length after step 2.
  bool owns_end = false;            ///< The last byte before it is nobody else's.
  std::vector<PlannedWrite> superblock;
  std::vector<PlannedWrite> index_blocks;
  std::vector<PlannedWrite> object_headers;
  bool orderly = true;  ///< No order of the in-place writes is needed beyond the steps above.
  std::vector<std::vector<std::byte>> owned;  ///< Superblocks with the open-for-write mark cleared.
};

/// Sort what is dirty into the steps of a commit. `dirty` must outlive the plan, unchanged.
/// `storage` is asked what stands in the place of old blocks: another kind of block means reused
/// space.
/// @error whatever Storage answers.
Result<CommitPlan> plan_commit(Storage& storage, const DirtyBytes& dirty, const SpanSet& fresh,
                               std::uint64_t file_bytes);

struct CommitSettings {
  bool sync = true;
  bool journal = false;      ///< Always; else only for plans that are not orderly.
  std::string journal_path;  ///< Empty: never.
};

/// Execute the plan. Cost: at most four syncs; with the journal five, of file, journal and folder.
/// @error whatever Storage or the journal's file answers; a journal that was begun stays for
/// recover.
Status write_commit(Storage& storage, const CommitPlan& plan, const CommitSettings& settings);

// --- PendingCommit: all that one commit writes, taken out of HDF5's reach, so that any thread can
// write it.
//
// A commit's writes wait for the disk several times, and the application need not wait with them.
// The metadata driver plans the commit where HDF5 lives (prepare), hands over the bytes, and goes
// on serving HDF5; what it has handed over it still lays over whatever it reads from storage, since
// nobody knows how far the writing has come. write() touches this object and Storage only.
// Source: the asynchronous half is ours; the order of the writes is commit_order.hpp's.

class PendingCommit {
 public:
  /// A chunk's bytes that HDF5 wants elsewhere than where they were written.
  struct Copy {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t n_bytes = 0;
  };

  /// A commit with nothing to write.
  PendingCommit() = default;
  /// `plan` was made from `bytes` as they were before they were moved here. `storage` must outlive
  /// the last write().
  PendingCommit(Storage& storage, DirtyBytes bytes, CommitPlan plan, std::vector<Copy> copies,
                CommitSettings settings)
      : storage_(&storage),
        bytes_(std::move(bytes)),
        plan_(std::move(plan)),
        copies_(std::move(copies)),
        settings_(std::move(settings)) {}
  PendingCommit(const PendingCommit&) = delete;
  PendingCommit& operator=(const PendingCommit&) = delete;

  /// Write it all, in commit order, with a sync after each phase; a second call does nothing and
  /// gives the first one's answer. No HDF5 and no MPI: any thread, one at a time; whoever looks at
  /// the outcome afterwards must be ordered behind it (a join, a mutex, a release store).
  /// @error whatever Storage or the journal's file answers.
  Status write();

  /// Whether write() has returned, and what it answered.
  bool written() const { return written_; }

  /// What is written; the same before, during and after write(). Thread-safe.
  const DirtyBytes& bytes() const { return bytes_; }
  std::uint64_t metadata_bytes() const;

 private:
  Status copy_moved_chunks();
  Status write_all();

  Storage* storage_ = nullptr;
  DirtyBytes bytes_;  // Neither this nor what follows changes: write() and HDF5 both read.
  CommitPlan plan_;
  std::vector<Copy> copies_;
  CommitSettings settings_;
  bool written_ = false;
  Status outcome_;
};

}  // namespace tailrace
