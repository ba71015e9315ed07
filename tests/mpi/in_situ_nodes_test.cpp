// Deferred steps (modes async and in_situ) on ranks that are processes. Nodes claim file space
// while the application calls nothing, and ranks of a node write for each other. Ranks fail or give
// up while others wait for file space. With TAILRACE_RANKS_PER_NODE the ranks are several nodes.
// The watchdog of rank_support.hpp ends a rank that hangs.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "comm_of_all.hpp"
#include "core/option_table.hpp"
#include "rank_support.hpp"
#include "unit/engine_support.hpp"

namespace {

using namespace api_test;
using namespace tailrace;

constexpr std::uint64_t kRows = 256;  // rows per rank
constexpr std::uint64_t kColumns = 512;

Shape shape() { return {kRows * static_cast<std::uint64_t>(n_ranks()), kColumns}; }

Box own_box() { return {{kRows * static_cast<std::uint64_t>(rank()), 0}, {kRows, kColumns}}; }

/// Noise on even ranks, constants on odd ranks, so that each node can balance its writes.
std::vector<std::uint32_t> values_of_rank(int r, std::uint64_t step) {
  std::vector<std::uint32_t> values(kRows * kColumns, static_cast<std::uint32_t>(7 + step));
  std::mt19937 random(static_cast<unsigned>(1000 * step) + static_cast<unsigned>(r));
  if (r % 2 == 0) std::generate(values.begin(), values.end(), std::ref(random));
  return values;
}

void expect_steps(const std::string& path, const std::vector<std::uint64_t>& steps) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_root()) return;
  const std::vector<std::byte> bytes = tailrace::test::read_field(path, "/u");
  const std::size_t rank_bytes = kRows * kColumns * sizeof(std::uint32_t);
  ASSERT_EQ(bytes.size(), steps.size() * rank_bytes * static_cast<std::size_t>(n_ranks()));
  const std::byte* at = bytes.data();
  for (const std::uint64_t step : steps) {
    for (int r = 0; r < n_ranks(); ++r, at += rank_bytes) {
      const std::vector<std::uint32_t> values = values_of_rank(r, step);
      EXPECT_EQ(std::memcmp(at, values.data(), rank_bytes), 0) << "step " << step << " rank " << r;
    }
  }
}

/// A writer with the over-time field /u.
struct Output {
  std::vector<double> too_much;
  std::unique_ptr<Writer> writer;
  std::size_t field = 0;

