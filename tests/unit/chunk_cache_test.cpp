// ChunkCache: eviction by use, entries that are being decoded, and dropping one field.

#include "chunk/chunk_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tailrace {
namespace {

constexpr std::uint64_t kChunkBytes = 4096;

Buffer chunk_of(int value) {
  Buffer values(kChunkBytes);
  std::memset(values.data(), value, kChunkBytes);
  return values;
}

/// First byte of a cached chunk; -1: not cached.
int first_byte(ChunkCache& cache, const ChunkKey& id) {
  const ChunkCache::Entry entry = cache.find(id);
  return entry == nullptr ? -1 : int(entry->values.data()[0]);
}

TEST(ChunkCache, EvictsWhatWasUsedLeastRecently) {
  ChunkCache cache(3 * kChunkBytes);
  for (int i = 0; i < 3; ++i) cache.add({1, std::uint64_t(i)}, chunk_of(i));
  EXPECT_EQ(cache.bytes_free(), 0U);
  EXPECT_EQ(first_byte(cache, {1, 0}), 0);  // A use, which keeps it.
  cache.add({1, 3}, chunk_of(3));
  EXPECT_FALSE(cache.holds({1, 1}));
  for (const int i : {0, 2, 3}) EXPECT_EQ(first_byte(cache, {1, std::uint64_t(i)}), i);
  cache.add({1, 3}, chunk_of(9));  // Cached already.
  EXPECT_EQ(first_byte(cache, {1, 3}), 3);
}

TEST(ChunkCache, KeepsEntriesThatAreBeingDecoded) {
  ChunkCache cache(2 * kChunkBytes);
  const ChunkCache::Entry begun = cache.begin({1, 0}, kChunkBytes);
  ASSERT_NE(begun, nullptr);
  cache.add({1, 1}, chunk_of(1));
  cache.add({1, 2}, chunk_of(2));
  EXPECT_TRUE(cache.holds({1, 0}) && cache.holds({1, 2}) && !cache.holds({1, 1}));
  cache.add({1, 4}, Buffer(3 * kChunkBytes));  // Never fits, and evicts nothing.
  EXPECT_TRUE(cache.holds({1, 2}) && !cache.holds({1, 4}));
  cache.finish({1, 0}, begun, Status(Code::corrupt, "damaged"));
  EXPECT_FALSE(cache.holds({1, 0}));
  EXPECT_FALSE(cache.wait(begun));
}

TEST(ChunkCache, DropsOneFieldOrOneChunk) {
  ChunkCache cache(10 * kChunkBytes);
  for (std::size_t field = 0; field < 3; ++field) {
    for (std::uint64_t i = 0; i < 2; ++i) cache.add({field, i}, chunk_of(int(field)));
  }
  const ChunkCache::Entry held = cache.find({1, 0});
  cache.drop_field(1);
  cache.drop({2, 1});
  EXPECT_FALSE(cache.holds({1, 0}) || cache.holds({1, 1}) || cache.holds({2, 1}));
  EXPECT_TRUE(cache.holds({0, 0}) && cache.holds({0, 1}) && cache.holds({2, 0}));
  EXPECT_EQ(cache.bytes_free(), 7 * kChunkBytes);
  EXPECT_EQ(int(held->values.data()[0]), 1) << "a holder keeps the values";
}

}  // namespace
}  // namespace tailrace
