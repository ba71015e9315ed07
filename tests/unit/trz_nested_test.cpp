// trz's coarse views. A chunk begins with a chunk of every second value, which decodes alone to the
// same values as the complete chunk. The bound holds in every shape. Bytes that no encoder wrote
// are tested as well.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/chunk_header.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

Case case_of(Data data, const Shape& shape, DType dtype, double bound, Preset preset, int views,
             Random& random) {
  Case chunk;
  chunk.type.dtype = dtype;
  chunk.type.shape = shape;
  chunk.type.bound = bound;
  chunk.data = data;
  chunk.settings.preset = preset;
  chunk.settings.predictor = Predictor::interpolation;
  chunk.settings.coarse_views = views;
  if (data == Data::masked) chunk.type.fill_value = -999.0;
  trz_cases::make_values(chunk, random);
  return chunk;
}

/// Waves and a little noise, with a bound that leaves some bits to each value, so that such chunks
/// get all requested views.
Case rippled(const Shape& shape, DType dtype, int views, Random& random) {
  Case chunk = case_of(Data::smooth, shape, dtype, 1e-4, Preset::standard, views, random);
  const std::size_t n = chunk.n_values();
  for (std::size_t i = 0; i < n; ++i) {
    double value = 0.02 * random.unit();
    std::size_t rest = i;
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
      value += std::sin(0.3 * static_cast<double>(rest % *extent));
      rest /= *extent;
    }
    if (dtype == DType::f32) {
      const auto narrow = static_cast<float>(value);
      std::memcpy(chunk.values.data() + i * sizeof narrow, &narrow, sizeof narrow);
    } else {
      std::memcpy(chunk.values.data() + i * sizeof value, &value, sizeof value);
    }
  }
  return chunk;
}

/// Every second value along each of the three axes that interpolation sees, `level` times.
Bytes every_second(Bytes values, Extents extents, std::size_t element_bytes, int level) {
  for (; level > 0; --level) {
    const Extents e = folded_to_three(extents);
    Bytes coarse;
    for (std::size_t z = 0; z < e[1]; z += 2) {
      for (std::size_t y = 0; y < e[2]; y += 2) {
        for (std::size_t x = 0; x < e[3]; x += 2) {
          const auto at = values.begin() +
                          static_cast<std::ptrdiff_t>(((z * e[2] + y) * e[3] + x) * element_bytes);
          coarse.insert(coarse.end(), at, at + static_cast<std::ptrdiff_t>(element_bytes));
        }
      }
    }
    values = std::move(coarse);
    extents = halved(extents);
  }
  return values;
}

/// Levels of views in a chunk; each must decode to the values of the complete chunk.
int views_in(const Case& chunk, const Bytes& encoded, Workspace& workspace) {
  const std::size_t element_bytes = dtype_bytes(chunk.type.dtype);
  Bytes whole(chunk.values.size());
  EXPECT_TRUE(decode(encoded, whole, nullptr, workspace).ok());
  int level = 0;
  while (true) {
    const auto beginning = std::span(encoded).first(std::min(kViewHeadBytes, encoded.size()));
    const std::optional<ByteRange> view = coarse_view(beginning, level + 1);
    if (!view) return level;
    ++level;
    EXPECT_LE(view->begin + view->n_bytes, encoded.size());
    const Bytes wanted = every_second(whole, extents_of(chunk.type.shape, 0), element_bytes, level);
    Bytes values(wanted.size());
    const auto bytes = std::span(encoded).subspan(view->begin, view->n_bytes);
    const Status status = decode(bytes, values, nullptr, workspace);
    EXPECT_TRUE(status.ok()) << chunk.text() << ": " << status.message();
    EXPECT_EQ(values, wanted) << chunk.text() << " level " << level;
  }
}

