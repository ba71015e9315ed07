// The schema of a concatenation: packing, equality of storage, and conflicts.

#include "hdf5/dataset_schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hdf5/hdf5_handle.hpp"

namespace tailrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bytes encoded(hid_t type) {
  const Hdf5Scope scope;
  std::size_t n_bytes = 0;
  H5Tencode(type, nullptr, &n_bytes);
  Bytes bytes(n_bytes);
  H5Tencode(type, bytes.data(), &n_bytes);
  return bytes;
}

FilterSpec filter(std::uint32_t id, std::vector<std::uint32_t> data, std::string name) {
  FilterSpec spec;
  spec.filter_id = id;
  spec.flags = 1;
  spec.final_client_data = std::move(data);
  spec.name = std::move(name);
  return spec;
}

/// A dataset of f32 rows of `columns` values.
StoredDataset dataset_of(const std::string& path, std::uint64_t n_rows, std::uint64_t columns) {
  StoredDataset dataset;
  dataset.path = path;
  const Hdf5Scope scope;
  dataset.type = encoded(H5T_IEEE_F32LE);
  dataset.type_text = "f32";
  dataset.element_bytes = 4;
  dataset.shape = {n_rows, columns};
  dataset.extendable = true;
  dataset.storage.kind = StoredForm::Kind::chunked;
  dataset.storage.chunk_shape = {128, columns};
  dataset.storage.filters = {filter(2, {4}, "shuffle"), filter(1, {6}, "deflate")};
  dataset.fill_value = Bytes(4, std::byte{9});
  return dataset;
}

TEST(ConcatSchema, PacksAllThereIs) {
  std::vector<StoredDataset> datasets = {dataset_of("/g/a", 7, 3), dataset_of("/g/b", 0, 1)};
  datasets[1].by_value = false;
  datasets[1].extendable = false;
  datasets[1].fill_value.clear();
  StoredDataset& scalar = datasets.emplace_back();
  scalar.path = "/version";
  scalar.appended = false;
  const Result<std::vector<StoredDataset>> back = unpack_schema(pack_schema(datasets));
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), datasets.size());
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const StoredDataset& a = datasets[i];
    const StoredDataset& b = (*back)[i];
    EXPECT_EQ(a.path, b.path);
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.type_text, b.type_text);
    EXPECT_EQ(a.element_bytes, b.element_bytes);
    EXPECT_EQ(a.by_value, b.by_value);
    EXPECT_EQ(a.appended, b.appended);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.extendable, b.extendable);
    EXPECT_EQ(a.fill_value, b.fill_value);
    EXPECT_TRUE(a.storage.same_as(b.storage));
    ASSERT_EQ(a.storage.filters.size(), b.storage.filters.size());
    for (std::size_t f = 0; f < a.storage.filters.size(); ++f) {
      EXPECT_EQ(a.storage.filters[f].flags, b.storage.filters[f].flags);
      EXPECT_EQ(a.storage.filters[f].name, b.storage.filters[f].name);
      EXPECT_EQ(a.storage.filters[f].final_client_data, b.storage.filters[f].final_client_data);
    }
  }
}

TEST(ConcatSchema, PackedBytesCutShortAreRefused) {
  const std::vector<StoredDataset> datasets = {dataset_of("/g/a", 7, 3)};
  const Bytes packed = pack_schema(datasets);
  for (std::size_t n = 1; n < packed.size(); ++n) {
    const auto back = unpack_schema(std::span(packed).first(n));
    EXPECT_EQ(back.status().code(), Code::corrupt) << n << " of " << packed.size();
  }
  EXPECT_TRUE(unpack_schema({})->empty());
}

TEST(ConcatSchema, RowBytesAreOfAllInnerExtents) {
  EXPECT_EQ(dataset_of("/a", 7, 3).row_bytes(), 12U);
  StoredDataset cube = dataset_of("/a", 7, 3);
  cube.shape = {7, 3, 5};
  EXPECT_EQ(cube.row_bytes(), 60U);
  EXPECT_EQ(cube.n_rows(), 7U);
  EXPECT_EQ(StoredDataset().n_rows(), 0U);
}

