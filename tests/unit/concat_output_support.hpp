// Helpers of the tests of a concatenation's output: a file on the metadata driver, targets as rank
// 0 places them, and datasets in the form of the inputs.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "concat/hdf5/concat_output.hpp"
#include "container_support.hpp"
#include "hdf5/hdf5_handle.hpp"

namespace tailrace::test {

/// A file on the metadata driver, and its shared end.
struct Output {
  explicit Output(const std::string& path) : storage(path, false), tail(0, 64) {
    auto made = Hdf5File::create(storage, tail.allocate(), {});
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    file = std::move(*made);
  }
  explicit Output(const std::string& path, bool /*existing*/) : storage(path, true), tail(0, 64) {
    std::uint64_t end = 0;
    auto opened = Hdf5File::open(storage, tail.allocate(), {}, end);
    EXPECT_TRUE(opened.ok()) << text_of(opened.status());
    tail.reset(end);
    file = std::move(*opened);
  }
  RecordingStorage storage;
  ScatteringTail tail;
  std::unique_ptr<Hdf5File> file;
};

inline Bytes encoded(hid_t type) {
  std::size_t n_bytes = 0;
  H5Tencode(type, nullptr, &n_bytes);
  Bytes bytes(n_bytes);
  EXPECT_GE(H5Tencode(type, bytes.data(), &n_bytes), 0);
  return bytes;
}

inline Hdf5Id open_file(const std::string& path) {
  return Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
}

inline Hdf5Id open_dataset(hid_t file, const std::string& path) {
  return Hdf5Id(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
}

/// A chunked, growable target of `type`, without filters.
inline ConcatTarget chunked_target(const std::string& path, hid_t type, Shape shape,
                                   Shape chunk_shape) {
  ConcatTarget target;
  target.like.path = path;
  target.like.type = encoded(type);
  target.like.element_bytes = H5Tget_size(type);
  target.like.shape = std::move(shape);
  target.like.extendable = true;
  target.like.storage.kind = StoredForm::Kind::chunked;
  target.like.storage.chunk_shape = std::move(chunk_shape);
  target.n_rows = target.like.shape[0];
  return target;
}

inline ConcatTarget contiguous_target(const std::string& path, hid_t type, Shape shape,
                                      std::uint64_t address) {
  ConcatTarget target = chunked_target(path, type, std::move(shape), {});
  target.like.extendable = false;
  target.like.storage.kind = StoredForm::Kind::contiguous;
  target.contiguous_address = address;
  return target;
}

inline Hdf5Id growing_space(std::vector<hsize_t> extents) {
  std::vector<hsize_t> most = extents;
  most[0] = H5S_UNLIMITED;
  return Hdf5Id(H5Screate_simple(int(extents.size()), extents.data(), most.data()));
}

inline Hdf5Id make_dataset(hid_t file, const char* path, hid_t type, std::vector<hsize_t> extents,
                           const void* values) {
  const Hdf5Id space = growing_space(extents);
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  for (hsize_t& extent : extents) extent = std::max<hsize_t>(extent, 1);
  H5Pset_chunk(list.get(), int(extents.size()), extents.data());
  Hdf5Id dataset(H5Dcreate2(file, path, type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT));
  EXPECT_TRUE(dataset.valid()) << path;
  if (values != nullptr) {
    EXPECT_GE(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  }
  return dataset;
}

}  // namespace tailrace::test
