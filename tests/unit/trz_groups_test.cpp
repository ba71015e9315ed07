// Groups of codes: every instruction set writes and reads the bytes of trz/docs/trz-format.md.
//
// The reference below follows that document, code by code, and shares nothing with the kernels
// except the interface.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "trz/kernels/group_kernels.hpp"
#include "unit/codec_samples.hpp"
#include "unit/trz_isas.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kSlack = 64;

/// The streams of a run of groups, with capacity and slack.
struct Streams {
  std::vector<std::uint8_t> classes;
  std::vector<std::uint8_t> bytes[kClasses];
  std::vector<std::uint8_t> planes;
  std::vector<std::int32_t> exceptions;

  bool operator==(const Streams&) const = default;

  void make_room(std::size_t n_groups) {
    classes.assign(n_groups + kSlack, 0xEE);
    for (auto& stream : bytes) stream.assign(n_groups * kGroupCodes + kSlack, 0xEE);
    planes.assign(n_groups * kPlanesMax * 8 + kSlack, 0xEE);
    exceptions.assign(n_groups * kExceptionsMax + kSlack, -1);
  }
  GroupCursor cursor() {
    GroupCursor cursor;
    cursor.classes = classes.data();
    for (std::size_t k = 0; k < kClasses; ++k) cursor.bytes[k] = bytes[k].data();
    cursor.planes = planes.data();
    cursor.exceptions = exceptions.data();
    cursor.exceptions_end = exceptions.data() + exceptions.size();
    return cursor;
  }
  void cut(const GroupCursor& end) {
    classes.resize(static_cast<std::size_t>(end.classes - classes.data()));
    for (std::size_t k = 0; k < kClasses; ++k) {
      bytes[k].resize(static_cast<std::size_t>(end.bytes[k] - bytes[k].data()));
    }
    planes.resize(static_cast<std::size_t>(end.planes - planes.data()));
    exceptions.resize(static_cast<std::size_t>(end.exceptions - exceptions.data()));
  }
};

std::size_t bit_length(std::uint64_t x) {
  std::size_t n = 0;
  for (; x != 0; x >>= 1) ++n;
  return n;
}

/// The class of 64 codes, as the document defines it.
std::size_t reference_class(const std::int32_t* codes) {
  const auto n_needing = [&](std::uint64_t more_than) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const auto c = static_cast<std::int64_t>(codes[i]);
      if (static_cast<std::uint64_t>(c < 0 ? -c : c) > more_than) ++n;
    }
    return n;
  };
  constexpr std::size_t misfits_max[7] = {0, 4, 10, 12, 4, 4, 4};
  for (std::size_t k = 0; k < 7; ++k) {
    if (n_needing((1U << k) - 1) <= misfits_max[k]) return k;
  }
  for (std::size_t k = 7; k < 31; ++k) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const auto c = static_cast<std::int64_t>(codes[i]);
      if (bit_length(static_cast<std::uint64_t>(c < 0 ? -c - 1 : c)) > k) ++n;
    }
    if (n <= 4) return k;
  }
  return 31;
}

Streams reference_split(const std::vector<std::int32_t>& codes) {
  Streams out;
  for (std::size_t begin = 0; begin < codes.size(); begin += kGroupCodes) {
    const std::size_t k = reference_class(&codes[begin]);
    out.classes.push_back(static_cast<std::uint8_t>(k));
    if (k == 0) continue;
    const std::size_t shift = k > 6 ? k - 6 : 0;
    const std::size_t per_byte = k == 1 ? 4 : k <= 3 ? 2 : 1;
    const std::int32_t limit = k == 1 ? 1 : k <= 3 ? 7 : 126;
    unsigned byte = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const std::int32_t c = codes[begin + i];
      const std::int32_t v = c >> shift;
      const bool fits = -limit <= v && v <= limit;
      if (!fits) out.exceptions.push_back(c);
      const unsigned bits = fits ? static_cast<unsigned>(v) : 0x80U >> (8 - 8 / per_byte);
      byte |= (bits & (0xFFU >> (8 - 8 / per_byte))) << (i % per_byte * (8 / per_byte));
      if (i % per_byte == per_byte - 1) {
        out.bytes[k].push_back(static_cast<std::uint8_t>(byte));
        byte = 0;
      }
    }
    for (std::size_t b = 0; b < shift; ++b) {
      for (std::size_t i = 0; i < kGroupCodes; i += 8) {
        unsigned bits = 0;
        for (std::size_t j = 0; j < 8; ++j) {
          bits |= ((static_cast<unsigned>(codes[begin + i + j]) >> b) & 1U) << j;
        }
        out.planes.push_back(static_cast<std::uint8_t>(bits));
      }
    }
  }
  return out;
}

