// Taking, reading and judging lock files.

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

constexpr int attempts = 8;  // Each is lost to another job that ends or takes over meanwhile.

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// When a process of this machine began, in the kernel's ticks: a number that a later process with
/// the same pid does not have. "0" where that is not told.
std::string process_start(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // The name may hold spaces.
  if (name_end == std::string::npos) return "0";
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

/// What a lock file says.
struct Holder {
  std::string host;
  std::string pid;
  std::string since;  ///< UTC.
  std::string start;  ///< As of process_start().

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
    std::istringstream words(n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "");
    std::string word;
    Holder holder;
    while (words >> word) {
      if (word == "host") words >> holder.host;
      if (word == "process") words >> holder.pid;
      if (word == "since") words >> holder.since;
      if (word == "start") words >> holder.start;
    }
    // Anybody may have written it: a pid becomes a path, all of it a message.
    return holder.is_told() ? holder : Holder();
  }
  bool is_told() const {
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
  /// Whether it is a process of this machine that is not there any more.
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

/// Open a lock file to look at it. A pipe of that name must not keep us waiting.
Descriptor look_at(const std::string& name) {
  return Descriptor(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

/// What nodes write into the file that they hold once they have seen a lock of rank 0's node.
constexpr const char* seen_between_nodes = "locks are seen between nodes\n";

/// Whether somebody of the job has seen, from another node, that its lock was held.
bool locks_were_seen(const std::string& path) {
  const Descriptor at = look_at(nodes_lock_path_of(path));
  std::array<char, 64> text{};
  const ssize_t n = at.open() ? ::pread(at.fd(), text.data(), text.size(), 0) : 0;
  return n > 0 && std::string(text.data(), static_cast<std::size_t>(n)) == seen_between_nodes;
}

/// Whether a process of another node holds the file. Only where its rank 0 holds nothing: others of
/// that job would not get their hold meanwhile.
bool nodes_hold(const std::string& path) {
  const Descriptor at = look_at(nodes_lock_path_of(path));
  return at.open() && try_lock(at.fd(), LOCK_EX) == Lock::held;
}

enum class Holding : std::uint8_t {
  none,    ///< That job is dead.
  lives,   ///< By its lock.
  unknown  ///< It ran elsewhere, and no lock of it could be seen here.
};

/// Whether the holder that a lock file names still has it, where `lock` is what became of an
/// attempt to lock it.
Holding holding(int fd, Lock lock, const Holder& holder, const std::string& path) {
  if (lock == Lock::held) return Holding::lives;
  if (holder.is_gone()) return Holding::none;
  const auto would_be_seen = [&] {
    return holder.host == host_name() || mount_kind_of(fd) != MountKind::other ||
           locks_were_seen(path);
  };
  return lock == Lock::taken && would_be_seen() ? Holding::none : Holding::unknown;
}

/// The holder, with what to do where nothing is known of it.
std::string sentence(const Holder& holder, Holding held, const std::string& path) {
  return held == Holding::lives
             ? holder.sentence()
             : holder.sentence() + " (if it is dead, remove \"" + lock_path_of(path) + "\")";
}

/// Whether the name still means the open file: its holder may have removed it meanwhile.
bool still_named(int fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

/// See that no process of a job before holds the file any more.
Status wait_for_nodes(const std::string& path, const Holder& before,
                      std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (nodes_hold(path)) {
    if (std::chrono::steady_clock::now() >= end) {
      return Status(Code::io_error, "\"" + path + "\" is still being written on other nodes by " +
                                        before.sentence() +
                                        ", whose rank 0 is gone (if they are, too, remove \"" +
                                        nodes_lock_path_of(path) + "\")");
    }
    std::this_thread::sleep_for(between_tries);
  }
  ::unlink(nodes_lock_path_of(path).c_str());
  return Status();
}

/// Take the lock of a file that we have made. Who looks at it in between holds it for a moment.
Lock lock_what_was_made(int fd) {
  Lock lock = try_lock(fd, LOCK_EX);
  for (int i = 0; lock == Lock::held && i < attempts; ++i) {
    std::this_thread::sleep_for(between_tries);
    lock = try_lock(fd, LOCK_EX);
  }
  return lock;
}

/// Say in the lock file who holds it now.
Status sign(int fd, const std::string& what) {
  const std::string text = Holder::here().text();
  if (::ftruncate(fd, 0) != 0) return status_from_errno(errno, what);
  TAILRACE_TRY(write_fully(fd, text.data(), text.size(), 0, what));
  // It is for other nodes, of whom some clients keep it until then.
  const MountKind kind = mount_kind_of(fd);
  const bool is_own = kind == MountKind::own_disk || kind == MountKind::own_memory;
  return is_own || ::fsync(fd) == 0 ? Status() : status_from_errno(errno, what);
}

}  // namespace

std::string lock_path_of(const std::string& path) { return path + ".lock"; }
std::string nodes_lock_path_of(const std::string& path) { return lock_path_of(path) + ".nodes"; }

std::string writer_of(const std::string& path) {
  const Descriptor at = look_at(lock_path_of(path));
  if (!at.open()) return "";
  const Lock lock = try_lock(at.fd(), LOCK_SH);
  const Holder holder = Holder::read(at.fd());
  const Holding held = holding(at.fd(), lock, holder, path);
  if (held != Holding::none) return sentence(holder, held, path);
  return nodes_hold(path) ? holder.sentence() + ", whose rank 0 is gone," : "";
}

Status WriterLock::take(const std::string& path, std::chrono::milliseconds patience) {
  path_ = path;
  const std::string lock_path = lock_path_of(path);
  const std::string what = "lock file \"" + lock_path + "\"";
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    Descriptor at(::open(lock_path.c_str(), flags | O_CREAT | O_EXCL, 0666));
    const bool created = at.open();
    if (!created && errno == EEXIST) {
      at.reset(::open(lock_path.c_str(), flags));
      if (!at.open() && errno == ENOENT) continue;
    }
    if (!at.open()) {
      // No file can be made here; where that matters, whoever opens the output says so.
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
    if (lock == Lock::unsupported && !created) {  // Whoever removes it may make it anew.
      if (!before.pid.empty()) taken_over_from_ = before.sentence();
      ::unlink(lock_path.c_str());
      continue;
    }
    if (!still_named(at.fd(), lock_path)) continue;
    // A new file says at once whose it is: nobody could tell of an empty one whether he lives. Of a
    // dead job's nothing changes before it is ours.
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
  return Status(Code::io_error, what + " changes hands without end");
}

void WriterLock::release() {
  // Someone may have removed it, on the advice above, and another have made it anew.
  const std::string lock_path = lock_path_of(path_);
  if (lock_.open() && holder_pid_ == ::getpid() && still_named(lock_.fd(), lock_path)) {
    // Where the job ends as a whole, nobody does any more; else they keep the next one waiting.
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
  // Twice: a process of this node may hold it for a moment, which would be seen in any case.
  for (int i = 0; i < 2; ++i) {
    if (i > 0) std::this_thread::sleep_for(between_tries);
    if (try_lock(first.fd(), LOCK_SH) != Lock::held) return;
  }
  struct stat facts {};
  if (::fstat(lock_.fd(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) return;
  // All write the same, if they do; where it cannot be written, it is not known.
  const std::string text = seen_between_nodes;
  (void)write_fully(lock_.fd(), text.data(), text.size(), 0, path_);
}

void NodesLock::release() {
  if (lock_.open() && pid_ == ::getpid()) {
    ::flock(lock_.fd(), LOCK_UN);  // A process that was forked keeps it otherwise.
    // The last one of a job whose rank 0 has ended.
    if (::access(lock_path_of(path_).c_str(), F_OK) != 0 && !nodes_hold(path_)) {
      ::unlink(nodes_lock_path_of(path_).c_str());
    }
  }
  lock_.close();
}

}  // namespace tailrace
