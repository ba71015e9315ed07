// ArrayFile with failures: the same error on every rank, a file in the state of its last flush, and
// staged values that the next flush still writes.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "array_support.hpp"
#include "container_support.hpp"
#include "core/storage_over.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/recover.hpp"
#include "netcdf_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

/// A storage that is full after `n_left` more writes of all ranks.
class FullStorage final : public StorageOver {
 public:
  FullStorage(std::unique_ptr<Storage> inner, std::atomic<int>& n_left)
      : StorageOver(std::move(inner)), n_left_(n_left) {}
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (n_left_.fetch_sub(1) <= 0) return Status(Code::no_space, "full, says the test");
    return inner_->write_at(address, bytes);
  }

 private:
  std::atomic<int>& n_left_;
};

ArrayFileOptions on_full_storage(const std::string& text, std::atomic<int>& n_left) {
  ArrayFileOptions options = array_options(text);
  options.file.open_storage = [&n_left](const std::string& path, bool create) {
    Result<std::unique_ptr<Storage>> inner = open_posix_storage(path, create, false);
    if (!inner.ok()) return inner;
    return Result<std::unique_ptr<Storage>>(
        std::make_unique<FullStorage>(std::move(*inner), n_left));
  };
  return options;
}

class ArrayFileFault : public ::testing::TestWithParam<int> {};

constexpr std::uint64_t kExtent = 64;
const Slab kAll{{0, 0}, {kExtent, kExtent}, {}};

std::vector<std::int32_t> filled(std::uint64_t n, std::int32_t value) {
  return std::vector<std::int32_t>(n, value);
}

TEST_P(ArrayFileFault, FullDiskKeepsTheLastFlushAndWhatIsStaged) {
  const TestFolder folder;
  const std::string path = folder / "full.nc";
  std::atomic<int> n_left{1 << 20};
  std::vector<Status> statuses(static_cast<std::size_t>(GetParam()));
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const auto n_ranks = static_cast<std::uint64_t>(comm->n_ranks());
    const std::uint64_t rows = kExtent / n_ranks;
    auto file = created(std::move(comm), path, on_full_storage("chunk=8x8", n_left));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {kExtent, kExtent})));
    if (rank == 0) EXPECT_OK(put_values(*file, 0, kAll, filled(kExtent * kExtent, 1)));
    EXPECT_OK(file->flush());
    const Slab mine{{static_cast<std::uint64_t>(rank) * rows, 0}, {rows, kExtent}, {}};
    EXPECT_OK(put_values(*file, 0, mine, filled(mine.n_elements(), 2)));
    file->comm().barrier();
    n_left = 0;
    file->comm().barrier();
    statuses[static_cast<std::size_t>(rank)] = file->flush();
    // Readers see the last flush; this rank still sees its own values.
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, mine), filled(mine.n_elements(), 2));
    const std::uint64_t other = (static_cast<std::uint64_t>(rank) + 1) % n_ranks;
    if (n_ranks > 1) {
      EXPECT_EQ(get_values<std::int32_t>(*file, 0, {{other * rows, 0}, {rows, kExtent}, {}}),
                filled(mine.n_elements(), 1));
    }
    file->comm().barrier();
    n_left = 1 << 20;
    file->comm().barrier();
    EXPECT_OK(file->flush());
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, {{0, 0}, {rows * n_ranks, kExtent}, {}}),
              filled(rows * n_ranks * kExtent, 2));
    EXPECT_OK(file->close());
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::no_space);
    EXPECT_EQ(status.message(), statuses[0].message());
  }
}

TEST_P(ArrayFileFault, AFirstFlushThatFailsCanBeTriedAgain) {
  const TestFolder folder;
  const std::string path = folder / "first.nc";
  std::atomic<int> n_left{1 << 20};
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    auto file =
        created(std::move(comm), path, on_full_storage("bound=rel=1e-3,codec=portable", n_left));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {16, 16})));
    if (rank == 0) {
      EXPECT_OK(put_values(*file, 0, {{0, 0}, {16, 16}, {}}, std::vector<float>(256, 1.5F)));
    }
    file->comm().barrier();
    n_left = 0;
    file->comm().barrier();
    EXPECT_EQ(file->flush().code(), Code::no_space);
    file->comm().barrier();
    n_left = 1 << 20;
    file->comm().barrier();
    EXPECT_OK(file->flush());
    EXPECT_OK(file->close());
  });
  EXPECT_EQ(read_field(path, "/v").size(), 256 * sizeof(float));
}

