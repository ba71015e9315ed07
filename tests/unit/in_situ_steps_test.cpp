// Edge cases of deferred steps: fields that appear and disappear, empty steps, ranks without data,
// an opened file. Every way to commit, odd idle times, and background work while the application
// calls nothing.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <optional>

#include "container_support.hpp"
#include "in_situ_support.hpp"

namespace tailrace::test {
namespace {

class HandOverSteps : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string mode() const { return std::get<0>(GetParam()); }
  int n_ranks() const { return std::get<1>(GetParam()); }

  const TestFolder folder_;
  const std::string path_ = folder_ / "out.h5";
};

/// New fields are defined while a step is in flight, so many that the table of fields moves. Each
/// is put in one step only. One step omits /u, and one step omits everything.
TEST_P(HandOverSteps, FieldsComeAndGo) {
  run_in_situ(n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", nullptr,
              [&](InSituRank& rank) {
                for (std::uint64_t step = 0; step < 6; ++step) {
                  for (std::uint64_t i = 0; i < 7 && step != 3; ++i) {
                    const std::string path = "/s" + std::to_string(step) + "/f" + std::to_string(i);
                    const auto field = rank.writer->define_field(
                        {path, DType::f32, {n_rows, n_columns}, FieldOptions(), false});
                    ASSERT_TRUE(field.ok());
                    const std::vector<float> values = slab_values(10 * step + i, rank.box);
                    ASSERT_TRUE(rank.writer->put(*field, rank.box, values.data(), true).ok());
                  }
                  if (step % 3 != 0) {
                    ASSERT_TRUE(rank.put(step).ok());
                  }
                  if (step == 0) {
                    ASSERT_TRUE(rank.put(step).ok());
                  }
                  const auto report = rank.writer->end_step();
                  ASSERT_TRUE(report.ok()) << report.status().message();
                  EXPECT_EQ(report->completed, step > 0);
                  if (step > 0) {
                    EXPECT_EQ(report->step_index, step - 1);
                  }
                  if (step == 4) {
                    EXPECT_TRUE(report->fields.empty());  // the report is that of step 3
                  }
                }
                EXPECT_TRUE(rank.writer->close().ok());
              });
  expect_steps(path_, "/u", {0, 1, 2, 4, 5});
  for (const std::uint64_t step : {0, 1, 2, 4, 5}) {
    for (std::uint64_t i = 0; i < 7; ++i) {
      const std::string path = "/s" + std::to_string(step) + "/f" + std::to_string(i);
      expect_steps(path_, path, {10 * step + i});
    }
  }
}

TEST_P(HandOverSteps, RanksWithoutDataAndFieldsWithoutElements) {
  run_in_situ(
      n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", nullptr, [&](InSituRank& rank) {
        const auto empty =
            rank.writer->define_field({"/empty", DType::f64, {0, 3}, FieldOptions(), false});
        const auto scalar =
            rank.writer->define_field({"/scalar", DType::f64, {}, FieldOptions(), false});
        ASSERT_TRUE(empty.ok() && scalar.ok());
        const double seven = 7;
        const std::vector<float> all = slab_values(0, {{0, 0}, {n_rows, n_columns}});
        if (rank.comm->rank() == n_ranks() - 1) {
          ASSERT_TRUE(rank.writer->put(rank.field, {{0, 0}, {n_rows, n_columns}}, all.data()).ok());
          ASSERT_TRUE(rank.writer->put(*scalar, {{}, {}}, &seven).ok());
        }
        ASSERT_TRUE(rank.writer->put(*empty, {{0, 0}, {0, 3}}, nullptr).ok());
        ASSERT_TRUE(rank.writer->end_step().ok());
        const auto report = rank.writer->wait();
        ASSERT_TRUE(report.ok() && report->has_value()) << report.status().message();
        EXPECT_EQ((*report)->fields.size(), 3U);
        EXPECT_TRUE(rank.writer->close().ok());
      });
  expect_steps(path_, "/u", {0});
  double scalar = 0;
  const std::vector<std::byte> bytes = read_field(path_, "/scalar");
  ASSERT_EQ(bytes.size(), sizeof scalar);
  std::memcpy(&scalar, bytes.data(), sizeof scalar);
  EXPECT_EQ(scalar, 7);
}

