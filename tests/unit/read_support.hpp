// Helpers of the tests of reading: files written by stock HDF5, and any slab read by stock HDF5 as
// the reference.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "container_support.hpp"
#include "core/slab.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "read/read.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {

using CreationSetup = std::function<void(hid_t creation)>;

/// A file that stock HDF5 writes.
class StockFile {
 public:
  explicit StockFile(std::string path) : path_(std::move(path)) {
    const Hdf5Scope scope;
    file_ = Hdf5Id(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    EXPECT_TRUE(file_.valid());
  }
  ~StockFile() { close(); }
  hid_t id() const { return file_.get(); }
  const std::string& path() const { return path_; }
  void close() {
    const Hdf5Scope scope;
    file_.reset();
  }

  /// Creates a dataset and, if `written`, fills it with compressible numbers that depend on the
  /// position. `memory_type` is the type of these numbers: i32 or f64.
  void add(const std::string& name, hid_t type, const Shape& shape, const CreationSetup& setup,
           bool written = true) {
    const Hdf5Scope scope;
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    if (setup) setup(creation.get());
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const Hdf5Id space(shape.empty()
                           ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(int(shape.size()), extents.data(), nullptr));
    const Hdf5Id dataset(H5Dcreate2(file_.get(), name.c_str(), type, space.get(), H5P_DEFAULT,
                                    creation.get(), H5P_DEFAULT));
    ASSERT_TRUE(dataset.valid()) << name << ": " << hdf5_error_text();
    if (!written) return;
    std::vector<double> values(n_elements(shape));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = double((i * 7 + i / 13) % 120) - 9;
    ASSERT_GE(
        H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << name << ": " << hdf5_error_text();
  }

 private:
  std::string path_;
  Hdf5Id file_;
};

inline CreationSetup chunked(const Shape& chunk_shape, const CreationSetup& more = {}) {
  return [=](hid_t creation) {
    const std::vector<hsize_t> extents(chunk_shape.begin(), chunk_shape.end());
    H5Pset_chunk(creation, int(extents.size()), extents.data());
    if (more) more(creation);
  };
}

inline CreationSetup deflated(const Shape& chunk_shape) {
  return chunked(chunk_shape, [](hid_t creation) {
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, 4);
  });
}

/// Values read by stock HDF5. `type` H5I_INVALID_HID: the type in the file.
inline Bytes read_reference(const std::string& path, const std::string& name, hid_t type,
                            const Slab& slab, std::size_t element_bytes) {
  const Hdf5Scope scope;
  Bytes values(slab.n_elements() * element_bytes);
  if (values.empty()) return values;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
  const Hdf5Id own_type(H5Dget_type(dataset.get()));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const std::vector<hsize_t> start(slab.start.begin(), slab.start.end());
  const std::vector<hsize_t> count(slab.count.begin(), slab.count.end());
  const std::vector<hsize_t> stride(slab.stride.begin(), slab.stride.end());
  if (!start.empty()) {
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(),
                        stride.empty() ? nullptr : stride.data(), count.data(), nullptr);
  }
  const hsize_t n = slab.n_elements();
  const Hdf5Id memory(H5Screate_simple(1, &n, nullptr));
  EXPECT_GE(H5Dread(dataset.get(), type < 0 ? own_type.get() : type, memory.get(), space.get(),
                    H5P_DEFAULT, values.data()),
            0)
      << name << ": " << hdf5_error_text();
  return values;
}

/// A random slab in `shape`, sometimes empty or strided.
inline Slab any_slab(const Shape& shape, std::mt19937& random) {
  Slab slab;
  const bool strided = random() % 2 == 0;
  for (const std::uint64_t extent : shape) {
    const std::uint64_t stride = strided ? 1 + random() % 5 : 1;
    slab.start.push_back(extent == 0 ? 0 : random() % extent);
    const std::uint64_t n_max = extent == 0 ? 0 : (extent - 1 - slab.start.back()) / stride + 1;
    slab.count.push_back(n_max == 0 ? 0 : 1 + random() % n_max);
    if (random() % 60 == 0) slab.count.back() = 0;
    slab.stride.push_back(stride);
  }
  if (!strided) slab.stride.clear();
  return slab;
}

inline Result<std::unique_ptr<Reader>> open_reader(const std::string& path,
                                                   const ReadOptions& options = {}) {
  return Reader::open(make_self_comm(), path, options);
}

}  // namespace tailrace::test
