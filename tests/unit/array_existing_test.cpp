// ArrayFile on files of other writers. Values are put into every form in which HDF5 stores a
// dataset, and stock HDF5 reads them back.

#include <gtest/gtest.h>
#include <hdf5_hl.h>

#include <cmath>

#include "array_support.hpp"
#include "container_support.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "read_support.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

const Shape kShape{12, 10};
constexpr double kFill = -7;

/// A form in which a dataset of 64-bit floats is stored.
struct Form {
  std::string name;
  bool big_endian = false;
  bool written = true;
  bool grows = false;
  CreationSetup setup;
};

std::vector<Form> forms() {
  const auto filled = [](hid_t creation) {
    H5Pset_fill_value(creation, H5T_NATIVE_DOUBLE, &kFill);
  };
  const auto early = [](hid_t creation) { H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY); };
  const auto compact = [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); };
  const auto checked = [](hid_t creation) {
    H5Pset_deflate(creation, 1);
    H5Pset_fletcher32(creation);
  };
  const auto scaled = [](hid_t creation) { H5Pset_scaleoffset(creation, H5Z_SO_FLOAT_DSCALE, 1); };
  return {{"contiguous", false, true, false, filled},
          {"contiguous_big", true, true, false, {}},
          {"late", false, false, false, filled},
          {"early", false, false, false, early},
          {"compact", false, true, false, compact},
          {"compact_big", true, true, false, compact},
          {"chunked", false, true, false, chunked({5, 4}, filled)},
          {"chunked_big", true, true, false, chunked({5, 4}, filled)},
          {"chunked_empty", true, false, true, chunked({5, 4}, filled)},
          {"chunked_early", false, false, false, chunked({5, 4}, early)},
          {"deflated", false, true, false, deflated({5, 4})},
          {"deflated_big", true, true, false, deflated({5, 4})},
          {"checked", false, true, true, chunked({5, 4}, checked)},
          {"growing", false, true, true, deflated({5, 4})},
          {"growing_big", true, true, true, deflated({1, 10})},
          {"scaled", false, true, true, chunked({5, 4}, scaled)}};
}

void add_form(hid_t file, const Form& form) {
  const Hdf5Scope scope;
  const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  if (form.setup) form.setup(creation.get());
  const hsize_t extents[2] = {kShape[0], kShape[1]};
  const hsize_t limits[2] = {form.grows ? H5S_UNLIMITED : kShape[0], kShape[1]};
  const Hdf5Id space(H5Screate_simple(2, extents, limits));
  const Hdf5Id dataset(H5Dcreate2(file, form.name.c_str(),
                                  form.big_endian ? H5T_IEEE_F64BE : H5T_IEEE_F64LE, space.get(),
                                  H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid()) << form.name << ": " << hdf5_error_text();
  if (!form.written) return;
  std::vector<double> values(n_elements(kShape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  ASSERT_GE(
      H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
}

std::vector<double> doubles(const Bytes& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class ArrayExisting : public ::testing::TestWithParam<int> {};

/// Overlapping puts of ranks with a collective call in between take effect in the order of the
/// calls. It does not matter who writes: all ranks, chunk by chunk or in place, or rank 0 through
/// HDF5.
TEST_P(ArrayExisting, LaterPutsOfOtherRanksStayInEveryForm) {
  const TestFolder folder;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    if (form.name == "scaled") continue;  // loses digits
    const std::string path = folder / (form.name + ".h5");
    {
      StockFile stock(path);
      add_form(stock.id(), form);
    }
    std::vector<double> expected(n_elements(kShape));
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      const int n_ranks = comm->n_ranks();
      auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
      ASSERT_NE(file, nullptr);
      std::vector<double> values(n_elements(kShape));
      for (int turn = 0; turn < 3 * n_ranks; ++turn) {
        const auto t = static_cast<std::uint64_t>(turn);
        const Slab slab = turn == 0 ? Slab::of(whole_box(kShape))
                                    : Slab{{t % 5, t % 3}, {4, 3}, {1 + t % 2, 1 + t % 3}};
        const auto value = static_cast<double>(turn + 1);
        for_each_position({{0, 0}, slab.count}, [&](const Shape& at) {
          const std::uint64_t row = slab.start[0] + at[0] * slab.stride_of(0);
          values[row * kShape[1] + slab.start[1] + at[1] * slab.stride_of(1)] = value;
        });
        if (n_ranks - 1 - turn % n_ranks == rank) {  // the last is rank 0
          EXPECT_OK(put_values(*file, 0, slab, std::vector<double>(slab.n_elements(), value)));
        }
        EXPECT_OK(file->end_collective_put());
      }
      EXPECT_OK(file->close());
      if (rank == 0) expected = values;
    });
    EXPECT_EQ(doubles(read_reference(path, "/" + form.name, H5T_NATIVE_DOUBLE,
                                     Slab::of(whole_box(kShape)), sizeof(double))),
              expected);
  }
}

TEST_P(ArrayExisting, EveryFormIsWrittenInto) {
  const TestFolder folder;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const std::string path = folder / (form.name + ".h5");
    {
      StockFile stock(path);
      add_form(stock.id(), form);
    }
    const Slab all = Slab::of(whole_box(kShape));
    const std::vector<double> before =
        doubles(read_reference(path, "/" + form.name, H5T_NATIVE_DOUBLE, all, sizeof(double)));
    Shape shape = kShape;
    if (form.grows) shape[0] += 9;
    const Slab grown = Slab::of(whole_box(shape));
    std::vector<double> after(grown.n_elements());
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      const int rank = comm->rank();
      const int n_ranks = comm->n_ranks();
      std::mt19937 random(7);
      auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
      ASSERT_NE(file, nullptr);
      ASSERT_EQ(file->model().variables.size(), 1U);
      ReferenceArray<double> reference(kShape, 0);
      reference.put(0, all, before);
      ASSERT_EQ(reference.n_wrong_after_flush(get_values<double>(*file, 0, all)), 0U);
      for (int round = 0; round < 4; ++round) {
        if (round == 2 && form.grows) {
          const double far = 99;
          reference.grow(shape, form.setup && form.name == "chunked_empty" ? kFill : 0);
          const Slab corner{{shape[0] - 1, shape[1] - 1}, {1, 1}, {}};
          reference.put(0, corner, std::vector<double>{far});
          if (rank == 0) EXPECT_OK(put_values(*file, 0, corner, std::vector<double>{far}));
          EXPECT_OK(file->end_collective_put());
        }
        const Shape now = file->model().shape_of(file->model().variables[0]);
        for (int op = 0; op < 4; ++op) {
          const int who = static_cast<int>(random() % static_cast<unsigned>(n_ranks));
          const Slab slab = random_slab(now, random);
          if (slab.empty()) continue;
          std::vector<double> values(slab.n_elements());
          for (double& value : values) value = static_cast<double>(random() % 1000);
          reference.put(who, slab, values);
          if (who == rank) EXPECT_OK(put_values(*file, 0, slab, values));
        }
        EXPECT_OK(file->flush());
        const std::vector<double> read = get_values<double>(*file, 0, Slab::of(whole_box(now)));
        ASSERT_EQ(reference.n_wrong_after_flush(read), 0U) << "round " << round;
        if (rank == 0 && now == shape) after = read;
      }
      EXPECT_OK(file->close());
    });
    EXPECT_EQ(
        doubles(read_reference(path, "/" + form.name, H5T_NATIVE_DOUBLE, grown, sizeof(double))),
        after);
  }
}

