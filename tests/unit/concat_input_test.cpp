// Inputs of a concatenation: the chunks of every kind of storage, read from memory and from the
// file.

#include "describe/concat_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <tuple>

#include "concat_input_files.hpp"
#include "container_support.hpp"

namespace tailrace {
namespace {

using test::Format;
using test::index_of;
using test::make_dataset;
using test::make_file;
using test::make_numbers;
using test::opened;
using test::TestFolder;
using test::text_of;
using test::whole;
using testing::ElementsAre;

/// One dataset of each kind of storage and index.
void fill_with_all_kinds(hid_t file) {
  const hid_t group = H5Gcreate2(file, "kinds", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  make_numbers(group, "appended", {.shape = {300}, .limits = {0}, .chunk = {128}});
  make_numbers(group, "both_ways",
               {.shape = {30, 20}, .limits = {0, 0}, .chunk = {8, 8}, .deflate = true});
  make_numbers(group, "column",
               {.shape = {500, 1}, .limits = {0, 1}, .chunk = {128, 1}, .deflate = true});
  make_numbers(group, "compact", {.shape = {10, 2}, .compact = true});
  make_numbers(group, "contiguous", {.shape = {1000}});
  make_numbers(group, "empty",
               {.shape = {0, 1}, .limits = {0, 1}, .chunk = {128, 1}, .deflate = true});
  make_numbers(group, "fixed", {.shape = {300}, .chunk = {128}, .deflate = true});
  make_numbers(group, "single", {.shape = {50}, .chunk = {50}, .deflate = true});
  H5Dclose(make_dataset(group, "unwritten", {.shape = {100}, .chunk = {10}}));
  H5Dclose(make_dataset(group, "unwritten_contiguous", {.shape = {100}}));
  H5Gclose(group);
}

/// The bytes of all stored chunks, as read_at() delivers them.
std::vector<Bytes> chunk_bytes(ConcatInput& input, std::size_t index) {
  std::vector<Bytes> all;
  const ChunkList chunks = input.chunks(index);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const StoredChunk chunk = chunks[i];
    Bytes& bytes = all.emplace_back(chunk.extent.encoded_bytes);
    const Status read = input.read_at(chunk.extent.address, bytes);
    EXPECT_TRUE(read.ok()) << text_of(read);
  }
  return all;
}

/// The bytes of the same chunks from HDF5 itself, which reads each existing chunk as stored.
std::vector<Bytes> stock_chunk_bytes(const std::string& path, const StoredDataset& dataset) {
  std::vector<Bytes> all;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t id = H5Dopen2(file, dataset.path.c_str(), H5P_DEFAULT);
  if (dataset.storage.kind == StoredForm::Kind::chunked) {
    const ChunkGrid grid{dataset.shape, dataset.storage.chunk_shape};
    for (std::uint64_t i = 0; i < grid.n_chunks(); ++i) {
      const Shape start = grid.full_box(i).start;
      const std::vector<hsize_t> offset(start.begin(), start.end());
      hsize_t n_bytes = 0;
      H5E_BEGIN_TRY {
        if (H5Dget_chunk_storage_size(id, offset.data(), &n_bytes) < 0) n_bytes = 0;
      }
      H5E_END_TRY;
      if (n_bytes == 0) continue;
      std::uint32_t mask = 0;
      H5Dread_chunk(id, H5P_DEFAULT, offset.data(), &mask, all.emplace_back(n_bytes).data());
    }
  } else if (H5Dget_storage_size(id) > 0 && n_elements(dataset.shape) > 0) {
    Bytes bytes(n_elements(dataset.shape) * dataset.element_bytes);
    const hid_t type = H5Dget_type(id);
    H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    H5Tclose(type);
    all.push_back(std::move(bytes));
  }
  H5Dclose(id);
  H5Fclose(file);
  return all;
}

class ConcatInputFormats : public testing::TestWithParam<std::tuple<Format, int, bool>> {};

TEST_P(ConcatInputFormats, ChunksOfEveryKindOfStorageAreWhereHdf5ReadsThem) {
  const auto [format, user_block, in_memory] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "kinds.h5";
  make_file(path, fill_with_all_kinds, format, hsize_t(user_block));
  const std::unique_ptr<ConcatInput> input = opened(path, in_memory ? whole : 0);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->in_memory(), in_memory);
  ASSERT_EQ(input->datasets().size(), 10U);
  std::vector<std::vector<Bytes>> expected;
  for (std::size_t i = 0; i < input->datasets().size(); ++i) {
    const StoredDataset& dataset = input->datasets()[i];
    SCOPED_TRACE(dataset.path);
    expected.push_back(stock_chunk_bytes(path, dataset));
    EXPECT_EQ(chunk_bytes(*input, i), expected.back());
    const bool stored = dataset.path.find("/unwritten") == std::string::npos &&
                        dataset.path.find("/empty") == std::string::npos;
    EXPECT_EQ(!input->chunks(i).empty(), stored);
  }
  // The input must stay valid after schema and image are destroyed and the file is closed.
  const std::uint64_t before = input->memory_bytes();
  input->drop_schema();
  EXPECT_TRUE(input->datasets().empty());
  input->drop_image();
  EXPECT_FALSE(input->in_memory());
  EXPECT_LT(input->memory_bytes(), before);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    input->close_file();
    EXPECT_EQ(chunk_bytes(*input, i), expected[i]);
  }
  EXPECT_TRUE(input->chunks(expected.size()).empty());
}

