// Commits that are written while HDF5 is in use: crash points, failures, threads. The numbers refer
// to the invariants of metadata_driver.cpp and hdf5_file.cpp.

#include "hdf5/commit_order.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "core/storage_over.hpp"
#include "crash_points.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/metadata_driver.hpp"

namespace tailrace::test {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, unsigned value) {
  return std::vector<std::byte>(n, std::byte(value));
}

// --- the driver

class DriverPending : public ::testing::Test {
 protected:
  TestFolder folder_;
  RecordingStorage storage_{folder_ / "file", false};
  ScatteringTail tail_;
  MetadataDriver driver_{storage_, tail_.allocate(), {}};

  void write(H5FD_mem_t type, std::uint64_t address, const std::vector<std::byte>& bytes) {
    EXPECT_EQ(driver_.on_write(type, address, bytes.size(), bytes.data()), 0);
  }
  std::vector<std::byte> read(std::uint64_t address, std::size_t n) {
    std::vector<std::byte> bytes(n);
    EXPECT_EQ(driver_.on_read(H5FD_MEM_DRAW, address, n, bytes.data()), 0);
    return bytes;
  }
  std::vector<std::byte> stored(std::uint64_t address, std::size_t n) {
    std::vector<std::byte> bytes(n);
    EXPECT_TRUE(storage_.read_at(address, bytes).ok());
    return bytes;
  }
  void SetUp() override {
    EXPECT_EQ(driver_.on_alloc(H5FD_MEM_SUPER, 48), 0U);
    driver_.finish_create();
    write(H5FD_MEM_SUPER, 0, bytes_of(48, 9));
  }
};

TEST_F(DriverPending, ReadsSeeStorageThenPendingThenDirty_Invariant5) {
  const std::uint64_t block = driver_.on_alloc(H5FD_MEM_OHDR, 30);
  write(H5FD_MEM_OHDR, block, bytes_of(30, 1));
  ASSERT_DONE(driver_.publish());
  write(H5FD_MEM_OHDR, block + 10, bytes_of(20, 2));
  const auto commit = driver_.prepare();
  ASSERT_TRUE(commit.ok());
  write(H5FD_MEM_OHDR, block + 20, bytes_of(10, 3));
  const auto as_hdf5_sees = [&] {
    std::vector<std::byte> expected = bytes_of(10, 1);
    expected.resize(20, std::byte{2});
    expected.resize(30, std::byte{3});
    return read(block, 30) == expected;
  };
  EXPECT_TRUE(as_hdf5_sees());
  EXPECT_EQ(stored(block, 30), bytes_of(30, 1));
  ASSERT_DONE((*commit)->write());
  EXPECT_TRUE(as_hdf5_sees());
  EXPECT_EQ(stored(block + 10, 20), bytes_of(20, 2));
  ASSERT_DONE(driver_.finish());
  EXPECT_TRUE(as_hdf5_sees());
  ASSERT_DONE(driver_.publish());
  EXPECT_EQ(stored(block + 20, 10), bytes_of(10, 3));
  EXPECT_EQ(driver_.metadata_bytes(), 48U + 30 + 20 + 10);
}

TEST_F(DriverPending, StorageHearsOfItInWriteAlone_Invariant1) {
  const auto commit = driver_.prepare();
  ASSERT_TRUE(commit.ok());
  EXPECT_TRUE(driver_.pending());
  EXPECT_EQ(storage_.n_operations, 0U);
  ASSERT_DONE((*commit)->write());
  const std::size_t n_written = storage_.n_operations;
  EXPECT_GT(n_written, 0U);
  ASSERT_DONE((*commit)->write());
  ASSERT_DONE(driver_.finish());
  EXPECT_EQ(storage_.n_operations, n_written);
  EXPECT_FALSE(driver_.pending());
}

