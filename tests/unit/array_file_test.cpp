// ArrayFile compared with a reference in memory: random puts of several ranks, flushed at random
// moments, reopened, grown. The invariants are those of src/array/array_file.hpp.

#include <filesystem>

#include "array_support.hpp"
#include "container_support.hpp"
#include "engine_support.hpp"
#include "support/test_tier.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

class ArrayFileRanks : public ::testing::TestWithParam<int> {};

std::vector<std::int32_t> counted(std::uint64_t n, std::int32_t first) {
  std::vector<std::int32_t> values(n);
  for (std::int32_t& value : values) value = first++;
  return values;
}

TEST_P(ArrayFileRanks, WholeRowsComeBack) {
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  const int n_ranks = GetParam();
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = created(std::move(comm), path, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(
        one_variable(ModelType::i32, {static_cast<std::uint64_t>(n_ranks) * 4, 16})));
    const Slab mine{{rank * 4, 0}, {4, 16}, {}};
    EXPECT_OK(put_values(*file, 0, mine, counted(64, static_cast<std::int32_t>(rank) * 64)));
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, mine),
              counted(64, static_cast<std::int32_t>(rank) * 64));
    EXPECT_OK(file->flush());
    const Slab all{{0, 0}, {static_cast<std::uint64_t>(n_ranks) * 4, 16}, {}};
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, all), counted(all.n_elements(), 0));
    EXPECT_OK(file->close());
  });
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  const std::vector<std::byte> stock = read_field(path, "/v");
  const std::vector<std::int32_t> expected = counted(static_cast<std::uint64_t>(n_ranks) * 64, 0);
  ASSERT_EQ(stock.size(), expected.size() * sizeof(std::int32_t));
  EXPECT_EQ(std::memcmp(stock.data(), expected.data(), stock.size()), 0);
}

struct RandomCase {
  Shape lengths;  ///< 0: unlimited.
  std::string options;
};

/// Random puts, flushes and reopenings; every rank plans the same ones.
void run_random(int n_ranks, const RandomCase& what, unsigned seed, int n_rounds) {
  const TestFolder folder;
  const std::string path = folder / "r.nc";
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> shared) {
    Comm& comm = *shared;
    const int rank = comm.rank();
    std::mt19937 random(seed);
    const ArrayFileOptions options = array_options(what.options);
    const double fill = 9.9692099683868690e+36;
    Shape shape = what.lengths;
    for (std::uint64_t& extent : shape) extent = extent == 0 ? 1 + random() % 4 : extent;
    ReferenceArray<double> reference(shape, fill);
    auto file = created(std::move(shared), path, options);
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f64, what.lengths)));
    double next = 1;
    for (int round = 0; round < n_rounds; ++round) {
      for (int op = 0; op < 6; ++op) {
        const int who = static_cast<int>(random() % static_cast<unsigned>(n_ranks));
        const auto put_one = [&](const auto& where) {
          std::vector<double> values(where.n_elements());
          for (double& value : values) value = next++;
          reference.put(who, where, values);
          if (who == rank) EXPECT_OK(put_values(*file, 0, where, values));
        };
        if (runs_serve(what.lengths) && random() % 3 == 0) {
          put_one(runs_of(random_runs(shape, random)));
        } else {
          put_one(random_slab(shape, random));
        }
      }
      const Slab all = Slab::of(whole_box(shape));
      const unsigned what_next = random() % 4;
      if (what_next == 0) EXPECT_OK(file->end_collective_put());
      EXPECT_OK(file->flush());
      // If the far corner has not been put, the file is shorter than the shape.
      Shape known = file->model().shape_of(file->model().variables[0]);
      std::vector<double> values(all.n_elements(), fill);
      const Slab there = Slab::of(whole_box(known));
      if (!there.empty()) {
        const std::vector<double> read = get_values<double>(*file, 0, there);
        copy_box(whole_box(known), whole_box(known),
                 reinterpret_cast<const std::byte*>(read.data()), whole_box(shape),
                 reinterpret_cast<std::byte*>(values.data()), sizeof(double));
      }
      ASSERT_EQ(reference.n_wrong_after_flush(values), 0U) << "round " << round;
      if (what_next == 1) {
        EXPECT_OK(file->end_collective_put());
        Shape larger = shape;
        for (std::size_t d = 0; d < larger.size(); ++d) {
          if (what.lengths[d] == 0) larger[d] += random() % 5;
        }
        shape = larger;
        reference.grow(shape, fill);
      }
    }
    EXPECT_OK(file->close());
  });
}

TEST_P(ArrayFileRanks, RandomPutsAreAsInMemory) {
  const std::vector<RandomCase> cases = {
      {{17}, ""},
      {{0}, ""},
      {{12, 13}, "chunk=4x5"},
      {{0, 11}, "chunk=3x4,codec=zstd"},
      {{0, 0}, "chunk=2x3"},
      {{5, 6, 7}, "chunk=2x3x4,layout=dense"},
      {{9, 8}, "codec=none"},
      {{9, 8}, "codec=none,layout=contiguous"},
      {{0, 9}, "layout=sparse"},
      {{30, 9}, "chunk=7x4,layout=sparse"},
      {{30, 9}, "chunk=7x4,layout=predictive"},
      {{30, 9}, "chunk=7x4,layout=arena"},
      {{}, ""},
  };
  unsigned seed = 1;
  for (const RandomCase& what : cases) {
    SCOPED_TRACE(what.options + " of " + shape_text(what.lengths));
    run_random(GetParam(), what, seed++, tier_rounds(6, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayFileRanks, ::testing::Values(1, 2, 3, 4),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace tailrace::test
