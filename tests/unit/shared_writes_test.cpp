// Writes passed from rank to rank, with threads as ranks. The numbers refer to the invariants at
// the head of shared_writes.cpp.

#include "exec/shared_writes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "exec/comm_factory.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

using Outcome = SharedWrites::Outcome;

std::vector<std::byte> bytes_of(std::size_t n, unsigned value) {
  return std::vector<std::byte>(n, std::byte(value));
}

std::unique_ptr<SharedWrites> create(Comm& comm, std::uint64_t encoded_bytes) {
  auto made = SharedWrites::create(comm, encoded_bytes);
  EXPECT_TRUE(made.ok()) << made.status().message();
  comm.barrier();
  return std::move(*made);
}

WrittenChunk chunk_at(std::uint64_t address, std::uint64_t n_bytes, std::uint64_t index = 0) {
  WrittenChunk chunk;
  chunk.chunk_index = index;
  chunk.address = address;
  chunk.encoded_bytes = n_bytes;
  return chunk;
}

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// One process acts as both ranks of a node, so that each step of the protocol can be checked.
class TwoRanks : public ::testing::Test {
 protected:
  static constexpr std::uint64_t room_bytes = 4096;

  void SetUp() override {
    run_ranks(2, [this](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      rank_[rank] = create(*comm, room_bytes);
      rank_[rank]->start_step(1);
    });
  }
  bool give(std::uint64_t n_bytes, unsigned value = 7, std::uint64_t index = 0) {
    WrittenChunk chunk = chunk_at(1000 * index, n_bytes, index);
    return donor().try_give(1, chunk, bytes_of(n_bytes, value), {});
  }
  SharedWrites& donor() { return *rank_[0]; }
  SharedWrites& recipient() { return *rank_[1]; }

  std::unique_ptr<SharedWrites> rank_[2];
};

TEST_F(TwoRanks, AGiftIsWrittenOnceItIsCollected_Invariant4) {
  WrittenChunk chunk = chunk_at(0, 100, 5);
  const std::vector<std::byte> bytes = bytes_of(100, 42);
  EXPECT_FALSE(recipient().waiting());
  ASSERT_TRUE(donor().try_give(1, chunk, bytes, [] { return std::uint64_t{777}; }));
  EXPECT_EQ(chunk.address, 777U);
  EXPECT_TRUE(recipient().waiting());
  const auto task = recipient().take();
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->address, 777U);
  EXPECT_EQ(std::vector<std::byte>(task->bytes.begin(), task->bytes.end()), bytes);
  EXPECT_FALSE(recipient().waiting());
  EXPECT_FALSE(recipient().take().has_value());
  EXPECT_FALSE(donor().take_back().has_value());  // The chunk is being written.
  EXPECT_TRUE(donor().collect().empty());
  EXPECT_EQ(donor().n_uncollected(), 1U);
  recipient().complete(*task, Outcome::written);
  EXPECT_EQ(donor().n_uncollected(), 1U);
  const auto receipts = donor().collect();
  ASSERT_EQ(receipts.size(), 1U);
  EXPECT_EQ(receipts[0].outcome, Outcome::written);
  EXPECT_EQ(receipts[0].chunk.address, 777U);
  EXPECT_EQ(receipts[0].chunk.chunk_index, 5U);
  EXPECT_EQ(receipts[0].writer, 1);
  EXPECT_EQ(donor().n_uncollected(), 0U);
}

TEST_F(TwoRanks, TheOldestGoesFirstAndLargeOnesCanBeLeft) {
  for (std::uint64_t index = 0; index < 4; ++index) {
    ASSERT_TRUE(give(index == 0 ? 1000 : 10, unsigned(index), index));
  }
  const auto small = recipient().take(999);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->bytes[0], std::byte{1});
  const auto back = donor().take_back();
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->bytes[0], std::byte{0});
  const auto next = recipient().take();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->bytes[0], std::byte{2});
}

