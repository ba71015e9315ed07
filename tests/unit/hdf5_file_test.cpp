// Hdf5File: every chunk index and kind of dataset, read with stock HDF5 and its tools. Numbers in
// the test names cite the invariants at the top of hdf5_file.cpp.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "container_support.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/private_storage.hpp"
#include "hdf5/superblock.hpp"

namespace tailrace::test {
namespace {

std::unique_ptr<Hdf5File> create_file(Storage& storage, ScatteringTail& tail,
                                      Hdf5File::Settings settings = {}) {
  Result<std::unique_ptr<Hdf5File>> file = Hdf5File::create(storage, tail.allocate(), settings);
  EXPECT_TRUE(file.ok()) << text_of(file.status());
  return file.ok() ? std::move(*file) : nullptr;
}

struct IndexCase {
  const char* name;
  Shape shape;
  Shape chunk_shape;
  bool extendable;
};

class EveryIndex : public ::testing::TestWithParam<std::tuple<IndexCase, bool, bool, bool>> {};

TEST_P(EveryIndex, ReadsBackWithStockHdf5AndTools_Invariants2And4) {
  const auto [index_case, filtered, insert_first, scattered] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const ChunkGrid grid{index_case.shape, index_case.chunk_shape};
  RecordingStorage storage(path, false);
  ScatteringTail tail(0, scattered ? 500 : 0);
  {
    auto file = create_file(storage, tail);
    DatasetDefinition definition;
    definition.path = "/group/sub/values";
    definition.shape = index_case.shape;
    definition.chunk_shape = index_case.chunk_shape;
    definition.extendable = index_case.extendable;
    if (filtered) definition.filters = shuffle_deflate(4);
    ASSERT_DONE(file->create_dataset(definition));
    ASSERT_DONE(
        write_test_chunks(*file, storage, tail, definition.path, grid, filtered, 1, insert_first));
    ASSERT_DONE(file->close());
  }
  EXPECT_TRUE(holds_test_values(path, "/group/sub/values", 1));
  const auto chunks = read_chunk_index(path, "/group/sub/values");
  ASSERT_TRUE(chunks.ok()) << text_of(chunks.status());
  EXPECT_EQ(chunks->size(), grid.n_chunks());
  for (const StoredChunk& chunk : *chunks) {
    EXPECT_EQ(chunk.filter_mask, filtered && chunk.chunk_index % 3 == 2 ? 3U : 0U);
  }
  for (const char* tool : {"h5dump", "h5stat", "h5ls"}) {
    const std::string option = std::string(tool) == "h5ls" ? "-r" : "--enable-error-stack";
    const int status = run_tool({tool, option, path});
    EXPECT_TRUE(status == 0 || status == -1) << tool << " exits with " << status;
  }
  const std::string packed = folder / "packed.h5";
  if (run_tool({"h5repack", path, packed}) == 0) {
    EXPECT_EQ(run_tool({"h5diff", path, packed}), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Indexes, EveryIndex,
    ::testing::Combine(::testing::Values(IndexCase{"single", {7, 9}, {7, 9}, false},
                                         IndexCase{"fixed", {64, 50}, {8, 10}, false},
                                         IndexCase{"fixed_edges", {65, 33, 5}, {16, 10, 2}, false},
                                         IndexCase{"fixed_paged", {3000}, {2}, false},
                                         IndexCase{"extensible", {30, 9}, {1, 4}, true},
                                         IndexCase{"extensible_long", {700}, {3}, true}),
                       ::testing::Bool(), ::testing::Bool(), ::testing::Bool()),
    [](const auto& given) {
      return std::string(std::get<0>(given.param).name) +
             (std::get<1>(given.param) ? "_filtered" : "_plain") +
             (std::get<2>(given.param) ? "_index_first" : "_bytes_first") +
             (std::get<3>(given.param) ? "_scattered" : "_dense");
    });

TEST(Hdf5File, SmallAndEmptyDatasetsAndFillValues) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail(0, 64);
  auto file = create_file(storage, tail);
  const std::vector<float> three = {test_value(0, 5), test_value(1, 5), test_value(2, 5)};
  DatasetDefinition scalar;
  scalar.path = "/scalar";
  scalar.contiguous_address = tail.claim(4);
  ASSERT_DONE(
      storage.write_at(scalar.contiguous_address, std::as_bytes(std::span(three).first(1))));
  ASSERT_DONE(file->create_dataset(scalar));
  DatasetDefinition row;
  row.path = "/row";
  row.shape = {3};
  row.fill_value = 9;
  row.contiguous_address = tail.claim(12);
  ASSERT_DONE(file->create_dataset(row));
  ASSERT_DONE(storage.write_at(row.contiguous_address, std::as_bytes(std::span(three))));
  DatasetDefinition empty;
  empty.path = "/empty";
  empty.shape = {0, 4};
  ASSERT_DONE(file->create_dataset(empty));
  DatasetDefinition growing;
  growing.path = "/growing";
  growing.shape = {0, 4};
  growing.chunk_shape = {2, 4};
  growing.extendable = true;
  growing.fill_value = -7.5;
  ASSERT_DONE(file->create_dataset(growing));
  ASSERT_DONE(file->extend_dataset("/growing", {5, 4}));
  EXPECT_EQ(file->dataset_shape("/growing").value(), (Shape{5, 4}));
  ASSERT_DONE(file->close());
  EXPECT_TRUE(holds_test_values(path, "/scalar", 5, 1));
  EXPECT_TRUE(holds_test_values(path, "/row", 5, 3));
  EXPECT_EQ(read_stock(path, "/empty")->size(), 0U);
  EXPECT_EQ(read_stock(path, "/growing"), std::vector<float>(20, -7.5F));
  EXPECT_EQ(read_chunk_index(path, "/row").value().front().extent.address, row.contiguous_address);
  EXPECT_TRUE(read_chunk_index(path, "/growing").value().empty());
}

TEST(Hdf5File, EveryElementTypeKeepsItsFillValue) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  constexpr DType all[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                           DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};
  for (const DType dtype : all) {
    DatasetDefinition definition;
    definition.path = "/" + std::string(dtype_name(dtype));
    definition.dtype = dtype;
    definition.shape = definition.chunk_shape = {3};
    definition.fill_value = 101;
    ASSERT_DONE(file->create_dataset(definition));
    definition.path += "_bad";
    definition.fill_value = 0.5;
    EXPECT_EQ(file->create_dataset(definition).ok(), is_floating(dtype));
    definition.fill_value = 1e30;
    definition.path += "_big";
    EXPECT_EQ(file->create_dataset(definition).ok(), is_floating(dtype));
  }
  ASSERT_DONE(file->close());
  for (const DType dtype : all) {
    EXPECT_EQ(read_stock(path, "/" + std::string(dtype_name(dtype))),
              std::vector<float>(3, 101.0F));
  }
}

TEST(Hdf5File, RefusesWhatCannotBeMeant) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  DatasetDefinition definition;
  definition.path = "/a/b";
  definition.shape = {4, 4};
  definition.chunk_shape = {2, 5};
  EXPECT_EQ(file->create_dataset(definition).code(), Code::invalid_argument);
  definition.chunk_shape = {2};
  EXPECT_EQ(file->create_dataset(definition).code(), Code::invalid_argument);
  definition.chunk_shape = {2, 0};
  EXPECT_EQ(file->create_dataset(definition).code(), Code::invalid_argument);
  definition.shape = {1ULL << 33, 4};
  definition.chunk_shape = {1ULL << 31, 1};
  EXPECT_EQ(file->create_dataset(definition).code(), Code::unsupported);
  definition.shape = {4, 4};
  definition.chunk_shape = {2, 2};
  ASSERT_DONE(file->create_dataset(definition));
  EXPECT_EQ(file->create_dataset(definition).code(), Code::already_exists);
  EXPECT_EQ(file->create_group("/a/b/c").code(), Code::already_exists);
  ASSERT_DONE(file->create_group("/a"));
  EXPECT_TRUE(file->exists("/a/b"));
  EXPECT_TRUE(file->exists("/"));
  EXPECT_FALSE(file->exists("/x/y"));
  EXPECT_EQ(file->dataset_shape("/x").status().code(), Code::not_found);
  EXPECT_EQ(file->extend_dataset("/a/b", {8, 4}).code(), Code::invalid_argument);
  EXPECT_EQ(file->set_attribute("/x", "n", {std::string("v")}).code(), Code::not_found);
  const Hdf5File::ChunkRecord beyond{4, {100, 16}, 0};
  EXPECT_EQ(file->insert_chunks("/a/b", {&beyond, 1}).code(), Code::invalid_argument);
  const Hdf5File::ChunkRecord nothing{0, {100, 0}, 0};
  EXPECT_EQ(file->insert_chunks("/a/b", {&nothing, 1}).code(), Code::invalid_argument);
  const Hdf5File::ChunkRecord huge{0, {100, 1ULL << 32}, 0};
  EXPECT_EQ(file->insert_chunks("/a/b", {&huge, 1}).code(), Code::invalid_argument);
}

TEST(Hdf5File, SuperblockMustGetAddressZero) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail(4096);
  const auto file = Hdf5File::create(storage, tail.allocate(), {});
  EXPECT_EQ(file.status().code(), Code::internal);
  EXPECT_EQ(storage.n_operations, 0U);
}

