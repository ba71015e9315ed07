// Staged values of a rank compared with an array in memory; boxes found by an index; order between
// ranks after very many puts of the same elements.

#include "array/array_staging.hpp"

#include <cstring>
#include <memory>
#include <random>

#include "array/array_patches.hpp"
#include "array_support.hpp"
#include "container_support.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "engine_support.hpp"
#include "support/test_tier.hpp"

namespace tailrace::test {
namespace {

using Values = std::vector<std::int32_t>;

Status put_of(StagingLog& log, const Slab& slab, const Values& values, std::uint64_t epoch = 0) {
  return log.put(slab, std::as_bytes(std::span(values)), epoch);
}

Values laid(const StagingLog& log, const Slab& slab) {
  Values values(slab.n_elements(), -1);
  log.lay_over(slab, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::uint64_t> words_of(const Box& box) {
  std::vector<std::uint64_t> words = box.start;
  words.insert(words.end(), box.count.begin(), box.count.end());
  return words;
}

/// An element's last value, and the epoch of its put.
struct Last {
  std::int32_t value = -1;
  std::uint64_t epoch = 0;
};

/// The log's pieces applied in order, and the final state of each element.
std::vector<Last> pieces_of(const StagingLog& log, const Shape& shape) {
  std::vector<Last> elements(n_elements(shape));
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* from) {
      for_each_position({Shape(slab.rank(), 0), slab.count}, [&](const Shape& at) {
        std::size_t i = 0;
        for (std::size_t d = 0; d < at.size(); ++d) {
          i = i * shape[d] + slab.start[d] + at[d] * slab.stride_of(d);
        }
        std::memcpy(&elements[i].value, from, sizeof(std::int32_t));
        elements[i].epoch = epoch;
        from += sizeof(std::int32_t);
      });
    });
  }
  return elements;
}

TEST(BoxIndex, FindsWhatTouches) {
  std::mt19937 random(1);
  for (const std::size_t rank : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    const Shape shape(rank, 60);
    std::vector<Box> boxes;
    BoxIndex index;
    const auto box_of = [&](std::size_t i, std::span<std::uint64_t> words) {
      std::ranges::copy(words_of(boxes[i]), words.begin());
    };
    for (int step = 0; step < tier_rounds(60, 1); ++step) {
      for (int i = 0; i < 37; ++i) {
        boxes.push_back(random_slab(shape, random).bounding_box());
        for (std::uint64_t& count : boxes.back().count) count = 1 + count % 5;
      }
      if (step % 7 == 6) {
        boxes.resize(boxes.size() - random() % boxes.size());
        index.forget_from(boxes.size());
      }
      index.extend(boxes.size(), rank, box_of);
      ASSERT_EQ(index.n_boxes(), boxes.size());
      const std::vector<std::uint64_t> wanted = words_of(random_slab(shape, random).bounding_box());
      std::vector<int> found(boxes.size(), 0);
      index.visit(wanted, [&](std::size_t i) {
        ++found[i];
        return true;
      });
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        ASSERT_LE(found[i], 1);
        if (boxes_touch(words_of(boxes[i]), wanted)) {
          ASSERT_EQ(found[i], 1) << box_text(boxes[i]);
        }
      }
    }
  }
}

TEST(StagingLog, RunsOfABoxAreBoxes) {
  const Box box{{3, 10, 7}, {2, 3, 4}};
  for (std::uint64_t first = 0; first <= 24; ++first) {
    for (std::uint64_t end = first; end <= 24; ++end) {
      std::vector<std::uint64_t> seen;
      for_each_box_of_run(box, first, end, [&](const Box& part) {
        EXPECT_TRUE(contains(box, part));
        for_each_position(part, [&](const Shape& at) {
          seen.push_back(((at[0] - 3) * 3 + at[1] - 10) * 4 + at[2] - 7);
        });
      });
      ASSERT_EQ(seen.size(), end - first);
      for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], first + i);
    }
  }
}

