// The metadata driver's invariants, by number (head of metadata_driver.cpp), and its plain parts.

#include "hdf5/metadata_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "container_support.hpp"
#include "hdf5/commit_order.hpp"

namespace tailrace::test {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, unsigned value) {
  return std::vector<std::byte>(n, std::byte(value));
}

class Driver : public ::testing::Test {
 protected:
  TestFolder folder_;
  RecordingStorage storage_{folder_ / "file", false};
  ScatteringTail tail_;
  MetadataDriver driver_{storage_, tail_.allocate(), {}};

  std::uint64_t allocate(H5FD_mem_t type, std::uint64_t n) { return driver_.on_alloc(type, n); }
  void write(H5FD_mem_t type, std::uint64_t address, const std::vector<std::byte>& bytes) {
    EXPECT_EQ(driver_.on_write(type, address, bytes.size(), bytes.data()), 0);
  }
  std::vector<std::byte> read(std::uint64_t address, std::size_t n) {
    std::vector<std::byte> bytes(n);
    EXPECT_EQ(driver_.on_read(H5FD_MEM_DRAW, address, n, bytes.data()), 0);
    return bytes;
  }
  void SetUp() override {
    EXPECT_EQ(allocate(H5FD_MEM_SUPER, 48), 0U);
    driver_.finish_create();
  }
};

TEST_F(Driver, MetadataReachesStorageInPublishOnly_Invariants1And5) {
  const std::uint64_t address = allocate(H5FD_MEM_OHDR, 100);
  write(H5FD_MEM_OHDR, address, bytes_of(100, 1));
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 2));
  EXPECT_EQ(storage_.n_operations, 0U);
  EXPECT_EQ(read(address, 100), bytes_of(100, 1));
  EXPECT_EQ(read(5000, 10), bytes_of(10, 0));
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(driver_.metadata_bytes(), 148U);
  EXPECT_EQ(read(address, 100), bytes_of(100, 1));
  std::vector<std::byte> stored(100);
  ASSERT_DONE(storage_.read_at(address, stored));
  EXPECT_EQ(stored, bytes_of(100, 1));
}

TEST_F(Driver, EndLiesBehindEveryBlock_Invariant2) {
  const std::uint64_t address = allocate(H5FD_MEM_OHDR, 100);
  EXPECT_GT(driver_.end_of_allocated(), address + 100);
  driver_.arm(100000, 50);
  EXPECT_EQ(allocate(H5FD_MEM_DRAW, 50), 100000U);
  driver_.disarm();
  EXPECT_GT(driver_.end_of_allocated(), 100050U);
  EXPECT_EQ(driver_.on_set_eoa(10), 0);
  EXPECT_GT(driver_.end_of_allocated(), 100050U);
  EXPECT_LT(driver_.on_set_eoa(200000), 0);
}

TEST_F(Driver, PlanIsTakenOnceAndByItsLengthAndTypeOnly_Invariant3) {
  driver_.arm(7000, 64);
  EXPECT_NE(allocate(H5FD_MEM_OHDR, 64), 7000U);
  EXPECT_NE(allocate(H5FD_MEM_DRAW, 65), 7000U);
  EXPECT_EQ(allocate(H5FD_MEM_DRAW, 64), 7000U);
  EXPECT_NE(allocate(H5FD_MEM_DRAW, 64), 7000U);
  EXPECT_TRUE(driver_.disarm().allocated);
  EXPECT_NE(allocate(H5FD_MEM_DRAW, 64), 7000U);
}

TEST_F(Driver, PlannedWriteIsDroppedOrCopied_Invariant4) {
  const std::uint64_t planned = tail_.claim(64);
  ASSERT_DONE(storage_.write_at(planned, bytes_of(64, 9)));
  const std::size_t n_before = storage_.n_operations;
  driver_.arm(planned, 64);
  EXPECT_EQ(allocate(H5FD_MEM_DRAW, 64), planned);
  write(H5FD_MEM_DRAW, planned, bytes_of(64, 1));
  EXPECT_TRUE(driver_.disarm().written);
  EXPECT_EQ(storage_.n_operations, n_before);

  // HDF5 prefers its own place. The planned bytes are written only later and end up there.
  const std::uint64_t later = tail_.claim(32);
  const std::uint64_t elsewhere = allocate(H5FD_MEM_DRAW, 32);
  driver_.arm(later, 32);
  write(H5FD_MEM_DRAW, elsewhere, bytes_of(32, 1));
  const MetadataDriver::PlanOutcome outcome = driver_.disarm();
  EXPECT_TRUE(outcome.written);
  EXPECT_FALSE(outcome.allocated);
  ASSERT_DONE(storage_.write_at(later, bytes_of(32, 8)));
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(read(elsewhere, 32), bytes_of(32, 8));
}

