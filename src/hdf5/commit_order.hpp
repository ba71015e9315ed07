// One commit: the bytes that HDF5 has written and storage has not, their write order, and the
// commit as an object that any thread can write.

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

// --- DirtyBytes: bytes that HDF5 has written and storage has not. SpanSet: fresh addresses.
//
// Plain data structures for the metadata driver: no HDF5, no I/O. HDF5 writes its metadata block by
// block, and nearly always rewrites the same block at the same address. But it also frees blocks
// and reuses their space in other pieces. So overlaps are resolved byte by byte; the latest write
// wins.

/// A set of addresses, stored as disjoint half-open spans. Adjacent spans are merged.
class SpanSet {
 public:
  /// Add [address, address + n_bytes). Cost: O(log spans) when spans arrive in ascending order.
  void insert(std::uint64_t address, std::uint64_t n_bytes);
  /// True if every byte of [address, address + n_bytes) is in the set; always true for an empty
  /// span.
  bool contains(std::uint64_t address, std::uint64_t n_bytes) const;
  /// True if any byte of [address, address + n_bytes) is in the set.
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
    superblock,  ///< HDF5 wrote it as its superblock; it has its own phase in a commit.
    raw          ///< Values.
  };
  struct Segment {
    std::vector<std::byte> bytes;
    Kind kind = Kind::metadata;
  };

  /// Record a write; it replaces the bytes recorded earlier for these addresses. Raw bytes are
  /// appended to the raw segment that they directly follow.
  void put(std::uint64_t address, std::span<const std::byte> bytes, Kind kind = Kind::metadata);
  /// Discard all bytes recorded for [address, address + n_bytes).
  void drop(std::uint64_t address, std::uint64_t n_bytes);
  /// Copy the recorded bytes of [address, address + bytes.size()) over `bytes`; other bytes stay.
  void overlay(std::uint64_t address, std::span<std::byte> bytes) const;
  /// True if one segment covers all of [address, address + n_bytes).
  bool covers(std::uint64_t address, std::uint64_t n_bytes) const;
  /// One past the last recorded byte; 0 if nothing is recorded.
  std::uint64_t end() const;
  bool empty() const { return segments_.empty(); }
  void clear() { segments_.clear(); }
  const std::map<std::uint64_t, Segment>& segments() const { return segments_; }

 private:
  std::map<std::uint64_t, Segment> segments_;
};

// --- The write order of a commit: never a pointer before its target.
//
//   1. fresh blocks      nothing on disk refers to them yet
//   2. extend            the file is as long as its superblock will say      then sync
//   (journal)            the in-place writes below, durable in FILE.journal, if requested
//   3. superblock        the new end of file; old metadata stays valid       then sync
//   4. index blocks      old blocks rewritten: they gain entries that no header counts   then sync
//   5. object headers    old headers rewritten: the new state becomes visible            then sync
//
// A newly created file has no old blocks: its superblock is the last write and makes the file
// valid. This order suffices for files that Tailrace made, if they grow along a dimension or by
// groups whose links lie in one header block.
//
// Other changes cannot be ordered: heaps and B-trees whose blocks check each other's counts; freed
// blocks whose space HDF5 has reused; a header that is rewritten in several blocks; and blocks that
// cross a page boundary, where a kill can cut a write. A commit with these changes uses the journal
// even if none was requested. One sync then replaces those of phases 3 to 5.
//
// The plan is separate from its execution, so that tests can check the order without a disk.
// Source: measured crash behaviour, docs/format.md; block signatures: HDF5 File Format
// Specification.

/// Position of an old block in the rewrite order at the end of a commit; smaller values go first.
///
/// Arrays (EA, FA) and heaps only gain entries: leaves before heads. When a version 1 B-tree node
/// splits, it loses entries to fresh siblings. The blocks that point at the siblings go first, so
/// that for a moment entries can be found twice rather than not at all. That is: upper levels
/// before lower ones.
enum class BlockRank : std::uint8_t {
  other,
  index_leaf,
  index_head,
  tree_node,  ///< Ordered among themselves by descending level.
  symbol_node,
  object_header
};

