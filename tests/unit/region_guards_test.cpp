// guard=region: bounds of regions, from their texts to the values of a chunk. The judge is
// exceeds_bound(), in exact arithmetic, with the level looked up for each value.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/codec_registry.hpp"
#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/region_bound.hpp"
#include "trz/trz.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;

TEST(Regions, TextsAreReadAndWritten) {
  for (const char* text :
       {"region=0..16x10..20x*:1e-04", "region=3..x*:0", "region=*:1e-07", "region=/mask:0.5",
        "region=/a/b:c d:1", "sign+sum+region=0..1:0.25+region=/mask:1e+30", "region=/mask=1:2",
        "region=7..8:1+region=7..8:2"}) {
    const bool has_blank = std::string_view(text).find(' ') != std::string_view::npos;
    const Result<Guards> guards = parse_guards(text);
    ASSERT_EQ(guards.ok(), !has_blank) << text;
    if (!guards.ok()) continue;
    EXPECT_EQ(guards_text(*guards), text);
    EXPECT_TRUE(guards->of_values());
    EXPECT_EQ(guards->of_all(), guards->sum);
  }
  const Result<Guards> same =
      parse_guards("region=..4x0..:1e-2+region=0..4x*:0.01+region=*x..9:-0");
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(guards_text(*same), "region=0..4x*:0.01+region=*x0..9:0");
  for (const char* text : {"region",
                           "region=",
                           "region=:1",
                           "region=0..4",
                           "region=0..4:",
                           "region=0..4:x",
                           "region=0..4:-1",
                           "region=0..4:nan",
                           "region=0..4:inf",
                           "region=4..4:1",
                           "region=5..4:1",
                           "region=4:1",
                           "region=..-1:1",
                           "region=-1..2:1",
                           "region=+1..2:1",
                           "region=0..4x:1",
                           "region=x0..4:1",
                           "region=0...4:1",
                           "region=0..4y0..4:1",
                           "region=/:1",
                           "region=/a/:1",
                           "region=//a:1",
                           "region=mask:1",
                           "region=/a;b:1",
                           "region=/a\tb:1",
                           "region=**:1",
                           "region=0..18446744073709551615:1",
                           "region=18446744073709551616..:1"}) {
    EXPECT_FALSE(parse_guards(text).ok()) << text;
  }
  std::string many = "region=0..1:1";
  for (std::size_t d = 1; d < kMaxRank; ++d) many.insert(7, "*x");
  EXPECT_TRUE(parse_guards(many).ok());
  many.insert(7, "*x");
  EXPECT_FALSE(parse_guards(many).ok());
  many = "region=0..1:1";
  for (int k = 1; k < 65; ++k) many += "+region=0..1:" + std::to_string(k + 1);
  EXPECT_FALSE(parse_guards(many).ok());  // More than 64 regions.
  many = "region=/" + std::string(kGuardsTextBytesMax, 'm') + ":1";
  EXPECT_FALSE(parse_guards(many).ok());  // More than a file can record.
}

/// Guards that are parsed and written again parse to the same guards.
TEST(Regions, AnyTextThatIsReadSurvives) {
  const std::vector<std::string> words = {
      "region=", "/mask", "/m",   ":",    "..", "x",    "*",         "+",          "0",
      "16",      "7",     "1e-3", "1e+2", "-",  "sign", "sum",       "threshold=", "power=2:",
      "=",       "e",     ".",    "0.5",  "/",  "none", "gradient=3"};
  Random random(31);
  std::uint64_t n_read = 0;
  for (int round = 0; round < test::tier_rounds(400000, 4); ++round) {
    std::string text = random.chance(0.7) ? "region=" : "";
    for (std::size_t k = 1 + random.below(9); k > 0; --k) text += words[random.below(words.size())];
    const Result<Guards> guards = parse_guards(text);
    if (!guards.ok()) continue;
    ++n_read;
    const Result<Guards> again = parse_guards(guards_text(*guards));
    ASSERT_TRUE(again.ok()) << text << " became " << guards_text(*guards);
    ASSERT_EQ(*again, *guards) << text;
  }
  EXPECT_GT(n_read, unsigned(test::tier_rounds(1000, 4)));
}

