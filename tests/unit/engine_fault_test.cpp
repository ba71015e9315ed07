// Failures in the engine: the same error on every rank, no rank left waiting, and a file that is
// complete or absent. Each collective stage of src/write/write.cpp has its failing rank here.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/recover.hpp"
#include "output/output.hpp"
#include "support/options_of.hpp"
#include "support/test_tier.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

/// A storage whose writes fail from the k-th one on, counted over all ranks that share the counter.
class FailingStorage final : public StorageOver {
 public:
  FailingStorage(std::unique_ptr<Storage> inner, std::atomic<int>& countdown, Code code)
      : StorageOver(std::move(inner)), countdown_(countdown), code_(code) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (countdown_.fetch_sub(1) <= 0) return Status(code_, "write refused by the test");
    return inner_->write_at(address, bytes);
  }
  Status extend(std::uint64_t n_bytes) override {
    if (countdown_.load() <= 0) return Status(code_, "extension refused by the test");
    return inner_->extend(n_bytes);
  }
  Status sync() override {
    if (countdown_.load() <= 0) return Status(code_, "sync refused by the test");
    return inner_->sync();
  }

 private:
  std::atomic<int>& countdown_;
  Code code_;
};

/// Expects the same failure from all ranks and returns it.
Status same_failure(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), statuses[0].code());
    EXPECT_EQ(status.message(), statuses[0].message());
  }
  return statuses[0];
}

/// Creates a file, defines one 8x8 i32 field, calls `put` on each rank, and ends the step. Returns
/// all ranks' statuses.
template <class Put>
Status failing_step(int n_ranks, const std::string& options, Put&& put) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  std::vector<Status> statuses(static_cast<std::size_t>(n_ranks));
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const FileOptions file_options = options_of(options);
    auto writer = Writer::create(std::move(comm), path, file_options);
    ASSERT_TRUE(writer.ok());
    auto index =
        (*writer)->define_field({"/f", DType::i32, {8, 8}, file_options.field_defaults, false});
    ASSERT_TRUE(index.ok());
    put(**writer, *index, rank);
    statuses[static_cast<std::size_t>(rank)] = (*writer)->end_step().status();
    EXPECT_TRUE((*writer)->close().ok());
  });
  EXPECT_FALSE(std::filesystem::exists(path + kPartialSuffix));
  return same_failure(statuses);
}

const std::vector<std::int32_t> kValues(64, 7);

class EngineFault : public ::testing::TestWithParam<int> {};

/// Every message about a shared chunk may lack memory: a question, an answer, or the reply that
/// there is nothing to send. The other ranks must not wait for it.
TEST(EngineFaultPosts, AMessageWithoutMemoryFailsTheStepOnAllRanks) {
  constexpr int n_ranks = 3;
  int n_failed = 0;
  int n_written = 0;
  for (const char* options : {"chunk=4x4,codec=deflate", "chunk=4x4,codec=deflate,mode=async",
                              "chunk=4x4,codec=deflate,layout=dense"}) {
    for (int rank = 0; rank < n_ranks; ++rank) {
      for (int first = 0; first < 10; first += tier_stride(3)) {
        for (const int n_posts : {1, 2, 3}) {
          const TestFolder folder;
          std::vector<Status> statuses(n_ranks);
          const PostsWithoutMemory refused(rank, first, n_posts);
          run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
            const auto own = static_cast<std::uint64_t>(comm->rank());
            const FileOptions file_options = options_of(options);
            auto writer = Writer::create(std::move(comm), folder / "out.h5", file_options);
            ASSERT_TRUE(writer.ok());
            auto index = (*writer)->define_field(
                {"/f", DType::i32, {9, 8}, file_options.field_defaults, false});
            ASSERT_TRUE(index.ok());
            const std::vector<std::int32_t> values(24, static_cast<std::int32_t>(own));
            ASSERT_TRUE((*writer)->put(*index, {{3 * own, 0}, {3, 8}}, values.data()).ok());
            Status ended = (*writer)->end_step().status();
            const Status closed = (*writer)->close();
            statuses[own] = ended.ok() ? closed : ended;
          });
          const Status failure = same_failure(statuses);
          EXPECT_EQ(failure.ok(), PostsWithoutMemory::n_refused() == 0) << failure.message();
          if (failure.ok()) {
            ++n_written;
            continue;
          }
          ++n_failed;
          EXPECT_EQ(failure.code(), Code::out_of_memory) << failure.message();
        }
      }
    }
  }
  EXPECT_GT(n_failed, 50 / tier_stride(3));
  EXPECT_GT(n_written, 50 / tier_stride(3));
}

