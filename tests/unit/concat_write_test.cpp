// The thread that writes a concatenation's chunks. Every place is written once, at the reported
// address; dense addresses have no gaps. Shared chunks, waiting, and failures are tested as well.

#include "concat/concat_write.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "container_support.hpp"
#include "exec/comm_factory.hpp"
#include "in_situ_support.hpp"

namespace tailrace::test {
namespace {

/// A file in memory that records its writes, waits at a gate, and fails on demand. Thread-safe.
class MemoryStorage final : public Storage {
 public:
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    std::unique_lock lock(mutex_);
    gate_.wait(lock, [this] { return open_; });
    ++n_writes;
    if (n_writes > writes_until_failure) return Status(Code::no_space, "refused by the test");
    largest_write = std::max<std::uint64_t>(largest_write, bytes.size());
    if (content_.size() < address + bytes.size()) content_.resize(address + bytes.size(), '.');
    std::memcpy(content_.data() + address, bytes.data(), bytes.size());
    return Status();
  }
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    Bytes bytes;
    for (const auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
    return write_at(address, bytes);
  }
  Status read_at(std::uint64_t, std::span<std::byte>) override {
    return Status(Code::internal, "nobody reads");
  }
  Result<std::uint64_t> file_bytes() override { return content_.size(); }
  Status extend(std::uint64_t) override { return Status(); }
  Status sync() override { return Status(); }
  const std::string& path() const override { return path_; }

  std::string at(const WrittenPlace& place) const {
    return content_.substr(place.address, place.encoded_bytes);
  }
  const std::string& content() const { return content_; }
  void set_gate(bool open) {
    const std::scoped_lock lock(mutex_);
    open_ = open;
    gate_.notify_all();
  }

  int n_writes = 0;
  int writes_until_failure = 1 << 30;
  std::uint64_t largest_write = 0;

