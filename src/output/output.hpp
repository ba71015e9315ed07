// Output: the file that is being written, from its creation to its end. Every writer has one.
//
//   create ──> temporary ── first commit, or put_in_place() ──> in place ── close ──> closed
//   open ──────────────────────────────────────────────────────────^
//                       a failed commit: broken, the file stays at its last commit
//
// Every rank opens the file for its own bytes; rank 0 alone has the HDF5 metadata; the end of the
// file is shared. What goes into the file is the stories' business; when it is visible, under which
// name, and what is left of it when something fails, is decided here alone.
//
// Invariant 1: a new file has a temporary name (partial_suffix) until its first commit; until then
//   an older file of its name stays as it is. Invariant 2: once a commit has failed there is no
//   other one. Invariant 3: an Output that ends without close() does nothing collective, since its
//   rank may be alone: MPI windows are left to MPI_Finalize, and rank 0 removes a temporary file.
// Invariant 4: of two commits the second waits for the first, whoever writes it. Invariant 5: from
//   claim() to its end no other job writes the file, by whichever soft links (writer_lock.hpp; each
//   hard link has a lock of its own); who is refused has changed nothing. Invariant 6: a file that
//   is not this job's is replaced only where the options say so, and only a regular file; other
//   hard links of it keep what it was. Invariant 7: a commit is one only of the file that has the
//   name: where it was removed or replaced meanwhile, the commit fails and says so.

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

/// How the metadata of such a file is made.
Hdf5File::Settings metadata_settings(const FileOptions& options);

