// Recovery, in the order in which a crash can have happened: journal, superblock, length,
// leftovers.
//
//   journal complete  -> write its entries again -> remove it        (then look at the file)
//   journal torn      -> remove it: the file was not touched in place
//   journal foreign   -> remove it: the file has been replaced since
//   mark "open for write" -> clear;  bytes behind the end -> cut off;  too short -> damaged
//   FILE.partial readable and FILE absent -> rename;  unreadable -> remove

#include "hdf5/recover.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <span>

#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/superblock.hpp"

namespace tailrace {
namespace {

/// User blocks are powers of two from 512 on; nobody uses one beyond this.
constexpr std::uint64_t user_block_max = 1ULL << 30;

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string quoted(const std::string& path) { return "\"" + path + "\""; }

/// An open file with whole reads and writes.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path, bool writable)
      : path_(path), fd_(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)) {
    errno_ = fd_ < 0 ? errno : 0;
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  Status opened() const { return fd_ >= 0 ? Status() : status_from_errno(errno_, quoted(path_)); }
  std::uint64_t n_bytes() const {
    struct stat info {};
    return ::fstat(fd_, &info) == 0 ? std::uint64_t(info.st_size) : 0;
  }
  /// As many bytes as there are.
  std::vector<std::byte> read(std::uint64_t address, std::uint64_t n) const {
    const std::uint64_t end = n_bytes();
    std::vector<std::byte> bytes(address < end ? std::min(n, end - address) : 0);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(fd_, bytes.data() + done, bytes.size() - done, off_t(address + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += std::size_t(got);
    }
    bytes.resize(done);
    return bytes;
  }
  Status write(std::uint64_t address, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), off_t(address));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return status_from_errno(n == 0 ? ENOSPC : errno, quoted(path_));
      bytes = bytes.subspan(std::size_t(n));
      address += std::uint64_t(n);
    }
    return Status();
  }
  Status resize(std::uint64_t n_bytes) const {
    return ::ftruncate(fd_, off_t(n_bytes)) == 0 ? Status()
                                                 : status_from_errno(errno, quoted(path_));
  }
  Status sync() const {
    return ::fsync(fd_) == 0 ? Status() : status_from_errno(errno, quoted(path_));
  }

 private:
  std::string path_;
  int fd_;
  int errno_ = 0;
};

