// Failures of concatenate(). Every rank returns the same failure, and no rank waits forever. An
// older output is unchanged, a new one does not exist, and a partial one remains only if it was
// committed. --resume then completes it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "concat_engine_support.hpp"
#include "core/storage_over.hpp"
#include "hdf5/journal.hpp"
#include "hdf5/recover.hpp"
#include "output/output.hpp"
#include "support/test_tier.hpp"
#include "write/write.hpp"

namespace tailrace::test {
namespace {

using testing::HasSubstr;

std::string whole_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const std::string older_text = "an older file";

/// Kind of the fault.
struct FaultCase {
  const char* name;
  int n_ranks;
  const char* layout;
  Code code;
  bool once;           ///< Writes after the failing one succeed.
  bool commits;        ///< Commit after every round.
  bool older = false;  ///< An output exists that would be replaced.
  int stride = 1;      ///< Step between tested writes; commits make writes numerous.
};

void PrintTo(const FaultCase& fault, std::ostream* out) { *out << fault.name; }

class ConcatFault : public testing::TestWithParam<FaultCase> {
 protected:
  ConcatRequest request() const {
    ConcatRequest request = small_request(inputs_, output_);
    request.chunk_rows = 16;
    request.options.memory_bytes = GetParam().commits ? 8U << 10 : 32U << 10;
    request.options.write_buffer_bytes = 1000;
    request.options.field_defaults.layout = GetParam().layout;
    request.options.replace = GetParam().older;
    request.commit_interval_s = GetParam().commits ? 0 : 1000;
    return request;
  }

  /// Checks the files that a failed run leaves, then runs --resume. `written`: an input that was
  /// modified afterwards, so that no remaining data may be used.
  void expect_left(const Status& failure, const std::string& what,
                   const std::string& written = "") {
    EXPECT_EQ(std::filesystem::exists(output_), GetParam().older) << what;
    if (GetParam().older) {
      EXPECT_EQ(whole_text(output_), older_text) << what;
    }
    const bool kept = std::filesystem::exists(output_ + kPartialSuffix);
    EXPECT_EQ(kept, failure.message().find("--resume") != std::string::npos)
        << what << ": " << text_of(failure);
    if (!GetParam().commits) {
      EXPECT_FALSE(kept) << what;
    }
    ConcatRequest again = request();
    again.resume = true;
    if (kept && !written.empty()) {
      const ConcatRun refused = run_concat(GetParam().n_ranks, again);
      EXPECT_EQ(refused.status.code(), Code::invalid_argument) << what;
      EXPECT_THAT(refused.status.message(), HasSubstr("changed since: " + written)) << what;
      again.resume = false;
    }
    const ConcatRun resumed = run_concat(GetParam().n_ranks, again);
    EXPECT_TRUE(resumed.status.ok()) << what << ": " << text_of(resumed.status);
    if (resumed.status.ok()) expect_concatenation(output_, inputs_);
    EXPECT_FALSE(std::filesystem::exists(output_ + kPartialSuffix)) << what;
    std::filesystem::remove(output_);
  }

  void make_older_output() const {
    if (GetParam().older) std::ofstream(output_) << older_text;
  }