TEST(ConcatSchema, StorageIsTheSameWhenChunksMeanTheSame) {
  const StoredForm form = dataset_of("/a", 7, 3).storage;
  StoredForm other = form;
  other.filters[1].final_client_data = {9};  // Another level of deflate decodes in the same way.
  other.filters[0].flags = 0;
  EXPECT_TRUE(form.same_as(other));
  other.filters[0].final_client_data = {8};  // Shuffled with another element size.
  EXPECT_FALSE(form.same_as(other));
  other = form;
  other.chunk_shape = {64, 3};
  EXPECT_FALSE(form.same_as(other));
  other = form;
  other.filters.pop_back();
  EXPECT_FALSE(form.same_as(other));
  other = form;
  other.filters[1].filter_id = 32015;
  EXPECT_FALSE(form.same_as(other));
  other = form;
  other.kind = StoredForm::Kind::contiguous;
  EXPECT_FALSE(form.same_as(other));
}

TEST(ConcatSchema, RowsOrderAndStorageMayDiffer) {
  const std::vector<StoredDataset> first = {dataset_of("/a", 7, 3), dataset_of("/b", 0, 1)};
  std::vector<StoredDataset> found = {dataset_of("/b", 90, 1), dataset_of("/a", 0, 3)};
  found[0].storage = StoredForm();
  found[0].extendable = false;
  EXPECT_THAT(schema_conflicts(first, found), IsEmpty());
}

TEST(ConcatSchema, EachConflictIsNamedWithBothSides) {
  std::vector<StoredDataset> first;
  for (const char* path : {"/type", "/rows", "/rank", "/fill", "/scalar", "/gone", "/same"}) {
    first.push_back(dataset_of(path, 7, 3));
  }
  std::vector<StoredDataset> found = first;
  {
    const Hdf5Scope scope;
    found[0].type = encoded(H5T_IEEE_F64LE);
  }
  found[0].type_text = "f64";
  found[1].shape = {7, 4};
  found[2].shape = {7};
  found[3].fill_value.clear();
  found[4].appended = false;
  found[5].path = "/new";
  EXPECT_THAT(
      schema_conflicts(first, found),
      ElementsAre("dataset \"/type\": f64, but f32 in the first file",
                  "dataset \"/rows\": rows of 4, but of 3 in the first file",
                  "dataset \"/rank\": rows of one element, but of 3 in the first file",
                  "dataset \"/fill\": fill value zero, but bytes 09090909 in the first file",
                  "dataset \"/scalar\": a scalar or null dataset, but an array in the first file",
                  "dataset \"/gone\" is missing", "dataset \"/new\" is not in the first file"));
}

TEST(ConcatSchema, ScalarsAreTheFirstFilesAndNeverConflict) {
  StoredDataset first = dataset_of("/name", 0, 0);
  first.appended = false;
  first.shape.clear();
  StoredDataset found = first;
  found.type_text = "string of 17 bytes";
  found.type.clear();
  EXPECT_THAT(schema_conflicts({&first, 1}, {&found, 1}), IsEmpty());
}

TEST(ConcatSchema, TypesOfTheSameWordsMayStillDiffer) {
  StoredDataset first = dataset_of("/a", 1, 1);
  StoredDataset found = first;
  {
    const Hdf5Scope scope;
    const Hdf5Id packed(H5Tcreate(H5T_COMPOUND, 4));
    const Hdf5Id padded(H5Tcreate(H5T_COMPOUND, 8));
    H5Tinsert(packed.get(), "x", 0, H5T_IEEE_F32LE);
    H5Tinsert(padded.get(), "x", 0, H5T_IEEE_F32LE);
    first.type = encoded(packed.get());
    found.type = encoded(padded.get());
  }
  const std::vector<std::string> lines = schema_conflicts({&first, 1}, {&found, 1});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::HasSubstr("\"/a\""));
  EXPECT_THAT(lines[0], testing::HasSubstr("other members, order or size"));
}

}  // namespace
}  // namespace tailrace
