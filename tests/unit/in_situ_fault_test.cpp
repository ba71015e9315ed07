// Failures of a deferred step on one rank of several, in every stage. All ranks return the same
// failure from the same call, and no rank waits forever. Committed steps stay, and the file can be
// used unless its metadata could not be written. A rank that hangs fails by ctest's time limit.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include "container_support.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "in_situ_support.hpp"
#include "output/output.hpp"
#include "support/test_tier.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

const std::string kCommon = ",codec=deflate,chunk=8x16";

class HandOverFault : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string options() const { return std::get<0>(GetParam()) + kCommon; }
  int n_ranks() const { return std::get<1>(GetParam()); }
  int last() const { return n_ranks() - 1; }

  const TestFolder folder_;
  const std::string path_ = folder_ / "out.h5";
};

/// Step 0 succeeds, step 1 fails before it is handed over, step 2 succeeds. `spoil` is called on
/// every rank before step 1 ends. @returns the failure of step 1
Status spoiled_step(const std::string& path, const std::string& options, int n_ranks,
                    const std::function<void(InSituRank&)>& spoil) {
  Status failure;
  run_in_situ(n_ranks, path, options, nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.put(1).ok());
    spoil(rank);
    const Status ended = rank.writer->end_step().status();
    expect_same_on_all(*rank.comm, ended);
    if (rank.comm->is_root()) failure = ended;
    const auto waited = rank.writer->wait();
    ASSERT_TRUE(waited.ok());
    EXPECT_FALSE(waited->has_value());  // step 0 was completed by the call that failed
    ASSERT_TRUE(rank.end_step(2).ok());
    const Status closed = rank.writer->close();
    EXPECT_TRUE(closed.ok()) << closed.message();
  });
  expect_steps(path, "/u", {0, 2});
  return failure;
}

TEST_P(HandOverFault, APutOutsideTheShape) {
  const Status failure = spoiled_step(path_, options(), n_ranks(), [&](InSituRank& rank) {
    if (rank.comm->rank() != last()) return;
    EXPECT_FALSE(rank.writer->put(rank.field, {{n_rows, 0}, {1, 1}}, rank.values.data()).ok());
  });
  EXPECT_EQ(failure.code(), Code::bad_coverage) << failure.message();
}

TEST_P(HandOverFault, APutThatIsMissing) {
  const Status failure = spoiled_step(path_, options(), n_ranks(), [&](InSituRank& rank) {
    FieldDefinition definition{"/v", DType::f32, {4}, FieldOptions(), false};
    EXPECT_TRUE(rank.writer->define_field(definition).ok());
  });
  EXPECT_EQ(failure.code(), Code::bad_coverage) << failure.message();
}

TEST_P(HandOverFault, APluginThatIsMissing) {
  const Status failure = spoiled_step(path_, options(), n_ranks(), [&](InSituRank& rank) {
    FieldDefinition definition{"/v", DType::f32, {0}, FieldOptions(), false};
    definition.shape = {4};
    definition.options = in_situ_options("codec=id=32099").field_defaults;
    const auto field = rank.writer->define_field(definition);
    ASSERT_TRUE(field.ok());
    const float values[4] = {};
    if (rank.comm->is_root()) {
      EXPECT_TRUE(rank.writer->put(*field, {{0}, {4}}, values, true).ok());
    }
  });
  EXPECT_EQ(failure.code(), Code::plugin_missing) << failure.message();
}

TEST_P(HandOverFault, AFailureOfTheApplicationsOwn) {
  const Status failure = spoiled_step(path_, options(), n_ranks(), [&](InSituRank& rank) {
    if (rank.comm->rank() == last()) {
      rank.writer->note_failure(Status(Code::internal, "the solver blew up"));
    }
  });
  EXPECT_EQ(failure.code(), Code::internal) << failure.message();
}

/// The last put before close() was invalid; the previous step must be committed nevertheless.
TEST_P(HandOverFault, ABadPutThatCloseFinds) {
  run_in_situ(n_ranks(), path_, options(), nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    if (rank.comm->rank() == last()) {
      EXPECT_FALSE(rank.writer->put(rank.field, {{n_rows, 0}, {1, 1}}, rank.values.data()).ok());
    }
    const Status closed = rank.writer->close();
    expect_same_on_all(*rank.comm, closed);
    EXPECT_EQ(closed.code(), Code::bad_coverage) << closed.message();
  });
  EXPECT_FALSE(std::filesystem::exists(path_ + kPartialSuffix));
  expect_steps(path_, "/u", {0});
}