/// Any write of a flush may be the first to fail, of chunks or of metadata. The rank still reads
/// its staged values, also of a variable that the failed flush was to create, and the file is
/// intact.
TEST_P(ArrayFileFault, AnyWriteOfAFlushMayFail) {
  const TestFolder folder;
  const std::string path = folder / "any.nc";
  bool failed = true;
  for (int n_good = 0; failed; n_good += GetParam() == 1 ? 1 : 7) {
    ASSERT_LT(n_good, 200);
    std::atomic<int> n_left{1 << 20};
    std::atomic<bool> some_failed{false};
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      auto file = created(std::move(comm), path, on_full_storage("chunk=4", n_left));
      ASSERT_NE(file, nullptr);
      NetcdfModel model = one_variable(ModelType::i32, {8});
      EXPECT_OK(file->change_model(model));
      const Slab all{{0}, {8}, {}};
      EXPECT_OK(put_values(*file, 0, all, filled(8, 1)));
      EXPECT_OK(file->flush());
      for (const char* name : {"w", "x", "y"}) {
        model.variables.push_back(variable_of(name, ModelType::i32, {0}));
      }
      EXPECT_OK(file->change_model(model));
      for (const std::size_t v : {0U, 1U, 2U, 3U}) {
        EXPECT_OK(put_values(*file, v, all, filled(8, 2)));
      }
      file->comm().barrier();
      n_left = n_good;
      file->comm().barrier();
      const Status flushed = file->flush();
      file->comm().barrier();
      n_left = 1 << 20;
      file->comm().barrier();
      if (!flushed.ok()) some_failed = true;
      for (const std::size_t v : {0U, 1U, 2U, 3U}) {
        EXPECT_EQ(get_values<std::int32_t>(*file, v, all), filled(8, 2));
      }
      static_cast<void>(file->close());
    });
    failed = some_failed;
    // A commit that rewrites chunks has a journal, which completes a commit that was interrupted.
    if (std::filesystem::exists(path + ".journal")) {
      ASSERT_TRUE(inspect_and_recover(path, true).ok());
    }
    const std::vector<std::byte> stored = read_field(path, "/v");
    const auto* first = reinterpret_cast<const std::int32_t*>(stored.data());
    ASSERT_EQ(stored.size(), 8 * sizeof(std::int32_t)) << n_good;
    EXPECT_TRUE(*first == 1 || *first == 2) << n_good;
    for (int i = 0; i < 8; ++i) EXPECT_EQ(first[i], *first) << n_good;
  }
}

TEST_P(ArrayFileFault, ABadPutIsToldToAllRanks) {
  const TestFolder folder;
  std::vector<Status> statuses(static_cast<std::size_t>(GetParam()));
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    const int last = comm->n_ranks() - 1;
    auto file = created(std::move(comm), folder / "bad.nc", array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {4, 4})));
    if (rank == last) {
      EXPECT_EQ(put_values(*file, 0, {{2, 0}, {3, 4}, {}}, filled(12, 1)).code(),
                Code::bad_coverage);
    }
    if (rank == 0) EXPECT_OK(put_values(*file, 0, {{0, 0}, {4, 4}, {}}, filled(16, 9)));
    statuses[static_cast<std::size_t>(rank)] = file->flush();
    EXPECT_OK(file->flush());  // the others' values are not lost
    EXPECT_EQ(get_values<std::int32_t>(*file, 0, {{0, 0}, {4, 4}, {}}), filled(16, 9));
    EXPECT_OK(file->close());
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::bad_coverage);
    EXPECT_EQ(status.message(), statuses[0].message());
  }
}

TEST_P(ArrayFileFault, RanksThatDisagree) {
  const TestFolder folder;
  const bool several = GetParam() > 1;
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto file = created(std::move(comm), folder / "apart.nc", array_options(""));
    ASSERT_NE(file, nullptr);
    const Status changed = file->change_model(one_variable(ModelType::i32, {4 + rank}));
    EXPECT_EQ(changed.code(), several ? Code::disagreement : Code::ok);
    NetcdfModel twice = one_variable(ModelType::i32, {4});
    twice.variables.push_back(twice.variables.front());
    EXPECT_EQ(file->change_model(twice).code(), Code::invalid_argument);
    EXPECT_OK(file->abort());
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "apart.nc"));
  EXPECT_FALSE(std::filesystem::exists(folder / "apart.nc.partial"));
}