TEST_P(EngineFault, BoxesThatOverlap) {
  const Status failure =
      failing_step(GetParam(), "chunk=4x4", [](Writer& w, std::size_t f, int rank) {
        if (rank == 0) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {8, 8}}, kValues.data()).ok());
        }
        if (rank == 1) {
          ASSERT_TRUE(w.put(f, {{3, 3}, {2, 2}}, kValues.data()).ok());
        }
      });
  EXPECT_EQ(failure.code(), Code::bad_coverage);
  EXPECT_NE(failure.message().find("overlap"), std::string::npos) << failure.message();
}

TEST_P(EngineFault, WholeChunksHeldTwiceWithAHoleElsewhere) {
  const Status failure =
      failing_step(GetParam(), "chunk=4x4", [](Writer& w, std::size_t f, int rank) {
        if (rank == 0) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {4, 8}}, kValues.data()).ok());
        }
        if (rank == 1) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {4, 8}}, kValues.data()).ok());
        }
      });
  EXPECT_EQ(failure.code(), Code::bad_coverage) << failure.message();
}

TEST_P(EngineFault, AHoleNobodyTouched) {
  const Status failure =
      failing_step(GetParam(), "chunk=4x4", [](Writer& w, std::size_t f, int rank) {
        if (rank == 0) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {4, 8}}, kValues.data()).ok());
        }
      });
  EXPECT_EQ(failure.code(), Code::bad_coverage);
  EXPECT_NE(failure.message().find("holes=on"), std::string::npos) << failure.message();
}

/// A scalar has no first dimension, by which boxes of other fields are sorted.
TEST_P(EngineFault, AScalarBesideAHoleAndWithHoles) {
  for (const bool holes : {false, true}) {
    const Status failure = failing_step(
        GetParam(), holes ? "chunk=4x4,holes=on" : "chunk=4x4",
        [](Writer& w, std::size_t f, int rank) {
          auto time = w.define_field({"/time", DType::f64, {}, FieldOptions(), false});
          auto other =
              w.define_field({"/t2", DType::f64, {}, options_of("holes=on").field_defaults, false});
          ASSERT_TRUE(time.ok() && other.ok());
          if (rank != 0) return;
          static const double now = 3;  // Read by end_step().
          ASSERT_TRUE(w.put(*time, {}, &now).ok());
          ASSERT_TRUE(w.put(*other, {}, &now).ok());
          ASSERT_TRUE(w.put(f, {{0, 0}, {4, 8}}, kValues.data()).ok());
        });
    EXPECT_EQ(failure.code(), holes ? Code::ok : Code::bad_coverage) << failure.message();
    EXPECT_EQ(failure.message().find("\"/f\"") != std::string::npos, !holes) << failure.message();
  }
}

TEST_P(EngineFault, ABoxOutsideTheShapeOnOneRank) {
  const Status failure = failing_step(GetParam(), "", [](Writer& w, std::size_t f, int rank) {
    if (rank == 0) {
      ASSERT_TRUE(w.put(f, {{0, 0}, {8, 8}}, kValues.data()).ok());
    }
    if (rank == 1) {
      EXPECT_FALSE(w.put(f, {{7, 7}, {2, 2}}, kValues.data()).ok());
    }
  });
  EXPECT_EQ(failure.code(), Code::bad_coverage);
  EXPECT_NE(failure.message().find("rank 1"), std::string::npos) << failure.message();
}