TEST(Hdf5File, NothingIsWrittenWithoutCommit_Invariant1) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  {
    auto file = create_file(storage, tail);
    ASSERT_DONE(file->create_group("/a/b"));
    ASSERT_DONE(file->set_attribute("/a", "n", {std::vector<double>{1.0}}));
  }
  EXPECT_EQ(storage.n_operations, 0U);
}

/// Makes a group with enough attributes for a heap, and a dataset of 300 chunks.
Status make_much(Hdf5File& file, Storage& storage, ScatteringTail& tail) {
  for (int i = 0; i < 20; ++i) {
    TAILRACE_TRY(file.create_group("/group_" + std::to_string(i)));
    TAILRACE_TRY(file.set_attribute("/group_0", "n" + std::to_string(i), {std::string(100, 'x')}));
  }
  DatasetDefinition definition;
  definition.path = "/group_1/values";
  definition.shape = {3000};
  definition.chunk_shape = {10};
  TAILRACE_TRY(file.create_dataset(definition));
  return write_test_chunks(file, storage, tail, definition.path, {{3000}, {10}}, false, 1);
}

Hdf5File::Settings old_forms() {
  Hdf5File::Settings settings;
  settings.old_forms = true;
  return settings;
}

TEST(Hdf5File, MetadataLieInFrontByTheLengthThatARehearsalCounts) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  const auto counted = Hdf5File::rehearse(old_forms(), 0, [&](Hdf5File& file) {
    const auto nowhere = make_private_storage("nowhere");
    ScatteringTail of_chunks(std::uint64_t{1} << 50);
    return make_much(file, *nowhere, of_chunks);
  });
  ASSERT_TRUE(counted.ok()) << text_of(counted.status());
  {
    auto file = create_file(storage, tail, old_forms());
    const std::uint64_t before = tail.end();
    file->reserve_front(*counted);
    EXPECT_EQ(tail.end(), before + counted->n_bytes);
    ASSERT_DONE(make_much(*file, storage, tail));
    EXPECT_EQ(tail.end(), before + counted->n_bytes + 3000 * sizeof(float));  // chunks only
    ASSERT_DONE(file->commit());
    // HDF5 has abandoned some blocks on the way, which are too small for others.
    EXPECT_GT(file->metadata_bytes(), (before + counted->n_bytes) * 9 / 10);
    EXPECT_LE(file->metadata_bytes(), before + counted->n_bytes);
    ASSERT_DONE(file->close());
  }
  EXPECT_TRUE(holds_test_values(path, "/group_1/values", 1));
  const auto chunks = read_chunk_index(path, "/group_1/values");
  ASSERT_TRUE(chunks.ok());
  EXPECT_EQ(chunks->size(), 300U);
}