/// A chunk that can never be encoded under the cap is detected at hand-over and reported at
/// completion.
TEST_P(HandOverFault, AMemoryCapThatIsTooSmall) {
  const std::string options = std::get<0>(GetParam()) + ",codec=deflate,chunk=24x40,memory=2M";
  run_in_situ(n_ranks(), path_, options, nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    FieldDefinition definition{"/v", DType::f64, {512, 512}, FieldOptions(), false};
    definition.options = in_situ_options("codec=deflate,chunk=512x512").field_defaults;
    const auto field = rank.writer->define_field(definition);
    const std::vector<double> values(512 * 512);
    if (rank.comm->rank() == last()) {
      ASSERT_TRUE(rank.writer->put(*field, {{0, 0}, {512, 512}}, values.data()).ok());
    }
    ASSERT_TRUE(rank.writer->end_step().ok());
    const Status waited = rank.writer->wait().status();
    expect_same_on_all(*rank.comm, waited);
    EXPECT_EQ(waited.code(), Code::out_of_memory) << waited.message();
    EXPECT_NE(waited.message().find("; step 1 is lost, and the last step known to be in the "
                                    "file is step 0 (counted from 0)"),
              std::string::npos)
        << waited.message();
    EXPECT_EQ(rank.writer->last_committed_step(), 0U);
    const auto next = rank.end_step(1);
    ASSERT_TRUE(next.ok()) << next.status().message();
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path_, "/u", {0, 1});
}

/// A plug-in that refuses a chunk, with and without encode threads: the chunk's rank fails.
TEST_P(HandOverFault, AChunkThatCannotBeEncoded) {
  const auto plain = in_situ_options("codec=sz3,bound=abs=0.1,verify=strict");
  std::atomic<bool> installed = true;
  run_in_situ(n_ranks(), path_, options(), nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    FieldDefinition definition{"/v", DType::f32, {16, 16, 16}, plain.field_defaults, false};
    const auto field = rank.writer->define_field(definition);
    std::vector<float> values(16 * 16 * 16, std::numeric_limits<float>::quiet_NaN());
    if (rank.comm->rank() == last()) {
      ASSERT_TRUE(rank.writer->put(*field, {{0, 0, 0}, {16, 16, 16}}, values.data()).ok());
    }
    ASSERT_TRUE(rank.put(1).ok());
    const Status ended = rank.writer->end_step().status();
    expect_same_on_all(*rank.comm, ended);
    if (ended.code() == Code::plugin_missing) {
      installed = false;
    } else {
      ASSERT_TRUE(ended.ok()) << ended.message();
      rank.writer->idle(1, {});
      const Status waited = rank.writer->wait().status();
      expect_same_on_all(*rank.comm, waited);
      EXPECT_EQ(waited.code(), Code::codec_failed) << waited.message();
    }
    ASSERT_TRUE(rank.end_step(2).ok());
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path_, "/u", {0, 2});
  if (!installed) GTEST_SKIP() << "no plug-in found: set HDF5_PLUGIN_PATH";
}

/// One rank's k-th write fails, for every k and rank, in data or metadata. All ranks' calls agree,
/// and the file has the steps whose completion was reported.
TEST_P(HandOverFault, EveryWriteOfEachRank) {
  for (int victim = 0; victim < n_ranks(); ++victim) {
    bool failed = true;
    for (int k = 0; failed && k < 200; k += tier_stride(3)) {
      failed = false;
      std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
      std::vector<std::uint64_t> completed;
      bool created = true;
      run_in_situ(n_ranks(), path_, options() + ",replace=on", &probes, [&](InSituRank& rank) {
        rank.comm->barrier();
        if (rank.comm->rank() == victim) {
          probes[static_cast<std::size_t>(victim)].writes_until_failure = k;
        }
        rank.comm->barrier();
        std::uint64_t step = 0;
        Status ended;
        for (; step < 3 && ended.ok(); ++step) {
          const Result<StepReport> report = rank.end_step(step);
          ended = report.status();
          expect_same_on_all(*rank.comm, ended);
          if (rank.comm->is_root() && ended.ok() && report->completed) {
            completed.push_back(report->step_index);
          }
          rank.writer->idle(0.001, {});
        }
        const Status closed = rank.writer->close();
        expect_same_on_all(*rank.comm, closed);
        if (!rank.comm->is_root()) return;
        failed = !ended.ok() || !closed.ok();
        if (!failed) completed.push_back(2);
        const Status& failure = ended.ok() ? closed : ended;
        if (failed) {
          EXPECT_EQ(failure.code(), Code::no_space) << failure.message();
        }
        // A report means that a step was published; its commit may still fail in the background.
        created = std::filesystem::exists(path_);
      });
      EXPECT_FALSE(std::filesystem::exists(path_ + kPartialSuffix)) << victim << " " << k;
      if (!created) continue;
      const std::size_t n_bytes = n_rows * n_columns * sizeof(float);
      const std::size_t n_entries = read_field(path_, "/u").size() / n_bytes;
      EXPECT_GE(n_entries + 1, completed.size()) << victim << " " << k;
      std::vector<std::uint64_t> steps(n_entries);
      for (std::size_t i = 0; i < n_entries; ++i) steps[i] = i;
      expect_steps(path_, "/u", steps);
      std::filesystem::remove(path_);
    }
    EXPECT_FALSE(failed);
  }
}

