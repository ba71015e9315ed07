// Creating, opening, committing and closing the output: rank 0 first, then the others, each step
// agreed.

#include "output/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/byte_stream.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/one_file.hpp"
#include "hdf5/recover.hpp"
#include "policy/door_rules.hpp"

namespace tailrace {

Hdf5File::Settings metadata_settings(const FileOptions& options) {
  Hdf5File::Settings settings;
  settings.sync = options.sync;
  settings.journal = options.journal;
  settings.whole_commits = options.whole_commits;
  settings.expected_root_links = options.expected_root_links;
  settings.shares_chunks = options.shares_chunks;
  settings.old_forms = options.compatibility != Compatibility::v110;
  settings.steps_in_new_forms = options.compatibility == Compatibility::automatic;
  settings.lists_readers_need = options.notes != Notes::off && !options.copies_filters;
  settings.creation_list_id = options.hdf5_creation_list;
  settings.access_list_id = options.hdf5_access_list;
  return settings;
}

Status Output::agree(Comm& comm, const std::string& path, const FileOptions& options, Door door,
                     const std::string& more, const Status& mine, const RankNumbers& along) {
  const std::string text = "path " + path + "\n" + agreed_text(options, door) + more;
  return agree_on_text(comm, "the file", text, mine.ok() ? check_door(options, door) : mine, along);
}

// --- recovering

namespace {

/// Rank 0's part of Output::recover().
Result<bool> recover_at_root(const std::string& path) {
  const auto exists = [](const std::string& name) { return ::access(name.c_str(), F_OK) == 0; };
  TAILRACE_TAKE(const std::string target, resolve_links(path));
  // An unfinished file next to a finished one may replace it or not: the user decides.
  const bool there = exists(target);
  if (!exists(there ? journal_path_of(target) : partial_path_of(target))) {
    const std::string writer = writer_of(target);
    if (writer.empty()) return there;
    return Status(Code::io_error, "\"" + target + "\" is being written by " + writer);
  }
  WriterLock lock;
  TAILRACE_TRY(lock.take(target));
  TAILRACE_TAKE(const RecoverReport report, inspect_and_recover(target, true));
  if (report.state == FileState::damaged) {
    std::string text = "\"" + target + "\" cannot be recovered:";
    for (const std::string& finding : report.findings) text += " " + finding;
    return Status(Code::corrupt, text);
  }
  return exists(target);
}

}  // namespace

Result<bool> Output::recover(Comm& comm, const std::string& path, const Status& mine) {
  TAILRACE_TRY(agree_on_text(comm, "the file", "path " + path + "\n", mine));
  const Result<Bytes> shared = broadcast_from_root(comm, [&](ByteWriter& message) {
    TAILRACE_TAKE(const bool exists, recover_at_root(path));
    message.add(exists);
    return Status();
  });
  if (!shared.ok()) return shared.status();
  refresh_file_on_nodes(comm, path);
  return ByteReader(*shared).take<bool>();
}

// --- opening

/// Lock the file that `path` leads to, unless it is locked already. Rank 0 only.
Status Output::claim_at_root(const std::string& path) {
  if (!path_.empty()) return Status();
  TAILRACE_TAKE(const std::string target, resolve_links(path));
  TAILRACE_TRY(lock_.take(target));
  path_ = target;
  // The previous job may have ended a moment ago on other nodes.
  refresh_file_on_nodes(*comm_, path_);
  return Status();
}

/// Run rank 0's first work on the file, and give all ranks its outcome and the path. Collective:
/// one broadcast.
Status Output::share_claim(const std::function<Status()>& at_root) {
  const bool is_new = path_.empty();
  const Result<Bytes> shared = broadcast_from_root(*comm_, [&](ByteWriter& message) {
    TAILRACE_TRY(at_root());
    message.add_text(path_);
    return Status();
  });
  if (!shared.ok()) return shared.status();
  if (!is_new || comm_->is_root()) return Status();
  path_ = ByteReader(*shared).take_text();
  // Rank 1 joins too: it may outlive rank 0 on the same node.
  const bool represents_node = comm_->leads_node() || comm_->rank() == 1;
  if (!comm_->place().empty() && represents_node) nodes_lock_.join(path_);
  refresh_file_on_nodes(*comm_, path_);  // Readers of the file wait for a later agreement.
  return Status();
}

Status Output::claim(Comm& comm, const std::string& path) {
  if (!path_.empty()) return Status();
  comm_ = &comm;
  pid_ = ::getpid();
  return share_claim([&] { return claim_at_root(path); });
}

std::string Output::remark() const {
  const std::string& dead = lock_.taken_over_from();
  return dead.empty() ? "" : "\"" + path_ + "\": " + dead + " died while writing the file";
}

/// Make room for a new file under the temporary name. Rank 0 only. The lock guarantees that no live
/// job writes there.
Status Output::clear_left_over(LeftOver left_over) const {
  const std::string partial = temporary_path();
  const Result<LeftFile> there = look_at_left_file(partial);
  if (!there.ok()) return there.status();
  if (*there == LeftFile::committed && left_over == LeftOver::kept && !options_.replace) {
    return Status(
        Code::already_exists,
        "\"" + partial + "\" has committed steps of a job that died; \"tailrace recover " + path_ +
            "\" reports them (with --apply it recovers them), option replace=on discards them");
  }
  if (::unlink(partial.c_str()) != 0 && errno != ENOENT) {
    return status_from_errno(errno, "removing \"" + partial + "\"");
  }
  return remove_journal(journal_path_of(partial));
}

/// Open the storage on this rank. @returns this rank's own status.
Status Output::open_storage(const std::string& path, bool create) {
  Result<std::unique_ptr<Storage>> storage =
      options_.open_storage ? options_.open_storage(path, create)
                            : open_posix_storage(path, create, options_.direct_io);
  if (!storage.ok()) return storage.status();
  storage_ = std::move(*storage);
  if (options_.sync) storage_->expect_sync();
  if (comm_->is_root()) {
    TAILRACE_TAKE(identity_, FileIdentity::of(path));
  }
  return Status();
}

Hdf5File::Settings Output::settings() const {
  Hdf5File::Settings settings = metadata_settings(options_);
  settings.on_nodes = !comm_->place().empty();
  return settings;
}

/// Make all ranks use the file that rank 0 has opened; ranks with another file open it again.
/// Collective.
Status Output::check_one_output(const std::string& path) {
  const std::uint64_t end = comm_->is_root() ? std::max(committed_end_, tail_->end_at_root()) : 0;
  const auto open_again = [&] { return open_storage(path, false); };
  return tailrace::check_one_output(*comm_, path, storage_, end, open_again);
}

/// Prepare what all ranks need before rank 0 begins. Collective; the result is the same everywhere.
Status Output::start(Comm& comm) {
  comm_ = &comm;
  pid_ = ::getpid();
  TAILRACE_TAKE(tail_, comm.create_tail(0));
  return Status();
}

/// Open on the other ranks the file that rank 0 has opened. Collective: one agreement.
Status Output::open_on_others(const std::string& path) {
  TAILRACE_TRY(comm_->agree(comm_->is_root() ? Status() : open_storage(path, false)));
  return check_one_output(path);
}

Status Output::create(Comm& comm, const std::string& path, const FileOptions& options,
                      LeftOver left_over, const AtRoot& at_root) {
  options_ = options;
  TAILRACE_TRY(start(comm));
  const auto begin = [&]() -> Status {
    TAILRACE_TRY(claim_at_root(path));
    TAILRACE_TRY(check_replaceable(path_, options.replace, "option replace=on replaces it"));
    TAILRACE_TRY(clear_left_over(left_over));
    TAILRACE_TRY(open_storage(temporary_path(), true));
    TAILRACE_TAKE(file_, Hdf5File::create(*storage_, allocator(), settings()));
    committed_end_ = tail_->end_at_root();
    data_end_ = committed_end_ - metadata_->n_bytes;
    return at_root ? at_root(*file_) : Status();
  };
  TAILRACE_TRY(share_claim(begin));
  return open_on_others(temporary_path());
}

Status Output::open(Comm& comm, const std::string& path, const FileOptions& options) {
  options_ = options;
  TAILRACE_TRY(start(comm));
  in_place_ = true;
  return open_at(path, false);
}

Status Output::resume(Comm& comm, const std::string& path, const FileOptions& options) {
  options_ = options;
  TAILRACE_TRY(start(comm));
  return open_at(path, true);
}

void Output::see_other_nodes() {
  refresh_file_on_nodes(*comm_, in_place() ? path() : temporary_path());
  if (!comm_->place().empty()) storage_->renew_reads();
}

/// Open the file of `path`, under its temporary name if it is unfinished.
Status Output::open_at(const std::string& path, bool unfinished) {
  const auto name = [&] { return unfinished ? temporary_path() : path_; };
  const auto begin = [&]() -> Status {
    TAILRACE_TRY(claim_at_root(path));
    if (unfinished) refresh_file_on_nodes(*comm_, name());
    TAILRACE_TRY(open_storage(name(), false));
    TAILRACE_TAKE(file_, Hdf5File::open(*storage_, allocator(), settings(), committed_end_));
    tail_->start_at_root(committed_end_);
    data_end_ = committed_end_ - metadata_->n_bytes;
    return Status();
  };
  TAILRACE_TRY(share_claim(begin));
  if (unfinished && !comm_->is_root()) refresh_file_on_nodes(*comm_, name());
  return open_on_others(name());
}

// --- space

Hdf5File::Allocate Output::allocator() {
  // In a forked child HDF5 may outlive the Output, so the function owns what it needs.
  return [tail = tail_.get(), metadata = metadata_](std::uint64_t n_bytes) {
    const std::uint64_t address = tail->claim(n_bytes);
    metadata->n_bytes += n_bytes;
    metadata->end = std::max(metadata->end, address + n_bytes);
    return address;
  };
}

std::uint64_t Output::keep_claims_at_root() {
  wait_for_metadata();
  committed_end_ = tail_->end_at_root();
  const std::uint64_t before = std::exchange(data_end_, committed_end_ - metadata_->n_bytes);
  return data_end_ - std::min(before, data_end_);
}

void Output::drop_claims() {
  wait_for_metadata();
  // A thread may have claimed metadata of the previous commit within the failed step's claims.
  committed_end_ = hand_back(std::max(committed_end_, metadata_->end));
  data_end_ = committed_end_ - metadata_->n_bytes;
}

std::uint64_t Output::hand_back(std::uint64_t start) {
  const bool several_nodes = !comm_->place().empty();
  if (several_nodes && !comm_->agree(storage_->sync()).ok()) start = tail_->end();
  tail_->reset(start);
  return start;
}

// --- committing

void Output::wait_for_metadata() {
  let_commit_go();
  if (metadata_taken_.valid()) metadata_taken_.wait();
}

Hdf5File& Output::file() {
  wait_for_metadata();
  return *file_;
}

bool Output::in_forked_child() const { return pid_ != 0 && pid_ != ::getpid(); }

Status Output::broken() const {
  if (!in_forked_child()) return broken_;
  return Status(Code::invalid_argument, "\"" + path_ + "\" is open in process " +
                                            std::to_string(pid_) +
                                            "; a process forked from it cannot write the file");
}

Status Output::break_off(const Status& failure, const std::string& consequence) {
  commit_pending_ = false;
  broken_ = failure.within(consequence);
  return broken_;
}

Status Output::check_still_named() const {
  if (!identity_.known()) return Status();
  const std::string name = in_place_ ? path_ : temporary_path();
  TAILRACE_TAKE(const FileIdentity now, FileIdentity::of(name));
  if (now == identity_) return Status();
  return Status(Code::io_error, "\"" + name + "\" was " +
                                    (now.known() ? "replaced by another file" : "removed") +
                                    " while this job wrote it");
}

Status Output::put_in_place() {
  TAILRACE_TRY(check_still_named());
  const AtName at_name = options_.replace ? AtName::replaced : AtName::nothing;
  TAILRACE_TRY(give_name(temporary_path(), path_, at_name, options_.sync));
  if (identity_.known()) {
    TAILRACE_TAKE(identity_, FileIdentity::of(path_));
  }
  if (file_ != nullptr) file_->set_path(path_);
  if (storage_ != nullptr) storage_->set_path(path_);
  return remove_journal(journal_path_of(path_));  // the journal of the file that had this name
                                                  // before
}

Status Output::commit_at_root() {
  TAILRACE_TRY(check_still_named());
  TAILRACE_TRY(file_->commit());
  return in_place_ || keeps_older_ ? Status() : put_in_place();
}

bool Output::keep_older_file() {
  if (in_place_) return false;
  std::uint64_t exists[] = {0};
  if (comm_->is_root()) {
    const Result<FileIdentity> older = FileIdentity::of(path_);
    exists[0] = !older.ok() || older->known() ? 1 : 0;  // If in doubt, replace nothing.
  }
  comm_->allreduce(exists, Reduction::max);
  keeps_older_ = exists[0] != 0;
  return keeps_older_;
}

Status Output::start_commit_at_root(
    const Publish& publish, bool concurrently,
    const std::function<Status(const std::function<Status()>& write)>& around) {
  using Taken = Result<std::shared_ptr<PendingCommit>>;
  const auto reported = std::make_shared<std::promise<bool>>();
  metadata_taken_ = reported->get_future().share();
  const auto take = [this, publish, reported]() -> Taken {
    // The destructor reports in any case, since a rank may be waiting.
    struct Reporter {
      std::promise<bool>& reported;
      bool taken = false;
      ~Reporter() { reported.set_value(taken); }
    } reporter{*reported};
    const Status published = publish(*file_);
    Taken taken = published.ok() ? file_->prepare_commit() : published;
    reporter.taken = taken.ok();
    return taken;
  };
  const auto write = [this, around, first = !in_place_](const Taken& taken) {
    if (!taken.ok()) return taken.status();
    return around([&] {
      TAILRACE_TRY(check_still_named());
      TAILRACE_TRY((*taken)->write());
      return first ? put_in_place() : Status();
    });
  };
  std::function<Status()> work = [take, write] { return write(take()); };
  if (!concurrently || !Hdf5File::can_be_used_concurrently()) {
    const Taken taken = take();
    if (!taken.ok()) return taken.status();
    work = [taken, write] { return write(taken); };
  }
  const auto commit = [work]() -> Status {
    return local_part(work);  // The thread's owner does not catch exceptions.
  };
  commit_work_ = commit;
  return Status();
}

void Output::let_commit_go() {
  if (!commit_work_ || commit_begun_) return;
  commit_begun_ = true;
  const auto commit = [this] { *commit_ = commit_work_(); };
  bool posted = false;
  try {
    posted = committer_.post(commit);
  } catch (const std::bad_alloc&) {
  }
  if (!posted) commit();  // No thread, or no memory for the call: commit now.
}

/// @returns true if a commit had begun.
bool Output::wait_for_commit() {
  let_commit_go();
  committer_.finish_posted();
  commit_work_ = nullptr;
  return std::exchange(commit_begun_, false);
}

Status Output::finish_commit_at_root() {
  if (!wait_for_commit()) return Status();
  const Status written = std::exchange(*commit_, Status());
  const Status finished = metadata_taken_.get() ? file_->finish_commit() : Status();
  in_place_ = in_place_ || (written.ok() && finished.ok());
  return written.ok() ? finished : written;
}

void Output::committed() {
  if (keeps_older_) return;
  if (!in_place_) storage_->set_path(path_);
  in_place_ = true;
}

void Output::commit_is_finished() {
  if (commit_pending_) committed();
  commit_pending_ = false;
}

Status Output::finish_commit() {
  if (!commit_pending_) return Status();
  const Status done = comm_->agree(comm_->is_root() ? finish_commit_at_root() : Status());
  if (!done.ok()) return break_off(done, "the file stays at its last commit");
  commit_is_finished();
  return broken();
}

// --- the end

void Output::remove_temporary() {
  if (!in_place_ && !keeps_older_ && check_still_named().ok()) ::unlink(temporary_path().c_str());
}

/// Forget everything that would be waited for, written or removed: the parent does that.
void Output::leave_to_parent() {
  (void)file_.release();
  (void)tail_.release();
  (void)storage_.release();
  (void)commit_.release();
}

Status Output::close(bool keep, const RankNumbers& along) {
  if (in_forked_child()) {
    const Status refused = broken();
    leave_to_parent();
    return refused;
  }
  Status finished;
  if (comm_->is_root() && is_open()) {
    const Status committed = finish_commit_at_root();
    if (keep) finished = committed;
    if (keep && finished.ok() && broken_.ok() && (in_place_ || keeps_older_))
      finished = file_->close();
    file_.reset();
    remove_temporary();
  }
  committer_.end();
  storage_.reset();
  nodes_lock_.release();  // From here on only rank 0 writes, and it closes last.
  finished = comm_->agree(finished, along);
  refresh_file_on_nodes(*comm_, path_);  // A later reader sees all nodes' bytes.
  // Release the lock before the collective cleanup: a rank whose close() has returned may reopen
  // the file without the other ranks.
  lock_.release();
  tail_.reset();
  return finished;
}

void Output::leave() {
  (void)wait_for_commit();
  committer_.end();
  file_.reset();
  storage_.reset();
}

bool Output::abandon() {
  if (comm_ == nullptr || !is_open()) return !commit_pending_;
  if (in_forked_child()) {
    leave_to_parent();
    return false;
  }
  const bool committed = wait_for_commit() ? commit_->ok() : !commit_pending_;
  committer_.end();
  if (tail_ != nullptr) tail_->abandon();
  file_.reset();
  if (comm_->is_root()) remove_temporary();
  storage_.reset();
  nodes_lock_.release();
  lock_.release();
  return committed;
}

}  // namespace tailrace
