// Crash safety of commits: every operation on storage is recorded over several commits, and for
// every prefix of them (and with the last write torn in half) the file is rebuilt and read by stock
// HDF5. The steps' numbers refer to the head of commit_order.hpp, invariants to hdf5_file.cpp.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "container/commit_order.hpp"
#include "container/hdf5_file.hpp"
#include "container/hdf5_handle.hpp"
#include "container/journal.hpp"
#include "container/recover.hpp"
#include "container_support.hpp"

namespace tailrace::test {
namespace {

constexpr std::size_t n_steps_usual = 12;

/// A way of adding steps to a file, and of checking them.
class Series {
 public:
  virtual ~Series() = default;
  virtual Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) = 0;
  /// Whether the step can be read completely.
  virtual bool whole(const std::string& path, std::size_t step) = 0;
  /// Whether the step, not committed yet, is absent or complete.
  virtual bool sane(const std::string& path, std::size_t step) = 0;
};

bool link_exists(const std::string& path, const std::string& link) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  return file.valid() && H5Lexists(file.get(), link.c_str(), H5P_DEFAULT) > 0;
}

/// One group per step with two datasets and attributes.
class GroupPerStep : public Series {
 public:
  explicit GroupPerStep(std::string parent = "") : parent_(std::move(parent)) {}

  Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) override {
    for (unsigned k = 0; k < 2; ++k) {
      DatasetDefinition definition;
      definition.path = step_group(step) + "/field" + std::to_string(k);
      definition.shape = grid_.shape;
      definition.chunk_shape = grid_.chunk_shape;
      definition.filters = shuffle_deflate(4);
      TAILRACE_TRY(file.create_dataset(definition));
      TAILRACE_TRY(write_test_chunks(file, storage, tail, definition.path, grid_, true,
                                     unsigned(2 * step + k)));
      TAILRACE_TRY(file.set_attribute(definition.path, "codec", {std::string("deflate")}));
    }
    return file.set_attribute(step_group(step), "time", {std::vector<double>{double(step)}});
  }
  bool whole(const std::string& path, std::size_t step) override {
    return holds_test_values(path, step_group(step) + "/field0", unsigned(2 * step)) &&
           holds_test_values(path, step_group(step) + "/field1", unsigned(2 * step + 1));
  }
  bool sane(const std::string& path, std::size_t step) override {
    return !link_exists(path, step_group(step)) || whole(path, step);
  }

 private:
  std::string step_group(std::size_t step) const {
    const std::string number = std::to_string(step);
    return parent_ + "/step_" + std::string(4 - number.size(), '0') + number;
  }

  std::string parent_;
  ChunkGrid grid_{{40, 6}, {9, 6}};
};

/// Two datasets that grow along their first dimension; made in step 0.
class GrowingDatasets final : public Series {
 public:
  Status add(Hdf5File& file, Storage& storage, ScatteringTail& tail, std::size_t step) override {
    for (unsigned k = 0; k < 2; ++k) {
      if (step == 0) {
        DatasetDefinition definition;
        definition.path = path_of(k);
        definition.shape = {0, row_};
        definition.chunk_shape = {1, row_ / 4};
        definition.extendable = true;
        definition.filters = shuffle_deflate(4);
        TAILRACE_TRY(file.create_dataset(definition));
      }
      TAILRACE_TRY(file.extend_dataset(path_of(k), {step + 1, row_}));
      const ChunkGrid grid{{step + 1, row_}, {1, row_ / 4}};
      std::vector<Hdf5File::ChunkRecord> records;
      for (std::uint64_t index = 4 * step; index < 4 * step + 4; ++index) {
        const auto bytes = encode_stored(chunk_values(grid, index, k), unsigned(index));
        records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, 0});
        TAILRACE_TRY(storage.write_at(records.back().extent.address, bytes));
      }
      TAILRACE_TRY(file.insert_chunks(path_of(k), records));
    }
    return Status();
  }
  bool whole(const std::string& path, std::size_t step) override {
    return holds_test_values(path, path_of(0), 0, (step + 1) * row_) &&
           holds_test_values(path, path_of(1), 1, (step + 1) * row_);
  }
  bool sane(const std::string& path, std::size_t) override {
    // Lengths may differ by the step under way, but what counts as there is right.
    return holds_test_values(path, path_of(0), 0) && holds_test_values(path, path_of(1), 1);
  }

 private:
  static std::string path_of(unsigned k) { return "/run/field" + std::to_string(k); }
  std::uint64_t row_ = 24;
};

/// A file as it was at one point of the recording.
struct CrashImage {
  std::vector<std::byte> bytes;