/// Codes of every magnitude: groups of one scale with a few larger ones, as real data has them.
std::vector<std::int32_t> mixed_codes(std::size_t n_groups, std::uint64_t seed) {
  test::Random random{seed};
  std::vector<std::int32_t> codes;
  for (std::size_t g = 0; g < n_groups; ++g) {
    const std::uint64_t n_bits = random.next() % 34;
    const std::uint64_t one_in = 1 + random.next() % 70;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const std::uint64_t extra = random.next() % one_in == 0 ? random.next() % 34 : 0;
      const std::uint64_t n = std::min<std::uint64_t>(std::max(n_bits, extra), 33);
      const std::uint64_t x = n == 0 ? 0 : random.next() >> (64 - n);
      const auto c = static_cast<std::int64_t>(x >> 1);
      codes.push_back(static_cast<std::int32_t>((x & 1) != 0 ? -c : c));
    }
  }
  return codes;
}

/// Groups at the edges of every rule: n codes of one value, the others of another value.
std::vector<std::int32_t> edge_codes() {
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> values = {0, least, least + 1, most, most - 1};
  for (int b = 0; b < 31; ++b) {
    for (const std::int32_t d : {-2, -1, 0, 1}) {
      values.push_back((1 << b) + d);
      values.push_back(-((1 << b) + d));
    }
  }
  std::vector<std::int32_t> codes;
  for (const std::int32_t rare : values) {
    for (const std::int32_t common : {0, 1, -1, 3, -7, 8, 15, -16, 63, -64, 127, -128, 1 << 20}) {
      for (const std::size_t n : {0, 1, 3, 4, 5, 10, 11, 32, 64}) {
        for (std::size_t i = 0; i < kGroupCodes; ++i) {
          codes.push_back((i * 37) % kGroupCodes < n ? rare : common);
        }
      }
    }
  }
  return codes;
}

void expect_split_and_join(const std::vector<std::int32_t>& codes) {
  const std::size_t n_groups = codes.size() / kGroupCodes;
  const Streams expected = reference_split(codes);
  for (const Isa isa : isas()) {
    SCOPED_TRACE(isa_name(isa));
    const GroupKernels& kernels = group_kernels(isa);
    Streams streams;
    streams.make_room(n_groups);
    GroupCursor cursor = streams.cursor();
    // Calls with several numbers of groups: the division into calls must not matter.
    for (std::size_t done = 0, n = 1; done < n_groups; done += n, n = n * 3 % 101) {
      n = std::min(n, n_groups - done);
      kernels.split(&codes[done * kGroupCodes], n, cursor);
    }
    streams.cut(cursor);
    ASSERT_TRUE(streams == expected);

    std::vector<std::int32_t> back(codes.size(), 77);
    for (auto& stream : streams.bytes) stream.resize(stream.size() + kSlack);
    streams.planes.resize(streams.planes.size() + kSlack);
    streams.classes.resize(streams.classes.size() + kSlack);
    cursor = streams.cursor();
    for (std::size_t done = 0, n = 1; done < n_groups; done += n, n = n * 3 % 103) {
      n = std::min(n, n_groups - done);
      ASSERT_TRUE(kernels.join(cursor, n, &back[done * kGroupCodes]));
    }
    EXPECT_EQ(cursor.exceptions, cursor.exceptions_end);
    ASSERT_TRUE(back == codes);
  }
}

TEST(TrzGroups, MixedCodesSplitAsDocumentedAndJoin) { expect_split_and_join(mixed_codes(5000, 1)); }

TEST(TrzGroups, CodesAtTheEdgesOfTheClassesSplitAsDocumentedAndJoin) {
  expect_split_and_join(edge_codes());
}

