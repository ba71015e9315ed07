// Adding to files of other writers: every kind of base file, extended, overwritten and appended to.

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "container_support.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/superblock.hpp"
#include "support/test_tier.hpp"

namespace tailrace::test {
namespace {

const ChunkGrid grid{{12, 10}, {1, 5}};

struct BaseFile {
  const char* name;
  std::function<void(hid_t creation_list, hid_t access_list)> prepare;
};

/// Makes a growable chunked dataset, a contiguous one, and a variable-length string with HDF5
/// alone.
void make_base(const std::string& path, const BaseFile& base) {
  const Hdf5Scope scope;
  const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE));
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
  base.prepare(creation.get(), access.get());
  const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  const Hdf5Id group(H5Gcreate2(file.get(), "/old", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk[2] = {1, 5};
  H5Pset_chunk(list.get(), 2, chunk);
  H5Pset_shuffle(list.get());
  H5Pset_deflate(list.get(), 6);
  const hsize_t extents[2] = {12, 10};
  const hsize_t extents_max[2] = {H5S_UNLIMITED, 10};
  const Hdf5Id space(H5Screate_simple(2, extents, extents_max));
  const Hdf5Id data(H5Dcreate2(file.get(), "/old/growing", H5T_NATIVE_FLOAT, space.get(),
                               H5P_DEFAULT, list.get(), H5P_DEFAULT));
  std::vector<float> values(120);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = test_value(i, 1);
  H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const Hdf5Id flat_space(H5Screate_simple(2, extents, nullptr));
  const Hdf5Id flat(H5Dcreate2(file.get(), "/old/flat", H5T_NATIVE_FLOAT, flat_space.get(),
                               H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Dwrite(flat.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const Hdf5Id text_type(H5Tcopy(H5T_C_S1));
  H5Tset_size(text_type.get(), H5T_VARIABLE);
  const Hdf5Id scalar(H5Screate(H5S_SCALAR));
  const Hdf5Id text(H5Dcreate2(file.get(), "/old/text", text_type.get(), scalar.get(), H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT));
  const char* words = "variable length";
  H5Dwrite(text.get(), text_type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &words);
}

class AppendTo : public ::testing::TestWithParam<BaseFile> {};

TEST_P(AppendTo, ExtendOverwriteAndAdd) {
  const TestFolder folder;
  const std::string path = folder / "base.h5";
  make_base(path, GetParam());
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  EXPECT_GE(end, std::filesystem::file_size(path));
  tail.reset(end);
  Hdf5File& file = **opened;
  EXPECT_TRUE(file.exists("/old/growing"));

  // Overwrites every second chunk (longer and shorter than before) and doubles the length.
  const ChunkGrid larger{{24, 10}, {1, 5}};
  ASSERT_DONE(file.extend_dataset("/old/growing", larger.shape));
  std::vector<Hdf5File::ChunkRecord> records;
  for (std::uint64_t index = 0; index < larger.n_chunks(); ++index) {
    if (index < grid.n_chunks() && index % 2 == 1) continue;
    const auto bytes = encode_stored(chunk_values(larger, index, 1), unsigned(index));
    records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, 0});
    ASSERT_DONE(storage.write_at(records.back().extent.address, bytes));
  }
  ASSERT_DONE(file.insert_chunks("/old/growing", records));

  DatasetDefinition definition;
  definition.path = "/new/values";
  definition.shape = grid.shape;
  definition.chunk_shape = grid.chunk_shape;
  definition.filters = shuffle_deflate(4);
  ASSERT_DONE(file.create_dataset(definition));
  ASSERT_DONE(write_test_chunks(file, storage, tail, definition.path, grid, true, 2));
  ASSERT_DONE(file.set_attribute("/old", "note", {std::string("added")}));
  ASSERT_DONE(file.commit());
  definition.path = "/new/later";
  ASSERT_DONE(file.create_dataset(definition));
  ASSERT_DONE(write_test_chunks(file, storage, tail, definition.path, grid, true, 3, true));
  ASSERT_DONE(file.close());

  EXPECT_TRUE(holds_test_values(path, "/old/growing", 1, 240));
  EXPECT_TRUE(holds_test_values(path, "/old/flat", 1, 120));
  EXPECT_TRUE(holds_test_values(path, "/new/values", 2, 120));
  EXPECT_TRUE(holds_test_values(path, "/new/later", 3, 120));
  EXPECT_FALSE(std::filesystem::exists(path + ".journal"));
  const std::string packed = folder / "packed.h5";
  if (run_tool({"h5repack", path, packed}) == 0) {
    EXPECT_EQ(run_tool({"h5diff", path, packed}), 0);
  }
  const int dumped = run_tool({"h5dump", path});
  EXPECT_TRUE(dumped == 0 || dumped == -1);
}

/// Thousands of replaced chunks, in a file of Tailrace, several times.
TEST(Hdf5Open, ManyReplacedChunksKeepTheirPlaces) {
  const TestFolder folder;
  const std::string path = folder / "many.h5";
  const ChunkGrid many{{static_cast<std::uint64_t>(tier_rounds(5000, 4)), 10}, {1, 5}};
  ScatteringTail tail;
  RecordingStorage storage(path, false);
  std::vector<Extent> now(many.n_chunks());
  std::mt19937 random(6);
  for (unsigned salt = 1; salt < 7; ++salt) {
    std::unique_ptr<Hdf5File> file;
    if (salt == 1) {
      auto created = Hdf5File::create(storage, tail.allocate(), {});
      ASSERT_TRUE(created.ok());
      file = std::move(*created);
      DatasetDefinition definition;
      definition.path = "/u";
      definition.shape = many.shape;
      definition.chunk_shape = many.chunk_shape;
      definition.extendable = true;
      definition.filters = shuffle_deflate(4);
      ASSERT_DONE(file->create_dataset(definition));
    } else {
      std::uint64_t end = 0;
      auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
      ASSERT_TRUE(opened.ok()) << text_of(opened.status());
      EXPECT_TRUE((*opened)->keeps_replaced());
      tail.reset(end);
      file = std::move(*opened);
    }
    std::vector<Hdf5File::ChunkRecord> records;
    for (std::uint64_t index = 0; index < now.size(); ++index) {
      const auto bytes = encode_stored(chunk_values(many, index, salt), unsigned(random() % 12));
      const Extent place{tail.claim(bytes.size()), bytes.size()};
      ASSERT_DONE(storage.write_at(place.address, bytes));
      records.push_back({index, place, 0, std::exchange(now[index], place)});
    }
    ASSERT_DONE(file->insert_chunks("/u", records));
    EXPECT_TRUE(file->take_moved_chunks().empty());
    ASSERT_DONE(file->commit());
    EXPECT_TRUE(holds_test_values(path, "/u", salt));
    ASSERT_DONE(file->close());
    EXPECT_TRUE(holds_test_values(path, "/u", salt));
  }
}

std::vector<std::byte> bytes_at(RecordingStorage& storage, const Extent& place) {
  std::vector<std::byte> bytes(place.encoded_bytes);
  EXPECT_TRUE(storage.read_at(place.address, bytes).ok());
  return bytes;
}

/// Chunks that declare what they replace overwrite no bytes of any earlier commit, whether they are
/// longer, shorter or as long. Nothing overwrites them either.
TEST_P(AppendTo, ReplacedChunksKeepTheirPlaces) {
  const TestFolder folder;
  const std::string path = folder / "base.h5";
  make_base(path, GetParam());
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  tail.reset(end);
  const std::string name = GetParam().name;
  const bool keeps = name != "persistent_free_space" && name != "user_block" && name != "paged";
  ASSERT_EQ((*opened)->keeps_replaced(), keeps);
  if (!keeps) return;
  const auto stored = read_chunk_index(path, "/old/growing");
  ASSERT_TRUE(stored.ok());
  std::vector<Extent> now;
  for (const StoredChunk& chunk : *stored) now.push_back(chunk.extent);
  ASSERT_EQ(now.size(), grid.n_chunks());
  struct Kept {
    Extent place;
    std::vector<std::byte> bytes;
  };
  std::vector<Kept> kept;
  std::mt19937 random(5);
  for (unsigned salt = 2; salt < 7; ++salt) {
    for (const Extent& place : now) kept.push_back({place, bytes_at(storage, place)});
    std::vector<Hdf5File::ChunkRecord> records;
    for (std::uint64_t index = 0; index < now.size(); ++index) {
      const auto bytes = encode_stored(chunk_values(grid, index, salt), unsigned(random() % 12));
      const Extent place{tail.claim(bytes.size()), bytes.size()};
      ASSERT_DONE(storage.write_at(place.address, bytes));
      records.push_back({index, place, 0, std::exchange(now[index], place)});
    }
    ASSERT_DONE((*opened)->insert_chunks("/old/growing", records));
    for (const Hdf5File::ChunkRecord& moved : (*opened)->take_moved_chunks()) {
      now[moved.chunk_index] = moved.extent;
    }
    ASSERT_DONE((*opened)->commit());
    for (const Kept& before : kept) ASSERT_EQ(bytes_at(storage, before.place), before.bytes);
    EXPECT_TRUE(holds_test_values(path, "/old/growing", salt));
  }
  ASSERT_DONE((*opened)->close());
  EXPECT_TRUE(holds_test_values(path, "/old/growing", 6));
  EXPECT_TRUE(holds_test_values(path, "/old/flat", 1, 120));
  const std::string packed = folder / "packed.h5";
  if (run_tool({"h5repack", path, packed}) == 0) {
    EXPECT_EQ(run_tool({"h5diff", path, packed}), 0);
  }
}

/// Encodes chunks to one length for any skipped filters: shuffled, or unchanged.
std::vector<std::byte> encode_at_length(std::span<const float> values, std::uint32_t mask) {
  const std::span<const std::byte> plain = std::as_bytes(values);
  std::vector<std::byte> bytes(plain.begin(), plain.end());
  if (mask == 3) return bytes;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    bytes[i % 4 * values.size() + i / 4] = plain[i];
  }
  return bytes;
}

/// HDF5 keeps the entry and filter mask of a chunk that is replaced by one of the same length.
TEST_P(AppendTo, ReplacedChunksOfTheSameLengthGetTheirFilterMasks) {
  const TestFolder folder;
  const std::string path = folder / "base.h5";
  make_base(path, GetParam());
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  tail.reset(end);
  const ChunkGrid one{{1, 5}, {1, 5}};
  DatasetDefinition definition;
  definition.path = "/one";
  definition.shape = definition.chunk_shape = one.shape;
  definition.filters = shuffle_deflate(4);
  ASSERT_DONE((*opened)->create_dataset(definition));
  std::mt19937 random(7);
  for (unsigned salt = 2; salt < 12; ++salt) {
    for (const auto& [name, chunks] : {std::pair{"/old/growing", grid}, std::pair{"/one", one}}) {
      std::vector<Hdf5File::ChunkRecord> records;
      for (std::uint64_t index = 0; index < chunks.n_chunks(); ++index) {
        if (salt > 2 && salt < 11 && random() % 3 == 0) continue;
        const std::uint32_t mask = 2 + random() % 2;
        const auto bytes = encode_at_length(chunk_values(chunks, index, salt), mask);
        records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, mask});
        ASSERT_DONE(storage.write_at(records.back().extent.address, bytes));
      }
      if (salt % 2 == 0) {
        ASSERT_DONE((*opened)->insert_chunks(name, records));
      } else {
        for (const auto& record : records) {
          ASSERT_DONE((*opened)->insert_chunks(name, std::span(&record, 1)));
        }
      }
    }
    ASSERT_DONE((*opened)->commit());
    if (salt == 2 || salt == 11) {
      EXPECT_TRUE(holds_test_values(path, "/old/growing", salt, 120));
      EXPECT_TRUE(holds_test_values(path, "/one", salt));
    }
    EXPECT_TRUE(read_stock(path, "/old/growing") && read_stock(path, "/one"));
  }
  ASSERT_DONE((*opened)->close());
  EXPECT_TRUE(holds_test_values(path, "/old/growing", 11, 120));
  EXPECT_TRUE(holds_test_values(path, "/old/flat", 1, 120));
}