TEST_F(Driver, OldBytesChangeAfterFreshOnes_Invariant6) {
  const std::uint64_t first = allocate(H5FD_MEM_OHDR, 40);
  write(H5FD_MEM_OHDR, first, bytes_of(40, 1));
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 2));
  ASSERT_DONE(driver_.publish());
  storage_.recording = true;
  const std::uint64_t second = allocate(H5FD_MEM_OHDR, 40);
  write(H5FD_MEM_OHDR, first, bytes_of(40, 3));
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 4));
  write(H5FD_MEM_OHDR, second, bytes_of(40, 5));
  ASSERT_DONE(driver_.publish());
  std::vector<std::uint64_t> order;
  for (const Operation& operation : storage_.operations) {
    if (operation.kind == Operation::Kind::write) order.push_back(operation.address);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{second, 0, first}));
}

TEST_F(Driver, RawBytesOfHdf5GoToFreshSpaceAtOnceAndToOldSpaceAtPublish) {
  constexpr std::size_t large = 20000;
  const std::uint64_t raw = allocate(H5FD_MEM_DRAW, large);
  write(H5FD_MEM_DRAW, raw, bytes_of(large, 1));
  EXPECT_EQ(storage_.n_operations, 1U);
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 2));
  ASSERT_DONE(driver_.publish());
  const std::size_t n_before = storage_.n_operations;
  write(H5FD_MEM_DRAW, raw, bytes_of(large, 3));
  EXPECT_EQ(storage_.n_operations, n_before);
  EXPECT_EQ(read(raw, large), bytes_of(large, 3));
  ASSERT_DONE(driver_.publish());
  EXPECT_GT(storage_.n_operations, n_before);
}

// Values and headers of many small datasets alternate in the file: one write covers all of them.
TEST_F(Driver, FewRawBytesWaitForThePublicationOfTheMetadataAroundThem) {
  std::vector<std::uint64_t> values;
  for (int dataset = 0; dataset < 100; ++dataset) {
    write(H5FD_MEM_OHDR, allocate(H5FD_MEM_OHDR, 64), bytes_of(64, 1));
    values.push_back(allocate(H5FD_MEM_DRAW, 400));
    write(H5FD_MEM_DRAW, values.back(), bytes_of(400, 2));
  }
  for (const std::uint64_t address : values) {
    driver_.write_raw(address + 100, bytes_of(200, 3));
  }
  EXPECT_EQ(storage_.n_operations, 0U);
  EXPECT_EQ(read(values[7] + 100, 200), bytes_of(200, 3));
  ASSERT_DONE(driver_.publish());
  const std::size_t n_writes =
      std::ranges::count(storage_.operations, Operation::Kind::write, &Operation::kind);
  EXPECT_LE(n_writes, 3U);
  for (const std::uint64_t address : values) {
    EXPECT_EQ(read(address, 100), bytes_of(100, 2));
    EXPECT_EQ(read(address + 100, 200), bytes_of(200, 3));
  }
}

// HDF5 may assign a planned dataset to a place where values of a deleted dataset still wait.
TEST_F(Driver, WhatWaitedWhereAPlannedDatasetIsMovedGoesNowhere) {
  const std::uint64_t freed = allocate(H5FD_MEM_DRAW, 64);
  write(H5FD_MEM_DRAW, freed, bytes_of(64, 1));
  const std::uint64_t planned = tail_.claim(64);
  ASSERT_DONE(storage_.write_at(planned, bytes_of(64, 2)));
  driver_.arm(planned, 64);
  driver_.disarm();
  driver_.move_planned(freed);
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(read(freed, 64), bytes_of(64, 2));
}

