// Small input files for tests of a concatenation, made with stock HDF5.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "container_support.hpp"
#include "describe/concat_input.hpp"

namespace tailrace::test {

inline constexpr std::uint64_t whole = std::uint64_t{1} << 30;  ///< Larger than any test file.

/// Storage of a dataset that make_dataset() creates.
struct Made {
  Shape shape;
  Shape limits = {};  ///< Empty: equal to the shape; 0: unlimited.
  Shape chunk = {};   ///< Empty: not chunked.
  hid_t type = H5T_NATIVE_INT32;
  bool compact = false;
  bool deflate = false;
  bool plain_edges = false;
};

/// Creates a dataset; the caller closes it.
inline hid_t make_dataset(hid_t place, const char* name, const Made& made) {
  const std::vector<hsize_t> extents(made.shape.begin(), made.shape.end());
  std::vector<hsize_t> limits(extents);
  for (std::size_t d = 0; d < made.limits.size(); ++d) {
    limits[d] = made.limits[d] == 0 ? H5S_UNLIMITED : made.limits[d];
  }
  const hid_t space = H5Screate_simple(int(extents.size()), extents.data(), limits.data());
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (made.compact) H5Pset_layout(list, H5D_COMPACT);
  if (!made.chunk.empty()) {
    const std::vector<hsize_t> chunk(made.chunk.begin(), made.chunk.end());
    H5Pset_chunk(list, int(chunk.size()), chunk.data());
    if (made.plain_edges) H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  }
  if (made.deflate) H5Pset_deflate(list, 4);
  const hid_t dataset = H5Dcreate2(place, name, made.type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Pclose(list);
  H5Sclose(space);
  return dataset;
}

/// Creates a dataset of the numbers 0, 1, 2, ...
inline void make_numbers(hid_t place, const char* name, const Made& made) {
  const hid_t dataset = make_dataset(place, name, made);
  std::vector<std::int32_t> values(n_elements(made.shape));
  std::iota(values.begin(), values.end(), 0);
  if (!values.empty()) {
    H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  H5Dclose(dataset);
}

enum class Format : std::uint8_t { earliest, latest };

/// Creates a file and calls `fill` with it.
inline void make_file(const std::string& path, const std::function<void(hid_t)>& fill,
                      Format format = Format::earliest, hsize_t user_block = 0) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (format == Format::latest) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  if (user_block > 0) H5Pset_userblock(creation, user_block);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  fill(file);
  H5Fclose(file);
  H5Pclose(creation);
  H5Pclose(access);
}

inline std::unique_ptr<ConcatInput> opened(const std::string& path, std::uint64_t image_bytes_max) {
  Result<std::unique_ptr<ConcatInput>> input = ConcatInput::open(path, image_bytes_max);
  EXPECT_TRUE(input.ok()) << test::text_of(input.status());
  return input.ok() ? std::move(*input) : nullptr;
}

inline std::size_t index_of(const ConcatInput& input, const std::string& path) {
  for (std::size_t i = 0; i < input.datasets().size(); ++i) {
    if (input.datasets()[i].path == path) return i;
  }
  ADD_FAILURE() << path << " is not listed";
  return 0;
}

}  // namespace tailrace::test
