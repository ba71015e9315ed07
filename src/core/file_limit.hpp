// FileLimitScope: writing beyond the limit on file sizes (RLIMIT_FSIZE, `ulimit -f`) fails with
// EFBIG, like any other failure, instead of ending the process by SIGXFSZ.
//
// The kernel sends that signal to the thread that writes. A library leaves its host's signal
// handling alone, so this thread keeps it from being delivered for the time of the call and takes
// back what the call has raised; handlers, other threads and other signals never notice.

#pragma once

#include <csignal>
#include <ctime>

#include <cerrno>

namespace tailrace {

/// Around calls that may lengthen a file. Keeps errno. Cost: 3 system calls, about 0.3 us.
class FileLimitScope {
 public:
  FileLimitScope() {
    ::sigemptyset(&limit_);
    ::sigaddset(&limit_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &limit_, &before_);
  }
  ~FileLimitScope() {
    const int error = errno;
    // Who blocks it anyway may wait for one that came before: theirs stays pending.
    sigset_t pending;
    if (::sigismember(&before_, SIGXFSZ) == 0 && ::sigpending(&pending) == 0 &&
        ::sigismember(&pending, SIGXFSZ) == 1) {
      const std::timespec no_wait{};
      while (::sigtimedwait(&limit_, nullptr, &no_wait) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileLimitScope(const FileLimitScope&) = delete;
  FileLimitScope& operator=(const FileLimitScope&) = delete;

 private:
  sigset_t limit_;
  sigset_t before_;
};

}  // namespace tailrace
