// Objects of a file that a serial program writes, as far as the rules on roles need them.
//
// A dataset's role is decided when its first chunk is encoded: by its name, shape and attributes,
// the groups above it, and other datasets, which may name it ("coordinates") or belong to it. The
// program may create and write thousands of datasets in turn. So only some others are seen, and the
// attributes of each are read twice at most.

#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hdf5_serial/serial_hdf5.hpp"
#include "policy/roles.hpp"

namespace tailrace::hdf5_serial {

class KnownObjects {
 public:
  /// Note a dataset that the program is about to create.
  void add(std::string path) { others_.push_back({std::move(path), {}}); }
  /// List the datasets that the file has. Cost: some microseconds each.
  /// @returns false if HDF5 cannot
  bool list(const SerialHdf5& hdf5, hid_t file);
  /// Return the role of an open dataset by what the file has now. Empty: HDF5 cannot describe the
  /// dataset, or a group above it. Cost: below a millisecond.
  std::optional<RoleVerdict> role_of(const SerialHdf5& hdf5, hid_t dataset,
                                     const std::string& path);

 private:
  /// How many of the datasets created first, and last, a decision sees.
  static constexpr std::size_t kFirst = 32;
  static constexpr std::size_t kLast = 96;
  static constexpr int kReads = 2;

  struct Other {
    std::string path;
    StatedObject stated;
    int n_reads = 0;
    bool numbers = false;
    bool gone = false;
  };

  std::vector<Other> others_;  ///< Oldest first.
};

}  // namespace tailrace::hdf5_serial
