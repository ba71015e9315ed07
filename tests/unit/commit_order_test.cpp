// Crash safety of commits. Every operation on storage is recorded over several commits. For every
// prefix of the operations, and with the last write torn in half, the file is rebuilt and read by
// stock HDF5. The steps' numbers refer to the head of commit_order.hpp, invariants to
// hdf5_file.cpp.

#include "hdf5/commit_order.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>

#include "crash_points.hpp"
#include "hdf5/hdf5_handle.hpp"

namespace tailrace::test {
namespace {

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

/// Old forms, which every HDF5 reads: indexes of new datasets are new blocks, so no journal is
/// needed.
TEST(CommitOrder, GroupPerStepInOldFormsSurvivesEveryCleanPoint) {
  const TestFolder folder;
  GroupPerStep series;
  series.old_forms = true;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("group per step in old forms, clean", clean);
  EXPECT_GT(clean.n_points, 80U);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

/// Version 1 B-trees that grow, split and get a second level. Their nodes are written in order, or
/// through the journal if a node crosses a page border.
TEST(CommitOrder, GrowingDatasetsInOldFormsSurviveKills) {
  const TestFolder folder;
  GrowingDatasets series;
  series.old_forms = true;
  const Recording recording = record(series, folder / "out.h5", false, false, 100, 40);
  Tally tally;
  judge_recovered(series, folder / "crash.h5", recording, tally, Tear::between_pages);
  report("growing in old forms, torn between pages", tally);
  EXPECT_GT(tally.n_torn, 10U);
  EXPECT_EQ(tally.n_damaged, 0U);
  EXPECT_EQ(tally.n_half_steps, 0U);
}

template <class S>
class InOldForms final : public S {
 public:
  InOldForms() { this->old_forms = true; }
};

template <class S>
class Journalled : public ::testing::Test {};
using AllSeries = ::testing::Types<GroupPerStep, GrowingDatasets, InOldForms<GroupPerStep>,
                                   InOldForms<GrowingDatasets>>;
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

/// Without the option, a block rewritten across a page border triggers a journal. Its commit then
/// replaces the other syncs with one.
TEST(CommitOrder, AKillBetweenTwoPagesOfAWriteDamagesNothing) {
  const TestFolder folder;
  GrowingDatasets series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100, 40);
  Tally tally;
  judge_recovered(series, folder / "crash.h5", recording, tally, Tear::between_pages);
  report("growing, torn between pages", tally);
  EXPECT_GT(tally.n_torn, 10U);
  EXPECT_EQ(tally.n_damaged, 0U);
  EXPECT_EQ(tally.n_half_steps, 0U);
  std::map<std::size_t, std::pair<std::size_t, bool>> syncs;  // Per commit; true: journalled.
  for (const Operation& operation : recording.operations) {
    auto& [n, journalled] = syncs[operation.n_commits];
    n += operation.kind == Operation::Kind::sync ? 1 : 0;
    journalled = journalled || !operation.journal.empty();
  }
  std::size_t n_journalled = 0;
  for (const auto& [commit, seen] : syncs) {
    if (commit > 0 && commit < recording.n_steps) {  // The last commit has no step.
      EXPECT_EQ(seen.first, seen.second ? 2U : 4U) << "commit " << commit;
    }
    n_journalled += seen.second ? 1 : 0;
  }
  EXPECT_GT(n_journalled, 0U);
  EXPECT_LT(n_journalled, syncs.size());
}

TEST(CommitOrder, ReorderedUnsyncedWritesDamageNothing) {
  const TestFolder folder;
  GrowingDatasets series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  Tally tally;
  judge_reordered(series, folder / "crash.h5", recording, tally);
  report("growing, reordered", tally);
  EXPECT_GT(tally.n_points, 100U);
  EXPECT_EQ(tally.n_damaged, 0U);
}

TEST(CommitOrder, ReorderedUnsyncedWritesInOldFormsDamageNothing) {
  const TestFolder folder;
  GrowingDatasets series;
  series.old_forms = true;
  const Recording recording = record(series, folder / "out.h5", false, false, 100);
  Tally tally;
  judge_reordered(series, folder / "crash.h5", recording, tally);
  report("growing in old forms, reordered", tally);
  EXPECT_GT(tally.n_points, 100U);
  EXPECT_EQ(tally.n_damaged, 0U);
}

/// The root group's header needs continuation blocks.
TEST(CommitOrder, StepsBeyondTheRootGroupsRoom) {
  const TestFolder folder;
  GroupPerStep series;
  const Recording recording = record(series, folder / "out.h5", false, false, 100, 16);
  Tally clean;
  Tally torn{.apart = true};
  judge_all(series, folder / "crash.h5", recording, clean, torn);
  report("root group outgrown, clean", clean);
  EXPECT_EQ(clean.n_damaged, 0U);
  EXPECT_EQ(clean.n_half_steps, 0U);
}

/// The root group's links move into a heap. Its blocks cannot be rewritten in a safe order, so the
/// journal is used without the option.
TEST(CommitOrder, StepsBeyondTheLinksOfTheRootGroupsHeaderAreGoodAfterRecovery) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  {
    RecordingStorage storage(path, false);
    ScatteringTail tail;
    Hdf5File::Settings settings;
    auto file = Hdf5File::create(storage, tail.allocate(), settings);
    ASSERT_TRUE(file.ok()) << text_of(file.status());
    for (int g = 0; g < 28; ++g) ASSERT_DONE((*file)->create_group("/g" + std::to_string(g)));
    ASSERT_DONE((*file)->close());
  }
  GroupPerStep series;
  const Recording recording = record(series, path, true, false, 100);
  {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    H5G_info_t links{};
    ASSERT_GE(H5Gget_info_by_name(file.get(), "/", &links, H5P_DEFAULT), 0);
    EXPECT_EQ(links.storage_type, H5G_STORAGE_TYPE_DENSE);
  }
  // Closing leaves the superblock as the last commit wrote it, because no commit would protect that
  // write.
  for (const Operation& operation : recording.operations) {
    constexpr std::size_t flags_at = 11;
    if (operation.address > 0 || operation.bytes.size() <= flags_at) continue;
    EXPECT_EQ(operation.bytes[flags_at], std::byte{0}) << "commit " << operation.n_commits;
  }
  Tally tally{.apart = true};
  judge_recovered(series, folder / "crash.h5", recording, tally);
  report("root group's links in a heap, recovered", tally);
  EXPECT_GT(tally.n_points, 150U);
  EXPECT_EQ(tally.n_damaged, 0U);
  EXPECT_EQ(tally.n_half_steps, 0U);
}

/// Steps appended to an old-style file (superblock 0, symbol tables) of stock HDF5. Its groups
/// cannot be changed in a safe order, so the journal is used without the option.
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
    // A separate name for each run: a failed run may leave a journal, which would block others.
    const std::string path = folder / ("out_" + std::to_string(k) + ".h5");
    std::size_t n_committed = 0;
    {
      RecordingStorage storage(path, false);
      storage.fail_code = GetParam();
      if (k > 0) storage.fail_at = k - 1;  // The first run counts operations.
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
          // If a chunk's write failed, close() still tries to commit once.
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

/// True if a commit that rewrites old header blocks with these signatures needs no journal.
bool is_orderly_for(const std::vector<std::string>& signatures) {
  const TestFolder folder;
  RecordingStorage storage(folder / "old.h5", false);
  DirtyBytes dirty;
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    std::vector<std::byte> block(64);
    std::memcpy(block.data(), signatures[i].data(), 4);
    EXPECT_TRUE(storage.write_at(100 * i, block).ok());
    block.back() = std::byte{1};
    dirty.put(100 * i, block);
  }
  const Result<CommitPlan> plan = plan_commit(storage, dirty, SpanSet(), 1000);
  EXPECT_TRUE(plan.ok());
  return plan.ok() && plan->orderly;
}

TEST(CommitOrder, AHeaderThatIsRewrittenInSeveralBlocksNeedsTheJournal) {
  EXPECT_TRUE(is_orderly_for({"OHDR"}));
  EXPECT_TRUE(is_orderly_for({"OHDR", "OHDR"}));  // Two different objects.
  EXPECT_TRUE(is_orderly_for({"OCHK"}));
  EXPECT_FALSE(is_orderly_for({"OHDR", "OCHK"}));
  EXPECT_FALSE(is_orderly_for({"OCHK", "OCHK"}));
  EXPECT_TRUE(is_orderly_for({"EADB", "OCHK"}));
}

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
