// The writing thread (exec/io_lane.cpp) when claims travel between nodes.

#include "exec/io_lane.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "exec/thread_team.hpp"

namespace tailrace::test {
namespace {

/// Answers the first claim only on request, and counts claims.
class SlowTail final : public Tail {
 public:
  bool needs_service() const override { return true; }
  bool claims_travel() const override { return true; }
  std::uint64_t claim(std::uint64_t n_bytes) override {
    Claim claim = start_claim(n_bytes);
    return finish_claim(claim);
  }
  Claim start_claim(std::uint64_t n_bytes) override {
    const std::scoped_lock lock(mutex_);
    ++n_started_;
    return {n_bytes, std::nullopt};
  }
  std::uint64_t finish_claim(Claim& claim) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
    const std::uint64_t address = end_;
    end_ += claim.n_bytes;
    return address;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int n_started() const {
    const std::scoped_lock lock(mutex_);
    return n_started_;
  }
  std::uint64_t end() override { return end_; }
  std::uint64_t end_at_root() override { return end_; }
  void start_at_root(std::uint64_t address) override { end_ = address; }
  void reset(std::uint64_t address) override { end_ = address; }
  void raise_failure() override { failed_ = true; }
  bool failure_raised() const override { return failed_; }
  void start_step() override {}
  void add_done(std::uint64_t /*n_bytes*/) override {}
  std::uint64_t done() const override { return 0; }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> failed_ = false;
  bool open_ = false;
  int n_started_ = 0;
  std::uint64_t end_ = 100;
};

/// Records each write, and how many claims had started by then.
class WatchingStorage final : public Storage {
 public:
  explicit WatchingStorage(const SlowTail& tail) : tail_(tail) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    started.push_back(tail_.n_started());
    if (fails) return Status(Code::no_space, "full");
    written[address] = bytes.size();
    return Status();
  }
  Status read_at(std::uint64_t, std::span<std::byte>) override { return Status(Code::corrupt, ""); }
  Result<std::uint64_t> file_bytes() override { return std::uint64_t{0}; }
  Status extend(std::uint64_t) override { return Status(); }
  Status sync() override { return Status(); }
  const std::string& path() const override { return path_; }

  bool fails = false;
  std::vector<int> started;
  std::map<std::uint64_t, std::size_t> written;

 private:
  const SlowTail& tail_;
  std::string path_ = "watched";
};

struct Lane {
  SlowTail tail;
  WatchingStorage storage{tail};
  MemoryBudget budget{1 << 20};
  ThreadTeam threads{2};
  LaneClock clock;
  std::unique_ptr<IoLane> lane;

  Lane() {
    IoLane::Settings settings;
    settings.write_buffer_bytes = 1;  // each chunk is a write
    lane = std::make_unique<IoLane>(storage, tail, nullptr, std::span<const FieldPlan>(), budget,
                                    settings, threads, clock, nullptr, [] {});
  }
  void push(std::uint64_t n_bytes) {
    EncodedChunk chunk;
    chunk.bytes = Buffer(n_bytes);
    chunk.chunk.encoded_bytes = n_bytes;
    chunk.budget_bytes = n_bytes;
    budget.take(n_bytes);
    lane->push(std::move(chunk));
  }
};

TEST(IoLane, TheNextClaimTravelsDuringAWrite) {
  Lane one;
  for (const std::uint64_t n_bytes : {10U, 20U, 30U}) one.push(n_bytes);
  EXPECT_FALSE(one.lane->idle());
  one.tail.open();
  one.lane->finish();
  EXPECT_EQ(one.storage.started, (std::vector<int>{2, 3, 3}));
  EXPECT_EQ(one.storage.written,
            (std::map<std::uint64_t, std::size_t>{{100, 10}, {110, 20}, {130, 30}}));
  EXPECT_EQ(one.lane->written().size(), 3U);
  EXPECT_TRUE(one.lane->idle());
  EXPECT_EQ(one.budget.held_bytes(), 0U);
}

TEST(IoLane, AClaimedChunkIsDroppedWithTheStep) {
  Lane one;
  one.storage.fails = true;
  for (const std::uint64_t n_bytes : {10U, 20U, 30U}) one.push(n_bytes);
  one.tail.open();
  one.lane->finish();
  EXPECT_EQ(one.storage.started, std::vector<int>{2});
  EXPECT_EQ(one.lane->status().code(), Code::no_space);
  EXPECT_TRUE(one.lane->written().empty());
  EXPECT_TRUE(one.lane->idle());
  EXPECT_EQ(one.budget.held_bytes(), 0U);
}

}  // namespace
}  // namespace tailrace::test