TEST(TrzNested, ViewsAreTheValuesOfTheWholeInEveryShape) {
  Random random(1);
  test::TierSample some(5);
  int n_views = 0;
  for (const Shape& shape :
       {Shape{5}, Shape{9000}, Shape{133, 70}, Shape{2, 5000}, Shape{5000, 3}, Shape{20, 20, 20},
        Shape{37, 10, 33}, Shape{2, 90, 70}, Shape{90, 2, 70}, Shape{90, 70, 2},
        Shape{4, 12, 18, 19}, Shape{1, 40, 18, 18}, Shape{19, 6, 1, 103}}) {
    for (const Data data : {Data::smooth, Data::walk, Data::masked, Data::specials, Data::offset,
                            Data::huge, Data::mixture}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio}) {
          if (!some.take()) continue;
          const int views = 1 + static_cast<int>(random.below(kCoarseViewsMax));
          const double bound = std::pow(10.0, -2 - 4 * random.unit());
          const Case chunk = case_of(data, shape, dtype, bound, preset, views, random);
          std::optional<Bytes> first;
          for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
            if (!isa_supported(isa)) continue;
            Workspace workspace(isa);
            Bytes encoded;
            ASSERT_TRUE(round_trip(chunk, workspace, &encoded));
            if (!first) {
              first = encoded;
              const int found = views_in(chunk, encoded, workspace);
              EXPECT_LE(found, views);
              n_views += found;
            }
            EXPECT_EQ(*first, encoded) << chunk.text() << " by " << isa_name(isa);
          }
        }
      }
    }
  }
  EXPECT_GT(n_views, test::tier_rounds(150, 20));
}

TEST(TrzNested, AChunkGrowsByTwoPercentAtMost) {
  Random random(2);
  Workspace workspace;
  for (int i = 0; i < 200; ++i) {
    Case chunk = trz_cases::random_case(random, {20000, false, false});
    if (chunk.type.kind == BoundKind::exact) continue;
    Bytes plain;
    Bytes nested;
    chunk.settings.coarse_views = 0;
    chunk.settings.bit_planes = 0;
    ASSERT_TRUE(round_trip(chunk, workspace, &plain));
    chunk.settings.coarse_views = kCoarseViewsMax;
    ASSERT_TRUE(round_trip(chunk, workspace, &nested));
    EXPECT_LE(static_cast<double>(nested.size()), 1.02 * static_cast<double>(plain.size()))
        << chunk.text();
  }
}

TEST(TrzNested, ALargeSmoothFieldHasAllThatWereAsked) {
  Random random(3);
  Workspace workspace;
  for (int views = 0; views <= kCoarseViewsMax; ++views) {
    const Case chunk = rippled({40, 40, 40}, DType::f32, views, random);
    Bytes encoded;
    ASSERT_TRUE(round_trip(chunk, workspace, &encoded));
    EXPECT_EQ(views_in(chunk, encoded, workspace), views);
    const Result<ChunkSummary> summary = describe(encoded);
    ASSERT_TRUE(summary.ok());
    if (views > 0) {
      EXPECT_NE(summary->method.find(std::to_string(views) + " coarse view"), std::string::npos)
          << summary->method;
    }
  }
}

/// The predictor sees slower axes as one product. Axes of two values are dropped, together with
/// their part of the plan.
TEST(TrzNested, ChunksOfOneToFourAxesHaveViews) {
  Random random(7);
  Workspace workspace;
  for (const Shape& shape : {Shape{30, 2, 60, 20}, Shape{4, 12, 18, 20}, Shape{4, 3, 12, 18, 20},
                             Shape{60, 60, 2}, Shape{1, 60, 1, 70}, Shape{2, 3, 5000}}) {
    const Case chunk = rippled(shape, DType::f32, 1, random);
    Bytes encoded;
    ASSERT_TRUE(round_trip(chunk, workspace, &encoded));
    EXPECT_EQ(views_in(chunk, encoded, workspace), 1) << chunk.text();
    EXPECT_EQ(coarse_views_of(chunk.type, chunk.settings), 1);
    EXPECT_TRUE(coarse_view(chunk.type, chunk.settings, encoded, 1)) << chunk.text();
    ChunkType other = chunk.type;
    other.shape.back() /= 2;
    other.shape.front() *= 2;
    EXPECT_FALSE(coarse_view(other, chunk.settings, encoded, 1)) << chunk.text();
  }
}

