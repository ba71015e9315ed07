// Groups of 64 codes: split into classes of packed bytes, and joined again. Also bit packing.
//
// A code is the quantised prediction error of one value, an int32 near zero. Sixty-four codes in a
// row are a group; its class says how large they are, and each class packs its groups into bytes
// of its own stream, so that the byte-wise entropy coder behind sees magnitudes of one kind:
//
//   class 0         every code is 0        no bytes
//   class 1         |c| <= 1               16 bytes, four codes of 2 bits each
//   class 2         |c| <= 3               32 bytes, two codes of 4 bits each
//   class 3         |c| <= 7               32 bytes, two codes of 4 bits each
//   class 4, 5, 6   |c| <= 15, 31, 63      64 bytes, one code each
//   class 6 + s     c needs 6 + s bits     64 bytes of c >> s, and s bit planes (s = 1..25)
//
// A few codes of a group may be larger than that (class_misfits_max). Those that the class's bytes
// cannot hold are exceptions: a marker stands in their place (2 in class 1, -8 in classes 2 and 3,
// -128 in the byte classes) and the code itself, whole, goes to the exceptions. Plane b of a group
// is one 64-bit word, bit i of which is bit b of code i, exception or not. Source: shared design
// facts, section 4.4; classes 4 to 6 are ours (context by magnitude). The exact rules and the
// layout of the bytes: trz/docs/trz-format.md. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kGroupCodes = 64;
inline constexpr std::size_t kClasses = 32;        ///< 6 + s with s up to 25.
inline constexpr std::size_t kPlanesMax = 25;      ///< Of class 31.
inline constexpr std::size_t kExceptionsMax = 16;  ///< Of one group, at most.

/// How many codes of a group may be larger than its class says.
constexpr std::size_t class_misfits_max(std::size_t class_index) {
  return class_index == 0   ? 0
         : class_index == 1 ? 4
         : class_index == 2 ? 10
         : class_index == 3 ? 12
                            : 4;
}
/// Bytes of one group in its class's stream.
constexpr std::size_t class_bytes(std::size_t class_index) {
  return class_index == 0 ? 0 : class_index == 1 ? 16 : class_index <= 3 ? 32 : 64;
}
/// Raw bit planes of one group (8 bytes each) in the stream of planes.
constexpr std::size_t class_planes(std::size_t class_index) {
  return class_index <= 6 ? 0 : class_index - 6;
}

/// Where split() writes and join() reads: one pointer per stream, advanced as it goes. The caller
/// sees to it that there is room (split: 64 bytes a group and class, 8 * kPlanesMax bytes a group
/// of planes, kExceptionsMax exceptions a group) or that there are bytes (join: those that the
/// class ids imply); in both cases with 64 bytes of slack behind each stream, but for the
/// exceptions of join().
struct GroupCursor {
  std::uint8_t* classes = nullptr;               ///< One byte per group.
  std::uint8_t* bytes[kClasses] = {};            ///< bytes[0] stays unused.
  std::uint8_t* planes = nullptr;                ///< Little-endian 64-bit words, unaligned.
  std::int32_t* exceptions = nullptr;            ///< Whole codes, in order of appearance.
  const std::int32_t* exceptions_end = nullptr;  ///< join only: never read at or past it.
};

struct GroupKernels {
  /// Split n_groups * 64 codes. Always the same bytes for the same codes.
  void (*split)(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor);
  /// Join n_groups groups. Returns false if a class is unknown or exceptions run out (then codes
  /// are unspecified, but nothing was read or written out of range).
  bool (*join)(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes);
  /// Bit packing: per group the width w = 0..32 of its largest zigzag code ((c << 1) ^ (c >> 31)),
  /// one byte into `widths`, and w planes of it into `planes`. Return the advanced `planes`, of
  /// which 64 bytes more may be overwritten.
  std::uint8_t* (*pack)(const std::int32_t* codes, std::size_t n_groups, std::uint8_t* widths,
                        std::uint8_t* planes);
  /// The inverse; the caller has checked that every width <= 32 and that the planes are there.
  const std::uint8_t* (*unpack)(const std::uint8_t* widths, std::size_t n_groups,
                                const std::uint8_t* planes, std::int32_t* codes);
};

TRZ_DECLARE_KERNELS(GroupKernels, group_kernels)

}  // namespace tailrace::trz
