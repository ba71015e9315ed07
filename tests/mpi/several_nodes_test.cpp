// The end of the file between nodes, and the file itself, of which every node must see the same
// state. With TAILRACE_RANKS_PER_NODE the ranks are several nodes; the same must hold on one node.
// The watchdog of rank_support.hpp ends a rank that hangs.

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "comm_of_all.hpp"
#include "core/option_table.hpp"
#include "core/storage_over.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/writer_lock.hpp"
#include "output/output.hpp"
#include "rank_support.hpp"
#include "read/read.hpp"
#include "unit/array_support.hpp"
#include "unit/engine_support.hpp"
#include "write/write.hpp"

namespace {

using namespace api_test;
using namespace tailrace;

struct Claim {
  std::uint64_t address = 0;
  std::uint64_t n_bytes = 0;
};

/// One iteration of a main thread's wait loop.
void serve(Tail& tail) {
  tail.service();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// Claims from two threads, as lanes do, while the main thread serves.
std::vector<Claim> claim_in_threads(Tail& tail, std::uint64_t n_claims) {
  std::vector<Claim> claims(2 * n_claims);
  std::atomic<int> n_ended{0};
  const auto claim = [&](std::size_t thread) {
    std::mt19937 random(static_cast<unsigned>(2 * rank()) + static_cast<unsigned>(thread));
    for (std::size_t i = thread * n_claims; i < (thread + 1) * n_claims; ++i) {
      claims[i].n_bytes = 1 + random() % 100'000;
      claims[i].address = tail.claim(claims[i].n_bytes);
    }
    ++n_ended;
  };
  std::thread one([&] { claim(0); });
  std::thread two([&] { claim(1); });
  while (n_ended < 2) serve(tail);
  one.join();
  two.join();
  return claims;
}

/// All ranks' claims, sorted by address. Only at rank 0.
std::vector<Claim> gathered(Comm& comm, const std::vector<Claim>& mine) {
  std::vector<Claim> all;
  for (const Bytes& bytes : comm.gather(std::as_bytes(std::span(mine)), 0)) {
    const auto* first = reinterpret_cast<const Claim*>(bytes.data());
    all.insert(all.end(), first, first + bytes.size() / sizeof(Claim));
  }
  std::sort(all.begin(), all.end(),
            [](const Claim& a, const Claim& b) { return a.address < b.address; });
  return all;
}

constexpr std::uint64_t kStart = 1000;

TEST(SeveralNodes, ClaimsFollowEachOtherWithoutAGap) {
  const auto comm = api_test::comm_of_all();
  auto tail = comm->create_tail(kStart);
  ASSERT_TRUE(tail.ok()) << tail.status().message();
  comm->barrier();
  for (int step = 0; step < 3; ++step) {
    (*tail)->start_step();
    const std::vector<Claim> all = gathered(*comm, claim_in_threads(**tail, 40));
    std::uint64_t next = kStart;
    for (const Claim& claim : all) {
      EXPECT_EQ(claim.address, next);
      next = claim.address + claim.n_bytes;
    }
    const std::uint64_t end = (*tail)->end();
    if (is_root()) {
      EXPECT_EQ(end, next);
    }
    (*tail)->reset(kStart);
  }
}

/// Space claimed ahead is used first; its unneeded remainder is the only gap.
TEST(SeveralNodes, WhatIsExpectedIsHadBeforeRanksAreLetGo) {
  const auto comm = api_test::comm_of_all();
  auto tail = comm->create_tail(kStart);
  ASSERT_TRUE(tail.ok());
  comm->barrier();
  constexpr std::uint64_t n_bytes = 100'000;
  for (int step = 0; step < 3; ++step) {
    // The first rank of a node receives the others' expectations before it starts the step itself.
    for (int turn = 0; step > 0 && rank() % 2 == 0 && turn < 50; ++turn) serve(**tail);
    (*tail)->start_step();
    (*tail)->expect(n_bytes);
    (*tail)->let_go();
    comm->barrier();
    std::vector<Claim> mine(10);
    for (Claim& claim : mine) {
      const auto address = (*tail)->claim_at_once(n_bytes / 10);
      EXPECT_TRUE(address) << step;
      claim = {address.value_or(0), n_bytes / 10};
    }
    const std::vector<Claim> all = gathered(*comm, mine);
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_GE(all[i].address, all[i - 1].address + all[i - 1].n_bytes);
    }
    const std::uint64_t used = n_bytes * static_cast<std::uint64_t>(n_ranks());
    EXPECT_LE((*tail)->end(), kStart + used + used / 100);
    (*tail)->reset(kStart);
  }
}

/// A request of a closed tail that no rank waits for must not answer the next tail, which MPI may
/// place at the same address.
TEST(SeveralNodes, ATailThatGoesLeavesNoMessageToTheNext) {
  const auto comm = api_test::comm_of_all();
  std::mt19937 random(static_cast<unsigned>(rank()) + 1);
  for (std::uint64_t file = 0; file < 25; ++file) {
    const std::uint64_t start = kStart + (25 - file) * 10'000'000;
    auto tail = comm->create_tail(start);
    ASSERT_TRUE(tail.ok());
    comm->barrier();
    (*tail)->start_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4));
    const std::vector<Claim> all = gathered(*comm, claim_in_threads(**tail, 2));
    std::uint64_t next = start;
    for (const Claim& claim : all) {
      EXPECT_EQ(claim.address, next) << file;
      next = claim.address + claim.n_bytes;
    }
    comm->barrier();  // All ranks have claimed: the space expected now lies between no two claims.
    // May arrive late, after the node's leader has finished all its other work.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4));
    (*tail)->expect(1 + random() % 1000);
    if (random() % 2 == 0) serve(**tail);
  }
}

