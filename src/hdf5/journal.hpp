// The redo journal of a commit: the in-place writes, durable in FILE.journal before they are made.
//
// A power loss can tear a write that replaces committed metadata. With the journal on, all such
// writes of a commit go first to FILE.journal, with a checksum. After a later crash, recovery
// repeats them; an earlier crash has changed nothing in place. recover.cpp does the repair. The
// journal is a separate plain file and does not pass through Storage.

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

/// Bytes that the same commit wrote and synced before the journal. They show whether the journal
/// belongs to the file next to it, which another file may have replaced since.
struct JournalWitness {
  std::uint64_t address = 0;
  std::uint64_t n_bytes = 0;
  std::uint64_t sum = 0;  ///< Checksum by lookup3.
};

struct Journal {
  std::vector<JournalEntry> entries;
  std::vector<JournalWitness> witnesses;
  std::uint64_t file_bytes = 0;  ///< Required length of the file once the entries are applied.
};

/// Path of the file's journal: FILE.journal, with links resolved by the caller.
std::string journal_path_of(const std::string& path);

/// Write the journal and make it durable, together with its name in the folder. Without `sync` it
/// protects only against a kill.
/// @error no_space, io_error  no journal is left behind.
Status write_journal(const std::string& journal_path, const Journal& journal, bool sync = true);

/// Read a journal back. @error not_found  the journal does not exist.
/// @error corrupt  cut short or a wrong checksum: the commit had not begun to write in place.
Result<Journal> read_journal(const std::string& journal_path);

/// Check for a dead job's journal before writing the file at `path` (its links resolved) as its
/// only writer. Such a journal must be recovered first. @error corrupt  a journal exists
Status check_no_journal(const std::string& path);

/// Remove the journal and make the removal durable; a missing journal is fine.
Status remove_journal(const std::string& journal_path, bool sync = true);

}  // namespace tailrace
