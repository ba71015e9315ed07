// Tiles: every chunk once, tile by tile, and as few reads as memory allows.

#include "verbs/chunk_tiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace tailrace::verbs {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint64_t> order_of(const ChunkTiles& tiles) {
  std::vector<std::uint64_t> order(tiles.grid().n_chunks());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = tiles.chunk_at(i);
  return order;
}

/// An array whose every element is its own row-major number, and what was read of it.
class Numbers final : public InputFile {
 public:
  explicit Numbers(Shape shape) : shape_(std::move(shape)) {}
  const std::string& format() const override { return format_; }
  const std::vector<StoredDataset>& fields() const override { return fields_; }
  Status read(std::size_t /*field_index*/, const Box& box, std::span<std::byte> values) override {
    boxes.push_back(box);
    std::vector<std::uint64_t> all(n_elements(shape_));
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    copy_box(box, whole_box(shape_), reinterpret_cast<const std::byte*>(all.data()), box,
             values.data(), sizeof(std::uint64_t));
    return Status();
  }
  Result<std::vector<std::string>> carry_over_objects(Hdf5File& /*output*/) override {
    return std::vector<std::string>();
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& /*output*/,
                                                         const CopiedObjects& /*copied*/) override {
    return std::vector<std::string>();
  }

  std::vector<Box> boxes;

 private:
  Shape shape_;
  std::string format_ = "numbers";
  std::vector<StoredDataset> fields_;
};

TEST(ChunkTiles, WithoutLargerStoredChunksTheOrderIsThatOfTheNumbers) {
  const ChunkGrid grid{{7, 9}, {2, 3}};
  std::vector<std::uint64_t> ascending(grid.n_chunks());
  std::iota(ascending.begin(), ascending.end(), std::uint64_t{0});
  EXPECT_EQ(order_of(ChunkTiles(grid, {})), ascending);
  EXPECT_EQ(order_of(ChunkTiles(grid, {2, 3})), ascending);
  EXPECT_EQ(order_of(ChunkTiles(grid, {1, 1})), ascending);
  EXPECT_EQ(order_of(ChunkTiles(grid, {1, 9})), ascending);  // A tile is a row of chunks.
  EXPECT_EQ(order_of(ChunkTiles(grid, {100, 100})), ascending);
}

TEST(ChunkTiles, TallStoredChunksAreFollowedDownwards) {
  const ChunkTiles tiles({{4, 3}, {1, 1}}, {4, 1});
  EXPECT_THAT(order_of(tiles), ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
}

/// The number of tiles of one tile that is cut so, against all ways to cut it.
TEST(ChunkTiles, ATileThatIsTooLargeIsCutIntoAsFewAsCanBe) {
  for (const Shape& tile : {Shape{18, 6, 6}, Shape{1, 7, 5}, Shape{12}, Shape{2, 3, 4, 5}}) {
    const ChunkGrid grid{tile, Shape(tile.size(), 1)};
    for (std::uint64_t n_max = 1; n_max <= n_elements(tile) + 1; ++n_max) {
      std::uint64_t fewest = UINT64_MAX;
      const Box all_shapes{Shape(tile.size(), 1), tile};
      for_each_position(all_shapes, [&](const Shape& cut) {
        if (n_elements(cut) > n_max) return;
        std::uint64_t n = 1;
        for (std::size_t d = 0; d < tile.size(); ++d) n *= (tile[d] - 1) / cut[d] + 1;
        fewest = std::min(fewest, n);
      });
      const ChunkTiles tiles(grid, tile, n_max);
      EXPECT_LE(tiles.chunks_of_tile(), n_max);
      const Box first = tiles.box_from(Shape(tile.size(), 0), n_max);
      EXPECT_EQ(first.n_elements(), tiles.chunks_of_tile());
      std::uint64_t n = 1;
      for (std::size_t d = 0; d < tile.size(); ++d) n *= (tile[d] - 1) / first.count[d] + 1;
      EXPECT_EQ(n, fewest) << n_max;
      EXPECT_EQ(std::ranges::max(order_of(tiles)), n_elements(tile) - 1);
    }
  }
}

TEST(ChunkTiles, EveryChunkComesOnceAndATileBeforeTheNext) {
  for (const Shape& stored : {Shape{5, 1, 4}, Shape{2, 7, 3}, Shape{9, 2, 2}, Shape{3, 3, 100}}) {
    const ChunkGrid grid{{9, 8, 11}, {2, 1, 3}};
    const std::vector<std::uint64_t> order = order_of(ChunkTiles(grid, stored));
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), grid.n_chunks());
    std::set<Shape> left;
    Shape now;
    for (const std::uint64_t chunk : order) {
      Shape tile = grid.coordinates(chunk);
      for (std::size_t d = 0; d < 3; ++d) {
        tile[d] /= (stored[d] + grid.chunk_shape[d] - 1) / grid.chunk_shape[d];
      }
      if (tile == now) continue;
      EXPECT_TRUE(left.insert(now).second || now.empty()) << "came back to a tile";
      EXPECT_FALSE(left.contains(tile));
      now = tile;
    }
  }
}

TEST(TileReader, ReadsTogetherWhatMemoryAllowsAndGivesTheRightValues) {
  const Shape shape{10, 6};
  const ChunkTiles tiles({shape, {2, 2}}, {10, 1});  // A tile: the five chunks of a column.
  for (const auto& [chunks_held, n_reads] : {std::pair{1, 15}, {2, 9}, {5, 3}, {100, 3}}) {
    Numbers input(shape);
    TileReader reader(input, std::uint64_t(chunks_held) * 4 * sizeof(std::uint64_t));
    for (std::uint64_t i = 0; i < tiles.grid().n_chunks(); ++i) {
      const Box box = tiles.grid().clipped_box(tiles.chunk_at(i));
      std::vector<std::uint64_t> values(box.n_elements());
      ASSERT_TRUE(reader.read(0, tiles, box, std::as_writable_bytes(std::span(values))).ok());
      EXPECT_THAT(values,
                  ElementsAre(box.start[0] * 6 + box.start[1], box.start[0] * 6 + box.start[1] + 1,
                              (box.start[0] + 1) * 6 + box.start[1],
                              (box.start[0] + 1) * 6 + box.start[1] + 1));
    }
    EXPECT_EQ(input.boxes.size(), std::size_t(n_reads)) << chunks_held << " chunks held";
    const std::uint64_t most = std::min(chunks_held, 5);  // A tile has no more.
    EXPECT_EQ(reader.peak_bytes(), chunks_held == 1 ? 0U : most * 4 * sizeof(std::uint64_t));
  }
}

TEST(TileReader, ABoxGrowsAlongItsTileOnlyAndIsCutAtTheEdge) {
  const ChunkTiles tiles({{7, 9}, {2, 2}}, {4, 4});  // Tiles of 2 x 2 chunks.
  EXPECT_EQ(tiles.box_from({0, 0}, 100), (Box{{0, 0}, {4, 4}}));
  EXPECT_EQ(tiles.box_from({0, 0}, 3), (Box{{0, 0}, {2, 4}}));
  EXPECT_EQ(tiles.box_from({0, 2}, 100), (Box{{0, 2}, {2, 2}}));  // What follows begins elsewhere.
  EXPECT_EQ(tiles.box_from({4, 8}, 100), (Box{{4, 8}, {3, 1}}));
  EXPECT_EQ(tiles.box_from({0, 0}, 0), (Box{{0, 0}, {2, 2}}));
}

}  // namespace
}  // namespace tailrace::verbs
