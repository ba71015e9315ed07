// Independent reads of every kind of dataset, compared with stock HDF5's.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "hdf5/hdf5_properties.hpp"
#include "read_support.hpp"

namespace tailrace::test {
namespace {

/// Compares slabs of every numeric dataset with the reference.
void expect_slabs_match(Reader& reader, const std::string& path, int n_slabs, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < reader.datasets().size(); ++i) {
    const StoredDataset& dataset = reader.datasets()[i];
    const hid_t type = dataset.dtype ? hdf5_native_type(*dataset.dtype) : H5I_INVALID_HID;
    for (int k = 0; k < n_slabs; ++k) {
      const Slab slab =
          k == 0 ? Slab::of(whole_box(dataset.shape)) : any_slab(dataset.shape, random);
      Bytes values(slab.n_elements() * dataset.value_bytes());
      const Status read = reader.read(i, slab, values);
      ASSERT_TRUE(read.ok()) << dataset.path << " " << slab_text(slab) << ": " << text_of(read);
      ASSERT_TRUE(values == read_reference(path, dataset.path, type, slab, dataset.value_bytes()))
          << dataset.path << " " << slab_text(slab);
    }
  }
}

void add_all_kinds(StockFile& file) {
  file.add("deflated", H5T_NATIVE_FLOAT, {37, 29}, deflated({8, 9}));
  file.add("deflated_big", H5T_IEEE_F64BE, {11, 7, 5}, deflated({4, 7, 2}));
  file.add("plain_chunks", H5T_NATIVE_INT, {40, 30}, chunked({7, 30}));
  file.add("large_plain_chunks", H5T_NATIVE_INT, {300, 200}, chunked({150, 130}));
  file.add("large_swapped_chunks", H5T_STD_I32BE, {300, 200}, chunked({150, 130}));
  file.add("contiguous", H5T_NATIVE_DOUBLE, {50, 60}, {});
  file.add("contiguous_big", H5T_STD_I16BE, {50, 6, 10}, {});
  file.add("compact", H5T_NATIVE_SHORT, {50},
           [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); });
  file.add("scalar", H5T_NATIVE_INT, {}, {});
  file.add("empty", H5T_NATIVE_INT, {0, 4}, {});
  file.add(
      "empty_chunked", H5T_NATIVE_INT, {3, 0},
      [](hid_t creation) {
        const hsize_t extents[] = {2, 2};
        H5Pset_chunk(creation, 2, extents);
      },
      false);
  file.add("one_byte", H5T_NATIVE_INT8, {1000}, deflated({77}));
  file.add("checked", H5T_NATIVE_INT64, {64, 3}, chunked({16, 2}, [](hid_t creation) {
             H5Pset_deflate(creation, 1);
             H5Pset_fletcher32(creation);
           }));
  file.add("scaled", H5T_NATIVE_INT, {30, 30},
           chunked({11, 12}, [](hid_t creation) { H5Pset_scaleoffset(creation, H5Z_SO_INT, 0); }));
  file.add("plain_edges", H5T_NATIVE_INT, {30, 31}, chunked({8, 8}, [](hid_t creation) {
             H5Pset_deflate(creation, 1);
             H5Pset_chunk_opts(creation, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
           }));
  const auto filled = [](hid_t creation) {
    const int value = -77;
    H5Pset_fill_value(creation, H5T_NATIVE_INT, &value);
  };
  file.add("unwritten", H5T_STD_I32BE, {20, 30}, chunked({7, 7}, filled), false);
  file.add("unwritten_contiguous", H5T_NATIVE_INT, {20, 30}, filled, false);
  file.add("unwritten_zeros", H5T_NATIVE_DOUBLE, {20}, chunked({6}), false);
  // Numbers that HDF5 must convert: 3 bytes, half precision, 12 of 16 bits.
  const Hdf5Scope scope;
  const Hdf5Id three(H5Tcopy(H5T_STD_I32LE));
  H5Tset_size(three.get(), 3);
  file.add("three_bytes", three.get(), {20, 9}, deflated({6, 5}));
  const Hdf5Id half(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
  H5Tset_size(half.get(), 2);
  H5Tset_ebias(half.get(), 15);
  file.add("half", half.get(), {20}, deflated({6}));
  const Hdf5Id bits(H5Tcopy(H5T_STD_U16LE));
  H5Tset_precision(bits.get(), 12);
  file.add("bits", bits.get(), {20}, deflated({6}));
  const Hdf5Id pair(H5Tcreate(H5T_COMPOUND, 12));
  H5Tinsert(pair.get(), "a", 0, H5T_NATIVE_INT);
  H5Tinsert(pair.get(), "b", 4, H5T_NATIVE_DOUBLE);
  file.add("compound", pair.get(), {20, 4}, deflated({6, 3}), false);
}

TEST(Read, EveryKindMatchesStockHdf5) {
  TestFolder folder;
  StockFile file(folder / "kinds.h5");
  add_all_kinds(file);
  file.close();
  for (const char* text : {"threads=1", "threads=3", "threads=2,memory=1MiB,read=4096,gap=0"}) {
    ReadOptions options;
    ASSERT_DONE(apply_read_options(text, options));
    Result<std::unique_ptr<Reader>> reader = open_reader(file.path(), options);
    ASSERT_TRUE(reader.ok()) << text_of(reader.status());
    ASSERT_EQ((*reader)->datasets().size(), 22U);
    expect_slabs_match(**reader, file.path(), 25, 5);
    ASSERT_DONE((*reader)->close());
  }
}

TEST(Read, SaysWhatDatasetsAre) {
  TestFolder folder;
  StockFile file(folder / "kinds.h5");
  add_all_kinds(file);
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  const auto dataset = [&](const std::string& path) {
    const Result<std::size_t> found = (*reader)->find(path);
    EXPECT_TRUE(found.ok()) << text_of(found.status());
    return (*reader)->datasets()[found.ok() ? *found : 0];
  };
  EXPECT_EQ(dataset("/deflated_big").dtype, DType::f64);
  EXPECT_EQ(dataset("/half").dtype, DType::f32);
  EXPECT_EQ(dataset("/three_bytes").dtype, DType::i32);
  EXPECT_EQ(dataset("/three_bytes").value_bytes(), 4U);
  EXPECT_EQ(dataset("/compound").dtype, std::nullopt);
  EXPECT_EQ(dataset("/compound").value_bytes(), 12U);
  EXPECT_EQ(dataset("/unwritten").fill_number, -77);
  EXPECT_EQ(dataset("/scalar").shape, Shape());
  EXPECT_EQ((*reader)->find("/nothing").status().code(), Code::not_found);
}

TEST(Read, DatasetsAreFoundByAllTheirNames) {
  TestFolder folder;
  StockFile file(folder / "links.h5");
  {
    const Hdf5Scope scope;
    const Hdf5Id group(H5Gcreate2(file.id(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    file.add("g/d", H5T_NATIVE_INT, {4}, {});
    H5Lcreate_hard(file.id(), "g/d", file.id(), "hard", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file.id(), "g", file.id(), "twin", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/twin/d", file.id(), "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("d", group.get(), "beside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/round", file.id(), "round", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g", group.get(), "up", H5P_DEFAULT, H5P_DEFAULT);
  }
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  ASSERT_EQ((*reader)->datasets().size(), 1U);
  for (const char* path : {"/g/d", "g/d", "/hard", "/twin/d", "/soft", "/g/beside", "/g//d",
                           "/g/up/up/d", "/twin/beside"}) {
    EXPECT_TRUE((*reader)->find(path).ok()) << path;
  }
  EXPECT_FALSE((*reader)->find("/round").ok());
  EXPECT_FALSE((*reader)->find("/g").ok());
}

TEST(Read, TextsOfBothKinds) {
  TestFolder folder;
  StockFile file(folder / "texts.h5");
  {
    const Hdf5Scope scope;
    const hsize_t n = 3;
    const Hdf5Id space(H5Screate_simple(1, &n, nullptr));
    const Hdf5Id variable(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable.get(), H5T_VARIABLE);
    const Hdf5Id a(H5Dcreate2(file.id(), "variable", variable.get(), space.get(), H5P_DEFAULT,
                              H5P_DEFAULT, H5P_DEFAULT));
    const char* texts[] = {"one", "", "three"};
    H5Dwrite(a.get(), variable.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts);
    const Hdf5Id fixed(H5Tcopy(H5T_C_S1));
    H5Tset_size(fixed.get(), 4);
    const Hdf5Id b(H5Dcreate2(file.id(), "fixed", fixed.get(), space.get(), H5P_DEFAULT,
                              H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(b.get(), fixed.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, "abc\0\0\0\0\0xyz");
  }
  file.add("numbers", H5T_NATIVE_INT, {3}, {});
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  const auto texts = [&](const std::string& path, const Slab& slab) {
    return (*reader)->read_texts(*(*reader)->find(path), slab);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(*texts("/variable", {{0}, {3}, {}}), (Texts{"one", "", "three"}));
  EXPECT_EQ(*texts("/variable", {{0}, {2}, {2}}), (Texts{"one", "three"}));
  EXPECT_EQ(*texts("/fixed", {{0}, {3}, {}}), (Texts{"abc", "", "xyz"}));
  EXPECT_EQ(*texts("/fixed", {{3}, {0}, {}}), Texts());
  EXPECT_EQ(texts("/numbers", {{0}, {3}, {}}).status().code(), Code::unsupported);
  EXPECT_EQ(texts("/fixed", {{0}, {4}, {}}).status().code(), Code::bad_coverage);
  const std::size_t variable = *(*reader)->find("/variable");
  Bytes values(3 * (*reader)->datasets()[variable].value_bytes());
  EXPECT_EQ((*reader)->read(variable, {{0}, {3}, {}}, values).code(), Code::unsupported);
}

TEST(Read, RefusesWhatCannotBeMeant) {
  TestFolder folder;
  StockFile file(folder / "d.h5");
  file.add("d", H5T_NATIVE_INT, {10, 10}, deflated({4, 4}));
  file.close();
  Result<std::unique_ptr<Reader>> reader = open_reader(file.path());
  ASSERT_TRUE(reader.ok()) << text_of(reader.status());
  Bytes values(400);
  const auto code = [&](std::size_t dataset, const Slab& slab) {
    return (*reader)->read(dataset, slab, values).code();
  };
  EXPECT_EQ(code(0, {{0, 0}, {10, 10}, {}}), Code::ok);
  EXPECT_EQ(code(1, {{0, 0}, {10, 10}, {}}), Code::invalid_argument);
  EXPECT_EQ(code(0, {{0, 0}, {10, 9}, {}}), Code::invalid_argument);
  EXPECT_EQ(code(0, {{0}, {10}, {}}), Code::invalid_argument);
  EXPECT_EQ(code(0, {{1, 0}, {10, 10}, {}}), Code::bad_coverage);
  EXPECT_EQ(code(0, {{0, 0}, {UINT64_MAX, UINT64_MAX}, {}}), Code::bad_coverage);
  EXPECT_EQ(code(0, {{0, 0}, {2, 2}, {UINT64_MAX, 0}}), Code::bad_coverage);
  EXPECT_EQ((*reader)->read(0, {{0, 0}, {0, 3}, {}}, {}).code(), Code::ok);
  ASSERT_DONE((*reader)->close());
  EXPECT_EQ(code(0, {{0, 0}, {10, 10}, {}}), Code::invalid_argument);
}

/// HDF5 shares the cached metadata of the first opening with a second opening of the same file.
TEST(Read, RefreshSeesWhatChangedAlthoughAnotherReaderHasItOpen) {
  const TestFolder folder;
  StockFile file(folder / "a.h5");
  file.add("compact", H5T_STD_I32LE, {10},
           [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); });
  file.close();
  Result<std::unique_ptr<Reader>> one = open_reader(file.path());
  Result<std::unique_ptr<Reader>> other = open_reader(file.path());
  ASSERT_TRUE(one.ok() && other.ok());
  const Slab all{{0}, {10}, {}};
  std::array<std::int32_t, 10> before = {};
  std::array<std::int32_t, 10> now = {};
  for (auto* reader : {one->get(), other->get()}) {
    ASSERT_DONE(reader->read(0, all, std::as_writable_bytes(std::span(before))));
  }
  {
    // Another program writes: the values are stored in the dataset's header.
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(bytes)), {});
    const std::size_t at =
        content.find(std::string(reinterpret_cast<const char*>(before.data()), sizeof before));
    ASSERT_NE(at, std::string::npos);
    bytes.clear();
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put('\x55');
    bytes.close();
    // Independent of the resolution of the file system's clock.
    std::filesystem::last_write_time(
        file.path(), std::filesystem::last_write_time(file.path()) + std::chrono::seconds(2));
  }
  for (auto* reader : {other->get(), one->get()}) {
    ASSERT_DONE(reader->refresh());
    ASSERT_DONE(reader->read(0, all, std::as_writable_bytes(std::span(now))));
    EXPECT_EQ(now[0] & 0xff, 0x55);
    EXPECT_EQ(now[9], before[9]);
  }
}

TEST(Read, OptionsAreChecked) {
  ReadOptions options;
  ASSERT_DONE(
      apply_read_options("threads=2,memory=256MB,read=1MiB,gap=64k,prefetch=off,abs=0.5", options));
  EXPECT_EQ(options.n_threads, 2U);
  EXPECT_EQ(options.abs_bound, 0.5);
  for (const char* text : {"abs=0", "abs=0.000", "abs=0e5"}) {
    options.abs_bound = 0.5;
    ASSERT_DONE(apply_read_options(text, options));
    EXPECT_EQ(options.abs_bound, 0);
  }
  EXPECT_EQ(options.memory_bytes, 256000000U);
  EXPECT_EQ(options.read_bytes, 1U << 20);
  EXPECT_FALSE(options.prefetch);
  for (const char* text : {"threads=x", "threads=-1", "threads=99999", "memory=1", "cache=2",
                           "prefetch=perhaps", "read=0", "abs=-1", "abs=nan", "abs="}) {
    EXPECT_EQ(apply_read_options(text, options).code(), Code::invalid_argument) << text;
  }
  EXPECT_EQ(options.n_threads, 2U);
}

}  // namespace
}  // namespace tailrace::test
