// Inputs of a concatenation that are missing, not HDF5, truncated or damaged. They are refused by
// name and never crash the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <random>

#include "container_support.hpp"
#include "describe/concat_input.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace tailrace {
namespace {

/// HDF5 itself never frees some of what it has read from a damaged file.
#ifdef __SANITIZE_ADDRESS__
using ForgiveLeaks = __lsan::ScopedDisabler;
#else
struct ForgiveLeaks {
  ForgiveLeaks() {}  // Not trivial, so that compilers do not report it as unused.
};
#endif

using test::TestFolder;
using test::text_of;
using testing::HasSubstr;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Some groups of datasets with and without rows, as in detectors' files.
void make_sample(const std::string& path, bool latest) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[] = {16, 1};
  H5Pset_chunk(list, 2, chunk);
  H5Pset_deflate(list, 6);
  const std::vector<std::int32_t> values(400, 7);
  for (int g = 0; g < 3; ++g) {
    const hid_t group = H5Gcreate2(file, ("rec" + std::to_string(g)).c_str(), H5P_DEFAULT,
                                   H5P_DEFAULT, H5P_DEFAULT);
    for (int d = 0; d < 6; ++d) {
      const hsize_t extents[] = {hsize_t(d % 2 == 0 ? 400 : 0), 1};
      const hsize_t limits[] = {d == 4 ? hsize_t{400} : H5S_UNLIMITED, 1};
      const hid_t space = H5Screate_simple(2, extents, limits);
      const hid_t dataset = H5Dcreate2(group, ("value" + std::to_string(d)).c_str(), H5T_STD_I32LE,
                                       space, H5P_DEFAULT, list, H5P_DEFAULT);
      if (extents[0] > 0) {
        H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      }
      H5Dclose(dataset);
      H5Sclose(space);
    }
    H5Gclose(group);
  }
  H5Pclose(list);
  H5Fclose(file);
  H5Pclose(access);
}

Status open_status(const std::string& path, std::uint64_t image_bytes_max) {
  return ConcatInput::open(path, image_bytes_max).status();
}

TEST(ConcatInputDamage, FilesThatAreNoHdf5AreNamed) {
  const ForgiveLeaks in_hdf5;
  const TestFolder folder;
  spill(folder / "empty.h5", "");
  spill(folder / "text.h5", std::string(5000, 'x'));
  make_sample(folder / "good.h5", false);
  spill(folder / "cut.h5", slurp(folder / "good.h5").substr(0, 9000));
  ::mkdir((folder / "folder.h5").c_str(), 0755);
  const std::vector<std::pair<std::string, Code>> cases = {
      {"empty.h5", Code::corrupt},
      {"text.h5", Code::corrupt},
      {"cut.h5", Code::corrupt},
      {"none.h5", Code::not_found},
      {"folder.h5", Code::invalid_argument},
  };
  for (const auto& [name, code] : cases) {
    for (const std::uint64_t image : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      const Status status = open_status(folder / name, image);
      EXPECT_EQ(status.code(), code) << text_of(status);
      EXPECT_THAT(status.message(), HasSubstr(name));
    }
  }
}

TEST(ConcatInputDamage, ADamagedHeaderIsNamedByItsPath) {
  const ForgiveLeaks in_hdf5;
  const TestFolder folder;
  make_sample(folder / "good.h5", true);
  std::string bytes = slurp(folder / "good.h5");
  // Damages the second object header of the new format, which belongs to a dataset: its checksum is
  // wrong.
  const hid_t file = H5Fopen((folder / "good.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
#if H5_VERSION_GE(1, 12, 0)
  haddr_t address = 0;
  H5O_info2_t facts;
  H5Oget_info_by_name3(file, "/rec1/value2", &facts, H5O_INFO_BASIC, H5P_DEFAULT);
  H5VLnative_token_to_addr(file, facts.token, &address);
#else
  H5O_info_t info;
  H5Oget_info_by_name2(file, "/rec1/value2", &info, H5O_INFO_BASIC, H5P_DEFAULT);
  const haddr_t address = info.addr;
#endif
  H5Fclose(file);
  bytes[address + 30] = char(bytes[address + 30] ^ 0x55);
  spill(folder / "bad.h5", bytes);
  const Status status = open_status(folder / "bad.h5", std::uint64_t{1} << 30);
  EXPECT_EQ(status.code(), Code::corrupt) << text_of(status);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("bad.h5"), HasSubstr("/rec1/value2")));
}

/// Opens a file and reads everything that is listed. This must terminate for any bytes.
void exercise(const std::string& path, std::uint64_t image_bytes_max) {
  const Result<std::unique_ptr<ConcatInput>> input = ConcatInput::open(path, image_bytes_max);
  if (!input.ok()) {
    EXPECT_THAT(input.status().message(), HasSubstr(path));
    return;
  }
  for (std::size_t i = 0; i < (*input)->datasets().size(); ++i) {
    const ChunkList chunks = (*input)->chunks(i);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const StoredChunk chunk = chunks[c];
      Bytes bytes(chunk.extent.encoded_bytes);
      const Status read = (*input)->read_at(chunk.extent.address, bytes);
      EXPECT_TRUE(read.ok()) << text_of(read);
    }
  }
}

class ConcatInputFuzz : public testing::TestWithParam<bool> {};

TEST_P(ConcatInputFuzz, RandomDamageIsRefusedOrHarmless) {
  const ForgiveLeaks in_hdf5;
  const TestFolder folder;
  make_sample(folder / "good.h5", GetParam());
  const std::string good = slurp(folder / "good.h5");
  std::mt19937 random(20221);
  const std::string path = folder / "bad.h5";
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    const std::uint64_t n_flips = 1 + random() % 40;
    for (std::uint64_t i = 0; i < n_flips && !bytes.empty(); ++i) {
      // Metadata, which matter most, are mostly at the start.
      const std::size_t at = random() % (i % 2 == 0 ? bytes.size() : bytes.size() / 4 + 1);
      bytes[at] = char(random());
    }
    spill(path, bytes);
    exercise(path, round % 2 == 0 ? std::uint64_t{1} << 30 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(OldAndNewFormat, ConcatInputFuzz, testing::Bool());

TEST(ConcatInputDamage, AFileThatShrinksAfterItsListingIsRefused) {
  const ForgiveLeaks in_hdf5;
  const TestFolder folder;
  const std::string path = folder / "good.h5";
  make_sample(path, false);
  const Result<std::unique_ptr<ConcatInput>> input = ConcatInput::open(path, 0);
  ASSERT_TRUE(input.ok());
  (*input)->close_file();
  Bytes bytes(4);
  const std::string whole_file = slurp(path);
  spill(path, whole_file + "more");  // Simulates an output that is appended to.
  EXPECT_TRUE((*input)->read_at(0, bytes).ok());
  (*input)->close_file();
  spill(path, whole_file.substr(0, whole_file.size() - 1));
  EXPECT_EQ((*input)->read_at(0, bytes).code(), Code::corrupt);
  EXPECT_EQ((*input)->read_at(UINT64_MAX - 1, bytes).code(), Code::corrupt);
}

}  // namespace
}  // namespace tailrace
