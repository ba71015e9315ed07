// Acquiring, reading and judging lock files.

#include "hdf5/writer_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/mount_kind.hpp"

namespace tailrace {
namespace {

constexpr int kAttempts = 8;  // Each attempt is lost to a job that ends or takes over meanwhile.

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Start time of a process on this machine, in the kernel's ticks; a later process with the same
/// pid has another number. "0" if unknown.
std::string process_start(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // The name may contain spaces.
  if (name_end == std::string::npos) return "0";
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

/// Content of a lock file.
struct Holder {
  std::string host;
  std::string pid;
  std::string since;  ///< UTC time.
  std::string start;  ///< Result of process_start().

  static Holder here() {
    const std::string pid = std::to_string(::getpid());
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 32> since{};
    std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {host_name(), pid, since.data(), process_start(pid)};
  }
  static Holder read(int fd) {
    std::array<char, 512> text{};
    const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
    std::istringstream stream(n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "");
    std::string word;
    Holder holder;
    while (stream >> word) {
      if (word == "host") stream >> holder.host;
      if (word == "process") stream >> holder.pid;
      if (word == "since") stream >> holder.since;
      if (word == "start") stream >> holder.start;
    }
    // The file is untrusted: a pid becomes a path, and all of it appears in messages.
    return holder.is_valid() ? holder : Holder();
  }
  bool is_valid() const {
    const auto are_digits = [](const std::string& text) {
      return text.find_first_not_of("0123456789") == std::string::npos;
    };
    const auto are_shown = [](const std::string& text) {
      return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
    };
    return are_digits(pid) && are_digits(start) && are_shown(host) && are_shown(since);
  }
  std::string text() const {
    return "Written by Tailrace just now, or by a job that was killed:\nhost " + host +
           "\nprocess " + pid + "\nsince " + since + "\nstart " + start + "\n";
  }
  std::string sentence() const {
    return "another job" +
           (pid.empty() ? "" : " (process " + pid + " on " + host + ", since " + since + ")");
  }
  /// True if it was a process of this machine that has ended.
  bool is_gone() const {
    if (pid.empty() || host != host_name()) return false;
    const bool there = ::kill(static_cast<pid_t>(std::atol(pid.c_str())), 0) == 0 || errno == EPERM;
    return !there || (start != "0" && process_start(pid) != start);
  }
};

enum class Lock : std::uint8_t { taken, held, unsupported };

Lock try_lock(int fd, int kind) {
  while (::flock(fd, kind | LOCK_NB) != 0) {
    if (errno != EINTR) return errno == EWOULDBLOCK ? Lock::held : Lock::unsupported;
  }
  return Lock::taken;
}

constexpr std::chrono::milliseconds between_tries(20);

/// Open a lock file to read it. Must not block on a pipe with that name.
Descriptor look_at(const std::string& name) {
  return Descriptor(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

/// Text that processes write into FILE.lock.nodes once they have seen a lock of rank 0's node.
constexpr const char* kSeenBetweenNodes = "locks are seen between nodes\n";

/// True if a process of the job has seen, from another node, that the job's lock was held.
bool locks_were_seen(const std::string& path) {
  const Descriptor at = look_at(nodes_lock_path_of(path));
  std::array<char, 64> text{};
  const ssize_t n = at.open() ? ::pread(at.fd(), text.data(), text.size(), 0) : 0;
  return n > 0 && std::string(text.data(), static_cast<std::size_t>(n)) == kSeenBetweenNodes;
}

/// True if a process of another node holds the file. Call only while rank 0 of that job holds no
/// lock: during the test, other processes of the job could not acquire their share.
bool nodes_hold(const std::string& path) {
  const Descriptor at = look_at(nodes_lock_path_of(path));
  return at.open() && try_lock(at.fd(), LOCK_EX) == Lock::held;
}

enum class Holding : std::uint8_t {
  none,    ///< The job is dead.
  alive,   ///< The job is alive, as its lock shows.
  unknown  ///< The job ran elsewhere, and its locks are not visible here.
};

/// State of the holder that a lock file names. `lock` is the result of an attempt to lock the file.
Holding holding(int fd, Lock lock, const Holder& holder, const std::string& path) {
  if (lock == Lock::held) return Holding::alive;
  if (holder.is_gone()) return Holding::none;
  const auto would_be_seen = [&] {
    return holder.host == host_name() || mount_kind_of(fd) != MountKind::other ||
           locks_were_seen(path);
  };
  return lock == Lock::taken && would_be_seen() ? Holding::none : Holding::unknown;
}

/// Describes the holder, with advice if its state is unknown.
std::string sentence(const Holder& holder, Holding held, const std::string& path) {
  return held == Holding::alive
             ? holder.sentence()
             : holder.sentence() + " (if that job is dead, remove \"" + lock_path_of(path) + "\")";
}

/// True if the name still leads to the open file: its holder may have removed it meanwhile.
bool still_named(int fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

/// Wait until no process of an earlier job holds the file.
Status wait_for_nodes(const std::string& path, const Holder& before,
                      std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (nodes_hold(path)) {
    if (std::chrono::steady_clock::now() >= end) {
      return Status(Code::io_error,
                    "\"" + path + "\" is still being written on other nodes by " +
                        before.sentence() +
                        " that has lost its rank 0 (if all of its processes have ended, remove \"" +
                        nodes_lock_path_of(path) + "\")");
    }
    std::this_thread::sleep_for(between_tries);
  }
  ::unlink(nodes_lock_path_of(path).c_str());
  return Status();
}

/// Lock a file that we have just created. A process that inspects it meanwhile holds it briefly.
Lock lock_what_was_made(int fd) {
  Lock lock = try_lock(fd, LOCK_EX);
  for (int i = 0; lock == Lock::held && i < kAttempts; ++i) {
    std::this_thread::sleep_for(between_tries);
    lock = try_lock(fd, LOCK_EX);
  }
  return lock;
}

/// Write the current holder into the lock file.
Status sign(int fd, const std::string& what) {
  const std::string text = Holder::here().text();
  if (::ftruncate(fd, 0) != 0) return status_from_errno(errno, what);
  TAILRACE_TRY(write_fully(fd, text.data(), text.size(), 0, what));
  // Sync for other nodes: some clients buffer writes until then.
  const MountKind kind = mount_kind_of(fd);
  const bool is_own = kind == MountKind::own_disk || kind == MountKind::own_memory;
  return is_own || ::fsync(fd) == 0 ? Status() : status_from_errno(errno, what);
}

}  // namespace

std::string lock_path_of(const std::string& path) { return companion_path(path, ".lock"); }
std::string nodes_lock_path_of(const std::string& path) {
  return companion_path(path, ".lock.nodes");
}

std::string writer_of(const std::string& path) {
  const Descriptor at = look_at(lock_path_of(path));
  if (!at.open()) return "";
  const Lock lock = try_lock(at.fd(), LOCK_SH);
  const Holder holder = Holder::read(at.fd());
  const Holding held = holding(at.fd(), lock, holder, path);
  if (held != Holding::none) return sentence(holder, held, path);
  return nodes_hold(path) ? holder.sentence() + " that has lost its rank 0" : "";
}

Status WriterLock::take(const std::string& path, std::chrono::milliseconds patience) {
  path_ = path;
  const std::string lock_path = lock_path_of(path);
  const std::string what = "lock file \"" + lock_path + "\"";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    Descriptor at(::open(lock_path.c_str(), flags | O_CREAT | O_EXCL, 0666));
    const bool created = at.open();
    if (!created && errno == EEXIST) {
      at.reset(::open(lock_path.c_str(), flags));
      if (!at.open() && errno == ENOENT) continue;
    }
    if (!at.open()) {
      // No file can be created here; if that matters, opening the output reports it.
      const bool no_folder = errno == ENOENT || errno == ENOTDIR;
      if (no_folder || errno == EACCES || errno == EPERM || errno == EROFS) return Status();
      return status_from_errno(errno, what);
    }
    const Lock lock = created ? lock_what_was_made(at.fd()) : try_lock(at.fd(), LOCK_EX);
    const Holder before = created ? Holder() : Holder::read(at.fd());
    const bool free = created && lock != Lock::held;
    const Holding held = free ? Holding::none : holding(at.fd(), lock, before, path);
    if (held != Holding::none) {
      return Status(Code::io_error,
                    "\"" + path + "\" is being written by " + sentence(before, held, path));
    }
    if (lock == Lock::unsupported && !created) {  // A competing job may create it again first.
      if (!before.pid.empty()) taken_over_from_ = before.sentence();
      ::unlink(lock_path.c_str());
      continue;
    }
    if (!still_named(at.fd(), lock_path)) continue;
    // Sign a new file immediately: an empty one would not tell whether its holder is alive. A dead
    // job's file stays unchanged until it is ours.
    Status taken = created ? sign(at.fd(), what) : Status();
    if (taken.ok()) taken = wait_for_nodes(path, before, patience);
    if (taken.ok() && !created) taken = sign(at.fd(), what);
    if (!taken.ok()) {
      if (created) ::unlink(lock_path.c_str());
      return taken;
    }
    if (!created && !before.pid.empty()) taken_over_from_ = before.sentence();
    lock_ = std::move(at);
    holder_pid_ = ::getpid();
    return Status();
  }
  return Status(Code::io_error, what + " keeps changing its owner; try again later");
}

void WriterLock::release() {
  // A user may have removed the file, as advised above, and another job may have created it again.
  const std::string lock_path = lock_path_of(path_);
  if (lock_.open() && holder_pid_ == ::getpid() && still_named(lock_.fd(), lock_path)) {
    // If the complete job ends, no process holds it; otherwise the processes keep the next job
    // waiting.
    if (!nodes_hold(path_)) ::unlink(nodes_lock_path_of(path_).c_str());
    ::unlink(lock_path.c_str());
  }
  lock_.close();
}

void NodesLock::join(const std::string& path) {
  path_ = path;
  pid_ = ::getpid();
  const std::string name = nodes_lock_path_of(path);
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  lock_.reset(::open(name.c_str(), flags, 0666));
  if (!lock_.open()) return;
  if (try_lock(lock_.fd(), LOCK_SH) != Lock::taken) return lock_.close();
  if (mount_kind_of(lock_.fd()) == MountKind::other) note_whether_locks_are_seen();
}

void NodesLock::note_whether_locks_are_seen() const {
  const Descriptor first = look_at(lock_path_of(path_));
  if (!first.open()) return;
  const std::string host = Holder::read(first.fd()).host;
  if (host.empty() || host == host_name()) return;
  // Test twice: a process of this node may hold the lock for a moment, which would be visible in
  // any case.
  for (int i = 0; i < 2; ++i) {
    if (i > 0) std::this_thread::sleep_for(between_tries);
    if (try_lock(first.fd(), LOCK_SH) != Lock::held) return;
  }
  struct stat facts {};
  if (::fstat(lock_.fd(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) return;
  // All processes write the same text. If the write fails, visibility stays unknown.
  const std::string text = kSeenBetweenNodes;
  (void)write_fully(lock_.fd(), text.data(), text.size(), 0, path_);
}

void NodesLock::release() {
  if (lock_.open() && pid_ == ::getpid()) {
    ::flock(lock_.fd(), LOCK_UN);  // Otherwise a forked child process would keep it.
    // This was the last process of a job whose rank 0 has ended.
    if (::access(lock_path_of(path_).c_str(), F_OK) != 0 && !nodes_hold(path_)) {
      ::unlink(nodes_lock_path_of(path_).c_str());
    }
  }
  lock_.close();
}

}  // namespace tailrace