/// Adjacent puts merge into one entry even if each has its own epoch.
TEST(StagingLog, NeighboursOfOtherEpochsMerge) {
  const auto kPuts = static_cast<std::uint64_t>(tier_rounds(100000, 1));
  constexpr std::uint64_t kElements = 64;
  StagingMemory memory(1 << 30, "");
  StagingLog log(memory, sizeof(std::int32_t));
  Values values(kElements);
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    std::ranges::fill(values, static_cast<std::int32_t>(i));
    ASSERT_TRUE(put_of(log, {{i, 0}, {1, kElements}, {}}, values, 7 * i).ok());
  }
  EXPECT_LE(log.n_entries(), 30U);
  const std::uint64_t value_bytes = kPuts * kElements * sizeof(std::int32_t);
  EXPECT_LE(memory.held_bytes(), value_bytes + kPuts * 24 + (4 << 20));
  std::uint64_t n_pieces = 0;
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte*) {
      EXPECT_EQ(epoch, 7 * slab.start[0]);
      ++n_pieces;
    });
  }
  EXPECT_EQ(n_pieces, kPuts);
  for (std::uint64_t i = 0; i < kPuts; i += 997) {
    EXPECT_EQ(laid(log, {{i, 5}, {1, 2}, {}}), Values(2, static_cast<std::int32_t>(i)));
  }
}

/// Thirteen alternating streams of rows also become a few entries.
TEST(StagingLog, StreamsThatAlternateMerge) {
  constexpr std::uint64_t kStreams = 13;
  constexpr std::uint64_t kRows = 4000;
  StagingMemory memory(1 << 30, "");
  StagingLog log(memory, sizeof(std::int32_t));
  std::uint64_t epoch = 0;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    for (std::uint64_t s = 0; s < kStreams; ++s) {
      const Values values(64, static_cast<std::int32_t>(s * kRows + row));
      ASSERT_TRUE(put_of(log, {{s, row, 0}, {1, 1, 64}, {}}, values, ++epoch).ok());
    }
  }
  // One per stream and block; the last block is not full yet.
  EXPECT_LE(log.n_entries(), kStreams * 12 + (4 << 20) / 256);
  for (std::uint64_t s = 0; s < kStreams; ++s) {
    for (std::uint64_t row = 0; row < kRows; row += 333) {
      EXPECT_EQ(laid(log, {{s, row, 3}, {1, 1, 1}, {}})[0],
                static_cast<std::int32_t>(s * kRows + row));
    }
  }
}

/// Values that a later put covers are dropped when a block is full.
TEST(StagingLog, RowsPutAgainAndAgainTakeTheirSpaceOnce) {
  StagingMemory memory(1 << 30, "");
  StagingLog log(memory, sizeof(std::int32_t));
  const auto kTimes = static_cast<std::uint64_t>(tier_rounds(2000, 1));
  for (std::uint64_t time = 0; time < kTimes; ++time) {
    for (std::uint64_t row = 0; row < 100; ++row) {
      const Values values(64, static_cast<std::int32_t>(time + row));
      ASSERT_TRUE(put_of(log, {{(row * 37) % 100, 0}, {1, 64}, {}}, values, time).ok());
    }
  }
  // 51 MB are put. A sorted block keeps 25.6 kB of its 4 MiB.
  EXPECT_LE(memory.held_bytes(), std::uint64_t{10} << 20);
  for (std::uint64_t row = 0; row < 100; ++row) {
    EXPECT_EQ(laid(log, {{(row * 37) % 100, 9}, {1, 1}, {}})[0],
              static_cast<std::int32_t>(kTimes - 1 + row));
  }
  log.clear();
  EXPECT_EQ(memory.held_bytes() + memory.spilled_bytes(), 0U);
}