/// Every form of writing a commit, from the caller's memory or from a copy.
TEST_P(HandOverSteps, EveryWayToTheDisk) {
  for (const std::string way :
       {"journal=on", "align=direct", "fsync=off", "journal=on,hold=promise",
        "align=direct,codec=none,hold=promise", "codec=none,align=direct"}) {
    run_in_situ(n_ranks(), path_, mode() + ",replace=on,codec=deflate,chunk=8x16," + way, nullptr,
                [&](InSituRank& rank) {
                  for (std::uint64_t step = 0; step < 4; ++step) {
                    const auto report = rank.end_step(step);
                    ASSERT_TRUE(report.ok()) << way << ": " << report.status().message();
                    rank.writer->idle(0.001, {});
                  }
                  const Status closed = rank.writer->close();
                  EXPECT_TRUE(closed.ok()) << way << ": " << closed.message();
                });
    SCOPED_TRACE(way);
    expect_steps(path_, "/u", {0, 1, 2, 3});
  }
}

/// An opened file is read before each step: after the previous commit is written, not during it.
TEST_P(HandOverSteps, GoOnInAnOpenedFile) {
  const std::string options = mode() + ",codec=deflate,chunk=8x16";
  run_in_situ(n_ranks(), path_, options, nullptr, [&](InSituRank& rank) {
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->close().ok());
  });
  run_ranks(n_ranks(), [&](std::unique_ptr<Comm> comm) {
    InSituRank rank;
    rank.comm = comm.get();
    rank.box = slab_of(comm->rank(), n_ranks());
    const FileOptions file_options = in_situ_options(options);
    auto writer = Writer::open(std::move(comm), path_, file_options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    rank.writer = std::move(*writer);
    rank.define(file_options.field_defaults);
    for (std::uint64_t step = 1; step < 4; ++step) {
      const auto field = rank.writer->define_field(
          {"/g" + std::to_string(step), DType::f32, {n_rows, n_columns}, FieldOptions(), false});
      const std::vector<float> values = slab_values(step, rank.box);
      ASSERT_TRUE(rank.writer->put(*field, rank.box, values.data(), true).ok());
      const auto report = rank.end_step(step);
      ASSERT_TRUE(report.ok()) << report.status().message();
    }
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path_, "/u", {0, 1, 2, 3});
  expect_steps(path_, "/g3", {3});
}

/// Callbacks for a completed step run on the calling thread.
TEST_P(HandOverSteps, CallbacksComeWithinTheCalls) {
  run_in_situ(n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", nullptr,
              [&](InSituRank& rank) {
                const auto caller = std::this_thread::get_id();
                int n_before = 0;
                int n_after = 0;
                int n_progress = 0;
                rank.writer->on_progress([&](const Progress& progress) {
                  ++n_progress;
                  EXPECT_EQ(std::this_thread::get_id(), caller);
                  EXPECT_LE(progress.bytes_done, progress.bytes_total);
                });
                rank.writer->on_metadata(
                    [&](Hdf5File&) {
                      ++n_before;
                      return Status();
                    },
                    [&](Hdf5File&) {
                      ++n_after;
                      return n_after == 2 ? Status(Code::internal, "no more") : Status();
                    });
                ASSERT_TRUE(rank.end_step(0).ok());
                EXPECT_EQ(n_before, 0);
                ASSERT_TRUE(rank.end_step(1).ok());
                EXPECT_EQ(n_before, rank.comm->is_root() ? 1 : 0);
                EXPECT_GT(n_progress, 0);
                const Status waited = rank.writer->wait().status();
                expect_same_on_all(*rank.comm, waited);
                EXPECT_EQ(waited.code(), Code::internal) << waited.message();
                EXPECT_NE(rank.writer->close().message().find("no more"), std::string::npos);
              });
  expect_steps(path_, "/u", {0});
}

/// The lane syncs after the last chunk without any call of the application.
TEST_P(HandOverSteps, AreSyncedBehindTheLastChunk) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  run_in_situ(n_ranks(), path_, mode() + ",threads=1,codec=deflate,chunk=8x16,writers=each",
              &probes, [&](InSituRank& rank) {
                const StorageProbe& probe = probes[static_cast<std::size_t>(rank.comm->rank())];
                ASSERT_TRUE(rank.end_step(0).ok());
                EXPECT_TRUE(happens([&] { return probe.n_data > 0 && probe.n_unsynced == 0; }));
                rank.comm->barrier();
                const auto report = rank.writer->wait();
                ASSERT_TRUE(report.ok() && report->has_value());
                EXPECT_GT((*report)->sync_s, 0);
                EXPECT_TRUE(rank.writer->close().ok());
              });
  for (const StorageProbe& probe : probes) EXPECT_EQ(probe.n_unsynced, 0);
}