TEST(Hdf5File, MetadataThatFindNoRoomInFrontAreNotCommitted) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  auto file = create_file(storage, tail, old_forms());
  file->reserve_front({500, {}});
  ASSERT_DONE(file->create_group("/a"));
  ASSERT_DONE(file->set_attribute("/a", "long", {std::string(2000, 'x')}));
  const Status refused = file->commit();
  EXPECT_EQ(refused.code(), Code::internal);
  EXPECT_NE(refused.message().find("exceed the block"), std::string::npos) << text_of(refused);
  EXPECT_EQ(storage.n_operations, 0U);
}

TEST(Hdf5File, AttributesAreReplacedAndTyped) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  ASSERT_DONE(file->set_attribute("/", "codec", {std::string("sz3")}));
  ASSERT_DONE(file->set_attribute("/", "codec", {std::string("a longer name")}));
  ASSERT_DONE(file->set_attribute("/", "codec", {std::string("another name!")}));
  ASSERT_DONE(file->set_attribute("/", "empty", {std::string()}));
  ASSERT_DONE(file->set_attribute("/", "none", {std::vector<double>{}}));
  ASSERT_DONE(file->set_attribute("/", "many", {std::vector<std::int64_t>{1, -2}}));
  ASSERT_DONE(file->set_attribute("/", "one", {std::vector<std::uint64_t>{~0ULL}}));
  ASSERT_DONE(file->set_attribute("/", "long", {std::string(100000, 'x')}));
  for (int i = 0; i < 80; ++i) {
    ASSERT_DONE(file->set_attribute("/", "n" + std::to_string(i), {std::vector<double>{0.5}}));
  }
  ASSERT_DONE(file->close());
  const Hdf5Scope scope;
  const Hdf5Id opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id codec(H5Aopen(opened.get(), "codec", H5P_DEFAULT));
  ASSERT_TRUE(codec.valid());
  const Hdf5Id type(H5Aget_type(codec.get()));
  std::string text(H5Tget_size(type.get()), '?');
  H5Aread(codec.get(), type.get(), text.data());
  EXPECT_EQ(text, "another name!");
  EXPECT_EQ(H5Tget_cset(type.get()), H5T_CSET_UTF8);
  std::int64_t many[2] = {};
  const Hdf5Id many_attribute(H5Aopen(opened.get(), "many", H5P_DEFAULT));
  H5Aread(many_attribute.get(), H5T_NATIVE_INT64, many);
  EXPECT_EQ(many[1], -2);
  const Hdf5Id last(H5Aopen(opened.get(), "n79", H5P_DEFAULT));
  EXPECT_TRUE(last.valid());
}