  void apply(const Operation& operation, bool torn) {
    if (operation.kind == Operation::Kind::extend) {
      if (!torn && bytes.size() < operation.address) bytes.resize(operation.address);
    } else if (operation.kind == Operation::Kind::write) {
      const std::size_t n = torn ? operation.bytes.size() / 2 : operation.bytes.size();
      if (bytes.size() < operation.address + n) bytes.resize(operation.address + n);
      std::copy_n(operation.bytes.begin(), n, bytes.begin() + std::ptrdiff_t(operation.address));
    }
  }
  void store(const std::string& path) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
};

struct Tally {
  std::size_t n_points = 0;
  std::size_t n_damaged = 0;     ///< A committed step does not read right.
  std::size_t n_half_steps = 0;  ///< The step under way is neither absent nor complete.
  bool apart = false;            ///< Judge in child processes: some points will be damaged.
};

/// What judge() found, for the exit status of a child process.
enum Verdict : int { good = 0, damaged = 1, half_step = 2 };

Verdict verdict_on(Series& series, const std::string& path, std::size_t n_commits) {
  for (std::size_t step = 0; step < n_commits; ++step) {
    if (!series.whole(path, step)) return damaged;
  }
  return series.sane(path, n_commits) ? good : half_step;
}

/// Judge in a child process: HDF5 does not always close a damaged file, and complains at exit.
Verdict verdict_apart(Series& series, const std::string& path, std::size_t n_commits) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(verdict_on(series, path, n_commits));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? Verdict(WEXITSTATUS(status)) : damaged;
}

/// Judge the file at one crash point. The first commit's own points are skipped: until it returns,
/// the file has a temporary name and nobody has been promised anything.
void judge(Series& series, const std::string& path, std::size_t n_commits, Tally& tally) {
  if (n_commits == 0) return;
  ++tally.n_points;
  const Verdict verdict =
      tally.apart ? verdict_apart(series, path, n_commits) : verdict_on(series, path, n_commits);
  if (verdict == damaged) ++tally.n_damaged;
  if (verdict == half_step) ++tally.n_half_steps;
}

struct Recording {
  std::vector<std::byte> start;  ///< The file before the first operation.
  std::vector<Operation> operations;
  std::size_t n_steps = 0;
};

std::vector<std::byte> content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Create a file (or append to the one that is there) and record `n_steps` commits.
Recording record(Series& series, const std::string& path, bool append, bool journal,
                 unsigned gap_max, std::size_t n_steps = n_steps_usual,
                 std::uint64_t expected_steps = 64) {
  Recording recording;
  if (append) recording.start = content_of(path);
  RecordingStorage storage(path, append);
  storage.recording = true;
  ScatteringTail tail(0, gap_max);
  Hdf5File::Settings settings;
  settings.journal = journal;
  settings.expected_steps = expected_steps;
  std::uint64_t end = 0;
  auto opened = append ? Hdf5File::open(storage, tail.allocate(), settings, end)
                       : Hdf5File::create(storage, tail.allocate(), settings);
  EXPECT_TRUE(opened.ok()) << text_of(opened.status());
  if (!opened.ok()) return recording;
  if (append) tail.reset(end);
  Hdf5File& file = **opened;
  for (std::size_t step = 0; step < n_steps; ++step) {
    Status done = series.add(file, storage, tail, step);
    storage.committing = true;
    if (done.ok()) done = file.commit();
    storage.committing = false;
    EXPECT_TRUE(done.ok()) << text_of(done);
    storage.n_commits = step + 1;
  }
  const Status closed = file.close();
  EXPECT_TRUE(closed.ok()) << text_of(closed);
  recording.operations = std::move(storage.operations);
  recording.n_steps = n_steps;
  return recording;
}

/// Rebuild every crash point, clean and torn, as a reader finds it without any recovery.
void judge_all(Series& series, const std::string& path, const Recording& recording, Tally& clean,
               Tally& torn) {
  CrashImage image{recording.start};
  for (const Operation& operation : recording.operations) {
    // Between commits only chunk bytes are written, all alike: a quarter of these points will do.
    const bool skip = !operation.committing && operation.address % 4 != 0;
    if (!skip) image.store(path);
    if (!skip) judge(series, path, operation.n_commits, clean);
    if (!skip && operation.kind == Operation::Kind::write) {
      CrashImage half = image;
      half.apply(operation, true);
      half.store(path);
      judge(series, path, operation.n_commits, torn);
    }
    image.apply(operation, false);
  }
  image.store(path);
  judge(series, path, recording.n_steps, clean);
}

void report(const char* name, const Tally& tally) {
  std::printf("[ crash    ] %s: %zu points, %zu damage a committed step, %zu show half a step\n",
              name, tally.n_points, tally.n_damaged, tally.n_half_steps);
}

