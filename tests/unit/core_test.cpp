// Shapes, boxes, option texts and bounds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/option_table.hpp"
#include "core/options.hpp"
#include "core/utf8.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace {
namespace {

TEST(Box, CopyMovesExactlyThePart) {
  const Box from{{2, 3, 4}, {5, 6, 7}};
  const Box to{{0, 0, 4}, {9, 9, 7}};
  const Box part{{3, 4, 5}, {3, 4, 2}};
  std::vector<int> source(from.n_elements());
  std::iota(source.begin(), source.end(), 1);
  std::vector<int> target(to.n_elements(), 0);
  copy_box(part, from, reinterpret_cast<const std::byte*>(source.data()), to,
           reinterpret_cast<std::byte*>(target.data()), sizeof(int));
  std::size_t i = 0;
  for_each_position(to, [&](const Shape& at) {
    int expected = 0;
    if (contains(part, Box{at, {1, 1, 1}})) {
      expected = static_cast<int>(((at[0] - 2) * 6 + at[1] - 3) * 7 + at[2] - 4) + 1;
    }
    EXPECT_EQ(target[i++], expected) << box_text(Box{at, {1, 1, 1}});
  });
}

TEST(Box, GridKnowsEdgesScalarsAndEmptiness) {
  const ChunkGrid grid{{10, 7}, {4, 7}};
  EXPECT_EQ(grid.n_chunks(), 3U);
  EXPECT_EQ(grid.clipped_box(2), (Box{{8, 0}, {2, 7}}));
  EXPECT_EQ(grid.full_box(2), (Box{{8, 0}, {4, 7}}));
  EXPECT_EQ(grid.touched({{3, 0}, {2, 7}}), (Box{{0, 0}, {2, 1}}));
  EXPECT_EQ((ChunkGrid{{}, {}}).n_chunks(), 1U);
  EXPECT_EQ((ChunkGrid{{0, 3}, {1, 3}}).n_chunks(), 0U);
  EXPECT_EQ(n_elements({1ULL << 40, 1ULL << 40}), UINT64_MAX);
  EXPECT_EQ(n_elements({1ULL << 40, 1ULL << 40, 0}), 0U);
}

TEST(LargeBlock, HoldsWhatIsAskedForAndBeginsAtALargePage) {
  for (const std::size_t n_bytes :
       {std::size_t{0}, std::size_t{1}, kLargeBlockBytes - 1, kLargeBlockBytes,
        kLargeBlockBytes + 1, 3 * kLargeBlockBytes + 12345}) {
    Buffer block(n_bytes);
    ASSERT_TRUE(block.allocated());
    const auto address = reinterpret_cast<std::uintptr_t>(block.data());
    if (n_bytes >= kLargeBlockBytes) {
      EXPECT_EQ(address % kLargePageBytes, 0U) << n_bytes;
    }
    std::fill(block.bytes().begin(), block.bytes().end(), std::byte{7});
    const Buffer copy = Buffer::copy_of(block.bytes());
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), block.bytes()));
  }
}

TEST(ErrorBound, ParsesWhatItPrints) {
  for (const char* text : {"abs=0.001", "rel=1e-05", "psnr=80", "pw_rel=0.001", "none"}) {
    const auto bound = parse_error_bound(text);
    ASSERT_TRUE(bound.ok()) << text;
    EXPECT_EQ(error_bound_text(*bound), text);
  }
  for (const char* text : {"abs=0", "abs=-1", "rel=nan", "abs=inf", "abs=", "1e-3", "max=1",
                           "abs=1x", "pw_rel=1", "pw_rel=0"}) {
    EXPECT_FALSE(parse_error_bound(text).ok()) << text;
  }
}

TEST(ErrorBound, ResolvesToAnAbsoluteOne) {
  EXPECT_DOUBLE_EQ(absolute_bound({BoundMode::rel, 1e-3}, -2, 8), 1e-2);
  EXPECT_DOUBLE_EQ(absolute_bound({BoundMode::psnr, 40}, 0, 100), 1.0);
  EXPECT_EQ(absolute_bound({BoundMode::rel, 1e-3}, 5, 5), 0);
  EXPECT_TRUE(std::isfinite(absolute_bound({BoundMode::rel, 1e-3}, -1.7e308, 1.7e308)));
}

