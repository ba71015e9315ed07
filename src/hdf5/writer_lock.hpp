// WriterLock: at most one job writes a file, whether it creates, replaces or appends to it.
//
// Rank 0 of a job holds FILE.lock, next to the file, from before it inspects the file until it has
// closed it. The lock file names its holder. A lock on the file itself would not suffice: readers
// hold such locks too (HDF5 locks what it opens), and a new file has another name and inode until
// its first commit.
//
// If the file system has locks (flock) that hold across nodes, an unlocked lock file belongs to a
// dead job and is taken over. If it has none, or if locks are local to a node (sshfs, BeeGFS by
// default), the lock file's text decides. Its process is alive on this machine, or dead, or ran on
// another machine; in the last case the lock is not taken over. Locks count as global by the kind
// of the file system (core/mount_kind), or if another node of that job has seen the lock held.
//
// When rank 0 has died, a job on several nodes may continue to write from its other nodes. So one
// process of each other node, and rank 1, share FILE.lock.nodes. A job that takes over waits until
// no process holds it.
//
// Invariant 1: a job that does not get the lock changes nothing. Invariant 2: FILE.lock is removed
// only by rank 0 of the job that holds it, or by a job that takes it over from a dead one. The last
// holder of FILE.lock.nodes also removes that file, once FILE.lock is gone.

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

  /// Become the only writer of `path` (its links resolved). Not collective: rank 0. If the folder
  /// permits no new file, this succeeds without a lock: only the file itself can be opened then.
  /// @param patience  how long to wait for processes of a dead job on other nodes.
  /// @error io_error  another job has the lock, or may have it; names the machine, process and
  /// start.
  Status take(const std::string& path,
              std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// Release the lock. Does nothing if the lock is not held, or in a forked child process.
  void release();
  /// Description of the dead job whose lock was taken over; empty: none.
  const std::string& taken_over_from() const { return taken_over_from_; }

 private:
  std::string path_;
  std::string taken_over_from_;
  Descriptor lock_;
  int holder_pid_ = 0;
};

/// Lock that a process on another node than rank 0's holds as long as it may write.
class NodesLock {
 public:
  NodesLock() = default;
  ~NodesLock() { release(); }
  NodesLock(const NodesLock&) = delete;
  NodesLock& operator=(const NodesLock&) = delete;

  /// Acquire a share of the lock for `path`, which rank 0 has taken and sent. If that is
  /// impossible, for example without locks across nodes, the job continues without it. Not
  /// collective. Cost: one file for all; on file systems of an unknown kind also 20 ms, to test
  /// whether rank 0's lock is visible.
  void join(const std::string& path);
  /// Release the share. Does nothing if it is not held, or in a forked child process.
  void release();

 private:
  void note_whether_locks_are_seen() const;

  Descriptor lock_;
  std::string path_;
  int pid_ = 0;
};

/// Names of a file's lock file, and of the one that other nodes hold.
std::string lock_path_of(const std::string& path);
std::string nodes_lock_path_of(const std::string& path);

/// Describes the job that is writing the file ("another job (process 12 on host ...)"), with advice
/// if its state is unknown; empty: none. Not collective.
std::string writer_of(const std::string& path);

}  // namespace tailrace