TEST(CommitOrder, GroupPerStepSurvivesEveryCleanPoint) {
  const TestFolder folder;
  GroupPerStep series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("group per step, clean", clean);
  report("group per step, torn ", torn);
  EXPECT_GT(clean.n_points, 80U);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

TEST(CommitOrder, StepsInANestedGroup) {
  const TestFolder folder;
  GroupPerStep series("/simulation/run");
  const Recording recording = record(series, folder / "out.h5", false, false, 100, 16);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("steps in a nested group, clean", clean);
  report("steps in a nested group, torn ", torn);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

TEST(CommitOrder, GroupPerStepRewritesOneOldBlockPerCommit) {
  const TestFolder folder;
  GroupPerStep series;
  const Recording recording = record(series, folder / "out.h5", false, false, 0);
  // After the last sync but one of each commit comes the root group's header, and nothing else.
  std::size_t n_headers = 0;
  for (const Operation& operation : recording.operations) {
    if (operation.kind != Operation::Kind::write || operation.n_commits == 0) continue;
    if (operation.address < 60000 && rank_block(operation.bytes) == BlockRank::object_header &&
        operation.bytes.size() > 1000) {
      ++n_headers;
    }
  }
  EXPECT_EQ(n_headers, n_steps_usual - 1);
}

TEST(CommitOrder, GrowingDatasetsSurviveEveryCleanPoint) {
  const TestFolder folder;
  GrowingDatasets series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("growing, clean", clean);
  report("growing, torn ", torn);
  EXPECT_GT(clean.n_points, 80U);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

/// As judge_all, but recovery runs on every point first; torn journals are tried, too.
void judge_recovered(Series& series, const std::string& path, const Recording& recording,
                     Tally& tally) {
  const std::string journal = journal_path_of(path);
  const auto recover_and_judge = [&](const CrashImage& image, const std::string& journal_bytes,
                                     std::size_t n_commits) {
    if (n_commits == 0) return;
    image.store(path);
    if (!journal_bytes.empty()) std::ofstream(journal, std::ios::binary) << journal_bytes;
    const auto recovered = inspect_and_recover(path, true);
    EXPECT_TRUE(recovered.ok()) << text_of(recovered.status());
    EXPECT_FALSE(std::filesystem::exists(journal));
    judge(series, path, n_commits, tally);
  };
  CrashImage image{recording.start};
  std::string journal_before;
  for (const Operation& operation : recording.operations) {
    // A journal that has just appeared was being written: it may be torn, or lack its name still.
    if (!operation.journal.empty() && journal_before.empty()) {
      recover_and_judge(image, operation.journal.substr(0, operation.journal.size() / 2),
                        operation.n_commits);
      recover_and_judge(image, operation.journal.substr(0, 5), operation.n_commits);
    }
    const bool skip = !operation.committing && operation.address % 4 != 0;
    if (!skip) recover_and_judge(image, operation.journal, operation.n_commits);
    if (!skip && operation.kind == Operation::Kind::write) {
      CrashImage half = image;
      half.apply(operation, true);
      recover_and_judge(half, operation.journal, operation.n_commits);
    }
    image.apply(operation, false);
    // The journal outlives the last write and sync of its commit for a moment.
    if (!operation.journal.empty())
      recover_and_judge(image, operation.journal, operation.n_commits);
    journal_before = operation.journal;
  }
}

template <class S>
class Journalled : public ::testing::Test {};
using AllSeries = ::testing::Types<GroupPerStep, GrowingDatasets>;
TYPED_TEST_SUITE(Journalled, AllSeries);

TYPED_TEST(Journalled, EveryPointIsGoodAfterRecoveryEvenTorn) {
  const TestFolder folder;
  TypeParam series;
  const Recording recording = record(series, folder / "out.h5", false, true, 100);
  Tally tally;
  judge_recovered(series, folder / "crash.h5", recording, tally);
  report("journal, clean and torn", tally);
  EXPECT_GT(tally.n_points, 150U);
  EXPECT_EQ(tally.n_damaged, 0U);
  EXPECT_EQ(tally.n_half_steps, 0U);
}

/// Power loss: writes since the last sync reach the disk in any order. Tried: each of them alone,
/// and all but each of them.
TEST(CommitOrder, ReorderedUnsyncedWritesDamageNothing) {
  const TestFolder folder;
  GrowingDatasets series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  const std::string path = folder / "crash.h5";
  CrashImage synced{recording.start};
  std::vector<const Operation*> unsynced;
  Tally tally;
  for (const Operation& operation : recording.operations) {
    if (operation.kind != Operation::Kind::sync) {
      unsynced.push_back(&operation);
      continue;
    }
    for (const Operation* chosen : unsynced) {
      CrashImage alone = synced;
      alone.apply(*chosen, false);
      CrashImage without = synced;
      for (const Operation* other : unsynced) {
        if (other != chosen) without.apply(*other, false);
      }
      for (const CrashImage& image : {alone, without}) {
        image.store(path);
        judge(series, path, operation.n_commits, tally);
      }
    }
    for (const Operation* done : unsynced) synced.apply(*done, false);
    unsynced.clear();
  }
  report("growing, reordered", tally);
  EXPECT_GT(tally.n_points, 100U);
  EXPECT_EQ(tally.n_damaged, 0U);
}

/// Without its journal a step that outgrows the root group's pre-sized header is still safe.
TEST(CommitOrder, StepsBeyondTheRootGroupsRoom) {
  const TestFolder folder;
  GroupPerStep series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100, 16, 4);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("root group outgrown, clean", clean);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

/// An old-style file (superblock 0, symbol tables) made by stock HDF5, steps appended to it: its
/// groups cannot be changed in a safe order, so the journal is used unasked.
TEST(CommitOrder, AppendedStepsOfAnOldFileAreGoodAfterRecovery) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id group(H5Gcreate2(file.get(), "/run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  GroupPerStep series;
  const Recording recording = record(series, path, true, false, 100);
  Tally clean{.apart = true};
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("old file, clean, no recovery", clean);
  report("old file, torn, no recovery ", torn);
  Tally recovered;
  judge_recovered(series, folder / "crash.h5", recording, recovered);
  report("old file, recovered", recovered);
  EXPECT_GT(recovered.n_points, 200U);
  EXPECT_EQ(recovered.n_damaged, 0U);
  EXPECT_EQ(recovered.n_half_steps, 0U);
}

class FailingOperation : public ::testing::TestWithParam<Code> {};

TEST_P(FailingOperation, ReturnsTheErrorAndKeepsEarlierSteps_Invariant3) {
  const TestFolder folder;
  GroupPerStep series;
  std::size_t n_operations = 1;
  for (std::size_t k = 0; k < n_operations; ++k) {
    const std::string path = folder / "out.h5";
    std::size_t n_committed = 0;
    {
      RecordingStorage storage(path, false);
      storage.fail_code = GetParam();
      if (k > 0) storage.fail_at = k - 1;  // The first run counts.
      ScatteringTail tail;
      auto file = Hdf5File::create(storage, tail.allocate(), {});
      ASSERT_TRUE(file.ok()) << text_of(file.status());
      Status failed;
      for (std::size_t step = 0; step < 3 && failed.ok(); ++step) {
        failed = series.add(**file, storage, tail, step);
        if (failed.ok()) failed = (*file)->commit();
        if (failed.ok()) ++n_committed;
      }
      if (k == 0) {
        n_operations = storage.n_operations + 1;
        ASSERT_DONE(failed);
      } else {
        ASSERT_EQ(failed.code(), GetParam()) << "operation " << k;
        // Half of the runs close the file, the other half only destroy it.
        if (k % 2 == 0) {
          const std::size_t n_before = storage.n_operations;
          const Status closed = (*file)->close();
          EXPECT_FALSE(closed.ok());
          // A chunk's write may have failed, in which case close() still tries to commit once.
          EXPECT_LE(storage.n_operations, n_before + 1);
        }
        file = Status(Code::internal, "destroyed");
      }
    }
    for (std::size_t step = 0; step < n_committed; ++step) {
      EXPECT_TRUE(series.whole(path, step)) << "operation " << k << ", step " << step;
    }
  }
  EXPECT_GT(n_operations, 60U);
}

INSTANTIATE_TEST_SUITE_P(Codes, FailingOperation,
                         ::testing::Values(Code::no_space, Code::io_error));

TEST(CommitOrder, BlocksAreRankedBySignature) {
  const auto rank_of = [](const char* text) {
    std::vector<std::byte> block(64);
    std::memcpy(block.data(), text, 4);
    return rank_block(block);
  };
  EXPECT_EQ(rank_of("EADB"), BlockRank::index_leaf);
  EXPECT_EQ(rank_of("EAHD"), BlockRank::index_head);
  EXPECT_EQ(rank_of("TREE"), BlockRank::tree_node);
  EXPECT_EQ(rank_of("SNOD"), BlockRank::symbol_node);
  EXPECT_EQ(rank_of("OHDR"), BlockRank::object_header);
  EXPECT_EQ(rank_of("OCHK"), BlockRank::object_header);
  EXPECT_EQ(rank_of("\x01\x00\x05\x00"), BlockRank::object_header);
  EXPECT_EQ(rank_of("????"), BlockRank::other);
  EXPECT_EQ(rank_block({}), BlockRank::other);
}

}  // namespace
}  // namespace tailrace::test