TEST(ErrorBound, ComparisonIsExactWhereRoundingIsNot) {
  EXPECT_FALSE(exceeds_bound(1.5, 1.0, 0.5));
  EXPECT_TRUE(exceeds_bound(1.5, std::nextafter(1.0, 0.0), 0.5));  // the difference rounds to 0.5
  EXPECT_FALSE(exceeds_bound(1.5, std::nextafter(1.0, 2.0), 0.5));
  const double tiny = std::ldexp(1.0, -60);
  EXPECT_TRUE(exceeds_bound(1.0, -tiny, 1.0));  // 1 + 2^-60 rounds to 1
  EXPECT_FALSE(exceeds_bound(1.0, tiny, 1.0));
}

TEST(ErrorBound, PointwiseIsNoAbsoluteOne) {
  const ErrorBound bound{BoundMode::pw_rel, 1e-3};
  EXPECT_FALSE(bound.lossless());
  EXPECT_FALSE(bound.needs_range());
  EXPECT_EQ(absolute_bound(bound, -2, 8), 0);
  EXPECT_EQ(pointwise_bound(bound), 1e-3);
  EXPECT_EQ(pointwise_bound({BoundMode::rel, 1e-3}), 0);
}

TEST(ErrorBound, PointwiseComparisonIsExactAtEveryScale) {
  // Integers times a power of two, and fractions of 30 bits: 64-bit integers give the exact answer.
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  std::size_t n_ties = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    const std::uint64_t x = trial % 2 == 0 ? 1 + random(1 << 10) : 64 * (1 + random(16));
    const std::uint64_t numerator = random(1 << 6) << 24 | random(4) / 3;
    const std::uint64_t near = (x * numerator >> 30) + random(2);
    const std::uint64_t y = trial % 8 == 0 ? random(1 << 11) : trial % 3 == 0 ? x + near : x - near;
    const std::uint64_t gap = x > y ? x - y : y - x;
    const bool expected = gap << 30 > numerator * x;
    if (gap << 30 == numerator * x) ++n_ties;
    const double fraction = std::ldexp(static_cast<double>(numerator), -30);
    for (const int exponent : {-1074, -700, -149, 0, 100, 1012}) {
      const double a = std::ldexp(static_cast<double>(x), exponent);
      const double b = std::ldexp(static_cast<double>(y), exponent);
      ASSERT_EQ(exceeds_pointwise_bound(a, b, fraction), expected)
          << x << ' ' << y << ' ' << numerator << ' ' << exponent;
      ASSERT_EQ(exceeds_pointwise_bound(-a, -b, fraction), expected);
      ASSERT_EQ(exceeds_pointwise_bound(a, -b, fraction), y != 0 || expected);
    }
  }
  EXPECT_GT(n_ties, 100U);
}

TEST(ErrorBound, PointwiseComparisonWhereBothSidesRound) {
  const double x = 1 + 0x1p-52;
  const double y = 0.75;  // then x - y = 1/4 + 2^-52
  EXPECT_TRUE(exceeds_pointwise_bound(x, y, 0.25));
  EXPECT_FALSE(exceeds_pointwise_bound(x, y, 0.25 + 0x1p-52));
  EXPECT_FALSE(exceeds_pointwise_bound(0.0, -0.0, 0.5));
  EXPECT_TRUE(exceeds_pointwise_bound(0.0, 5e-324, 0.5));
  EXPECT_TRUE(exceeds_pointwise_bound(1.0, 1 + 0x1p-52, 0x1p-61));
  // Fractions of 53 bits: x * fraction = 1/3 - 2^-54 or so, which rounds to the difference.
  const double third = 1.0 / 3;  // below 1/3 by 2^-54 / 1.5
  EXPECT_FALSE(exceeds_pointwise_bound(3.0, std::nextafter(2.0, 3.0), third));
  EXPECT_TRUE(exceeds_pointwise_bound(3.0, 2.0, third));
}

TEST(Names, TheFirstOfManyAsText) {
  const std::vector<std::string> names = {"/a", "/b", "/c"};
  EXPECT_EQ(first_names_text(std::vector<std::string>(), 2), "");
  EXPECT_EQ(first_names_text(std::vector<std::string>(), 0), "");
  EXPECT_EQ(first_names_text(names, 1), "/a and 2 more");
  EXPECT_EQ(first_names_text(names, 2), "/a, /b and 1 more");
  EXPECT_EQ(first_names_text(names, 3), "/a, /b, /c");
  EXPECT_EQ(first_names_text(names, 9), "/a, /b, /c");
  const std::map<std::string, int> numbered = {{"a", 1}, {"b", 2}, {"c", 3}};
  const auto quoted = [](const auto& entry) { return "\"" + entry.first + "\""; };
  EXPECT_EQ(first_names_text(numbered, 2, quoted), "\"a\", \"b\" and 1 more");
}

