// The HDF5 superblock, as far as commits and recovery need it: its address, the end of the file,
// and the "open for write" mark that a writer may have left.
//
// HDF5 handles the rest of the format. Source: HDF5 File Format Specification 3.0, section II.A
// (versions 0 to 3). The checksum is Bob Jenkins' lookup3, which HDF5 uses throughout.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/base/status.hpp"

namespace tailrace {

/// Bob Jenkins' lookup3 ("hashlittle") over `bytes`; the checksum of all newer HDF5 metadata.
std::uint32_t lookup3(std::span<const std::byte> bytes, std::uint32_t initial = 0);

struct Superblock {
  std::uint64_t address = 0;       ///< 0, or after a user block: 512, 1024, 2048, ...
  std::uint64_t n_bytes = 0;       ///< Length of the superblock.
  int version = 0;                 ///< 0..3.
  std::uint64_t base_address = 0;  ///< Offset added to every address in the file.
  std::uint64_t end_of_file = 0;   ///< One past the last byte in use, absolute.
  bool open_for_write = false;     ///< Version 3: a writer has not closed the file.
  bool checksum_good = true;       ///< Versions 2 and 3: the checksum matches. Others have none.
};

/// Number of bytes, from the signature on, that parse_superblock() needs (fewer are an error).
inline constexpr std::size_t kSuperblockBytesMax = 96;

/// True if `bytes` starts with the eight bytes of the HDF5 signature.
bool has_hdf5_signature(std::span<const std::byte> bytes);

/// Parse a superblock that lies at file address `address`.
/// @error corrupt  no signature, or cut short.  @error unsupported  unknown version or address size
Result<Superblock> parse_superblock(std::span<const std::byte> bytes, std::uint64_t address);

/// Clear the "open for write" and "SWMR write" marks and update the checksum, in place. HDF5 1.10
/// also sets them in version 2, where no reader checks them; versions 0 and 1 have none. Bytes that
/// are not a complete superblock stay unchanged. @returns true if it changed `bytes`
bool clear_open_for_write(std::span<std::byte> bytes);

/// Change the superblock at the start of `bytes` from address 0 to `address`, and update the
/// checksum, in place.
/// @error corrupt, unsupported  like parse_superblock(); the superblock states another address than
/// 0, or `address` does not fit its address size
Status move_superblock(std::span<std::byte> bytes, std::uint64_t address);

}  // namespace tailrace
