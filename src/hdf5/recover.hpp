// Recovery: what a crash can leave behind, found, said in sentences and, if asked, put right.
//
// Commits are ordered so that stock readers see the last committed step without any help; what
// stays is debris. Nothing here ever removes committed data. A running job's temporary file looks
// like a dead one's, but every rank of a job holds a lock on it; where the file system has no locks
// the caller makes sure that the job is dead.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

enum class FileState : std::uint8_t {
  whole,       ///< Every stock tool can read it. Debris beside it may have been found.
  repairable,  ///< Recovery would put it right (or has done so, if it was asked to).
  absent,      ///< No such file; only the unreadable remains of a job that never committed.
  damaged      ///< Committed data is missing; the findings say what.
};

struct RecoverReport {
  FileState state = FileState::whole;
  std::vector<std::string> findings;  ///< What is there, as sentences.
  std::vector<std::string> actions;   ///< What was done, or would be done; empty: nothing to do.
  bool applied = false;               ///< The actions have been carried out.
};

/// A root attribute that the unfinished output of a concatenation has: how many datasets are done.
inline constexpr const char* concat_progress_attribute = "tailrace_concat_datasets";

/// Whether a file is the unfinished output of a concatenation, which --resume can go on with.
bool tells_progress(const std::string& path);

/// How many entries the datasets with an unlimited first dimension have, and which is the last one
/// that is in all of them; where there are none, which member the root group got last: for a file
/// whose job died. Empty: neither is known. Not collective. Cost: O(objects).
std::string last_entries_text(const std::string& path);

/// Cut off what lies behind the end that the superblock states: bytes that were never committed.
/// For the only writer of the file. @error corrupt, io_error
Status cut_off_uncommitted(const std::string& path);

/// For who is about to read a file: whether a commit has begun to change it and has not ended, so
/// that neither its metadata nor its values are to be believed. While the commit's job lives, this
/// waits for its end, which comes soon. Not collective. Cost: one look for a name.
/// @error corrupt  the job has died: the file has to be recovered first.
/// @error io_error  the job lives, but its commit has not ended within `patience`; or the journal
/// cannot be read.
Status check_not_half_committed(const std::string& path,
                                std::chrono::milliseconds patience = std::chrono::seconds(10));

/// Look at an output file and at what may lie beside it: FILE.journal of an interrupted commit and
/// FILE.partial of a job that died before its first commit or between commits, bytes behind the end
/// that the superblock states, the "open for write" mark of other writers, and a file that is too
/// short. A file is called whole once all its objects and chunk lists have been read. Not
/// collective. @param apply  carry out the actions, too.
/// @error not_found  neither the file nor a trace of it.  @error corrupt  not an HDF5 file.
/// @error io_error  a job still has the file open (only with apply).
/// @error io_error, no_space  while repairing; running it again continues.
Result<RecoverReport> inspect_and_recover(const std::string& path, bool apply);

/// Keep HDF5 from printing for the rest of the process, for programs of our own before they end:
/// HDF5 1.10 loses memory over damaged files, and complains of that when it ends ("infinite loop
/// closing library").
void silence_hdf5();

}  // namespace tailrace
