// ArrayFile and lossy plug-ins: opened variables continue with codec and bound, and the largest
// error recorded in the file stays true.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "array/kept_originals.hpp"
#include "array_support.hpp"
#include "container_support.hpp"
#include "core/codec_registry.hpp"
#include "describe/field_attributes.hpp"
#include "exec/comm_factory.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kColumns = 40;
constexpr double kBound = 0.05;

/// Values whose roughness, and so whose errors, grow from row to row.
std::vector<float> rough(std::uint64_t first, std::uint64_t n) {
  std::vector<float> values;
  for (std::uint64_t i = first; i < first + n; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    for (std::uint64_t j = 0; j < kColumns; ++j) {
      const double noise = static_cast<double>(random() % 1000) * 1e-3;
      values.push_back(static_cast<float>(50 * std::sin(0.02 * static_cast<double>(i + j)) +
                                          (i < 16 ? 0 : noise)));
    }
  }
  return values;
}

Slab rows(std::uint64_t first, std::uint64_t n) { return {{first, 0}, {n, kColumns}, {}}; }

bool plugin_is_here(const char* name) {
  CodecRequest request;
  request.name = name;
  request.chunk_shape = {8, 20};
  request.absolute_bound = kBound;
  return make_codec(request, "").ok();
}

double max_error_of(const std::string& path) {
  const std::string names[] = {"/v"};
  const Result<std::vector<FieldAttributes>> stored = read_field_attributes(path, names);
  return stored.ok() ? (*stored)[0].max_error.value_or(-1) : -2;
}

double largest_error(ArrayFile& file, std::uint64_t first, std::uint64_t n) {
  const std::vector<float> values = get_values<float>(file, 0, rows(first, n));
  const std::vector<float> exact = rough(first, n);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(double{values[i]} - double{exact[i]}));
  }
  return largest;
}

class ArrayLossy : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(ArrayLossy, AnOpenedVariableGoesOnWithItsBound) {
  const auto& [name, n_ranks] = GetParam();
  if (!plugin_is_here(name)) GTEST_SKIP() << name << " is not installed";
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  const std::string options = std::string("chunk=8x20,bound=abs=0.05,codec=") + name;
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options(options));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, kColumns})));
    EXPECT_OK(put_values(*file, 0, rows(0, 8), rough(0, 8)));
    EXPECT_OK(file->flush());
    EXPECT_OK(put_values(*file, 0, rows(8, 8), rough(8, 8)));
    EXPECT_OK(file->close());
  });
  const double before = max_error_of(path);
  {
    auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    const double largest = largest_error(*file, 0, 16);
    EXPECT_GT(largest, 0);
    EXPECT_GE(before, largest);  // largest error of both flushes
    EXPECT_LE(before, kBound);
  }
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    // Four complete chunks, then two partial ones.
    EXPECT_OK(put_values(*file, 0, rows(16, 20), rough(16, 20)));
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->report().n_chunks, 6U);
    EXPECT_EQ(file->report().n_raw_chunks, 0U);
    EXPECT_OK(file->close());
  });
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    // The last two chunks again, of which the file has four rows: raw.
    EXPECT_OK(put_values(*file, 0, rows(36, 4), rough(36, 4)));
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->report().n_raw_chunks, 2U);
    EXPECT_OK(file->close());
  });
  auto again = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
  ASSERT_NE(again, nullptr);
  const double largest = largest_error(*again, 16, 24);
  EXPECT_GT(largest, 0);
  EXPECT_LE(largest, kBound);
  EXPECT_GE(max_error_of(path), largest);
  EXPECT_EQ(largest_error(*again, 36, 4), 0);
}

/// The second dataset needs a filter for which HDF5 has had a stub since the first flush.
TEST_P(ArrayLossy, AVariableMayComeWithALaterFlush) {
  const auto& [name, n_ranks] = GetParam();
  if (!plugin_is_here(name)) GTEST_SKIP() << name << " is not installed";
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  const std::string options = std::string("chunk=16x20,bound=abs=0.05,codec=") + name;
  run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options(options));
    ASSERT_NE(file, nullptr);
    NetcdfModel model = one_variable(ModelType::f32, {16, kColumns});
    for (const char* more : {"late", "never"}) {
      model.variables.push_back(model.variables[0]);
      model.variables.back().name = more;
    }
    EXPECT_OK(file->change_model(model));
    for (const std::size_t v : {0U, 1U}) {
      EXPECT_OK(put_values(*file, v, rows(0, 16), rough(0, 16)));
      EXPECT_OK(file->flush());
    }
    EXPECT_OK(file->close());
  });
  auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
  ASSERT_NE(file, nullptr);
  EXPECT_LE(largest_error(*file, 0, 16), kBound);
  EXPECT_EQ(get_values<float>(*file, 1, rows(0, 16)), get_values<float>(*file, 0, rows(0, 16)));
  EXPECT_OK(file->close());
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayLossy,
                         ::testing::Combine(::testing::Values("sz3", "zfp", "sperr"),
                                            ::testing::Values(1, 3)),
                         [](const auto& it) {
                           return std::string(std::get<0>(it.param)) + "_" +
                                  std::to_string(std::get<1>(it.param));
                         });

