// Reading by several processes: indexes shared within nodes, chunks shared between ranks, and
// failures that every rank returns.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "api_support.hpp"
#include "tailrace/reader.hpp"

namespace {

using namespace api_test;

constexpr std::uint64_t kRows = 96;
constexpr std::uint64_t kColumns = 70;

float value_at(std::uint64_t row, std::uint64_t column) {
  return float(row * 3 + column % 11) * 0.25F;
}

/// Rank 0 alone writes a file of 10 x 9 chunks.
void write_file(const std::string& path) {
  if (is_root()) {
    std::vector<float> values;
    for (std::uint64_t row = 0; row < kRows; ++row) {
      for (std::uint64_t column = 0; column < kColumns; ++column) {
        values.push_back(value_at(row, column));
      }
    }
    auto file = tailrace::File::create(path, tailrace::serial(), "codec=deflate,chunk=10x8");
    file.define<float>("/f", {kRows, kColumns}).put({{0, 0}, {kRows, kColumns}}, values);
    file.close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void expect_values(const tailrace::Selection& slab, const std::vector<float>& values) {
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < slab.count[0]; ++i) {
    for (std::uint64_t k = 0; k < slab.count[1]; ++k) {
      const std::uint64_t row = slab.start[0] + i * (slab.stride.empty() ? 1 : slab.stride[0]);
      const std::uint64_t column = slab.start[1] + k * (slab.stride.empty() ? 1 : slab.stride[1]);
      ASSERT_EQ(values[at++], value_at(row, column)) << row << ", " << column;
    }
  }
}

TEST(Read, AllRanksReadTheWholeAndEachChunkIsDecodedOnce) {
  const std::string path = scratch();
  write_file(path);
  auto reader =
      tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD), "threads=1,prefetch=off");
  const tailrace::Selection whole{{0, 0}, {kRows, kColumns}};
  std::vector<float> values(kRows * kColumns);
  reader.read_all("/f", whole, std::span(values));
  expect_values(whole, values);
  std::uint64_t n_chunks = reader.report().n_chunks;
  MPI_Allreduce(MPI_IN_PLACE, &n_chunks, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(n_chunks, 90U);
  reader.close();
}

TEST(Read, OverlappingAndStridedSlabsAndRanksWithNone) {
  const std::string path = scratch();
  write_file(path);
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD), "memory=1MiB");
  const std::vector<std::size_t> datasets = {reader.find("/f")};
  reader.open_index(datasets);
  const auto me = std::uint64_t(rank());
  for (std::uint64_t round = 0; round < 4; ++round) {
    tailrace::Selection slab{{5 * me + round, 3 * round}, {50, 20}, {1, 1 + round % 3}};
    if (is_last() && n_ranks() > 1 && round == 2) slab.count = {0, 20};
    std::vector<float> values(slab.n_elements());
    reader.read_all("/f", slab, std::span(values));
    expect_values(slab, values);
    std::fill(values.begin(), values.end(), -1.0F);
    reader.read("/f", slab, std::span(values));
    expect_values(slab, values);
  }
  reader.refresh();
  const tailrace::Selection row{{me, 0}, {1, kColumns}};
  expect_values(row, reader.read<float>("/f", row));
  reader.close();
}

/// Ranks with a loose bound read parts of chunks, the others share complete ones. Even ranks have
/// some in their cache.
TEST(Read, EachRankWithinABoundOfItsOwn) {
  const std::string path = scratch();
  constexpr double own = 1e-4;
  std::vector<float> original(kRows * kColumns);
  std::mt19937 random(1);
  for (float& value : original) value = static_cast<float>(random()) * 0x1p-32F;
  if (is_root()) {
    auto file = tailrace::File::create(path, tailrace::serial(),
                                       "codec=trz,refine=5,bound=abs=1e-4,chunk=48x35");
    file.define<float>("/f", {kRows, kColumns}).put({{0, 0}, {kRows, kColumns}}, original);
    file.close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double asked = rank() % 3 == 0 ? 0 : own * (1 << (2 * (rank() % 3)));
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD),
                                       "threads=1,abs=" + std::to_string(asked));
  std::vector<float> values(kRows * kColumns);
  const tailrace::Selection corner{{0, 0}, {3, 3}};
  if (rank() % 2 == 0) reader.read<float>("/f", corner);
  for (int round = 0; round < 2; ++round) {
    std::fill(values.begin(), values.end(), -1.0F);
    reader.read_all("/f", {{0, 0}, {kRows, kColumns}}, std::span(values));
    double farthest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      farthest = std::max(farthest, std::fabs(double{values[i]} - double{original[i]}));
    }
    EXPECT_LE(farthest, std::max(own, asked));
    EXPECT_GT(farthest, std::max(own, asked) / 2);
  }
  reader.close();
}

TEST(Read, AFailingRankFailsAll) {
  const std::string path = scratch();
  write_file(path);
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  std::vector<float> values(kRows * kColumns);
  const std::uint64_t rows = is_last() ? kRows + 1 : kRows;
  expect_everywhere(outcome_of([&] {
                      reader.read_all("/f", {{0, 0}, {rows, kColumns}}, std::span(values));
                    }),
                    TAILRACE_ERROR_BAD_COVERAGE, {"/f"});
  reader.read_all("/f", {{0, 0}, {kRows, kColumns}}, std::span(values));
  reader.close();
  expect_everywhere(outcome_of([&] {
                      tailrace::Reader::open(scratch("none.h5"), tailrace::mpi(MPI_COMM_WORLD));
                    }),
                    TAILRACE_ERROR_NOT_FOUND, {"none.h5"});
}

/// A request that the C++ header refuses fails on all ranks: none waits for the rank that throws.
TEST(Read, ARequestThatCannotBeMadeFailsAll) {
  const std::string path = scratch();
  write_file(path);
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  std::vector<float> values(kRows * kColumns);
  std::vector<double> wide(kRows * kColumns);
  const tailrace::Selection whole{{0, 0}, {kRows, kColumns}};
  const auto read_whole = [&] { reader.read_all("/f", whole, std::span(values)); };
  expect_everywhere(outcome_of([&] {
                      if (!is_last()) return read_whole();
                      reader.read_all("/f", {{0}, {kRows}}, std::span(values));
                    }),
                    TAILRACE_ERROR_INVALID_ARGUMENT, {"/f", "2 dimensions"});
  expect_everywhere(outcome_of([&] {
                      if (!is_last()) return read_whole();
                      reader.read_all("/g", whole, std::span(values));
                    }),
                    TAILRACE_ERROR_NOT_FOUND, {"/g"});
  expect_everywhere(outcome_of([&] {
                      if (!is_last()) return read_whole();
                      reader.read_all("/f", whole, std::span(wide));
                    }),
                    TAILRACE_ERROR_INVALID_ARGUMENT, {"/f", "f32"});
  read_whole();
  expect_values(whole, values);
  reader.close();
}

}  // namespace
