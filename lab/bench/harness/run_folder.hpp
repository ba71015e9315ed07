// RunFolder: a new folder below --dir that all ranks write in, gone when the run ends.

#pragma once

#include <string>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

class RunFolder {
 public:
  explicit RunFolder(Comm& comm) : comm_(comm) {}
  /// Rank 0 deletes the folder with all that is in it.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Make it below `parent`. Collective. @error as of mkdtemp; not_found: not seen by all ranks.
  Status make(const std::string& parent);
  /// Absolute, without links.
  const std::string& path() const { return path_; }

 private:
  Comm& comm_;
  std::string path_;
};

}  // namespace tailrace::bench
