// DatasetArray on several processes, with datasets that HDF5 created, as a program does: the order
// of puts after very many calls, and flushes in the background.

#include <hdf5.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "array/dataset_array.hpp"
#include "core/storage_over.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "mpi/comm_of_all.hpp"
#include "mpi/mpi_counts.hpp"
#include "mpi/rank_support.hpp"
#include "unit/array_support.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::test;

std::uint64_t address_of(hid_t object) {
  H5O_info_t info;
  EXPECT_GE(H5Oget_info2(object, &info, H5O_INFO_BASIC), 0);
  return info.addr;
}

/// Adds a dataset of doubles that a program would create. @returns its number
std::size_t add_doubles(DatasetArray& array, const Shape& shape, const Shape& chunk = {}) {
  NewDataset definition;
  definition.chunk_shape = chunk;
  definition.path = "/x";
  definition.element_bytes = sizeof(double);
  definition.number = DType::f64;
  definition.shape = shape;
  definition.fill.assign(sizeof(double), std::byte{0});
  Result<DatasetPlan> plan = array.plan_new(definition);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  std::uint64_t address = 0;
  {
    const Hdf5Scope scope;
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    EXPECT_OK(array.metadata().adapt_creation_list(list.get(), plan->form));
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const Hdf5Id space(H5Screate_simple(static_cast<int>(shape.size()), extents.data(), nullptr));
    const Hdf5Id made(H5Dcreate2(array.metadata().hdf5_id(), "x", H5T_NATIVE_DOUBLE, space.get(),
                                 H5P_DEFAULT, list.get(), H5P_DEFAULT));
    EXPECT_TRUE(made.valid());
    address = address_of(made.get());
  }
  return array.add(definition, *plan, address, 0);
}

Status put_doubles(DatasetArray& array, std::size_t dataset, const Slab& slab, double value) {
  const std::vector<double> values(slab.n_elements(), value);
  array.begin_write();
  return array.put(dataset, slab, std::as_bytes(std::span(values)));
}

std::vector<double> get_doubles(DatasetArray& array, std::size_t dataset, const Slab& slab) {
  std::vector<double> values(slab.n_elements());
  EXPECT_OK(array.get(dataset, slab, std::as_writable_bytes(std::span(values))));
  return values;
}

/// A put by all ranks together, like a collective call of PnetCDF or HDF5, ends with one reduction.
/// An independent put has no reduction.
TEST(ArrayMeetings, EndAPutThatRanksMakeTogether) {
  const std::uint64_t most = api_test::n_ranks() == 1 ? 0 : 1;
  const auto file = created(api_test::comm_of_all(), api_test::scratch("puts.nc"),
                            array_options("codec=deflate"));
  ASSERT_NE(file, nullptr);
  EXPECT_OK(file->change_model(one_variable(ModelType::f64, {0, 8})));
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::uint64_t row =
        round * std::uint64_t(api_test::n_ranks()) + std::uint64_t(api_test::rank());
    mpi_counts::n_collectives = mpi_counts::n_sends = 0;
    EXPECT_OK(put_values(*file, 0, {{row, 0}, {1, 8}, {}}, std::vector<double>(8, double(row))));
    EXPECT_EQ(mpi_counts::n_collectives + mpi_counts::n_sends, 0U);
    EXPECT_OK(file->end_collective_put());
    EXPECT_EQ(mpi_counts::n_collectives, most);
    EXPECT_EQ(mpi_counts::n_sends, 0U);
    EXPECT_EQ(file->model().dimensions[0].length, (round + 1) * std::uint64_t(api_test::n_ranks()));
  }
  EXPECT_OK(file->close());

  auto made = DatasetArray::create(api_test::comm_of_all(), api_test::scratch("puts.h5"),
                                   array_options(""));
  ASSERT_TRUE(made.ok()) << made.status().message();
  mpi_counts::n_collectives = mpi_counts::n_sends = 0;
  (*made)->begin_collective_put();
  EXPECT_OK((*made)->end_collective_put());
  EXPECT_EQ(mpi_counts::n_collectives, most);
  EXPECT_EQ(mpi_counts::n_sends, 0U);
  EXPECT_OK((*made)->close());
}

