// Output: the file that is being written, from its creation to its close. Every writer has one.
//
//   create --> temporary -- first commit, or put_in_place() --> in place -- close --> closed
//   open ---------------------------------------------------------^
//                       a failed commit: broken, the file stays at its last commit
//
// Every rank opens the file for its own bytes; only rank 0 has the HDF5 metadata; the end of the
// file is shared. Callers decide the contents. This class decides when they become visible, under
// which name, and what remains after a failure.
//
// Invariant 1: a new file has a temporary name (kPartialSuffix) until its first commit; until then
// an older file of the same name is unchanged.
// Invariant 2: after a failed commit no other commit follows.
// Invariant 3: an Output that ends without close() does nothing collective, since other ranks might
// not take part. MPI windows are left to MPI_Finalize, and rank 0 removes a temporary file.
// Invariant 4: of two commits the second waits for the first, whichever thread writes it.
// Invariant 5: from claim() to the end of the Output no other job writes the file, through any soft
// link (writer_lock.hpp; each hard link has a separate lock). A job that is refused has changed
// nothing.
// Invariant 6: another job's file is replaced only if the options allow it, and only if it is a
// regular file. Its other hard links keep the old contents.
// Invariant 7: a commit applies only to the file that has the name. If the name was removed or
// replaced meanwhile, the commit fails and reports that.

#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/option_table.hpp"
#include "core/options.hpp"
#include "core/storage.hpp"
#include "exec/thread_team.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/writer_lock.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// HDF5 metadata settings for a new file with these options.
Hdf5File::Settings metadata_settings(const FileOptions& options);