class Output {
 public:
  Output() = default;
  ~Output() { abandon(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Check that all ranks mean the same file and have given alike what steers it, and that `engine`
  /// serves all that they ask for (option_table.hpp). Collective. Cost: one agreement.
  /// @param more  lines that must be alike besides, of what the engine alone knows.
  /// @error disagreement  names the option.  @error invalid_argument
  static Status agree(Comm& comm, const std::string& path, const FileOptions& options, Door door,
                      const std::string& more = "");

  /// Keep other jobs from writing the file that `path` leads to, until this ends. create(), open()
  /// and resume() begin with it; for who must look at the file before. Collective; `comm` must
  /// outlive this. Cost: one broadcast. @error io_error  names the job that has it.
  Status claim(Comm& comm, const std::string& path);
  /// What an unfinished file of a dead job may be replaced by.
  enum class LeftOver : std::uint8_t {
    kept,     ///< Nothing, if it has a commit, but under the option replace: it can be recovered.
    replaced  ///< What is made anew from its inputs.
  };
  /// Create a file under its temporary name. Collective; `comm` must outlive this.
  /// @error already_exists  the file, or an unfinished one with commits, or somebody else's file
  /// under the temporary name.  @error invalid_argument (a folder or device), io_error, no_space
  Status create(Comm& comm, const std::string& path, const FileOptions& options,
                LeftOver left_over = LeftOver::kept);
  /// Open an existing HDF5 file to add to it. Collective. @error not_found, corrupt, io_error
  Status open(Comm& comm, const std::string& path, const FileOptions& options);
  /// Open what an earlier run has left unfinished of `path`, to go on with it under its temporary
  /// name. Collective. @error as open().
  Status resume(Comm& comm, const std::string& path, const FileOptions& options);

  /// What the user should hear of how the file was come by: whose lock was taken over. Rank 0;
  /// empty: nothing.
  std::string remark() const;

  bool is_open() const { return storage_ != nullptr; }
  /// How the metadata of this very file is made.
  Hdf5File::Settings settings() const;
  /// Whether the file stands under its own name: opened, or committed. The same on every rank.
  bool in_place() const { return in_place_; }
  Storage& storage() { return *storage_; }
  /// What storage() reads from now on is what all nodes have synced. On every rank, behind an
  /// agreement; costs nothing on a single node.
  void see_other_nodes();
  Tail& tail() { return *tail_; }
  /// Rank 0 only; takes its space from tail(). Waits while a thread publishes.
  Hdf5File& file();

  /// Keep all that was claimed so far. Rank 0 only, where all ranks are known to have made their
  /// claims. @returns what was claimed for data since it was called before.
  std::uint64_t keep_claims_at_root();
  /// Hand back all that was claimed since. Collective; cost as hand_back().
  void drop_claims();
  /// Let the file end at `start` again, behind which a step or flush that has failed has claimed
  /// space, and may have written. On several nodes all sync first: a client that still has such
  /// bytes could write them over what another node puts there next. Where that cannot be had, the
  /// space stays a gap. Collective, and no claim may be under way. Cost: a barrier; on several
  /// nodes a sync and an agreement more. @returns where the file ends now, at rank 0.
  std::uint64_t hand_back(std::uint64_t start);

  /// Why there will be no further commit; ok as a rule. The same on every rank, but in a forked
  /// child of one, to which the file does not belong.
  Status broken() const;
  /// This is a copy that fork() has made: the file is its parent's, as are threads and locks.
  bool in_forked_child() const;
  /// The metadata of a commit could not be brought about: the file stays at its last one. All ranks
  /// say the same. @returns `failure`, with that said.
  Status break_off(const Status& failure, const std::string& consequence);

  /// Commit, and give a new file its name. Rank 0 only; the ranks must agree on the outcome, and
  /// then call committed().
  Status commit_at_root();
  /// Whether the file still has its name, temporary or final. commit_at_root(), put_in_place() and
  /// commits beside ask this themselves. Rank 0 only. @error io_error  it was removed or replaced.
  Status check_still_named() const;
  /// All ranks agreed that a commit went well. Not collective.
  void committed();

  /// What is to be committed: changes of the file by HDF5.
  using Publish = std::function<Status(Hdf5File& file)>;
  /// The same in two parts: while the program computes, a thread calls `publish`, takes the
  /// metadata out of HDF5 and writes it; the latter within `around`. Space for it is an atomic add:
  /// the file's end lies on rank 0's node. Where the program may not use HDF5 meanwhile, or not
  /// `beside`, all but the writing is done at once. Rank 0 only, then all ranks call
  /// commit_is_pending(). The thread begins with let_commit_go(), or as soon as somebody waits for
  /// what it does.
  Status start_commit_at_root(
      const Publish& publish, bool beside,
      const std::function<Status(const std::function<Status()>& write)>& around);
  /// Now: the calling thread has nothing more to do for which the other one would take its core.
  /// Not collective; any rank.
  void let_commit_go();
  void commit_is_pending() { commit_pending_ = true; }
  bool pending() const { return commit_pending_; }
  /// Learn how that went. Collective: one agreement, if a commit is pending.
  Status finish_commit();
  /// The same in two parts, for who agrees on more at once: rank 0 learns it, and then all ranks
  /// say what they have agreed on; if it did not go well, by break_off().
  Status finish_commit_at_root();
  void commit_is_finished();

  /// Give a file that was closed under its temporary name its own. Rank 0 only; for who closes the
  /// HDF5 file itself.
  Status put_in_place();

  /// End it. Collective; what is pending must have been finished. A file that never had a commit is
  /// removed. @param keep  whether the metadata may be closed in order: nothing has failed.
  Status close(bool keep);
  /// End it alone, without a word to the others. Not collective. Called by the destructor.
  void abandon();
  /// Close this rank's handles and leave the file as it lies; other jobs still have to wait. Not
  /// collective.
  void leave();
  /// Remove a new file that has no commit under its own name. Rank 0 only.
  void remove_temporary();

  /// The name under which the file will stand: links are followed.
  const std::string& path() const { return path_; }
  std::string temporary_path() const { return path_ + partial_suffix; }

 private:
  Status open_storage(const std::string& path, bool create);
  Status check_one_output(const std::string& path);
  Status make_tail();
  Status open_at(const std::string& path);
  Status clear_left_over(LeftOver left_over) const;

  void leave_to_parent();
  void wait_for_metadata();
  bool wait_for_commit();
  Hdf5File::Allocate allocator();

  Comm* comm_ = nullptr;
  int pid_ = 0;
  WriterLock lock_;       ///< Rank 0 only; first: it ends last.
  NodesLock nodes_lock_;  ///< Of one rank of each other node, and of rank 1.
  std::string path_;
  FileOptions options_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Tail> tail_;
  std::unique_ptr<Hdf5File> file_;  ///< Rank 0 only.
  /// Space of which a failed step takes nothing back: the file's end at the last commit, or beyond
  /// it the end of metadata that was claimed later.
  std::uint64_t committed_end_ = 0;
  std::uint64_t data_end_ = 0;  ///< That end, less all metadata before it. Rank 0 only.
  struct MetadataSpace {        ///< As HDF5 has claimed it.
    std::uint64_t n_bytes = 0;
    std::uint64_t end = 0;
  };
  /// Of whoever publishes: a thread, until metadata_taken_.
  std::shared_ptr<MetadataSpace> metadata_ = std::make_shared<MetadataSpace>();
  Status broken_;
  bool in_place_ = false;
  FileIdentity identity_;  ///< Rank 0 only; of no file: the storage has none.
  bool commit_pending_ = false;
  std::shared_future<bool> metadata_taken_;  ///< Out of HDF5, and whether it was: rank 0 only.
  std::function<Status()> commit_work_;      ///< Of a commit that the thread has not begun.
  bool commit_begun_ = false;  ///< And not heard of yet. Rank 0 only, as what follows.
  /// How it went, once the thread has nothing to do.
  std::unique_ptr<Status> commit_ = std::make_unique<Status>();
  ThreadTeam committer_{2, Manners::waiting};  ///< Last: its thread uses what stands above.
};

}  // namespace tailrace