TEST_F(DriverPending, WhatIsPendingIsOldForTheNextCommit_Invariants6And9) {
  const std::uint64_t meta = driver_.on_alloc(H5FD_MEM_OHDR, 40);
  const std::uint64_t raw = driver_.on_alloc(H5FD_MEM_DRAW, 40);
  write(H5FD_MEM_OHDR, meta, bytes_of(40, 1));
  ASSERT_TRUE(driver_.prepare().ok());
  storage_.recording = true;
  write(H5FD_MEM_DRAW, raw, bytes_of(40, 2));  // Space of the pending commit, so the write waits.
  EXPECT_EQ(storage_.operations.size(), 0U);
  const std::uint64_t fresh_raw = driver_.on_alloc(H5FD_MEM_DRAW, 20000);
  write(H5FD_MEM_DRAW, fresh_raw, bytes_of(20000, 3));  // Free space, many bytes: immediate.
  EXPECT_EQ(storage_.operations.size(), 1U);
  const std::uint64_t fresh = driver_.on_alloc(H5FD_MEM_OHDR, 40);
  write(H5FD_MEM_OHDR, fresh, bytes_of(40, 4));
  write(H5FD_MEM_OHDR, meta, bytes_of(40, 5));
  ASSERT_DONE(driver_.finish());
  storage_.operations.clear();
  ASSERT_DONE(driver_.publish());
  std::vector<std::uint64_t> order;
  for (const Operation& operation : storage_.operations) {
    if (operation.kind == Operation::Kind::write) order.push_back(operation.address);
  }
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order.front(), fresh);
  EXPECT_EQ(stored(raw, 40), bytes_of(40, 2));
  EXPECT_EQ(stored(meta, 40), bytes_of(40, 5));
}

TEST_F(DriverPending, ChunksThatHdf5MovesAreCopiedByTheWrite_Invariant4) {
  const std::uint64_t planned = tail_.claim(32);
  const std::uint64_t elsewhere = driver_.on_alloc(H5FD_MEM_DRAW, 32);
  ASSERT_DONE(storage_.write_at(planned, bytes_of(32, 8)));
  driver_.arm(planned, 32);
  write(H5FD_MEM_DRAW, elsewhere, bytes_of(32, 1));
  EXPECT_TRUE(driver_.disarm().written);
  const std::size_t n_before = storage_.n_operations;
  const auto commit = driver_.prepare();
  ASSERT_TRUE(commit.ok());
  EXPECT_EQ(storage_.n_operations, n_before);
  ASSERT_DONE((*commit)->write());
  ASSERT_DONE(driver_.finish());
  EXPECT_EQ(stored(elsewhere, 32), bytes_of(32, 8));
}

TEST_F(DriverPending, AFailedWriteIsKeptAndHdf5StillReadsItsBytes) {
  const std::uint64_t block = driver_.on_alloc(H5FD_MEM_OHDR, 30);
  write(H5FD_MEM_OHDR, block, bytes_of(30, 1));
  const auto commit = driver_.prepare();
  ASSERT_TRUE(commit.ok());
  write(H5FD_MEM_OHDR, block + 20, bytes_of(10, 3));
  storage_.fail_at = storage_.n_operations;
  EXPECT_EQ((*commit)->write().code(), Code::no_space);
  EXPECT_EQ(driver_.finish().code(), Code::no_space);
  EXPECT_EQ(read(block, 20), bytes_of(20, 1));
  EXPECT_EQ(read(block + 20, 10), bytes_of(10, 3));
  EXPECT_EQ(driver_.prepare().status().code(), Code::no_space);
  EXPECT_EQ(driver_.publish().code(), Code::no_space);
  EXPECT_EQ(storage_.n_after_failure, 0U);
}

TEST_F(DriverPending, ARawWriteThatFailsMeanwhileStopsWhatHasNotBegun_Invariant1) {
  ASSERT_TRUE(driver_.prepare().ok());
  const std::uint64_t raw = driver_.on_alloc(H5FD_MEM_DRAW, 40);
  storage_.fail_at = storage_.n_operations;
  write(H5FD_MEM_DRAW, raw, bytes_of(40, 2));
  EXPECT_EQ(driver_.finish().code(), Code::no_space);
  EXPECT_EQ(storage_.n_after_failure, 0U);
  EXPECT_EQ(read(0, 48), bytes_of(48, 9));
}

TEST_F(DriverPending, TwoAtATimeAreAProgrammersError_Invariant9) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_TRUE(driver_.prepare().ok());
  EXPECT_DEATH((void)driver_.prepare(), "pending_ == nullptr");
  ASSERT_DONE(driver_.finish());
  EXPECT_DEATH((void)driver_.finish(), "pending_ != nullptr");
}

// --- whole files

