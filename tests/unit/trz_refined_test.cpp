// trz's bit planes. Every prefix of a refined chunk satisfies the bound of its level, in every
// shape and for every kind of values. Also tests when an encoder chooses planes, and bytes that no
// encoder wrote.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "support/refined_chunks.hpp"
#include "support/trz_cases.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/refined.hpp"
#include "unit/trz_isas.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::case_of;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

std::span<std::uint8_t> as_uint8(Bytes& bytes) {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

RefinedParts parts_of(Bytes chunk) {
  const std::optional<RefinedParts> parts = read_refined_parts(as_uint8(chunk));
  EXPECT_TRUE(parts);
  return parts.value_or(RefinedParts());
}

Bytes first_bytes(const Bytes& chunk, std::size_t n) {
  return {chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// A refined chunk, even of values that would be stored raw. Empty: the bound allows no planes.
Bytes refined(const Case& chunk, int n_planes, Workspace& workspace,
              std::size_t* n_patches = nullptr) {
  return trz_cases::refined_chunk(chunk, n_planes, workspace, n_patches);
}

/// Checks all levels of a refined chunk: the requested bound, the bytes for it, the values and
/// their bound.
::testing::AssertionResult keeps_all_bounds(const Case& chunk, const Bytes& bytes,
                                            Workspace& workspace) {
  const RefinedParts parts = parts_of(bytes);
  const auto failed = [&](int level) {
    return ::testing::AssertionFailure()
           << chunk.text() << ", " << parts.n_planes << " planes, " << level << " read: ";
  };
  Bytes head = bytes;
  head.resize(std::min(head.size(), kPrefixHeadBytes));
  for (int level = 0; level <= parts.n_planes; ++level) {
    const double bound = parts.bound_of(level);
    std::optional<std::size_t> n = bound_prefix(head, bound);
    if (n != bound_prefix(head, std::nextafter(2 * bound, bound))) return failed(level) << "twice";
    if (level == parts.n_planes) {
      if (n) return failed(level) << "a prefix in the place of all";
      n = bytes.size();
    }
    if (n != parts.end_of(level)) return failed(level) << "another number of bytes";
    Bytes decoded(chunk.values.size(), std::byte{0xA5});
    const Bytes prefix = first_bytes(bytes, *n);
    const Status status = decode_prefix(prefix, decoded, chunk.type.book, workspace);
    if (!status.ok()) return failed(level) << status.message();
    ChunkType type = chunk.type;
    type.bound = bound;
    const std::uint64_t n_bad = trz_cases::count_violations(type, chunk.values, decoded);
    if (n_bad != 0) return failed(level) << n_bad << " values of " << chunk.n_values();
    if (level < parts.n_planes) continue;
    Bytes all(chunk.values.size(), std::byte{0x5A});
    if (!decode(bytes, all, chunk.type.book, workspace).ok() || all != decoded) {
      return failed(level) << "the whole chunk has other values";
    }
  }
  return ::testing::AssertionSuccess();
}

/// Waves and noise of the same amplitude.
template <class T>
Case noisy(const Shape& shape, double bound, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<T> values(n_elements(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(std::sin(0.01 * static_cast<double>(i)) + random.unit());
  }
  return case_of(values, shape, bound, Preset::standard);
}

TEST(TrzRefined, EveryPrefixKeepsItsBound) {
  Random random(1);
  std::size_t n_refined = 0;
  std::size_t n_with_patches = 0;
  std::vector<int> n_of_data(static_cast<std::size_t>(Data::n_kinds));
  for (int round = 0; round < 3000; ++round) {
    trz_cases::Limits limits;
    limits.integers = false;
    limits.n_values_max = round % 50 == 0 ? 20000 : 1000;
    const Case chunk = trz_cases::random_case(random, limits);
    const int n_planes = 1 + static_cast<int>(random.below(kBitPlanesMax));
    if (chunk.type.kind != BoundKind::absolute || chunk.n_values() < 2) continue;
    Workspace workspace;
    std::size_t n_patches = 0;
    const Bytes bytes = refined(chunk, n_planes, workspace, &n_patches);
    if (bytes.empty()) continue;
    ASSERT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
    ++n_refined;
    n_with_patches += n_patches > 0 ? 1 : 0;
    ++n_of_data[static_cast<std::size_t>(chunk.data)];
  }
  EXPECT_GT(n_refined, 1000U);
  EXPECT_GT(n_with_patches, 100U);
  EXPECT_GT(*std::ranges::min_element(n_of_data), 2);
}

TEST(TrzRefined, SmallShapesAndAllNumbersOfPlanes) {
  Workspace workspace;
  for (const Shape& shape : {Shape{2}, Shape{3}, Shape{7}, Shape{8}, Shape{9}, Shape{2, 2},
                             Shape{5, 1, 3}, Shape{63}, Shape{64}, Shape{65}, Shape{3, 5, 7, 11}}) {
    for (int n_planes = 1; n_planes <= kBitPlanesMax; ++n_planes) {
      for (const Case& chunk : {noisy<float>(shape, 1e-4), noisy<double>(shape, 1e-6)}) {
        const Bytes bytes = refined(chunk, n_planes, workspace);
        ASSERT_FALSE(bytes.empty());
        ASSERT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
        EXPECT_EQ(describe(bytes)->n_planes, static_cast<std::uint64_t>(n_planes));
      }
    }
  }
}

/// If the spacing of numbers is near the bound, rounding errors are too large for some values.
TEST(TrzRefined, PatchesWhereTheBoundIsNearTheNumbersOwnSpacing) {
  Random random(3);
  std::vector<float> values(4000);
  for (float& value : values) value = static_cast<float>(1000 + 2 * random.unit());
  Workspace workspace;
  std::size_t n_most = 0;
  for (const double spacings : {0.6, 0.75, 1.0, 1.1, 1.5, 2.0, 3.0, 40.0}) {
    const Case chunk = case_of(values, {4000}, spacings * 0x1p-14, Preset::standard);
    for (const int n_planes : {1, 4, 8}) {
      std::size_t n_patches = 0;
      const Bytes bytes = refined(chunk, n_planes, workspace, &n_patches);
      ASSERT_FALSE(bytes.empty());
      EXPECT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
      n_most = std::max(n_most, n_patches);
    }
  }
  EXPECT_GT(n_most, 400U);
}

/// NaN with their payloads, infinities, and fill values near others or far away stay bit for bit,
/// also in a prefix.
TEST(TrzRefined, WhatIsExactIsExactAtEveryLevel) {
  for (const double fill : {-999.0, 0.5, 1e20, 0.0}) {
    Case chunk = noisy<float>({50, 60}, 1e-4);
    chunk.type.fill_value = fill;
    const auto put = [&](std::size_t i, std::uint32_t bits) {
      std::memcpy(chunk.values.data() + 4 * i, &bits, sizeof bits);
    };
    for (std::size_t i = 100; i < 600; ++i) {
      put(i, std::bit_cast<std::uint32_t>(static_cast<float>(fill)));
    }
    put(0, 0x7FC00123);
    put(1, 0xFFC00001);
    put(700, 0x7F800000);
    put(701, 0xFF800000);
    put(702, 0x80000000);
    put(703, 0x00000001);
    put(704, 0x7F7FFFFF);
    Workspace workspace;
    std::size_t n_patches = 0;
    const Bytes bytes = refined(chunk, 5, workspace, &n_patches);
    ASSERT_FALSE(bytes.empty());
    EXPECT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
    // A huge fill value leaves no bits for the planes; fill values near others need patches.
    EXPECT_EQ(n_patches >= 500, fill != 1e20) << fill << ": " << n_patches;
    Bytes coarsest(chunk.values.size());
    const Bytes prefix = first_bytes(bytes, parts_of(bytes).end_of(0));
    ASSERT_TRUE(decode_prefix(prefix, coarsest, nullptr, workspace).ok());
    for (const std::size_t i : {0U, 1U, 100U, 599U, 700U, 701U}) {
      EXPECT_EQ(std::memcmp(coarsest.data() + 4 * i, chunk.values.data() + 4 * i, 4), 0) << i;
    }
  }
}

/// Values that the coarser chunk has exactly get an error of nearly the bound, alternately above
/// and below, so that sums do not drift.
TEST(TrzRefined, ErrorsOfWhatRepeatsBalance) {
  Case chunk = noisy<float>({3000}, 1e-3);
  for (std::size_t i = 0; i < 3000; i += 3) {
    const float repeated = 0.25F;
    std::memcpy(chunk.values.data() + 4 * i, &repeated, 4);
  }
  Workspace workspace;
  for (const int n_planes : {1, 4, 8}) {
    const Bytes bytes = refined(chunk, n_planes, workspace);
    ASSERT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
    Bytes decoded(chunk.values.size());
    ASSERT_TRUE(decode(bytes, decoded, nullptr, workspace).ok());
    double sum = 0;
    for (std::size_t i = 0; i < 3000; i += 3) {
      float value = 0;
      std::memcpy(&value, decoded.data() + 4 * i, 4);
      sum += static_cast<double>(value) - 0.25;
    }
    EXPECT_LT(std::fabs(sum), 0.1 * 1000 * 1e-3) << n_planes;
  }
}

TEST(TrzRefined, AreChosenWhereTheyCostLittle) {
  Workspace workspace;
  const Shape shape{30, 40, 50};
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    for (const bool wide : {false, true}) {
      for (const double bound : {1e-1, 1e-3, 1e-5}) {
        Case chunk = wide ? noisy<double>(shape, bound) : noisy<float>(shape, bound);
        chunk.settings.preset = preset;
        Bytes plain;
        ASSERT_TRUE(round_trip(chunk, workspace, &plain));
        chunk.settings.bit_planes = 4;
        Bytes bytes;
        ASSERT_TRUE(round_trip(chunk, workspace, &bytes));
        const bool has = describe(bytes)->n_planes == 4;
        EXPECT_EQ(has, bound < 5e-3) << chunk.text();
        EXPECT_LE(static_cast<double>(bytes.size()), 1.02 * static_cast<double>(plain.size()));
        if (has) {
          EXPECT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
        } else {
          EXPECT_EQ(bytes, plain);
        }
      }
    }
  }
}

TEST(TrzRefined, OtherBoundsAndTypesHaveNone) {
  Workspace workspace;
  Case chunk = noisy<float>({60, 70}, 1e-3);
  for (const BoundKind kind : {BoundKind::exact, BoundKind::pointwise}) {
    chunk.type.kind = kind;
    chunk.settings.bit_planes = 0;
    Bytes plain;
    ASSERT_TRUE(round_trip(chunk, workspace, &plain));
    chunk.settings.bit_planes = 2;
    Bytes bytes;
    ASSERT_TRUE(round_trip(chunk, workspace, &bytes));
    EXPECT_EQ(bytes, plain);
    EXPECT_FALSE(bound_prefix(bytes, 1e30));
    EXPECT_EQ(decode_prefix(bytes, chunk.values, nullptr, workspace).code(), Code::corrupt);
  }
}

TEST(TrzRefined, SettingsThatThereAreNot) {
  Workspace workspace;
  Case chunk = noisy<float>({60}, 1e-3);
  Bytes out(encoded_bytes_max(chunk.values.size()));
  for (const auto& [n_planes, n_views] : {std::pair{-1, 0}, {9, 0}, {1, 1}}) {
    chunk.settings.bit_planes = n_planes;
    chunk.settings.coarse_views = n_views;
    EXPECT_EQ(encode(chunk.type, chunk.settings, chunk.values, out, workspace).status().code(),
              Code::invalid_argument);
  }
}

TEST(TrzRefined, GuardsHoldWithAllPlanes) {
  Case chunk = noisy<float>({40, 50}, 1e-3);
  for (std::size_t i = 0; i < 2000; ++i) {
    float value = 0;
    std::memcpy(&value, chunk.values.data() + 4 * i, 4);
    value -= 0.5F;
    std::memcpy(chunk.values.data() + 4 * i, &value, 4);
  }
  Guards asked;
  asked.sign = true;
  asked.thresholds = {0.25};
  ValueGuards guards(asked, 0, 0);
  guards.sum = true;
  Workspace workspace;
  std::uint64_t n_broken[2] = {0, 0};
  double sums[3] = {0, 0, 0};
  for (const bool guarded : {false, true}) {
    chunk.type.guards = guarded ? &guards : nullptr;
    const Bytes bytes = refined(chunk, 6, workspace);
    ASSERT_TRUE(keeps_all_bounds(chunk, bytes, workspace));
    Bytes decoded(chunk.values.size());
    ASSERT_TRUE(decode(bytes, decoded, nullptr, workspace).ok());
    sums[2] = 0;
    for (std::size_t i = 0; i < 2000; ++i) {
      float x = 0;
      float y = 0;
      std::memcpy(&x, chunk.values.data() + 4 * i, 4);
      std::memcpy(&y, decoded.data() + 4 * i, 4);
      n_broken[guarded ? 1 : 0] +=
          breaks_guards(guards, static_cast<double>(x), static_cast<double>(y)) ? 1 : 0;
      sums[guarded ? 1 : 0] += static_cast<double>(y);
      sums[2] += static_cast<double>(x);
    }
  }
  EXPECT_GT(n_broken[0], 0U);
  EXPECT_EQ(n_broken[1], 0U);
  EXPECT_GT(std::fabs(sums[0] - sums[2]), 1e-5);
  EXPECT_LT(std::fabs(sums[1] - sums[2]), 1e-6);
}

TEST(TrzRefined, InstructionSetsAgree) {
  Case chunk = noisy<float>({40, 50, 31}, 1e-4);
  chunk.type.fill_value = -999;
  chunk.settings.bit_planes = 5;
  Bytes first;
  Bytes coarse;
  for (const Isa isa : isas()) {
    Workspace workspace(isa);
    Bytes bytes;
    ASSERT_TRUE(round_trip(chunk, workspace, &bytes));
    ASSERT_EQ(describe(bytes)->n_planes, 5U);
    Bytes decoded(chunk.values.size());
    const Bytes prefix = first_bytes(bytes, parts_of(bytes).end_of(2));
    ASSERT_TRUE(decode_prefix(prefix, decoded, nullptr, workspace).ok());
    if (isa == Isa::plain) {
      first = bytes;
      coarse = decoded;
    }
    EXPECT_EQ(bytes, first);
    EXPECT_EQ(decoded, coarse);
  }
}

/// A part of a joined chunk may be refined; the joined chunk then has no prefixes.
TEST(TrzRefined, PartsOfJoinedChunks) {
  Workspace workspace;
  const Case one = noisy<double>({3000}, 1e-5, 1);
  const Case other = noisy<double>({3000}, 1e-5, 2);
  const Bytes first = refined(one, 3, workspace);
  const Bytes second = refined(other, 8, workspace);
  Bytes both(joined_bytes_max(first.size(), second.size()));
  const Result<std::size_t> n = join(first, 1234, second, both);
  ASSERT_TRUE(n.ok()) << n.status().message();
  both.resize(*n);
  EXPECT_FALSE(bound_prefix(both, 1));
  Bytes wanted(one.values.size());
  Bytes behind(one.values.size());
  Bytes found(one.values.size());
  ASSERT_TRUE(decode(first, wanted, nullptr, workspace).ok());
  ASSERT_TRUE(decode(second, behind, nullptr, workspace).ok());
  ASSERT_TRUE(decode(both, found, nullptr, workspace).ok());
  std::copy(behind.begin() + 8 * 1234, behind.end(), wanted.begin() + 8 * 1234);
  EXPECT_EQ(found, wanted);
}

// --- Bytes that no encoder wrote

Status decoded_whole(Bytes chunk, std::size_t n_bytes) {
  Workspace workspace;
  Bytes values(n_bytes);
  return decode(chunk, values, nullptr, workspace);
}

TEST(TrzRefinedHostile, EachLengthButThoseOfLevelsIsRefused) {
  const Case chunk = noisy<float>({20, 30}, 1e-3);
  Workspace workspace;
  const Bytes bytes = refined(chunk, 4, workspace);
  const RefinedParts parts = parts_of(bytes);
  Bytes values(chunk.values.size());
  int n_good = 0;
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    n_good += decode_prefix(first_bytes(bytes, n), values, nullptr, workspace).ok() ? 1 : 0;
  }
  EXPECT_EQ(n_good, 5);
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_prefix(longer, values, nullptr, workspace).code(), Code::corrupt);
  // A prefix is not a chunk, even with a valid checksum.
  Bytes prefix = first_bytes(bytes, parts.end_of(2));
  seal(as_uint8(prefix));
  EXPECT_EQ(decoded_whole(prefix, values.size()).code(), Code::corrupt);
  EXPECT_TRUE(decode_prefix(prefix, values, nullptr, workspace).ok());
  values.resize(values.size() - 4);
  EXPECT_EQ(decode_prefix(prefix, values, nullptr, workspace).code(), Code::corrupt);
}

TEST(TrzRefinedHostile, EachByteThatChangesIsTold) {
  const Case chunk = noisy<float>({20, 30}, 1e-3);
  Workspace workspace;
  const Bytes bytes = refined(chunk, 4, workspace);
  const RefinedParts parts = parts_of(bytes);
  Bytes values(chunk.values.size());
  for (int level = 0; level <= 4; ++level) {
    const Bytes prefix = first_bytes(bytes, parts.end_of(level));
    for (std::size_t at = 0; at < prefix.size(); ++at) {
      if (at >= kChecksumAt && at < kChecksummedFrom) continue;  // The unused checksum.
      Bytes changed = prefix;
      changed[at] ^= static_cast<std::byte>(1U << at % 8);
      EXPECT_EQ(decode_prefix(changed, values, nullptr, workspace).code(), Code::corrupt) << at;
    }
  }
  // The complete chunk is refused, even if its checksum matches the change.
  for (const std::size_t at : {parts.inner_at + 20, parts.end_of(0) + 3, parts.end_of(1) - 1}) {
    Bytes changed = bytes;
    changed[at] ^= std::byte{4};
    seal(as_uint8(changed));
    EXPECT_EQ(decoded_whole(changed, values.size()).code(), Code::corrupt) << at;
  }
}

TEST(TrzRefinedHostile, DamageWithChecksumsThatFitStaysInBounds) {
  Random random(7);
  int n_sealed = 0;
  for (int round = 0; round < 4000; ++round) {
    Case chunk = round % 2 == 0 ? noisy<float>({3, 100}, 1e-3) : noisy<double>({300}, 1e-7);
    chunk.type.fill_value = 0.5;
    Workspace workspace;
    const int n_planes = 1 + static_cast<int>(random.below(8));
    Bytes bytes = refined(chunk, n_planes, workspace);
    trz_cases::damage(bytes, 60, random);
    n_sealed += seal_refined(as_uint8(bytes)) ? 1 : 0;
    seal(as_uint8(bytes));
    EXPECT_TRUE(whole::stays_in_bounds(bytes, chunk.values.size(), nullptr));
    for (const double bound : {1e-3, 1e-2, 1e30}) {
      const auto n = bound_prefix(bytes, bound);
      if (!n || *n > bytes.size()) continue;
      Workspace fresh;
      Bytes values(chunk.values.size());
      static_cast<void>(decode_prefix(first_bytes(bytes, *n), values, nullptr, fresh));
      EXPECT_LE(fresh.held_bytes(), 16 * (values.size() + bytes.size()) + (std::size_t{1} << 20));
    }
  }
  EXPECT_GT(n_sealed, 1000);
}

/// A refined chunk's own content with another inner chunk; sealed.
Bytes around(const Bytes& refined_bytes, const Bytes& inner) {
  const RefinedParts parts = parts_of(refined_bytes);
  Bytes out(refined_bytes.size() + inner.size() + 64);
  ChunkWriter writer(as_uint8(out));
  write_head(parts.head, writer);
  const auto* const from = reinterpret_cast<const std::uint8_t*>(refined_bytes.data());
  writer.bytes(from + writer.n_written(), 1 + 2 * dtype_bytes(parts.head.dtype));
  writer.varint(inner.size() - kChecksummedFrom);
  writer.varint(parts.n_patch_bytes);
  for (int plane = 0; plane < parts.n_planes; ++plane) {
    writer.varint(parts.n_plane_bytes[static_cast<std::size_t>(plane)]);
  }
  writer.bytes(inner.data() + kChecksummedFrom, inner.size() - kChecksummedFrom);
  writer.bytes(from + parts.patches_at(), refined_bytes.size() - parts.patches_at());
  out.resize(writer.n_written());
  EXPECT_TRUE(seal_refined(as_uint8(out)));
  seal(as_uint8(out));
  return out;
}

TEST(TrzRefinedHostile, WhatMayLieWithin) {
  Workspace workspace;
  const Case chunk = noisy<float>({30, 40}, 1e-3);
  const std::size_t n_bytes = chunk.values.size();
  const Bytes outer = refined(chunk, 3, workspace);
  Bytes plain;
  ASSERT_TRUE(round_trip(chunk, workspace, &plain));
  EXPECT_TRUE(decoded_whole(around(outer, plain), n_bytes).ok());
  EXPECT_EQ(decoded_whole(around(outer, outer), n_bytes).code(), Code::corrupt);
  Bytes joined(joined_bytes_max(plain.size(), plain.size()));
  joined.resize(join(plain, 600, plain, joined).value());
  EXPECT_EQ(decoded_whole(around(outer, joined), n_bytes).code(), Code::corrupt);
  Bytes newer = plain;
  newer[kExtentsAt] |= std::byte{0x80};
  EXPECT_EQ(decoded_whole(around(outer, newer), n_bytes).message(),
            "trz chunk: needs a newer trz: unknown form of a chunk within it");
  for (const Case& other : {noisy<float>({30, 41}, 1e-3), noisy<double>({30, 40}, 1e-3)}) {
    Bytes misfit;
    ASSERT_TRUE(round_trip(other, workspace, &misfit));
    EXPECT_EQ(decoded_whole(around(outer, misfit), n_bytes).code(), Code::corrupt);
  }
}

TEST(TrzRefinedHostile, IsOfFloatsAndHasNoPrefixInAnotherVersion) {
  Workspace workspace;
  const Case chunk = noisy<float>({30, 40}, 1e-3);
  const Bytes bytes = refined(chunk, 3, workspace);
  Bytes newer = bytes;
  newer[kVersionAt] = std::byte{2};
  EXPECT_FALSE(bound_prefix(newer, 1));
  Bytes integers = bytes;
  integers[kChecksummedFrom] = static_cast<std::byte>(10U << 4 | unsigned(DType::i32));
  seal(as_uint8(integers));
  EXPECT_EQ(decoded_whole(integers, chunk.values.size()).code(), Code::corrupt);
  EXPECT_FALSE(bound_prefix(integers, 1));
}

}  // namespace
}  // namespace tailrace::trz