TEST_F(TwoRanks, AFullMailboxRefusesAndClaimsNothing) {
  const std::vector<std::byte> bytes = bytes_of(8, 1);
  for (std::size_t i = 0; i < SharedWrites::n_slots; ++i) ASSERT_TRUE(give(8));
  WrittenChunk chunk = chunk_at(3, 8);
  EXPECT_FALSE(donor().try_give(1, chunk, bytes, []() -> std::uint64_t {
    ADD_FAILURE() << "claimed an address for a gift that is refused";
    return 0;
  }));
  EXPECT_EQ(chunk.address, 3U);
  const auto task = recipient().take();
  recipient().complete(*task, Outcome::written);
  EXPECT_FALSE(give(8));  // The write is settled, but its slot is free only after collect().
  EXPECT_EQ(donor().collect().size(), 1U);
  EXPECT_TRUE(give(8));
}

TEST_F(TwoRanks, RoomIsUsedToTheLastByteAndAgain_Invariant3) {
  EXPECT_FALSE(give(room_bytes + 1));
  EXPECT_TRUE(give(room_bytes));
  EXPECT_FALSE(give(1));
  recipient().complete(*recipient().take(), Outcome::written);
  EXPECT_FALSE(give(1));
  EXPECT_EQ(donor().collect().size(), 1U);
  // Four quarters; the middle two return in the wrong order and free space for a half.
  std::vector<SharedWrites::Task> tasks;
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_TRUE(give(room_bytes / 4, i, i));
    tasks.push_back(*recipient().take());
  }
  EXPECT_FALSE(give(1));
  recipient().complete(tasks[2], Outcome::written);
  EXPECT_EQ(donor().collect().size(), 1U);
  recipient().complete(tasks[1], Outcome::written);
  EXPECT_EQ(donor().collect().size(), 1U);
  EXPECT_TRUE(give(room_bytes / 2, 9, 9));
  EXPECT_EQ(tasks[0].bytes[0], std::byte{0});
  EXPECT_EQ(tasks[3].bytes[room_bytes / 4 - 1], std::byte{3});
}

TEST_F(TwoRanks, AFailedWriteComesBackWithItsTextAndRank) {
  ASSERT_TRUE(give(8));
  recipient().complete(*recipient().take(), Outcome::failed,
                       Status(Code::no_space, "disk is full"));
  const auto receipts = donor().collect();
  ASSERT_EQ(receipts.size(), 1U);
  EXPECT_EQ(receipts[0].outcome, Outcome::failed);
  EXPECT_EQ(receipts[0].status.code(), Code::no_space);
  EXPECT_EQ(receipts[0].status.message(), "chunk given to rank 1: disk is full");
  ASSERT_TRUE(give(8));
  recipient().complete(*recipient().take(), Outcome::failed,
                       Status(Code::io_error, std::string(5000, 'x')));
  const std::string cut = donor().collect()[0].status.message();
  EXPECT_LT(cut.size(), 300U);
  EXPECT_EQ(cut.substr(cut.size() - 100), std::string(100, 'x'));
}

TEST_F(TwoRanks, WhatNobodyHasBegunCanBeTakenBack_Invariant2) {
  ASSERT_TRUE(give(8));
  const auto task = donor().take_back();
  ASSERT_TRUE(task.has_value());
  EXPECT_FALSE(recipient().waiting());
  EXPECT_FALSE(recipient().take().has_value());
  donor().complete(*task, Outcome::failed, Status(Code::io_error, "broken"));
  const auto receipts = donor().collect();
  ASSERT_EQ(receipts.size(), 1U);
  EXPECT_EQ(receipts[0].writer, 0);
  EXPECT_EQ(receipts[0].status.message(), "broken");
}

TEST_F(TwoRanks, OneLeavesWhenAllHaveClosedAndNothingIsOwed_Invariant5) {
  ASSERT_TRUE(give(8));
  EXPECT_FALSE(donor().may_leave());
  recipient().close();
  EXPECT_FALSE(recipient().may_leave());  // The donor may give more.
  ASSERT_TRUE(give(8));
  donor().close();
  EXPECT_FALSE(recipient().may_leave());  // Two gifts wait.
  for (int i = 0; i < 2; ++i) recipient().complete(*recipient().take(), Outcome::written);
  EXPECT_TRUE(recipient().may_leave());
  EXPECT_FALSE(donor().may_leave());  // The donor has not received the receipt.
  EXPECT_EQ(donor().collect().size(), 2U);
  EXPECT_TRUE(donor().may_leave());
  donor().start_step(2);
  recipient().start_step(2);
  EXPECT_FALSE(donor().may_leave());
  ASSERT_TRUE(give(8));
}

