// WriterLock: at most one job writes a file, whether it creates, replaces or appends to it.
//
// Rank 0 of a job holds FILE.lock, beside the file, from before it looks at the file until it has
// closed it; the lock file says who that is. A lock on the file itself would not do: readers
// (HDF5 locks what it opens) hold those too, and a new file has another name and inode until its
// first commit.
//
// Where the file system has locks (flock), a lock file that nobody has locked is a dead job's and
// is taken over. Where it has none, the text decides: the process that it names lives on this
// machine, or is gone, or ran elsewhere, and then it is not ours to judge.
//
// Invariant 1: a job that does not get the lock changes nothing. Invariant 2: the lock file is
// removed by its holder only, or by who takes a dead job's over.

#pragma once

#include <string>

#include "core/status.hpp"
#include "hdf5/file_names.hpp"

namespace tailrace {

class WriterLock {
 public:
  WriterLock() = default;
  ~WriterLock() { release(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

  /// Become the only writer of `path` (its links resolved). Not collective: rank 0. A folder in
  /// which no file can be made is taken as it is: then only the file itself can be opened.
  /// @error io_error  another job has it; names the machine, process and start.
  Status take(const std::string& path);
  /// Let others write. Nothing happens if it is not held, nor in a process that was forked since.
  void release();
  /// Of whom a dead job's lock was taken over; empty: of nobody.
  const std::string& taken_over_from() const { return taken_over_from_; }

 private:
  std::string lock_path_;
  std::string taken_over_from_;
  Descriptor lock_;
  int holder_pid_ = 0;
};

/// The name of a file's lock file.
std::string lock_path_of(const std::string& path);

/// Who writes the file now ("another job (process 12 on host ...)"); empty: nobody. Not collective.
std::string writer_of(const std::string& path);

}  // namespace tailrace