TEST_F(Driver, ValuesThatWaitAreNoMetadataAndAreThereAfterAFailure) {
  const std::uint64_t meta = allocate(H5FD_MEM_OHDR, 40);
  const std::uint64_t raw = allocate(H5FD_MEM_DRAW, 100);
  write(H5FD_MEM_OHDR, meta, bytes_of(40, 1));
  write(H5FD_MEM_DRAW, raw, bytes_of(100, 2));
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 3));
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(driver_.metadata_bytes(), 88U);
  const std::uint64_t more = allocate(H5FD_MEM_DRAW, 100);
  write(H5FD_MEM_DRAW, more, bytes_of(100, 4));
  storage_.fail_at = storage_.n_operations;
  EXPECT_FALSE(driver_.publish().ok());
  EXPECT_EQ(read(more, 100), bytes_of(100, 4));
  EXPECT_EQ(read(raw, 100), bytes_of(100, 2));
}

// Memory for waiting values is bounded: 16 MiB here. Overwriting them needs no more.
TEST_F(Driver, ManyRawBytesDoNotWait) {
  constexpr std::size_t n_bytes = 16384;
  std::uint64_t waiting = 0;
  for (int i = 0; i < 1024; ++i) {
    waiting = allocate(H5FD_MEM_DRAW, n_bytes);
    write(H5FD_MEM_DRAW, waiting, bytes_of(n_bytes, 1));
  }
  EXPECT_EQ(storage_.n_operations, 0U);
  const std::uint64_t one_more = allocate(H5FD_MEM_DRAW, n_bytes);
  write(H5FD_MEM_DRAW, one_more, bytes_of(n_bytes, 2));
  EXPECT_EQ(storage_.n_operations, 1U);
  driver_.write_raw(waiting + 100, bytes_of(200, 4));
  EXPECT_EQ(storage_.n_operations, 1U);
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(read(waiting + 100, 200), bytes_of(200, 4));
  EXPECT_EQ(read(waiting, 100), bytes_of(100, 1));
  const std::size_t n_before = storage_.n_operations;
  write(H5FD_MEM_DRAW, allocate(H5FD_MEM_DRAW, n_bytes), bytes_of(n_bytes, 3));
  EXPECT_EQ(storage_.n_operations, n_before);  // Memory is available again.
}

TEST_F(Driver, FailuresAreKeptFromHdf5AndNothingFollows_Invariants1And8) {
  storage_.fail_at = 0;
  const std::uint64_t raw = allocate(H5FD_MEM_DRAW, 20000);
  write(H5FD_MEM_DRAW, raw, bytes_of(20000, 1));  // Fails, but reports success to HDF5.
  EXPECT_EQ(driver_.failure().code(), Code::no_space);
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 2));
  EXPECT_EQ(driver_.publish().code(), Code::no_space);
  EXPECT_EQ(read(0, 48), bytes_of(48, 2));
  EXPECT_EQ(storage_.n_operations, 1U);
}

TEST_F(Driver, AbandonedDriverWritesNothing_Invariant1) {
  write(H5FD_MEM_SUPER, 0, bytes_of(48, 2));
  driver_.abandon();
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(storage_.n_operations, 0U);
}

TEST(DriverOnNodes, TheBytesBeforeTheEndAreNobodys_Invariant10) {
  const TestFolder folder;
  RecordingStorage storage(folder / "file", false);
  ScatteringTail tail;
  MetadataDriver::Settings settings;
  settings.on_nodes = true;
  MetadataDriver driver(storage, tail.allocate(), settings);
  EXPECT_EQ(driver.on_alloc(H5FD_MEM_SUPER, 48), 0U);
  driver.finish_create();
  EXPECT_TRUE(driver.only_created());
  EXPECT_EQ(driver.end_of_allocated(), tail.end());
  const std::uint64_t chunk = tail.claim(50);
  driver.arm(chunk, 50);
  EXPECT_EQ(driver.on_alloc(H5FD_MEM_DRAW, 50), chunk);
  driver.disarm();
  EXPECT_GT(driver.end_of_allocated(), tail.end());  // inside the block claimed next
  driver.own_the_end();
  EXPECT_EQ(driver.end_of_allocated(), tail.end());
  const std::uint64_t end = tail.end();
  driver.own_the_end();
  EXPECT_EQ(tail.end(), end);
  const std::uint64_t block = driver.on_alloc(H5FD_MEM_OHDR, 30);
  EXPECT_GE(block, end);
  EXPECT_EQ(driver.end_of_allocated(), tail.end());
}

