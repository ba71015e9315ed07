// The line of a concatenation's chunks: places, bytes, rounds, owners.

#include "concat/concat_line.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tailrace {
namespace {

ConcatLine three_datasets() {
  // 5 chunks of 40 bytes; none; 6 chunks of 16 bytes, of which the first 2 exist already.
  return ConcatLine({{{{9}, {2}}, 20, 0}, {{{0}, {4}}, 8, 0}, {{{3, 4}, {1, 2}}, 8, 2}});
}

TEST(ConcatLine, CountsPlacesAndBytes) {
  const ConcatLine line = three_datasets();
  EXPECT_EQ(line.n_places(), 9U);
  EXPECT_EQ(line.bytes_before(0), 0U);
  EXPECT_EQ(line.bytes_before(4), 160U);
  EXPECT_EQ(line.bytes_before(5), 200U);
  EXPECT_EQ(line.bytes_before(9), 264U);
  EXPECT_EQ(line.chunk_at(4).dataset, 0U);
  EXPECT_EQ(line.chunk_at(4).chunk_index, 4U);
  EXPECT_EQ(line.chunk_at(5).dataset, 2U);
  EXPECT_EQ(line.chunk_at(5).chunk_index, 2U);
  EXPECT_EQ(line.first_place(1), 5U);
  EXPECT_EQ(line.first_place(2), 5U);
  EXPECT_EQ(line.first_place(3), 9U);
  EXPECT_EQ(line.place_of(2, 5), 8U);
}

TEST(ConcatLine, ARoundHasAtMostItsBytesButOneChunkAtLeast) {
  const ConcatLine line = three_datasets();
  EXPECT_EQ(line.end_within(0, 80), 2U);
  EXPECT_EQ(line.end_within(0, 119), 2U);
  EXPECT_EQ(line.end_within(0, 1), 1U);
  EXPECT_EQ(line.end_within(4, 40 + 16), 6U);
  EXPECT_EQ(line.end_within(4, 1000), 9U);
  EXPECT_EQ(line.end_within(8, 1), 9U);
}

TEST(ConcatLine, BordersAreWhereDatasetsBeginAndTheLineEnds) {
  const ConcatLine line = three_datasets();
  for (std::uint64_t place = 0; place <= 9; ++place) {
    EXPECT_EQ(line.is_border(place), place == 0 || place == 5 || place == 9) << place;
  }
  EXPECT_EQ(line.next_border(0, 9), 5U);
  EXPECT_EQ(line.next_border(0, 3), 3U);
  EXPECT_EQ(line.next_border(4, 9), 5U);
  EXPECT_EQ(line.next_border(5, 9), 9U);
}

TEST(ConcatLine, AnEmptyLineHasNoPlaces) {
  const ConcatLine line({{{{0}, {4}}, 8, 0}});
  EXPECT_EQ(line.n_places(), 0U);
  EXPECT_EQ(line.bytes_before(0), 0U);
}

/// Every place of a round belongs to one rank. No rank's bytes exceed its share by more than a
/// chunk, for any datasets.
TEST(ConcatRound, SharesAreEqualInBytesUpToAChunk) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<LineDataset> datasets;
    std::uint64_t largest = 0;
    for (std::size_t d = 0; d < 1 + random() % 20; ++d) {
      const std::uint64_t rows = random() % 100;
      const std::uint64_t chunk = 1 + random() % 10;
      datasets.push_back({{{rows}, {chunk}}, 1 + random() % 50, 0});
      if (rows > 0) largest = std::max(largest, datasets.back().chunk_bytes());
    }
    const ConcatLine line(datasets);
    if (line.n_places() == 0) continue;
    const std::uint64_t first = random() % line.n_places();
    const std::uint64_t end = line.end_within(first, random() % 5000);
    const int n_ranks = 1 + static_cast<int>(random() % 9);
    const ConcatRound round = ConcatRound::deal(line, first, end, n_ranks);
    ASSERT_EQ(round.borders.size(), static_cast<std::size_t>(n_ranks) + 1);
    EXPECT_EQ(round.borders.front(), first);
    EXPECT_EQ(round.borders.back(), end);
    const std::uint64_t all = line.bytes_before(end) - line.bytes_before(first);
    for (std::size_t r = 0; r < static_cast<std::size_t>(n_ranks); ++r) {
      ASSERT_LE(round.borders[r], round.borders[r + 1]);
      const std::uint64_t mine =
          line.bytes_before(round.borders[r + 1]) - line.bytes_before(round.borders[r]);
      EXPECT_LE(mine, all / static_cast<std::uint64_t>(n_ranks) + largest + 1);
      for (std::uint64_t place = round.borders[r]; place < round.borders[r + 1]; ++place) {
        EXPECT_EQ(round.owner(place), static_cast<int>(r));
      }
    }
  }
}

}  // namespace
}  // namespace tailrace
