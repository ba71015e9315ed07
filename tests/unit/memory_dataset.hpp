// A dataset of one chunk in a file in memory, written and read by HDF5 itself: the reference for
// codecs and filters.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <optional>
#include <vector>

#include "core/codec.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace::test {

/// One dataset of one chunk in a file in memory.
class MemoryDataset {
 public:
  MemoryDataset(DType dtype, const Shape& shape, const std::vector<FilterSpec>& filters,
                std::optional<double> fill_value = std::nullopt)
      : dtype_(dtype), extents_(shape.begin(), shape.end()), start_(shape.size(), 0) {
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(access.get(), 1U << 16, false);
    file_ = Hdf5Id(H5Fcreate("in_memory_only.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    const int rank = static_cast<int>(extents_.size());
    H5Pset_chunk(creation.get(), rank, extents_.data());
    for (const FilterSpec& filter : filters) {
      H5Pset_filter(creation.get(), static_cast<H5Z_filter_t>(filter.filter_id), filter.flags,
                    filter.client_data.size(), filter.client_data.data());
    }
    if (fill_value) H5Pset_fill_value(creation.get(), H5T_NATIVE_DOUBLE, &*fill_value);
    const Hdf5Id space(H5Screate_simple(rank, extents_.data(), nullptr));
    dataset_ = Hdf5Id(H5Dcreate2(file_.get(), "d", hdf5_native_type(dtype), space.get(),
                                 H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  }

  bool valid() const { return dataset_.valid(); }

  /// cd_values in the header of filter number `index`.
  std::vector<std::uint32_t> client_data(unsigned index) const {
    const Hdf5Id creation(H5Dget_create_plist(dataset_.get()));
    std::vector<std::uint32_t> words(256);
    std::size_t n_words = words.size();
    unsigned flags = 0;
    unsigned config = 0;
    H5Pget_filter2(creation.get(), index, &flags, &n_words, words.data(), 0, nullptr, &config);
    words.resize(n_words);
    return words;
  }

  /// Writes through HDF5's pipeline and returns the stored bytes.
  EncodedBytes write(const Sample& sample) {
    EXPECT_GE(H5Dwrite(dataset_.get(), hdf5_native_type(dtype_), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       sample.bytes.data()),
              0);
    H5Fflush(file_.get(), H5F_SCOPE_LOCAL);
    hsize_t n_stored = 0;
    EXPECT_GE(H5Dget_chunk_storage_size(dataset_.get(), start_.data(), &n_stored), 0);
    EncodedBytes stored{Buffer(n_stored), 0};
#if H5_VERSION_GE(2, 0, 0)
    std::size_t n_capacity = n_stored;
    EXPECT_GE(H5Dread_chunk(dataset_.get(), H5P_DEFAULT, start_.data(), &stored.filter_mask,
                            stored.buffer.data(), &n_capacity),
              0);
#else
    EXPECT_GE(H5Dread_chunk(dataset_.get(), H5P_DEFAULT, start_.data(), &stored.filter_mask,
                            stored.buffer.data()),
              0);
#endif
    return stored;
  }

  /// Stores encoded bytes unchanged and lets HDF5 decode them.
  std::vector<std::byte> read_back(const EncodedBytes& encoded, std::size_t n_bytes) {
    EXPECT_GE(H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, encoded.filter_mask, start_.data(),
                             encoded.buffer.n_bytes(), encoded.buffer.data()),
              0);
    // Reopened: HDF5 1.10.8 remembers a filter mask of 0 for a chunk that was just written.
    dataset_.reset();
    dataset_ = Hdf5Id(H5Dopen2(file_.get(), "d", H5P_DEFAULT));
    std::vector<std::byte> values(n_bytes);
    EXPECT_GE(H5Dread(dataset_.get(), hdf5_native_type(dtype_), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      values.data()),
              0)
        << hdf5_error_text();
    return values;
  }

 private:
  DType dtype_;
  std::vector<hsize_t> extents_;
  std::vector<hsize_t> start_;
  Hdf5Id file_;
  Hdf5Id dataset_;
};

}  // namespace tailrace::test
