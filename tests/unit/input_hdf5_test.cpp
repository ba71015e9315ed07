// HDF5 inputs: every number type, layout and filter, the order of fields, and damaged files.

#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <numeric>

#include "hdf5/hdf5_handle.hpp"
#include "input_support.hpp"

namespace tailrace::test {
namespace {

/// Creates an HDF5 file; with `tracked`, its groups and root track creation order.
Hdf5Id new_file(const std::string& path, bool tracked = false) {
  const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE));
  if (tracked) H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED);
  return Hdf5Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
}

Hdf5Id simple_space(const std::vector<hsize_t>& extents) {
  return Hdf5Id(extents.empty()
                    ? H5Screate(H5S_SCALAR)
                    : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

/// Creates a dataset of `file_type` that counts from 0, written from doubles.
Hdf5Id counting_dataset(hid_t file, const std::string& path, hid_t file_type,
                        const std::vector<hsize_t>& extents, hid_t creation = H5P_DEFAULT) {
  const Hdf5Id space = simple_space(extents);
  const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.get(), 1);
  Hdf5Id dataset(
      H5Dcreate2(file, path.c_str(), file_type, space.get(), links.get(), creation, H5P_DEFAULT));
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  std::iota(values.begin(), values.end(), 0.0);
  EXPECT_GE(
      H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  return dataset;
}

Hdf5Id chunked(const std::vector<hsize_t>& chunk) {
  Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  return creation;
}

void scalar_attribute(hid_t object, const char* name, hid_t type, double value) {
  const Hdf5Id space = simple_space({1});
  const Hdf5Id attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, &value);
}

void string_attribute(hid_t object, const char* name, const std::string& text) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), text.size());
  const Hdf5Id space = simple_space({});
  const Hdf5Id attribute(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  H5Awrite(attribute.get(), type.get(), text.data());
}

std::vector<std::string> paths_of(const InputFile& input) {
  std::vector<std::string> paths;
  for (const StoredDataset& field : input.fields()) paths.push_back(field.path);
  return paths;
}

template <class T>
void expect_counts(InputFile& input, const std::string& path) {
  std::vector<T> expected(n_elements(input.fields()[field_index(input, path)].shape));
  std::iota(expected.begin(), expected.end(), T{0});
  EXPECT_EQ(read_whole<T>(input, path), expected) << path;
}

TEST(InputHdf5, ReadsEveryNumberTypeInEitherByteOrder) {
  const TestFolder folder;
  const std::string path = folder / "types.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const std::vector<hsize_t> extents = {4, 5};
    counting_dataset(file.get(), "/f4", H5T_IEEE_F32LE, extents);
    counting_dataset(file.get(), "/f4be", H5T_IEEE_F32BE, extents);
    counting_dataset(file.get(), "/f8be", H5T_IEEE_F64BE, extents);
    counting_dataset(file.get(), "/i1", H5T_STD_I8LE, extents);
    counting_dataset(file.get(), "/i2be", H5T_STD_I16BE, extents);
    counting_dataset(file.get(), "/i4", H5T_STD_I32LE, extents);
    counting_dataset(file.get(), "/i8be", H5T_STD_I64BE, extents);
    counting_dataset(file.get(), "/u1", H5T_STD_U8BE, extents);
    counting_dataset(file.get(), "/u2", H5T_STD_U16LE, extents);
    counting_dataset(file.get(), "/u4be", H5T_STD_U32BE, extents);
    counting_dataset(file.get(), "/u8", H5T_STD_U64LE, extents);
    counting_dataset(file.get(), "/scalar", H5T_STD_U64BE, {});
    counting_dataset(file.get(), "/empty", H5T_IEEE_F32LE, {0, 3});
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->format(), "HDF5");
  ASSERT_EQ(input->fields().size(), 13U);
  expect_counts<float>(*input, "/f4");
  expect_counts<float>(*input, "/f4be");
  expect_counts<double>(*input, "/f8be");
  expect_counts<std::int8_t>(*input, "/i1");
  expect_counts<std::int16_t>(*input, "/i2be");
  expect_counts<std::int32_t>(*input, "/i4");
  expect_counts<std::int64_t>(*input, "/i8be");
  expect_counts<std::uint8_t>(*input, "/u1");
  expect_counts<std::uint16_t>(*input, "/u2");
  expect_counts<std::uint32_t>(*input, "/u4be");
  expect_counts<std::uint64_t>(*input, "/u8");
  expect_counts<std::uint64_t>(*input, "/scalar");
  expect_counts<float>(*input, "/empty");
  for (std::size_t i = 0; i < 11; ++i) expect_boxes_match(*input, i, {3, 2});
}