TEST(TrzNested, RefusesOtherViewsThanThereCanBe) {
  Random random(4);
  Workspace workspace;
  Case chunk = case_of(Data::smooth, {20, 20}, DType::f32, 1e-3, Preset::standard, 0, random);
  Bytes out(encoded_bytes_max(chunk.values.size()));
  for (const int views : {-1, kCoarseViewsMax + 1}) {
    chunk.settings.coarse_views = views;
    EXPECT_EQ(encode(chunk.type, chunk.settings, chunk.values, out, workspace).status().code(),
              Code::invalid_argument);
  }
}

/// Bytes changed and sealed again, inside the inner chunk and outside: an error or values, but no
/// crash. No prefix is a valid chunk.
TEST(TrzNested, SurvivesBytesThatNobodyWrote) {
  Random random(5);
  Workspace workspace;
  const Case chunk = rippled({20, 28, 32}, DType::f32, 2, random);
  Bytes encoded;
  ASSERT_TRUE(round_trip(chunk, workspace, &encoded));
  ASSERT_EQ(views_in(chunk, encoded, workspace), 2);
  const std::optional<ByteRange> inner = coarse_view(encoded, 1);
  ASSERT_TRUE(inner);
  Bytes values(chunk.values.size());
  int n_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes changed = encoded;
    for (std::uint64_t k = 1 + random.below(3); k > 0; --k) {
      changed[8 + random.below(i % 2 == 0 ? 100 : changed.size() - 8)] =
          static_cast<std::byte>(random.below(256));
    }
    const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(changed.data()),
                                        changed.size());
    if (i % 3 != 0) seal(bytes.subspan(inner->begin, inner->n_bytes));
    seal(bytes);
    if (!decode(changed, values, nullptr, workspace).ok()) ++n_refused;
    for (int level = 1; level <= kCoarseViewsMax; ++level) {
      static_cast<void>(coarse_view(changed, level));
    }
  }
  EXPECT_GT(n_refused, 1000);
  for (std::size_t n = 0; n < encoded.size(); n += 1 + n / 50) {
    EXPECT_FALSE(decode(std::span(encoded).first(n), values, nullptr, workspace).ok()) << n;
    const auto prefix = std::span(encoded).first(n);
    if (const auto view = coarse_view(prefix, 1)) {
      EXPECT_EQ(view->begin, inner->begin);
      EXPECT_EQ(view->n_bytes, inner->n_bytes);
    }
  }
}

/// Chunks nested more deeply than views can be.
TEST(TrzNested, RefusesMoreChunksWithinOneAnotherThanViews) {
  Random random(6);
  Workspace workspace;
  const Case chunk = rippled({40, 40, 40}, DType::f32, kCoarseViewsMax, random);
  Bytes inner;
  ASSERT_TRUE(round_trip(chunk, workspace, &inner));
  ASSERT_EQ(views_in(chunk, inner, workspace), kCoarseViewsMax);
  std::vector<std::uint8_t> room(inner.size() + 100);
  ChunkWriter out(room);
  write_head({DType::f32, Method::nested, {1, 80, 80, 80}, 80 * 80 * 80}, out);
  out.varint(inner.size());
  out.bytes(inner.data(), inner.size());
  const auto bytes = std::span(room).first(out.n_written());
  seal(bytes);
  Bytes values(80 * 80 * 80 * sizeof(float));
  const Status status = decode(std::as_bytes(bytes), values, nullptr, workspace);
  EXPECT_EQ(status.code(), Code::corrupt) << status.message();
}

}  // namespace
}  // namespace tailrace::trz