TEST(Options, BytesAndShapesAndGlobs) {
  EXPECT_EQ(*parse_bytes("8MiB"), 8U << 20);
  EXPECT_EQ(*parse_bytes("256MB"), 256000000U);
  EXPECT_EQ(*parse_bytes("1.5k"), 1536U);
  for (const char* text : {"", "x", "-1", "3 apples", "1e400"})
    EXPECT_FALSE(parse_bytes(text).ok());
  EXPECT_EQ(*parse_shape("512x1x3"), (Shape{512, 1, 3}));
  EXPECT_FALSE(parse_shape("512x").ok());
  EXPECT_TRUE(glob_matches("temp*", "/native_fields/temperature"));
  EXPECT_TRUE(glob_matches("native_fields/*", "/native_fields/temperature"));
  EXPECT_TRUE(glob_matches("velocity_?", "/a/velocity_x"));
  EXPECT_FALSE(glob_matches("velocity_?", "/a/velocity_xy"));
  EXPECT_FALSE(glob_matches("a/b", "/c/b"));
  EXPECT_TRUE(glob_matches("u[0]", "/a/u[0]"));
  EXPECT_TRUE(glob_matches("e[xyz]", "/e/ey"));
  EXPECT_TRUE(glob_matches("*[a-cx]", "/field_b"));
  EXPECT_TRUE(glob_matches("v[!0-9-]*", "/vx"));
  EXPECT_TRUE(glob_matches("v[]]", "/v]"));
  EXPECT_TRUE(glob_matches("[xy", "/[xy"));
  EXPECT_TRUE(glob_matches("*[K]", "/T [K]"));
  EXPECT_TRUE(glob_matches("T[K]*", "/T[K]_mean"));
  EXPECT_TRUE(glob_matches(R"(\[xy])", "/[xy]"));
  for (const char* text : {"/e", "/ew", "/exy", "/e[xyz"}) {
    EXPECT_FALSE(glob_matches("e[xyz]", text)) << text;
  }
  EXPECT_FALSE(glob_matches("v[!0-9-]", "/v-"));
  EXPECT_FALSE(glob_matches(R"(\[xy])", "/x"));
  for (const char* pattern : {"a*", "a?", "a[bc]", R"(\a[bc])"}) EXPECT_TRUE(has_wildcard(pattern));
  for (const char* pattern : {"a", R"(a\*)", R"(a\[bc])", "a[b"})
    EXPECT_FALSE(has_wildcard(pattern));
  EXPECT_TRUE(glob_matches(R"(a\:b\*\?)", "/a:b*?"));
  EXPECT_FALSE(glob_matches(R"(a\*)", "/ab"));
  EXPECT_TRUE(glob_matches("a\\", "/a\\"));
  EXPECT_EQ(find_unescaped(R"(a\:b:c)", ":"), 4U);
  EXPECT_EQ(find_unescaped("a\\", ":"), std::string_view::npos);
}

TEST(Options, FieldTextsReachTheRightPlaces) {
  FieldOptions options;
  ASSERT_TRUE(
      apply_field_options("codec=id=32028,cd=1:2,bound=abs=1e3,chunk=8x1000,verify=on", options)
          .ok());
  EXPECT_EQ(options.codec, "id=32028");
  EXPECT_EQ(options.codec_settings, (std::vector<KeyValue>{{"cd", "1:2"}}));
  EXPECT_EQ(options.bound, (ErrorBound{BoundMode::abs, 1000}));
  EXPECT_EQ(*options.chunk_shape, (Shape{8, 1000}));
  ASSERT_TRUE(apply_field_options("chunk=1000x", options).ok());
  EXPECT_EQ(*options.chunk_shape, (Shape{1000}));
  ASSERT_TRUE(apply_field_options("chunk=1000", options).ok());
  EXPECT_FALSE(options.chunk_shape.has_value());
  for (const char* text :
       {"bound=0", "chunk=0x3", "verify=maybe", "=3", "fill=red", "holes=perhaps"}) {
    EXPECT_FALSE(apply_field_options(text, options).ok()) << text;
  }
  FileOptions file;
  EXPECT_FALSE(apply_file_options("threads=two", file).ok());
  EXPECT_FALSE(apply_file_options("memory=1", file).ok());
}

}  // namespace
}  // namespace tailrace