  const TestFolder folder_;
  const std::string output_ = folder_ / "out.h5";
  const std::vector<std::string> inputs_ = make_inputs(folder_, {70, 3, 90}, 4);
};

/// The k-th write of one rank fails, for every k and every rank: chunks, metadata, commits.
TEST_P(ConcatFault, EveryWriteOfEachRank) {
  const FaultCase& fault = GetParam();
  int n_failed = 0;
  for (int victim = 0; victim < fault.n_ranks; ++victim) {
    bool struck = true;
    for (int k = victim % fault.stride; struck && k < 300; k += fault.stride * tier_stride(3)) {
      const std::string what = "write " + std::to_string(k) + " of rank " + std::to_string(victim);
      make_older_output();
      std::vector<StorageProbe> probes(static_cast<std::size_t>(fault.n_ranks));
      StorageProbe& probe = probes[static_cast<std::size_t>(victim)];
      probe.writes_until_failure = k;
      probe.fail_once = fault.once;
      probe.failure_code = fault.code;
      const ConcatRun run = run_concat(fault.n_ranks, request(), &probes);
      struck = probe.writes_until_failure < 0;
      EXPECT_EQ(run.status.ok(), !struck) << what << ": " << text_of(run.status);
      if (run.status.ok()) {
        expect_concatenation(output_, inputs_);
        std::filesystem::remove(output_);
        continue;
      }
      ++n_failed;
      EXPECT_EQ(run.status.code(), fault.code) << what << ": " << text_of(run.status);
      expect_left(run.status, what);
    }
    EXPECT_FALSE(struck);
  }
  EXPECT_GE(n_failed, tier_rounds(8, 3));
}

/// The k-th sync fails.
TEST_P(ConcatFault, EverySyncOfEachRank) {
  const FaultCase& fault = GetParam();
  int n_failed = 0;
  for (int victim = 0; victim < fault.n_ranks; ++victim) {
    bool struck = true;
    for (int k = 0; struck && k < 100; k += fault.stride * tier_stride(3)) {
      const std::string what = "sync " + std::to_string(k) + " of rank " + std::to_string(victim);
      make_older_output();
      std::vector<StorageProbe> probes(static_cast<std::size_t>(fault.n_ranks));
      StorageProbe& probe = probes[static_cast<std::size_t>(victim)];
      for (StorageProbe& each : probes) each.pretend_sync = true;
      probe.syncs_until_failure = k;
      ConcatRequest syncing = request();
      syncing.options.sync = true;
      const ConcatRun run = run_concat(fault.n_ranks, syncing, &probes);
      struck = probe.syncs_until_failure < 0;
      EXPECT_EQ(run.status.ok(), !struck) << what << ": " << text_of(run.status);
      if (run.status.ok()) {
        std::filesystem::remove(output_);
        continue;
      }
      ++n_failed;
      EXPECT_EQ(run.status.code(), Code::io_error) << what << ": " << text_of(run.status);
      expect_left(run.status, what);
    }
    EXPECT_FALSE(struck);
  }
  EXPECT_GE(n_failed, tier_rounds(fault.n_ranks, 2));
}

/// Inputs that change after they were listed, when the output is opened.
class ConcatInputFault : public ConcatFault {
 protected:
  ConcatRun run_spoiled(const std::function<void()>& spoil) {
    ConcatRequest spoiled = request();
    spoiled.options.open_storage = [&](const std::string& name, bool create) {
      if (create) spoil();  // Only rank 0, before the others open the file.
      return open_posix_storage(name, create, false);
    };
    make_older_output();
    ConcatRun run = run_concat(GetParam().n_ranks, spoiled);
    EXPECT_FALSE(run.status.ok());
    EXPECT_EQ(std::filesystem::exists(output_), GetParam().older);
    if (GetParam().older) {
      EXPECT_EQ(whole_text(output_), older_text);
    }
    EXPECT_THAT(run.status.message(), HasSubstr(inputs_[2]));
    return run;
  }
};

TEST_P(ConcatInputFault, Truncated) {
  const std::string saved = whole_text(inputs_[2]);
  const ConcatRun run =
      run_spoiled([&] { std::filesystem::resize_file(inputs_[2], saved.size() / 2); });
  EXPECT_EQ(run.status.code(), Code::corrupt) << text_of(run.status);
  std::ofstream(inputs_[2], std::ios::binary) << saved;
  expect_left(run.status, "truncated", inputs_[2]);
}

TEST_P(ConcatInputFault, Deleted) {
  const std::string saved = whole_text(inputs_[2]);
  const ConcatRun run = run_spoiled([&] { std::filesystem::remove(inputs_[2]); });
  EXPECT_EQ(run.status.code(), Code::not_found) << text_of(run.status);
  std::ofstream(inputs_[2], std::ios::binary) << saved;
  expect_left(run.status, "deleted", inputs_[2]);
}

/// The bytes of a chunk that must be decoded are garbage.
TEST_P(ConcatInputFault, DamagedChunk) {
  const std::string saved = whole_text(inputs_[2]);
  const StoredAt chunk = stored_chunks(inputs_[2], "/a/x").back();
  const ConcatRun run = run_spoiled([&] {
    std::fstream file(inputs_[2], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(chunk.address));
    file << std::string(chunk.n_bytes, '\xff');
  });
  EXPECT_EQ(run.status.code(), Code::corrupt) << text_of(run.status);
  EXPECT_THAT(run.status.message(), HasSubstr("\"/a/x\""));
  std::ofstream(inputs_[2], std::ios::binary) << saved;
  expect_left(run.status, "damaged", inputs_[2]);
}

/// One rank cannot open the output.
TEST_P(ConcatFault, AnOutputThatARankCannotOpen) {
  for (int victim = 0; victim < GetParam().n_ranks; ++victim) {
    make_older_output();
    std::atomic<int> n_opened = 0;
    ConcatRequest spoiled = request();
    spoiled.options.open_storage = [&](const std::string& name,
                                       bool create) -> Result<std::unique_ptr<Storage>> {
      if (n_opened++ == victim) return Status(Code::io_error, "not for this rank");
      return open_posix_storage(name, create, false);
    };
    const ConcatRun run = run_concat(GetParam().n_ranks, spoiled);
    EXPECT_EQ(run.status.code(), Code::io_error) << text_of(run.status);
    expect_left(run.status, "open");
  }
}

const FaultCase fault_cases[] = {
    {"AloneNoSpace", 1, "claimed", Code::no_space, false, false},
    {"AloneOnceCommits", 1, "claimed", Code::io_error, true, true},
    {"TwoOnceOlder", 2, "claimed", Code::io_error, true, false, true},
    {"ThreeDense", 3, "dense", Code::no_space, false, false, true},
    {"ThreeCommits", 3, "claimed", Code::no_space, false, true, false, 3},
    {"TwoDenseCommits", 2, "dense", Code::no_space, false, true, true, 3},
};

std::string name_of(const testing::TestParamInfo<FaultCase>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Storage, ConcatFault, testing::ValuesIn(fault_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Inputs, ConcatInputFault, testing::ValuesIn(fault_cases), name_of);

/// Appending: the k-th write fails. Until the last commit begins, the file is unchanged byte for
/// byte. An interrupted commit is reported; recover then completes it or restores the older file.
TEST(ConcatAppendFault, EveryWriteOfEachRank) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {13, 24, 9});
  ConcatRequest first = small_request({inputs[0], inputs[1]}, output);
  first.chunk_rows = 8;
  ASSERT_TRUE(run_concat(1, first).status.ok());
  const std::string older = whole_text(output);
  ConcatRequest request = small_request({inputs[2]}, output);
  request.append = true;
  request.options.write_buffer_bytes = 100;
  const int n_ranks = 2;
  int n_unchanged = 0;
  int n_cut = 0;
  int n_recovered = 0;
  for (int victim = 0; victim < n_ranks; ++victim) {
    bool struck = true;
    for (int k = 0; struck && k < 300; k += tier_stride(3)) {
      const std::string what = "write " + std::to_string(k) + " of rank " + std::to_string(victim);
      std::ofstream(output, std::ios::binary) << older;
      std::vector<StorageProbe> probes(n_ranks);
      probes[static_cast<std::size_t>(victim)].writes_until_failure = k;
      const ConcatRun run = run_concat(n_ranks, request, &probes);
      struck = probes[static_cast<std::size_t>(victim)].writes_until_failure < 0;
      EXPECT_EQ(run.status.ok(), !struck) << what << ": " << text_of(run.status);
      if (run.status.ok()) {
        expect_concatenation(output, inputs);
        continue;
      }
      EXPECT_EQ(run.status.code(), Code::no_space) << what;
      if (run.status.message().find("was interrupted") != std::string::npos) {
        ++n_cut;
        EXPECT_EQ(victim, 0) << what;
        // Before the journal is complete, nothing has changed. While it exists, recover completes
        // the commit. After its removal the new rows are present. The file never has a part of
        // them.
        const bool begun = std::filesystem::exists(output + ".journal");
        n_recovered += begun ? 1 : 0;
        const Result<RecoverReport> recovered = inspect_and_recover(output, true);
        ASSERT_TRUE(recovered.ok()) << what << ": " << text_of(recovered.status());
        EXPECT_FALSE(std::filesystem::exists(output + ".journal")) << what;
        std::vector<std::string> rows_of = inputs;
        if (!begun && read_elements(output, "/a/x") ==
                          read_elements(inputs[0], "/a/x") + read_elements(inputs[1], "/a/x")) {
          rows_of.pop_back();
        }
        expect_concatenation(output, rows_of);
      } else {
        ++n_unchanged;
        EXPECT_TRUE(whole_text(output) == older) << what << ": " << text_of(run.status);
      }
    }
    EXPECT_FALSE(struck);
  }
  EXPECT_GE(n_unchanged, tier_rounds(4, 4));
  EXPECT_GE(n_cut, tier_rounds(4, 4));
  EXPECT_GE(n_recovered, tier_rounds(2, 2));
}

/// A dead job's unfinished commit must be recovered before anything is read.
TEST(ConcatAppendFault, AnOutputWithAJournalIsRefused) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {13, 24});
  ASSERT_TRUE(run_concat(1, small_request({inputs[0]}, output)).status.ok());
  const std::string older = whole_text(output);
  std::ofstream(output + ".journal") << "of a job that died";
  ConcatRequest request = small_request({inputs[1]}, output);
  request.append = true;
  const ConcatRun run = run_concat(2, request);
  EXPECT_EQ(run.status.code(), Code::corrupt);
  EXPECT_THAT(run.status.message(), HasSubstr("tailrace recover --apply " + output));
  EXPECT_TRUE(whole_text(output) == older);
}