INSTANTIATE_TEST_SUITE_P(
    Bases, AppendTo,
    ::testing::Values(
        BaseFile{"default_settings", [](hid_t, hid_t) {}},
        BaseFile{"libver_v18",
                 [](hid_t, hid_t access) {
                   H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
                 }},
        BaseFile{"libver_v110",
                 [](hid_t, hid_t access) {
                   H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
                 }},
        BaseFile{"paged",
                 [](hid_t creation, hid_t) {
                   H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, false, 1);
                 }},
        BaseFile{"freed_space_is_lost",
                 [](hid_t creation, hid_t) {
                   H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_AGGR, false, 1);
                 }},
        BaseFile{"persistent_free_space",
                 [](hid_t creation, hid_t) {
                   H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
                 }},
        BaseFile{"user_block", [](hid_t creation, hid_t) { H5Pset_userblock(creation, 1024); }}),
    [](const auto& given) { return std::string(given.param.name); });

/// tests/golden/netcdf4_python_1.7.nc: netCDF4-python 1.7.5 on HDF5 2.2.0, an unlimited time
/// dimension.
TEST(Hdf5Open, NetcdfFileGrowsAlongTime) {
  const TestFolder folder;
  const std::string path = folder / "base.nc";
  std::filesystem::copy_file(
      std::filesystem::path(__FILE__).parent_path() / "../golden/netcdf4_python_1.7.nc", path);
  RecordingStorage storage(path, true);
  ScatteringTail tail(0, 100);
  std::uint64_t end = 0;
  auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  tail.reset(end);
  const ChunkGrid larger{{9, 10}, {1, 5}};
  ASSERT_DONE((*opened)->extend_dataset("/field", larger.shape));
  std::vector<Hdf5File::ChunkRecord> records;
  for (std::uint64_t index = 8; index < larger.n_chunks(); ++index) {
    const auto bytes = encode_stored(chunk_values(larger, index, 1), unsigned(index));
    records.push_back({index, {tail.claim(bytes.size()), bytes.size()}, 0});
    ASSERT_DONE(storage.write_at(records.back().extent.address, bytes));
  }
  ASSERT_DONE((*opened)->insert_chunks("/field", records));
  ASSERT_DONE((*opened)->set_attribute("/field", "codec", {std::string("deflate")}));
  ASSERT_DONE((*opened)->close());
  EXPECT_TRUE(holds_test_values(path, "/field", 1, 90));
  EXPECT_EQ(read_stock(path, "/x")->at(9), 9.0F);
}