/// Order between ranks survives more than four million collective calls, which would exhaust their
/// counter. A flush resets the counter in time, whatever is held back.
TEST(DatasetArrayRanks, OrderOutlastsManyCalls) {
  const bool several = api_test::n_ranks() > 1;
  auto made = DatasetArray::create(api_test::comm_of_all(), api_test::scratch("calls.h5"),
                                   array_options("memory=8MB,codec=deflate"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, {64, 64});
  const Slab all{{0, 0}, {64, 64}, {}};
  for (int round = 1; round <= 2; ++round) {
    if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, {{0, 0}, {60, 64}, {}}, round));
    EXPECT_OK(array.end_collective_put());
    EXPECT_EQ(array.report().n_flushes, several ? round - 1U : 0U);
    for (int i = 0; i < (1 << 21) + 10; ++i) array.begin_collective_put();
    EXPECT_OK(array.end_collective_put());
    EXPECT_EQ(array.report().n_flushes, several ? static_cast<unsigned>(round) : 0U);
  }
  if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, all, 3));
  array.begin_collective_put();
  if (api_test::is_root()) EXPECT_OK(put_doubles(array, x, {{1, 0}, {2, 64}, {}}, 4));
  EXPECT_OK(array.sync_to_read());
  const std::vector<double> values = get_doubles(array, x, all);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], i / 64 == 1 || i / 64 == 2 ? 4 : 3) << i;
  }
  EXPECT_OK(array.close());
}

// --- Background flushes.

const Shape kBeside{256, 64};
const Slab kWhole{{0, 0}, kBeside, {}};

/// This rank's rows.
Slab own_rows() {
  const auto n_ranks = static_cast<std::uint64_t>(api_test::n_ranks());
  const auto rank = static_cast<std::uint64_t>(api_test::rank());
  const std::uint64_t first = kBeside[0] * rank / n_ranks;
  return {{first, 0}, {kBeside[0] * (rank + 1) / n_ranks - first, kBeside[1]}, {}};
}

TEST(DatasetArrayRanks, FlushesGoOnBesideTheProgram) {
  auto made = DatasetArray::create(api_test::comm_of_all(), api_test::scratch("beside.h5"),
                                   array_options("mode=async,codec=deflate"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, kBeside);
  EXPECT_OK(put_doubles(array, x, own_rows(), 1));
  EXPECT_OK(array.flush_concurrently());
  EXPECT_TRUE(array.is_flushing());
  EXPECT_EQ(array.report().n_flushes, 0U);
  // A rank may not read other ranks' pending values: an error, not the old values.
  if (api_test::n_ranks() > 1) {
    std::vector<double> values(kWhole.n_elements());
    EXPECT_EQ(array.get(x, kWhole, std::as_writable_bytes(std::span(values))).code(),
              Code::unsupported);
  }
  if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, {{3, 0}, {2, 64}, {}}, 2));
  EXPECT_OK(array.flush_concurrently());
  EXPECT_TRUE(array.is_flushing());
  EXPECT_EQ(array.report().n_flushes, 1U);
  if (api_test::is_root()) EXPECT_OK(put_doubles(array, x, {{4, 0}, {2, 64}, {}}, 3));
  EXPECT_OK(array.sync_to_read());
  EXPECT_FALSE(array.is_flushing());
  EXPECT_EQ(array.report().n_flushes, 3U);
  const std::vector<double> values = get_doubles(array, x, kWhole);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / kBeside[1];
    ASSERT_EQ(values[i], row == 3 ? 2 : row == 4 || row == 5 ? 3 : 1) << i;
  }
  EXPECT_EQ(array.report().staged_bytes, (kWhole.n_elements() + 4 * 64) * sizeof(double));
  EXPECT_OK(put_doubles(array, x, own_rows(), 5));
  EXPECT_OK(array.flush_concurrently_to_close());
  EXPECT_TRUE(array.is_flushing());
  EXPECT_OK(array.close());
  EXPECT_EQ(array.report().n_flushes, 4U);
}

