// WriteLimit: one bandwidth for all writes of bench output, of all ranks together.
//
// write_hooks.cpp defines write, pwrite, pwritev and their variants in the executable. They take
// precedence over libc's for every shared library of the process. So HDF5, MPI-IO and our own
// writes pass the same bucket, which the ranks of a node share.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

class WriteLimit {
 public:
  /// Start counting the writes below `folder` (an absolute path without links), without a limit.
  /// Collective. At most one object at a time.
  /// @error unsupported  the ranks span several nodes.  @error io_error  no shared memory.
  static Result<std::unique_ptr<WriteLimit>> start(Comm& comm, const std::string& folder);
  virtual ~WriteLimit() = default;

  /// Limit later writes of all ranks together; 0: no limit. Every rank must pass the same value,
  /// while no rank writes. Collective: a barrier.
  virtual void set_bytes_per_s(double bytes_per_s) = 0;

  /// Bytes that all ranks have written below the folder. Not collective.
  virtual std::uint64_t n_bytes() const = 0;
};

}  // namespace tailrace::bench
