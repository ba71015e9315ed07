// Kernels of the codec xor: loops over one block, compiled once per instruction set.
//
// Files of this folder named *_kernels.cpp are compiled with XOR_BUILD = plain and avx2 (only plain
// if the machine is not x86-64); both builds produce the same bytes. Like trz's kernels
// (trz/kernels/isa.hpp), they include no header with inline functions. The linker could choose the
// AVX2 copy of such a function for machines without AVX2. All their functions are in an anonymous
// namespace.

#pragma once

#include <cstddef>
#include <cstdint>

namespace tailrace::neighbour_xor {

inline constexpr std::size_t kBlockValues = 1024;  ///< Part of the format.
inline constexpr std::size_t kGroupValues = 8;     ///< Smallest group that shares a width.

/// Bytes that kernels may write, and read, past a block's end.
inline constexpr std::size_t kSlackBytes = 32;
/// Maximum size of a block: one width for all, 64 bits each.
inline constexpr std::size_t kBlockBytesMax = 3 + 8 * kBlockValues;

/// Storage form of a block; its first byte.
enum class Form : std::uint8_t {
  zeros = 0,   ///< Empty blocks; followed by their number, a varint.
  single = 1,  ///< A width for each value.
  groups_of_8 = 2,
  groups_of_16 = 3,
  groups_of_32 = 4,
  groups_of_64 = 5,
  whole = 6,   ///< One width for all.
  narrow = 7,  ///< A width for each value, in 4 bits, counted from the least one.
};

/// Distances of the xored neighbours, ascending; a neighbour before the chunk is 0.
struct Terms {
  unsigned n = 0;
  std::size_t distances[7] = {};
};

/// Words of a block: u32 for elements of 1, 2 and 4 bytes, u64 for those of 8.
union BlockWords {
  alignas(64) std::uint32_t narrow[kBlockValues];
  alignas(64) std::uint64_t wide[kBlockValues];
};

/// Functions for elements of 1, 2, 4, 8 bytes (index 0 to 3). `values` is the entire chunk; a
/// function processes `n` <= kBlockValues values from `position` on.
struct Kernels {
  /// Xor values with their neighbours; the result is words, zero-padded to a multiple of 8.
  void (*residuals[4])(const void* values, std::size_t position, std::size_t n, const Terms& terms,
                       BlockWords& block);
  /// Inverse of `residuals`. With `carry`, first undoes distance 1 by a running xor; carry is the
  /// value before the block on entry and the block's last value on return.
  void (*restore[4])(BlockWords& block, const Terms& terms, std::uint64_t* carry, void* values,
                     std::size_t position, std::size_t n);
  /// Pack a block, for u32 and u64. @returns bytes; 0 if all words are 0.
  std::size_t (*pack[2])(const BlockWords& block, std::size_t n, std::uint8_t* out);
  /// Number of bits that groups of 8, or single widths, need; used to choose neighbours.
  std::uint64_t (*cost[2])(const BlockWords& block, std::size_t n);
  /// Inverse of `pack`. `in` is readable to kSlackBytes past its `n_in` bytes.
  /// @returns bytes consumed; 0 if they are not a block.
  std::size_t (*unpack[2])(const std::uint8_t* in, std::size_t n_in, std::size_t n,
                           BlockWords& block);
};

namespace plain {
extern const Kernels kernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kernels;
}
#endif

}  // namespace tailrace::neighbour_xor
