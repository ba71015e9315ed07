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
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "core/file_limit.hpp"
#include "core/utf8.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/noting_driver.hpp"
#include "hdf5/superblock.hpp"
#include "hdf5/writer_lock.hpp"

namespace tailrace {
namespace {

/// Delay between two checks of a live writer's commit, which takes a few writes and syncs.
constexpr std::chrono::milliseconds nap{10};

/// Largest user block searched for. User blocks are powers of two from 512 on; larger ones are not
/// in use.
constexpr std::uint64_t kUserBlockMax = 1ULL << 30;

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string in_quotes(const std::string& path) { return "\"" + path + "\""; }

/// An open file with complete reads and writes. Only regular files are opened; others could block
/// forever.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path, bool writable)
      : path_(path),
        at_(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC)) {
    struct stat info {};
    if (!at_.open() || ::fstat(at_.fd(), &info) != 0) {
      opened_ = status_from_errno(errno, in_quotes(path_));
    } else if (!S_ISREG(info.st_mode)) {
      opened_ = Status(Code::invalid_argument, in_quotes(path_) + " is not a regular file");
    }
  }

  const std::string& path() const { return path_; }
  Status opened() const { return opened_; }
  std::uint64_t n_bytes() const {
    struct stat info {};
    return ::fstat(at_.fd(), &info) == 0 ? std::uint64_t(info.st_size) : 0;
  }
  /// Read at most `n` bytes, as many as the file has.
  std::vector<std::byte> read(std::uint64_t address, std::uint64_t n) const {
    const std::uint64_t end = n_bytes();
    std::vector<std::byte> bytes(address < end ? std::min(n, end - address) : 0);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(at_.fd(), bytes.data() + done, bytes.size() - done, off_t(address + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += std::size_t(got);
    }
    bytes.resize(done);
    return bytes;
  }
  Status write(std::uint64_t address, std::span<const std::byte> bytes) const {
    return write_fully(at_.fd(), bytes.data(), bytes.size(), address, in_quotes(path_));
  }
  Status resize(std::uint64_t n_bytes) const {
    const FileLimitScope scope;
    return ::ftruncate(at_.fd(), off_t(n_bytes)) == 0 ? Status()
                                                      : status_from_errno(errno, in_quotes(path_));
  }
  Status sync() const {
    return ::fsync(at_.fd()) == 0 ? Status() : status_from_errno(errno, in_quotes(path_));
  }
  /// Keep every job from the file for as long as this is open. @returns false if a job that writes
  /// the file is running: every rank of it holds a lock
  bool lock() const { return ::flock(at_.fd(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

 private:
  std::string path_;
  Descriptor at_;
  Status opened_;
};

/// Serves HDF5's reads without the lock of HDF5's own driver, since recovery itself holds the
/// file's lock.
class UnlockedFile final : public NotedFile {
 public:
  explicit UnlockedFile(const OpenFile& file) : file_(file) { end_of_file = file.n_bytes(); }
  Status fill(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::vector<std::byte> there = file_.read(address, bytes.size());
    const auto rest = std::copy(there.begin(), there.end(), bytes.begin());
    std::fill(rest, bytes.end(), std::byte{0});
    return Status();
  }

 private:
  const OpenFile& file_;
};

/// One inspection of one output file.
class Recovery {
 public:
  Recovery(std::string path, bool apply)
      : path_(std::move(path)), partial_(partial_path_of(path_)), apply_(apply) {}

  Result<RecoverReport> run() {
    const bool there = file_exists(path_);
    // A client (GlusterFS, on other nodes) may still know the file by its former name, although it
    // has only one link. Two links are left by a job that died while it renamed the file.
    struct stat facts {};
    const bool renamed =
        same_file(path_, partial_) && ::stat(path_.c_str(), &facts) == 0 && facts.st_nlink == 1;
    const bool partial_there = file_exists(partial_) && !renamed;
    if (!there && !partial_there) {
      TAILRACE_TRY(check_not_url(path_));
      return Status(Code::not_found, "file " + in_quotes(path_) + " does not exist, nor does " +
                                         in_quotes(partial_));
    }
    std::vector<std::unique_ptr<OpenFile>> locked;  // Held to the end, so that no job begins.
    for (const std::string& name : {path_, partial_}) {
      if (name == path_ ? !there : !partial_there) continue;
      locked.push_back(std::make_unique<OpenFile>(name, false));
      TAILRACE_TRY(locked.back()->opened());
      if (locked.back()->lock()) continue;
      const std::string sentence = in_quotes(name) + " is open in a running program";
      if (apply_) return Status(Code::io_error, sentence + "; nothing was changed");
      found(sentence + ".");
    }
    if (there) {
      TAILRACE_TRY(look_at_journal(path_));
      if (!journal_pending_) TAILRACE_TRY(look_at_file(path_));
    }
    if (partial_there) TAILRACE_TRY(look_at_partial(there));
    report_.applied = apply_ && !report_.actions.empty();
    return std::move(report_);
  }

 private:
  void found(std::string sentence) { report_.findings.push_back(std::move(sentence)); }
  void does(std::string sentence) { report_.actions.push_back(std::move(sentence)); }
  void set_state(FileState state) { report_.state = std::max(report_.state, state); }

  Status look_at_journal(const std::string& path);
  Status look_at_file(const std::string& path);
  Status look_at_contents(const std::string& path, std::uint64_t end_of_file);
  Status look_at_superblock(const OpenFile& file, const Superblock& superblock);
  Status look_behind_end(const OpenFile& file, const Superblock& superblock);
  void name_lost_datasets(const std::string& path, std::uint64_t n_bytes);
  Status look_at_partial(bool file_there);

  std::string path_;
  std::string partial_;
  bool apply_;
  bool journal_pending_ = false;  ///< Found but not replayed: the file cannot be judged yet.
  RecoverReport report_;
};

/// Find the superblock at any address where HDF5 would look for it.
Result<Superblock> find_superblock(const OpenFile& file) {
  const std::uint64_t end = file.n_bytes();
  for (std::uint64_t at = 0; at < end && at <= kUserBlockMax; at = at == 0 ? 512 : at * 2) {
    const std::vector<std::byte> bytes = file.read(at, kSuperblockBytesMax);
    if (has_hdf5_signature(bytes)) return parse_superblock(bytes, at);
  }
  return Status(Code::corrupt, "no HDF5 signature");
}

/// True if the file contains the bytes that the journal's witnesses record. A journal without
/// witnesses belongs to no file: it must not be replayed into the file that now has the name.
bool belongs_to(const OpenFile& file, const Journal& journal) {
  return !journal.witnesses.empty() &&
         std::all_of(journal.witnesses.begin(), journal.witnesses.end(),
                     [&file](const JournalWitness& witness) {
                       const auto bytes = file.read(witness.address, witness.n_bytes);
                       return bytes.size() == witness.n_bytes && lookup3(bytes) == witness.sum;
                     });
}

Status Recovery::look_at_journal(const std::string& path) {
  const std::string journal_path = journal_path_of(path);
  if (!file_exists(journal_path)) return Status();
  const Result<Journal> journal = read_journal(journal_path);
  if (!journal.ok() && journal.status().code() != Code::corrupt) return journal.status();
  const OpenFile file(path, apply_);
  TAILRACE_TRY(file.opened());
  if (!journal.ok() || !belongs_to(file, *journal)) {
    found(journal.ok() ? "The journal " + in_quotes(journal_path) +
                             " belongs to an earlier file of this name."
                       : "The journal " + in_quotes(journal_path) +
                             " is incomplete: the commit had not started to change the file.");
    does("Remove the journal.");
    return apply_ ? remove_journal(journal_path) : Status();
  }
  set_state(FileState::repairable);
  found("A commit was interrupted while it changed " + counted(journal->entries.size(), "place") +
        " of the file; its journal " + in_quotes(journal_path) + " is complete.");
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

Status Recovery::look_at_file(const std::string& path) {
  const OpenFile file(path, apply_);
  TAILRACE_TRY(file.opened());
  const Result<Superblock> superblock = find_superblock(file);
  if (!superblock.ok()) {
    return superblock.status().within("file " + in_quotes(path) + " cannot be read as HDF5");
  }
  TAILRACE_TRY(look_at_superblock(file, *superblock));
  if (report_.state == FileState::damaged) return Status();
  // HDF5 refuses a file marked "open for write".
  if (apply_ || !superblock->open_for_write) {
    TAILRACE_TRY(look_at_contents(path, superblock->end_of_file));
  }
  // Bytes to which a damaged file may refer are not truncated.
  return report_.state == FileState::damaged ? Status() : look_behind_end(file, *superblock);
}

/// Read all metadata of the file: only then may it be reported as complete.
/// @param end_of_file  end that the superblock states; bytes written later may lie after it.
Status Recovery::look_at_contents(const std::string& path, std::uint64_t end_of_file) {
  const auto damaged = [&](const std::string& sentence) {
    set_state(FileState::damaged);
    found(sentence);
    return Status();
  };
  Result<std::unique_ptr<ChunkIndexReader>> reader = ChunkIndexReader::open(path);
  if (!reader.ok()) return damaged("HDF5 cannot open the file: " + reader.status().message());
  const Result<std::vector<std::string>> datasets = (*reader)->dataset_paths();
  if (datasets.status().code() == Code::unsupported) {
    found("The file opens; its contents were not checked: " + datasets.status().message() + ".");
    return Status();
  }
  if (!datasets.ok()) {
    return damaged("Not all objects can be read: " + datasets.status().message());
  }
  std::uint64_t n_chunks = 0;
  std::uint64_t n_not_listed = 0;
  for (const std::string& dataset : *datasets) {
    const Result<std::vector<StoredChunk>> chunks = (*reader)->read(dataset);
    if (chunks.status().code() == Code::unsupported) {
      found("The chunks of dataset " + in_quotes(dataset) +
            " were not checked: " + chunks.status().message() + ".");
      ++n_not_listed;
      continue;
    }
    if (!chunks.ok()) {
      return damaged("The chunks of dataset " + in_quotes(dataset) +
                     " cannot be listed: " + chunks.status().message());
    }
    n_chunks += chunks->size();
    const auto behind = std::ranges::find_if(*chunks, [&](const StoredChunk& chunk) {
      return chunk.extent.address + chunk.extent.encoded_bytes > end_of_file;
    });
    if (behind != chunks->end()) {
      return damaged("A chunk of dataset " + in_quotes(dataset) + " lies at address " +
                     std::to_string(behind->extent.address) + ", beyond the end that the " +
                     "superblock states, " + std::to_string(end_of_file) + ".");
    }
  }
  const std::size_t n_listed = datasets->size() - n_not_listed;
  found("The file opens; " +
        (n_not_listed > 0 ? std::to_string(n_listed) + " of its datasets"
         : n_listed == 1  ? "its dataset"
                          : "all of its " + std::to_string(n_listed) + " datasets") +
        " and " + counted(n_chunks, "chunk") + " are listed.");
  return Status();
}

Status Recovery::look_at_superblock(const OpenFile& file, const Superblock& superblock) {
  const std::uint64_t n_bytes = file.n_bytes();
  if (!superblock.checksum_good) {
    set_state(FileState::damaged);
    found("The superblock's checksum is wrong: its last change was interrupted.");
    return Status();
  }
  if (n_bytes < superblock.end_of_file) {
    set_state(FileState::damaged);
    found("The file has " + std::to_string(n_bytes) + " bytes, its superblock states " +
          std::to_string(superblock.end_of_file) + ": its end is missing.");
    name_lost_datasets(file.path(), n_bytes);
    return Status();
  }
  if (superblock.open_for_write) {
    set_state(FileState::repairable);
    found("The superblock is marked as open for writing, so readers refuse the file.");
    does("Clear the mark in the superblock.");
    if (apply_) {
      std::vector<std::byte> bytes = file.read(superblock.address, superblock.n_bytes);
      clear_open_for_write(bytes);
      TAILRACE_TRY(file.write(superblock.address, bytes));
      TAILRACE_TRY(file.sync());
    }
  }
  return Status();
}

Status Recovery::look_behind_end(const OpenFile& file, const Superblock& superblock) {
  const std::uint64_t n_bytes = file.n_bytes();
  if (n_bytes <= superblock.end_of_file) return Status();
  const std::string surplus = std::to_string(n_bytes - superblock.end_of_file);
  found(surplus +
        " bytes of a step that was never committed lie beyond the file's end; they do no harm.");
  does("Cut off the " + surplus + " bytes beyond the end.");
  return apply_ ? file.resize(superblock.end_of_file) : Status();
}

void Recovery::name_lost_datasets(const std::string& path, std::uint64_t n_bytes) {
  Result<std::unique_ptr<ChunkIndexReader>> reader =
      ChunkIndexReader::open(path, ChunkIndexReader::Truncated::accept);
  const Result<std::vector<std::string>> datasets =
      reader.ok() ? (*reader)->dataset_paths() : Result<std::vector<std::string>>(reader.status());
  if (!datasets.ok()) {
    found("The contents of the missing part are unknown: " + datasets.status().message());
    return;
  }
  for (const std::string& dataset : *datasets) {
    const Result<std::vector<StoredChunk>> chunks = (*reader)->read(dataset);
    if (!chunks.ok()) {
      found("Dataset " + in_quotes(dataset) +
            " cannot be read: its metadata was in the missing part.");
      continue;
    }
    const auto lost = std::count_if(chunks->begin(), chunks->end(), [n_bytes](const auto& chunk) {
      return chunk.extent.address + chunk.extent.encoded_bytes > n_bytes;
    });
    if (lost > 0) {
      found("Dataset " + in_quotes(dataset) + " has lost " + std::to_string(lost) + " of its " +
            counted(chunks->size(), "chunk") + ".");
    }
  }
}

Status Recovery::look_at_partial(bool file_there) {
  const Result<LeftFile> left = look_at_left_file(partial_);
  if (!left.ok()) {
    if (!file_there) {
      const bool foreign = left.status().code() == Code::already_exists;
      return Status(foreign ? Code::not_found : left.status().code(),
                    "file " + in_quotes(path_) + " does not exist: " + left.status().message());
    }
    found(left.status().message() + ".");
    return Status();
  }
  if (*left == LeftFile::committed) {
    TAILRACE_TRY(look_at_journal(partial_));
    if (!journal_pending_) TAILRACE_TRY(look_at_file(partial_));
    if (report_.state == FileState::damaged || journal_pending_) return Status();
    if (records_progress(partial_)) {
      found("A concatenation died before it had written all of " + in_quotes(partial_) +
            "; run it again with --resume to continue.");
      return Status();
    }
    if (file_there) {
      found("A job committed steps to " + in_quotes(partial_) + " but died before it replaced " +
            in_quotes(path_) + ". Both files are whole; keep the one you want.");
      return Status();
    }
    set_state(FileState::repairable);
    found("A job committed steps to " + in_quotes(partial_) +
          " but died before it renamed the file.");
    does("Rename it to " + in_quotes(path_) + ".");
    return apply_ ? give_name(partial_, path_, AtName::nothing, true) : Status();
  }
  if (!file_there) set_state(FileState::absent);
  found("A job died before its first commit and left " + in_quotes(partial_) + " with " +
        std::to_string(OpenFile(partial_, false).n_bytes()) +
        " bytes; they have no index and cannot be read.");
  does("Remove " + in_quotes(partial_) + ".");
  if (apply_ && ::unlink(partial_.c_str()) != 0) {
    return status_from_errno(errno, "cannot remove " + in_quotes(partial_));
  }
  return Status();
}

}  // namespace

bool records_progress(const std::string& path) {
  const Hdf5Scope scope;
  const OpenFile file(path, false);
  if (!file.opened().ok()) return false;
  UnlockedFile unlocked(file);
  const Result<Hdf5Id> opened = open_noted(unlocked, path);
  return opened.ok() && H5Aexists(opened->get(), kConcatProgressAttribute) > 0;
}

namespace {

/// Collects the datasets with an unlimited first dimension, by its extent.
class GrowingDatasets final : public Hdf5Visitor {
 public:
  Status dataset(hid_t dataset, const std::string& path) override {
    const Hdf5Id space(H5Dget_space(dataset));
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    std::array<hsize_t, H5S_MAX_RANK> most{};
    const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), most.data());
    if (rank > 0 && most[0] == H5S_UNLIMITED) by_extent[extents[0]].push_back(path);
    return Status();
  }
  std::map<std::uint64_t, std::vector<std::string>> by_extent;
};

/// The newest link in the root group; empty if the group does not track that, or has no links.
std::string last_link(hid_t file) {
  const auto ask = [&](char* name, std::size_t n) {
    return H5Lget_name_by_idx(file, "/", H5_INDEX_CRT_ORDER, H5_ITER_DEC, 0, name, n, H5P_DEFAULT);
  };
  const ssize_t n = ask(nullptr, 0);
  std::string name(n > 0 ? static_cast<std::size_t>(n) + 1 : 0, '\0');
  if (name.empty() || ask(name.data(), name.size()) != n) return "";
  name.pop_back();
  return name;
}

}  // namespace

std::string last_entries_text(const std::string& path) {
  const Hdf5Scope scope;
  const OpenFile file(path, false);
  if (!file.opened().ok()) return "";
  UnlockedFile unlocked(file);
  const Result<Hdf5Id> opened = open_noted(unlocked, path);
  GrowingDatasets growing;
  if (!opened.ok() || !walk_hdf5(opened->get(), growing).ok()) return "";
  if (growing.by_extent.empty()) {
    const std::string last = last_link(opened->get());
    return last.empty() ? "" : "The root group's last member is " + in_quotes("/" + last) + ".";
  }
  const auto& [least, shortest] = *growing.by_extent.begin();
  std::string text;
  std::size_t n_all = 0;
  for (const auto& [extent, paths] : growing.by_extent) {
    n_all += paths.size();
    text += (text.empty() ? "" : ", ") + std::to_string(extent) + " in " + in_quotes(paths.front());
    if (paths.size() > 1) text += " and " + std::to_string(paths.size() - 1) + " more";
  }
  const std::string whole = least == 0 ? "; no entry is in all of them."
                                       : "; the last entry that is in all of them is number " +
                                             std::to_string(least - 1) + ", counted from 0.";
  return "Entries of the datasets that grow (" + std::to_string(n_all) + "): " + text + whole;
}

Status cut_off_uncommitted(const std::string& path) {
  const OpenFile file(path, true);
  TAILRACE_TRY(file.opened());
  const Result<Superblock> superblock = find_superblock(file);
  if (!superblock.ok()) return superblock.status().within("file " + in_quotes(path));
  const std::uint64_t end = superblock->end_of_file;
  return file.n_bytes() > end ? file.resize(end) : Status();
}

// An incomplete journal has changed nothing, but its writer may be completing it. A journal that
// belongs to another file is irrelevant for this one.
Status check_not_half_committed(const std::string& path, std::chrono::milliseconds patience) {
  const Result<std::string> target = resolve_links(path);
  if (!target.ok()) return Status();  // Opening the file reports this error.
  const std::string journal_path = journal_path_of(*target);
  std::string output = *target;  // Name of the lock's file; the same for an unfinished file.
  if (output.ends_with(kPartialSuffix)) output.resize(output.size() - std::strlen(kPartialSuffix));
  for (; file_exists(journal_path); patience -= nap) {
    // Read before the journal: the writer may end meanwhile.
    const std::string writer = writer_of(output);
    const Result<Journal> journal = read_journal(journal_path);
    const OpenFile file(*target, false);
    if (journal.status().code() == Code::not_found || !file.opened().ok()) return Status();
    const bool torn = journal.status().code() == Code::corrupt;
    if (!journal.ok() && !torn) return journal.status();
    if (torn ? writer.empty() : !belongs_to(file, *journal)) return Status();
    if (writer.empty()) {
      return Status(Code::corrupt,
                    in_quotes(path) + " was left incomplete by a job that died during a commit; " +
                        in_quotes(journal_path) + " holds the rest; \"tailrace recover --apply " +
                        output + "\" completes it");
    }
    if (patience <= patience.zero()) {
      return Status(Code::io_error, in_quotes(path) + " is locked by a commit of " + writer +
                                        ", which has not ended; try again later");
    }
    std::this_thread::sleep_for(nap);
  }
  return Status();
}

Result<RecoverReport> inspect_and_recover(const std::string& path, bool apply) {
  return Recovery(path, apply).run();
}

void silence_hdf5() {
  const std::lock_guard lock(hdf5_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace tailrace
