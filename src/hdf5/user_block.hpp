// Files with a user block: bytes of the file's owner that stand in front of HDF5's.
//
// HDF5 counts every address from its superblock. So a new file is written as any other, through a
// storage that moves all of it behind the block; only the superblock itself says where it stands.

#pragma once

#include <cstdint>
#include <memory>

#include "core/storage.hpp"

namespace tailrace {

/// A storage whose byte 0 is the byte behind a user block of `n_bytes` in `file`. A superblock that
/// is written at its start is told that it stands there.
/// @param n_bytes  512, or twice that, and so on.
std::unique_ptr<Storage> behind_user_block(std::unique_ptr<Storage> file, std::uint64_t n_bytes);

}  // namespace tailrace