TEST(Hdf5File, MissingPluginIsEnteredByNumberAndForgotten) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  constexpr std::uint32_t foreign = 31999;  // Reserved for tests in The HDF Group's numbering.
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  DatasetDefinition definition;
  definition.path = "/values";
  definition.shape = {8};
  definition.chunk_shape = {4};
  FilterSpec filter;
  filter.filter_id = foreign;
  filter.client_data = {1};
  filter.final_client_data = {1, 2, 3, 4, 5};
  filter.name = "a codec of our own";
  definition.filters = {filter};
  ASSERT_DONE(file->create_dataset(definition));
  const std::vector<std::byte> bytes(11, std::byte{5});
  const Hdf5File::ChunkRecord record{1, {tail.claim(11), 11}, 0};
  ASSERT_DONE(storage.write_at(record.extent.address, bytes));
  ASSERT_DONE(file->insert_chunks("/values", {&record, 1}));
  ASSERT_DONE(file->close());
  const Hdf5Scope scope;
  EXPECT_LE(H5Zfilter_avail(foreign), 0);
  const Hdf5Id opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id dataset(H5Dopen2(opened.get(), "/values", H5P_DEFAULT));
  const Hdf5Id list(H5Dget_create_plist(dataset.get()));
  unsigned flags = 0;
  unsigned config = 0;
  unsigned values[8] = {};
  std::size_t n_values = 8;
  char name[32] = {};
  EXPECT_EQ(H5Pget_filter2(list.get(), 0, &flags, &n_values, values, sizeof(name), name, &config),
            int(foreign));
  EXPECT_EQ(n_values, 5U);
  EXPECT_EQ(values[4], 5U);
  EXPECT_STREQ(name, "a codec of our own");
  const auto chunks = read_chunk_index(path, "/values");
  ASSERT_TRUE(chunks.ok()) << text_of(chunks.status());
  ASSERT_EQ(chunks.value().size(), 1U);
  EXPECT_EQ(chunks.value()[0].chunk_index, 1U);
  EXPECT_EQ(chunks.value()[0].extent.encoded_bytes, 11U);
}

/// A filter whose set_local would overwrite final client data.
size_t invert(unsigned, size_t, const unsigned*, size_t n_bytes, size_t*, void** block) {
  auto* bytes = static_cast<unsigned char*>(*block);
  for (size_t i = 0; i < n_bytes; ++i) bytes[i] ^= 0xFF;
  return n_bytes;
}
herr_t spoil(hid_t list, hid_t, hid_t) {
  const unsigned word = 0;
  return H5Pmodify_filter(list, 31998, H5Z_FLAG_MANDATORY, 1, &word);
}