TEST_P(HandOverFault, ASyncBehindTheWrites) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  run_in_situ(n_ranks(), path_, options(), &probes, [&](InSituRank& rank) {
    StorageProbe& probe = probes[static_cast<std::size_t>(rank.comm->rank())];
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());
    if (rank.comm->rank() == last()) probe.fail_sync = true;
    ASSERT_TRUE(rank.end_step(1).ok());
    const Status waited = rank.writer->wait().status();
    expect_same_on_all(*rank.comm, waited);
    EXPECT_EQ(waited.code(), Code::io_error) << waited.message();
    probe.fail_sync = false;
    ASSERT_TRUE(rank.end_step(2).ok());
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path_, "/u", {0, 2});
}

/// A thread of rank 0 writes the commit. The next call that can inform all ranks reports its
/// failure, and so does every later call.
TEST_P(HandOverFault, ACommitInTheBackground) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  const std::string no_gifts = options() + (options().find("in_situ") < 9 ? ",writers=each" : "");
  run_in_situ(n_ranks(), path_, no_gifts, &probes, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());
    probes[0].fail_other = true;
    const auto first = rank.end_step(1);
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_FALSE(first->completed);
    const Status waited = rank.writer->wait().status();
    expect_same_on_all(*rank.comm, waited);
    EXPECT_EQ(waited.code(), Code::no_space) << waited.message();
    EXPECT_NE(waited.message().find("last commit"), std::string::npos) << waited.message();
    rank.comm->barrier();
    probes[0].fail_other = false;
    EXPECT_NE(waited.message().find("and step 1 may be lost"), std::string::npos);
    const std::string cause = waited.message().substr(0, waited.message().find("step 1"));
    for (const Status& later :
         {rank.end_step(2).status(), rank.writer->wait().status(), rank.writer->close()}) {
      EXPECT_EQ(later.message(), cause + "steps 1 and 2 may be lost (counted from 0)");
    }
  });
  expect_steps(path_, "/u", {0});
}

/// Rank 0's application does not wait while metadata is made, on one node or several: another
/// thread holds HDF5's lock here.
TEST_P(HandOverFault, HDF5IsHeldUpInTheBackground) {
  if (!Hdf5File::can_be_used_concurrently()) GTEST_SKIP() << "this HDF5 is for one thread alone";
  for (const bool several_nodes : {false, true}) {
    std::optional<TailsWantService> nodes;
    if (several_nodes) nodes.emplace();
    run_in_situ(n_ranks(), path_, options() + ",replace=on", nullptr, [&](InSituRank& rank) {
      ASSERT_TRUE(rank.end_step(0).ok());
      ASSERT_TRUE(rank.writer->wait().ok());
      ASSERT_TRUE(rank.end_step(1).ok());
      std::atomic<bool> held = false;
      std::atomic<bool> returned = false;
      std::thread holder;
      if (rank.comm->is_root()) {
        holder = std::thread([&] {
          const Hdf5Scope scope;
          held = true;
          EXPECT_TRUE(happens([&] { return returned.load(); }));
        });
        EXPECT_TRUE(happens([&] { return held.load(); }));
      }
      rank.comm->barrier();
      const auto second = rank.end_step(2);
      returned = true;
      if (holder.joinable()) holder.join();
      ASSERT_TRUE(second.ok()) << second.status().message();
      EXPECT_TRUE(second->completed);
      EXPECT_TRUE(rank.writer->close().ok());
    });
    expect_steps(path_, "/u", {0, 1, 2});
  }
}