/// Claims are pending while the program makes MPI calls in which rank 0 serves no claims.
TEST(SeveralNodes, ClaimsThatWaitLetRanksGo) {
  const auto comm = api_test::comm_of_all();
  auto tail = comm->create_tail(kStart);
  ASSERT_TRUE(tail.ok());
  comm->barrier();
  for (int step = 0; step < 3; ++step) {
    (*tail)->start_step();
    std::uint64_t address = 0;
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      address = (*tail)->claim(77);
    });
    (*tail)->let_go();
    MPI_Barrier(MPI_COMM_WORLD);
    std::atomic<bool> claimed{false};
    std::thread watch([&] {
      late.join();
      claimed = true;
    });
    while (!claimed) serve(**tail);
    watch.join();
    EXPECT_GE(address, kStart);
    comm->barrier();  // All ranks have claimed once.
    EXPECT_EQ((*tail)->end(), kStart + 77 * static_cast<std::uint64_t>(n_ranks() * (step + 1)));
    comm->barrier();
  }
}

TEST(SeveralNodes, AFailureReachesTheOtherNodesWithinTheStep) {
  const auto comm = api_test::comm_of_all();
  auto tail = comm->create_tail(kStart);
  ASSERT_TRUE(tail.ok());
  comm->barrier();
  for (int failing = 0; failing < n_ranks(); ++failing) {
    (*tail)->start_step();
    EXPECT_FALSE((*tail)->failure_raised());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == failing) (*tail)->raise_failure();
    while (!(*tail)->failure_raised()) serve(**tail);
    comm->barrier();
    (*tail)->start_step();
    EXPECT_FALSE((*tail)->failure_raised());
    comm->barrier();
  }
}

