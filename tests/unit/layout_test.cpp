// Every layout of the registry: places never overlap, respect capacity, and cover everything; and
// chunk shapes.

#include "layout/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/chunk_shape.hpp"

namespace tailrace {
namespace {

class LayoutConformance : public ::testing::TestWithParam<std::string> {};

/// Options with which every layout of the registry can be constructed.
FieldOptions options_for_all() {
  FieldOptions options;
  options.expected_ratio = 4;
  options.expected_error = 0.1;
  return options;
}

TEST_P(LayoutConformance, PlacesNeverOverlapAndHoldTheirChunks) {
  auto layout = make_layout(GetParam(), options_for_all());
  ASSERT_TRUE(layout.ok());
  std::mt19937 random(1);
  std::vector<ChunkSizes> sizes;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t encoded = 1 + random() % 1000;
    sizes.push_back({i, 1000, encoded, encoded});
  }
  std::shuffle(sizes.begin(), sizes.end(), random);
  const std::uint64_t base = 4096;
  std::vector<Placement> places = (*layout)->place(sizes, base);
  ASSERT_EQ(places.size(), sizes.size());
  const bool knows_size = (*layout)->sizes_needed() == SizesNeeded::actual;
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].capacity, (*layout)->capacity(sizes[i]));
    if (knows_size) {
      EXPECT_GE(places[i].capacity, sizes[i].encoded_bytes);
    }
    if ((*layout)->sizes_needed() == SizesNeeded::predicted) {
      EXPECT_GE(places[i].capacity, sizes[i].predicted_bytes);
    }
    EXPECT_GE(places[i].address, base);
  }
  std::sort(places.begin(), places.end(),
            [](const Placement& a, const Placement& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < places.size(); ++i) {
    EXPECT_GE(places[i].address, places[i - 1].address + places[i - 1].capacity);
  }
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const LayoutEntry& entry : layout_registry()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, LayoutConformance, ::testing::ValuesIn(layout_names()),
                         [](const auto& test) { return test.param; });

TEST(LayoutRegistry, HybridAsksForTheRatioItNeeds) {
  const auto layout = make_layout("hybrid");
  ASSERT_FALSE(layout.ok());
  EXPECT_NE(layout.status().message().find("hybrid:3.5"), std::string::npos);
}

TEST(LayoutHybrid, ASlotIsRawOverRatioTimesOnePlusError) {
  FieldOptions options;
  options.expected_ratio = 5;
  options.expected_error = 0.25;
  const auto layout = make_layout("hybrid", options);
  ASSERT_TRUE(layout.ok());
  const std::vector<ChunkSizes> chunks = {{0, 1000, 0, 0}, {3, 1000, 0, 0}};
  const auto places = (*layout)->place(chunks, 64);
  EXPECT_EQ(places[0].capacity, 250U);
  EXPECT_EQ(places[1].address, 64 + 3 * 250U);
}

TEST(LayoutRegistry, UnknownNameListsTheKnownOnes) {
  const auto layout = make_layout("spare");
  ASSERT_FALSE(layout.ok());
  EXPECT_NE(layout.status().message().find("claimed"), std::string::npos);
}

constexpr std::uint64_t kTarget = 8U << 20;

std::uint64_t bytes_of(const Shape& chunk) { return n_elements(chunk) * 4; }

TEST(ChunkShape, BlocksOfTheDecompositionAreNeverCrossed) {
  // 2 x 2 x 1 blocks of 256 x 256 x 512 f32: 128 MiB each, to be split evenly.
  const Shape shape = {512, 512, 512};
  const Shape chunk = chunk_shape_for(shape, 4, kTarget, {{256, 256, 512}, {256, 256, 512}});
  EXPECT_EQ(256 % chunk[0], 0U);
  EXPECT_EQ(256 % chunk[1], 0U);
  EXPECT_LE(bytes_of(chunk), 2 * kTarget);
  EXPECT_GT(bytes_of(chunk), kTarget / 2);
}

TEST(ChunkShape, OddBlocksAreSplitAlongTheirFactors) {
  const Shape chunk =
      chunk_shape_for({900, 900, 900}, 4, kTarget, {{300, 450, 900}, {300, 450, 900}});
  EXPECT_EQ(300 % chunk[0], 0U);
  EXPECT_EQ(450 % chunk[1], 0U);
  EXPECT_LE(bytes_of(chunk), 2 * kTarget);
}

TEST(ChunkShape, IrregularCutsTakeTheLargestBoxAsMeasure) {
  const Shape chunk = chunk_shape_for({1000003}, 4, kTarget, {{1}, {260000}});
  EXPECT_GT(chunk[0], 100000U);
}

TEST(ChunkShape, ManyTinyBlocksAreMerged) {
  const Shape chunk = chunk_shape_for({512, 512}, 4, kTarget, {{8, 8}, {8, 8}});
  EXPECT_GE(bytes_of(chunk), kSmallestOwnChunkBytes);
  EXPECT_EQ(chunk[0] % 8, 0U);
}