/// A RecordingStorage for two threads; operations of `writer` count as made by a commit.
class SharedStorage final : public Storage {
 public:
  explicit SharedStorage(const std::string& path, bool keep_content = false)
      : inner(path, keep_content) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    const std::scoped_lock lock(mutex);
    mark();
    return inner.write_at(address, bytes);
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::scoped_lock lock(mutex);
    return inner.read_at(address, bytes);
  }
  Result<std::uint64_t> file_bytes() override {
    const std::scoped_lock lock(mutex);
    return inner.file_bytes();
  }
  Status extend(std::uint64_t n_bytes) override {
    const std::scoped_lock lock(mutex);
    mark();
    return inner.extend(n_bytes);
  }
  Status sync() override {
    const std::scoped_lock lock(mutex);
    mark();
    return inner.sync();
  }
  const std::string& path() const override { return inner.path(); }

  /// Writes a commit on its writer thread, and records that it has returned.
  Status write(PendingCommit& commit) {
    set_writer(std::this_thread::get_id());
    const Status written = commit.write();
    set_writer({});
    const std::scoped_lock lock(mutex);
    if (written.ok()) ++inner.n_commits;
    return written;
  }

  std::mutex mutex;
  RecordingStorage inner;

 private:
  void set_writer(std::thread::id id) {
    const std::scoped_lock lock(mutex);
    writer_ = id;
  }
  void mark() { inner.committing = writer_ == std::this_thread::get_id(); }
  std::thread::id writer_;
};

/// Time at which the next step is added while a commit is pending.
enum class Beside : std::uint8_t {
  before,  ///< Completely before the write begins.
  after,   ///< After the write, before the finish.
  thread   ///< While another thread writes.
};

/// Steps in sequence; each commit is pending while the next step is added.
Status add_steps(Series& series, Hdf5File& file, SharedStorage& storage, ScatteringTail& tail,
                 std::size_t n_steps, Beside beside) {
  TAILRACE_TRY(series.add(file, storage, tail, 0));
  for (std::size_t next = 1; next <= n_steps; ++next) {
    const auto commit = file.prepare_commit();
    if (!commit.ok()) return commit.status();
    std::thread writer;
    if (beside == Beside::after) TAILRACE_TRY(storage.write(**commit));
    if (beside == Beside::thread) writer = std::thread([&] { (void)storage.write(**commit); });
    const Status added = next < n_steps ? series.add(file, storage, tail, next) : Status();
    if (writer.joinable()) writer.join();
    TAILRACE_TRY(added);
    if (beside == Beside::before) TAILRACE_TRY(storage.write(**commit));
    TAILRACE_TRY(file.finish_commit());
  }
  return Status();
}

Recording record_beside(Series& series, const std::string& path, Beside beside, bool append,
                        bool journal) {
  Recording recording;
  if (append) recording.start = content_of(path);
  SharedStorage storage(path, append);
  storage.inner.recording = true;
  ScatteringTail tail(0, 100);
  Hdf5File::Settings settings;
  settings.journal = journal;
  std::uint64_t end = 0;
  auto opened = append ? Hdf5File::open(storage, tail.allocate(), settings, end)
                       : Hdf5File::create(storage, tail.allocate(), settings);
  EXPECT_TRUE(opened.ok()) << text_of(opened.status());
  if (!opened.ok()) return recording;
  if (append) tail.reset(end);
  Status done = add_steps(series, **opened, storage, tail, kNStepsUsual, beside);
  if (done.ok()) done = (*opened)->close();
  EXPECT_TRUE(done.ok()) << text_of(done);
  recording.operations = std::move(storage.inner.operations);
  recording.n_steps = kNStepsUsual;
  return recording;
}

// --- several nodes

/// Rank 0's client of a shared file system. It knows only the file length of its own writes, and
/// zeros that extend the file begin there.
class LateClient final : public StorageOver {
 public:
  using StorageOver::StorageOver;
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    known_ = std::max<std::uint64_t>(known_, address + bytes.size());
    return inner_->write_at(address, bytes);
  }
  Result<std::uint64_t> file_bytes() override { return known_; }
  Status extend(std::uint64_t n_bytes) override {
    const std::vector<std::byte> zeros(n_bytes - std::min(n_bytes, known_));
    return write_at(known_, zeros);
  }

 private:
  std::uint64_t known_ = 0;
};

