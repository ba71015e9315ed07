// Facts that a reader needs to judge a result: machine, file system, versions.

#pragma once

#include <string>

namespace tailrace::bench {

struct MachineFacts {
  std::string processor;  ///< Name from the kernel.
  unsigned n_cores = 0;   ///< Cores of the node, whatever a rank is bound to.
  double memory_gib = 0;
  std::string kernel;
  std::string file_system;  ///< Type of the output's file system: "ext4", "tmpfs".
  double load_average = 0;  ///< Load of the minute before the run, to detect other work.
  std::string compiler;
  std::string mpi;
  std::string hdf5;
  std::string date;  ///< UTC.
};

/// Find the facts. Not collective. `folder` is absolute and without links.
MachineFacts find_machine_facts(const std::string& folder);

}  // namespace tailrace::bench