/// Without encode threads nothing is encoded before completion; the sync then precedes the commit.
TEST_P(HandOverSteps, AreSyncedBeforeTheirCommit) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  run_in_situ(n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", &probes,
              [&](InSituRank& rank) {
                const StorageProbe& probe = probes[static_cast<std::size_t>(rank.comm->rank())];
                for (std::uint64_t step = 0; step < 3; ++step) {
                  ASSERT_TRUE(rank.end_step(step).ok());
                  ASSERT_TRUE(rank.writer->wait().ok());
                  EXPECT_EQ(probe.n_unsynced, 0);
                }
                EXPECT_TRUE(rank.writer->close().ok());
              });
}

TEST_P(HandOverSteps, FsyncOffSyncsNothing) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  run_in_situ(n_ranks(), path_, mode() + ",fsync=off,codec=deflate,chunk=8x16", &probes,
              [&](InSituRank& rank) {
                ASSERT_TRUE(rank.end_step(0).ok());
                EXPECT_TRUE(rank.writer->close().ok());
              });
  for (const StorageProbe& probe : probes) EXPECT_EQ(probe.n_syncs, 0);
}

/// Invalid idle times return without losing data; so do marks that do not match.
TEST_P(HandOverSteps, OddIdleTimes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  run_in_situ(
      n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", nullptr, [&](InSituRank& rank) {
        Writer& writer = *rank.writer;
        const auto odd = [&] {
          for (const double seconds :
               {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), -infinity}) {
            writer.idle(seconds, {});
          }
          writer.idle(-1, [] { return false; });
          writer.idle(infinity, [] { return true; });
          int n_asked = 0;
          writer.idle(infinity, [&] { return ++n_asked == 3; });
          EXPECT_EQ(n_asked, 3);
          n_asked = 0;
          writer.idle(std::numeric_limits<double>::quiet_NaN(), [&] { return ++n_asked == 3; });
          EXPECT_EQ(n_asked, 3);
          writer.mark(Lane::io, false);
          writer.mark(Lane::main, false);
          writer.mark(Lane::io, true);
          writer.mark(Lane::io, true);
          writer.mark(Lane::main, true);
        };
        odd();
        for (std::uint64_t step = 0; step < 4; ++step) {
          ASSERT_TRUE(rank.end_step(step).ok());
          odd();
        }
        EXPECT_TRUE(writer.close().ok());
      });
  expect_steps(path_, "/u", {0, 1, 2, 3});
}