TEST_F(TwoRanks, NobodyWaitsForARankThatIsGone_Invariant6) {
  ASSERT_TRUE(give(8));
  recipient().abandon();
  EXPECT_FALSE(give(8));
  int n_written = 0;
  const auto receipts = donor().finish(
      [&](std::uint64_t, std::span<const std::byte>) {
        ++n_written;
        return Status();
      },
      [] { return false; });
  ASSERT_EQ(receipts.size(), 1U);
  EXPECT_EQ(receipts[0].writer, 0);
  EXPECT_EQ(n_written, 1);
}

TEST_F(TwoRanks, GivingOutsideAStepIsAProgrammersError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  donor().close();
  EXPECT_DEATH((void)give(8), "closed_step");
  ASSERT_TRUE(donor().collect().empty());
  EXPECT_DEATH(donor().start_step(1), "step > step_");
}

/// Writes that one rank makes for the node: in parts that fit, in order, across borders of pieces.
TEST_F(TwoRanks, AWriteIsPassedOnInPartsThatFit) {
  const std::vector<std::byte> first = bytes_of(3000, 1);
  const std::vector<std::byte> second = bytes_of(7000, 2);
  const std::vector<std::span<const std::byte>> pieces = {first, second};
  std::vector<std::byte> file(10'000);
  std::atomic<bool> done = false;
  std::vector<std::size_t> parts;
  std::thread writer([&] {
    while (!done) {
      if (const auto task = recipient().take()) {
        std::copy(task->bytes.begin(), task->bytes.end(),
                  file.begin() + static_cast<std::ptrdiff_t>(task->address - 500));
        parts.push_back(task->bytes.size());
        recipient().complete(*task, Outcome::written);
      }
      nap();
    }
  });
  const auto not_here = [](std::uint64_t, std::span<const std::byte>) {
    return Status(Code::io_error, "by the donor");
  };
  const auto receipt = donor().write_by(1, 500, pieces, not_here, [] { return false; });
  done = true;
  writer.join();
  EXPECT_EQ(receipt.outcome, Outcome::written) << receipt.status.message();
  EXPECT_EQ(receipt.writer, 1);
  EXPECT_EQ(parts, (std::vector<std::size_t>{4096, 4096, 1808}));
  EXPECT_EQ(std::count(file.begin(), file.end(), std::byte{1}), 3000);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), file.begin() + 3000));
  EXPECT_EQ(donor().n_uncollected(), 0U);
}

/// No rank waits for a writer that has left, nor after the step has failed. Invariant 6.
TEST_F(TwoRanks, AWritePassedOnEndsWithoutItsWriter) {
  const std::vector<std::byte> bytes = bytes_of(5000, 3);
  const std::span<const std::byte> piece = bytes;
  std::uint64_t n_bytes = 0;
  const auto here = [&](std::uint64_t address, std::span<const std::byte> part) {
    EXPECT_EQ(address, 70 + n_bytes);
    n_bytes += part.size();
    return Status();
  };
  const auto dropped = donor().write_by(1, 70, {&piece, 1}, here, [] { return true; });
  EXPECT_EQ(dropped.outcome, Outcome::dropped);
  EXPECT_EQ(n_bytes, 0U);
  recipient().abandon();
  const auto written = donor().write_by(1, 70, {&piece, 1}, here, [] { return false; });
  EXPECT_EQ(written.outcome, Outcome::written);
  EXPECT_EQ(written.writer, 0);
  EXPECT_EQ(n_bytes, 5000U);
}

TEST(SharedWrites, AloneNothingIsGivenAndTheStepEndsAtOnce) {
  const auto comm = make_self_comm();
  const auto shared = create(*comm, 1000);
  shared->start_step(1);
  WrittenChunk chunk = chunk_at(0, 10);
  EXPECT_FALSE(shared->try_give(0, chunk, bytes_of(10, 1), {}));
  EXPECT_FALSE(shared->take().has_value());
  EXPECT_TRUE(shared->finish({}, {}).empty());
}