/// Chunks with rows of every rank need several times their bytes while pieces wait. If the memory
/// does not suffice for all, the flush waits until some chunks are encoded.
TEST(DatasetArrayRanks, SharedChunksGoBesideTheProgramInLittleMemory) {
  const Shape shape{2048, 64};
  const Slab all{{0, 0}, shape, {}};
  auto made = DatasetArray::create(api_test::comm_of_all(), api_test::scratch("little.h5"),
                                   array_options("mode=async,codec=deflate,memory=3MB,threads=1"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, shape, {64, 64});
  const auto n_ranks = static_cast<std::uint64_t>(api_test::n_ranks());
  const auto rank = static_cast<std::uint64_t>(api_test::rank());
  const auto value_of = [&](int step, std::uint64_t row) {
    return 10000.0 * step + static_cast<double>(row);
  };
  for (int step = 1; step <= 3; ++step) {
    for (std::uint64_t row = rank; row < shape[0]; row += n_ranks) {
      EXPECT_OK(put_doubles(array, x, {{row, 0}, {1, 64}, {}}, value_of(step, row)));
    }
    EXPECT_OK(array.flush_concurrently());
    EXPECT_TRUE(array.is_flushing());
  }
  EXPECT_OK(array.sync_to_read());
  const std::vector<double> values = get_doubles(array, x, all);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value_of(3, i / 64)) << i;
  EXPECT_EQ(array.report().n_chunks, 3 * 32U);
  EXPECT_OK(array.close());
}

/// A shared chunk that needs most of the memory waits behind chunks of the rank's own. Those find
/// no memory until the shared chunk is encoded.
TEST(DatasetArrayRanks, AChunkThatHoldsTheMemoryOthersWaitForIsEncodedFirst) {
  const Shape shape{2560, 256};
  auto made =
      DatasetArray::create(api_test::comm_of_all(), api_test::scratch("most.h5"),
                           array_options("mode=async,codec=deflate,memory=16MiB,threads=1"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, shape, {512, 256});
  const std::uint64_t first = api_test::is_root() ? 0 : 1200;
  const std::uint64_t end = api_test::is_last() ? shape[0] : api_test::is_root() ? 1200 : first;
  for (int step = 1; step <= 2; ++step) {
    if (end > first) {
      EXPECT_OK(put_doubles(array, x, {{first, 0}, {end - first, shape[1]}, {}}, step));
    }
    EXPECT_OK(array.flush_concurrently());
    EXPECT_TRUE(array.is_flushing());
  }
  EXPECT_OK(array.sync_to_read());
  for (const double value : get_doubles(array, x, {{0, 0}, shape, {}})) ASSERT_EQ(value, 2);
  EXPECT_OK(array.close());
}

std::atomic<bool> disk_is_full{false};

class FullStorage final : public StorageOver {
 public:
  using StorageOver::StorageOver;
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (disk_is_full) return Status(Code::no_space, "the disk is full");
    return inner_->write_at(address, bytes);
  }
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    if (disk_is_full) return Status(Code::no_space, "the disk is full");
    return inner_->write_pieces_at(address, pieces);
  }
};

/// Values of a failed background flush are staged again, below values that were put later.
TEST(DatasetArrayRanks, WhatFailsBesideTheProgramIsStagedAgain) {
  ArrayFileOptions options = array_options("mode=async,codec=deflate");
  options.file.open_storage = [](const std::string& path,
                                 bool create) -> Result<std::unique_ptr<Storage>> {
    Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, create, false);
    if (!storage.ok()) return storage;
    return std::unique_ptr<Storage>(std::make_unique<FullStorage>(std::move(*storage)));
  };
  auto made = DatasetArray::create(api_test::comm_of_all(), api_test::scratch("full.h5"), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, kBeside);
  EXPECT_OK(put_doubles(array, x, own_rows(), 1));
  EXPECT_OK(array.flush());
  for (int i = 0; i < 3; ++i) array.begin_collective_put();
  if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, {{0, 0}, {100, 64}, {}}, 2));
  disk_is_full = true;
  EXPECT_OK(array.flush_concurrently());
  if (api_test::is_root()) EXPECT_OK(put_doubles(array, x, {{50, 0}, {10, 64}, {}}, 3));
  const Status failed = array.wait();
  disk_is_full = false;
  EXPECT_EQ(failed.code(), Code::no_space);
  EXPECT_NE(failed.message().find("flush in the background"), std::string::npos)
      << failed.message();
  EXPECT_FALSE(array.is_flushing());
  if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, {{58, 0}, {1, 64}, {}}, 4));
  EXPECT_OK(array.sync_to_read());
  const std::vector<double> values = get_doubles(array, x, kWhole);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / kBeside[1];
    const double since = row == 58 ? 4 : 3;
    ASSERT_EQ(values[i], row >= 50 && row < 60 ? since : row < 100 ? 2 : 1) << i;
  }
  // close() tries the flush again.
  EXPECT_OK(put_doubles(array, x, own_rows(), 6));
  disk_is_full = true;
  EXPECT_OK(array.flush_concurrently_to_close());
  EXPECT_FALSE(array.close().ok());
  disk_is_full = false;
}

}  // namespace