int n_asked_of_reluctant = 0;
bool reluctant_agrees = false;
bool reluctant_encodes = true;

/// Refuses like a plug-in that calls a different HDF5 of the process than the one that asks it.
htri_t ask_reluctant(hid_t, hid_t, hid_t) {
  ++n_asked_of_reluctant;
  return reluctant_agrees ? 1 : -1;
}
std::size_t call_reluctant(unsigned, std::size_t, const unsigned*, std::size_t n_bytes,
                           std::size_t*, void**) {
  return reluctant_encodes ? n_bytes : 0;
}

/// Returns a class with a new number each time, because the process remembers registered classes.
H5Z_class2_t& new_reluctant_class() {
  static std::deque<H5Z_class2_t> classes;
  const auto id = static_cast<H5Z_filter_t>(31500 + classes.size());
  classes.push_back(
      {H5Z_CLASS_T_VERS, id, 1, 1, "reluctant", ask_reluctant, nullptr, call_reluctant});
  return classes.back();
}

/// A growable dataset of 2 by 8 values with the reluctant filter. It has a fill value, so HDF5
/// requires the filter's consent before it extends the dataset.
class ReluctantFile : public testing::Test {
 protected:
  ReluctantFile() {
    DatasetDefinition definition;
    definition.path = "/growing";
    definition.shape = definition.chunk_shape = {2, 8};
    definition.extendable = true;
    definition.fill_value = -1;
    definition.filters.resize(1);
    definition.filters[0].filter_id = static_cast<std::uint32_t>(reluctant_class.id);
    definition.filters[0].name = "reluctant";
    definition.filters[0].flags = H5Z_FLAG_MANDATORY;
    definition.filters[0].final_client_data = {3, 4};
    RecordingStorage storage(path, false);
    ScatteringTail tail;
    auto file = Hdf5File::create(storage, tail.allocate(), {});
    EXPECT_TRUE((*file)->create_dataset(definition).ok());
    definition.path = "/fixed";
    definition.extendable = false;
    EXPECT_TRUE((*file)->create_dataset(definition).ok());
    EXPECT_TRUE((*file)->close().ok());
  }
  ~ReluctantFile() override {
    reluctant_agrees = false;
    reluctant_encodes = true;
  }

