// Reads of damaged files, and with little memory; consecutive slabs.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "hdf5/chunk_index_reader.hpp"
#include "read_support.hpp"

namespace tailrace::test {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_contents(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

TEST(ReadFault, TruncatedFilesAreRefused) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_FLOAT, {60, 50}, deflated({16, 9}));
  file.add("e", H5T_NATIVE_FLOAT, {60, 50}, {});
  file.close();
  const std::string bytes = contents(file.path());
  for (std::size_t n = 0; n < bytes.size(); n += 977) {
    write_contents(folder / "cut.h5", bytes.substr(0, n));
    const Result<std::unique_ptr<Reader>> reader = open_reader(folder / "cut.h5");
    ASSERT_FALSE(reader.ok()) << n;
    EXPECT_EQ(reader.status().code(), Code::corrupt) << n << text_of(reader.status());
  }
}

TEST(ReadFault, FlippedBytesGiveErrorsOrValuesButNothingElse) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler hdf5_forgets_memory_of_damaged_files;
#endif
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_FLOAT, {20, 15}, deflated({8, 8}));
  file.add("e", H5T_NATIVE_INT, {30}, {});
  file.close();
  const std::string bytes = contents(file.path());
  std::mt19937 random(11);
  for (int round = 0; round < 150; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = char(random());
    write_contents(folder / "damaged.h5", damaged);
    Result<std::unique_ptr<Reader>> reader = open_reader(folder / "damaged.h5");
    if (!reader.ok()) continue;
    for (std::size_t i = 0; i < (*reader)->datasets().size(); ++i) {
      const StoredDataset& dataset = (*reader)->datasets()[i];
      const std::uint64_t n = n_elements(dataset.shape);
      if (n > 100000 || dataset.value_bytes() > 1000) continue;
      Bytes values(n * dataset.value_bytes());
      const Status read = (*reader)->read(i, Slab::of(whole_box(dataset.shape)), values);
      EXPECT_EQ(read.ok(), read.message().empty());
    }
  }
}

TEST(ReadFault, AMissingPluginIsNamed) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  {
    const Hdf5Scope scope;
    const hsize_t extents[] = {8};
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation.get(), 1, extents);
    // Optional: without the filter HDF5 still writes, and stores the chunk as if it were filtered.
    H5Pset_filter(creation.get(), 31999, H5Z_FLAG_OPTIONAL, 0, nullptr);
    const Hdf5Id space(H5Screate_simple(1, extents, nullptr));
    const Hdf5Id dataset(H5Dcreate2(file.id(), "d", H5T_NATIVE_INT, space.get(), H5P_DEFAULT,
                                    creation.get(), H5P_DEFAULT));
    ASSERT_TRUE(dataset.valid()) << hdf5_error_text();
    const hsize_t start[] = {0};
    const int values[8] = {};
    ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 0, start, sizeof values, values), 0);
  }
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  Bytes values(32);
  const Status read = (*reader)->read(0, {{0}, {8}, {}}, values);
  EXPECT_EQ(read.code(), Code::plugin_missing) << text_of(read);
  EXPECT_NE(read.message().find("31999"), std::string::npos) << read.message();
}

TEST(ReadFault, FilterMasksAreHonoured) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  std::vector<float> values(16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  {
    const Hdf5Scope scope;
    file.add("d", H5T_NATIVE_FLOAT, {64}, deflated({16}));
    const Hdf5Id dataset(H5Dopen2(file.id(), "d", H5P_DEFAULT));
    const hsize_t start[] = {32};
    ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 3, start, 64, values.data()), 0);
  }
  file.close();
  for (const bool opened : {false, true}) {
    Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    if (opened) ASSERT_DONE((*reader)->open_index(std::vector<std::size_t>{0}));
    Bytes got(std::size_t{64} * 4);
    ASSERT_DONE((*reader)->read(0, {{0}, {64}, {}}, got));
    EXPECT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_FLOAT, {{0}, {64}, {}}, 4));
    const auto written = std::as_bytes(std::span(values));
    EXPECT_TRUE(std::equal(written.begin(), written.end(), got.begin() + 128));
  }
}

TEST(ReadFault, AChunkLargerThanTheMemoryIsReadAllTheSame) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_DOUBLE, {700, 600}, deflated({500, 600}));
  file.close();
  ReadOptions options;
  ASSERT_DONE(apply_read_options("threads=2,memory=1MiB", options));
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path(), options);
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  const Slab slab{{3, 5}, {650, 500}, {}};
  Bytes got(std::size_t{650} * 500 * 8);
  ASSERT_DONE((*reader)->read(0, slab, got));
  EXPECT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_DOUBLE, slab, 8));
}