/// A third of the rows of one put in pieces, in random order: 12 bytes per piece in addition to the
/// values. The log finds scattered pieces without a scan, while more are put.
TEST(StagingLog, PiecesOfOnePutAreOneEntry) {
  constexpr std::uint64_t kPieces = 100000;
  StagingMemory memory(1 << 30, "");
  StagingLog log(memory, sizeof(std::int32_t));
  ElementRuns runs;
  Values values;
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    const std::uint64_t at = 3 * (i * 7919 % kPieces);
    runs.add(at, 2);
    values.insert(values.end(), {static_cast<std::int32_t>(at), static_cast<std::int32_t>(at + 1)});
  }
  const Shape shape{300, 1000};
  ASSERT_TRUE(log.put(shape, runs, std::as_bytes(std::span(values)), 5).ok());
  EXPECT_EQ(log.n_entries(), 1U);
  EXPECT_EQ(log.boxes(), std::vector<Box>{whole_box(shape)});
  EXPECT_LE(memory.held_bytes(), values.size() * 4 + kPieces * 12 + (1 << 16));
  const Values all = laid(log, Slab::of(whole_box(shape)));
  for (std::size_t e = 0; e < all.size(); ++e) {
    ASSERT_EQ(all[e], e % 3 == 2 ? -1 : static_cast<std::int32_t>(e));
  }
  EXPECT_EQ(log.box_of_sample(0, shape), (Box{{0, 0}, {200, 1000}}));
  // Single elements are found without a scan of all pieces.
  for (std::uint64_t i = 0; i < kPieces; i += static_cast<std::uint64_t>(tier_stride(1))) {
    const std::uint64_t e = 3 * (i * 7919 % kPieces) + i % 3;
    ASSERT_EQ(laid(log, {{e / 1000, e % 1000}, {1, 1}, {}})[0],
              i % 3 == 2 ? -1 : static_cast<std::int32_t>(e));
  }
  // A second put replaces the values.
  for (std::int32_t& value : values) value += 1000000;
  ASSERT_TRUE(log.put(shape, runs, std::as_bytes(std::span(values)), 6).ok());
  EXPECT_EQ(log.n_entries(), 1U);
  EXPECT_EQ(log.run(0, 0).epoch, 6U);
  EXPECT_EQ(laid(log, {{1, 0}, {1, 4}, {}}), (Values{1001000, -1, 1001002, 1001003}));
  for (std::int32_t& value : values) value -= 1000000;
  // Put the missing elements as well. In one call, both together become a box.
  StagingLog whole(memory, sizeof(std::int32_t));
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    const std::uint64_t at = 3 * (i * 7919 % kPieces) + 2;
    runs.add(at, 1);
    values.push_back(static_cast<std::int32_t>(at));
  }
  ASSERT_TRUE(whole.put(shape, runs, std::as_bytes(std::span(values)), 5).ok());
  EXPECT_EQ(whole.n_entries(), 1U);
  EXPECT_EQ(whole.slab(0), Slab::of(whole_box(shape)));
  EXPECT_EQ(laid(whole, {{299, 999}, {1, 1}, {}}), Values{299999});
}

TEST(StagingLog, ScatteredPutsAreFound) {
  const auto kPuts = static_cast<std::uint64_t>(tier_rounds(30000, 1));
  StagingMemory memory(1 << 30, "");
  StagingLog log(memory, sizeof(std::int32_t));
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    const std::uint64_t at = i * 7919 % kPuts;
    ASSERT_TRUE(put_of(log, {{2 * at}, {1}, {}}, {static_cast<std::int32_t>(at)}, i).ok());
    if (i % 4 == 0) {
      ASSERT_EQ(laid(log, {{2 * at}, {1}, {}})[0], static_cast<std::int32_t>(at));
    }
  }
  for (std::uint64_t i = 0; i < kPuts; ++i) {
    ASSERT_EQ(laid(log, {{2 * i}, {2}, {}}), (Values{static_cast<std::int32_t>(i), -1}));
  }
}

/// Random puts of all shapes, strided and not, over each other, and small enough that blocks fill
/// and are sorted. Values and epochs must equal those of an array in memory.
TEST(StagingLog, RandomPutsAreAsInMemory) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(tier_rounds(12, 2)); ++seed) {
    std::mt19937 random(seed);
    const std::size_t rank = 1 + seed % 3;
    const Shape shape(rank, rank == 1 ? 4000 : rank == 2 ? 63 : 16);
    StagingMemory memory(1 << 30, "");
    StagingLog log(memory, sizeof(std::int32_t));
    std::vector<Last> expected(n_elements(shape));
    Shape row(rank, 0);
    std::int32_t next = 0;
    for (int op = 0; op < 6000; ++op) {
      Slab slab = random_slab(shape, random);
      if (seed % 4 == 1) {  // mostly rows that continue forwards or backwards
        slab = {row, Shape(rank, 1), {}};
        slab.count[rank - 1] = std::min<std::uint64_t>(1 + random() % 9, shape[0] - row[rank - 1]);
        row[rank - 1] += slab.count[rank - 1];
        for (std::size_t d = rank; d-- > 0 && row[d] >= shape[d];) {
          row[d] = 0;
          if (d > 0) ++row[d - 1];
        }
        if (random() % 300 == 0) row[0] = random() % shape[0];
      } else {
        for (std::size_t d = 0; d < rank; ++d) slab.count[d] = 1 + slab.count[d] % 4;
        for (std::size_t d = 0; d < rank; ++d) {
          const std::uint64_t most = (shape[d] - 1 - slab.start[d]) / slab.stride_of(d) + 1;
          slab.count[d] = std::min(slab.count[d], most);
        }
      }
      const auto epoch = static_cast<std::uint64_t>(op / (1 + seed % 2 * 7));
      if (op % 307 == 300) {
        const ElementRuns runs = runs_of(random_runs(shape, random));
        Values values(runs.n_elements());
        for (std::int32_t& value : values) value = next++;
        ASSERT_TRUE(log.put(shape, runs, std::as_bytes(std::span(values)), epoch).ok());
        const std::int32_t* from = values.data();
        for (std::size_t r = 0; r < runs.size(); ++r) {
          for (std::uint64_t e = 0; e < runs.counts[r]; ++e) {
            expected[runs.firsts[r] + e] = {*from++, epoch};
          }
        }
      }
      Values values(slab.n_elements());
      for (std::int32_t& value : values) value = next++;
      ASSERT_TRUE(put_of(log, slab, values, epoch).ok());
      std::size_t i = 0;
      for_each_position({Shape(rank, 0), slab.count}, [&](const Shape& at) {
        std::size_t position = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          position = position * shape[d] + slab.start[d] + at[d] * slab.stride_of(d);
        }
        expected[position] = {values[i++], epoch};
      });
      if (op % 501 != 500) continue;
      const std::vector<Last> pieces = pieces_of(log, shape);
      for (std::size_t e = 0; e < pieces.size(); ++e) {
        ASSERT_EQ(pieces[e].value, expected[e].value) << "seed " << seed << ", after " << op;
        ASSERT_EQ(pieces[e].epoch, expected[e].epoch) << "seed " << seed << ", after " << op;
      }
      const Values all = laid(log, Slab::of(whole_box(shape)));
      for (std::size_t e = 0; e < all.size(); ++e) ASSERT_EQ(all[e], expected[e].value);
      const Slab some = random_slab(shape, random);
      const Values part = laid(log, some);
      std::size_t at_part = 0;
      for_each_position({Shape(rank, 0), some.count}, [&](const Shape& at) {
        std::size_t position = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          position = position * shape[d] + some.start[d] + at[d] * some.stride_of(d);
        }
        ASSERT_EQ(part[at_part++], expected[position].value);
      });
    }
    log.clear();
    EXPECT_EQ(memory.held_bytes() + memory.spilled_bytes(), 0U);
  }
}