  Status extend(const std::string& dataset, std::uint64_t n_rows) const {
    RecordingStorage storage(path, true);
    ScatteringTail tail;
    std::uint64_t end = 0;
    auto file = Hdf5File::open(storage, tail.allocate(), {}, end);
    if (!file.ok()) return file.status();
    tail.reset(end);
    const Status extended = (*file)->extend_dataset(dataset, {n_rows, 8});
    const Status closed = (*file)->close();
    return extended.ok() ? closed : extended;
  }

  hsize_t n_rows() const {
    const Hdf5Scope scope;
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Hdf5Id dataset(H5Dopen2(file.get(), "/growing", H5P_DEFAULT));
    const Hdf5Id space(H5Dget_space(dataset.get()));
    hsize_t extents[2] = {};
    H5Sget_simple_extent_dims(space.get(), extents, nullptr);
    return extents[0];
  }

  TestFolder folder;
  std::string path = folder / "a.h5";
  const H5Z_class2_t& reluctant_class = new_reluctant_class();
};

TEST_F(ReluctantFile, GrowsWithoutTheFilterAndWhereItRefuses) {
  const Hdf5Scope scope;
  ASSERT_LE(H5Zfilter_avail(reluctant_class.id), 0);
  ASSERT_DONE(extend("/growing", 4));
  EXPECT_EQ(n_rows(), 4U);
  EXPECT_LE(H5Zfilter_avail(reluctant_class.id), 0);
  ASSERT_DONE(register_filter_class(&reluctant_class));
  n_asked_of_reluctant = 0;
  ASSERT_DONE(extend("/growing", 6));
  EXPECT_EQ(n_rows(), 6U);
  EXPECT_EQ(n_asked_of_reluctant, 1);
  // Other refusals have nothing to do with filters.
  reluctant_agrees = true;
  n_asked_of_reluctant = 0;
  const Status fixed = extend("/fixed", 6);
  EXPECT_EQ(fixed.code(), Code::invalid_argument);
  EXPECT_NE(fixed.message().find("HDF5 says: "), std::string::npos) << fixed.message();
  EXPECT_EQ(n_asked_of_reluctant, 1);
  reluctant_agrees = false;
  // Other objects that the process creates still ask the filter.
  n_asked_of_reluctant = 0;
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t eight = 8;
  H5Pset_chunk(list.get(), 1, &eight);
  H5Pset_filter(list.get(), reluctant_class.id, H5Z_FLAG_MANDATORY, 0, nullptr);
  const Hdf5Id space(H5Screate_simple(1, &eight, nullptr));
  const Hdf5Id other(H5Fcreate((folder / "b.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const Hdf5Id made(H5Dcreate2(other.get(), "/made", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                               list.get(), H5P_DEFAULT));
  EXPECT_FALSE(made.valid());
  EXPECT_EQ(n_asked_of_reluctant, 1);
}

/// Chunks that are filled early are encoded immediately. HDF5 must not be called again after it has
/// changed the extents and failed: it would find nothing to do, and store nothing.
TEST_F(ReluctantFile, WhatCannotBeEncodedDoesNotGrow) {
  const Hdf5Scope scope;
  ASSERT_DONE(register_filter_class(&reluctant_class));
  reluctant_agrees = true;
  path = folder / "early.h5";
  {
    const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t extents[2] = {2, 8};
    const hsize_t most[2] = {H5S_UNLIMITED, 8};
    const float fill = -1;
    H5Pset_chunk(list.get(), 2, extents);
    H5Pset_filter(list.get(), reluctant_class.id, H5Z_FLAG_MANDATORY, 0, nullptr);
    H5Pset_fill_value(list.get(), H5T_NATIVE_FLOAT, &fill);
    H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY);
    const Hdf5Id space(H5Screate_simple(2, extents, most));
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Id made(H5Dcreate2(file.get(), "/growing", H5T_NATIVE_FLOAT, space.get(), H5P_DEFAULT,
                                 list.get(), H5P_DEFAULT));
    ASSERT_TRUE(made.valid());
  }
  reluctant_encodes = false;
  for (const bool agrees : {true, false}) {
    reluctant_agrees = agrees;
    const Status extended = extend("/growing", 4);
    EXPECT_NE(extended.message().find("HDF5 says: "), std::string::npos) << text_of(extended);
    EXPECT_EQ(n_rows(), 2U);
  }
  reluctant_encodes = true;
  EXPECT_TRUE(extend("/growing", 4).ok());
  EXPECT_EQ(n_rows(), 4U);
}

TEST_F(ReluctantFile, IsWrittenByHdf5WhereTheFilterRefuses) {
  const Hdf5Scope scope;
  ASSERT_DONE(register_filter_class(&reluctant_class));
  const std::vector<float> values(16, 2.5F);
  {
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Hdf5Id dataset(H5Dopen2(file.get(), "/growing", H5P_DEFAULT));
    ASSERT_DONE(
        write_elements(dataset.get(), Slab{{0, 0}, {2, 8}, {}}, std::as_bytes(std::span(values))));
  }
  EXPECT_EQ(*read_stock(path, "/growing"), values);
}

/// HDF5 buffers a chunk and would detect only at the end that the filter is missing.
TEST_F(ReluctantFile, IsNotWrittenByHdf5WithoutTheFilter) {
  const std::vector<float> values(16, 2.5F);
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  auto file = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(file.ok()) << text_of(file.status());
  tail.reset(end);
  for (const bool extended : {false, true}) {
    if (extended) ASSERT_DONE((*file)->extend_dataset("/growing", {4, 8}));
    const Hdf5Scope scope;
    const Hdf5Id dataset(H5Dopen2((*file)->hdf5_id(), "/growing", H5P_DEFAULT));
    const Status written =
        write_elements(dataset.get(), Slab{{0, 0}, {2, 8}, {}}, std::as_bytes(std::span(values)));
    EXPECT_NE(written.message().find(std::to_string(reluctant_class.id)), std::string::npos)
        << text_of(written);
  }
  ASSERT_DONE((*file)->close());
}

TEST(Hdf5Open, RefusesWhatIsNoHdf5File) {
  const TestFolder folder;
  for (const std::size_t n_bytes : {std::size_t{0}, std::size_t{5}, std::size_t{5000}}) {
    RecordingStorage storage(folder / "out.h5", false);
    const std::vector<std::byte> junk(n_bytes, std::byte{7});
    if (n_bytes > 0) ASSERT_DONE(storage.write_at(0, junk));
    const std::size_t n_before = storage.n_operations;
    ScatteringTail tail;
    std::uint64_t end = 0;
    const auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
    EXPECT_EQ(opened.status().code(), Code::corrupt);
    EXPECT_EQ(storage.n_operations, n_before);
  }
}

/// Version 3 superblocks are marked as open while a writer works; committed states are not.
TEST(Hdf5Open, CommittedStateIsNotMarkedAsOpen) {
  const TestFolder folder;
  const std::string path = folder / "base.h5";
  make_base(path, {"", [](hid_t, hid_t access) {
                     H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
                   }});
  RecordingStorage storage(path, true);
  ScatteringTail tail;
  std::uint64_t end = 0;
  auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
  ASSERT_TRUE(opened.ok()) << text_of(opened.status());
  tail.reset(end);
  ASSERT_DONE((*opened)->create_group("/new"));
  ASSERT_DONE((*opened)->commit());
  // The job dies here: the file on disk must open.
  EXPECT_TRUE(holds_test_values(path, "/old/flat", 1, 120));
  std::vector<std::byte> head(kSuperblockBytesMax);
  ASSERT_DONE(storage.read_at(0, head));
  const auto superblock = parse_superblock(head, 0);
  EXPECT_EQ(superblock->version, 3);
  EXPECT_FALSE(superblock->open_for_write);
  EXPECT_TRUE(superblock->checksum_good);
}

}  // namespace
}  // namespace tailrace::test