/// A new file with eight values in one inverted chunk, with exact client data.
struct InvertedFile {
  explicit InvertedFile(const std::string& path)
      : storage(path, false), file(create_file(storage, tail)) {
    DatasetDefinition definition;
    definition.path = "/values";
    definition.shape = definition.chunk_shape = {8};
    FilterSpec filter;
    filter.filter_id = 31998;
    filter.flags = H5Z_FLAG_MANDATORY;
    filter.final_client_data = {3, 4};
    definition.filters = {filter};
    EXPECT_TRUE(file->create_dataset(definition).ok());
    std::vector<float> values(8, 2.5F);
    void* block = values.data();
    invert(0, 0, nullptr, 32, nullptr, &block);
    const Hdf5File::ChunkRecord record{0, {tail.claim(32), 32}, 0};
    EXPECT_TRUE(storage.write_at(record.extent.address, std::as_bytes(std::span(values))).ok());
    EXPECT_TRUE(file->insert_chunks("/values", {&record, 1}).ok());
  }
  RecordingStorage storage;
  ScatteringTail tail;
  std::unique_ptr<Hdf5File> file;
};

TEST(Hdf5File, WhatTheProcessReadsGoesOnBeingDecodedWhileAndAfterAnotherFileIsWritten) {
  static const H5Z_class2_t real = {H5Z_CLASS_T_VERS, 31998,   1,     1,
                                    "inverted",       nullptr, spoil, invert};
  const TestFolder folder;
  ASSERT_DONE(InvertedFile(folder / "read.h5").file->close());
  const Hdf5Scope scope;
  const Hdf5Id opened(H5Fopen((folder / "read.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(access.get(), 0, 0, 0);  // Forces every read to decode.
  const Hdf5Id dataset(H5Dopen2(opened.get(), "/values", access.get()));
  const auto reads = [&] {
    std::vector<float> values(8);
    const herr_t read =
        H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    return read >= 0 && values == std::vector<float>(8, 2.5F);
  };
  // The filter is not registered. Its stub stays in HDF5, because an open dataset needs the class.
  ASSERT_DONE(InvertedFile(folder / "before.h5").file->close());
  EXPECT_FALSE(reads());
  ASSERT_DONE(register_filter_class(&real));
  EXPECT_TRUE(reads());
  InvertedFile other(folder / "other.h5");
  EXPECT_TRUE(reads());
  ASSERT_DONE(other.file->close());
  EXPECT_TRUE(reads());
}

TEST(Hdf5File, ClientDataThatHdf5WouldStoreOtherwiseIsRefused) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  DatasetDefinition definition;
  definition.path = "/values";
  definition.shape = definition.chunk_shape = {8};
  definition.filters = shuffle_deflate(8);  // Elements have 4 bytes, as shuffle's set_local knows.
  EXPECT_EQ(file->create_dataset(definition).code(), Code::unsupported);
  EXPECT_FALSE(file->exists("/values"));
  ASSERT_DONE(file->close());
}

/// File size if HDF5 alone writes the same chunk bytes, with default settings.
std::uint64_t stock_file_bytes(const std::string& path, const ChunkGrid& grid) {
  const Hdf5Scope scope;
  {
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    const std::vector<hsize_t> extents(grid.shape.begin(), grid.shape.end());
    const std::vector<hsize_t> chunk(grid.chunk_shape.begin(), grid.chunk_shape.end());
    H5Pset_chunk(list.get(), int(chunk.size()), chunk.data());
    H5Pset_shuffle(list.get());
    H5Pset_deflate(list.get(), 6);
    const Hdf5Id space(H5Screate_simple(int(extents.size()), extents.data(), nullptr));
    const Hdf5Id data(H5Dcreate2(file.get(), "/values", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                 list.get(), H5P_DEFAULT));
    for (std::uint64_t index = 0; index < grid.n_chunks(); ++index) {
      const Box box = grid.full_box(index);
      const std::vector<hsize_t> offset(box.start.begin(), box.start.end());
      const auto bytes = encode_stored(chunk_values(grid, index, 1), unsigned(index));
      H5Dwrite_chunk(data.get(), H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data());
    }
  }
  return std::filesystem::file_size(path);
}

TEST(Hdf5File, IsNoLargerThanWhatHdf5WritesForTheSameChunks) {
  const TestFolder folder;
  for (const std::uint64_t n_chunks : {1, 2, 16, 1000}) {
    const ChunkGrid grid{{n_chunks * 64}, {64}};
    const std::string path = folder / "out.h5";
    RecordingStorage storage(path, false);
    ScatteringTail tail;
    auto file = create_file(storage, tail);
    DatasetDefinition definition;
    definition.path = "/values";
    definition.shape = grid.shape;
    definition.chunk_shape = grid.chunk_shape;
    definition.filters = shuffle_deflate(4);
    ASSERT_DONE(file->create_dataset(definition));
    std::vector<Hdf5File::ChunkRecord> records;
    for (std::uint64_t index = 0; index < n_chunks; ++index) {
      const auto bytes = encode_stored(chunk_values(grid, index, 1), unsigned(index));
      records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, 0});
      ASSERT_DONE(storage.write_at(records.back().extent.address, bytes));
    }
    ASSERT_DONE(file->insert_chunks("/values", records));
    ASSERT_DONE(file->close());
    const std::uint64_t ours = std::filesystem::file_size(path);
    const std::uint64_t theirs = stock_file_bytes(folder / "stock.h5", grid);
    EXPECT_LE(ours, theirs) << n_chunks << " chunks";
    std::printf("[ size     ] %llu chunks: %llu bytes, HDF5 alone %llu\n",
                static_cast<unsigned long long>(n_chunks), static_cast<unsigned long long>(ours),
                static_cast<unsigned long long>(theirs));
  }
}