TEST(Regions, BoxesAreHeldToTheShape) {
  const auto check = [](const char* text, const Shape& shape, std::uint64_t growing = 0) {
    const Result<Guards> guards = parse_guards(text);
    EXPECT_TRUE(guards.ok()) << text;
    return check_regions(guards->regions, shape, growing).message();
  };
  EXPECT_EQ(check("region=0..4x*:1", {4, 5}), "");
  EXPECT_EQ(check("region=3..x..5:1", {4, 5}), "");
  EXPECT_EQ(check("region=/mask:1", {4, 5}), "");
  EXPECT_EQ(check("region=0..5x*:1", {4, 5}),
            "guard=region=0..5x*:1: it exceeds the shape 4x5 along axis 0");
  EXPECT_EQ(check("region=*x5..:1", {4, 5}),
            "guard=region=*x5..:1: it exceeds the shape 4x5 along axis 1");
  EXPECT_EQ(check("region=*:1", {4, 5}),
            "guard=region=*:1: it has 1 axes, the dataset has shape 4x5");
  EXPECT_EQ(check("region=9..12x*:1", {4, 5}, 1), "");  // The dimension may grow.
  EXPECT_NE(check("region=9..12x5..6:1", {4, 5}, 1), "");
}

TEST(Regions, BoxesAreGoneOnWithAndMasksAreNot) {
  EXPECT_TRUE(guards_to_continue("sign+region=0..4x*:0.5").ok());
  EXPECT_EQ(guards_to_continue("region=0..4x*:0.5+region=/mask:0.5").status().code(),
            Code::unsupported);
}

/// A mask in memory.
class VectorMask final : public RegionMask {
 public:
  VectorMask(Shape shape, std::vector<std::uint8_t> inside)
      : shape_(std::move(shape)), inside_(std::move(inside)) {}
  Status read(const Box& box, std::span<std::uint8_t> inside) const override {
    copy_box(box, whole_box(shape_), reinterpret_cast<const std::byte*>(inside_.data()), box,
             reinterpret_cast<std::byte*>(inside.data()), 1);
    return Status();
  }
  bool at(const Shape& position) const {
    std::uint64_t i = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d) i = i * shape_[d] + position[d];
    return inside_[i] != 0;
  }

 private:
  Shape shape_;
  std::vector<std::uint8_t> inside_;
};

/// Random boxes and a mask: the levels of every chunk must equal those of its single values.
TEST(Regions, LevelsOfChunksAreThoseOfTheirValues) {
  Random random(77);
  std::uint64_t n_inside = 0;
  std::uint64_t n_untouched = 0;
  for (int round = 0; round < 300; ++round) {
    ChunkGrid grid;
    for (std::size_t d = 1 + random.below(4); d > 0; --d) {
      grid.shape.push_back(1 + random.below(12));
      grid.chunk_shape.push_back(1 + random.below(6));
    }
    std::vector<RegionGuard> regions;
    RegionMasks masks;
    std::shared_ptr<const VectorMask> mask;
    for (std::size_t k = 1 + random.below(4); k > 0; --k) {
      RegionGuard& region = regions.emplace_back();
      region.most = static_cast<double>(random.below(4));
      masks.push_back(nullptr);
      if (mask == nullptr && random.chance(0.3)) {
        std::vector<std::uint8_t> inside(n_elements(grid.shape));
        for (std::uint8_t& one : inside) one = random.chance(0.2) ? 1 : 0;
        mask = std::make_shared<VectorMask>(grid.shape, inside);
        region.mask = "/mask";
        masks.back() = mask;
        continue;
      }
      for (const std::uint64_t extent : grid.shape) {
        const std::uint64_t begin = random.below(extent);
        const bool open = random.chance(0.2);
        region.begin.push_back(begin);
        region.end.push_back(open ? RegionGuard::kOpenEnd
                                  : begin + 1 + random.below(extent - begin));
      }
    }
    for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
      const Box box = grid.clipped_box(chunk);
      const Result<RegionLevels> levels = region_levels(regions, masks, box, grid.chunk_shape);
      ASSERT_TRUE(levels.ok());
      n_untouched += levels->empty() ? 1 : 0;
      std::size_t i = 0;
      for_each_position(grid.full_box(chunk), [&](const Shape& at) {
        double bound = 100;
        bool held = true;
        for (std::size_t d = 0; d < at.size(); ++d) held = held && at[d] < grid.shape[d];
        for (const RegionGuard& region : regions) {
          bool in = held;
          for (std::size_t d = 0; d < region.begin.size(); ++d) {
            in = in && at[d] >= region.begin[d] && at[d] < region.end[d];
          }
          if (in && !region.mask.empty()) in = mask->at(at);
          if (in) bound = std::min(bound, region.most);
        }
        ASSERT_EQ(levels->bound_of(i++, 100), bound);
        n_inside += bound < 100 ? 1 : 0;
      });
    }
  }
  EXPECT_GT(n_inside, 10000U);
  EXPECT_GT(n_untouched, 100U);
}