/// Whether somebody holds a lock on the file, as every rank of a job does that writes it.
bool in_use(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

/// One look at one output file.
class Recovery {
 public:
  Recovery(std::string path, bool apply)
      : path_(std::move(path)), partial_(path_ + ".partial"), apply_(apply) {}

  Result<RecoverReport> run() {
    const bool there = file_exists(path_);
    const std::string journal = journal_path_of(path_);
    if (!there && !file_exists(partial_)) {
      return Status(Code::not_found,
                    "file " + quoted(path_) + " is not there, nor is " + quoted(partial_));
    }
    for (const std::string& name : {path_, partial_}) {
      if (!in_use(name)) continue;
      const std::string sentence = quoted(name) + " is open in a program that is still running";
      if (apply_) return Status(Code::io_error, sentence + "; nothing was changed");
      found(sentence + ".");
    }
    if (there) {
      if (file_exists(journal)) TAILRACE_TRY(look_at_journal(journal));
      if (!journal_pending_) TAILRACE_TRY(look_at_file());
    }
    if (file_exists(partial_)) TAILRACE_TRY(look_at_partial(there));
    report_.applied = apply_ && !report_.actions.empty();
    return std::move(report_);
  }

 private:
  void found(std::string sentence) { report_.findings.push_back(std::move(sentence)); }
  void does(std::string sentence) { report_.actions.push_back(std::move(sentence)); }
  void set_state(FileState state) { report_.state = std::max(report_.state, state); }

  Status look_at_journal(const std::string& journal_path);
  Status look_at_file();
  Status look_at_superblock(const OpenFile& file, const Superblock& superblock);
  void name_lost_datasets(std::uint64_t n_bytes);
  Status look_at_partial(bool file_there);

  std::string path_;
  std::string partial_;
  bool apply_;
  bool journal_pending_ = false;  ///< Found but not replayed: the file cannot be judged yet.
  RecoverReport report_;
};

/// The superblock wherever HDF5 would look for it.
Result<Superblock> find_superblock(const OpenFile& file) {
  const std::uint64_t end = file.n_bytes();
  for (std::uint64_t at = 0; at < end && at <= user_block_max; at = at == 0 ? 512 : at * 2) {
    const std::vector<std::byte> bytes = file.read(at, superblock_bytes_max);
    if (has_hdf5_signature(bytes)) return parse_superblock(bytes, at);
  }
  return Status(Code::corrupt, "no HDF5 signature");
}

bool witnesses_agree(const OpenFile& file, const Journal& journal) {
  return std::all_of(journal.witnesses.begin(), journal.witnesses.end(),
                     [&file](const JournalWitness& witness) {
                       const auto bytes = file.read(witness.address, witness.n_bytes);
                       return bytes.size() == witness.n_bytes && lookup3(bytes) == witness.sum;
                     });
}

Status Recovery::look_at_journal(const std::string& journal_path) {
  const Result<Journal> journal = read_journal(journal_path);
  if (!journal.ok() && journal.status().code() != Code::corrupt) return journal.status();
  const OpenFile file(path_, apply_);
  TAILRACE_TRY(file.opened());
  if (!journal.ok() || !witnesses_agree(file, *journal)) {
    found(journal.ok()
              ? "The journal " + quoted(journal_path) + " belongs to an earlier file of this name."
              : "The journal " + quoted(journal_path) +
                    " is incomplete: the commit had not begun to change the file.");
    does("Remove the journal.");
    return apply_ ? remove_journal(journal_path) : Status();
  }
  set_state(FileState::repairable);
  found("A commit was interrupted while it changed " + std::to_string(journal->entries.size()) +
        " places of the file; its journal " + quoted(journal_path) + " is complete.");
  does("Complete the commit from the journal and remove the journal.");
  if (!apply_) {
    journal_pending_ = true;
    return Status();
  }
  if (file.n_bytes() < journal->file_bytes) TAILRACE_TRY(file.resize(journal->file_bytes));
  for (const JournalEntry& entry : journal->entries) {
    TAILRACE_TRY(file.write(entry.address, entry.bytes));
  }
  TAILRACE_TRY(file.sync());
  return remove_journal(journal_path);
}

Status Recovery::look_at_file() {
  const OpenFile file(path_, apply_);
  TAILRACE_TRY(file.opened());
  const Result<Superblock> superblock = find_superblock(file);
  if (!superblock.ok()) {
    return superblock.status().within("file " + quoted(path_) + " is not an HDF5 file we can read");
  }
  TAILRACE_TRY(look_at_superblock(file, *superblock));
  if (report_.state == FileState::damaged) return Status();
  if (!apply_ && superblock->open_for_write) return Status();  // HDF5 would refuse it still.
  Result<std::unique_ptr<ChunkIndexReader>> reader = ChunkIndexReader::open(path_);
  if (!reader.ok()) {
    set_state(FileState::damaged);
    found("HDF5 cannot open the file: " + reader.status().message());
    return Status();
  }
  const Result<std::vector<std::string>> datasets = (*reader)->dataset_paths();
  if (!datasets.ok()) {
    set_state(FileState::damaged);
    found("Not all objects can be read: " + datasets.status().message());
    return Status();
  }
  found("The file opens and has " + std::to_string(datasets->size()) + " datasets.");
  return Status();
}

Status Recovery::look_at_superblock(const OpenFile& file, const Superblock& superblock) {
  const std::uint64_t n_bytes = file.n_bytes();
  if (!superblock.checksum_good) {
    set_state(FileState::damaged);
    found("The superblock's checksum is wrong: its last change was cut off half-way.");
    return Status();
  }
  if (n_bytes < superblock.end_of_file) {
    set_state(FileState::damaged);
    found("The file has " + std::to_string(n_bytes) + " bytes, its superblock says " +
          std::to_string(superblock.end_of_file) + ": its end is missing.");
    name_lost_datasets(n_bytes);
    return Status();
  }
  if (superblock.open_for_write) {
    set_state(FileState::repairable);
    found("The superblock says that a writer has the file open; readers refuse it.");
    does("Clear the mark in the superblock.");
    if (apply_) {
      std::vector<std::byte> bytes = file.read(superblock.address, superblock.n_bytes);
      clear_open_for_write(bytes);
      TAILRACE_TRY(file.write(superblock.address, bytes));
      TAILRACE_TRY(file.sync());
    }
  }
  if (n_bytes > superblock.end_of_file) {
    const std::string surplus = std::to_string(n_bytes - superblock.end_of_file);
    found(surplus +
          " bytes of a step that was never committed lie behind the file's end; they do "
          "no harm.");
    does("Cut off the " + surplus + " bytes behind the end.");
    if (apply_) TAILRACE_TRY(file.resize(superblock.end_of_file));
  }
  return Status();
}

void Recovery::name_lost_datasets(std::uint64_t n_bytes) {
  Result<std::unique_ptr<ChunkIndexReader>> reader =
      ChunkIndexReader::open(path_, ChunkIndexReader::Truncated::accept);
  const Result<std::vector<std::string>> datasets =
      reader.ok() ? (*reader)->dataset_paths() : Result<std::vector<std::string>>(reader.status());
  if (!datasets.ok()) {
    found("What the missing part held cannot be told: " + datasets.status().message());
    return;
  }
  for (const std::string& dataset : *datasets) {
    const Result<std::vector<StoredChunk>> chunks = (*reader)->read(dataset);
    if (!chunks.ok()) {
      found("Dataset " + quoted(dataset) +
            " cannot be read: its metadata was in the missing part.");
      continue;
    }
    const auto lost = std::count_if(chunks->begin(), chunks->end(), [n_bytes](const auto& chunk) {
      return chunk.extent.address + chunk.extent.encoded_bytes > n_bytes;
    });
    if (lost > 0) {
      found("Dataset " + quoted(dataset) + " has lost " + std::to_string(lost) + " of its " +
            std::to_string(chunks->size()) + " chunks.");
    }
  }
}

Status Recovery::look_at_partial(bool file_there) {
  const bool readable = ChunkIndexReader::open(partial_).ok();
  if (readable && file_there) {
    found("A job committed steps to " + quoted(partial_) + " but died before it replaced " +
          quoted(path_) + ". Both files are whole; keep the one you want.");
    return Status();
  }
  if (readable) {
    set_state(FileState::repairable);
    found("A job committed steps to " + quoted(partial_) + " but died before it renamed the file.");
    does("Rename it to " + quoted(path_) + ".");
    if (apply_ && std::rename(partial_.c_str(), path_.c_str()) != 0) {
      return status_from_errno(errno, quoted(partial_));
    }
    return Status();
  }
  if (!file_there) set_state(FileState::absent);
  found("A job died before its first commit and left " + quoted(partial_) + " with " +
        std::to_string(OpenFile(partial_, false).n_bytes()) +
        " bytes; they have no index and cannot be read.");
  does("Remove " + quoted(partial_) + ".");
  if (apply_ && ::unlink(partial_.c_str()) != 0) {
    return status_from_errno(errno, quoted(partial_));
  }
  return Status();
}

}  // namespace

Result<RecoverReport> inspect_and_recover(const std::string& path, bool apply) {
  return Recovery(path, apply).run();
}

}  // namespace tailrace