  Output(const std::string& path, const std::string& text) {
    FileOptions options;
    EXPECT_TRUE(apply_file_options(text, options).ok()) << text;
    auto made = Writer::create(api_test::comm_of_all(), path, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    writer = std::move(*made);
    FieldDefinition definition{"/u", DType::u32, shape(), options.field_defaults, false};
    definition.options.over_time = true;
    field = *writer->define_field(definition);
  }
  /// The last rank puts one chunk of 8 MiB, which memory=8M does not allow.
  void put_too_much() {
    const Shape large = {1024, 1024};
    FieldDefinition definition{"/v", DType::f64, large, FieldOptions(), false};
    EXPECT_TRUE(apply_field_options("codec=deflate,chunk=1024x1024", definition.options).ok());
    const auto put = writer->define_field(definition);
    ASSERT_TRUE(put.ok()) << put.status().message();
    too_much.resize(is_last() ? n_elements(large) : 0);
    if (is_last()) {
      EXPECT_TRUE(writer->put(*put, whole_box(large), too_much.data()).ok());
    }
  }
  Result<StepReport> end_step(std::uint64_t step) {
    const std::vector<std::uint32_t> values = values_of_rank(rank(), step);
    EXPECT_TRUE(writer->put(field, own_box(), values.data(), true).ok());
    return writer->end_step();
  }
};

struct NodesCase {
  const char* name;
  const char* options;
};

std::ostream& operator<<(std::ostream& out, const NodesCase& test) { return out << test.name; }

constexpr NodesCase kCases[] = {
    {"claimed", "mode=in_situ,layout=claimed,writers=balanced"},
    {"claimed_threads", "mode=in_situ,layout=claimed,writers=balanced,threads=1"},
    {"arena_threads", "mode=in_situ,layout=arena,writers=balanced,threads=1"},
    {"predictive_paper", "mode=in_situ,layout=predictive,lab.balance=paper,threads=1"},
    {"async_claimed", "mode=async,layout=claimed,threads=1"},
    {"async_arena", "mode=async,layout=arena,threads=2"},
    {"node_writer", "mode=in_situ,layout=predictive,writers=node"},
    {"async_node_writer", "mode=async,layout=claimed,threads=1,writers=node"},
    {"async_arena_node_writer", "mode=async,layout=arena,threads=2,writers=node"},
};

class InSituNodes : public ::testing::TestWithParam<NodesCase> {
 protected:
  /// Causes many small writes, each with its own claim.
  static std::string options() {
    return std::string(GetParam().options) + ",codec=deflate,chunk=16x128,buffer=16K,fsync=off";
  }
  /// Runs four steps, with `between` after each; then expects the values of all.
  template <class Between>
  static void write_steps(const Between& between) {
    const std::string path = scratch();
    Output output(path, options());
    for (std::uint64_t step = 0; step < 4; ++step) {
      const auto report = output.end_step(step);
      ASSERT_TRUE(report.ok()) << report.status().message();
      between(*output.writer, step);
    }
    const Status closed = output.writer->close();
    EXPECT_TRUE(closed.ok()) << closed.message();
    expect_steps(path, {0, 1, 2, 3});
  }
};

/// Between two steps the application calls nothing, marks only on some ranks, or donates idle time.
TEST_P(InSituNodes, KeepTheValuesWhateverTheApplicationCalls) {
  write_steps([](Writer& writer, std::uint64_t step) {
    if (step == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));  // claims wait
    if (step == 1 && is_last()) writer.mark(Lane::io, true);
    if (step == 2) writer.idle(0.01 * rank(), {});
  });
}

