// ArrayFile on several processes, on one node and on two: random puts of all ranks compared with a
// copy in memory, records that grow, and a second opening that continues writing.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "mpi/comm_of_all.hpp"
#include "mpi/rank_support.hpp"
#include "unit/array_support.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::test;

struct Case {
  Shape lengths;  ///< 0: unlimited.
  const char* options;
};

/// Six puts of randomly chosen ranks; all ranks plan the same puts.
void put_some(ArrayFile& file, const Shape& shape, bool with_runs, std::mt19937& random,
              double& next, ReferenceArray<double>& reference) {
  for (int op = 0; op < 6; ++op) {
    const int who = static_cast<int>(random() % static_cast<unsigned>(api_test::n_ranks()));
    const auto put_one = [&](const auto& where) {
      std::vector<double> values(where.n_elements());
      for (double& value : values) value = next++;
      reference.put(who, where, values);
      if (who == api_test::rank()) EXPECT_OK(put_values(file, 0, where, values));
    };
    if (with_runs && random() % 3 == 0) {
      put_one(runs_of(random_runs(shape, random)));
    } else {
      put_one(random_slab(shape, random));
    }
  }
  // The last element, so that the file has the complete shape.
  Slab corner{shape, Shape(shape.size(), 1), {}};
  for (std::uint64_t& start : corner.start) --start;
  reference.put(0, corner, {next});
  if (api_test::is_root()) EXPECT_OK(put_values(file, 0, corner, std::vector<double>{next}));
  ++next;
}

void check_all(ArrayFile& file, const Shape& shape, ReferenceArray<double>& reference) {
  const Slab all = Slab::of(whole_box(shape));
  std::vector<double> together(all.n_elements());
  const ReadRequest request{0, all, reinterpret_cast<std::byte*>(together.data())};
  EXPECT_OK(file.get_all(std::span(&request, 1)));
  EXPECT_EQ(get_values<double>(file, 0, all), together);
  ASSERT_EQ(reference.n_wrong_after_flush(together), 0U);
}

void run_case(const Case& what, const std::string& path, unsigned seed) {
  constexpr double kFill = 9.9692099683868690e+36;
  std::mt19937 random(seed);
  Shape shape = what.lengths;
  for (std::uint64_t& extent : shape) extent = extent == 0 ? 4 : extent;
  ReferenceArray<double> reference(shape, kFill);
  double next = 1;
  for (int opening = 0; opening < 3; ++opening) {
    auto file = opening == 0 ? created(api_test::comm_of_all(), path, array_options(what.options))
                             : opened(api_test::comm_of_all(), path, ArrayFile::Access::write,
                                      array_options(what.options));
    ASSERT_NE(file, nullptr);
    if (opening == 0) {
      EXPECT_OK(file->change_model(one_variable(ModelType::f64, what.lengths)));
    } else {
      check_all(*file, shape, reference);
    }
    for (int round = 0; round < 3; ++round) {
      put_some(*file, shape, runs_serve(what.lengths), random, next, reference);
      if (round == 1) EXPECT_OK(file->end_collective_put());
      EXPECT_OK(file->flush());
      check_all(*file, shape, reference);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (what.lengths[d] == 0) shape[d] += random() % 4;
      }
      reference.grow(shape, kFill);
    }
    put_some(*file, shape, runs_serve(what.lengths), random, next, reference);
    EXPECT_OK(file->close());
  }
  auto file = opened(api_test::comm_of_all(), path, ArrayFile::Access::read, array_options(""));
  ASSERT_NE(file, nullptr);
  check_all(*file, shape, reference);
  EXPECT_OK(file->close());
}

TEST(ArrayFile, RandomPutsAreAsInMemory) {
  const std::vector<Case> cases = {{{23, 17}, "chunk=4x5,codec=deflate"},
                                   {{0, 17}, "chunk=3x4,codec=deflate,layout=dense"},
                                   {{0, 0}, "chunk=2x3,codec=deflate,layout=arena"},
                                   {{0, 9}, "chunk=2x9,codec=none"},
                                   {{19, 8}, "codec=none,layout=contiguous"},
                                   {{}, "codec=deflate"}};
  unsigned seed = 1;
  for (const Case& what : cases) {
    SCOPED_TRACE(what.options);
    run_case(what, api_test::scratch(std::to_string(seed) + ".nc"), seed);
    ++seed;
  }
}

TEST(ArrayFile, RowByRowBeyondTheCap) {
  constexpr std::uint64_t kRows = 960;
  constexpr std::uint64_t kColumns = 4096;
  const std::string path = api_test::scratch("rows.nc");
  const auto me = static_cast<std::uint64_t>(api_test::rank());
  const auto n = static_cast<std::uint64_t>(api_test::n_ranks());
  auto file = created(api_test::comm_of_all(), path,
                      array_options("memory=4MB,codec=deflate,chunk=16x1024"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, kColumns})));
  for (std::uint64_t row = 0; row < kRows; ++row) {
    if (row % n == me) {
      EXPECT_OK(put_values(*file, 0, {{row, 0}, {1, kColumns}, {}},
                           std::vector<float>(kColumns, static_cast<float>(row))));
    }
    EXPECT_OK(file->end_collective_put());
  }
  EXPECT_OK(file->close());
  EXPECT_EQ(file->report().n_chunks, kRows / 16 * 4);
  file = opened(api_test::comm_of_all(), path, ArrayFile::Access::read, array_options(""));
  ASSERT_NE(file, nullptr);
  const std::vector<float> column = get_values<float>(*file, 0, {{0, 77 + me}, {kRows, 1}, {}});
  for (std::uint64_t row = 0; row < kRows; ++row) EXPECT_EQ(column[row], static_cast<float>(row));
  EXPECT_OK(file->close());
}

}  // namespace
