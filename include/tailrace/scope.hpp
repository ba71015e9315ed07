// Scopes of Tailrace's C++ API: they mark the program's use of a lane until the end of a block.
//
// tailrace.h explains lanes and marks under "Idle time". Included by tailrace.hpp.

#pragma once

#include <utility>

#include <tailrace/tailrace.h>

namespace tailrace {
inline namespace api {

/// A time span in which the program needs one of its lanes. File::compute() or File::background()
/// begins it; end() or the destructor ends it, also during an exception. Movable; it must not
/// outlive its File.
class Scope {
 public:
  Scope(Scope&& other) noexcept : file_(std::exchange(other.file_, nullptr)), end_(other.end_) {}
  Scope& operator=(Scope&& other) noexcept {
    if (this != &other) {
      end();
      file_ = std::exchange(other.file_, nullptr);
      end_ = other.end_;
    }
    return *this;
  }
  ~Scope() { end(); }

  /// End the span before the scope's destructor does. Further calls do nothing.
  void end() noexcept {
    if (file_ != nullptr) end_(std::exchange(file_, nullptr));
  }

 private:
  friend class File;
  using End = void (*)(tailrace_file*);
  Scope(tailrace_file* file, End how) : file_(file), end_(how) {}

  tailrace_file* file_;
  End end_;
};

}  // namespace api
}  // namespace tailrace
