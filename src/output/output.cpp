// Creating, opening, committing and ending the output: rank 0 first, then the others, each step
// agreed.

#include "output/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "exec/comm_factory.hpp"
#include "hdf5/journal.hpp"

namespace tailrace {
namespace {

/// Rename `from` to `to`, durably.
Status rename_durably(const std::string& from, const std::string& to, bool sync) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return status_from_errno(errno, "renaming \"" + from + "\" to \"" + to + "\"");
  }
  if (!sync) return Status();
  const std::size_t slash = to.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : to.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return status_from_errno(errno, "opening folder \"" + folder + "\"");
  const int synced = ::fsync(descriptor);
  const Status failure = status_from_errno(errno, "sync of folder \"" + folder + "\"");
  ::close(descriptor);
  return synced == 0 ? Status() : failure;
}

Hdf5File::Settings metadata_settings(const std::string& path, const FileOptions& options) {
  Hdf5File::Settings settings;
  settings.sync = options.sync;
  settings.journal = options.journal;
  settings.journal_path = journal_path_of(path);
  settings.expected_steps = 0;  // each would cost 35 bytes in every file; commits are safe without
  settings.expected_root_links = options.expected_root_links;
  return settings;
}

Status refuse_existing(const std::string& path, bool replace) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return Status();
  if (S_ISDIR(facts.st_mode)) return Status(Code::invalid_argument, "\"" + path + "\" is a folder");
  if (replace) return Status();
  return Status(Code::already_exists, "\"" + path + "\" exists; option replace=on replaces it");
}

Hdf5File::Allocate allocator(Tail* tail) {
  return [tail](std::uint64_t n_bytes) { return tail->claim(n_bytes); };
}

}  // namespace

Status Output::agree(Comm& comm, const std::string& path, const FileOptions& options, Engine engine,
                     const std::string& more) {
  const std::string text = "path " + path + "\n" + agreed_text(options, engine) + more;
  TAILRACE_TRY(comm.agree(agree_on_text(comm, "the file", text)));
  return comm.agree(check_served(options, engine));
}

// --- opening

void Output::start(Comm& comm, const std::string& path, const FileOptions& options) {
  comm_ = &comm;
  path_ = path;
  options_ = options;
}

/// Open the storage on this rank. @returns this rank's own status.
Status Output::open_storage(const std::string& path, bool create) {
  Result<std::unique_ptr<Storage>> storage =
      options_.open_storage ? options_.open_storage(path, create)
                            : open_posix_storage(path, create, options_.direct_io);
  if (storage.ok()) storage_ = std::move(*storage);
  return storage.status();
}

Status Output::make_tail() {
  Result<std::unique_ptr<Tail>> tail = comm_->create_tail(0);
  if (tail.ok()) tail_ = std::move(*tail);
  return comm_->agree(tail.status());
}

Status Output::create(Comm& comm, const std::string& path, const FileOptions& options) {
  start(comm, path, options);
  Status opened;
  if (comm.is_root()) {
    opened = refuse_existing(path, options.replace);
    if (opened.ok()) opened = open_storage(temporary_path(), true);
  }
  TAILRACE_TRY(comm.agree(opened));
  if (!comm.is_root()) opened = open_storage(temporary_path(), false);
  TAILRACE_TRY(comm.agree(opened));
  TAILRACE_TRY(make_tail());
  Status created;
  if (comm.is_root()) {
    Result<std::unique_ptr<Hdf5File>> file =
        Hdf5File::create(*storage_, allocator(tail_.get()), metadata_settings(path, options));
    created = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  TAILRACE_TRY(comm.agree(created));
  committed_end_ = tail_->end();
  return Status();
}

Status Output::open(Comm& comm, const std::string& path, const FileOptions& options) {
  start(comm, path, options);
  in_place_ = true;
  return open_at(path);
}

Status Output::resume(Comm& comm, const std::string& path, const FileOptions& options) {
  start(comm, path, options);
  return open_at(temporary_path());
}

Status Output::open_at(const std::string& path) {
  TAILRACE_TRY(comm_->agree(open_storage(path, false)));
  TAILRACE_TRY(make_tail());
  Status opened;
  if (comm_->is_root()) {
    Result<std::unique_ptr<Hdf5File>> file = Hdf5File::open(
        *storage_, allocator(tail_.get()), metadata_settings(path, options_), committed_end_);
    opened = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  TAILRACE_TRY(comm_->agree(opened));
  tail_->reset(committed_end_);
  return Status();
}

// --- committing

Status Output::break_off(const Status& failure, const std::string& consequence) {
  broken_ = failure.within(consequence);
  return broken_;
}

Status Output::put_in_place() {
  TAILRACE_TRY(rename_durably(temporary_path(), path_, options_.sync));
  return remove_journal(journal_path_of(path_));
}

Status Output::commit_at_root() {
  TAILRACE_TRY(file_->commit());
  return in_place_ ? Status() : put_in_place();
}

Status Output::start_commit_at_root(
    std::function<Status(const std::function<Status()>& write)> around) {
  Result<std::shared_ptr<PendingCommit>> pending = file_->prepare_commit();
  if (!pending.ok()) return pending.status();
  const auto write = [this, commit = *pending, first = !in_place_] {
    TAILRACE_TRY(commit->write());
    return first ? put_in_place() : Status();
  };
  commit_ =
      std::async(std::launch::async, [around = std::move(around), write] { return around(write); });
  return Status();
}

Status Output::finish_commit() {
  if (!commit_pending_) return Status();
  commit_pending_ = false;
  Status done;
  if (comm_->is_root()) {
    done = commit_.get();
    const Status finished = file_->finish_commit();
    if (done.ok()) done = finished;
  }
  done = comm_->agree(done);
  in_place_ = in_place_ || done.ok();
  return done.ok() ? broken_ : break_off(done, "the file stays at its last commit");
}

// --- the end

void Output::remove_temporary() {
  if (!in_place_) ::unlink(temporary_path().c_str());
}

Status Output::close(bool keep) {
  Status finished;
  if (comm_->is_root() && is_open()) {
    if (commit_.valid()) commit_.wait();
    if (keep && broken_.ok() && in_place_) finished = file_->close();
    file_.reset();
    remove_temporary();
  }
  finished = comm_->agree(finished);
  storage_.reset();
  tail_.reset();
  return finished;
}

void Output::leave() {
  if (commit_.valid()) commit_.wait();
  file_.reset();
  storage_.reset();
}

void Output::abandon() {
  if (comm_ == nullptr || !is_open()) return;
  if (commit_.valid()) commit_.wait();
  if (tail_ != nullptr) tail_->abandon();
  file_.reset();
  if (comm_->is_root()) remove_temporary();
  storage_.reset();
}

}  // namespace tailrace
