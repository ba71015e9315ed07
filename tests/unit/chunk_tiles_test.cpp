// Tiles: every chunk once, tile by tile, with as few reads as memory allows.

#include "verbs/chunk_tiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

#include "core/storage.hpp"

namespace tailrace::verbs {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint64_t> order_of(const ChunkTiles& tiles) {
  std::vector<std::uint64_t> order(tiles.grid().n_chunks());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = tiles.chunk_at(i);
  return order;
}

/// An array in which every element is its own row-major number; it records the boxes that are read.
class Numbers final : public InputFile {
 public:
  explicit Numbers(Shape shape) : shape_(std::move(shape)) {}
  const std::string& format() const override { return format_; }
  const std::vector<StoredDataset>& fields() const override { return fields_; }
  Status read(std::size_t /*field_index*/, const Box& box, std::span<std::byte> values) override {
    boxes.push_back(box);
    if (fails) return Status(Code::corrupt, "a chunk does not decode");
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
  bool fails = false;

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

/// The number of parts of a tile that is cut, compared with all ways to cut it.
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
    const std::uint64_t most = std::min(chunks_held, 5);  // A tile has no more chunks.
    EXPECT_EQ(reader.peak_bytes(), chunks_held == 1 ? 0U : most * 4 * sizeof(std::uint64_t));
  }
}

TEST(TileReader, ABoxGrowsAlongItsTileOnlyAndIsCutAtTheEdge) {
  const ChunkTiles tiles({{7, 9}, {2, 2}}, {4, 4});  // Tiles of 2 x 2 chunks.
  EXPECT_EQ(tiles.box_from({0, 0}, 100), (Box{{0, 0}, {4, 4}}));
  EXPECT_EQ(tiles.box_from({0, 0}, 3), (Box{{0, 0}, {2, 4}}));
  EXPECT_EQ(tiles.box_from({0, 2}, 100), (Box{{0, 2}, {2, 2}}));  // The next box starts elsewhere.
  EXPECT_EQ(tiles.box_from({4, 8}, 100), (Box{{4, 8}, {3, 1}}));
  EXPECT_EQ(tiles.box_from({0, 0}, 0), (Box{{0, 0}, {2, 2}}));
}

// --- Groups of tiles, decoded once into a scratch file.

/// An array, its chunks before and after, and the number of new chunks that fit the memory.
struct Rechunking {
  Shape shape;
  Shape stored;
  Shape chunk;
  std::uint64_t n_held;
};

const std::vector<Rechunking> rechunkings = {
    {{60}, {60}, {4}, 5},
    {{61}, {30}, {4}, 2},
    {{12, 18}, {1, 18}, {12, 2}, 3},  // Maps become series.
    {{12, 18}, {12, 2}, {1, 18}, 3},  // Series become maps again.
    {{13, 17}, {13, 3}, {2, 17}, 2},  // Everything is clipped at its end.
    {{13, 17}, {6, 5}, {4, 3}, 1},    // Groups begin within stored chunks.
    {{7, 9, 11}, {1, 9, 11}, {7, 2, 3}, 4},
    {{7, 9, 11}, {7, 2, 11}, {2, 9, 3}, 3},
    {{6, 3, 8, 10}, {1, 3, 8, 10}, {6, 1, 3, 4}, 5},
    {{6, 3, 8, 10}, {6, 1, 3, 4}, {1, 3, 8, 10}, 1},
};

TEST(ChunkTiles, AGroupIsTilesInARowAndPositionsAreFoundAgain) {
  for (const Rechunking& one : rechunkings) {
    const ChunkTiles tiles({one.shape, one.chunk}, one.stored, one.n_held);
    const std::uint64_t n_chunks = tiles.grid().n_chunks();
    for (std::uint64_t first = 0; first < n_chunks;) {
      const ChunkPositions group = tiles.group_at(first);
      ASSERT_EQ(group.first, first);
      ASSERT_GT(group.end, first);
      std::uint64_t n_elements = 0;
      for (const Box& part : tiles.tile_parts(group)) n_elements += part.n_elements();
      for (std::uint64_t position = first; position < group.end; ++position) {
        const std::uint64_t chunk = tiles.chunk_at(position);
        EXPECT_EQ(tiles.position_of(tiles.grid().coordinates(chunk)), position);
        EXPECT_EQ(tiles.group_at(position).first, group.first);
        n_elements -= tiles.grid().clipped_box(chunk).n_elements();
      }
      EXPECT_EQ(n_elements, 0U);  // The parts equal the chunks.
      first = group.end;
    }
    const std::vector<std::uint64_t> order = order_of(tiles);
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), n_chunks);
  }
}

