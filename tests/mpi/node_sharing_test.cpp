// Writes passed from rank to rank through MPI's shared memory: processes as ranks, a real file, and
// threads that never call MPI. With TAILRACE_RANKS_PER_NODE the ranks are several nodes.

#include "exec/shared_writes.hpp"

#include <atomic>
#include <memory>
#include <thread>

#include "comm_of_all.hpp"
#include "rank_support.hpp"

namespace {

using namespace api_test;
using tailrace::Code;
using tailrace::Comm;
using tailrace::SharedWrites;
using tailrace::Status;
using tailrace::WrittenChunk;

constexpr std::uint64_t kRoomBytes = 20000;
constexpr std::uint64_t kChunks = 200;

/// Opens one new file on all ranks. Collective.
std::unique_ptr<tailrace::Storage> open_on_all(Comm& comm, const std::string& path) {
  if (!is_root()) comm.barrier();
  auto opened = tailrace::open_posix_storage(path, is_root(), false);
  if (is_root()) comm.barrier();
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return std::move(opened.value());
}

std::byte value_of(int donor, std::uint64_t chunk_index, std::size_t i) {
  return std::byte(donor * 89 + int(chunk_index) * 31 + int(i));
}

std::vector<std::byte> chunk_bytes(int donor, std::uint64_t chunk_index) {
  std::vector<std::byte> bytes(50 + chunk_index * 7 % 400);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value_of(donor, chunk_index, i);
  return bytes;
}

TEST(NodeWindow, EveryRankOfANodeSeesEverySegment) {
  const auto comm = api_test::comm_of_all();
  for (const std::uint64_t n_bytes : {std::uint64_t{8}, std::uint64_t{100'001}}) {
    auto made = comm->create_node_window(n_bytes);
    ASSERT_TRUE(made.ok()) << made.status().message();
    tailrace::NodeWindow& window = **made;
    EXPECT_LE(window.n_ranks_on_node(), comm->n_ranks_on_node());
    EXPECT_EQ(window.rank_in_comm(window.rank_on_node()), comm->rank());
    const std::span<std::byte> own = window.segment(window.rank_on_node());
    ASSERT_EQ(own.size(), n_bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.data()) % 64, 0U);
    EXPECT_EQ(own.front(), std::byte{0});
    EXPECT_EQ(own.back(), std::byte{0});
    comm->barrier();
    own.front() = std::byte(comm->rank() + 1);
    own.back() = std::byte(comm->rank() + 2);
    comm->barrier();
    for (int rank = 0; rank < window.n_ranks_on_node(); ++rank) {
      const std::span<std::byte> segment = window.segment(rank);
      ASSERT_EQ(segment.size(), n_bytes);
      EXPECT_EQ(segment.front(), std::byte(window.rank_in_comm(rank) + 1));
      EXPECT_EQ(segment.back(), std::byte(window.rank_in_comm(rank) + 2));
    }
    comm->barrier();
  }
}

/// One rank's part of a step. Its encode thread gives all chunks to the next rank of the node. Its
/// I/O thread writes received chunks, and the main thread only waits.
struct OneRank {
  OneRank(SharedWrites& shared_, tailrace::Storage& storage_, tailrace::Tail& tail_)
      : shared(shared_), storage(storage_), tail(tail_) {}

  SharedWrites& shared;
  tailrace::Storage& storage;
  tailrace::Tail& tail;
  bool broken = false;  ///< This rank's writes fail.

  std::vector<WrittenChunk> listed;
  Status status;
  std::uint64_t n_given = 0;
  std::uint64_t n_written_for_others = 0;

  Status write(std::uint64_t address, std::span<const std::byte> bytes) {
    if (broken) return Status(Code::no_space, "this rank's disk is full");
    return storage.write_at(address, bytes);
  }

  void list(const std::vector<SharedWrites::Receipt>& receipts) {
    for (const auto& receipt : receipts) {
      if (receipt.outcome == SharedWrites::Outcome::written) listed.push_back(receipt.chunk);
      if (receipt.outcome == SharedWrites::Outcome::failed && status.ok()) {
        status = receipt.status;
        tail.raise_failure();
      }
    }
  }

  void give_all(int rank) {
    const int next = (shared.rank_on_node() + 1) % shared.n_ranks_on_node();
    for (std::uint64_t index = 0; index < kChunks; ++index) {
      const std::vector<std::byte> bytes = chunk_bytes(rank, index);
      WrittenChunk chunk;
      chunk.chunk_index = index;
      chunk.encoded_bytes = bytes.size();
      const auto claim = [&] { return tail.claim(bytes.size()); };
      while (next != shared.rank_on_node() && !shared.try_give(next, chunk, bytes, claim)) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));  // receipts free space
      }
      if (next != shared.rank_on_node()) {
        ++n_given;
      } else {
        chunk.address = claim();
        const Status written = write(chunk.address, bytes);
        if (written.ok()) listed.push_back(chunk);
        if (!written.ok()) status = written;
      }
    }
  }

  void step(Comm& comm, std::uint64_t number) {
    shared.start_step(number);
    tail.start_step();
    std::atomic<bool> all_given{false};
    std::thread encode([&] {
      give_all(comm.rank());
      all_given = true;
    });
    std::atomic<bool> finished{false};
    std::thread io([&] {
      while (!all_given) {
        if (const auto task = shared.take()) {
          const Status done = write(task->address, task->bytes);
          ++n_written_for_others;
          shared.complete(
              *task, done.ok() ? SharedWrites::Outcome::written : SharedWrites::Outcome::failed,
              done);
        } else {
          list_late(shared.collect());
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      }
      list_late(
          shared.finish([this](std::uint64_t address,
                               std::span<const std::byte> bytes) { return write(address, bytes); },
                        [this] { return tail.failure_raised(); }));
      finished = true;
    });
    while (!finished) {  // like the executor while its lanes work
      tail.service();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    encode.join();
    io.join();
    list(receipts_);
    receipts_.clear();
    comm.barrier();
  }

 private:
  /// Stores receipts for the main thread, because the encode thread lists its own chunks meanwhile.
  void list_late(std::vector<SharedWrites::Receipt> receipts) {
    for (auto& receipt : receipts) receipts_.push_back(std::move(receipt));
  }
  std::vector<SharedWrites::Receipt> receipts_;
};

TEST(SharedWrites, OthersWriteMyChunksToTheFile) {
  const std::string path = scratch();
  const auto comm = api_test::comm_of_all();
  const auto storage = open_on_all(*comm, path);
  auto tail = comm->create_tail(0);
  ASSERT_TRUE(tail.ok());
  auto shared = SharedWrites::create(*comm, kRoomBytes);
  comm->barrier();
  ASSERT_TRUE(shared.ok()) << shared.status().message();
  for (std::uint64_t number = 1; number <= 3; ++number) {
    OneRank one(**shared, *storage, **tail);
    one.step(*comm, number);
    EXPECT_TRUE(one.status.ok()) << one.status.message();
    ASSERT_EQ(one.listed.size(), kChunks);
    EXPECT_EQ(one.n_given, (*shared)->n_ranks_on_node() > 1 ? kChunks : 0U);
    for (const WrittenChunk& chunk : one.listed) {
      std::vector<std::byte> stored(chunk.encoded_bytes);
      ASSERT_TRUE(storage->read_at(chunk.address, stored).ok());
      ASSERT_EQ(stored, chunk_bytes(comm->rank(), chunk.chunk_index));
    }
  }
}

TEST(SharedWrites, ABrokenRankFailsItsDonorsStepAndAllLeaveIt) {
  const std::string path = scratch();
  const auto comm = api_test::comm_of_all();
  const auto storage = open_on_all(*comm, path);
  auto tail = comm->create_tail(0);
  auto shared = SharedWrites::create(*comm, kRoomBytes);
  comm->barrier();
  ASSERT_TRUE(tail.ok() && shared.ok());
  OneRank one(**shared, *storage, **tail);
  one.broken = is_last();
  one.step(*comm, 1);
  const Status agreed = comm->agree(one.status);
  EXPECT_EQ(agreed.code(), Code::no_space);
  EXPECT_NE(agreed.message().find("this rank's disk is full"), std::string::npos);
}

TEST(SharedWrites, ARankThatGaveUpIsNotWaitedFor) {
  const auto comm = api_test::comm_of_all();
  auto shared = SharedWrites::create(*comm, kRoomBytes);
  comm->barrier();
  ASSERT_TRUE(shared.ok());
  (*shared)->start_step(1);
  std::uint64_t n_written = 0;
  if (is_last()) {
    (*shared)->abandon();
  } else {
    (void)(*shared)->finish(
        [&](std::uint64_t, std::span<const std::byte>) {
          ++n_written;
          return Status();
        },
        [] { return false; });
    (*shared)->abandon();  // The window cannot be freed without the rank that has left.
  }
  EXPECT_EQ(n_written, 0U);
  comm->barrier();
}

}  // namespace