/// Two variables along one unlimited dimension. One has fewer records: netCDF-C leaves datasets as
/// short as they were written.
void add_lagging(hid_t file) {
  const Hdf5Scope scope;
  const auto add = [&](const char* name, std::vector<hsize_t> extents, bool values) {
    std::vector<hsize_t> limits = extents;
    limits[0] = H5S_UNLIMITED;
    std::vector<hsize_t> chunk(extents.size(), 2);
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_fill_value(creation.get(), H5T_NATIVE_DOUBLE, &kFill);
    const Hdf5Id space(
        H5Screate_simple(static_cast<int>(extents.size()), extents.data(), limits.data()));
    Hdf5Id dataset(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT,
                              creation.get(), H5P_DEFAULT));
    if (values) {
      const std::vector<double> ones(15, 1.0);
      H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data());
    }
    return dataset;
  };
  const Hdf5Id t = add("t", {5}, true);
  const Hdf5Id a = add("a", {5, 3}, true);
  const Hdf5Id b = add("b", {2, 3}, true);
  H5DSset_scale(t.get(), "t");
  H5DSattach_scale(a.get(), t.get(), 0);
  H5DSattach_scale(b.get(), t.get(), 0);
}

std::size_t variable_named(const ArrayFile& file, const std::string& name) {
  const auto& variables = file.model().variables;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].name == name) return v;
  }
  ADD_FAILURE() << "no variable " << name;
  return 0;
}

TEST_P(ArrayExisting, AVariableWithFewerRecordsThanItsDimensionReadsAsFill) {
  const TestFolder folder;
  const std::string path = folder / "lagging.nc";
  {
    StockFile stock(path);
    add_lagging(stock.id());
  }
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    auto file = opened(std::move(comm), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(file, nullptr);
    const std::size_t b = variable_named(*file, "b");
    ASSERT_EQ(file->model().shape_of(file->model().variables[b]), (Shape{5, 3}));
    const Slab slab{{1, 0}, {3, 2}, {}};
    const std::vector<double> expected{1, 1, kFill, kFill, kFill, kFill};
    EXPECT_EQ(get_values<double>(*file, b, slab), expected);
    std::vector<double> together(slab.n_elements());
    const ReadRequest request{b, slab, reinterpret_cast<std::byte*>(together.data())};
    EXPECT_OK(file->get_all(std::span(&request, 1)));
    EXPECT_EQ(together, expected);
    EXPECT_OK(file->close());
  });
}