/// A file in memory that fails on request. Thread-safe, like every storage.
class ScratchInMemory final : public Storage {
 public:
  struct Orders {
    int writes_that_work = 1 << 30;
    int reads_that_work = 1 << 30;
    int reads_that_are_right = 1 << 30;
    std::uint64_t n_writes = 0;
  };
  ScratchInMemory(Orders& orders, std::uint64_t n_bytes) : orders_(orders), bytes_(n_bytes) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    EXPECT_LE(address + bytes.size(), bytes_.size());
    if (orders_.writes_that_work-- <= 0) return Status(Code::no_space, "the disk is full");
    ++orders_.n_writes;
    std::memcpy(bytes_.data() + address, bytes.data(), bytes.size());
    return Status();
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    EXPECT_LE(address + bytes.size(), bytes_.size());
    if (orders_.reads_that_work-- <= 0) return Status(Code::io_error, "the disk is broken");
    std::memcpy(bytes.data(), bytes_.data() + address, bytes.size());
    if (orders_.reads_that_are_right-- <= 0) bytes.back() ^= std::byte{1};
    return Status();
  }
  Result<std::uint64_t> file_bytes() override { return std::uint64_t{bytes_.size()}; }
  Status extend(std::uint64_t /*n_bytes*/) override { return Status(); }
  Status sync() override { return Status(); }
  const std::string& path() const override { return path_; }

 private:
  Orders& orders_;
  std::mutex mutex_;
  std::vector<std::byte> bytes_;
  std::string path_ = "scratch";
};

/// One rank's part of a repack whose values are checked. @returns the elements read for it.
class Rechunked {
 public:
  Rechunked(const Rechunking& one, int rank, int n_ranks, ScratchInMemory::Orders& orders)
      : tiles_({one.shape, one.chunk}, one.stored, one.n_held),
        shape_(one.shape),
        input_(one.shape),
        reader_(input_, std::max(one.n_held * n_elements(one.chunk), n_elements(one.stored)) * 8) {
    const auto open = [&orders](std::uint64_t n_bytes) -> Result<std::unique_ptr<Storage>> {
      return std::unique_ptr<Storage>(std::make_unique<ScratchInMemory>(orders, n_bytes));
    };
    reader_.use_scratch(open, 3);
    const DealtField field{tiles_.grid().n_chunks(), n_elements(one.shape) * 8};
    for (const ChunkRun& run : deal_chunks({&field, 1}, rank, n_ranks)) {
      reader_.expect(0, {run.first, run.end});
      runs_.push_back(run);
    }
  }
  void read_all() {
    for (const ChunkRun& run : runs_) {
      for (std::uint64_t position = run.first; position < run.end; ++position) check(position);
    }
  }
  void check(std::uint64_t position) {
    const Box box = tiles_.grid().clipped_box(tiles_.chunk_at(position));
    std::vector<std::uint64_t> values(box.n_elements());
    ASSERT_TRUE(reader_.read(0, tiles_, box, std::as_writable_bytes(std::span(values))).ok());
    std::size_t i = 0;
    for_each_position(box, [&](const Shape& at) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < at.size(); ++d) number = number * shape_[d] + at[d];
      ASSERT_EQ(values[i++], number);
    });
  }
  /// Bytes of this rank's chunks, after all are read.
  std::uint64_t own_bytes() const {
    std::uint64_t n_bytes = 0;
    for (const ChunkRun& run : runs_) {
      for (std::uint64_t position = run.first; position < run.end; ++position) {
        n_bytes += tiles_.grid().clipped_box(tiles_.chunk_at(position)).n_elements() * 8;
      }
    }
    return n_bytes;
  }
  /// Number of reads of each stored chunk, by its number.
  std::map<std::uint64_t, int> times_read(const Shape& stored) const {
    std::map<std::uint64_t, int> times;
    const ChunkGrid grid{shape_, stored};
    for (const Box& box : input_.boxes) {
      for_each_position(grid.touched(box), [&](const Shape& at) { ++times[grid.index_of(at)]; });
    }
    return times;
  }
  const ChunkTiles& tiles() const { return tiles_; }
  Numbers& input() { return input_; }
  TileReader& reader() { return reader_; }
  const std::vector<ChunkRun>& runs() const { return runs_; }

 private:
  ChunkTiles tiles_;
  Shape shape_;
  Numbers input_;
  TileReader reader_;
  std::vector<ChunkRun> runs_;
};

TEST(TileReader, AScratchGivesTheSameValuesAndDecodesEachChunkOnceForAGroup) {
  std::size_t n_scratched = 0;
  std::size_t n_whole = 0;  // Cases in which the scratch file held all of the rank's chunks.
  for (const Rechunking& one : rechunkings) {
    for (const int n_ranks : {1, 2, 3}) {
      for (int rank = 0; rank < n_ranks; ++rank) {
        ScratchInMemory::Orders orders;
        Rechunked rank_part(one, rank, n_ranks, orders);
        rank_part.read_all();
        if (rank_part.reader().scratch_bytes() == 0) continue;
        ++n_scratched;
        // Chunks that cross a border of groups are decoded for both.
        const ChunkTiles& tiles = rank_part.tiles();
        const ChunkGrid grid{one.shape, one.stored};
        std::map<std::uint64_t, std::set<std::uint64_t>> groups;
        for (const ChunkRun& run : rank_part.runs()) {
          for (std::uint64_t position = run.first; position < run.end; ++position) {
            const Box box = tiles.grid().clipped_box(tiles.chunk_at(position));
            for_each_position(grid.touched(box), [&](const Shape& at) {
              groups[grid.index_of(at)].insert(tiles.group_at(position).first);
            });
          }
        }
        const auto times = rank_part.times_read(one.stored);
        EXPECT_EQ(times.size(), groups.size()) << "chunks were read that nobody needs";
        if (rank_part.reader().scratch_bytes() < rank_part.own_bytes()) continue;
        ++n_whole;
        for (const auto& [chunk, n] : times) {
          EXPECT_EQ(n, int(groups[chunk].size())) << shape_text(one.shape) << ", chunk " << chunk;
        }
      }
    }
  }
  EXPECT_GE(n_whole, 2 * rechunkings.size());
  EXPECT_GE(n_scratched, 2 * rechunkings.size());
}