/// Metadata that cannot be made in the background, followed by a step that fails before it is
/// published. All ranks receive the first failure, and close() commits nothing incomplete.
TEST_P(HandOverFault, MetadataInTheBackgroundBeforeAStepThatFails) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  run_in_situ(n_ranks(), path_, options(), &probes, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());
    ASSERT_TRUE(rank.writer->set_attribute("/u/no/group/", "name", {std::string("v")}).ok());
    ASSERT_TRUE(rank.end_step(1).ok());
    const Status second = rank.end_step(2).status();
    expect_same_on_all(*rank.comm, second);
    probes[static_cast<std::size_t>(rank.comm->rank())].fail_sync = rank.comm->rank() == last();
    const Status waited = second.ok() ? rank.writer->wait().status() : second;
    expect_same_on_all(*rank.comm, waited);
    EXPECT_NE(waited.message().find("last commit"), std::string::npos) << waited.message();
    EXPECT_NE(waited.message().find("/u/no"), std::string::npos) << waited.message();
    rank.comm->barrier();
    EXPECT_NE(waited.message().find("step 0, and steps 1 and 2 may be lost"), std::string::npos)
        << waited.message();
    EXPECT_EQ(rank.writer->close().message(), waited.message());
  });
  expect_steps(path_, "/u", {0});
}

/// The first commit cannot give the file its name.
TEST_P(HandOverFault, ARenameInTheBackground) {
  run_in_situ(n_ranks(), path_, options(), nullptr, [&](InSituRank& rank) {
    if (rank.comm->is_root()) std::filesystem::create_directories(path_ + "/in/the/way");
    ASSERT_TRUE(rank.end_step(0).ok());
    const Status waited = rank.writer->wait().status();
    expect_same_on_all(*rank.comm, waited);
    EXPECT_FALSE(waited.ok());
    EXPECT_FALSE(rank.writer->close().ok());
  });
  EXPECT_TRUE(std::filesystem::is_directory(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + kPartialSuffix));
}

/// The application sets a background mark and never ends it. end_step needs memory, so chunks must
/// be written nevertheless.
TEST_P(HandOverFault, AMarkThatIsNeverEnded) {
  const std::string options = std::get<0>(GetParam()) + ",codec=none,chunk=64x64,memory=1M";
  const Shape shape = {4096, 256};  // 4 MiB
  run_in_situ(n_ranks(), path_, options, nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    rank.writer->mark(Lane::io, true);
    FieldDefinition definition{"/v", DType::f32, shape, FieldOptions(), false};
    definition.options = in_situ_options("codec=none,chunk=64x64").field_defaults;
    const auto field = rank.writer->define_field(definition);
    const std::vector<std::byte> values = values_of(shape, whole_box(shape), DType::f32);
    if (rank.comm->rank() == last()) {
      ASSERT_TRUE(rank.writer->put(*field, whole_box(shape), values.data()).ok());
    }
    ASSERT_TRUE(rank.end_step(1).ok());
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path_, "/u", {0, 1});
  EXPECT_EQ(read_field(path_, "/v"), values_of(shape, whole_box(shape), DType::f32));
}

/// The writer is destroyed while the application's mark delays writes, so that encoding has no
/// memory.
TEST_P(HandOverFault, AWriterThatIsDroppedBehindAMark) {
  const std::string options =
      std::get<0>(GetParam()) + ",codec=none,chunk=64x64,memory=1M,threads=2";
  const Shape shape = {4096, 256};  // 4 MiB
  run_in_situ(n_ranks(), path_, options, nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());
    FieldDefinition definition{"/v", DType::f32, shape, FieldOptions(), false};
    definition.options = in_situ_options("codec=none,chunk=64x64").field_defaults;
    const auto field = rank.writer->define_field(definition);
    const std::vector<std::byte> values = values_of(shape, whole_box(shape), DType::f32);
    if (rank.comm->is_root()) {
      ASSERT_TRUE(rank.writer->put(*field, whole_box(shape), values.data()).ok());
    }
    rank.writer->mark(Lane::io, true);
    ASSERT_TRUE(rank.end_step(1).ok());
    rank.comm->barrier();
    rank.writer.reset();
  });
  expect_steps(path_, "/u", {0});
}

INSTANTIATE_TEST_SUITE_P(Modes, HandOverFault,
                         testing::Combine(testing::Values("mode=async", "mode=in_situ",
                                                          "mode=in_situ,threads=1"),
                                          testing::Values(1, 2, 4)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param).substr(5);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == ',' || c == '='; }, '_');
                           return name + "_on_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace tailrace::test
