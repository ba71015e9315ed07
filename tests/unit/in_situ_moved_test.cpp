// Writes that a rank makes for another rank of its node (writers=balanced): while the application
// computes and calls nothing, and after a failure of the rank that received them.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "container_support.hpp"
#include "in_situ_support.hpp"

namespace tailrace::test {
namespace {

/// Noise on rank 0, constants on the others, and a slow storage of rank 0, so that its writes move.
class MovedWrites : public testing::TestWithParam<int> {
 protected:
  static constexpr std::uint64_t kRowsOfRank = 256;
  int n_ranks() const { return GetParam(); }
  std::string options() const {
    return "mode=in_situ,threads=1,chunk=8x64,codec=deflate,writers=balanced";
  }
  static void slow_down(std::vector<StorageProbe>& probes) { probes[0].data_delay_s = 0.005; }
  /// Number of writes that other ranks have made for rank 0.
  static int n_moved(const std::vector<StorageProbe>& probes) {
    int n = 0;
    for (std::size_t r = 1; r < probes.size(); ++r) n += probes[r].n_other.load();
    return n;
  }
  /// Puts this rank's part of /w, over time.
  void put(InSituRank& rank, std::size_t field) {
    const auto r = static_cast<std::uint64_t>(rank.comm->rank());
    const Box box{{r * kRowsOfRank, 0}, {kRowsOfRank, 64}};
    ASSERT_TRUE(rank.writer->put(field, box, values(r).data(), true).ok());
  }
  std::size_t define(InSituRank& rank) {
    FieldDefinition definition{
        "/w", DType::u32, {kRowsOfRank * static_cast<std::uint64_t>(n_ranks()), 64}, {}, false};
    definition.options = in_situ_options(options()).field_defaults;
    definition.options.over_time = true;
    return *rank.writer->define_field(definition);
  }
  static std::vector<std::uint32_t> values(std::uint64_t rank) {
    std::vector<std::uint32_t> values(kRowsOfRank * 64, 7);
    std::mt19937 random(3);
    if (rank == 0)
      std::generate(values.begin(), values.end(), [&] { return std::uint32_t(random()); });
    return values;
  }
  void expect_entries(std::size_t n) {
    std::vector<std::uint32_t> all;
    for (std::size_t step = 0; step < n; ++step) {
      for (int r = 0; r < n_ranks(); ++r) {
        const auto part = values(static_cast<std::uint64_t>(r));
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    const std::vector<std::byte> bytes = read_field(path_, "/w");
    ASSERT_EQ(bytes.size(), all.size() * sizeof(std::uint32_t));
    EXPECT_EQ(std::memcmp(bytes.data(), all.data(), bytes.size()), 0);
  }

  const TestFolder folder_;
  const std::string path_ = folder_ / "out.h5";
};

/// The recipient writes while the application computes and calls nothing, and syncs at the end.
TEST_P(MovedWrites, HappenWhileTheApplicationComputes) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  slow_down(probes);
  run_in_situ(n_ranks(), path_, options(), &probes, [&](InSituRank& rank) {
    const std::size_t field = define(rank);
    put(rank, field);
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());  // so that loads are known
    const int before = n_moved(probes);
    rank.comm->barrier();
    put(rank, field);
    ASSERT_TRUE(rank.end_step(1).ok());
    EXPECT_TRUE(happens([&] { return n_moved(probes) > before; }));
    rank.comm->barrier();
    const auto report = rank.writer->wait();
    ASSERT_TRUE(report.ok() && report->has_value());
    EXPECT_GT((*report)->n_moved_writes, 0U);
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_entries(2);
}

/// The recipient's disk is full: the donor's step fails on every rank, and the next step is
/// written.
TEST_P(MovedWrites, FailOnEveryRankIfTheRecipientFails) {
  std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
  slow_down(probes);
  run_in_situ(n_ranks(), path_, options(), &probes, [&](InSituRank& rank) {
    StorageProbe& own = probes[static_cast<std::size_t>(rank.comm->rank())];
    const std::size_t field = define(rank);
    put(rank, field);
    ASSERT_TRUE(rank.end_step(0).ok());
    ASSERT_TRUE(rank.writer->wait().ok());
    const int before = n_moved(probes);
    rank.comm->barrier();
    if (!rank.comm->is_root()) own.fail_other = true;
    put(rank, field);
    ASSERT_TRUE(rank.end_step(1).ok());
    EXPECT_TRUE(happens([&] { return n_moved(probes) > before; }));
    rank.comm->barrier();
    const Status waited = rank.writer->wait().status();
    expect_same_on_all(*rank.comm, waited);
    EXPECT_EQ(waited.code(), Code::no_space) << waited.message();
    EXPECT_NE(waited.message().find("chunk given to rank"), std::string::npos) << waited.message();
    own.fail_other = false;
    put(rank, field);
    ASSERT_TRUE(rank.end_step(2).ok());
    EXPECT_TRUE(rank.writer->close().ok());
  });
  expect_entries(2);
  expect_steps(path_, "/u", {0, 2});
}

/// The node's writer has no space left. Every rank's step fails with the same message, which names
/// the writer, and the next step is written. Only the writer has written chunks.
TEST_P(MovedWrites, OfANodeWithOneWriterFailOnEveryRankIfThatFails) {
  for (const char* mode : {"mode=sync", "mode=async", "mode=in_situ"}) {
    SCOPED_TRACE(mode);
    const std::string path = folder_ / (std::string(mode) + ".h5");
    std::vector<StorageProbe> probes(static_cast<std::size_t>(n_ranks()));
    const std::string text = std::string(mode) + ",threads=1,chunk=8x64,codec=deflate,writers=node";
    run_in_situ(n_ranks(), path, text, &probes, [&](InSituRank& rank) {
      ASSERT_TRUE(rank.end_step(0).ok());
      ASSERT_TRUE(rank.writer->wait().ok());
      StorageProbe& own = probes[static_cast<std::size_t>(rank.comm->rank())];
      rank.comm->barrier();
      if (rank.comm->is_root()) own.fail_other = true;
      const auto ended = rank.end_step(1);
      const Status failed = ended.ok() ? rank.writer->wait().status() : ended.status();
      expect_same_on_all(*rank.comm, failed);
      EXPECT_EQ(failed.code(), Code::no_space) << failed.message();
      EXPECT_NE(failed.message().find("chunk given to rank 0"), std::string::npos)
          << failed.message();
      own.fail_other = false;
      rank.comm->barrier();
      const auto after = rank.end_step(2);
      EXPECT_TRUE(after.ok()) << after.status().message();
      EXPECT_TRUE(rank.writer->close().ok());
      if (!rank.comm->is_root()) {
        EXPECT_EQ(own.n_data + own.n_other, 0);
      }
    });
    expect_steps(path, "/u", {0, 2});
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MovedWrites, testing::Values(2, 4),
                         [](const auto& info) { return std::to_string(info.param) + "ranks"; });

}  // namespace
}  // namespace tailrace::test