// --- Chunks that several flushes fill.

/// Options, number of ranks, rows in the first dimension (0: it grows).
class ArrayFilledInTurn
    : public ::testing::TestWithParam<std::tuple<const char*, int, std::uint64_t>> {};

TEST_P(ArrayFilledInTurn, IsStoredAsIfFilledAtOnce) {
  const auto& [options, n_ranks, length] = GetParam();
  const TestFolder folder;
  constexpr std::uint64_t kRows = 20;
  std::vector<float> read[2];
  for (const std::uint64_t at_once : {kRows, std::uint64_t{1}}) {
    const std::string path = folder / std::to_string(at_once);
    run_ranks(n_ranks, [&, length = length, options = options](std::unique_ptr<Comm> comm) {
      auto file =
          created(std::move(comm), path,
                  array_options(std::string("chunk=8x20,bound=abs=0.05,codec=trz,") + options));
      ASSERT_NE(file, nullptr);
      EXPECT_OK(file->change_model(one_variable(ModelType::f32, {length, kColumns})));
      for (std::uint64_t row = 0; row < kRows; row += at_once) {
        const bool mine = row % file->comm().n_ranks() == std::uint64_t(file->comm().rank());
        if (mine) {
          EXPECT_OK(put_values(*file, 0, rows(row, at_once), rough(row, at_once)));
        }
        if (length == 0) {
          EXPECT_OK(file->end_collective_put());
        }
        EXPECT_OK(file->flush());
      }
      EXPECT_OK(file->close());
      if (n_ranks == 1) {
        EXPECT_EQ(file->report().n_raw_chunks, 0U);
      }
    });
    auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_LE(largest_error(*file, 0, kRows), kBound);
    read[at_once == 1 ? 0 : 1] = get_values<float>(*file, 0, rows(0, kRows));
  }
  if (n_ranks == 1) {
    EXPECT_EQ(read[0], read[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfRanks, ArrayFilledInTurn,
    ::testing::Combine(::testing::Values("fsync=off", "memory=4MiB"), ::testing::Values(1, 3),
                       ::testing::Values(std::uint64_t{20}, std::uint64_t{0})));

/// A chunk of eight rows gets one more with each opening of the file.
class ArrayAppended
    : public ::testing::TestWithParam<std::tuple<const char*, std::optional<float>>> {};

TEST_P(ArrayAppended, KeepsItsCodecAndItsBound) {
  const auto& [codec, fill] = GetParam();
  NetcdfModel model = one_variable(ModelType::f32, {0, kColumns});
  if (fill) {
    const auto bytes = std::as_bytes(std::span(&*fill, 1));
    model.variables[0].attributes.push_back(
        {"_FillValue", ModelType::f32, 1, {bytes.begin(), bytes.end()}, {}});
  }
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  std::vector<float> before;
  for (std::uint64_t row = 0; row < 12; ++row) {
    auto file =
        row == 0 ? created(make_self_comm(), path,
                           array_options(std::string("chunk=8x20,bound=abs=0.05,codec=") + codec))
                 : opened(make_self_comm(), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    if (row == 0) {
      EXPECT_OK(file->change_model(model));
    }
    EXPECT_OK(put_values(*file, 0, rows(row, 1), rough(row, 1)));
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->report().n_raw_chunks, 0U) << row;
    const std::vector<float> now = get_values<float>(*file, 0, rows(0, row + 1));
    EXPECT_EQ(before, std::vector<float>(now.begin(), now.end() - kColumns)) << row;
    before = now;
    EXPECT_LE(largest_error(*file, 0, row + 1), kBound) << row;
    EXPECT_OK(file->close());
  }
}

// xarray declares NaN as the fill value of every float.
INSTANTIATE_TEST_SUITE_P(
    OfFills, ArrayAppended,
    ::testing::Combine(::testing::Values("trz", "portable"),
                       ::testing::Values(std::nullopt, std::numeric_limits<float>::quiet_NaN(),
                                         -9.0F)));

/// Random puts by one rank at a time: every element is within the bound of the value put last.
class ArrayRandomlyFilled : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(ArrayRandomlyFilled, KeepsItsBound) {
  const auto& [options, n_ranks] = GetParam();
  for (unsigned seed = 0; seed < 6; ++seed) {
    const TestFolder folder;
    const std::string path = folder / "a.nc";
    const Shape shape{20, kColumns};
    constexpr float kFill = 9.9692099683868690e+36F;  // netCDF's default
    std::vector<float> expected(shape[0] * shape[1], kFill);
    run_ranks(n_ranks, [&, options = options](std::unique_ptr<Comm> comm) {
      auto file = created(std::move(comm), path,
                          array_options(std::string("chunk=8x20,bound=abs=0.05,") + options));
      ASSERT_NE(file, nullptr);
      EXPECT_OK(file->change_model(one_variable(ModelType::f32, shape)));
      std::mt19937 random(seed);  // All ranks make equal choices.
      std::vector<float> last(expected.size(), kFill);
      for (int call = 0; call < 30; ++call) {
        const int who = static_cast<int>(random()) % n_ranks;
        const Slab slab = random_slab(shape, random);
        std::vector<float> values(slab.n_elements());
        std::size_t i = 0;
        for_each_position({Shape(2, 0), slab.count}, [&](const Shape& at) {
          const std::uint64_t row = slab.start[0] + at[0] * slab.stride_of(0);
          const std::uint64_t column = slab.start[1] + at[1] * slab.stride_of(1);
          values[i] = static_cast<float>(random() % 100000) * 1e-3F;
          last[row * kColumns + column] = values[i++];
        });
        if (file->comm().rank() == std::abs(who)) {
          EXPECT_OK(put_values(*file, 0, slab, values));
        }
        EXPECT_OK(random() % 2 == 0 ? file->flush() : file->end_collective_put());
      }
      EXPECT_OK(file->close());
      if (file->comm().rank() == 0) expected = last;
    });
    auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    const std::vector<float> found = get_values<float>(*file, 0, rows(0, shape[0]));
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], expected[i] == kFill ? 0 : kBound)
          << "seed " << seed << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayRandomlyFilled,
                         ::testing::Combine(::testing::Values("codec=trz", "codec=trz,memory=4MiB",
                                                              "codec=portable"),
                                            ::testing::Values(1, 2, 3)));

/// Values near the fill value and the limits of a type: what the codec says to keep stays as it is.
TEST(PortableAgain, LeavesWhatItHasDecoded) {
  std::mt19937 random(5);
  std::size_t n_kept = 0;
  for (const DType dtype : {DType::f32, DType::u8}) {
    for (int round = 0; round < 300; ++round) {
      CodecRequest request;
      request.name = "portable";
      request.dtype = dtype;
      request.chunk_shape = {64, 64};
      request.absolute_bound = dtype == DType::f32 ? 0.1 * (1 + round % 12) : 1 + round % 12;
      if (round % 3 > 0) request.fill_value = round % 3 == 1 ? 0 : 1;
      const Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
      ASSERT_TRUE(codec.ok()) << codec.status().message();
      Buffer values(64 * 64 * dtype_bytes(dtype));
      for (std::size_t i = 0; i < std::size_t{64} * 64; ++i) {
        const auto small = static_cast<float>(random() % 2000) * 1e-3F;
        if (dtype == DType::f32) {
          reinterpret_cast<float*>(values.data())[i] = random() % 4 == 0 ? small : small * 1e-3F;
        } else {
          values.data()[i] = std::byte(static_cast<unsigned char>(235 + random() % 21));
        }
      }
      const auto coded = [](const Codec& by, Buffer input) {
        return by.decode(by.encode(std::move(input)).value()).value();
      };
      const Buffer once = coded(**codec, std::move(values));
      const Codec* const again = (*codec)->keeping_decoded();
      if (again == nullptr || !again->keeps_decoded(once.bytes())) continue;
      ++n_kept;
      const Buffer twice = coded(*again, Buffer::copy_of(once.bytes()));
      ASSERT_TRUE(std::ranges::equal(once.bytes(), twice.bytes())) << round;
    }
  }
  EXPECT_GT(n_kept, 100U);
}

TEST(KeptOriginals, AreUsedOnlyForTheBytesAndThePlaceThatTheyMade) {
  const std::vector<std::byte> values(800, std::byte{1});
  const std::vector<std::byte> stored(10, std::byte{2});
  const ChunkKey key{3, 4};
  const auto with = [&](bool confirmed, bool placed) {
    KeptOriginals kept;
    kept.start_flush(4000);
    kept.keep(key, values, {1, 2});
    if (confirmed) kept.confirm(key, stored);
    if (placed) kept.place(key, 77);
    std::optional<KeptOriginals::Kept> taken = kept.take(key);
    EXPECT_TRUE(taken.has_value());
    EXPECT_FALSE(kept.take(key).has_value());
    EXPECT_EQ(kept.held_bytes(), 0U);
    return std::move(*taken);
  };
  EXPECT_TRUE(with(true, true).if_stored(77, stored).has_value());
  EXPECT_FALSE(with(true, true).if_stored(78, stored).has_value());
  EXPECT_FALSE(with(true, true).if_stored(77, values).has_value());
  EXPECT_FALSE(with(true, false).if_stored(77, stored).has_value());
  EXPECT_FALSE(with(false, true).if_stored(77, stored).has_value());

  KeptOriginals kept;  // Room for three.
  for (std::uint64_t flush = 0; flush < 4; ++flush) {
    kept.start_flush(4000);
    for (std::uint64_t i = 0; i < 2; ++i) kept.keep({flush, i}, values, {1, 2});
    EXPECT_LE(kept.held_bytes(), 4000U);
  }
  EXPECT_TRUE(kept.take({2, 0}).has_value() || kept.take({3, 0}).has_value());
  kept.start_flush(0);
  EXPECT_EQ(kept.held_bytes(), 0U);
}

// --- Bounds relative to the values.

/// Puts values from one rank, or from several ranks in turn; the last rank puts last. Values up to
/// 1e9 are superseded by values from 0 to 1.
void put_superseded(ArrayFile& file, int form) {
  constexpr std::uint64_t kLength = 1000;
  const bool first = file.comm().rank() == 0;
  const bool last = file.comm().rank() + 1 == file.comm().n_ranks();
  if (first) {
    std::vector<float> large(kLength);
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i) * 1e6F;
    EXPECT_OK(put_values(file, 0, Slab{{0}, {kLength}, {}}, large));
  }
  if (file.comm().n_ranks() > 1) EXPECT_OK(file.end_collective_put());
  if (!last) return;
  const auto small = [](std::uint64_t at) { return static_cast<float>(at) * 1e-3F; };
  const auto put_every = [&](const Slab& slab) {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < slab.count[0]; ++i) {
      values.push_back(small(slab.start[0] + i * slab.stride_of(0)));
    }
    EXPECT_OK(put_values(file, 0, slab, values));
  };
  if (form == 0) {
    put_every({{500}, {500}, {}});
    put_every({{0}, {500}, {}});
  } else if (form == 1) {
    put_every({{1}, {500}, {2}});
    put_every({{0}, {500}, {2}});
  } else {
    put_every({{0}, {300}, {}});
    ElementRuns runs;
    std::vector<float> values;
    for (std::uint64_t at = 300; at < kLength; at += 20) {
      runs.add(at, 10);
      for (std::uint64_t i = at; i < at + 10; ++i) values.push_back(small(i));
    }
    EXPECT_OK(put_values(file, 0, runs, values));
    for (std::uint64_t at = 310; at < kLength; at += 20) put_every({{at}, {10}, {}});
  }
}

class ArrayRelative : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ArrayRelative, TheRangeIsThatOfTheValuesThatStay) {
  const auto& [n_ranks, form] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "a.nc";
  run_ranks(n_ranks, [&, form = form](std::unique_ptr<Comm> comm) {
    auto file = created(std::move(comm), path, array_options("chunk=100,codec=trz,bound=rel=1e-3"));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(file->change_model(one_variable(ModelType::f32, {1000})));
    put_superseded(*file, form);
    EXPECT_OK(file->close());
  });
  const std::string names[] = {"/v"};
  const Result<std::vector<FieldAttributes>> stored = read_field_attributes(path, names);
  ASSERT_TRUE(stored.ok());
  EXPECT_NEAR((*stored)[0].absolute_bound, 0.999e-3, 1e-9);
  auto file = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
  ASSERT_NE(file, nullptr);
  const std::vector<float> values = get_values<float>(*file, 0, {{0}, {1000}, {}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], static_cast<float>(i) * 1e-3F, 1e-3) << "at " << i;
  }
  EXPECT_OK(file->close());
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayRelative,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(0, 1, 2)));

}  // namespace
}  // namespace tailrace::test