TEST(Hdf5File, SuperblockIsOfVersion2_Invariant4) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  ASSERT_DONE(file->close());
  std::vector<char> head(kSuperblockBytesMax);
  std::ifstream(path, std::ios::binary).read(head.data(), std::streamsize(head.size()));
  const auto superblock = parse_superblock(std::as_bytes(std::span(head)), 0);
  ASSERT_TRUE(superblock.ok());
  EXPECT_EQ(superblock->version, 2);
  EXPECT_TRUE(superblock->checksum_good);
  EXPECT_EQ(superblock->end_of_file, std::filesystem::file_size(path));
}

TEST(Hdf5File, InsertionCostAt100000Chunks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  constexpr std::uint64_t n_chunks = 100000;
  for (const bool extendable : {false, true}) {
    RecordingStorage storage(path, false);
    ScatteringTail tail;
    auto file = create_file(storage, tail);
    DatasetDefinition definition;
    definition.path = "/values";
    definition.shape = {n_chunks * 4};
    definition.chunk_shape = {4};
    definition.extendable = extendable;
    definition.filters = shuffle_deflate(4);
    ASSERT_DONE(file->create_dataset(definition));
    std::vector<Hdf5File::ChunkRecord> records(n_chunks);
    for (std::uint64_t i = 0; i < n_chunks; ++i) {
      records[i] = {i, {tail.claim(20 + i % 7), 20 + i % 7}, 0};
    }
    const auto start = std::chrono::steady_clock::now();
    ASSERT_DONE(file->insert_chunks("/values", records));
    const auto inserted = std::chrono::steady_clock::now();
    ASSERT_DONE(file->commit());
    const auto committed = std::chrono::steady_clock::now();
    ASSERT_DONE(file->close());
    const auto chunks = read_chunk_index(path, "/values");
    ASSERT_TRUE(chunks.ok()) << text_of(chunks.status());
    const auto reread = std::chrono::steady_clock::now();
    ASSERT_EQ(chunks.value().size(), n_chunks);
    for (std::uint64_t i = 0; i < n_chunks; ++i) {
      ASSERT_EQ(chunks.value()[i].extent.address, records[i].extent.address);
      ASSERT_EQ(chunks.value()[i].extent.encoded_bytes, records[i].extent.encoded_bytes);
    }
    const auto per_chunk_us = [](auto from, auto to) {
      return std::chrono::duration<double, std::micro>(to - from).count() / double(n_chunks);
    };
    std::printf("[ cost     ] %s: insert %.2f us, commit %.2f us, read back %.2f us a chunk\n",
                extendable ? "extensible array" : "fixed array", per_chunk_us(start, inserted),
                per_chunk_us(inserted, committed), per_chunk_us(committed, reread));
  }
}

/// Numbers of handles that HDF5 has issued so far, by kind; they increase.
struct Handles {
  static std::int64_t numbered(hid_t id) { return H5Idec_ref(id) < 0 ? -1 : id; }
  std::int64_t lists = numbered(H5Pcreate(H5P_LINK_CREATE));
  std::int64_t spaces = numbered(H5Screate(H5S_SCALAR));
  std::int64_t types = numbered(H5Tcopy(H5T_NATIVE_INT));
  std::int64_t since(const Handles& before) const {
    return lists + spaces + types - before.lists - before.spaces - before.types - 3;
  }
};

