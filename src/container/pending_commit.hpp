// PendingCommit: all that one commit writes, taken out of HDF5's reach, so that any thread can
// write it.
//
// A commit's writes wait for the disk several times, and the application need not wait with them.
// The metadata driver plans the commit where HDF5 lives (prepare), hands over the bytes, and goes
// on serving HDF5; what it has handed over it still lays over whatever it reads from storage, since
// nobody knows how far the writing has come. write() touches this object and Storage only.
// Source: the asynchronous half is ours; the order of the writes is commit_order.hpp's.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "container/commit_order.hpp"
#include "container/dirty_bytes.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"

namespace tailrace {

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
