// Recovery: finds what a crash can leave behind, describes it in sentences and, if requested,
// repairs it.
//
// Commits are ordered so that stock readers see the last committed step without any help; only
// debris remains. Nothing here ever removes committed data. A running job's temporary file looks
// like a dead job's, but every rank of a running job holds a lock on it. If the file system has no
// locks, the caller must make sure that the job is dead.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

enum class FileState : std::uint8_t {
  whole,       ///< Every stock tool can read it. Debris next to it may have been found.
  repairable,  ///< Recovery would repair it (or has repaired it, if requested).
  absent,      ///< No such file; only the unreadable remains of a job that never committed.
  damaged      ///< Committed data is missing; the findings say what.
};

struct RecoverReport {
  FileState state = FileState::whole;
  std::vector<std::string> findings;  ///< Findings, as sentences.
  std::vector<std::string> actions;   ///< Actions done, or to be done; empty: none needed.
  bool applied = false;               ///< The actions have been carried out.
};

/// Root attribute of an unfinished concatenation output: the number of completed datasets.
inline constexpr const char* kConcatProgressAttribute = "tailrace_concat_datasets";

/// True if a file is the unfinished output of a concatenation, which --resume can continue.
bool records_progress(const std::string& path);

/// A text about the progress of a file whose job died: the number of entries of each dataset with
/// an unlimited first dimension, and the last entry that all of these have. If no such dataset
/// exists: the newest member of the root group. Empty: neither is known. Not collective. Cost:
/// O(objects).
std::string last_entries_text(const std::string& path);

/// Truncate the file to the end that the superblock states; the bytes after it were never
/// committed. The caller must be the only writer. @error corrupt, io_error
Status cut_off_uncommitted(const std::string& path);

/// Check, before reading a file, for a commit that has begun to change it and has not ended:
/// neither metadata nor values are valid then. While the commit's job is alive, this waits for the
/// end of the commit, usually a short time. Not collective. Cost: one existence check.
/// @error corrupt  the job has died: the file must be recovered first.
/// @error io_error  the job is alive, but its commit has not ended within `patience`; or the
/// journal cannot be read.
Status check_not_half_committed(const std::string& path,
                                std::chrono::milliseconds patience = std::chrono::seconds(10));

/// Inspect an output file and the files next to it. Detects FILE.journal of an interrupted commit;
/// FILE.partial of a job that died before its first commit or between commits; bytes after the end
/// that the superblock states; the "open for write" mark of other writers; and a file that is too
/// short. A file is reported as complete only after all its objects and chunk lists have been read.
/// Not collective. @param apply  also execute the actions
/// @error not_found  neither the file nor a trace of it.  @error corrupt  not an HDF5 file.
/// @error io_error  a job still has the file open (only with apply).
/// @error io_error, no_space  while repairing; running it again continues.
Result<RecoverReport> inspect_and_recover(const std::string& path, bool apply);

/// Keep HDF5 from printing for the rest of the process; for our programs, before they exit. HDF5
/// 1.10 leaks memory on damaged files and reports that at exit ("infinite loop closing library").
void silence_hdf5();

}  // namespace tailrace