TEST(InputHdf5, LeavesOtherTypesToTheCarryOver) {
  const TestFolder folder;
  const std::string path = folder / "types.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    counting_dataset(file.get(), "/number", H5T_IEEE_F32LE, {2});
    const Hdf5Id half(H5Tcopy(H5T_IEEE_F32LE));
    H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
    H5Tset_size(half.get(), 2);
    H5Tset_ebias(half.get(), 15);
    const Hdf5Id n_bit(H5Tcopy(H5T_STD_I32LE));
    H5Tset_precision(n_bit.get(), 24);
    const Hdf5Id boolean(H5Tenum_create(H5T_NATIVE_INT8));
    const std::int8_t no = 0;
    H5Tenum_insert(boolean.get(), "FALSE", &no);
    const Hdf5Id compound(H5Tcreate(H5T_COMPOUND, 4));
    H5Tinsert(compound.get(), "x", 0, H5T_IEEE_F32LE);
    const Hdf5Id list(H5Tvlen_create(H5T_NATIVE_INT));
    const Hdf5Id opaque(H5Tcreate(H5T_OPAQUE, 3));
    const Hdf5Id space = simple_space({2});
    int n = 0;
    for (const hid_t type : {half.get(), n_bit.get(), boolean.get(), compound.get(), list.get(),
                             opaque.get(), H5T_C_S1, H5T_STD_REF_OBJ, H5T_STD_B8LE}) {
      const std::string name = "/other" + std::to_string(n++);
      const Hdf5Id dataset(H5Dcreate2(file.get(), name.c_str(), type, space.get(), H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT));
      EXPECT_TRUE(dataset.valid()) << name;
    }
    const Hdf5Id null_space(H5Screate(H5S_NULL));
    const Hdf5Id nothing(H5Dcreate2(file.get(), "/null", H5T_IEEE_F32LE, null_space.get(),
                                    H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(paths_of(*input), std::vector<std::string>{"/number"});
}

TEST(InputHdf5, ReadsEveryLayout) {
  const TestFolder folder;
  const std::string path = folder / "layouts.h5";
  const std::vector<hsize_t> extents = {6, 10};
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const Hdf5Id compact(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_layout(compact.get(), H5D_COMPACT);
    counting_dataset(file.get(), "/compact", H5T_STD_I32LE, extents, compact.get());
    const Hdf5Id external(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(external.get(), (folder / "raw.bin").c_str(), 0, 240);
    counting_dataset(file.get(), "/external", H5T_STD_I32BE, extents, external.get());
    const Hdf5Id filtered = chunked({4, 4});
    H5Pset_shuffle(filtered.get());
    H5Pset_deflate(filtered.get(), 6);
    H5Pset_fletcher32(filtered.get());
    counting_dataset(file.get(), "/filtered", H5T_STD_I32LE, extents, filtered.get());
    const Hdf5Id space = simple_space(extents);
    const Hdf5Id mapped(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_virtual(mapped.get(), space.get(), ".", "/filtered", space.get());
    const Hdf5Id view(H5Dcreate2(file.get(), "/virtual", H5T_STD_I32LE, space.get(), H5P_DEFAULT,
                                 mapped.get(), H5P_DEFAULT));
    EXPECT_TRUE(view.valid());
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path, {}, with_other_files());
  ASSERT_NE(input, nullptr);
  for (const char* name : {"/compact", "/external", "/filtered", "/virtual"}) {
    expect_counts<std::int32_t>(*input, name);
    expect_boxes_match(*input, field_index(*input, name), {4, 3});
  }
  EXPECT_EQ(input->fields()[field_index(*input, "/filtered")].storage.chunk_shape, (Shape{4, 4}));
  EXPECT_TRUE(input->fields()[field_index(*input, "/compact")].storage.chunk_shape.empty());
}

TEST(InputHdf5, KeepsCreationOrderWhereTrackedAndVisitsEachObjectOnce) {
  const TestFolder folder;
  for (const bool tracked : {true, false}) {
    const std::string path = folder / "order.h5";
    {
      const Hdf5Scope scope;
      const Hdf5Id file = new_file(path, tracked);
      counting_dataset(file.get(), "/z", H5T_IEEE_F32LE, {2});
      const Hdf5Id group(H5Gcreate2(file.get(), "/m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      counting_dataset(file.get(), "/a", H5T_IEEE_F32LE, {2});
      counting_dataset(file.get(), "/m/b", H5T_IEEE_F32LE, {2});
      H5Lcreate_hard(file.get(), "/z", file.get(), "/zz", H5P_DEFAULT, H5P_DEFAULT);
      H5Lcreate_hard(file.get(), "/", file.get(), "/m/up", H5P_DEFAULT, H5P_DEFAULT);
      H5Lcreate_soft("/a", file.get(), "/soft", H5P_DEFAULT, H5P_DEFAULT);
      H5Lcreate_soft("/nowhere", file.get(), "/dangling", H5P_DEFAULT, H5P_DEFAULT);
      H5Lcreate_external("other.h5", "/x", file.get(), "/outside", H5P_DEFAULT, H5P_DEFAULT);
    }
    const std::unique_ptr<InputFile> input = open_or_fail(path);
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(paths_of(*input), tracked ? (std::vector<std::string>{"/z", "/m/b", "/a"})
                                        : (std::vector<std::string>{"/a", "/m/b", "/z"}));
  }
}

TEST(InputHdf5, FindsFillValuesCoordinatesAndExtendableFields) {
  const TestFolder folder;
  const std::string path = folder / "facts.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const Hdf5Id with_fill(H5Pcreate(H5P_DATASET_CREATE));
    const double fill = -999;
    H5Pset_fill_value(with_fill.get(), H5T_NATIVE_DOUBLE, &fill);
    counting_dataset(file.get(), "/by_hdf5", H5T_STD_I16BE, {2}, with_fill.get());
    const Hdf5Id both =
        counting_dataset(file.get(), "/by_attribute", H5T_IEEE_F32BE, {2}, with_fill.get());
    scalar_attribute(both.get(), "missing_value", H5T_IEEE_F64LE, 5);
    scalar_attribute(both.get(), "_FillValue", H5T_IEEE_F64BE, -1e34);
    string_attribute(both.get(), "coordinates", "lat  lon");
    string_attribute(both.get(), "bounds", "edges");
    const Hdf5Id missing = counting_dataset(file.get(), "/missing", H5T_STD_I32LE, {2});
    scalar_attribute(missing.get(), "missing_value", H5T_STD_I64LE, -99);
    const Hdf5Id too_large = counting_dataset(file.get(), "/too_large", H5T_STD_I8LE, {2});
    scalar_attribute(too_large.get(), "_FillValue", H5T_STD_I32LE, 1000);
    const Hdf5Id axis = counting_dataset(file.get(), "/axis", H5T_IEEE_F32LE, {2});
    string_attribute(axis.get(), "CLASS", "DIMENSION_SCALE");
    counting_dataset(file.get(), "/lat", H5T_IEEE_F32LE, {2, 2});
    counting_dataset(file.get(), "/edges", H5T_IEEE_F32LE, {2, 2});
    counting_dataset(file.get(), "/time_bnds", H5T_IEEE_F32LE, {2, 2});
    const hsize_t extent = 3;
    const hsize_t unlimited = H5S_UNLIMITED;
    const Hdf5Id growing(H5Screate_simple(1, &extent, &unlimited));
    const Hdf5Id creation = chunked({2});
    const Hdf5Id grows(H5Dcreate2(file.get(), "/grows", H5T_IEEE_F32LE, growing.get(), H5P_DEFAULT,
                                  creation.get(), H5P_DEFAULT));
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  const auto facts = [&](const char* name) { return input->fields()[field_index(*input, name)]; };
  EXPECT_EQ(facts("/by_hdf5").missing_value, std::optional<double>(-999));
  EXPECT_EQ(facts("/by_attribute").missing_value,
            std::optional<double>(static_cast<double>(-1e34F)));
  EXPECT_EQ(facts("/missing").missing_value, std::optional<double>(-99));
  EXPECT_FALSE(facts("/too_large").missing_value.has_value());
  EXPECT_FALSE(facts("/by_hdf5").coordinate);
  for (const char* name : {"/axis", "/lat", "/edges", "/time_bnds"}) {
    EXPECT_TRUE(facts(name).coordinate) << name;
  }
  EXPECT_TRUE(facts("/grows").extendable);
  EXPECT_FALSE(facts("/lat").extendable);
}

constexpr H5Z_filter_t kTestFilter = 700;  // From the range that HDF5 reserves for tests.
int n_decoded = 0;
bool filter_fails = false;

std::size_t inverting_filter(unsigned flags, std::size_t, const unsigned*, std::size_t n_bytes,
                             std::size_t*, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) != 0 && filter_fails) return 0;
  if ((flags & H5Z_FLAG_REVERSE) != 0) ++n_decoded;
  auto* const bytes = static_cast<unsigned char*>(*buffer);
  std::transform(bytes, bytes + n_bytes, bytes, [](unsigned char byte) { return ~byte; });
  return n_bytes;
}

/// Registers the filter above for a test's duration.
class TestFilter {
 public:
  TestFilter() {
    const Hdf5Scope scope;
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kTestFilter, 1,       1,
                                 "tailrace test",  nullptr,     nullptr, inverting_filter};
    EXPECT_GE(H5Zregister(&filter), 0);
    n_decoded = 0;
    filter_fails = false;
  }
  ~TestFilter() { remove(); }
  void remove() {
    const Hdf5Scope scope;
    if (H5Zfilter_avail(kTestFilter) > 0) H5Zunregister(kTestFilter);
  }
};

void write_filtered(const std::string& path, const std::vector<hsize_t>& extents,
                    const std::vector<hsize_t>& chunk) {
  const Hdf5Scope scope;
  const Hdf5Id file = new_file(path);
  const Hdf5Id creation = chunked(chunk);
  H5Pset_filter(creation.get(), kTestFilter, H5Z_FLAG_MANDATORY, 0, nullptr);
  counting_dataset(file.get(), "/filtered", H5T_IEEE_F32LE, extents, creation.get());
}

TEST(InputHdf5, DecodesEachChunkOnceForBoxesInRowMajorOrder) {
  TestFilter filter;
  const TestFolder folder;
  const std::string path = folder / "filtered.h5";
  write_filtered(path, {40, 30, 20}, {8, 7, 6});
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  const ChunkGrid boxes{{40, 30, 20}, {5, 11, 9}};
  for (std::uint64_t i = 0; i < boxes.n_chunks(); ++i) {
    read_box<float>(*input, 0, boxes.clipped_box(i));
  }
  EXPECT_EQ(n_decoded, 5 * 5 * 4);
}

TEST(InputHdf5, NamesAMissingPlugIn) {
  TestFilter filter;
  const TestFolder folder;
  const std::string path = folder / "filtered.h5";
  write_filtered(path, {4, 4}, {2, 2});
  filter.remove();
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(64);
  const Status status = input->read(0, Box{{0, 0}, {4, 4}}, values);
  EXPECT_EQ(status.code(), Code::plugin_missing) << text_of(status);
  for (const char* part : {"/filtered", "[0:4, 0:4]", "700", "tailrace test"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(InputHdf5, ReportsAChunkThatDoesNotDecode) {
  TestFilter filter;
  const TestFolder folder;
  const std::string path = folder / "filtered.h5";
  write_filtered(path, {4, 4}, {2, 2});
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  filter_fails = true;
  std::vector<std::byte> values(64);
  const Status status = input->read(0, Box{{0, 0}, {4, 4}}, values);
  EXPECT_EQ(status.code(), Code::corrupt) << text_of(status);
  EXPECT_NE(status.message().find("filter"), std::string::npos) << status.message();
  filter_fails = false;
  EXPECT_TRUE(input->read(0, Box{{0, 0}, {4, 4}}, values).ok());
}

TEST(InputHdf5, ReportsACorruptChunk) {
  const TestFolder folder;
  const std::string path = folder / "checked.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const Hdf5Id creation = chunked({8});
    H5Pset_fletcher32(creation.get());
    counting_dataset(file.get(), "/checked", H5T_IEEE_F64LE, {8}, creation.get());
  }
  std::string bytes = read_file(path);
  const std::size_t seven = bytes.find(little_endian(7.0));
  ASSERT_NE(seven, std::string::npos);
  bytes[seven] = 1;
  write_file(path, bytes);
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(64);
  const Status status = input->read(0, Box{{0}, {8}}, values);
  EXPECT_EQ(status.code(), Code::corrupt) << text_of(status);
  EXPECT_NE(status.message().find("/checked"), std::string::npos) << status.message();
}

TEST(InputHdf5, RefusesAChunkThatDecodesShort) {
  const TestFolder folder;
  const std::string path = folder / "short.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const Hdf5Id creation = chunked({8});
    H5Pset_deflate(creation.get(), 6);
    const Hdf5Id dataset =
        counting_dataset(file.get(), "/short", H5T_IEEE_F64LE, {16}, creation.get());
    // 16 zeros as one stored block with its checksum, instead of a chunk of 64 bytes.
    std::vector<unsigned char> stream = {0x78, 0x01, 0x01, 16, 0, 0xef, 0xff};
    stream.resize(stream.size() + 16);
    stream.insert(stream.end(), {0, 16, 0, 1});
    const hsize_t second = 8;
    EXPECT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 0, &second, stream.size(), stream.data()),
              0);
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(64);
  EXPECT_TRUE(input->read(0, Box{{0}, {8}}, values).ok());
  const Status status = input->read(0, Box{{8}, {8}}, values);
  EXPECT_EQ(status.code(), Code::corrupt) << text_of(status);
  EXPECT_NE(status.message().find("/short"), std::string::npos) << status.message();
}

TEST(InputHdf5, RefusesTruncatedFilesAndFindsAUserBlock) {
  const TestFolder folder;
  const std::string path = folder / "whole.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(creation.get(), 1024);
    const Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
    counting_dataset(file.get(), "/a/b/c", H5T_IEEE_F64LE, {20});
  }
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  expect_counts<double>(*input, "/a/b/c");
  const std::string whole = read_file(path);
  for (std::size_t n = 1; n < whole.size(); n += 61) {
    write_file(folder / "cut.h5", whole.substr(0, n));
    EXPECT_EQ(open_status(folder / "cut.h5").code(), Code::corrupt) << n;
  }
}

TEST(InputHdf5, ReportsTheMissingSourceOfAVirtualDataset) {
  const TestFolder folder;
  const std::string path = folder / "virtual.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id source = new_file(folder / "source.h5");
    counting_dataset(source.get(), "/values", H5T_STD_I32LE, {8});
    const Hdf5Id file = new_file(path);
    const Hdf5Id space = simple_space({8});
    const Hdf5Id mapped(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_virtual(mapped.get(), space.get(), "source.h5", "/values", space.get());
    const Hdf5Id view(H5Dcreate2(file.get(), "/view", H5T_STD_I32LE, space.get(), H5P_DEFAULT,
                                 mapped.get(), H5P_DEFAULT));
  }
  expect_counts<std::int32_t>(*open_or_fail(path, {}, with_other_files()), "/view");
  std::remove((folder / "source.h5").c_str());
  const std::unique_ptr<InputFile> input = open_or_fail(path, {}, with_other_files());
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(32);
  const Status status = input->read(0, Box{{0}, {8}}, values);
  EXPECT_EQ(status.code(), Code::not_found) << text_of(status);
  EXPECT_NE(status.message().find("source.h5"), std::string::npos) << status.message();
}

TEST(InputHdf5, ReportsAnExternalFileThatIsGone) {
  const TestFolder folder;
  const std::string path = folder / "outside.h5";
  {
    const Hdf5Scope scope;
    const Hdf5Id file = new_file(path);
    const Hdf5Id external(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(external.get(), (folder / "raw.bin").c_str(), 0, 64);
    counting_dataset(file.get(), "/outside", H5T_IEEE_F64LE, {8}, external.get());
  }
  std::remove((folder / "raw.bin").c_str());
  const std::unique_ptr<InputFile> input = open_or_fail(path, {}, with_other_files());
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(64);
  const Status status = input->read(0, Box{{0}, {8}}, values);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("external"), std::string::npos) << text_of(status);
}

}  // namespace
}  // namespace tailrace::test
