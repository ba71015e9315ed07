// The HDF5 superblock, as far as commits and recovery need it: where it is, where the file ends,
// and whether a writer left its "open for write" mark in it.
//
// Everything else about the format is HDF5's business. Source: HDF5 File Format Specification 3.0,
// section II.A (versions 0 to 3); the checksum is Bob Jenkins' lookup3, which HDF5 uses throughout.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/base/status.hpp"

namespace tailrace {

/// Bob Jenkins' lookup3 ("hashlittle") over `bytes`; the checksum of all newer HDF5 metadata.
std::uint32_t lookup3(std::span<const std::byte> bytes, std::uint32_t initial = 0);

struct Superblock {
  std::uint64_t address = 0;       ///< 0, or behind a user block: 512, 1024, 2048, ...
  std::uint64_t n_bytes = 0;       ///< Its own length.
  int version = 0;                 ///< 0..3.
  std::uint64_t base_address = 0;  ///< Added to every address in the file.
  std::uint64_t end_of_file = 0;   ///< One past the last byte in use, absolute.
  bool open_for_write = false;     ///< Version 3: a writer has not closed the file.
  bool checksum_good = true;       ///< Versions 2 and 3 carry one.
};

/// Bytes from the signature on that parse_superblock() wants to see (fewer are an error).
inline constexpr std::size_t superblock_bytes_max = 96;

/// Whether the eight bytes of the HDF5 signature stand at the start of `bytes`.
bool has_hdf5_signature(std::span<const std::byte> bytes);

/// Read a superblock that stands at file address `address`.
/// @error corrupt  no signature, or cut short.  @error unsupported  a version or address size we
/// do not know.
Result<Superblock> parse_superblock(std::span<const std::byte> bytes, std::uint64_t address);

/// Clear the "open for write" and "SWMR write" marks and redo the checksum, in place. HDF5 1.10
/// also sets them in version 2, where no reader asks for them; versions 0 and 1 have none, and
/// bytes that are no whole superblock stay as they are. @returns whether it changed.
bool clear_open_for_write(std::span<std::byte> bytes);

/// Tell the superblock at the start of `bytes`, which says that it stands at address 0, that it
/// stands at `address`, and redo the checksum, in place.
/// @error corrupt, unsupported  as of parse_superblock(); it stands elsewhere, or the address does
/// not fit its addresses.
Status move_superblock(std::span<std::byte> bytes, std::uint64_t address);

}  // namespace tailrace
