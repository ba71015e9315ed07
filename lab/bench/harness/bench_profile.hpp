// Machine profile for rows that predict: the codec curves of a profile, and the bandwidth of the
// storage. The bandwidth is the limit, which is known exactly; without a limit it is briefly
// measured.

#pragma once

#include <string>

#include "core/comm.hpp"
#include "method.hpp"
#include "model/machine_profile.hpp"

namespace tailrace::bench {

class BenchProfile {
 public:
  /// Read the codec curves of `profile_path` (empty: the built-in ones) and, if `measure`, measure
  /// the unlimited write bandwidth of `folder`. Collective.
  /// @error not_found, corrupt  names the file.  @error  like a write
  static Result<BenchProfile> make(Comm& comm, const std::string& profile_path,
                                   const std::string& folder, bool measure);

  /// Write the profile for this bandwidth into the folder. Collective.
  /// @returns the file's path. @error io_error
  Result<std::string> write_for(Comm& comm, const Bandwidth& bandwidth);

  const MachineProfile& machine() const { return machine_; }
  /// Bandwidth of the storage for all ranks together under this limit; 0: not measured.
  double bytes_per_s(const Bandwidth& bandwidth, int n_ranks) const;

 private:
  MachineProfile machine_;
  std::string folder_;
  double unlimited_bytes_per_s_ = 0;
  int n_written_ = 0;
};

}  // namespace tailrace::bench
