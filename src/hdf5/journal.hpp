// The redo journal of a commit: the in-place writes, durable beside the file before they are made.
//
// A write that replaces committed metadata can be torn by a power loss. With the journal on, all
// such writes of a commit first go to FILE.journal together with a checksum; a crash after that is
// repaired by writing them again, a crash before it has changed nothing in place. recover.cpp does
// the repair. The journal is a plain file of its own, so it does not pass through Storage.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// One in-place write.
struct JournalEntry {
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
};

/// Bytes that the same commit had written and synced before the journal: they tell whether a
/// journal belongs to the file beside it, which may have been replaced since.
struct JournalWitness {
  std::uint64_t address = 0;
  std::uint64_t n_bytes = 0;
  std::uint64_t sum = 0;  ///< lookup3.
};

struct Journal {
  std::vector<JournalEntry> entries;
  std::vector<JournalWitness> witnesses;
  std::uint64_t file_bytes = 0;  ///< How long the file must be once the entries are applied.
};

/// The journal's place: beside the file, under its very name.
std::string journal_path_of(const std::string& path);

/// Write the journal and make it durable, together with its name in the folder. Without `sync` it
/// helps against a kill alone.
/// @error no_space, io_error  no journal is left behind then.
Status write_journal(const std::string& journal_path, const Journal& journal, bool sync = true);

/// Read a journal back. @error not_found  there is none.
/// @error corrupt  cut short or a wrong checksum: the commit had not begun to write in place.
Result<Journal> read_journal(const std::string& journal_path);

/// For who is about to write the file at `path` (its links resolved) and is its only writer: a
/// journal beside it is a dead job's, and must be dealt with first. @error corrupt  there is one.
Status check_no_journal(const std::string& path);

/// Remove the journal and make that durable; a missing one is fine.
Status remove_journal(const std::string& journal_path, bool sync = true);

}  // namespace tailrace
