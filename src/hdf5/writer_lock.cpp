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
  if (::flock(fd, kind | LOCK_NB) == 0) return Lock::taken;
  return errno == EWOULDBLOCK ? Lock::held : Lock::unsupported;
}

/// Whether the name still means the open file: its holder may have removed it meanwhile.
bool still_named(int fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

std::string lock_path_of(const std::string& path) { return path + ".lock"; }

std::string writer_of(const std::string& path) {
  // A pipe of this name must not keep us waiting.
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Descriptor at(::open(lock_path_of(path).c_str(), flags));
  if (!at.open()) return "";
  const Lock lock = try_lock(at.fd(), LOCK_SH);
  const Holder holder = Holder::read(at.fd());
  const bool dead = lock == Lock::taken || (lock == Lock::unsupported && holder.is_gone());
  return dead ? "" : holder.sentence();
}

Status WriterLock::take(const std::string& path) {
  lock_path_ = lock_path_of(path);
  const std::string what = "lock file \"" + lock_path_ + "\"";
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    Descriptor at(::open(lock_path_.c_str(), flags | O_CREAT | O_EXCL, 0666));
    const bool created = at.open();
    if (!created && errno == EEXIST) {
      at.reset(::open(lock_path_.c_str(), flags));
      if (!at.open() && errno == ENOENT) continue;
    }
    if (!at.open()) {
      // No file can be made here; where that matters, whoever opens the output says so.
      const bool no_folder = errno == ENOENT || errno == ENOTDIR;
      if (no_folder || errno == EACCES || errno == EPERM || errno == EROFS) return Status();
      return status_from_errno(errno, what);
    }
    const Lock lock = try_lock(at.fd(), LOCK_EX);
    const Holder before = created ? Holder() : Holder::read(at.fd());
    if (lock == Lock::held || (lock == Lock::unsupported && !created && !before.is_gone())) {
      const bool may_be_dead = lock == Lock::unsupported;
      return Status(
          Code::io_error,
          "\"" + path + "\" is being written by " + before.sentence() +
              (may_be_dead ? "; if that job is dead, remove \"" + lock_path_ + "\"" : ""));
    }
    if (!created && !before.pid.empty()) taken_over_from_ = before.sentence();
    if (lock == Lock::unsupported && !created) {  // Whoever removes it may make it anew.
      ::unlink(lock_path_.c_str());
      continue;
    }
    if (!still_named(at.fd(), lock_path_)) continue;
    const std::string text = Holder::here().text();
    Status written = ::ftruncate(at.fd(), 0) == 0 ? Status() : status_from_errno(errno, what);
    if (written.ok()) written = write_fully(at.fd(), text.data(), text.size(), 0, what);
    if (!written.ok()) {
      ::unlink(lock_path_.c_str());
      return written;
    }
    lock_ = std::move(at);
    holder_pid_ = ::getpid();
    return Status();
  }
  return Status(Code::io_error, what + " changes hands without end");
}

void WriterLock::release() {
  if (lock_.open() && holder_pid_ == ::getpid()) ::unlink(lock_path_.c_str());
  lock_.close();
}

}  // namespace tailrace