 private:
  std::mutex mutex_;
  std::condition_variable gate_;
  bool open_ = true;
  std::string content_;
  std::string path_ = "memory";
};

ConcatWriteLane::Chunk chunk_of(std::uint64_t place, const std::string& text) {
  Buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return {place, 0, std::nullopt, std::move(bytes)};
}

/// A text of 1 to 40 bytes that is unique to the place.
std::string text_of_place(std::uint64_t place) {
  return "<" + std::to_string(place) + std::string(place * 7 % 37, '-') + ">";
}

std::unique_ptr<Tail> tail_at(Comm& comm, std::uint64_t address) {
  Result<std::unique_ptr<Tail>> tail = comm.create_tail(address);
  EXPECT_TRUE(tail.ok()) << text_of(tail.status());
  return std::move(*tail);
}

/// One rank's lane, for tests that need no other ranks.
struct Lane {
  explicit Lane(const ConcatWriteLane::Settings& settings)
      : comm(make_self_comm()), tail(tail_at(*comm, 100)), lane(storage, *tail, settings) {}
  MemoryStorage storage;
  std::unique_ptr<Comm> comm;
  std::unique_ptr<Tail> tail;
  ConcatWriteLane lane;
};

ConcatWriteLane::Settings settings_of(std::uint64_t write_buffer_bytes, bool dense = false,
                                      bool dedup = false) {
  ConcatWriteLane::Settings settings;
  settings.write_buffer_bytes = write_buffer_bytes;
  settings.dense = dense;
  settings.dedup = dedup;
  return settings;
}

/// Expects each of `n` places to be written once, with the bytes that were pushed for it.
void expect_places(const MemoryStorage& storage, const std::vector<WrittenPlace>& written,
                   std::uint64_t n) {
  ASSERT_EQ(written.size(), n);
  std::map<std::uint64_t, std::uint64_t> ends;
  std::vector<bool> seen(n);
  for (const WrittenPlace& place : written) {
    ASSERT_LT(place.place, n);
    EXPECT_FALSE(seen[place.place]) << place.place;
    seen[place.place] = true;
    EXPECT_EQ(storage.at(place), text_of_place(place.place));
    EXPECT_TRUE(ends.emplace(place.address, place.address + place.encoded_bytes).second);
  }
  std::uint64_t end = 0;
  for (const auto& [begin, its_end] : ends) {
    EXPECT_GE(begin, end) << "chunks overlap";
    end = its_end;
  }
}

TEST(ConcatWriteLane, WritesWhatManyThreadsPush) {
  Lane lane(settings_of(64));
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        lane.lane.push(chunk_of(4 * i + t, text_of_place(4 * i + t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_DONE(lane.lane.finish_round(*lane.comm));
  expect_places(lane.storage, lane.lane.take_written(), 200);
  EXPECT_LE(lane.storage.largest_write, 64U);
  EXPECT_TRUE(lane.lane.take_written().empty());
}

TEST(ConcatWriteLane, ChunksThatWaitLeaveTogether) {
  Lane lane(settings_of(1000));
  lane.storage.set_gate(false);
  std::uint64_t n_bytes = 0;
  for (std::uint64_t p = 0; p < 30; ++p) {
    n_bytes += text_of_place(p).size();
    lane.lane.push(chunk_of(p, text_of_place(p)));
  }
  lane.storage.set_gate(true);
  ASSERT_DONE(lane.lane.finish_round(*lane.comm));
  EXPECT_LE(lane.storage.n_writes, 3);
  expect_places(lane.storage, lane.lane.take_written(), 30);
  EXPECT_EQ(lane.lane.peak_bytes(), n_bytes);
}

/// push() blocks while two buffers are full, so that memory use stays small.
TEST(ConcatWriteLane, PushWaitsWhileTwoBuffersAreFull) {
  Lane lane(settings_of(100));
  lane.storage.set_gate(false);
  std::atomic<int> n_pushed = 0;
  std::thread pusher([&] {
    for (std::uint64_t p = 0; p < 20; ++p) {
      lane.lane.push(chunk_of(p, std::string(50, static_cast<char>('a' + p))));
      ++n_pushed;
    }
  });
  // 200 bytes may wait, and one more chunk. The sixth push cannot return before the gate opens.
  EXPECT_TRUE(happens([&] { return n_pushed == 5; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(n_pushed.load(), 5);
  lane.storage.set_gate(true);
  pusher.join();
  ASSERT_DONE(lane.lane.finish_round(*lane.comm));
  EXPECT_LE(lane.lane.peak_bytes(), 250U);
  const std::vector<WrittenPlace> written = lane.lane.take_written();
  ASSERT_EQ(written.size(), 20U);
  for (const WrittenPlace& place : written) {
    EXPECT_EQ(lane.storage.at(place), std::string(50, static_cast<char>('a' + place.place)));
  }
}

/// A writer's chunks keep their order in the file, also with layout claimed.
TEST(ConcatWriteLane, KeepsTheOrderOfPushing) {
  Lane lane(settings_of(64));
  for (std::uint64_t p = 0; p < 40; ++p) lane.lane.push(chunk_of(p, text_of_place(p)));
  ASSERT_DONE(lane.lane.finish_round(*lane.comm));
  std::uint64_t address = 100;
  for (const WrittenPlace& place : lane.lane.take_written()) {
    EXPECT_EQ(place.address, address);
    address += place.encoded_bytes;
  }
  EXPECT_EQ(address, lane.tail->end());
}

TEST(ConcatWriteLane, AChunkLargerThanTheBuffer) {
  for (const bool dense : {false, true}) {
    Lane lane(settings_of(10, dense));
    lane.lane.push(chunk_of(0, std::string(1000, 'x')));
    lane.lane.push(chunk_of(1, "y"));
    ASSERT_DONE(lane.lane.finish_round(*lane.comm));
    const std::vector<WrittenPlace> written = lane.lane.take_written();
    ASSERT_EQ(written.size(), 2U);
    EXPECT_EQ(lane.storage.at(written[0]), std::string(1000, 'x'));
    EXPECT_EQ(lane.storage.at(written[1]), "y");
  }
}

/// Contiguous data go to their given address and need no index entry, in every layout.
TEST(ConcatWriteLane, AGivenAddressIsKept) {
  for (const bool dense : {false, true}) {
    Lane lane(settings_of(64, dense, true));
    for (const std::uint64_t address : {40, 30, 20}) {
      ConcatWriteLane::Chunk chunk = chunk_of(address, "same bytes");
      chunk.address = address;
      lane.lane.push(std::move(chunk));
    }
    lane.lane.push(chunk_of(7, "same bytes"));
    ASSERT_DONE(lane.lane.finish_round(*lane.comm));
    EXPECT_EQ(lane.storage.content().substr(20, 30), "same bytessame bytessame bytes");
    const std::vector<WrittenPlace> written = lane.lane.take_written();
    ASSERT_EQ(written.size(), 1U);
    EXPECT_EQ(written[0].place, 7U);
    EXPECT_GE(written[0].address, 100U);
    EXPECT_EQ(lane.lane.n_shared(), 0U);
  }
}

/// Ranks own runs of places; the file has all of them in order, round after round.
TEST(ConcatWriteLane, DenseRoundsHaveNoGaps) {
  for (const int n_ranks : {1, 2, 3, 7}) {
    MemoryStorage storage;
    std::vector<std::vector<WrittenPlace>> written(static_cast<std::size_t>(n_ranks));
    run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
      const auto rank = static_cast<std::uint64_t>(comm->rank());
      const auto n = static_cast<std::uint64_t>(n_ranks);
      const std::unique_ptr<Tail> tail = tail_at(*comm, 100);
      ConcatWriteLane lane(storage, *tail, settings_of(30, true));
      for (std::uint64_t round = 0; round < 3; ++round) {
        // In the second round only the last rank has chunks.
        for (std::uint64_t i = 10; round != 1 && i-- > 0;) {
          const std::uint64_t place = (round * n + rank) * 10 + i;
          lane.push(chunk_of(place, text_of_place(place)));
        }
        if (round == 1 && rank + 1 == n) lane.push(chunk_of(n * 20 - 1, "the only one"));
        ASSERT_DONE(lane.finish_round(*comm));
      }
      written[rank] = lane.take_written();
      comm->barrier();
    });
    std::map<std::uint64_t, WrittenPlace> by_place;
    for (const auto& of_rank : written) {
      for (const WrittenPlace& place : of_rank) by_place.emplace(place.place, place);
    }
    EXPECT_EQ(by_place.size(), static_cast<std::size_t>(20 * n_ranks + 1));
    std::uint64_t address = 100;
    for (const auto& [number, place] : by_place) {
      EXPECT_EQ(place.address, address) << n_ranks << " ranks, place " << number;
      const bool only = number == static_cast<std::uint64_t>(20 * n_ranks - 1);
      EXPECT_EQ(storage.at(place), only ? "the only one" : text_of_place(number));
      address += place.encoded_bytes;
    }
  }
}

/// Equal chunks share their bytes across batches and rounds, for any filter masks. Large chunks,
/// and those marked as not shared, do not.
TEST(ConcatWriteLane, EqualSmallChunksAreStoredOnce) {
  for (const bool dense : {false, true}) {
    Lane lane(settings_of(5000, dense, true));
    std::vector<WrittenPlace> written;
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (std::uint64_t i = 0; i < 10; ++i) {
        const std::uint64_t place = 10 * round + i;
        ConcatWriteLane::Chunk chunk = chunk_of(place, i % 2 == 0 ? "even" : "odd one");
        chunk.filter_mask = static_cast<std::uint32_t>(i % 3);
        lane.lane.push(std::move(chunk));
      }
      lane.lane.push(chunk_of(30 + round, std::string(4097, 'l')));
      ConcatWriteLane::Chunk alone = chunk_of(33 + round, "even");
      alone.alone = true;
      lane.lane.push(std::move(alone));
      ASSERT_DONE(lane.lane.finish_round(*lane.comm));
      for (const WrittenPlace& place : lane.lane.take_written()) written.push_back(place);
    }
    ASSERT_EQ(written.size(), 36U);
    EXPECT_EQ(lane.lane.n_shared(), 28U);
    EXPECT_EQ(lane.tail->end(), 100U + 4 + 7 + 3 * 4097 + 3 * 4);
    for (const WrittenPlace& place : written) {
      if (place.place >= 30) {
        EXPECT_EQ(lane.storage.at(place), place.place < 33 ? std::string(4097, 'l') : "even");
        continue;
      }
      EXPECT_EQ(lane.storage.at(place), place.place % 2 == 0 ? "even" : "odd one");
      EXPECT_EQ(place.filter_mask, place.place % 10 % 3);
    }
  }
}

/// After a failure nothing more is written, no thread waits, and every round reports it again.
TEST(ConcatWriteLane, TheFirstFailureEndsWriting) {
  for (const bool dense : {false, true}) {
    for (int k = 0; k < 6; ++k) {
      Lane lane(settings_of(20, dense));
      lane.storage.writes_until_failure = k;
      for (std::uint64_t round = 0; round < 2; ++round) {
        for (std::uint64_t i = 0; i < 100; ++i) {
          lane.lane.push(chunk_of(100 * round + i, text_of_place(i)));
        }
        const Status finished = lane.lane.finish_round(*lane.comm);
        EXPECT_EQ(finished.code(), Code::no_space) << text_of(finished);
      }
      EXPECT_EQ(lane.storage.n_writes, k + 1);
      for (const WrittenPlace& place : lane.lane.take_written()) {
        EXPECT_EQ(lane.storage.at(place), text_of_place(place.place));
      }
    }
  }
}

/// Only the failing rank reports its failure: the others' rounds succeed, and no rank hangs.
TEST(ConcatWriteLane, AFailureWithLayoutDenseKeepsNobodyWaiting) {
  std::vector<MemoryStorage> storages(3);
  storages[1].writes_until_failure = 0;
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::size_t>(comm->rank());
    const std::unique_ptr<Tail> tail = tail_at(*comm, 0);
    ConcatWriteLane lane(storages[rank], *tail, settings_of(64, true));
    for (int round = 0; round < 2; ++round) {
      lane.push(chunk_of(rank, "chunk"));
      EXPECT_EQ(lane.finish_round(*comm).ok(), rank != 1);
    }
    comm->barrier();
  });
}

/// A lane that is destroyed writes the chunks that it has received, and ends.
TEST(ConcatWriteLane, EndsWithoutARound) {
  Lane lane(settings_of(64));
  for (std::uint64_t i = 0; i < 10; ++i) lane.lane.push(chunk_of(i, text_of_place(i)));
}

}  // namespace
}  // namespace tailrace::test
