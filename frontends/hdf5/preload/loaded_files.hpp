// Files that are loaded into the process: the program and its shared libraries.

#pragma once

#include <link.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tailrace::hdf5_programs {

/// Paths in load order; that of the program is empty.
inline std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(object->dlpi_name);
        return 0;
      },
      &files);
  return files;
}

}  // namespace tailrace::hdf5_programs