/// One chunk to which many ranks have put parts.
class SharedChunk {
 public:
  SharedChunk(const std::string& path, int n_ranks, Shape shape)
      : shape_(std::move(shape)), storage_(path, false), memory_(1 << 30, "") {
    CodecRequest request;
    request.name = plain_codec;
    request.dtype = DType::i32;
    request.chunk_shape = shape_;
    Result<std::unique_ptr<Codec>> codec = make_codec(request);
    codec_ = std::move(*codec);
    for (int r = 0; r < n_ranks; ++r) logs_.emplace_back(memory_, sizeof(std::int32_t));
  }
  std::uint64_t chunk_bytes() const { return n_elements(shape_) * sizeof(std::int32_t); }
  StagingLog& log(int rank) { return logs_[static_cast<std::size_t>(rank)]; }

  /// The owner's (rank 0's) result if the others' pieces arrive in this order; -1: not put.
  Values complete(const std::vector<int>& order) {
    PatchedChunks owner(variable(), logs_[0], storage_);
    Buffer values(chunk_bytes());
    longest_message_bytes = 0;
    for (const int rank : order) {
      const PatchedChunks holder(variable(), log(rank), storage_);
      ByteWriter writer;
      holder.add_pieces(0, writer);
      longest_message_bytes = std::max(longest_message_bytes, writer.bytes().size());
      owner.lay_pieces(0, rank, writer.bytes(), values);
    }
    EXPECT_TRUE(owner.complete(0, values).ok());
    peak_bytes = owner.peak_bytes();
    Values completed(n_elements(shape_));
    std::memcpy(completed.data(), values.data(), values.n_bytes());
    return completed;
  }
  std::size_t longest_message_bytes = 0;
  std::uint64_t peak_bytes = 0;

 private:
  PatchedChunks::Variable variable() const {
    const auto fill = std::as_bytes(std::span(&unput_, 1));
    return {"/v",
            {shape_, shape_},
            sizeof(std::int32_t),
            {fill.begin(), fill.end()},
            codec_.get(),
            false,
            false,
            0,
            {},
            nullptr,
            false,
            {}};
  }
  Shape shape_;
  std::int32_t unput_ = -1;
  RecordingStorage storage_;
  StagingMemory memory_;
  std::unique_ptr<Codec> codec_;
  std::vector<StagingLog> logs_;
};