class Output {
 public:
  Output() = default;
  ~Output() { abandon(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Check that all ranks name the same file and options, and that the interface `door` serves all
  /// requested options (option_table.hpp). Collective. Cost: one agreement.
  /// @param more  additional lines that must be equal, for settings that only the engine knows.
  /// @param mine  this rank's failure before the call, which becomes that of all ranks.
  /// @param along  numbers that are reduced over all ranks.
  /// @error disagreement  names the option.
  /// @error invalid_argument
  static Status agree(Comm& comm, const std::string& path, const FileOptions& options, Door door,
                      const std::string& more = "", const Status& mine = Status(),
                      const RankNumbers& along = {});

  /// Lock the file that `path` leads to against other jobs, for the lifetime of this object.
  /// create(), open() and resume() do it first; call it directly to inspect the file before.
  /// Collective; `comm` must outlive this. Cost: one broadcast. @error io_error  names the job that
  /// holds the lock.
  Status claim(Comm& comm, const std::string& path);
  /// Repair what a dead job has left of the file, as inspect_and_recover() does: complete a commit
  /// that was interrupted, and name a file whose first commit had ended. A file without such
  /// remains is not opened. Collective. Cost: one agreement and one broadcast.
  /// @param mine  this rank's failure before the call, which becomes that of all ranks.
  /// @returns true if the file then exists; the same on every rank.
  /// @error disagreement  the paths differ.  @error corrupt  committed data are missing.
  /// @error io_error  another job writes the file.
  static Result<bool> recover(Comm& comm, const std::string& path, const Status& mine = Status());
  /// Treatment of an unfinished file that a dead job has left.
  enum class LeftOver : std::uint8_t {
    kept,     ///< Kept if it has a commit, unless options.replace: it can be recovered.
    replaced  ///< Replaced: it can be made again from its inputs.
  };
  /// Work of rank 0 on a file that has just been created or opened.
  using AtRoot = std::function<Status(Hdf5File& file)>;
  /// Create a file under its temporary name. Collective; `comm` must outlive this. Cost: one
  /// broadcast and one agreement; on several nodes see check_one_output().
  /// @param at_root  its failure fails the call on all ranks.
  /// @error already_exists  the file, an unfinished one with commits, or another program's file
  /// under the temporary name.
  /// @error invalid_argument (a folder or device), io_error, no_space
  Status create(Comm& comm, const std::string& path, const FileOptions& options,
                LeftOver left_over = LeftOver::kept, const AtRoot& at_root = nullptr);
  /// Open an existing HDF5 file to add to it. Collective. Cost: that of create().
  /// @error not_found, corrupt, io_error
  Status open(Comm& comm, const std::string& path, const FileOptions& options);
  /// Open the unfinished file that an earlier run has left for `path`, and continue it under its
  /// temporary name. Collective. @error see open()
  Status resume(Comm& comm, const std::string& path, const FileOptions& options);

  /// A remark for the user on how the file was acquired: the job whose lock was taken over. Rank 0;
  /// empty: none.
  std::string remark() const;

  bool is_open() const { return storage_ != nullptr; }
  /// HDF5 metadata settings of this file.
  Hdf5File::Settings settings() const;
  /// True if the file has its final name: opened, or committed. The same on every rank.
  bool in_place() const { return in_place_; }
  /// Before the last commit of a file that lacks values: if an older file has the final name, the
  /// file keeps its temporary name, and both remain. Collective. Cost: one allreduce.
  /// @returns true if an older file has the name.
  bool keep_older_file();
  Storage& storage() { return *storage_; }
  /// Let storage() read the bytes that all nodes have synced. Call on every rank, after an
  /// agreement. Costs nothing on a single node.
  void see_other_nodes();
  Tail& tail() { return *tail_; }
  /// The HDF5 file. Rank 0 only; allocates from tail(). Waits while a thread publishes.
  Hdf5File& file();

  /// Keep all space that was claimed so far. Rank 0 only, after an agreement that all ranks have
  /// made their claims. @returns the bytes claimed for data since the previous call.
  std::uint64_t keep_claims_at_root();
  /// Release all space that was claimed after the last keep_claims_at_root(). Collective; cost: see
  /// hand_back().
  void drop_claims();
  /// Reset the file's end to `start`, after a step or flush that has failed, and that may have
  /// written behind `start`. On several nodes all ranks sync first: otherwise a client could write
  /// such bytes later, over those of another node. If a sync fails, the space remains a gap.
  /// Collective, and no claim may be pending. Cost: a barrier; on several nodes also a sync and an
  /// agreement. @returns the file's end, on rank 0.
  std::uint64_t hand_back(std::uint64_t start);

  /// The reason why no commit can follow; normally ok. The same on every rank, except in a forked
  /// child of a rank, which does not own the file.
  Status broken() const;
  /// True in a copy of the process made by fork(): the parent owns file, threads and locks.
  bool in_forked_child() const;
  /// Record that a commit's metadata failed: the file stays at its last commit. All ranks must pass
  /// the same. @returns `failure` with `consequence` added.
  Status break_off(const Status& failure, const std::string& consequence);

  /// Commit, and give a new file its final name. Rank 0 only; the ranks must agree on the outcome,
  /// and then call committed().
  Status commit_at_root();
  /// Check that the file still has its name, temporary or final. All commits and put_in_place()
  /// call this themselves. Rank 0 only. @error io_error  the name was removed or replaced.
  Status check_still_named() const;
  /// Record that all ranks agreed on a successful commit. Not collective.
  void committed();

  /// Changes of the file by HDF5, to be committed.
  using Publish = std::function<Status(Hdf5File& file)>;
  /// Two-phase form of commit_at_root(): while the program computes, a thread calls `publish`,
  /// prepares the commit in HDF5, and writes the metadata; the writing runs inside `around`.
  /// Allocation is an atomic add, because the file's end is stored on rank 0's node. If the program
  /// may not use HDF5 concurrently, or `concurrently` is false, this call does everything but the
  /// writing. Rank 0 only; then all ranks call commit_is_pending(). The thread starts with
  /// let_commit_go(), or with the first call that waits for it.
  Status start_commit_at_root(
      const Publish& publish, bool concurrently,
      const std::function<Status(const std::function<Status()>& write)>& around);
  /// Start the thread of a pending commit: the caller has no work left that needs the core. Not
  /// collective; any rank.
  void let_commit_go();
  void commit_is_pending() { commit_pending_ = true; }
  bool pending() const { return commit_pending_; }
  /// Wait for a pending commit, and return its outcome. Collective: one agreement, if a commit is
  /// pending.
  Status finish_commit();
  /// Two-phase form of finish_commit(), for callers that combine the agreement with others: rank 0
  /// waits and learns the outcome. Once it is agreed, all ranks call commit_is_finished(), or
  /// break_off() after a failure.
  Status finish_commit_at_root();
  void commit_is_finished();

  /// Give a file that was closed under its temporary name its final name. Rank 0 only; for callers
  /// that close the HDF5 file themselves.
  Status put_in_place();

  /// Close the file. Collective: one agreement; a pending commit must be finished. A file without a
  /// commit is removed.
  /// @param keep  true if nothing has failed, so that the metadata may be closed normally.
  /// @param along  numbers that are reduced over all ranks.
  Status close(bool keep, const RankNumbers& along = {});
  /// Close the file on this rank only, without communication. Not collective. Called by the
  /// destructor. @returns true if this rank knows that the last commit is in the file; only rank 0
  /// knows the outcome of a pending one.
  bool abandon();
  /// Close this rank's handles and leave the file unchanged; other jobs remain locked out. Not
  /// collective.
  void leave();
  /// Remove a new file that has no commit under its final name. Rank 0 only.
  void remove_temporary();

  /// The final name of the file, with links resolved.
  const std::string& path() const { return path_; }
  std::string temporary_path() const { return partial_path_of(path_); }

 private:
  Status open_storage(const std::string& path, bool create);
  Status check_one_output(const std::string& path);
  Status start(Comm& comm);
  Status claim_at_root(const std::string& path);
  Status share_claim(const std::function<Status()>& at_root);
  Status open_at(const std::string& path, bool unfinished);
  Status open_on_others(const std::string& path);
  Status clear_left_over(LeftOver left_over) const;

  void leave_to_parent();
  void wait_for_metadata();
  bool wait_for_commit();
  Hdf5File::Allocate allocator();

  Comm* comm_ = nullptr;
  int pid_ = 0;
  WriterLock lock_;       ///< Rank 0 only. First member: destroyed last.
  NodesLock nodes_lock_;  ///< Held by one rank of each other node, and by rank 1.
  std::string path_;
  FileOptions options_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Tail> tail_;
  std::unique_ptr<Hdf5File> file_;  ///< Rank 0 only.
  /// End of the space that a failed step does not release: the file's end at the last commit, or
  /// the end of metadata that was claimed later.
  std::uint64_t committed_end_ = 0;
  std::uint64_t data_end_ = 0;  ///< committed_end_ less all metadata before it. Rank 0 only.
  struct MetadataSpace {        ///< Space claimed by HDF5.
    std::uint64_t n_bytes = 0;
    std::uint64_t end = 0;
  };
  /// Owned by the publishing thread until metadata_taken_, then by rank 0's main thread.
  std::shared_ptr<MetadataSpace> metadata_ = std::make_shared<MetadataSpace>();
  Status broken_;
  bool in_place_ = false;
  bool keeps_older_ = false;  ///< keep_older_file() found an older file.
  FileIdentity identity_;     ///< Rank 0 only; unknown if the storage has no file.
  bool commit_pending_ = false;
  std::shared_future<bool> metadata_taken_;  ///< Set when the metadata has left HDF5; false: that
                                             ///< failed. Rank 0 only.
  std::function<Status()> commit_work_;      ///< Commit that the thread has not begun.
  bool commit_begun_ = false;  ///< Outcome not yet read. Rank 0 only, as are the members below.
  /// Outcome of the commit, valid once the thread is idle.
  std::unique_ptr<Status> commit_ = std::make_unique<Status>();
  ThreadTeam committer_{
      2, ThreadPriority::waiting};  ///< Last member: its thread uses the members above.
};

}  // namespace tailrace