TEST(TileReader, ReadsThatAreNotInOrderBeginNoScratch) {
  const Rechunking& maps = rechunkings[2];
  ScratchInMemory::Orders orders;
  Rechunked all(maps, 0, 1, orders);
  for (std::uint64_t position = all.tiles().grid().n_chunks(); position-- > 1;) all.check(position);
  EXPECT_EQ(all.reader().scratch_bytes(), 0U);
  const Box first = all.tiles().grid().clipped_box(all.tiles().chunk_at(0));
  std::vector<std::uint64_t> values(first.n_elements());
  const auto bytes = std::as_writable_bytes(std::span(values));
  ASSERT_TRUE(all.reader().look(0, all.tiles(), first, bytes).ok());
  EXPECT_EQ(all.reader().scratch_bytes(), 0U);
  // An existing scratch file serves reads in any order.
  all.check(0);
  EXPECT_EQ(all.reader().scratch_bytes(), n_elements(maps.shape) * 8);
  const std::size_t n_reads = all.input().boxes.size();
  for (std::uint64_t position = all.tiles().grid().n_chunks(); position-- > 0;) all.check(position);
  EXPECT_EQ(all.input().boxes.size(), n_reads);
}

TEST(TileReader, AScratchThatFailsCostsNothingButDecoding) {
  for (const Rechunking& one : rechunkings) {
    ScratchInMemory::Orders whole;
    Rechunked(one, 0, 1, whole).read_all();
    for (int n = 0; n <= int(whole.n_writes); ++n) {
      ScratchInMemory::Orders orders{.writes_that_work = n};
      Rechunked(one, 0, 1, orders).read_all();
    }
    for (int n = 0; n < 6; ++n) {
      ScratchInMemory::Orders broken{.reads_that_work = n};
      Rechunked(one, 0, 1, broken).read_all();
      ScratchInMemory::Orders wrong{.reads_that_are_right = n};
      Rechunked rank_part(one, 0, 1, wrong);
      rank_part.read_all();
      EXPECT_EQ(rank_part.reader().scratch_failure().ok(), wrong.reads_that_are_right >= 0);
    }
    ScratchInMemory::Orders none;
    Rechunked without(one, 0, 1, none);
    const auto open = [](std::uint64_t) -> Result<std::unique_ptr<Storage>> {
      return Status(Code::no_space, "no room");
    };
    without.reader().use_scratch(open, 3);
    without.read_all();
    EXPECT_EQ(without.reader().scratch_bytes(), 0U);
  }
}

TEST(TileReader, WhatTheInputSaysIsSaidWithAScratchToo) {
  ScratchInMemory::Orders orders;
  Rechunked all(rechunkings[2], 0, 1, orders);
  all.input().fails = true;
  const Box first = all.tiles().grid().clipped_box(all.tiles().chunk_at(0));
  std::vector<std::uint64_t> values(first.n_elements());
  const Status read =
      all.reader().read(0, all.tiles(), first, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(read.code(), Code::corrupt);
}

TEST(ScratchFile, HasNoNameAndRefusesWhatDoesNotFit) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("scratch_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  {
    auto file = open_scratch_file({folder}, 1 << 20);
    if (file.ok()) {  // Otherwise the folder is in memory or on a network.
      const std::vector<std::byte> written(4096, std::byte{7});
      EXPECT_TRUE((*file)->write_at(1 << 19, written).ok());
      std::vector<std::byte> found(4096);
      EXPECT_TRUE((*file)->read_at(1 << 19, found).ok());
      EXPECT_EQ(found, written);
    } else {
      EXPECT_EQ(file.status().code(), Code::unsupported);
      EXPECT_TRUE(open_scratch_file({folder, true}, 1 << 20).ok());
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  EXPECT_FALSE(open_scratch_file({folder, true, folder, std::uint64_t{1} << 62}, 1 << 20).ok());
  EXPECT_TRUE(open_scratch_file({folder, true, "/proc", std::uint64_t{1} << 62}, 1 << 20).ok());
  const std::uint64_t free_bytes = std::filesystem::space(folder).available;
  EXPECT_FALSE(open_scratch_file({folder, true, folder, free_bytes}, 1 << 20).ok());
  EXPECT_FALSE(open_scratch_file({folder, true}, std::uint64_t{1} << 62).ok());
  EXPECT_FALSE(open_scratch_file({folder / "nowhere", true}, 1 << 20).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace tailrace::verbs