double value_at(const Case& chunk, std::span<const std::byte> values, std::size_t i) {
  if (chunk.type.dtype == DType::f64) {
    double value = 0;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    return value;
  }
  float value = 0;
  std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
  return static_cast<double>(value);
}

struct RegionCount {
  std::uint64_t n_beyond = 0;  ///< Values outside the bound of their region.
  std::uint64_t n_looser = 0;  ///< Values outside all regions that exceed the tightest bound.
  std::size_t n_bytes = 0;
};

/// Encodes with the requested guards, like the codec, and counts.
RegionCount count_regions(Case chunk, RegionLevels levels, bool keep, ValueGuards guards = {}) {
  RegionCount count;
  const RegionLevels asked = levels;
  if (keep) {
    if (chunk.type.kind == BoundKind::absolute) {
      chunk.type.bound = bound_for_regions(levels, chunk.type.bound, dtype_bytes(chunk.type.dtype),
                                           chunk.settings.coarse_views > 0)
                             .chosen;
    }
    guards.tighter = std::move(levels);
    if (!guards.empty()) chunk.type.guards = &guards;
  }
  Workspace workspace;
  std::vector<std::byte> encoded;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &encoded));
  count.n_bytes = encoded.size();
  std::vector<std::byte> decoded(chunk.values.size());
  EXPECT_TRUE(decode(encoded, decoded, chunk.type.book, workspace).ok());
  std::optional<double> fill = chunk.type.fill_value;
  if (fill && chunk.type.dtype == DType::f32) fill = static_cast<double>(static_cast<float>(*fill));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < chunk.n_values(); ++i) {
    const double x = value_at(chunk, chunk.values, i);
    const double y = value_at(chunk, decoded, i);
    if (!std::isfinite(x) || x == fill) continue;
    const double bound = asked.bound_of(i, kNone);
    count.n_beyond += bound < kNone && exceeds_bound(x, y, bound) ? 1 : 0;
    count.n_looser += bound == kNone && exceeds_bound(x, y, asked.bounds.back()) ? 1 : 0;
  }
  return count;
}

/// Random boxes of a chunk, some with tighter bounds than the chunk's.
RegionLevels random_levels(const Case& chunk, Random& random) {
  std::vector<RegionGuard> regions(1 + random.below(3));
  for (RegionGuard& region : regions) {
    const double scale = chunk.type.kind == BoundKind::absolute ? chunk.type.bound : 1;
    region.most = random.chance(0.1) ? 0 : scale * std::exp(3 - 12 * random.unit());
    if (!std::isfinite(region.most)) region.most = 1;
    for (const std::uint64_t extent : chunk.type.shape) {
      const std::uint64_t begin = random.chance(0.3) ? 0 : random.below(extent);
      region.begin.push_back(begin);
      region.end.push_back(random.chance(0.3) ? RegionGuard::kOpenEnd
                                              : begin + 1 + random.below(extent - begin));
    }
  }
  const Shape& shape = chunk.type.shape;
  const Result<RegionLevels> levels = region_levels(regions, {}, whole_box(shape), shape);
  EXPECT_TRUE(levels.ok());
  return *levels;
}