TEST_P(ArrayFileFault, AbortKeepsTheLastFlush) {
  const TestFolder folder;
  const std::string path = folder / "abort.nc";
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::i32, {4})));
    if (file->comm().is_root()) {
      EXPECT_OK(put_values(*file, 0, {{0}, {4}, {}}, std::vector<std::int32_t>{1, 2, 3, 4}));
    }
    EXPECT_OK(file->flush());
    EXPECT_OK(put_values(*file, 0, {{0}, {1}, {}}, std::vector<std::int32_t>{7}));
    EXPECT_OK(file->abort());
  });
  const std::vector<std::byte> values = read_field(path, "/v");
  ASSERT_EQ(values.size(), 16U);
  EXPECT_EQ(std::to_integer<int>(values[0]), 1);
}

TEST(ArrayFileFaults, AMissingCodecIsRefusedAndAnotherOneTaken) {
  const TestFolder folder;
  auto file = created(make_self_comm(), folder / "codec.nc", array_options("codec=nosuch"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {4})));
  EXPECT_OK(put_values(*file, 0, {{0}, {4}, {}}, std::vector<float>(4, 1)));
  EXPECT_EQ(file->flush().code(), Code::invalid_argument);
  EXPECT_OK(file->set_variable_options(0, "codec=deflate"));
  EXPECT_OK(file->close());
}

/// A variable with an impossible codec, chunk or setting is refused; the others' values are
/// written.
TEST_P(ArrayFileFault, AVariableThatCannotBeStoredTakesNoOthersValues) {
  for (const char* wrong : {"codec=nosuch", "chunk=99999x99999x99999", "guard=monotone=1",
                            "codec=auto,bound=abs=1,level=3"}) {
    const TestFolder folder;
    const std::string path = folder / "v.nc";
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      const bool root = comm->is_root();
      auto file = created(std::move(comm), path, array_options("bad: " + std::string(wrong)));
      ASSERT_NE(file, nullptr);
      NetcdfModel model = one_variable(ModelType::f32, {0, 0, 0});
      for (const char* name : {"bad", "idle"}) {
        model.variables.push_back(model.variables[0]);
        model.variables.back().name = name;
      }
      EXPECT_OK(file->change_model(model));
      for (std::uint64_t t = 0; t < 3; ++t) {
        for (std::size_t v = 0; root && v < 2; ++v) {
          EXPECT_OK(put_values(*file, v, {{t, 0, 0}, {1, 1, 1}, {}}, std::vector<float>(1, 5)));
        }
        const Status flushed = t == 2 ? file->close() : file->flush();
        EXPECT_FALSE(flushed.ok()) << wrong;
        EXPECT_NE(flushed.message().find("/bad"), std::string::npos) << flushed.message();
      }
    });
    EXPECT_EQ(read_field(path, "/v").size(), 3 * sizeof(float)) << wrong;
    const NetcdfModel stored = model_of(path);
    EXPECT_EQ(stored.variables.size(), 2U) << wrong;
  }
}

TEST(ArrayFileFaults, WhatCannotBeStoredIsRefusedWithTheOptions) {
  const TestFolder folder;
  auto file = created(make_self_comm(), folder / "v.nc", array_options(""));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f32, {64})));
  EXPECT_EQ(file->set_variable_options(0, "codec=id=32099").code(), Code::plugin_missing);
  EXPECT_EQ(file->set_variable_options(0, "guard=monotone=1").code(), Code::unsupported);
  EXPECT_EQ(file->set_variable_options(0, "codec=trz,level=3").code(), Code::invalid_argument);
  EXPECT_OK(file->set_variable_options(0, "codec=trz,bound=rel=1e-3"));
  EXPECT_OK(put_values(*file, 0, {{0}, {64}, {}}, std::vector<float>(64, 1)));
  EXPECT_OK(file->close());
}

TEST(ArrayFileFaults, OptionsAreCheckedWhereTheyStand) {
  ArrayFileOptions options;
  EXPECT_OK(apply_glob_options(
      "memory=64MB; codec=zstd # all\n# temp*: x\ntemp*: codec=trz,bound=abs=1e-3\n"
      "spill-folder=/scratch",
      options));
  EXPECT_EQ(options.file.field_defaults.codec, "zstd");
  ASSERT_EQ(options.variable_options.size(), 1U);
  EXPECT_EQ(options.variable_options[0].first, "temp*");
  EXPECT_EQ(options.spill_folder, "/scratch");
  EXPECT_EQ(apply_glob_options("memory=lots", options).code(), Code::invalid_argument);
  EXPECT_EQ(apply_glob_options("a: bound=abs=-1", options).code(), Code::invalid_argument);
  EXPECT_EQ(apply_glob_options(": codec=zstd", options).code(), Code::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayFileFault, ::testing::Values(1, 2, 3, 4),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace tailrace::test
