// File system types, and their mount options for locks.

#include "core/mount_kind.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tailrace {
namespace {

template <std::size_t n>
bool is_among(const std::array<std::string_view, n>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Return the kernel's number of the mount that a file is on; empty if unavailable. The device
/// number is not enough: several mounts share one, and some file systems use one per file.
std::string mount_of(int descriptor) {
  std::ifstream facts("/proc/self/fdinfo/" + std::to_string(descriptor));
  std::string word;
  while (facts >> word) {
    if (word == "mnt_id:" && facts >> word) return word;
  }
  return "";
}

}  // namespace

MountKind mount_kind_of(int descriptor) {
  const std::string mount = mount_of(descriptor);
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (!mount.empty() && std::getline(mounts, line)) {
    if (line.compare(0, mount.size() + 1, mount + " ") == 0) return mount_kind_in(line);
  }
  return MountKind::other;
}

MountKind mount_kind_in(const std::string& mountinfo_line) {
  constexpr std::array<std::string_view, 9> disks = {"ext2", "ext3", "ext4",     "xfs",    "btrfs",
                                                     "f2fs", "zfs",  "bcachefs", "overlay"};
  constexpr std::array<std::string_view, 9> with_locks = {
      "nfs",  "nfs4",  "lustre",         "ceph",        "fuse.ceph-fuse",
      "gfs2", "ocfs2", "fuse.glusterfs", "fuse.juicefs"};
  // Options of NFS; of Lustre; of gfs2 and ocfs2.
  constexpr std::array<std::string_view, 5> keeps_locks_here = {
      "nolock", "local_lock=flock", "local_lock=all", "localflock", "localflocks"};

  const std::size_t dash = mountinfo_line.find(" - ");  // It follows a variable number of fields.
  if (dash == std::string::npos) return MountKind::other;
  std::istringstream fields(mountinfo_line.substr(dash + 3));
  std::string type;
  std::string source;
  std::string options;
  fields >> type >> source >> options;
  if (is_among(disks, type)) return MountKind::own_disk;
  if (type == "tmpfs") return MountKind::own_memory;
  if (!is_among(with_locks, type)) return MountKind::other;
  std::istringstream each(options);
  std::string option;
  while (std::getline(each, option, ',')) {
    if (is_among(keeps_locks_here, option)) return MountKind::other;
  }
  return MountKind::locks_between_nodes;
}

}  // namespace tailrace