TEST(TrzGroups, HostileClassesAndExceptionsAreRefusedOrHarmless) {
  test::Random random{7};
  for (const Isa isa : isas()) {
    SCOPED_TRACE(isa_name(isa));
    const GroupKernels& kernels = group_kernels(isa);
    for (int round = 0; round < 300; ++round) {
      const std::size_t n_groups = 1 + random.next() % 150;
      // Exactly the bytes that the classes imply (and slack), full of markers, with too few
      // exceptions.
      Streams streams;
      const bool has_unknown = round % 3 == 0;
      for (std::size_t g = 0; g < n_groups; ++g) {
        const std::size_t k = random.next() % kClasses;
        streams.classes.push_back(static_cast<std::uint8_t>(k));
        for (std::size_t i = 0; i < class_bytes(k); ++i) {
          const std::uint64_t r = random.next();
          const unsigned marker = k == 1 ? 0xAA : k <= 3 ? 0x88 : 0x80;
          streams.bytes[k].push_back(static_cast<std::uint8_t>(r % 4 == 0 ? marker : r >> 8));
        }
        for (std::size_t i = 0; i < 8 * class_planes(k); ++i) streams.planes.push_back(0x5A);
      }
      if (has_unknown) {
        streams.classes[random.next() % n_groups] =
            static_cast<std::uint8_t>(kClasses + random.next() % (256 - kClasses));
      }
      streams.exceptions.assign(random.next() % (n_groups * 20), 12345);
      for (auto& stream : streams.bytes) stream.resize(stream.size() + kSlack);
      streams.planes.resize(streams.planes.size() + kSlack);
      GroupCursor cursor = streams.cursor();
      std::vector<std::int32_t> codes(n_groups * kGroupCodes);
      const bool joined = kernels.join(cursor, n_groups, codes.data());
      EXPECT_FALSE(has_unknown && joined);
      EXPECT_LE(cursor.exceptions, cursor.exceptions_end);
    }
  }
}

TEST(TrzGroups, JoinNeedsEveryException) {
  const std::vector<std::int32_t> codes = mixed_codes(64, 3);
  const Streams whole = reference_split(codes);
  ASSERT_FALSE(whole.exceptions.empty());
  for (const Isa isa : isas()) {
    SCOPED_TRACE(isa_name(isa));
    for (std::size_t n = 0; n < whole.exceptions.size(); ++n) {
      Streams streams = whole;
      streams.exceptions.resize(n);
      for (auto& stream : streams.bytes) stream.resize(stream.size() + kSlack);
      streams.planes.resize(streams.planes.size() + kSlack);
      GroupCursor cursor = streams.cursor();
      std::vector<std::int32_t> back(codes.size());
      EXPECT_FALSE(group_kernels(isa).join(cursor, codes.size() / kGroupCodes, back.data()));
    }
  }
}

void expect_pack_and_unpack(const std::vector<std::int32_t>& codes) {
  const std::size_t n_groups = codes.size() / kGroupCodes;
  std::vector<std::uint8_t> expected_widths;
  std::vector<std::uint8_t> expected_planes;
  for (std::size_t g = 0; g < n_groups; ++g) {
    std::vector<std::uint64_t> z;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      const auto c = static_cast<std::int64_t>(codes[g * kGroupCodes + i]);
      z.push_back(static_cast<std::uint64_t>(c < 0 ? -2 * c - 1 : 2 * c));
    }
    const std::size_t width = bit_length(*std::max_element(z.begin(), z.end()));
    expected_widths.push_back(static_cast<std::uint8_t>(width));
    for (std::size_t b = 0; b < width; ++b) {
      for (std::size_t i = 0; i < kGroupCodes; i += 8) {
        std::uint64_t bits = 0;
        for (std::size_t j = 0; j < 8; ++j) bits |= ((z[i + j] >> b) & 1) << j;
        expected_planes.push_back(static_cast<std::uint8_t>(bits));
      }
    }
  }
  for (const Isa isa : isas()) {
    SCOPED_TRACE(isa_name(isa));
    const GroupKernels& kernels = group_kernels(isa);
    std::vector<std::uint8_t> widths(n_groups, 0xEE);
    std::vector<std::uint8_t> planes(n_groups * 256 + kSlack, 0xEE);
    const std::uint8_t* end = kernels.pack(codes.data(), n_groups, widths.data(), planes.data());
    planes.resize(static_cast<std::size_t>(end - planes.data()));
    ASSERT_TRUE(widths == expected_widths);
    ASSERT_TRUE(planes == expected_planes);

    planes.resize(planes.size() + kSlack);
    std::vector<std::int32_t> back(codes.size(), 77);
    end = kernels.unpack(widths.data(), n_groups, planes.data(), back.data());
    EXPECT_EQ(static_cast<std::size_t>(end - planes.data()), expected_planes.size());
    ASSERT_TRUE(back == codes);
  }
}

TEST(TrzGroups, MixedCodesPackAsDocumentedAndUnpack) {
  expect_pack_and_unpack(mixed_codes(3000, 2));
}

TEST(TrzGroups, CodesAtTheEdgesPackAsDocumentedAndUnpack) { expect_pack_and_unpack(edge_codes()); }

}  // namespace
}  // namespace tailrace::trz