/// Rank 0's application waits for the others while they donate idle time to Tailrace. Their claims
/// must not wait for an answer of rank 0.
TEST_P(InSituNodes, IdleTimeEndsWithoutRankZero) {
  write_steps([](Writer& writer, std::uint64_t) {
    if (!is_root()) writer.idle(0.05, {});
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

/// A step that fails on the last rank while lanes of the other nodes claim and write.
TEST_P(InSituNodes, AFailureOnOneRankFailsTheStepOnAll) {
  const std::string path = scratch();
  Output output(path, options() + ",memory=8M");
  ASSERT_TRUE(output.end_step(0).ok());
  ASSERT_TRUE(output.writer->wait().ok());
  output.put_too_much();
  ASSERT_TRUE(output.end_step(1).ok());
  const Status waited = output.writer->wait().status();
  EXPECT_EQ(waited.code(), Code::out_of_memory) << waited.message();
  EXPECT_EQ(waited.message(), from_root(waited.message()));
  ASSERT_TRUE(output.end_step(2).ok());
  EXPECT_TRUE(output.writer->close().ok());
  expect_steps(path, {0, 2});
}

/// Drops a writer without close() while its lanes wait for file space that needs other nodes' help.
/// Every rank must return independently.
TEST_P(InSituNodes, AWriterThatIsDroppedWaitsForNobody) {
  const std::string path = scratch();
  {
    Output output(path, options());
    ASSERT_TRUE(output.end_step(0).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_FALSE(std::filesystem::exists(path));
}

INSTANTIATE_TEST_SUITE_P(Modes, InSituNodes, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

/// Tests writers=node: the first rank of each node makes all writes of its ranks. This holds in
/// every mode and layout, and for chunks larger than the window between the ranks.
class NodeWriters : public ::testing::TestWithParam<NodesCase> {};

constexpr NodesCase kWriterCases[] = {
    {"sync_claimed", "mode=sync,layout=claimed,threads=1"},
    {"sync_claimed_as_is", "mode=sync,layout=claimed,threads=2,buffer=1K"},
    {"sync_dense", "mode=sync,layout=dense,threads=1"},
    {"sync_arena", "mode=sync,layout=arena,threads=2"},
    {"sync_predictive", "mode=sync,layout=predictive,threads=1"},
    {"sync_sparse", "mode=sync,layout=sparse,threads=1"},
    {"sync_direct", "mode=sync,layout=dense,threads=1,align=direct"},
    {"async_claimed", "mode=async,layout=claimed,threads=1"},
    {"in_situ_claimed", "mode=in_situ,layout=claimed"},
};

TEST_P(NodeWriters, WriteForAllRanksOfTheirNode) {
  const std::string path = scratch();
  Output output(
      path, "chunk=16x128,codec=deflate,buffer=64K,fsync=on,trace-file=/dev/null,writers=node," +
                std::string(GetParam().options));
  const auto comm = api_test::comm_of_all();
  constexpr std::uint64_t n_steps = 3;
  std::uint64_t n_moved = 0;
  std::uint64_t encoded_bytes = 0;
  const auto add = [&](const StepReport& report) {
    if (!report.completed) return;
    n_moved += report.n_moved_writes;
    encoded_bytes += report.encoded_bytes;
  };
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    const auto report = output.end_step(step);
    ASSERT_TRUE(report.ok()) << report.status().message();
    add(*report);
  }
  const auto last = output.writer->wait();
  ASSERT_TRUE(last.ok()) << last.status().message();
  if (last->has_value()) add(**last);
  const std::vector<TraceEvent> events = output.writer->gather_trace();
  ASSERT_TRUE(output.writer->close().ok());
  expect_steps(path, {0, 1, 2});

  std::vector<std::uint64_t> writes(static_cast<std::size_t>(n_ranks()));
  writes[static_cast<std::size_t>(rank())] = comm->leads_node() ? 1 : 0;
  comm->allreduce(writes, Reduction::sum);
  std::uint64_t written_bytes = 0;
  for (const TraceEvent& event : events) {
    if (event.kind != TraceEvent::Kind::write) continue;
    EXPECT_EQ(writes[static_cast<std::size_t>(event.rank)], 1U) << "rank " << event.rank;
    written_bytes += event.n_bytes;
  }
  const std::uint64_t n_chunks = (kRows / 16) * (kColumns / 128);
  const auto n_writers = static_cast<std::uint64_t>(std::ranges::count(writes, 1U));
  const std::uint64_t n_others = static_cast<std::uint64_t>(n_ranks()) - n_writers;
  EXPECT_EQ(n_moved, n_steps * n_others * n_chunks);
  if (is_root()) {
    EXPECT_GE(written_bytes, encoded_bytes);
  }
}

/// A write error of one rank becomes every rank's error, and the writers continue after it.
TEST_P(NodeWriters, GoOnAfterAStepThatFails) {
  const std::string path = scratch();
  Output output(path, "chunk=16x128,codec=deflate,buffer=64K,memory=8M,fsync=off,writers=node," +
                          std::string(GetParam().options));
  ASSERT_TRUE(output.end_step(0).ok());
  ASSERT_TRUE(output.writer->wait().ok());
  output.put_too_much();
  const auto ended = output.end_step(1);
  const Status failed = ended.ok() ? output.writer->wait().status() : ended.status();
  EXPECT_EQ(failed.code(), Code::out_of_memory) << failed.message();
  EXPECT_EQ(failed.message(), from_root(failed.message()));
  const auto after = output.end_step(2);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_TRUE(output.writer->close().ok());
  expect_steps(path, {0, 2});
}

INSTANTIATE_TEST_SUITE_P(Layouts, NodeWriters, ::testing::ValuesIn(kWriterCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