/// Other nodes write step n + 1 while rank 0 commits step n; afterwards the file is opened and
/// continued.
template <class S>
void commit_beside_other_nodes() {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage others(path, false);
  LateClient client(std::make_unique<RecordingStorage>(path, true));
  ScatteringTail tail;
  Hdf5File::Settings settings;
  settings.on_nodes = true;
  S series;
  auto file = Hdf5File::create(client, tail.allocate(), settings);
  ASSERT_TRUE(file.ok()) << text_of(file.status());
  ASSERT_DONE(series.add(**file, others, tail, 0));
  constexpr std::size_t n_steps = 6;
  for (std::size_t next = 1; next <= n_steps; ++next) {
    const auto commit = (*file)->prepare_commit();
    ASSERT_TRUE(commit.ok()) << text_of(commit.status());
    if (next < n_steps) ASSERT_DONE(series.add(**file, others, tail, next));
    ASSERT_DONE((*commit)->write());
    ASSERT_DONE((*file)->finish_commit());
    ASSERT_TRUE(series.whole(path, next - 1)) << next;  // HDF5 finds the stated end.
  }
  ASSERT_DONE((*file)->close());
  ASSERT_TRUE(series.whole(path, n_steps - 1));
}

TEST(PendingOnNodes, AGroupPerStepKeepsTheBytesOfOthers_Invariant10) {
  commit_beside_other_nodes<GroupPerStep>();
}

TEST(PendingOnNodes, GrowingDatasetsKeepTheBytesOfOthers_Invariant10) {
  commit_beside_other_nodes<GrowingDatasets>();
}

// --- crash points

class PendingCrash : public ::testing::TestWithParam<Beside> {};

template <class S>
void expect_good_points(Beside beside) {
  const TestFolder folder;
  S series;
  const Recording recording = record_beside(series, folder / "out.h5", beside, false, false);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("pending, clean", clean);
  EXPECT_GT(clean.n_points, 80U);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
  Tally reordered;
  judge_reordered(series, folder / "crash.h5", recording, reordered);
  report("pending, reordered", reordered);
  EXPECT_GT(reordered.n_points, 100U);
  EXPECT_EQ(reordered.n_damaged, 0U);
}

TEST_P(PendingCrash, GroupPerStepSurvivesEveryPoint) {
  expect_good_points<GroupPerStep>(GetParam());
}

TEST_P(PendingCrash, GrowingDatasetsSurviveEveryPoint) {
  expect_good_points<GrowingDatasets>(GetParam());
}

TEST_P(PendingCrash, WithAJournalEveryPointIsGoodEvenTorn) {
  const TestFolder folder;
  GrowingDatasets series;
  const Recording recording = record_beside(series, folder / "out.h5", GetParam(), false, true);
  Tally tally;
  judge_recovered(series, folder / "crash.h5", recording, tally);
  report("pending, journal", tally);
  EXPECT_GT(tally.n_points, 150U);
  EXPECT_EQ(tally.n_damaged, 0U);
  EXPECT_EQ(tally.n_half_steps, 0U);
}