/// Counts the writes that change the opened file in place and that no journal covers.
class WatchedStorage final : public StorageOver {
 public:
  WatchedStorage(std::unique_ptr<Storage> inner, std::atomic<int>& n_in_place,
                 std::atomic<int>& n_bare)
      : StorageOver(std::move(inner)),
        older_bytes_(*inner_->file_bytes()),
        n_in_place_(n_in_place),
        n_bare_(n_bare) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (address < older_bytes_) {
      ++n_in_place_;
      const Result<Journal> journal = read_journal(journal_path_of(inner_->path()));
      const auto covers = [&](const JournalEntry& entry) { return entry.address == address; };
      const bool covered =
          journal.ok() && std::any_of(journal->entries.begin(), journal->entries.end(), covers);
      if (!covered) ++n_bare_;
    }
    return inner_->write_at(address, bytes);
  }

 private:
  std::uint64_t older_bytes_;
  std::atomic<int>& n_in_place_;
  std::atomic<int>& n_bare_;
};

/// A power loss can tear any write in half, including the superblock write that ends an append. By
/// then the journal has all changes of the older file.
TEST(ConcatAppendFault, NothingIsChangedInPlaceWithoutAJournal) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {13, 24, 9});
  ConcatRequest first = small_request({inputs[0], inputs[1]}, output);
  first.chunk_rows = 8;
  ASSERT_TRUE(run_concat(1, first).status.ok());
  std::atomic<int> n_in_place = 0;
  std::atomic<int> n_bare = 0;
  ConcatRequest request = small_request({inputs[2]}, output);
  request.append = true;
  request.options.open_storage = [&](const std::string& name,
                                     bool create) -> Result<std::unique_ptr<Storage>> {
    Result<std::unique_ptr<Storage>> inner = open_posix_storage(name, create, false);
    if (!inner.ok()) return inner.status();
    return std::unique_ptr<Storage>(
        std::make_unique<WatchedStorage>(std::move(*inner), n_in_place, n_bare));
  };
  const ConcatRun run = run_concat(2, request);
  ASSERT_TRUE(run.status.ok()) << text_of(run.status);
  EXPECT_GT(n_in_place, 2);
  EXPECT_EQ(n_bare, 0);
  expect_concatenation(output, inputs);
}