/// Cost of a step on rank 0, apart from the chunk index itself: one lookup of the dataset, or none
/// if it was updated before. Headers without changes are not written.
TEST(Hdf5File, UpdatesOfManyDatasetsAreCheap) {
  constexpr int n_datasets = 17;
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail(0, 64);
  auto file = create_file(storage, tail);
  const auto run_step = [&](std::uint64_t step) {
    const Hdf5Scope scope;
    const Handles before;
    for (int d = 0; d < n_datasets; ++d) {
      Hdf5File::DatasetUpdate update;
      update.dataset.path = "/g/d" + std::to_string(d);
      update.dataset.shape = {step + 1, 8};
      update.dataset.chunk_shape = {1, 8};
      update.dataset.extendable = true;
      update.is_new = step == 0;
      const std::uint64_t address = tail.claim(32);
      const std::vector<float> values(8, static_cast<float>(step));
      EXPECT_TRUE(storage.write_at(address, std::as_bytes(std::span(values))).ok());
      update.records = {{step, {address, 32}, 0}};
      if (step == 0) {
        update.attributes = {{"name", {std::string("value")}},
                             {"number", {std::vector<double>{1.5}}}};
      }
      const Status updated = file->update_dataset(update);
      EXPECT_TRUE(updated.ok()) << text_of(updated);
    }
    return Handles().since(before);
  };
  EXPECT_LE(run_step(0), 22 * n_datasets);
  EXPECT_LE(run_step(1), 4 * n_datasets);  // Opens the datasets; they stay open.
  for (std::uint64_t step = 2; step < 20; ++step) {
    EXPECT_EQ(run_step(step), 0) << step;
    ASSERT_DONE(file->commit());
  }
  Hdf5File::DatasetUpdate smaller;
  smaller.dataset.path = "/g/d0";
  smaller.dataset.shape = {2, 8};
  EXPECT_EQ(file->update_dataset(smaller).code(), Code::invalid_argument);
  smaller.dataset.path = "/g/missing";
  EXPECT_EQ(file->update_dataset(smaller).code(), Code::not_found);
  ASSERT_DONE(file->close());
  const Hdf5Scope scope;
  const Hdf5Id stock(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  for (int d = 0; d < n_datasets; ++d) {
    const std::string name = "/g/d" + std::to_string(d);
    const Hdf5Id dataset(H5Dopen2(stock.get(), name.c_str(), H5P_DEFAULT));
    std::vector<float> values(20 * 8);
    ASSERT_GE(
        H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], float(i / 8)) << name;
  }
}

/// HDF5 moves links into a heap one by one if they exceed the group's header.
TEST(Hdf5File, AGroupOfManyLinksHasAHeapFromTheStart) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail(0, 64);
  auto file = create_file(storage, tail);
  ASSERT_DONE(file->create_group("/g/many", 1000));
  ASSERT_DONE(file->create_group("/g/few", 500));
  const auto storage_of = [&](const char* path) {
    const Hdf5Scope scope;
    H5G_info_t info{};
    H5Gget_info_by_name(file->hdf5_id(), path, &info, H5P_DEFAULT);
    return info.storage_type;
  };
  ASSERT_DONE(file->create_group("/g/many/one"));
  ASSERT_DONE(file->create_group("/g/few/one"));
  EXPECT_EQ(storage_of("/g/many"), H5G_STORAGE_TYPE_DENSE);
  EXPECT_EQ(storage_of("/g/few"), H5G_STORAGE_TYPE_COMPACT);
  EXPECT_EQ(storage_of("/g"), H5G_STORAGE_TYPE_COMPACT);
  EXPECT_EQ(storage_of("/"), H5G_STORAGE_TYPE_COMPACT);
  ASSERT_DONE(file->create_group("/", 1000));  // Too late: the root has a link.
  EXPECT_EQ(storage_of("/"), H5G_STORAGE_TYPE_COMPACT);
  ASSERT_DONE(file->close());
}

