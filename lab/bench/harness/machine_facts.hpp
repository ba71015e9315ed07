// What a result must carry so that somebody else can judge it: machine, file system, versions.

#pragma once

#include <string>

namespace tailrace::bench {

struct MachineFacts {
  std::string processor;  ///< As the kernel names it.
  unsigned n_cores = 0;   ///< Of the node, whatever the launcher binds a rank to.
  double memory_gib = 0;
  std::string kernel;
  std::string file_system;  ///< Type of the one that the output lies on: "ext4", "tmpfs".
  double load_average = 0;  ///< Of the last minute, when the run began: what else was going on.
  std::string compiler;
  std::string mpi;
  std::string hdf5;
  std::string date;  ///< UTC.
};

/// Not collective. `folder` is absolute and without links.
MachineFacts find_machine_facts(const std::string& folder);

}  // namespace tailrace::bench
