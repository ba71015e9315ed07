// The order in which a commit writes: never a pointer before what it points to.
//
//   1. fresh blocks      nothing on disk refers to them yet
//   2. extend            the file is as long as its superblock will say      then sync
//   (journal)            the in-place writes below, durable beside the file, if wanted
//   3. superblock        the new end of file; old metadata stays valid       then sync
//   4. index blocks      old blocks rewritten: they gain entries that no header counts   then sync
//   5. object headers    old headers rewritten: the new state becomes visible            then sync
//
// A file that is created has no old blocks: its superblock is the last write and makes it one.
// Files that Tailrace made and that grow by groups under the root or along a dimension need no
// more. Other changes cannot be ordered: heaps and B-trees whose blocks check each other's counts,
// and freed blocks whose space HDF5 has used again. Such a commit is made under the journal, asked
// for or not. Splitting the plan from its execution lets tests look at the order without a disk.
// Source: measured crash behaviour, docs/format.md; block signatures: HDF5 File Format
// Specification.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "container/dirty_bytes.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"

namespace tailrace {

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

/// Execute the plan. Cost: at most four syncs; the journal takes two to four more.
/// @error whatever Storage or the journal's file answers; a journal that was begun stays for
/// recover.
Status write_commit(Storage& storage, const CommitPlan& plan, const CommitSettings& settings);

}  // namespace tailrace