INSTANTIATE_TEST_SUITE_P(All, ConcatInputFormats,
                         testing::Combine(testing::Values(Format::earliest, Format::latest),
                                          testing::Values(0, 512, 4096), testing::Bool()));

TEST(ConcatInput, SaysHowEachDatasetIsStored) {
  const TestFolder folder;
  const std::string path = folder / "kinds.h5";
  make_file(path, fill_with_all_kinds);
  const std::unique_ptr<ConcatInput> input = opened(path, whole);
  const StoredDataset& grown = input->datasets()[index_of(*input, "/kinds/both_ways")];
  EXPECT_EQ(grown.shape, (Shape{30, 20}));
  EXPECT_TRUE(grown.extendable);
  EXPECT_TRUE(grown.appended);
  EXPECT_TRUE(grown.by_value);
  EXPECT_EQ(grown.storage.kind, StoredForm::Kind::chunked);
  EXPECT_EQ(grown.storage.chunk_shape, (Shape{8, 8}));
  ASSERT_EQ(grown.storage.filters.size(), 1U);
  EXPECT_EQ(grown.storage.filters[0].filter_id, 1U);
  EXPECT_EQ(grown.storage.filters[0].name, "deflate");
  EXPECT_THAT(grown.storage.filters[0].final_client_data, ElementsAre(4U));
  const StoredDataset& plain = input->datasets()[index_of(*input, "/kinds/contiguous")];
  EXPECT_EQ(plain.storage.kind, StoredForm::Kind::contiguous);
  EXPECT_FALSE(plain.extendable);
  EXPECT_EQ(plain.row_bytes(), 4U);
  const StoredDataset& compact = input->datasets()[index_of(*input, "/kinds/compact")];
  EXPECT_EQ(compact.storage.kind, StoredForm::Kind::compact);
  EXPECT_GE(input->chunks(index_of(*input, "/kinds/compact"))[0].extent.address,
            input->file_bytes());
}

TEST(ConcatInput, FewChunksInALargeGridAreFound) {
  const TestFolder folder;
  const std::string path = folder / "sparse.h5";
  make_file(path, [](hid_t file) {
    const hid_t dataset = make_dataset(
        file, "d", {.shape = {std::uint64_t{1} << 40, 4}, .limits = {0, 4}, .chunk = {16, 2}});
    std::int32_t values[32] = {};
    for (const hsize_t row : {hsize_t{1} << 39, hsize_t{160}, hsize_t{0}}) {
      const hsize_t offset[] = {row, 2};
      H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset, sizeof(values), values);
    }
    H5Dclose(dataset);
  });
  const std::unique_ptr<ConcatInput> input = opened(path, whole);
  ASSERT_NE(input, nullptr);
  std::vector<std::uint64_t> found;
  const ChunkList chunks = input->chunks(0);
  for (std::size_t i = 0; i < chunks.size(); ++i) found.push_back(chunks[i].chunk_index);
  EXPECT_THAT(found, ElementsAre(1U, 21U, (std::uint64_t{1} << 39) / 16 * 2 + 1));
}

TEST(ConcatInput, FilterMasksSayWhatIsStoredPlain) {
  const TestFolder folder;
  const std::string path = folder / "masks.h5";
  make_file(
      path,
      [](hid_t file) {
        make_numbers(
            file, "edges",
            {.shape = {25}, .limits = {0}, .chunk = {10}, .deflate = true, .plain_edges = true});
        const hid_t dataset =
            make_dataset(file, "skipped", {.shape = {20}, .chunk = {10}, .deflate = true});
        const std::int32_t values[10] = {};
        const hsize_t offset[] = {10};
        H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, offset, sizeof(values), values);
        H5Dclose(dataset);
      },
      Format::latest);
  const std::unique_ptr<ConcatInput> input = opened(path, whole);
  const ChunkList edges = input->chunks(0);
  ASSERT_EQ(edges.size(), 3U);
  EXPECT_EQ(edges[0].filter_mask, 0U);
  EXPECT_EQ(edges[1].filter_mask, 0U);
  EXPECT_EQ(edges[2].filter_mask & 1U, 1U);
  EXPECT_EQ(edges[2].extent.encoded_bytes, 40U);
  const ChunkList skipped = input->chunks(1);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].chunk_index, 1U);
  EXPECT_EQ(skipped[0].filter_mask, 1U);
}

}  // namespace
}  // namespace tailrace
