// RunFolder: a new folder below --dir that all ranks write to, deleted at the end of the run.

#pragma once

#include <string>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

class RunFolder {
 public:
  explicit RunFolder(Comm& comm) : comm_(comm) {}
  /// Rank 0 deletes the folder and its content.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Create the folder below `parent`. Collective.
  /// @error  like mkdtemp; not_found: not all ranks see it.
  Status make(const std::string& parent);
  /// Absolute path without links.
  const std::string& path() const { return path_; }

 private:
  Comm& comm_;
  std::string path_;
};

}  // namespace tailrace::bench