/// A caller that passes its own wait function is polled once all chunks are encoded, not
/// repeatedly.
TEST_P(HandOverSteps, SleepsWhenNothingIsLeftForTheThread) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  run_in_situ(n_ranks(), path_, mode() + ",codec=deflate,chunk=8x16", nullptr,
              [&](InSituRank& rank) {
                Writer& writer = *rank.writer;
                for (std::uint64_t step = 0; step < 4; ++step) {
                  ASSERT_TRUE(rank.end_step(step).ok());
                  int n_asked = 0;
                  int n_waited = 0;
                  bool over = false;
                  const auto done = [&] { return ++n_asked, over; };
                  writer.idle(infinity, done, [&] { over = ++n_waited > 0; });
                  EXPECT_EQ(n_waited, 1);
                  n_asked = 0;
                  writer.idle(infinity, done, [&] { ++n_waited; });
                  EXPECT_EQ(n_asked, 1);
                  EXPECT_EQ(n_waited, 1);
                  // A wait function that returns too early is not called again.
                  over = false;
                  writer.idle(
                      infinity, [&] { return ++n_asked > 5; }, [&] { ++n_waited; });
                  EXPECT_EQ(n_waited, 2);
                  EXPECT_EQ(n_asked, 6);
                  const auto report = writer.wait();
                  ASSERT_TRUE(report.ok());
                  ASSERT_TRUE(report->has_value());
                  const bool on_this_thread = mode().find("in_situ") != std::string::npos;
                  EXPECT_EQ((*report)->idle_encode_s > 0, on_this_thread);
                  EXPECT_EQ((*report)->n_delayed_obstacles, 0U);
                }
                EXPECT_TRUE(writer.close().ok());
              });
  expect_steps(path_, "/u", {0, 1, 2, 3});
}