/// More links than a new root group's header has blocks for: it gets space for all of them in
/// advance.
TEST(Hdf5File, ANewFileGetsRoomForItsRootLinks) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  ASSERT_DONE(file->create_group("/", 300));
  for (int g = 0; g < 300; ++g) ASSERT_DONE(file->create_group("/g" + std::to_string(g)));
  ASSERT_DONE(file->commit());
  // Some more, added one by one.
  for (int g = 300; g < 332; ++g) ASSERT_DONE(file->create_group("/g" + std::to_string(g)));
  const auto root = [&] {
    const Hdf5Scope scope;
    H5G_info_t info{};
    H5Gget_info_by_name(file->hdf5_id(), "/", &info, H5P_DEFAULT);
    return info;
  };
  EXPECT_EQ(root().storage_type, H5G_STORAGE_TYPE_COMPACT);
  ASSERT_DONE(file->create_group("/g332"));
  EXPECT_EQ(root().storage_type, H5G_STORAGE_TYPE_DENSE);
  ASSERT_DONE(file->close());
  const Hdf5Scope scope;
  const Hdf5Id stock(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  for (int g = 0; g <= 332; ++g) {
    EXPECT_GT(H5Lexists(stock.get(), ("g" + std::to_string(g)).c_str(), H5P_DEFAULT), 0) << g;
  }
}

/// HDF5 needs time for each added link that grows with the links in the header. Therefore the
/// header holds only the first links of a root with many step groups.
TEST(Hdf5File, TheRootGroupOfManyStepsHasAHeap) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  RecordingStorage storage(path, false);
  ScatteringTail tail(0, 64);
  constexpr int n_steps = 600;
  {
    Hdf5File::Settings settings;
    settings.sync = false;
    auto file = create_file(storage, tail, settings);
    std::uint64_t largest_commit = 0;
    for (int step = 0; step < n_steps; ++step) {
      ASSERT_DONE(file->create_group("/step_" + std::to_string(step)));
      const std::uint64_t before = file->metadata_bytes();
      ASSERT_DONE(file->commit());
      if (step >= 100) largest_commit = std::max(largest_commit, file->metadata_bytes() - before);
    }
    // Blocks of the heap, of its two B-trees and of the new group, and their headers.
    EXPECT_LE(largest_commit, 20000U);
    ASSERT_DONE(file->close());
  }
  const Hdf5Scope scope;
  const Hdf5Id stock(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  H5G_info_t links{};
  ASSERT_GE(H5Gget_info_by_name(stock.get(), "/", &links, H5P_DEFAULT), 0);
  EXPECT_EQ(links.nlinks, hsize_t(n_steps));
  EXPECT_EQ(links.storage_type, H5G_STORAGE_TYPE_DENSE);
  for (int step = 0; step < n_steps; ++step) {
    char name[32] = "";
    ASSERT_GT(H5Lget_name_by_idx(stock.get(), "/", H5_INDEX_CRT_ORDER, H5_ITER_INC, hsize_t(step),
                                 name, sizeof name, H5P_DEFAULT),
              0);
    ASSERT_EQ(std::string(name), "step_" + std::to_string(step));
  }
}

/// The created objects are recreated in their old space, although others have claimed space behind
/// it.
TEST(Hdf5File, ANewFileGetsAHeapForItsRootGroup) {
  const TestFolder folder;
  RecordingStorage storage(folder / "out.h5", false);
  ScatteringTail tail;
  auto file = create_file(storage, tail);
  const std::uint64_t created_end = tail.end();
  const std::uint64_t chunk_address = tail.claim(100);
  ASSERT_DONE(file->create_group("/", 32));
  ASSERT_DONE(file->create_group("/", 1000));
  ASSERT_DONE(file->create_group("/", 2000));
  EXPECT_EQ(tail.end(), chunk_address + 100) << "the new root group has gone elsewhere";
  EXPECT_GE(chunk_address, created_end);
  for (int g = 0; g < 1000; ++g) ASSERT_DONE(file->create_group("/g" + std::to_string(g)));
  ASSERT_DONE(file->set_attribute("/", "n", {std::vector<std::int64_t>{1000}}));
  ASSERT_DONE(file->close());
  const Hdf5Scope scope;
  const Hdf5Id again(H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  H5G_info_t root{};
  ASSERT_GE(H5Gget_info_by_name(again.get(), "/", &root, H5P_DEFAULT), 0);
  EXPECT_EQ(root.storage_type, H5G_STORAGE_TYPE_DENSE);
  EXPECT_EQ(root.nlinks, 1000U);
}

}  // namespace
}  // namespace tailrace::test
