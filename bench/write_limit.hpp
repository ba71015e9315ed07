// WriteLimit: one bandwidth for all ranks' writes of bench output together, whoever makes them.
//
// The file write_limit.cpp defines write, pwrite, pwritev and their kin in the executable itself,
// so that they come before libc's for every shared library of the process: HDF5, MPI-IO and our own
// writes pass the same bucket. A write returns when a storage of this bandwidth, which serves the
// ranks in turn and buffers nothing, would have taken its bytes. Only regular files below the
// folder of the run count. Limits of the method: one node; io_uring and stores to mapped files are
// not seen.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace::bench {

class WriteLimit {
 public:
  /// Count the writes below `folder` (an absolute path without links) and, if `bytes_per_s` > 0,
  /// limit them. Collective. At most one object at a time.
  /// @error unsupported  the ranks span several nodes.  @error io_error  no shared memory.
  static Result<std::unique_ptr<WriteLimit>> start(Comm& comm, const std::string& folder,
                                                   std::uint64_t bytes_per_s);
  virtual ~WriteLimit() = default;

  /// Bytes that all ranks have written below the folder so far. Not collective.
  virtual std::uint64_t n_bytes() const = 0;
};

}  // namespace tailrace::bench