TEST(RegionGuards, RandomChunksKeepRandomRegions) {
  Random random(20261126);
  std::uint64_t n_would_break = 0;  // Chunks that would violate a bound without guards.
  std::uint64_t n_pointwise = 0;
  std::uint64_t n_views = 0;
  std::uint64_t n_zero = 0;
  for (int round = 0; round < test::tier_rounds(4000, 5); ++round) {
    trz_cases::Limits limits;
    limits.integers = false;
    limits.n_values_max = round % 20 == 0 ? 40000 : 3000;
    const Case chunk = trz_cases::random_case(random, limits);
    if (chunk.type.kind == BoundKind::exact || chunk.n_values() < 2) continue;
    if (!(chunk.type.bound > 0) || chunk.type.shape.empty()) continue;
    const RegionLevels levels = random_levels(chunk, random);
    if (levels.empty()) continue;
    ValueGuards guards;
    guards.zeros = random.chance(0.2);
    guards.sum = chunk.type.kind == BoundKind::absolute && chunk.settings.coarse_views == 0 &&
                 random.chance(0.2);
    const RegionCount before = count_regions(chunk, levels, false);
    const RegionCount after = count_regions(chunk, levels, true, guards);
    ASSERT_EQ(after.n_beyond, 0U) << chunk.text();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
    if (before.n_beyond == 0) continue;
    ++n_would_break;
    n_pointwise += chunk.type.kind == BoundKind::pointwise ? 1 : 0;
    n_views += chunk.settings.coarse_views > 0 ? 1 : 0;
    n_zero += levels.bounds.back() == 0 ? 1 : 0;
  }
  EXPECT_GT(n_would_break, unsigned(test::tier_rounds(500, 5)));
  EXPECT_GT(n_pointwise, unsigned(test::tier_rounds(50, 5)));
  EXPECT_GT(n_views, unsigned(test::tier_rounds(50, 5)));
  EXPECT_GT(n_zero, unsigned(test::tier_rounds(50, 5)));
}

std::vector<float> region_waves(const Shape& shape, double noise) {
  Random random(5);
  std::vector<float> values;
  for_each_position(whole_box(shape), [&](const Shape& at) {
    double value = noise * (random.unit() - 0.5);
    for (std::size_t d = 0; d < at.size(); ++d) {
      value += std::sin(0.11 * static_cast<double>(at[d]) + static_cast<double>(d));
    }
    values.push_back(static_cast<float>(value));
  });
  return values;
}

RegionLevels levels_of_box(const Shape& shape, const Shape& begin, const Shape& end, double most) {
  const RegionGuard region{begin, end, "", most};
  Result<RegionLevels> levels = region_levels({&region, 1}, {}, whole_box(shape), shape);
  EXPECT_TRUE(levels.ok());
  return *levels;
}

/// A few values become patches, and the others stay as loose as before. If a region covers most of
/// a chunk, or all of it, the chunk's own bound becomes smaller.
TEST(RegionGuards, PatchesOrASmallerBound) {
  const Shape shape = {40, 40, 40};
  const Case chunk = whole::case_of(region_waves(shape, 0.1), shape, 0.01, Preset::standard);
  const RegionLevels few = levels_of_box(shape, {8, 8, 8}, {16, 16, 16}, 0.001);
  RegionLevels left = few;
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), false).chosen, 0.01);
  EXPECT_FALSE(left.empty());
  const RegionCount free = count_regions(chunk, few, false);
  const RegionCount kept = count_regions(chunk, few, true);
  EXPECT_GT(free.n_beyond, 400U);
  EXPECT_EQ(kept.n_beyond, 0U);
  EXPECT_EQ(kept.n_looser, free.n_looser);
  EXPECT_GT(kept.n_looser, 50000U);
  EXPECT_LT(kept.n_bytes, free.n_bytes + 5 * 512);

  const RegionLevels most = levels_of_box(shape, {0, 0, 0}, {40, 40, 30}, 0.001);
  left = most;
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), false).chosen, 0.001);
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(count_regions(chunk, most, true).n_beyond, 0U);
  // Chunks with coarse views cannot use patches here.
  left = few;
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), true).chosen, 0.001);
  EXPECT_TRUE(left.empty());
  // A looser bound has no effect.
  left = levels_of_box(shape, {0, 0, 0}, {40, 40, 30}, 0.02);
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), false).chosen, 0.01);
  EXPECT_TRUE(left.empty());
  // One of two bounds may become the chunk's, and the other one needs patches.
  left = levels_of_box(shape, {0, 0, 0}, {40, 40, 40}, 0.005);
  left.bounds.push_back(1e-5);
  left.of_value[7] = 2;
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), false).chosen, 0.005);
  EXPECT_FALSE(left.empty());
  // Exact: a chunk that lies completely inside is coded exactly.
  left = levels_of_box(shape, {0, 0, 0}, {40, 40, 40}, 0);
  EXPECT_EQ(bound_for_regions(left, 0.01, sizeof(float), false).chosen, 0);
  EXPECT_TRUE(left.empty());
}