TEST_P(EngineFault, RanksThatDisagreeOnADefinition) {
  const Status failure = failing_step(GetParam(), "", [](Writer& w, std::size_t, int rank) {
    const std::uint64_t extent = rank == 1 ? 3 : 2;
    (void)w.define_field({"/g", DType::f32, {extent}, FieldOptions(), false});
  });
  EXPECT_EQ(failure.code(), Code::disagreement);
  EXPECT_NE(failure.message().find("/g"), std::string::npos) << failure.message();
}

TEST_P(EngineFault, AMissingPlugin) {
  const Status failure =
      failing_step(GetParam(), "codec=id=32099", [](Writer& w, std::size_t f, int rank) {
        if (rank == 0) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {8, 8}}, kValues.data()).ok());
        }
      });
  EXPECT_EQ(failure.code(), Code::plugin_missing);
  EXPECT_NE(failure.message().find("32099"), std::string::npos) << failure.message();
}

TEST_P(EngineFault, ASourceThatCannotBeRead) {
  class BrokenSource final : public BoxSource {
   public:
    Status read(const Box&, std::span<std::byte>) override {
      return Status(Code::corrupt, "the source is torn");
    }
  };
  BrokenSource source;
  const Status failure =
      failing_step(GetParam(), "chunk=4x4", [&](Writer& w, std::size_t f, int rank) {
        if (rank == 0) {
          ASSERT_TRUE(w.put(f, {{0, 0}, {4, 8}}, kValues.data()).ok());
        }
        if (rank != 1) return;
        ASSERT_TRUE(w.put_source(f, {{4, 0}, {4, 4}}, source).ok());
        ASSERT_TRUE(w.put_source(f, {{4, 4}, {4, 4}}, source).ok());
      });
  EXPECT_EQ(failure.code(), Code::corrupt);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EngineFault, ::testing::Values(2, 3, 4, 7),
                         [](const auto& test) { return std::to_string(test.param) + "ranks"; });

struct StorageCase {
  int n_ranks;
  std::string layout;
  Code code;
};

class EngineStorageFault : public ::testing::TestWithParam<StorageCase> {};

/// Fails the k-th write for every k, within data or metadata. All ranks get the error, an older
/// file of that name is unchanged, and pieces in flight block no rank.
TEST_P(EngineStorageFault, EveryWriteFailsOnce) {
  const auto& [n_ranks, layout, code] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {12, 20};
  bool succeeded = false;
  for (int k = 0; k < 200 && !succeeded; ++k) {
    std::ofstream(path) << "an older file";
    std::atomic<int> countdown = k;
    std::vector<Status> statuses(static_cast<std::size_t>(n_ranks));
    run_ranks(
        n_ranks, [&, layout = layout, code = code, n_ranks = n_ranks](std::unique_ptr<Comm> comm) {
          const auto rank = static_cast<std::size_t>(comm->rank());
          FileOptions options = options_of("replace=on,chunk=5x7,buffer=100,layout=" + layout);
          options.open_storage = [&](const std::string& name,
                                     bool create) -> Result<std::unique_ptr<Storage>> {
            auto inner = open_posix_storage(name, create, false);
            if (!inner.ok()) return inner.status();
            return std::unique_ptr<Storage>(
                std::make_unique<FailingStorage>(std::move(*inner), countdown, code));
          };
          auto writer = Writer::create(std::move(comm), path, options);
          statuses[rank] = writer.status();
          if (!writer.ok()) return;
          auto index =
              (*writer)->define_field({"/f", DType::i32, shape, options.field_defaults, false});
          const std::uint64_t n_rows = 12 / static_cast<std::uint64_t>(n_ranks);
          const Box box{{rank * n_rows, 0}, {n_rows, 20}};
          const std::vector<std::byte> values = values_of(shape, box, DType::i32);
          ASSERT_TRUE((*writer)->put(*index, box, values.data()).ok());
          statuses[rank] = (*writer)->end_step().status();
          const Status closed = (*writer)->close();
          if (statuses[rank].ok()) statuses[rank] = closed;
        });
    const Status failure = same_failure(statuses);
    if (failure.ok()) {
      succeeded = true;
      EXPECT_EQ(read_field(path, "/f"), values_of(shape, whole_box(shape), DType::i32));
    } else {
      EXPECT_EQ(failure.code(), code) << failure.message();
    }
    EXPECT_FALSE(std::filesystem::exists(path + kPartialSuffix)) << "after write " << k;
  }
  EXPECT_TRUE(succeeded);
}