TEST(ChunkShape, StepsThatAProgramWritesOneByOneShareNoChunk) {
  const auto chunk = [](const Shape& shape, std::uint64_t n_ranks) {
    return chunk_shape_by_rows(shape, 4, kTarget, n_ranks);
  };
  EXPECT_EQ(chunk({8, 256, 256}, 2), (Shape{1, 128, 256}));
  EXPECT_EQ(chunk({8, 524288}, 2), (Shape{1, 262144}));
  EXPECT_EQ(chunk({12, 5, 512, 512}, 1), (Shape{1, 1, 512, 512}));
  EXPECT_GT(chunk({40, 256, 256}, 1)[0], 1U);  // levels
  EXPECT_GT(chunk({8, 128, 128}, 1)[0], 1U);   // steps of 64 KiB
  EXPECT_EQ(chunk({100000, 3}, 1)[1], 3U);
  EXPECT_EQ(chunk({1, 1 << 20}, 1)[0], 1U);
  EXPECT_EQ(chunk({0, 1 << 20}, 1)[0], 1U);
}

TEST(BoxChunks, NoChunkHoldsTwoComponents) {
  const auto length = [](const std::vector<BoxSeries::Run>& runs, std::uint64_t most) {
    return chunk_length_for({runs, {"a", "b", "c"}}, 2048, most);
  };
  constexpr std::uint64_t kMost = 2U << 20;
  EXPECT_EQ(length({{8, {32, 32, 32}}}, kMost), 32768U);
  EXPECT_EQ(length({{8, {32, 32, 32}}}, 12800), 8192U);  // 8 planes: 16 and 10 do not fit
  EXPECT_EQ(length({{1, {8, 16, 16}}, {1, {24, 16, 16}}}, kMost), 2048U);
  EXPECT_EQ(length({{1, {16, 16, 16}}, {1, {16, 32, 8}}}, kMost), 4096U);
  EXPECT_EQ(length({{9, {8, 8, 8}}}, kMost), 0U);
  EXPECT_EQ(length({{1, {31, 37, 41}}, {1, {32, 32, 32}}}, kMost), 0U);
  EXPECT_EQ(length({{1, {256, 256, 256}}}, kMost), 256U * 256 * 32);
  EXPECT_EQ(length({{2, {64, 128}}, {1, {32, 128}}}, kMost), 32U * 128);
  EXPECT_EQ(length({{UINT64_C(1) << 25, {16, 16, 16}}}, kMost), 0U);  // a hundred million chunks
}

TEST(BoxChunks, AChunkKnowsItsComponentAndItsSlab) {
  // Runs of boxes of 2, 1 and 3 slabs, three components each.
  const BoxSeries boxes{{{2, {16, 16, 16}}, {1, {8, 16, 16}}, {1, {24, 16, 16}}, {1, {32, 32, 2}}},
                        {"a", "b", "c"}};
  ASSERT_EQ(chunk_length_for(boxes, 2048, 2U << 20), 2048U);
  const BoxChunks chunks(boxes, 2048);
  ASSERT_EQ(chunks.shapes(), (std::vector<Shape>{{8, 16, 16}, {32, 32, 2}}));
  const std::vector<std::size_t> components = {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 1,
                                               2, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2};
  for (std::size_t i = 0; i < components.size(); ++i) {
    EXPECT_EQ(chunks.part(i).component, components[i]) << i;
    EXPECT_EQ(chunks.part(i).shape, i < 24 ? 0U : 1U) << i;
  }
  // Sets of rows that do not fit have one dimension.
  const BoxSeries mixed{{{1, {32, 32, 32}}, {1, {32, 8, 24}}}, {"a"}};
  ASSERT_EQ(chunk_length_for(mixed, 512, 2U << 20), 2048U);
  EXPECT_EQ(BoxChunks(mixed, 2048).shapes(), (std::vector<Shape>{{2, 32, 32}, {2048}}));
}

TEST(ChunkShape, AnyShapeGivesAPossibleChunk) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    Shape shape(1 + random() % 4);
    DecompositionFacts facts;
    for (std::uint64_t& extent : shape) {
      extent = 1 + random() % 5000;
      facts.cut_gcd.push_back(1 + random() % extent);
      facts.largest_box.push_back(1 + random() % extent);
    }
    for (const Shape& chunk :
         {chunk_shape_for(shape, 4, kTarget, facts), chunk_shape_to_share(shape, 4, kTarget, 5),
          slab_shape_for(shape, 4, kTarget, facts.cut_gcd)}) {
      ASSERT_EQ(chunk.size(), shape.size());
      for (std::size_t d = 0; d < shape.size(); ++d) {
        EXPECT_GE(chunk[d], 1U);
        EXPECT_LE(chunk[d], shape[d]);
      }
      EXPECT_LE(bytes_of(chunk), 2 * kTarget);
    }
  }
}

TEST(ChunkShape, SlabsAreRunsOfTheFileAndFollowTheBlocks) {
  EXPECT_EQ(slab_shape_for({100, 2000, 3000}, 4, kTarget, {100, 2000, 3000}),
            (Shape{1, 1000, 3000}));
  EXPECT_EQ(slab_shape_for({256, 128, 128}, 4, kTarget, {128, 128, 128}), (Shape{128, 128, 128}));
  EXPECT_EQ(slab_shape_for({64, 32}, 4, kTarget, {64, 32}), (Shape{64, 32}));
  EXPECT_EQ(slab_shape_for({}, 4, kTarget, {}), (Shape{}));
}

}  // namespace
}  // namespace tailrace