/// Chunks of the codec itself. If it chooses patches, a chunk is never larger than either
/// alternative; if it chooses a smaller bound, not by much.
TEST(RegionGuards, TheCodecTakesTheSmaller) {
  const Shape shape = {32, 32, 32};
  int n_patches = 0;
  int n_smaller = 0;
  for (const char* preset : {"default", "ratio"}) {
    for (const double noise : {0.0, 0.1}) {
      for (const double tighter : {0.005, 0.001, 0.0001}) {
        for (const std::uint64_t planes : {1U, 2U, 4U, 8U, 16U, 31U}) {
          const std::vector<float> values = region_waves(shape, noise);
          CodecRequest request{"trz", {{"preset", preset}}, DType::f32, shape, 0.01};
          request.tighter = levels_of_box(shape, {0, 0, 0}, {planes, 32, 32}, tighter);
          const auto n_bytes = [&values](const CodecRequest& asked) -> std::size_t {
            const Result<std::unique_ptr<Codec>> codec = make_codec(asked);
            EXPECT_TRUE(codec.ok());
            const auto encoded = (*codec)->encode_from(std::as_bytes(std::span(values)));
            EXPECT_TRUE(encoded.ok());
            return encoded->buffer.n_bytes();
          };
          const std::size_t chosen = n_bytes(request);
          Case chunk = whole::case_of(values, shape, 0.01, Preset::standard);
          if (std::string(preset) == "ratio") chunk.settings.preset = Preset::ratio;
          ValueGuards guards;
          guards.tighter = request.tighter;
          chunk.type.guards = &guards;
          Workspace workspace;
          std::vector<std::byte> patched;
          EXPECT_TRUE(whole::round_trip(chunk, workspace, &patched));
          request.tighter = RegionLevels();
          request.absolute_bound = tighter;
          const std::size_t smaller = n_bytes(request);
          const std::size_t least = std::min(patched.size(), smaller);
          EXPECT_LT(static_cast<double>(chosen), 1.2 * static_cast<double>(least))
              << "noise " << noise << " bound " << tighter << " planes " << planes << ": patches "
              << patched.size() << ", smaller bound " << smaller;
          ++(chosen == smaller ? n_smaller : n_patches);
        }
      }
    }
  }
  EXPECT_GT(n_patches, 5);
  EXPECT_GT(n_smaller, 20);
}

TEST(RegionGuards, SpecialValuesStayAndBreakNothing) {
  const Shape shape = {64, 64};
  std::vector<float> values = region_waves(shape, 0.1);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < values.size(); i += 5) values[i] = -999;
  values[100] = std::numeric_limits<float>::quiet_NaN();
  values[201] = kInfinity;
  values[302] = -kInfinity;
  values[403] = -0.0F;
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    for (const bool named : {true, false}) {
      Case chunk = whole::case_of(values, shape, 0.01, preset);
      if (named) chunk.type.fill_value = -999;
      for (const double tighter : {0.0, 0.001}) {
        const RegionLevels levels = levels_of_box(shape, {0, 0}, {9, 30}, tighter);
        EXPECT_GT(count_regions(chunk, levels, false).n_beyond, 50U);
        EXPECT_EQ(count_regions(chunk, levels, true).n_beyond, 0U);
      }
    }
  }
}

TEST(RegionGuards, WhatDoesNotFitIsRefused) {
  Case chunk = whole::case_of(region_waves({32, 32}, 0.1), {32, 32}, 0.01, Preset::standard);
  ValueGuards guards;
  guards.tighter = levels_of_box({32, 31}, {0, 0}, {9, 30}, 0.001);
  chunk.type.guards = &guards;
  Workspace workspace;
  std::vector<std::byte> encoded(encoded_bytes_max(chunk.values.size()));
  EXPECT_EQ(encode(chunk.type, chunk.settings, chunk.values, encoded, workspace).status().code(),
            Code::invalid_argument);
  guards.tighter = levels_of_box({32, 32}, {0, 0}, {9, 30}, 0.001);
  EXPECT_TRUE(encode(chunk.type, chunk.settings, chunk.values, encoded, workspace).ok());
  chunk.settings.coarse_views = 1;
  EXPECT_EQ(encode(chunk.type, chunk.settings, chunk.values, encoded, workspace).status().code(),
            Code::unsupported);
}

}  // namespace
}  // namespace tailrace::trz