/// Sixty ranks put the same chunk. Its owner needs no more memory than for two ranks.
TEST(PatchedChunks, ManyRanksThatPutTheSameTakeTheMemoryOfTwo) {
  const TestFolder folder;
  constexpr int kRanks = 60;
  SharedChunk chunk(folder / "c", kRanks, {64, 64});
  std::vector<int> order;
  for (int r = 0; r < kRanks; ++r) {
    const std::uint64_t epoch = 1 + static_cast<std::uint64_t>((r * 23) % kRanks);
    ASSERT_TRUE(put_of(chunk.log(r), {{0, 0}, {64, 64}, {}}, Values(64 * 64, r), epoch).ok());
    if (r > 0) order.push_back(r);
  }
  int last = 0;
  while ((last * 23) % kRanks != kRanks - 1) ++last;
  EXPECT_EQ(chunk.complete(order), Values(64 * 64, last));
  EXPECT_LE(chunk.peak_bytes, 3 * chunk.chunk_bytes() + 4096);  // values and order: 1 + 1.3
}

/// A rank that has put the same elements many times sends them once.
TEST(PatchedChunks, WhatARankCoversItselfStaysAtHome) {
  const TestFolder folder;
  SharedChunk chunk(folder / "c", 2, {64, 64});
  for (std::uint64_t i = 0; i < 50; ++i) {
    for (const std::uint64_t half : {0U, 31U}) {
      const Values values(33 * 64, static_cast<std::int32_t>(2 * i + (half > 0 ? 1 : 0)));
      ASSERT_TRUE(put_of(chunk.log(1), {{half, 0}, {33, 64}, {}}, values, i).ok());
    }
  }
  const Values completed = chunk.complete({1});
  EXPECT_EQ(completed[30 * 64], 98);
  EXPECT_EQ(completed[31 * 64], 99);
  EXPECT_LE(chunk.longest_message_bytes, chunk.chunk_bytes() + 4096);
}

/// Random puts of several ranks: the later put wins. Of equal epochs the owner's wins, then that of
/// the highest rank. The order in which pieces arrive does not matter.
TEST(PatchedChunks, TheLaterStaysInWhateverOrderPiecesCome) {
  const TestFolder folder;
  constexpr int kRanks = 7;
  const Shape shape{24, 20};
  for (unsigned seed = 0; seed < static_cast<unsigned>(tier_rounds(40, 1)); ++seed) {
    std::mt19937 random(seed);
    SharedChunk chunk(folder / "c", kRanks, shape);
    struct Known {
      std::int32_t value = -1;
      std::uint64_t epoch = 0;
      int rank = 0;
    };
    std::vector<Known> expected(n_elements(shape));
    std::int32_t next = 0;
    std::uint64_t epoch = 1;
    const int n_puts = seed % 2 == 0 ? 12 : 400;
    for (int i = 0; i < n_puts; ++i) {
      const int rank = static_cast<int>(random() % kRanks);
      Slab slab = random_slab(shape, random);
      if (seed % 3 == 0) slab = {{static_cast<std::uint64_t>(i) % 24, 0}, {1, 20}, {}};
      Values values(slab.n_elements());
      for (std::int32_t& value : values) value = next++;
      epoch += random() % 2;
      const int order = rank == 0 ? kRanks : rank;
      const auto note = [&](std::size_t element, std::int32_t value) {
        Known& known = expected[element];
        if (epoch > known.epoch || order >= known.rank) known = {value, epoch, order};
      };
      if (random() % 4 == 0) {
        const ElementRuns runs = runs_of(random_runs(shape, random));
        values.resize(runs.n_elements());
        for (std::int32_t& value : values) value = next++;
        ASSERT_TRUE(chunk.log(rank).put(shape, runs, std::as_bytes(std::span(values)), epoch).ok());
        std::size_t at = 0;
        for (std::size_t r = 0; r < runs.size(); ++r) {
          for (std::uint64_t e = 0; e < runs.counts[r]; ++e) note(runs.firsts[r] + e, values[at++]);
        }
        continue;
      }
      ASSERT_TRUE(put_of(chunk.log(rank), slab, values, epoch).ok());
      std::size_t at_value = 0;
      for_each_position({Shape(2, 0), slab.count}, [&](const Shape& at) {
        const std::uint64_t row = slab.start[0] + at[0] * slab.stride_of(0);
        note(row * shape[1] + slab.start[1] + at[1] * slab.stride_of(1), values[at_value++]);
      });
    }
    Values wanted;
    for (const Known& known : expected) wanted.push_back(known.value);
    std::vector<int> order{1, 2, 3, 4, 5, 6};
    for (int shuffled = 0; shuffled < 4; ++shuffled) {
      ASSERT_EQ(chunk.complete(order), wanted) << "seed " << seed;
      std::ranges::shuffle(order, random);
    }
  }
}

}  // namespace
}  // namespace tailrace::test
