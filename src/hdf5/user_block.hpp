// Files with a user block: bytes that belong to the file's owner and precede those of HDF5.
//
// HDF5 counts every address from its superblock. So a new file is written like any other, through a
// storage that shifts all bytes past the block. Only the superblock states its real address.

#pragma once

#include <cstdint>
#include <memory>

#include "core/storage.hpp"

namespace tailrace {

/// Make a storage whose byte 0 is the first byte after a user block of `n_bytes` in `file`. A
/// superblock written at its start gets its real address.
/// @param n_bytes  512, or 512 times a power of two.
std::unique_ptr<Storage> behind_user_block(std::unique_ptr<Storage> file, std::uint64_t n_bytes);

}  // namespace tailrace