/// A rank that has finished continues to write for one that has not: the gift arrives during
/// finish().
TEST(SharedWrites, WhoFinishesStillWritesForOthers_Invariant5) {
  run_ranks(2, [](std::unique_ptr<Comm> comm) {
    const auto shared = create(*comm, 1000);
    shared->start_step(1);
    const auto never = [] { return false; };
    if (comm->rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // rank 1 waits meanwhile
      WrittenChunk chunk = chunk_at(50, 10);
      ASSERT_TRUE(shared->try_give(1, chunk, bytes_of(10, 1), {}));
      std::vector<SharedWrites::Receipt> receipts;
      while (receipts.empty()) {
        nap();
        receipts = shared->collect();
      }
      EXPECT_EQ(receipts[0].writer, 1);
      EXPECT_TRUE(shared->finish({}, never).empty());
    } else {
      std::uint64_t n_written = 0;
      const auto write = [&](std::uint64_t address, std::span<const std::byte> bytes) {
        EXPECT_EQ(address, 50U);
        n_written += bytes.size();
        return Status();
      };
      int n_attended = 0;
      EXPECT_TRUE(shared->finish(write, never, [&] { ++n_attended; }).empty());
      EXPECT_EQ(n_written, 10U);
      EXPECT_GT(n_attended, 0);
    }
    comm->barrier();
  });
}

TEST(SharedWrites, AfterAFailureGiftsAreDropped) {
  run_ranks(2, [](std::unique_ptr<Comm> comm) {
    const auto shared = create(*comm, 1000);
    const auto tail = comm->create_tail(0);
    shared->start_step(1);
    const auto failed = [&] { return (*tail)->failure_raised(); };
    const auto write = [](std::uint64_t, std::span<const std::byte>) {
      ADD_FAILURE() << "written after the failure";
      return Status();
    };
    (*tail)->raise_failure();
    WrittenChunk chunk = chunk_at(50, 10);
    ASSERT_TRUE(shared->try_give(1 - comm->rank(), chunk, bytes_of(10, 1), {}));
    const auto receipts = shared->finish(write, failed);
    ASSERT_EQ(receipts.size(), 1U);
    EXPECT_EQ(receipts[0].outcome, Outcome::dropped);
    EXPECT_TRUE(receipts[0].status.ok());
    comm->barrier();
  });
}

/// Shared state of all ranks of a run: a file in memory, and the writer of each byte.
struct File {
  explicit File(std::size_t n_bytes) : bytes(n_bytes), n_writes(n_bytes) {}
  std::vector<std::atomic<std::uint8_t>> bytes;
  std::vector<std::atomic<std::uint8_t>> n_writes;

  Status write(std::uint64_t address, std::span<const std::byte> data) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      bytes[address + i] = std::to_integer<std::uint8_t>(data[i]);
      ++n_writes[address + i];
    }
    return Status();
  }
};

std::uint8_t value_of(int rank, std::uint64_t chunk_index, std::size_t i) {
  return std::uint8_t(rank * 89 + int(chunk_index) * 31 + int(i));
}

class ManyRanks : public ::testing::TestWithParam<int> {};

