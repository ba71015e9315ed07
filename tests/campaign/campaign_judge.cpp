// Reads files that a crash has left, before and after `tailrace recover --apply`. Only stock HDF5
// reads them. It judges thousands of files a second, each in a process of its own.
//
//   campaign_judge < lines "FOLDER NAME"     ("- FOLDER NAME": recovery is not run)
//
// Output for each line of input:
//
//   before                 State of FOLDER/NAME as the crash left it, by these lines:
//     D path shape crc32   A dataset that can be read.
//     B path               A dataset that cannot be read.
//     F                    The file does not open.
//     N                    The file does not exist.
//   R whole|repairable|absent|damaged   Recovery's verdict, unless "-" was given.
//   T sentence             A finding of recovery.
//   E code text            Recovery's error, instead of R and T.
//   after                  State of FOLDER/NAME after recovery, unless "-" was given.
//   L name                 A file in FOLDER.
//   end STATUS             Wait status of the reading process: 0, unless it crashed or took 20 s.

#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"
#include "verbs/recover_file.hpp"

namespace {

using tailrace::Hdf5Id;

/// Print a dataset's extents and the CRC-32 of its values in native byte order, or "B" on failure.
void read_dataset(hid_t file, const char* path) {
  const Hdf5Id dataset(H5Dopen2(file, path, H5P_DEFAULT));
  const Hdf5Id space(dataset.valid() ? H5Dget_space(dataset.get()) : -1);
  const Hdf5Id stored(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
  const Hdf5Id type(stored.valid() ? H5Tget_native_type(stored.get(), H5T_DIR_ASCEND) : -1);
  if (!space.valid() || !type.valid()) return (void)std::printf("B /%s\n", path);
  std::vector<hsize_t> extents(std::size_t(std::max(H5Sget_simple_extent_ndims(space.get()), 0)));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  const auto n = std::size_t(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.get()), 0));
  std::vector<unsigned char> values(std::min<std::size_t>(n * H5Tget_size(type.get()), 1U << 30U));
  if (!values.empty() &&
      H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    return (void)std::printf("B /%s\n", path);
  }
  std::string shape;
  for (const hsize_t extent : extents) shape += std::to_string(extent) + "x";
  std::printf("D /%s %s %08lx\n", path, shape.empty() ? "-" : shape.c_str(),
              crc32(0, values.data(), uInt(values.size())));
}

void read_file(const std::string& path) {
  if (!std::filesystem::exists(path)) return (void)std::puts("N");
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) return (void)std::puts("F");
  const auto visit = [](hid_t root, const char* name, const auto* facts, void*) -> herr_t {
    if (facts->type == H5O_TYPE_DATASET) read_dataset(root, name);
    return 0;
  };
#if H5_VERSION_GE(1, 12, 0)
  const herr_t visited =
      H5Ovisit3(file.get(), H5_INDEX_NAME, H5_ITER_INC, visit, nullptr, H5O_INFO_BASIC);
#else
  const herr_t visited = H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, visit, nullptr);
#endif
  if (visited < 0) std::puts("B /");
}

void judge(const std::string& folder, const std::string& path, bool recovers) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  std::puts("before");
  read_file(path);
  if (recovers) {
    const auto outcome = tailrace::verbs::recover_file({path, true});
    if (outcome.ok()) {
      std::printf("R %s\n", tailrace::verbs::file_state_name(outcome->report.state));
      for (const std::string& sentence : outcome->report.findings)
        std::printf("T %s\n", sentence.c_str());
    } else {
      std::printf("E %d %s\n", int(outcome.status().code()), outcome.status().message().c_str());
    }
    std::puts("after");
    read_file(path);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::printf("L %s\n", entry.path().filename().c_str());
  }
}

}  // namespace

int main() {
  H5open();  // Initialize HDF5 once, instead of in each child.
  std::string folder;
  std::string name;
  while (std::cin >> folder) {
    const bool recovers = folder != "-";
    if (!recovers) std::cin >> folder;
    std::cin >> name;
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      std::string path = folder;
      path.append("/").append(name);
      judge(folder, path, recovers);
      std::fflush(stdout);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("end %d\n", status);
    std::fflush(stdout);
  }
}