/// A file whose old-style groups cannot be changed in a safe order, so the journal is used without
/// the option.
TEST_P(PendingCrash, AppendedStepsOfAnOldFileAreGoodAfterRecovery) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id group(H5Gcreate2(file.get(), "/run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  GroupPerStep series;
  const Recording recording = record_beside(series, path, GetParam(), true, false);
  Tally recovered;
  judge_recovered(series, folder / "crash.h5", recording, recovered);
  report("pending, old file", recovered);
  EXPECT_GT(recovered.n_points, 200U);
  EXPECT_EQ(recovered.n_damaged, 0U);
  EXPECT_EQ(recovered.n_half_steps, 0U);
}

std::string name_of_beside(const ::testing::TestParamInfo<Beside>& info) {
  constexpr const char* names[] = {"AddedBefore", "AddedAfter", "AddedMeanwhile"};
  return names[std::size_t(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Orders, PendingCrash,
                         ::testing::Values(Beside::before, Beside::after, Beside::thread),
                         name_of_beside);

class PendingFailure : public ::testing::TestWithParam<Beside> {};

TEST_P(PendingFailure, ReturnsTheErrorAndKeepsEarlierSteps_Invariant3) {
  const TestFolder folder;
  GroupPerStep series;
  constexpr std::size_t n_steps = 3;
  std::size_t n_operations = 1;
  for (std::size_t k = 0; k < n_operations; ++k) {
    // A separate name for each run: a failed run may leave a journal, which would block others.
    const std::string path = folder / ("out_" + std::to_string(k) + ".h5");
    SharedStorage storage(path);
    if (k > 0) storage.inner.fail_at = k - 1;  // The first run counts operations.
    ScatteringTail tail;
    auto file = Hdf5File::create(storage, tail.allocate(), {});
    ASSERT_TRUE(file.ok()) << text_of(file.status());
    const Status done = add_steps(series, **file, storage, tail, n_steps, GetParam());
    if (k == 0) {
      ASSERT_DONE(done);
      n_operations = storage.inner.n_operations + 1;
    } else {
      ASSERT_EQ(done.code(), Code::no_space) << "operation " << k;
      // Half of the runs close the file, the other half only destroy it. If a chunk's write has
      // failed, a commit is still pending then.
      if (k % 2 == 0) {
        const std::size_t n_before = storage.inner.n_operations;
        EXPECT_FALSE((*file)->close().ok());
        EXPECT_LE(storage.inner.n_operations, n_before + 1);
      }
    }
    file = Status(Code::internal, "destroyed");
    for (std::size_t step = 0; step < storage.inner.n_commits; ++step) {
      EXPECT_TRUE(series.whole(path, step)) << "operation " << k << ", step " << step;
    }
  }
  EXPECT_GT(n_operations, 60U);
}

INSTANTIATE_TEST_SUITE_P(Orders, PendingFailure,
                         ::testing::Values(Beside::before, Beside::after, Beside::thread),
                         name_of_beside);

/// The product's storage without a lock around it, for the thread sanitizer.
TEST(PendingCommit, PosixStorageServesBothThreads) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  GrowingDatasets series;
  constexpr std::size_t n_steps = 40;
  {
    auto storage = open_posix_storage(path, true, false);
    ASSERT_TRUE(storage.ok()) << text_of(storage.status());
    ScatteringTail tail(0, 1000);
    auto file = Hdf5File::create(**storage, tail.allocate(), {});
    ASSERT_TRUE(file.ok()) << text_of(file.status());
    ASSERT_DONE(series.add(**file, **storage, tail, 0));
    for (std::size_t next = 1; next < n_steps; ++next) {
      const auto commit = (*file)->prepare_commit();
      ASSERT_TRUE(commit.ok()) << text_of(commit.status());
      std::thread writer([&] { (void)(*commit)->write(); });
      const Status added = series.add(**file, **storage, tail, next);
      writer.join();
      ASSERT_DONE(added);
      ASSERT_DONE((*file)->finish_commit());
      ASSERT_TRUE(series.whole(path, next - 1));
    }
    ASSERT_DONE((*file)->close());
  }
  EXPECT_TRUE(series.whole(path, n_steps - 1));
}

TEST(PendingCommit, CloseFinishesIt) {
  for (const bool written : {false, true}) {
    const TestFolder folder;
    RecordingStorage storage(folder / "out.h5", false);
    ScatteringTail tail;
    GroupPerStep series;
    auto file = Hdf5File::create(storage, tail.allocate(), {});
    ASSERT_TRUE(file.ok());
    ASSERT_DONE(series.add(**file, storage, tail, 0));
    const auto commit = (*file)->prepare_commit();
    ASSERT_TRUE(commit.ok());
    if (written) ASSERT_DONE((*commit)->write());
    ASSERT_DONE(series.add(**file, storage, tail, 1));
    ASSERT_DONE((*file)->close());
    EXPECT_TRUE(series.whole(folder / "out.h5", 0));
    EXPECT_TRUE(series.whole(folder / "out.h5", 1));
  }
}

/// A writer that gives up destroys the file while the writing thread may still be working.
TEST(PendingCommit, OutlivesItsFile) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  GroupPerStep series;
  std::shared_ptr<PendingCommit> commit;
  {
    auto file = Hdf5File::create(storage, tail.allocate(), {});
    ASSERT_TRUE(file.ok());
    ASSERT_DONE(series.add(**file, storage, tail, 0));
    const auto prepared = (*file)->prepare_commit();
    ASSERT_TRUE(prepared.ok());
    commit = *prepared;
    ASSERT_DONE(series.add(**file, storage, tail, 1));
  }
  ASSERT_DONE(commit->write());
  EXPECT_TRUE(series.whole(folder / "out.h5", 0));
  EXPECT_TRUE(series.sane(folder / "out.h5", 1));
}

}  // namespace
}  // namespace tailrace::test