TEST_P(ArrayExisting, AVariableWithFewerRecordsIsWrittenBeyondThem) {
  const TestFolder folder;
  const std::string path = folder / "lagging.nc";
  {
    StockFile stock(path);
    add_lagging(stock.id());
  }
  run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    const std::size_t b = variable_named(*file, "b");
    if (rank == 0) {
      EXPECT_OK(put_values(*file, b, {{4, 0}, {1, 3}, {}}, std::vector<double>{2, 3, 4}));
    }
    EXPECT_OK(file->flush());
    EXPECT_EQ(get_values<double>(*file, b, {{1, 1}, {4, 1}, {}}),
              (std::vector<double>{1, kFill, kFill, 3}));
    EXPECT_OK(file->close());
  });
  EXPECT_EQ(
      doubles(read_reference(path, "/b", H5T_NATIVE_DOUBLE, Slab::of(whole_box({5, 3})),
                             sizeof(double))),
      (std::vector<double>{1, 1, 1, 1, 1, 1, kFill, kFill, kFill, kFill, kFill, kFill, 2, 3, 4}));
}

float wave(std::uint64_t row, std::uint64_t column) {
  return std::sin(0.1F * static_cast<float>(row)) * 100 + static_cast<float>(column);
}

std::vector<float> waves(std::uint64_t first, std::uint64_t n_rows, std::uint64_t n_columns) {
  std::vector<float> values;
  for (std::uint64_t i = first; i < first + n_rows; ++i) {
    for (std::uint64_t j = 0; j < n_columns; ++j) values.push_back(wave(i, j));
  }
  return values;
}

/// A variable of codec trz is continued with the bound in its header. Chunks that must keep decoded
/// values are still stored raw.
TEST_P(ArrayExisting, TrzIsContinuedWithItsBound) {
  constexpr std::uint64_t kColumns = 40;
  for (const std::string bound : {"abs=0.5", "pw_rel=1e-2", "rel=1e-3", "none"}) {
    SCOPED_TRACE(bound);
    const TestFolder folder;
    const std::string path = folder / "trz.nc";
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      auto file =
          created(std::move(comm), path, array_options("chunk=8x20,codec=trz,bound=" + bound));
      ASSERT_NE(file, nullptr);
      EXPECT_OK(file->change_model(one_variable(ModelType::f32, {0, kColumns})));
      EXPECT_OK(put_values(*file, 0, {{0, 0}, {16, kColumns}, {}}, waves(0, 16, kColumns)));
      EXPECT_OK(file->close());
    });
    run_ranks(GetParam(), [&](std::unique_ptr<Comm> comm) {
      auto file = opened(std::move(comm), path, ArrayFile::Access::write, array_options(""));
      ASSERT_NE(file, nullptr);
      // Four complete chunks, and two partial ones: 24 of 44 rows.
      EXPECT_OK(put_values(*file, 0, {{16, 0}, {20, kColumns}, {}}, waves(16, 20, kColumns)));
      EXPECT_OK(file->flush());
      EXPECT_EQ(file->report().n_raw_chunks, 0U);
      EXPECT_LT(file->report().encoded_bytes, file->report().raw_bytes * 9 / 10);
      // The last two chunks again, of which four rows stay: none of their values is encoded twice.
      EXPECT_OK(put_values(*file, 0, {{36, 0}, {8, kColumns}, {}}, waves(36, 8, kColumns)));
      EXPECT_OK(file->flush());
      EXPECT_EQ(file->report().n_raw_chunks, 0U);
      EXPECT_OK(file->close());
    });
    auto again = opened(make_self_comm(), path, ArrayFile::Access::read, array_options(""));
    ASSERT_NE(again, nullptr);
    const auto values = get_values<float>(*again, 0, {{0, 0}, {44, kColumns}, {}});
    double largest = 0;
    for (std::uint64_t i = 0; i < 44; ++i) {
      for (std::uint64_t j = 0; j < kColumns; ++j) {
        const double exact = wave(i, j);
        const double error = std::abs(values[i * kColumns + j] - exact);
        const double limit = bound == "abs=0.5"       ? 0.5
                             : bound == "pw_rel=1e-2" ? 1e-2 * std::abs(exact)
                             : bound == "rel=1e-3"    ? 0.15
                                                      : 0;
        ASSERT_LE(error, limit) << i << ", " << j;
        if (i >= 16) largest = std::max(largest, error);
      }
    }
    EXPECT_EQ(largest > 0, bound != "none");
  }
}

INSTANTIATE_TEST_SUITE_P(OfRanks, ArrayExisting, ::testing::Values(1, 3),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace tailrace::test
