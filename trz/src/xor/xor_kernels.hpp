// Kernels of the codec xor: loops over one block, compiled once per instruction set.
//
// A file named *_kernels.cpp of this folder is compiled with XOR_BUILD = plain and avx2 (plain
// alone where the machine is no x86-64); both builds give the same bytes. Like trz's kernels
// (trz/kernels/isa.hpp) they include no header whose inline functions could be the copy that
// the linker keeps for machines without AVX2, and hold every function in an anonymous namespace.

#pragma once

#include <cstddef>
#include <cstdint>

namespace tailrace::neighbour_xor {

inline constexpr std::size_t kBlockValues = 1024;  ///< Part of the format.
inline constexpr std::size_t kGroupValues = 8;     ///< The least group that shares a width.

/// Bytes that the kernels may write past a block's end, and read past it.
inline constexpr std::size_t kSlackBytes = 32;
/// The most that a block takes: one width for all, 64 bits each.
inline constexpr std::size_t kBlockBytesMax = 3 + 8 * kBlockValues;

/// How a block is stored; its first byte.
enum class Form : std::uint8_t {
  zeros = 0,   ///< Blocks without any bit; then their number, a varint.
  single = 1,  ///< A width for each value.
  groups_of_8 = 2,
  groups_of_16 = 3,
  groups_of_32 = 4,
  groups_of_64 = 5,
  whole = 6,   ///< One width for all.
  narrow = 7,  ///< A width for each value, in 4 bits, counted from the least one.
};

/// The distances at which neighbours are xored, ascending; a neighbour before the chunk is 0.
struct Terms {
  unsigned n = 0;
  std::size_t distances[7] = {};
};

/// The words of a block: u32 for elements of 1, 2 and 4 bytes, u64 for those of 8.
union BlockWords {
  alignas(64) std::uint32_t narrow[kBlockValues];
  alignas(64) std::uint64_t wide[kBlockValues];
};

/// Functions for elements of 1, 2, 4, 8 bytes (index 0 to 3). `values` is the whole chunk,
/// `n` <= kBlockValues values from `position` on are meant.
struct Kernels {
  /// Values xored with their neighbours, as words, filled up with zeros to a multiple of 8.
  void (*residuals[4])(const void* values, std::size_t position, std::size_t n, const Terms& terms,
                       BlockWords& block);
  /// The inverse; with `carry` a running xor (of the neighbour one before) comes first, and carry
  /// is the value before the block and then the last one.
  void (*restore[4])(BlockWords& block, const Terms& terms, std::uint64_t* carry, void* values,
                     std::size_t position, std::size_t n);
  /// The block's bytes; 0 of them if all words are 0. For u32 and u64.
  std::size_t (*pack[2])(const BlockWords& block, std::size_t n, std::uint8_t* out);
  /// How many bits groups of 8, or single widths, would take: for the choice of neighbours.
  std::uint64_t (*cost[2])(const BlockWords& block, std::size_t n);
  /// The inverse of pack(). `in` can be read to kSlackBytes past its `n_in` bytes.
  /// @returns the bytes taken; 0 if they are no block.
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
