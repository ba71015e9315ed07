// The sampling schemes: positions and number of blocks, and the copied values.

#include "model/block_sample.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <span>

namespace tailrace {
namespace {

void expect_within(const Shape& shape, const BlockSample& sample) {
  for (const Shape& start : sample.starts) {
    EXPECT_TRUE(contains(whole_box(shape), Box{start, sample.block_shape}));
  }
  EXPECT_EQ(std::set<Shape>(sample.starts.begin(), sample.starts.end()).size(),
            sample.starts.size());
}

double share_of(const BlockSample& sample, const Shape& shape) {
  return static_cast<double>(sample.n_values()) / static_cast<double>(n_elements(shape));
}

TEST(UniformBlocks, Takes1Of4In512CubedAsThePaperDoes) {
  const Shape shape = {512, 512, 512};
  const BlockSample sample = uniform_blocks(shape);
  EXPECT_EQ(sample.block_shape, (Shape{12, 12, 12}));
  EXPECT_EQ(sample.starts.size(), 11U * 11U * 11U);  // ceil(42 / 4) along each dimension.
  EXPECT_NEAR(share_of(sample, shape), 0.017, 0.0005);
  EXPECT_EQ(sample.starts[1], (Shape{0, 0, 48}));
  expect_within(shape, sample);
}

TEST(UniformBlocks, HaveAboutAsManyValuesInOtherDimensions) {
  EXPECT_EQ(uniform_blocks({1000000}).block_shape, Shape{1728});
  EXPECT_EQ(uniform_blocks({3000, 2000}).block_shape, (Shape{42, 42}));
  const Shape shape = {5, 60, 72, 84};
  const BlockSample sample = uniform_blocks(shape);
  EXPECT_EQ(sample.block_shape, (Shape{1, 12, 12, 12}));
  std::set<std::uint64_t> leading;
  for (const Shape& start : sample.starts) leading.insert(start[0]);
  EXPECT_EQ(leading.size(), 5U);
  expect_within(shape, sample);
}

TEST(UniformBlocks, GiveAtLeastTheShareWithTheLargestStride) {
  for (const Shape& shape : {Shape{128, 128, 128}, Shape{64, 64, 64}, Shape{37, 61, 200}}) {
    for (const double share : {0.001, 0.01, 0.05}) {
      const BlockSample sample = uniform_blocks(shape, share);
      EXPECT_GE(share_of(sample, shape), share) << shape_text(shape);
      expect_within(shape, sample);
    }
  }
}

TEST(UniformBlocks, AreCutToSmallShapes) {
  EXPECT_EQ(uniform_blocks({5, 100, 3}).block_shape, (Shape{5, 12, 3}));
  EXPECT_EQ(uniform_blocks({7}).n_values(), 7U);
  EXPECT_EQ(uniform_blocks({}).n_values(), 1U);
  EXPECT_EQ(uniform_blocks({0, 12}).n_values(), 0U);
}

TEST(ScatteredBlocks, AreAlignedSpreadAndTheSameEachTime) {
  const Shape shape = {64, 60, 50};
  const BlockSample sample = scattered_blocks(shape, {4, 4, 4}, 40);
  EXPECT_EQ(sample.starts.size(), 40U);
  expect_within(shape, sample);
  EXPECT_EQ(sample.starts, scattered_blocks(shape, {4, 4, 4}, 40).starts);
  // One block in each fortieth of the 16 x 15 x 12 places, so that the leading positions ascend and
  // cover the complete shape.
  for (std::size_t i = 0; i < 40; ++i) {
    const Shape& at = sample.starts[i];
    for (const std::uint64_t position : at) EXPECT_EQ(position % 4, 0U);
    const std::uint64_t place = (at[0] / 4 * 15 + at[1] / 4) * 12 + at[2] / 4;
    EXPECT_EQ(place / 72, i);
  }
}

TEST(ScatteredBlocks, AreAllWhereThereIsNoRoomForMore) {
  EXPECT_EQ(scattered_blocks({8, 9}, {4, 4}, 100).starts.size(), 4U);
  EXPECT_EQ(scattered_blocks({2, 9}, {4, 4}, 100).block_shape, (Shape{2, 4}));
  EXPECT_EQ(scattered_blocks({}, {}, 3).n_values(), 1U);
  EXPECT_EQ(scattered_blocks({0, 9}, {4, 4}, 3).n_values(), 0U);
}

TEST(GatheredShape, StacksAlongTheFirstDimensionThatBlocksExtendIn) {
  EXPECT_EQ((BlockSample{{4, 4, 4}, {{}, {}, {}}}.gathered_shape()), (Shape{12, 4, 4}));
  EXPECT_EQ((BlockSample{{1, 4, 4}, {{}, {}}}.gathered_shape()), (Shape{1, 8, 4}));
  EXPECT_EQ((BlockSample{{1, 1}, {{}, {}}}.gathered_shape()), (Shape{1, 2}));
  EXPECT_EQ((BlockSample{{}, {{}}}.gathered_shape()), Shape{});
}

TEST(GatherBlocks, CopiesFromWhereTheValuesLie) {
  const Box held = whole_box({6, 7, 8});
  std::vector<std::int32_t> values(held.n_elements());
  std::iota(values.begin(), values.end(), 0);
  const Box part{{1, 2, 3}, {4, 5, 5}};
  const StridedValues view =
      strided_part(held, std::as_bytes(std::span(values)).data(), DType::i32, part);
  const BlockSample sample{{2, 1, 3}, {{0, 0, 0}, {2, 4, 2}}};
  std::vector<std::int32_t> gathered(sample.n_values());
  gather_blocks(view, sample, std::as_writable_bytes(std::span(gathered)).data());
  const auto at = [](int z, int y, int x) { return ((1 + z) * 7 + 2 + y) * 8 + 3 + x; };
  EXPECT_EQ(gathered,
            (std::vector<std::int32_t>{at(0, 0, 0), at(0, 0, 1), at(0, 0, 2), at(1, 0, 0),
                                       at(1, 0, 1), at(1, 0, 2), at(2, 4, 2), at(2, 4, 3),
                                       at(2, 4, 4), at(3, 4, 2), at(3, 4, 3), at(3, 4, 4)}));
}

}  // namespace
}  // namespace tailrace
