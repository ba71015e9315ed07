// Groups of 64 codes: split into classes of packed bytes, and joined again. Also bit packing.
//
// A code is the quantised prediction error of one value, an int32 near zero. Sixty-four successive
// codes are a group, and their magnitude determines its class. Each class packs its groups into a
// stream of bytes. The byte-wise entropy coder thus sees similar magnitudes in each stream:
//
//   class 0:        every code is 0;       no bytes.
//   class 1:        |c| <= 1;              16 bytes, four codes of 2 bits each.
//   class 2:        |c| <= 3;              32 bytes, two codes of 4 bits each.
//   class 3:        |c| <= 7;              32 bytes, two codes of 4 bits each.
//   class 4, 5, 6:  |c| <= 15, 31, 63;     64 bytes, one code each.
//   class 6 + s:    c needs 6 + s bits;    64 bytes of c >> s, and s bit planes (s = 1..25).
//
// A few codes of a group may exceed this limit (class_misfits_max). Codes that do not fit the
// class's bytes are exceptions. A marker replaces them: 2 in class 1, -8 in classes 2 and 3, -128
// in the byte classes. The complete code goes to the exceptions. Plane b of a group is a 64-bit
// word whose bit i is bit b of code i, exceptions included. Source: shared design facts, section
// 4.4; classes 4 to 6 are our own (context by magnitude). The exact rules and the layout of the
// bytes are in trz/docs/trz-format.md. Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kGroupCodes = 64;
inline constexpr std::size_t kClasses = 32;        ///< Classes 0 to 31; the last is 6 + 25.
inline constexpr std::size_t kPlanesMax = 25;      ///< Planes of class 31.
inline constexpr std::size_t kExceptionsMax = 16;  ///< Most exceptions of one group.

/// Most codes of a group that may exceed the limit of its class.
constexpr std::size_t class_misfits_max(std::size_t class_index) {
  return class_index == 0   ? 0
         : class_index == 1 ? 4
         : class_index == 2 ? 10
         : class_index == 3 ? 12
                            : 4;
}
/// Size in bytes of one group in its class's stream.
constexpr std::size_t class_bytes(std::size_t class_index) {
  return class_index == 0 ? 0 : class_index == 1 ? 16 : class_index <= 3 ? 32 : 64;
}
/// Number of raw bit planes (8 bytes each) of one group in the stream of planes.
constexpr std::size_t class_planes(std::size_t class_index) {
  return class_index <= 6 ? 0 : class_index - 6;
}

/// Positions in the streams at which split() writes and join() reads; both advance them.
///
/// For split(), the caller provides 64 bytes per group and class, 8 * kPlanesMax bytes of planes
/// per group, and kExceptionsMax exceptions per group. For join(), the streams must have the bytes
/// that the class ids imply. Each stream needs 64 bytes of padding, except join()'s exceptions.
struct GroupCursor {
  std::uint8_t* classes = nullptr;               ///< One byte per group.
  std::uint8_t* bytes[kClasses] = {};            ///< bytes[0] is unused.
  std::uint8_t* planes = nullptr;                ///< Little-endian 64-bit words, unaligned.
  std::int32_t* exceptions = nullptr;            ///< Complete codes, in order of appearance.
  const std::int32_t* exceptions_end = nullptr;  ///< join() only: never read at or past it.
};

struct GroupKernels {
  /// Split n_groups * 64 codes. The same codes always give the same bytes.
  void (*split)(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor);
  /// Join n_groups groups. Returns false if a class is unknown or exceptions run out; `codes` are
  /// then unspecified. Never accesses memory out of range.
  bool (*join)(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes);
  /// Bit packing. The width w = 0..32 of a group is that of its largest zigzag code, which is
  /// (c << 1) ^ (c >> 31). For each group, write w as one byte to `widths`, and w planes to
  /// `planes`. Returns the advanced `planes`; 64 more bytes after them may be overwritten.
  std::uint8_t* (*pack)(const std::int32_t* codes, std::size_t n_groups, std::uint8_t* widths,
                        std::uint8_t* planes);
  /// The inverse of pack. The caller has checked that every width is <= 32 and that the planes are
  /// complete.
  const std::uint8_t* (*unpack)(const std::uint8_t* widths, std::size_t n_groups,
                                const std::uint8_t* planes, std::int32_t* codes);
};

TRZ_DECLARE_KERNELS(GroupKernels, group_kernels)

}  // namespace tailrace::trz
