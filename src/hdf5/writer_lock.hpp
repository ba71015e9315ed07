// WriterLock: at most one job writes a file, whether it creates, replaces or appends to it.
//
// Rank 0 of a job holds FILE.lock, beside the file, from before it looks at the file until it has
// closed it; the lock file says who that is. A lock on the file itself would not do: readers
// (HDF5 locks what it opens) hold those too, and a new file has another name and inode until its
// first commit.
//
// Where the file system has locks (flock) that hold for all nodes, a lock file that nobody has
// locked is a dead job's and is taken over. Where it has none, or each node has its own (sshfs,
// BeeGFS as it comes), the text decides: the process that it names lives on this machine, or is
// gone, or ran elsewhere, and then it is not ours to judge. Which of both it is, the kind of the
// file system tells (core/mount_kind), or that another node of that job has seen the lock held.
//
// A job on several nodes may write on from the others when rank 0 has died. So one process of each
// other node, and rank 1, hold FILE.lock.nodes together, and who takes over waits until nobody
// does.
//
// Invariant 1: a job that does not get the lock changes nothing. Invariant 2: the lock files are
// removed by rank 0 of who holds them only, or by who takes a dead job's over.

#pragma once

#include <chrono>
#include <string>

#include "hdf5/file_names.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class WriterLock {
 public:
  WriterLock() = default;
  ~WriterLock() { release(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

  /// Become the only writer of `path` (its links resolved). Not collective: rank 0. A folder in
  /// which no file can be made is taken as it is: then only the file itself can be opened.
  /// @param patience  for what of a dead job still ends on other nodes.
  /// @error io_error  another job has it, or may have it; names the machine, process and start.
  Status take(const std::string& path,
              std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// Let others write. Nothing happens if it is not held, nor in a process that was forked since.
  void release();
  /// Of whom a dead job's lock was taken over; empty: of nobody.
  const std::string& taken_over_from() const { return taken_over_from_; }

 private:
  std::string path_;
  std::string taken_over_from_;
  Descriptor lock_;
  int holder_pid_ = 0;
};

/// What a process of another node than rank 0's holds as long as it may write.
class NodesLock {
 public:
  NodesLock() = default;
  ~NodesLock() { release(); }
  NodesLock(const NodesLock&) = delete;
  NodesLock& operator=(const NodesLock&) = delete;

  /// `path` as rank 0 has taken it, behind a message from there. Where that is not possible, as
  /// without locks between nodes, the job goes on without. Not collective. Cost: one file for all;
  /// on file systems of which nothing is known 20 ms, to see whether rank 0's lock is seen.
  void join(const std::string& path);
  /// Nothing happens if it is not held, nor in a process that was forked since.
  void release();

 private:
  void note_whether_locks_are_seen() const;

  Descriptor lock_;
  std::string path_;
  int pid_ = 0;
};

/// The name of a file's lock file, and of that which other nodes hold.
std::string lock_path_of(const std::string& path);
std::string nodes_lock_path_of(const std::string& path);

/// Who writes the file now ("another job (process 12 on host ...)"), and what to do where that can
/// not be known; empty: nobody. Not collective.
std::string writer_of(const std::string& path);

}  // namespace tailrace
