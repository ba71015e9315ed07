// Groups of 64 codes, compiled once per instruction set: see group_kernels.hpp.

#include "codec/trz/group_kernels.hpp"

#include <cstring>

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::uint32_t zigzag(std::int32_t c) {
  return (static_cast<std::uint32_t>(c) << 1) ^ static_cast<std::uint32_t>(c >> 31);
}

inline std::int32_t unzigzag(std::uint32_t z) {
  return static_cast<std::int32_t>((z >> 1) ^ (0U - (z & 1)));
}

inline std::size_t bits_of(std::uint32_t x) {
  return x == 0 ? 0 : 32 - static_cast<std::size_t>(__builtin_clz(x));
}

std::uint8_t* put_planes(const std::uint32_t* words, std::size_t n_planes, std::uint8_t* planes) {
  for (std::size_t b = 0; b < n_planes; ++b) {
    std::uint64_t plane = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      plane |= static_cast<std::uint64_t>((words[i] >> b) & 1) << i;
    }
    std::memcpy(planes, &plane, 8);
    planes += 8;
  }
  return planes;
}

const std::uint8_t* add_planes(const std::uint8_t* planes, std::size_t n_planes,
                               std::uint32_t* words) {
  for (std::size_t b = 0; b < n_planes; ++b) {
    std::uint64_t plane = 0;
    std::memcpy(&plane, planes, 8);
    planes += 8;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      words[i] |= static_cast<std::uint32_t>((plane >> i) & 1) << b;
    }
  }
  return planes;
}

/// The class of a group, from the magnitudes of its codes as bytes (128 and more count as 127).
std::size_t class_of(const std::int32_t* codes) {
  std::size_t n_larger[8] = {};  // than 0, 1, 3, 7, 15, 31, 63
  std::size_t n_bits[33] = {};
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const std::uint32_t x = static_cast<std::uint32_t>(codes[i] ^ (codes[i] >> 31));
    const std::uint32_t m = x + (codes[i] < 0 ? 1 : 0);
    for (std::size_t k = 0; k < 7; ++k) n_larger[k] += m >= (1U << k) ? 1 : 0;
    ++n_bits[bits_of(x)];
  }
  for (std::size_t k = 0; k < 7; ++k) {
    if (n_larger[k] <= class_misfits_max(k)) return k;
  }
  std::size_t n_above = 0;
  std::size_t k = 32;
  while (k > 7 && n_above + n_bits[k] <= class_misfits_max(k)) n_above += n_bits[k--];
  return k;
}

void split(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    const std::size_t k = class_of(codes);
    *cursor.classes++ = static_cast<std::uint8_t>(k);
    if (k == 0) continue;
    const std::size_t s = class_planes(k);
    const std::int32_t limit = k == 1 ? 1 : k <= 3 ? 7 : 126;
    const std::int32_t marker = k == 1 ? -2 : k <= 3 ? -8 : -128;
    std::int8_t bytes[kGroupCodes];
    std::uint32_t words[kGroupCodes];
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const std::int32_t v = codes[i] >> s;
      const bool fits = v <= limit && v >= -limit;
      bytes[i] = static_cast<std::int8_t>(fits ? v : marker);
      if (!fits) *cursor.exceptions++ = codes[i];
      words[i] = static_cast<std::uint32_t>(codes[i]);
    }
    std::uint8_t* out = cursor.bytes[k];
    if (k == 1) {
      for (std::size_t i = 0; i < 16; ++i) {
        out[i] = static_cast<std::uint8_t>((bytes[4 * i] & 3) | ((bytes[4 * i + 1] & 3) << 2) |
                                           ((bytes[4 * i + 2] & 3) << 4) |
                                           ((bytes[4 * i + 3] & 3) << 6));
      }
    } else if (k <= 3) {
      for (std::size_t i = 0; i < 32; ++i) {
        out[i] = static_cast<std::uint8_t>((bytes[2 * i] & 15) | ((bytes[2 * i + 1] & 15) << 4));
      }
    } else {
      std::memcpy(out, bytes, kGroupCodes);
    }
    cursor.bytes[k] = out + class_bytes(k);
    cursor.planes = put_planes(words, s, cursor.planes);
  }
}

bool join(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    const std::size_t k = *cursor.classes++;
    if (k >= kClasses) return false;
    if (k == 0) {
      std::memset(codes, 0, kGroupCodes * sizeof(std::int32_t));
      continue;
    }
    const std::uint8_t* in = cursor.bytes[k];
    cursor.bytes[k] += class_bytes(k);
    const std::size_t s = class_planes(k);
    std::uint32_t words[kGroupCodes] = {};
    cursor.planes = const_cast<std::uint8_t*>(add_planes(cursor.planes, s, words));
    const std::int32_t marker = k == 1 ? -2 : k <= 3 ? -8 : -128;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      std::int32_t v = 0;
      if (k == 1) {
        v = static_cast<std::int8_t>(in[i / 4] << (6 - 2 * (i % 4))) >> 6;
      } else if (k <= 3) {
        v = static_cast<std::int8_t>(in[i / 2] << (4 - 4 * (i % 2))) >> 4;
      } else {
        v = static_cast<std::int8_t>(in[i]);
      }
      if (v == marker) {
        if (cursor.exceptions == cursor.exceptions_end) return false;
        codes[i] = *cursor.exceptions++;
      } else {
        codes[i] = static_cast<std::int32_t>((static_cast<std::uint32_t>(v) << s) | words[i]);
      }
    }
  }
  return true;
}

std::uint8_t* pack(const std::int32_t* codes, std::size_t n_groups, std::uint8_t* widths,
                   std::uint8_t* planes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    std::uint32_t words[kGroupCodes];
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      words[i] = zigzag(codes[i]);
      all |= words[i];
    }
    const std::size_t width = bits_of(all);
    *widths++ = static_cast<std::uint8_t>(width);
    planes = put_planes(words, width, planes);
  }
  return planes;
}

const std::uint8_t* unpack(const std::uint8_t* widths, std::size_t n_groups,
                           const std::uint8_t* planes, std::int32_t* codes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    std::uint32_t words[kGroupCodes] = {};
    planes = add_planes(planes, widths[g], words);
    for (std::size_t i = 0; i < kGroupCodes; ++i) codes[i] = unzigzag(words[i]);
  }
  return planes;
}

}  // namespace

extern const GroupKernels group_kernels_table = {split, join, pack, unpack};

}  // namespace tailrace::trz::TRZ_ISA