/// Classify a metadata block by its signature. Unknown blocks are `other` and go first.
BlockRank rank_block(std::span<const std::byte> block);

/// One write. The DirtyBytes of the plan own the bytes, except those of superblocks.
struct PlannedWrite {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

struct CommitPlan {
  std::vector<PlannedWrite> fresh;  ///< Ordered by address.
  std::uint64_t file_bytes = 0;     ///< The file's length after step 2.
  bool owns_end = false;            ///< No other node uses the last byte before that end.
  std::vector<PlannedWrite> superblock;
  std::vector<PlannedWrite> index_blocks;
  std::vector<PlannedWrite> object_headers;
  bool orderly = true;  ///< The phases above order the in-place writes sufficiently.
  std::vector<std::vector<std::byte>> owned;  ///< Superblocks with the open-for-write mark cleared.
};

/// Sort dirty bytes into the phases of a commit. `dirty` must outlive the plan, unchanged. Reads
/// from `storage` what lies at the addresses of old blocks: a different kind of block there means
/// reused space.
/// @error any error of Storage
Result<CommitPlan> plan_commit(Storage& storage, const DirtyBytes& dirty, const SpanSet& fresh,
                               std::uint64_t file_bytes);

struct CommitSettings {
  bool sync = true;
  bool journal = false;      ///< True: always. False: only for plans that are not orderly.
  std::string journal_path;  ///< Empty: never.
};

/// Execute the plan. Cost: at most four syncs; with the journal five (of file, journal and folder).
/// @error any error of Storage or of the journal file; a journal that was begun stays for recovery
Status write_commit(Storage& storage, const CommitPlan& plan, const CommitSettings& settings);

// --- PendingCommit: all bytes that one commit writes, detached from HDF5, for any thread to write.
//
// A commit's writes wait for the disk several times; the application need not wait with them. The
// metadata driver plans the commit on the thread that calls HDF5 (prepare), hands off the bytes,
// and continues to serve HDF5. The driver overlays pending bytes on everything that it reads from
// storage, since it does not know how far the write has progressed. write() touches only this
// object and Storage. Source: the asynchronous half is our design; the write order is explained
// above.

class PendingCommit {
 public:
  /// A chunk for which HDF5 chose another address than the one where its bytes were written.
  struct Copy {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t n_bytes = 0;
  };

  /// A commit with nothing to write.
  PendingCommit() = default;
  /// `plan` was made from `bytes` before they were moved here. `storage` must outlive the last
  /// write().
  PendingCommit(Storage& storage, DirtyBytes bytes, CommitPlan plan, std::vector<Copy> copies,
                CommitSettings settings)
      : storage_(&storage),
        bytes_(std::move(bytes)),
        plan_(std::move(plan)),
        copies_(std::move(copies)),
        settings_(std::move(settings)) {}
  PendingCommit(const PendingCommit&) = delete;
  PendingCommit& operator=(const PendingCommit&) = delete;

  /// Write everything in commit order, with a sync after each phase. A second call does nothing and
  /// returns the first result. Calls no HDF5 and no MPI: any thread, one at a time. A thread that
  /// reads the outcome must synchronise with the writing thread (a join, a mutex, a release store).
  /// @error any error of Storage or of the journal file
  Status write();

  /// True if write() has returned.
  bool written() const { return written_; }

  /// The bytes to write; unchanged before, during and after write(). Thread-safe.
  const DirtyBytes& bytes() const { return bytes_; }
  std::uint64_t metadata_bytes() const;

 private:
  Status copy_moved_chunks();
  Status write_all();

  Storage* storage_ = nullptr;
  DirtyBytes bytes_;  // Constant from here to settings_: write() and HDF5 both read these.
  CommitPlan plan_;
  std::vector<Copy> copies_;
  CommitSettings settings_;
  bool written_ = false;
  Status outcome_;
};

}  // namespace tailrace