/// A storage fails at the end of a round after which datasets are committed. Every resumed run gets
/// further, until one succeeds.
TEST(ConcatResume, GoesOnAfterManyFailures) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {300, 200, 100}, 4);
  ConcatRequest request = small_request(inputs, output);
  request.chunk_rows = 16;
  request.options.memory_bytes = 24U << 10;
  request.commit_interval_s = 0;
  request.resume = true;
  const int n_ranks = 3;
  ConcatRun run;
  int n_runs = 0;
  int n_kept = 0;
  do {
    std::vector<StorageProbe> probes(n_ranks);
    // Writes of rank 0; every run allows more.
    probes[0].writes_until_failure = 4 * ++n_runs;
    run = run_concat(n_ranks, request, &probes);
    EXPECT_EQ(std::filesystem::exists(output), run.status.ok());
    if (run.status.message().find("--resume") != std::string::npos) ++n_kept;
  } while (!run.status.ok() && n_runs < 100);
  ASSERT_TRUE(run.status.ok()) << text_of(run.status);
  EXPECT_GT(n_runs, 2);
  EXPECT_GT(n_kept, 0);
  expect_concatenation(output, inputs);
}

/// A job that dies, however often, loses no space in the file that the next job continues. This
/// includes space reserved or written for incomplete datasets.
TEST(ConcatResume, LeavesNoSpaceUnused) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {30000, 20000, 10000}, 16);
  for (const int n_ranks : {1, 3}) {
    ConcatRequest request = small_request(inputs, output);
    request.chunk_rows = 512;
    request.options.memory_bytes = 512U << 10;
    request.commit_interval_s = 0;
    request.options.replace = true;
    const ConcatRun whole = run_concat(n_ranks, request);
    ASSERT_TRUE(whole.status.ok()) << text_of(whole.status);
    const auto n_bytes = std::filesystem::file_size(output);
    std::filesystem::remove(output);
    request.resume = true;
    int n_kept = 0;
    for (const std::uint64_t percent : {30U, 60U, 90U}) {
      std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks));
      request.progress = [&](std::uint64_t done, std::uint64_t total) {
        if (100 * done >= percent * total) probes[0].fail_other = true;
      };
      const ConcatRun failed = run_concat(n_ranks, request, &probes);
      ASSERT_FALSE(failed.status.ok());
      n_kept += std::filesystem::exists(output + kPartialSuffix) ? 1 : 0;
    }
    EXPECT_GT(n_kept, 1);
    request.progress = nullptr;
    const ConcatRun last = run_concat(n_ranks, request);
    ASSERT_TRUE(last.status.ok()) << text_of(last.status);
    expect_concatenation(output, inputs);
    // Metadata that were rewritten may leave this much; one dataset's values are more.
    EXPECT_LE(std::filesystem::file_size(output), n_bytes + (16U << 10));
    std::filesystem::remove(output);
  }
}

/// The file cannot get its name, because another object has taken the name meanwhile.
TEST(ConcatFaults, TheLastRename) {
  const TestFolder folder;
  const std::string output = folder / "out.h5";
  const auto inputs = make_inputs(folder, {20, 30});
  ConcatRequest request = small_request(inputs, output);
  request.progress = [&](std::uint64_t, std::uint64_t) {
    std::filesystem::create_directories(output + "/in/the/way");
  };
  for (const int n_ranks : {1, 3}) {
    const ConcatRun run = run_concat(n_ranks, request);
    EXPECT_FALSE(run.status.ok());
    std::filesystem::remove_all(output);
    ConcatRequest again = small_request(inputs, output);
    const ConcatRun second = run_concat(n_ranks, again);
    EXPECT_TRUE(second.status.ok()) << text_of(second.status);
    expect_concatenation(output, inputs);
    std::filesystem::remove(output);
  }
}

}  // namespace
}  // namespace tailrace::test