INSTANTIATE_TEST_SUITE_P(Storage, EngineStorageFault,
                         ::testing::Values(StorageCase{1, "claimed", Code::no_space},
                                           StorageCase{2, "claimed", Code::io_error},
                                           StorageCase{3, "dense", Code::no_space},
                                           StorageCase{4, "claimed", Code::no_space},
                                           StorageCase{2, "sparse", Code::no_space},
                                           StorageCase{3, "predictive", Code::io_error},
                                           StorageCase{2, "arena", Code::no_space},
                                           StorageCase{2, "front", Code::no_space}),
                         [](const auto& test) {
                           return test.param.layout + std::to_string(test.param.n_ranks) + "ranks";
                         });

TEST(EngineRecovery, AStepAfterAFailedStepWrites) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    auto writer = Writer::create(std::move(comm), path, options_of(""));
    ASSERT_TRUE(writer.ok());
    for (const bool good : {false, true}) {
      auto index = (*writer)->define_field({"/f", DType::i32, {8, 8}, FieldOptions(), false});
      ASSERT_TRUE(index.ok()) << index.status().message();
      if (rank == 0 || !good) {
        ASSERT_TRUE((*writer)->put(*index, {{0, 0}, {8, 8}}, kValues.data()).ok());
      }
      EXPECT_EQ((*writer)->end_step().ok(), good);
    }
    EXPECT_TRUE((*writer)->close().ok());
  });
  EXPECT_EQ(read_field(path, "/f").size(), 64 * sizeof(std::int32_t));
}

TEST(EngineRecovery, ARunningJobIsNotTakenForADeadOne) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  auto writer = Writer::create(make_self_comm(), path, options_of(""));
  ASSERT_TRUE(writer.ok());
  const auto second = Writer::create(make_self_comm(), path, options_of(""));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another job"), std::string::npos);
  EXPECT_FALSE(inspect_and_recover(path, true).ok());
  EXPECT_TRUE(std::filesystem::exists(path + kPartialSuffix));
  EXPECT_TRUE((*writer)->close().ok());
  EXPECT_TRUE(inspect_and_recover(path, true).ok());
}

TEST(EngineRecovery, AStaleJournalGoesWithTheFileThatItBelongedTo) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  std::ofstream(path) << "an older file";
  std::ofstream(path + ".journal") << "its journal";
  auto writer = Writer::create(make_self_comm(), path, options_of("replace=on"));
  ASSERT_TRUE(writer.ok());
  EXPECT_TRUE((*writer)->close().ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".journal"));
  EXPECT_TRUE(Writer::open(make_self_comm(), path, options_of("")).ok());
}

TEST(EngineRecovery, AWriterThatIsDroppedLeavesNothing) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    auto writer = Writer::create(std::move(comm), path, options_of(""));
    ASSERT_TRUE(writer.ok());
    (void)(*writer)->define_field({"/f", DType::i32, {8}, FieldOptions(), false});
  });
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + kPartialSuffix));
}

}  // namespace
}  // namespace tailrace::test
