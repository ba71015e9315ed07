// DatasetArray by several processes, its datasets made by HDF5 as a program makes them: order that
// outlasts very many calls; chunks of opened files that are too large for all ranks, or tiny.

#include <hdf5.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "array/dataset_array.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "mpi/rank_support.hpp"
#include "unit/array_support.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::test;

std::unique_ptr<Comm> world_of_datasets() {
  const MPI_Comm comm = MPI_COMM_WORLD;
  Result<std::unique_ptr<Comm>> made = make_mpi_comm(&comm, sizeof comm);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

std::uint64_t address_of(hid_t object) {
  H5O_info_t info;
  EXPECT_GE(H5Oget_info2(object, &info, H5O_INFO_BASIC), 0);
  return info.addr;
}

/// A dataset of doubles as a program creates it. @returns its number
std::size_t add_doubles(DatasetArray& array, const Shape& shape) {
  DatasetArray::Definition definition;
  definition.path = "/x";
  definition.element_bytes = sizeof(double);
  definition.number = DType::f64;
  definition.shape = shape;
  definition.fill.assign(sizeof(double), std::byte{0});
  Result<DatasetArray::Plan> plan = array.plan_new(definition);
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
  return array.add(definition, *plan, address);
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

/// Four million collective calls used up what counts them, and order between ranks was lost. Now
/// there is a flush in time, whatever is held back.
TEST(DatasetArrayRanks, OrderOutlastsManyCalls) {
  const bool several = api_test::n_ranks() > 1;
  auto made = DatasetArray::create(world_of_datasets(), api_test::scratch("calls.h5"),
                                   array_options("memory=8MB,codec=deflate"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  DatasetArray& array = **made;
  const std::size_t x = add_doubles(array, {64, 64});
  const Slab all{{0, 0}, {64, 64}, {}};
  for (int round = 1; round <= 2; ++round) {
    if (api_test::is_last()) EXPECT_OK(put_doubles(array, x, {{0, 0}, {60, 64}, {}}, round));
    EXPECT_OK(array.settle());
    EXPECT_EQ(array.report().n_flushes, several ? round - 1U : 0U);
    for (int i = 0; i < (1 << 21) + 10; ++i) array.begin_collective_put();
    EXPECT_OK(array.settle());
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

/// A file as other programs leave it, by rank 0: /x with chunks of this shape.
void make_chunked(const std::string& path, const Shape& shape, const Shape& chunk, bool deflate) {
  if (api_test::is_root()) {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    const std::vector<hsize_t> chunks(chunk.begin(), chunk.end());
    H5Pset_chunk(list.get(), static_cast<int>(chunks.size()), chunks.data());
    if (deflate) H5Pset_deflate(list.get(), 1);
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const std::vector<hsize_t> most(shape.size(), H5S_UNLIMITED);
    const Hdf5Id space(
        H5Screate_simple(static_cast<int>(extents.size()), extents.data(), most.data()));
    const Hdf5Id dataset(H5Dcreate2(file.get(), "x", H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT,
                                    list.get(), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid());
    const std::vector<double> values(n_elements(shape), -1);
    EXPECT_GE(
        H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

std::unique_ptr<DatasetArray> opened_datasets(const std::string& path, const char* options) {
  auto array = DatasetArray::open(world_of_datasets(), path, array_options(options));
  EXPECT_TRUE(array.ok()) << array.status().message();
  if (!array.ok()) return nullptr;
  std::uint64_t address = 0;
  {
    const Hdf5Scope scope;
    const Hdf5Id dataset(H5Dopen2((*array)->metadata().hdf5_id(), "x", H5P_DEFAULT));
    address = address_of(dataset.get());
  }
  EXPECT_EQ((*array)->add_existing("/x", address, DatasetArray::Origin::opened), 0U);
  return std::move(*array);
}

/// Chunks that all ranks cannot lay together under memory= are rank 0's, as those of new datasets.
TEST(DatasetArrayRanks, LargeChunksOfAnOpenedFileAreRankZeros) {
  constexpr std::uint64_t kRows = 30;
  constexpr std::uint64_t kColumns = 4096;
  for (const bool deflate : {true, false}) {
    const std::string path = api_test::scratch(deflate ? "deflated.h5" : "plain.h5");
    make_chunked(path, {kRows, kColumns}, {24, kColumns}, deflate);  // chunks of 768 KiB
    const auto me = static_cast<std::uint64_t>(api_test::rank());
    const auto n = static_cast<std::uint64_t>(api_test::n_ranks());
    for (int opening = 0; opening < 2; ++opening) {
      auto array = opened_datasets(path, "memory=4MB");
      ASSERT_NE(array, nullptr);
      for (std::uint64_t row = me; row < kRows; row += n) {
        if (row == 7) continue;
        const auto value = static_cast<double>(opening * 100 + static_cast<int>(row));
        // HDF5 would read, decode and encode a chunk for each of these.
        for (std::uint64_t column = 0; column < kColumns; column += 64) {
          EXPECT_OK(put_doubles(*array, 0, {{row, column}, {1, 64}, {}}, value));
        }
      }
      EXPECT_OK(array->flush());
      EXPECT_EQ(array->report().n_chunks, 0U);
      for (std::uint64_t row = 0; row < kRows; ++row) {
        const double value =
            row == 7 ? -1 : static_cast<double>(opening * 100 + static_cast<int>(row));
        EXPECT_EQ(get_doubles(*array, 0, {{row, 11}, {1, 2}, {}}), std::vector<double>(2, value));
      }
      EXPECT_OK(array->close());
    }
    // The same by an array file.
    auto file =
        opened(world_of_datasets(), path, ArrayFile::Access::write, array_options("memory=4MB"));
    ASSERT_NE(file, nullptr);
    if (api_test::is_last()) {
      EXPECT_OK(
          put_values(*file, 0, {{7, 0}, {1, kColumns}, {}}, std::vector<double>(kColumns, 7)));
    }
    EXPECT_OK(file->flush());
    EXPECT_EQ(file->report().n_chunks, 0U);
    EXPECT_EQ(get_values<double>(*file, 0, {{6, 5}, {2, 1}, {}}), (std::vector<double>{106, 7}));
    EXPECT_OK(file->close());
  }
}

/// What does not fit whoever writes it is an error of the flush, on all ranks, and takes no memory.
TEST(DatasetArrayRanks, ChunksBeyondAllMemoryAreAnError) {
  const std::string path = api_test::scratch("huge.h5");
  if (api_test::is_root()) {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t chunk = 400000000;  // 3.2 GB
    H5Pset_chunk(list.get(), 1, &chunk);
    H5Pset_deflate(list.get(), 1);
    const hsize_t extent = 1000;
    const hsize_t most = H5S_UNLIMITED;
    const Hdf5Id space(H5Screate_simple(1, &extent, &most));
    const Hdf5Id dataset(H5Dcreate2(file.get(), "x", H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT,
                                    list.get(), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  auto array = opened_datasets(path, "memory=64MB");
  ASSERT_NE(array, nullptr);
  if (api_test::is_last()) EXPECT_OK(put_doubles(*array, 0, {{10}, {5}, {}}, 1));
  const Status flushed = array->flush();
  EXPECT_EQ(flushed.code(), Code::out_of_memory);
  EXPECT_NE(flushed.message().find("raise memory="), std::string::npos) << flushed.message();
  EXPECT_FALSE(array->close().ok());
  auto file =
      opened(world_of_datasets(), path, ArrayFile::Access::write, array_options("memory=64MB"));
  ASSERT_NE(file, nullptr);
  if (api_test::is_root()) EXPECT_OK(put_values(*file, 0, {{3}, {1}, {}}, std::vector<double>{1}));
  EXPECT_EQ(file->flush().code(), Code::out_of_memory);
  EXPECT_OK(file->abort());
}

/// Very many chunks of one element and three: written and read, by both kinds of file.
TEST(DatasetArrayRanks, TinyChunksOfAnOpenedFile) {
  constexpr std::uint64_t kElements = 20000;
  const auto me = static_cast<std::uint64_t>(api_test::rank());
  const auto n = static_cast<std::uint64_t>(api_test::n_ranks());
  for (const std::uint64_t chunk : {1U, 3U}) {
    const std::string path = api_test::scratch(std::to_string(chunk) + ".h5");
    make_chunked(path, {kElements}, {chunk}, chunk == 3);
    auto array = opened_datasets(path, "memory=16MB");
    ASSERT_NE(array, nullptr);
    const Slab mine{{me}, {(kElements - 1 - me) / n + 1}, {n}};
    EXPECT_OK(put_doubles(*array, 0, mine, static_cast<double>(me)));
    EXPECT_OK(array->flush());
    EXPECT_EQ(array->report().n_chunks, (kElements + chunk - 1) / chunk);
    const std::vector<double> values = get_doubles(*array, 0, {{0}, {kElements}, {}});
    for (std::uint64_t i = 0; i < kElements; ++i) ASSERT_EQ(values[i], static_cast<double>(i % n));
    EXPECT_OK(array->close());
    auto file = opened(world_of_datasets(), path, ArrayFile::Access::write, array_options(""));
    ASSERT_NE(file, nullptr);
    EXPECT_OK(put_values(*file, 0, mine, std::vector<double>(mine.n_elements(), 0.5)));
    EXPECT_OK(file->flush());
    EXPECT_EQ(get_values<double>(*file, 0, {{0}, {kElements}, {}}),
              std::vector<double>(kElements, 0.5));
    EXPECT_OK(file->close());
  }
}

}  // namespace