TEST(DriverExtents, SmallBlocksShareAnExtent) {
  const TestFolder folder;
  RecordingStorage storage(folder / "file", false);
  ScatteringTail tail(0, 1000);
  std::size_t n_claims = 0;
  MetadataDriver::Settings settings;
  settings.extent_bytes = 4096;
  MetadataDriver driver(
      storage,
      [&](std::uint64_t n) {
        EXPECT_EQ(n % 4096, 0U);
        ++n_claims;
        return tail.claim(n);
      },
      settings);
  std::map<std::uint64_t, std::uint64_t> taken;
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t n = 1 + random() % 300;
    const std::uint64_t address = driver.on_alloc(H5FD_MEM_OHDR, n);
    driver.finish_create();
    taken[address] = n;
  }
  ASSERT_EQ(taken.size(), 200U);
  std::uint64_t end = 0;
  for (const auto& [address, n] : taken) {
    EXPECT_GE(address, end);
    end = address + n;
  }
  EXPECT_LT(n_claims, 12U);
}

TEST(DirtyBytes, AgreesWithAPlainMapOfBytes) {
  DirtyBytes dirty;
  std::map<std::uint64_t, std::byte> plain;
  std::mt19937 random(11);
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t address = random() % 500;
    const std::uint64_t n = random() % 40;
    if (random() % 4 == 0) {
      dirty.drop(address, n);
      plain.erase(plain.lower_bound(address), plain.lower_bound(address + n));
    } else {
      const auto bytes = bytes_of(n, random() % 256);
      const bool raw = random() % 2 == 0;
      dirty.put(address, bytes, raw ? DirtyBytes::Kind::raw : DirtyBytes::Kind::metadata);
      for (std::uint64_t k = 0; k < n; ++k) plain[address + k] = bytes[k];
    }
    std::vector<std::byte> got = bytes_of(100, 77);
    std::vector<std::byte> expected = got;
    const std::uint64_t from = random() % 500;
    dirty.overlay(from, got);
    for (auto at = plain.lower_bound(from); at != plain.end() && at->first < from + 100; ++at) {
      expected[at->first - from] = at->second;
    }
    ASSERT_EQ(got, expected);
    ASSERT_EQ(dirty.end(), plain.empty() ? 0 : plain.rbegin()->first + 1);
  }
  std::uint64_t end = 0;
  for (const auto& [address, segment] : dirty.segments()) {
    EXPECT_GE(address, end);
    EXPECT_FALSE(segment.bytes.empty());
    end = address + segment.bytes.size();
  }
}

TEST(SpanSet, JoinsNeighboursAndAnswersForWholeSpans) {
  SpanSet spans;
  spans.insert(10, 10);
  spans.insert(30, 10);
  EXPECT_TRUE(spans.contains(10, 10));
  EXPECT_FALSE(spans.contains(15, 20));
  spans.insert(20, 10);
  EXPECT_TRUE(spans.contains(10, 30));
  EXPECT_FALSE(spans.contains(9, 2));
  EXPECT_FALSE(spans.contains(39, 2));
  EXPECT_TRUE(spans.contains(99, 0));
  EXPECT_TRUE(spans.overlaps(39, 2));
  EXPECT_TRUE(spans.overlaps(5, 6));
  EXPECT_TRUE(spans.overlaps(0, 100));
  EXPECT_FALSE(spans.overlaps(40, 5));
  EXPECT_FALSE(spans.overlaps(5, 5));
  EXPECT_FALSE(spans.overlaps(15, 0));
  spans.insert(5, 100);
  EXPECT_TRUE(spans.contains(5, 100));
}

}  // namespace
}  // namespace tailrace::test