/// All ranks give to all ranks whatever fits. An encode thread gives, and an I/O thread writes.
/// Every chunk is in the file once, and its donor knows its address.
TEST_P(ManyRanks, EveryChunkIsWrittenOnceAndListedByItsDonor) {
  constexpr std::uint64_t n_chunks = 150;
  constexpr std::uint64_t n_steps = 3;
  const int n_ranks = GetParam();
  File file(std::size_t(n_ranks) * n_chunks * n_steps * 400);
  std::atomic<std::uint64_t> n_given{0};
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const auto shared = create(*comm, 5000);
    const auto tail = comm->create_tail(0);
    const auto write = [&](std::uint64_t address, std::span<const std::byte> bytes) {
      return file.write(address, bytes);
    };
    const auto never = [] { return false; };
    for (std::uint64_t step = 1; step <= n_steps; ++step) {
      shared->start_step(step);
      std::vector<WrittenChunk> own;
      std::atomic<bool> all_encoded{false};
      std::thread encode([&] {
        std::mt19937 random(unsigned(rank * 100) + unsigned(step));
        for (std::uint64_t index = 0; index < n_chunks; ++index) {
          std::vector<std::byte> bytes(1 + random() % 400);
          for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = std::byte(value_of(rank, index, i));
          WrittenChunk chunk = chunk_at(0, bytes.size(), index);
          const auto claim = [&] { return (*tail)->claim(bytes.size()); };
          if (shared->try_give(int(random() % unsigned(n_ranks)), chunk, bytes, claim)) {
            ++n_given;
          } else {
            chunk.address = claim();
            (void)file.write(chunk.address, bytes);
            own.push_back(chunk);
          }
        }
        all_encoded = true;
      });
      std::vector<WrittenChunk> listed;
      const auto list = [&](const std::vector<SharedWrites::Receipt>& receipts) {
        for (const auto& receipt : receipts) {
          EXPECT_EQ(receipt.outcome, Outcome::written);
          listed.push_back(receipt.chunk);
        }
      };
      while (!all_encoded) {
        if (const auto task = shared->take()) {
          EXPECT_TRUE(write(task->address, task->bytes).ok());
          shared->complete(*task, Outcome::written);
        } else {
          list(shared->collect());
          nap();
        }
      }
      encode.join();
      list(shared->finish(write, never));
      listed.insert(listed.end(), own.begin(), own.end());
      comm->barrier();
      ASSERT_EQ(listed.size(), n_chunks);
      std::set<std::uint64_t> indices;
      for (const WrittenChunk& chunk : listed) {
        indices.insert(chunk.chunk_index);
        for (std::size_t i = 0; i < chunk.encoded_bytes; ++i) {
          ASSERT_EQ(file.bytes[chunk.address + i], value_of(rank, chunk.chunk_index, i));
          ASSERT_EQ(file.n_writes[chunk.address + i], 1);
        }
      }
      EXPECT_EQ(indices.size(), n_chunks);
      comm->barrier();
    }
  });
  if (n_ranks > 1) {
    EXPECT_GT(n_given, n_steps * n_chunks / 10);
  } else {
    EXPECT_EQ(n_given, 0U);
  }
}

/// One recipient cannot write: each donor receives the failure of its own chunks, and all ranks
/// leave the step.
TEST_P(ManyRanks, AFailingRecipientStillAcknowledges) {
  const int n_ranks = GetParam();
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const auto shared = create(*comm, 10000);
    shared->start_step(1);
    std::uint64_t n_given = 0;
    for (std::uint64_t index = 0; index < 20; ++index) {
      WrittenChunk chunk = chunk_at(100 * index, 100, index);
      if (shared->try_give(0, chunk, bytes_of(100, 1), {})) ++n_given;
    }
    EXPECT_EQ(n_given, rank == 0 ? 0U : 20U);
    const auto write = [rank](std::uint64_t, std::span<const std::byte>) {
      return rank == 0 ? Status(Code::no_space, "full") : Status();
    };
    const auto receipts = shared->finish(write, [] { return false; });
    EXPECT_EQ(receipts.size(), n_given);
    for (const auto& receipt : receipts) {
      EXPECT_EQ(receipt.outcome, receipt.writer == 0 ? Outcome::failed : Outcome::written);
      EXPECT_EQ(receipt.status.code(), receipt.writer == 0 ? Code::no_space : Code::ok);
    }
    comm->barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ManyRanks, ::testing::Values(1, 2, 3, 4, 7));

/// Donor and recipient compete for the same gifts as fast as they can.
TEST(SharedWrites, DonorAndRecipientNeverTakeTheSameGift_Invariant2) {
  constexpr std::uint64_t n_chunks = 4000;
  std::vector<std::atomic<int>> n_takes(n_chunks);
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    const auto shared = create(*comm, 4096);
    shared->start_step(1);
    const auto write = [&](std::uint64_t address, std::span<const std::byte> bytes) {
      EXPECT_EQ(bytes[0], std::byte(address));
      ++n_takes[address];
      return Status();
    };
    std::uint64_t next = 0;
    std::uint64_t n_collected = 0;
    while (comm->rank() == 0 && n_collected < n_chunks) {
      WrittenChunk chunk = chunk_at(next, 1, next);
      const std::vector<std::byte> bytes = bytes_of(1, unsigned(next));
      const bool given = next < n_chunks && shared->try_give(1 + int(next % 2), chunk, bytes, {});
      if (given) ++next;
      if (!given || next % 3 == 0) {
        if (const auto task = shared->take_back()) {
          (void)write(task->address, task->bytes);
          shared->complete(*task, Outcome::written);
        }
      }
      n_collected += shared->collect().size();
    }
    (void)shared->finish(write, [] { return false; });
    comm->barrier();
  });
  for (const std::atomic<int>& n : n_takes) EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace tailrace::test