TEST(ReadFault, FewChunksOfALargeGridAreFoundAtOnce) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  {
    const Hdf5Scope scope;
    file.add("d", H5T_NATIVE_INT, {1U << 20, 64}, deflated({64, 64}), false);
    const Hdf5Id dataset(H5Dopen2(file.id(), "d", H5P_DEFAULT));
    const hsize_t start[] = {777777, 3};
    const hsize_t count[] = {2, 2};
    const Hdf5Id space(H5Dget_space(dataset.get()));
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
    const Hdf5Id memory(H5Screate_simple(2, count, nullptr));
    const int values[] = {1, 2, 3, 4};
    ASSERT_GE(
        H5Dwrite(dataset.get(), H5T_NATIVE_INT, memory.get(), space.get(), H5P_DEFAULT, values), 0);
  }
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  for (const Slab& slab : {Slab{{777776, 2}, {4, 4}, {}}, Slab{{5, 0}, {9, 64}, {}},
                           Slab{{0, 3}, {64, 1}, {16384, 1}}}) {
    Bytes got(slab.n_elements() * 4);
    ASSERT_DONE((*reader)->read(0, slab, got));
    EXPECT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_INT, slab, 4));
  }
}

TEST(ReadAhead, SlabsThatRunOnAreServedFromWhatWasDecodedAhead) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_FLOAT, {200, 300}, deflated({10, 100}));
  file.close();
  ReadOptions options;
  ASSERT_DONE(apply_read_options("threads=3", options));
  // Single rows, rows of chunks, columns, every second row.
  const std::vector<std::pair<Slab, std::size_t>> runs = {{{{0, 0}, {1, 300}, {}}, 0},
                                                          {{{0, 0}, {10, 300}, {}}, 0},
                                                          {{{0, 0}, {200, 7}, {}}, 1},
                                                          {{{0, 0}, {5, 300}, {2, 1}}, 0}};
  for (const auto& [first, along] : runs) {
    Result<std::unique_ptr<Reader>> reader = open_reader(file.path(), options);
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    Slab slab = first;
    const std::uint64_t extent = (*reader)->datasets()[0].shape[along];
    while (check_slab(slab, (*reader)->datasets()[0].shape).ok()) {
      Bytes got(slab.n_elements() * 4);
      ASSERT_DONE((*reader)->read(0, slab, got));
      ASSERT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_FLOAT, slab, 4))
          << slab_text(slab);
      slab.start[along] += slab.count[along] * slab.stride_of(along);
      if (slab.start[along] >= extent) break;
    }
    const ReadReport& report = (*reader)->report();
    EXPECT_EQ(report.n_chunks, 60U) << slab_text(first);  // Each chunk once.
    EXPECT_GT(report.n_chunk_hits, 0U);
  }
}

/// Caching would evict everything, including the slab's own chunks. The threads have their own
/// memory.
TEST(ReadAhead, InOnePassASlabOfManyMoreChunksThanMayBeKeptKeepsNone) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_FLOAT, {200, 300}, deflated({10, 100}));
  file.close();
  ReadOptions options;
  ASSERT_DONE(apply_read_options("threads=3", options));
  options.memory_bytes = 32'000;  // Room for four chunks in the cache.
  options.prefetch = false;
  options.one_pass = true;
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path(), options);
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  const Slab few{{3, 3}, {5, 200}, {}};
  const Slab many{{0, 5}, {200, 7}, {}};
  for (const auto& [slab, n_chunks, n_hits] :
       {std::tuple(few, 3, 0), {many, 22, 1}, {many, 41, 2}, {few, 41, 5}}) {
    Bytes got(slab.n_elements() * 4);
    ASSERT_DONE((*reader)->read(0, slab, got));
    EXPECT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_FLOAT, slab, 4));
    EXPECT_EQ((*reader)->report().n_chunks, std::uint64_t(n_chunks));
    EXPECT_EQ((*reader)->report().n_chunk_hits, std::uint64_t(n_hits));
  }
}

/// Partially used chunks stay in the cache; a chunk that is used up does not, whether decoded ahead
/// or not.
TEST(ReadAhead, InOnePassOnlyPartsAreKept) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_FLOAT, {200, 300}, deflated({10, 100}));
  file.close();
  for (const char* text : {"threads=1", "threads=3"}) {
    for (const std::uint64_t n_rows : {10U, 5U}) {
      ReadOptions options;
      ASSERT_DONE(apply_read_options(text, options));
      options.one_pass = true;
      Result<std::unique_ptr<Reader>> reader = open_reader(file.path(), options);
      ASSERT_TRUE(reader.ok()) << text_of(reader.status());
      Bytes got(n_rows * 300 * 4);
      for (std::uint64_t row = 0; row < 400; row += n_rows) {
        const Slab slab{{row % 200, 0}, {n_rows, 300}, {}};
        ASSERT_DONE((*reader)->read(0, slab, got));
        ASSERT_TRUE(got == read_reference(file.path(), "d", H5T_NATIVE_FLOAT, slab, 4)) << row;
      }
      EXPECT_EQ((*reader)->report().n_chunks, n_rows == 10 ? 120U : 60U) << text << ' ' << n_rows;
    }
  }
}

}  // namespace
}  // namespace tailrace::test