INSTANTIATE_TEST_SUITE_P(Modes, HandOverSteps,
                         testing::Combine(testing::Values("mode=async", "mode=in_situ"),
                                          testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param).substr(5) + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

/// Mode sync: the calls of idle time only wait for `done`.
TEST(HandOverSyncMode, IdleTimeOnlyWaits) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  run_in_situ(1, path, "codec=deflate,chunk=8x16", nullptr, [&](InSituRank& rank) {
    for (std::uint64_t step = 0; step < 2; ++step) {
      const auto report = rank.end_step(step);
      ASSERT_TRUE(report.ok());
      EXPECT_TRUE(report->completed);
      EXPECT_EQ(report->step_index, step);
      int n_asked = 0;
      rank.writer->idle(10, [&] { return ++n_asked == 3; });
      EXPECT_EQ(n_asked, 3);
      int n_waited = 0;
      rank.writer->idle(
          10, [&] { return n_waited == 1; }, [&] { ++n_waited; });
      EXPECT_EQ(n_waited, 1);
      rank.writer->idle(1e9, {});
      const auto waited = rank.writer->wait();
      ASSERT_TRUE(waited.ok());
      EXPECT_FALSE(waited->has_value());
    }
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_steps(path, "/u", {0, 1});
}

/// The cap covers everything: copies, pieces of other ranks, encoded chunks, and the window in
/// which ranks of a node store chunks for each other.
TEST(HandOverMemoryOfRanks, StaysUnderTheCapInEveryMode) {
  constexpr std::uint64_t cap = 4U << 20;
  const Shape shape = {2048, 1024};  // 8 MiB
  for (const std::string options :
       {"mode=async", "mode=async,hold=promise", "mode=in_situ,writers=each",
        "mode=in_situ,hold=promise", "mode=in_situ,threads=2"}) {
    const TestFolder folder;
    const std::string path = folder / "out.h5";
    run_in_situ(2, path, options + ",memory=4MiB,codec=deflate", nullptr, [&](InSituRank& rank) {
      FieldDefinition definition{"/v", DType::f32, shape, FieldOptions(), false};
      definition.options = in_situ_options("codec=deflate,chunk=64x128").field_defaults;
      definition.options.over_time = true;
      const auto field = rank.writer->define_field(definition);
      // Columns, cut within chunks: every second chunk of a row has pieces of both ranks.
      const std::uint64_t cut = 200;
      const Box box =
          rank.comm->rank() == 0 ? Box{{0, 0}, {2048, cut}} : Box{{0, cut}, {2048, 1024 - cut}};
      const std::vector<std::byte> values = values_of(shape, box, DType::f32);
      for (std::uint64_t step = 0; step < 3; ++step) {
        ASSERT_TRUE(rank.put(step).ok());
        ASSERT_TRUE(rank.writer->put(*field, box, values.data()).ok());
        ASSERT_TRUE(rank.writer->end_step().ok());
        const auto report = rank.writer->wait();
        ASSERT_TRUE(report.ok() && report->has_value()) << report.status().message();
        EXPECT_LE((*report)->peak_memory_bytes, cap) << options;
        EXPECT_GT((*report)->moved_bytes, 0U);
        const bool window = options.find("in_situ") != std::string::npos &&
                            options.find("writers=each") == std::string::npos;
        EXPECT_GT((*report)->peak_memory_bytes, window ? cap / 8 : 0U) << options;
      }
      EXPECT_TRUE(rank.writer->close().ok());
    });
    expect_steps(path, "/u", {0, 1, 2});
  }
}

// --- Writer::last_committed_step: the last step that is certainly in the file.

std::unique_ptr<Writer> writer_with(const std::string& path, const std::string& text) {
  FileOptions options;
  EXPECT_TRUE(apply_file_options(text, options).ok());
  options.sync = false;
  Result<std::unique_ptr<Writer>> writer = Writer::create(make_self_comm(), path, options);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  FieldDefinition definition{"/u", DType::f32, {4}, options.field_defaults, false};
  EXPECT_TRUE((*writer)->define_field(definition).ok());
  return std::move(*writer);
}

/// Ends a step. @returns the last step that is certainly in the file then.
std::optional<std::uint64_t> last_after_step(Writer& writer) {
  constexpr std::array<float, 4> values{1, 2, 3, 4};
  EXPECT_TRUE(writer.put(0, {{0}, {4}}, values.data(), true).ok());
  const Result<StepReport> ended = writer.end_step();
  EXPECT_TRUE(ended.ok()) << ended.status().message();
  return writer.last_committed_step();
}

TEST(LastStep, IsTheOneThatWasEndedInModeSync) {
  const TestFolder folder;
  const auto writer = writer_with(folder / "sync.h5", "codec=deflate,over-time=on");
  EXPECT_EQ(writer->last_committed_step(), std::nullopt);
  EXPECT_EQ(last_after_step(*writer), 0U);
  EXPECT_EQ(last_after_step(*writer), 1U);
  EXPECT_TRUE(writer->close().ok());
}

TEST(LastStep, IsTwoStepsBehindInModeAsyncUntilSomebodyWaits) {
  const TestFolder folder;
  const auto writer = writer_with(folder / "async.h5", "codec=deflate,over-time=on,mode=async");
  EXPECT_EQ(last_after_step(*writer), std::nullopt);
  EXPECT_EQ(last_after_step(*writer), std::nullopt);
  EXPECT_EQ(last_after_step(*writer), 0U);
  EXPECT_TRUE(writer->wait().ok());
  EXPECT_EQ(writer->last_committed_step(), 2U);
  EXPECT_TRUE(writer->close().ok());
}

TEST(LastStep, LeavesOutStepsThatWaitForAChunkOfSeveral) {
  const TestFolder folder;
  const auto sync = writer_with(folder / "sync.h5", "codec=deflate,over-time=on,chunk=3x4");
  EXPECT_EQ(last_after_step(*sync), std::nullopt);
  EXPECT_EQ(last_after_step(*sync), std::nullopt);
  EXPECT_EQ(last_after_step(*sync), 2U);
  EXPECT_EQ(last_after_step(*sync), 2U);
  EXPECT_TRUE(sync->close().ok());
  const auto async =
      writer_with(folder / "async.h5", "codec=deflate,over-time=on,chunk=2x4,mode=async");
  for (int step = 0; step < 3; ++step) EXPECT_EQ(last_after_step(*async), std::nullopt);
  EXPECT_TRUE(async->wait().ok());
  EXPECT_EQ(async->last_committed_step(), 1U);
  EXPECT_TRUE(async->close().ok());
}

TEST(LastStep, CountsStepsThatFailed) {
  const TestFolder folder;
  const auto writer = writer_with(folder / "failed.h5", "codec=deflate,over-time=on");
  EXPECT_EQ(last_after_step(*writer), 0U);
  writer->note_failure(Status(Code::internal, "the solver blew up"));
  EXPECT_FALSE(writer->end_step().ok());
  EXPECT_EQ(writer->last_committed_step(), 0U);
  EXPECT_EQ(last_after_step(*writer), 2U);
  EXPECT_TRUE(writer->close().ok());
}

}  // namespace
}  // namespace tailrace::test
