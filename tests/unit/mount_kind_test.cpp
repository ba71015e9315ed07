// Parsing of lines of the list of mounts, as kernels and file systems write them.

#include "core/mount_kind.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "hdf5/file_names.hpp"

namespace tailrace::test {
namespace {

MountKind kind(const std::string& behind_the_dash) {
  return mount_kind_in("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - " + behind_the_dash);
}

TEST(MountKind, DisksAndMemoryAreThisMachines) {
  EXPECT_EQ(kind("ext4 /dev/sda1 rw,errors=remount-ro"), MountKind::own_disk);
  EXPECT_EQ(kind("overlay overlay rw,lowerdir=/a:/b"), MountKind::own_disk);
  EXPECT_EQ(kind("tmpfs tmpfs rw,size=3g"), MountKind::own_memory);
}

TEST(MountKind, LocksHoldForAllNodesUnlessTheMountKeepsThem) {
  EXPECT_EQ(kind("nfs4 store:/home rw,vers=4.2,hard,local_lock=none,addr=10.0.0.1"),
            MountKind::locks_between_nodes);
  EXPECT_EQ(kind("nfs store:/home rw,vers=3,nolock,local_lock=all"), MountKind::other);
  EXPECT_EQ(kind("nfs store:/home rw,vers=3,local_lock=flock"), MountKind::other);
  EXPECT_EQ(kind("lustre 10.0.0.1@tcp:/scratch rw,flock,lazystatfs"),
            MountKind::locks_between_nodes);
  EXPECT_EQ(kind("lustre 10.0.0.1@tcp:/scratch rw,localflock,lazystatfs"), MountKind::other);
  EXPECT_EQ(kind("fuse.glusterfs store:/gv rw,user_id=0"), MountKind::locks_between_nodes);
  EXPECT_EQ(kind("fuse.sshfs me@store:/home rw,user_id=0"), MountKind::other);
  EXPECT_EQ(kind("beegfs beegfs_nodev rw,cfgFile=/etc/beegfs.conf"), MountKind::other);
}

TEST(MountKind, WhatIsNotTheListsIsNotKnown) {
  EXPECT_EQ(mount_kind_in(""), MountKind::other);
  EXPECT_EQ(mount_kind_in("36 35 98:0 / /mnt rw ext4 /dev/sda1 rw"), MountKind::other);
  EXPECT_EQ(mount_kind_in("36 35 98:0 / /mnt rw - "), MountKind::other);
  EXPECT_EQ(mount_kind_of(-1), MountKind::other);
}

TEST(MountKind, OfAnOpenFile) {
  const Descriptor process(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(process.open());
  EXPECT_EQ(mount_kind_of(process.fd()), MountKind::other);
  const Descriptor memory(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!memory.open()) GTEST_SKIP() << "no /dev/shm";
  EXPECT_EQ(mount_kind_of(memory.fd()), MountKind::own_memory);
}

}  // namespace
}  // namespace tailrace::test