/// Puts ranks of nodes other than rank 0's into a separate folder with old files.
class OtherFolders {
 public:
  OtherFolders(Comm& comm, const std::vector<std::string>& old_files)
      : other((*comm.create_node_window(64))->rank_in_comm(0) != 0) {
    const std::string folder = scratch_folder() + (other ? "/other" : "/one");
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    for (const std::string& name : old_files) {
      if (other) std::ofstream(name) << "an old file";
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~OtherFolders() {
    MPI_Barrier(MPI_COMM_WORLD);
    std::filesystem::current_path(before_);
  }
  OtherFolders(const OtherFolders&) = delete;
  OtherFolders& operator=(const OtherFolders&) = delete;

  const bool other;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

void write_empty_file(const std::string& path) {
  if (is_root()) {
    EXPECT_TRUE((*Writer::create(make_self_comm(), path, FileOptions()))->close().ok());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void expect_refused(const Status& status) {
  EXPECT_EQ(status.code(), Code::io_error);
  EXPECT_EQ(status.message(), from_root(status.message()));
  EXPECT_TRUE(status.message().starts_with("rank ")) << status.message();
  for (const char* part :
       {" on ", "on this node is not the file that rank 0 has", "is the shared file system"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

/// A successor of a dead rank 0 must be able to see whether the other nodes' ranks have ended, too.
TEST(SeveralNodes, OtherNodesHoldTheFileWhileTheyMayWrite) {
  const auto comm = api_test::comm_of_all();
  if (comm->place().empty()) GTEST_SKIP() << "a single node";
  const std::string path = "held.h5";
  auto writer = Writer::create(api_test::comm_of_all(), path, FileOptions());
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  comm->barrier();
  const std::string held = nodes_lock_path_of(std::filesystem::absolute(path));
  const bool holds = comm->rank() == 1 || (comm->leads_node() && !comm->is_root());
  EXPECT_TRUE(!holds || std::filesystem::exists(held));
  if (comm->is_root()) {
    const Descriptor at(::open(held.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_NE(::flock(at.fd(), LOCK_EX | LOCK_NB), 0);
  }
  comm->barrier();
  EXPECT_TRUE((*writer)->close().ok());
  comm->barrier();
  if (comm->is_root()) {
    EXPECT_FALSE(std::filesystem::exists(held));
    std::filesystem::remove(path);
  }
}

TEST(SeveralNodes, AFileThatOneNodeHasForItselfIsRefused) {
  const auto comm = api_test::comm_of_all();
  if (comm->place().empty()) GTEST_SKIP() << "a single node";
  const OtherFolders folders(*comm, {"new.h5.partial", "old.h5"});
  write_empty_file("old.h5");
  FileOptions options;
  expect_refused(Writer::create(api_test::comm_of_all(), "new.h5", options).status());
  expect_refused(Writer::open(api_test::comm_of_all(), "old.h5", options).status());
  expect_refused(Reader::open(api_test::comm_of_all(), "old.h5", ReadOptions()).status());
  if (folders.other) {
    EXPECT_EQ(std::filesystem::file_size("new.h5.partial"), 11U);
  } else {  // The refused files leave nothing.
    EXPECT_FALSE(std::filesystem::exists("new.h5.partial"));
    EXPECT_FALSE(std::filesystem::exists("old.h5.lock"));
  }
}

/// Some clients of shared file systems confuse the temporary name with the file that had it before,
/// which is the one now being replaced. A rank on another node would write its chunks into the old
/// file.
TEST(SeveralNodes, AFileIsReplacedAtOnce) {
  const std::string path = scratch();
  constexpr std::uint64_t n_turns = 6;
  constexpr std::uint64_t n_own = 1000;
  const auto n_all = n_own * static_cast<std::uint64_t>(n_ranks());
  for (std::uint64_t turn = 1; turn <= n_turns; ++turn) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options("replace=on,codec=deflate,chunk=100", options).ok());
    auto writer = Writer::create(api_test::comm_of_all(), path, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    const auto field =
        (*writer)->define_field({"/u", DType::u32, Shape{n_all}, options.field_defaults, false});
    ASSERT_TRUE(field.ok()) << field.status().message();
    // Larger values in each turn, so that a chunk in the wrong file has another size and is
    // detected.
    std::vector<std::uint32_t> mine(n_own);
    std::mt19937 random(static_cast<unsigned>(1000 * turn) + static_cast<unsigned>(rank()));
    for (std::uint32_t& value : mine)
      value = static_cast<std::uint32_t>(random() % (1ULL << (2 * turn)));
    const Box box({n_own * static_cast<std::uint64_t>(rank())}, {n_own});
    ASSERT_TRUE((*writer)->put(*field, box, mine.data(), true).ok());
    ASSERT_TRUE((*writer)->end_step().ok());
    ASSERT_TRUE((*writer)->close().ok());
    if (turn + 1 < n_turns) continue;  // the next turn replaces the file immediately
    auto reader = Reader::open(api_test::comm_of_all(), path, ReadOptions());
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    std::vector<std::uint32_t> read(n_own);
    const Status got = (*reader)->read(0, Slab::of(box), std::as_writable_bytes(std::span(read)));
    EXPECT_TRUE(got.ok()) << got.message();
    EXPECT_TRUE(read == mine) << "turn " << turn;
    EXPECT_TRUE((*reader)->close().ok());
  }
}

/// Simulates a client that sees another client's file late.
TEST(SeveralNodes, AFileThatOneNodeSeesLateIsNoFailure) {
  const auto comm = api_test::comm_of_all();
  if (comm->place().empty()) GTEST_SKIP() << "a single node";
  const OtherFolders folders(*comm, {"late.h5"});
  write_empty_file("late.h5");
  std::thread late([&] {
    if (!folders.other) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const std::string fresh = std::to_string(rank()) + ".h5";
    std::filesystem::copy_file("../one/late.h5", fresh);
    std::filesystem::rename(fresh, "late.h5");
  });
  auto reader = Reader::open(api_test::comm_of_all(), "late.h5", ReadOptions());
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (reader.ok()) {
    EXPECT_TRUE((*reader)->close().ok());
  }
  late.join();
}

/// Simulates a client that caches which file a name denoted before. Its writes would be lost, or
/// would damage another job's file. Tests a new file, then an opened one.
TEST(SeveralNodes, AFileThatANameLedToBeforeIsNotWritten) {
  const auto comm = api_test::comm_of_all();
  if (comm->place().empty()) GTEST_SKIP() << "a single node";
  const std::string path = scratch_folder() + "/new.h5";
  const std::string before = path + ".before" + std::to_string(rank());
  std::ofstream(before) << "the file of another job";
  int n_opened = 0;
  FileOptions options;
  options.open_storage = [&](const std::string& name, bool create) {
    const bool late = !create && !is_root() && ++n_opened <= 2;
    return open_posix_storage(late ? before : name, create, false);
  };
  for (const bool create : {true, false}) {
    tailrace::Output output;
    n_opened = 0;
    const Status opened =
        create ? output.create(*comm, path, options) : output.open(*comm, path, options);
    ASSERT_TRUE(opened.ok()) << opened.message();
    EXPECT_EQ(n_opened, is_root() ? 0 : 3);
    const auto mine = static_cast<std::uint64_t>(rank());
    const std::uint64_t at = 100'000 + 8 * mine;
    EXPECT_TRUE(output.storage().write_at(at, std::as_bytes(std::span(&mine, 1))).ok());
    EXPECT_TRUE(output.storage().sync().ok());
    comm->barrier();
    output.see_other_nodes();
    if (is_root()) {
      std::vector<std::uint64_t> all(static_cast<std::size_t>(n_ranks()));
      EXPECT_TRUE(output.storage().read_at(100'000, std::as_writable_bytes(std::span(all))).ok());
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
      EXPECT_EQ(output.storage().file_bytes().value(), 100'000 + 8 * all.size());
      EXPECT_TRUE(output.commit_at_root().ok());
    }
    output.committed();
    EXPECT_TRUE(output.close(true).ok());
  }
  EXPECT_EQ(std::filesystem::file_size(before), 23U);
}

/// Simulates a client that caches its reads and read-ahead while a file is open (JuiceFS): zeros
/// beyond the old end of the file. The client knows its own writes.
class KeepingStorage final : public StorageOver {
 public:
  using StorageOver::StorageOver;
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (!kept_.empty() && address + bytes.size() <= kept_.size()) {
      std::copy(bytes.begin(), bytes.end(), kept_.begin() + static_cast<std::ptrdiff_t>(address));
    }
    return inner_->write_at(address, bytes);
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (kept_.empty()) {
      std::vector<std::byte> all(std::size_t{1} << 20);
      const Result<std::uint64_t> there = inner_->file_bytes();
      // A client that asks by name (sshfs) fails after another node has renamed the file.
      if (!there.ok()) return inner_->read_at(address, bytes);
      const auto n_bytes = std::min<std::uint64_t>(*there, all.size());
      TAILRACE_TRY(inner_->read_at(0, std::span(all).first(n_bytes)));
      kept_ = std::move(all);
    }
    if (address + bytes.size() > kept_.size()) return inner_->read_at(address, bytes);
    std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(address), bytes.size(), bytes.begin());
    return Status();
  }
  void renew_reads() override {
    const std::scoped_lock lock(mutex_);
    kept_.clear();
    inner_->renew_reads();
  }

 private:
  std::mutex mutex_;
  std::vector<std::byte> kept_;
};

/// Ranks put rows in turn, and a chunk has two rows. The rank with the second row completes a chunk
/// that another node may have written after its own client had cached that place.
TEST(SeveralNodes, ChunksOfOthersAreCompletedAndReadWhateverAClientKeeps) {
  if (api_test::comm_of_all()->place().empty()) GTEST_SKIP() << "a single node";
  constexpr std::uint64_t n_columns = 500;
  ArrayFileOptions options = test::array_options("codec=trz,chunk=2x500");
  options.file.sync = true;  // Without sync, a client may delay rank 0's commits.
  options.file.open_storage = [](const std::string& name,
                                 bool create) -> Result<std::unique_ptr<Storage>> {
    TAILRACE_TAKE(std::unique_ptr<Storage> inner, open_posix_storage(name, create, false));
    return std::unique_ptr<Storage>(std::make_unique<KeepingStorage>(std::move(inner)));
  };
  auto file = test::created(api_test::comm_of_all(), scratch("kept.nc"), options);
  ASSERT_NE(file, nullptr);
  ASSERT_TRUE(file->change_model(test::one_variable(ModelType::f64, {0, n_columns})).ok());
  std::vector<double> all;
  for (std::uint64_t row = 0; row < 12; ++row) {
    std::vector<double> values(n_columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 1000.0 * static_cast<double>(row) + static_cast<double>(i * i % 97);
    }
    all.insert(all.end(), values.begin(), values.end());
    const Slab slab = Slab::of(Box{{row, 0}, {1, n_columns}});
    if (row % static_cast<std::uint64_t>(n_ranks()) == static_cast<std::uint64_t>(rank())) {
      ASSERT_TRUE(test::put_values(*file, 0, slab, values).ok());
    }
    const Status flushed = file->flush();
    ASSERT_TRUE(flushed.ok()) << flushed.message();
    const Slab so_far = Slab::of(Box{{0, 0}, {row + 1, n_columns}});
    const std::vector<double> read = test::get_values<double>(*file, 0, so_far);
    const auto differs = std::ranges::mismatch(read, all);
    EXPECT_TRUE(read == all) << "row " << row << ", from value " << differs.in1 - read.begin();
  }
  EXPECT_TRUE(file->close().ok());
}

/// Simulates a client that writes only at sync or close: later than others.
class LateStorage final : public StorageOver {
 public:
  LateStorage(std::unique_ptr<Storage> inner, const std::atomic<bool>& full)
      : StorageOver(std::move(inner)), full_(full) {}
  ~LateStorage() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    (void)LateStorage::sync();
  }
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex_);
    if (full_ && !late_.empty()) return Status(Code::no_space, "this node's client is full");
    late_.emplace_back(address, std::vector<std::byte>(bytes.begin(), bytes.end()));
    return Status();
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    TAILRACE_TRY(sync());
    return inner_->read_at(address, bytes);
  }
  Status sync() override {
    const std::scoped_lock lock(mutex_);
    for (const auto& [address, bytes] : late_) TAILRACE_TRY(inner_->write_at(address, bytes));
    late_.clear();
    return inner_->sync();
  }

 private:
  const std::atomic<bool>& full_;  ///< If true, one more write succeeds, and later ones fail.
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> late_;
};

/// The last rank's node writes its part of a step that then fails. Delayed writes of that node's
/// client must not overwrite what rank 0 writes to the same place in the next step.
TEST(SeveralNodes, WhatAFailedStepHasWrittenComesOverNothing) {
  if (api_test::comm_of_all()->place().empty()) GTEST_SKIP() << "a single node";
  for (const char* mode : {"sync", "async", "in_situ"}) {
    SCOPED_TRACE(mode);
    std::atomic<bool> full = false;
    FileOptions options;
    ASSERT_TRUE(apply_file_options(
                    "fsync=off,buffer=1K,threads=1,codec=none,chunk=1024,mode=" + std::string(mode),
                    options)
                    .ok());
    options.open_storage = [&](const std::string& name,
                               bool create) -> Result<std::unique_ptr<Storage>> {
      TAILRACE_TAKE(std::unique_ptr<Storage> inner, open_posix_storage(name, create, false));
      if (!is_last()) return inner;
      return std::unique_ptr<Storage>(std::make_unique<LateStorage>(std::move(inner), full));
    };
    const std::string path = scratch(std::string("late_") + mode + ".h5");
    auto made = Writer::create(api_test::comm_of_all(), path, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    Writer& writer = **made;
    const Shape shape = {8192};
    const auto end_step_of = [&](const std::string& field, bool mine, float value) {
      const auto index = writer.define_field({field, DType::f32, shape, options.field_defaults});
      const std::vector<float> values(shape[0], value);
      if (mine) {
        EXPECT_TRUE(writer.put(*index, whole_box(shape), values.data(), true).ok());
      }
      const Status ended = writer.end_step().status();
      return ended.ok() ? writer.wait().status() : ended;
    };
    full = true;
    EXPECT_EQ(end_step_of("/of_last", is_last(), 1).code(), Code::no_space);
    full = false;
    EXPECT_TRUE(end_step_of("/of_first", is_root(), 2).ok());
    EXPECT_TRUE(writer.close().ok());
    made->reset();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_root()) continue;
    const std::vector<std::byte> bytes = tailrace::test::read_field(path, "/of_first");
    std::vector<float> read(shape[0]);
    ASSERT_EQ(bytes.size(), read.size() * sizeof(float));
    std::memcpy(read.data(), bytes.data(), bytes.size());
    EXPECT_EQ(std::ranges::count(read, 2.0F), 8192);
  }
}

}  // namespace
