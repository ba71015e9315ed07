// WriteLimit: one bandwidth for all ranks' writes of bench output together, whoever makes them.
//
// write_hooks.cpp defines write, pwrite, pwritev and their kin in the executable itself, so that
// they come before libc's for every shared library of the process: HDF5, MPI-IO and our own writes
// pass the same bucket, which the ranks of a node share.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

class WriteLimit {
 public:
  /// Count the writes below `folder` (an absolute path without links), unlimited so far.
  /// Collective. At most one object at a time.
  /// @error unsupported  the ranks span several nodes.  @error io_error  no shared memory.
  static Result<std::unique_ptr<WriteLimit>> start(Comm& comm, const std::string& folder);
  virtual ~WriteLimit() = default;

  /// Limit the writes of all ranks together from now on; 0: no limit. Every rank must call it
  /// alike, while nobody writes. Collective: a barrier.
  virtual void set_bytes_per_s(double bytes_per_s) = 0;

  /// Bytes that all ranks have written below the folder so far. Not collective.
  virtual std::uint64_t n_bytes() const = 0;
};

}  // namespace tailrace::bench
