// A dataset of one chunk that stock HDF5 writes and reads, in a file in memory: the reference for
// stored codecs. Tests need an Hdf5Scope.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/stored_codec.hpp"

namespace tailrace::test {

using ListSetup = std::function<void(hid_t creation)>;

/// A chunked dataset of one chunk in memory.
class StockDataset {
 public:
  StockDataset(hid_t type, const Shape& chunk_shape, const ListSetup& setup)
      : type_(H5Tcopy(type)), start_(chunk_shape.size(), 0) {
    const std::vector<hsize_t> extents(chunk_shape.begin(), chunk_shape.end());
    const int rank = static_cast<int>(extents.size());
    const Hdf5Id memory(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(memory.get(), 1U << 16, false);
    // Two open files in memory need two names.
    static int n_files = 0;
    const std::string name = "stock_in_memory_" + std::to_string(n_files++);
    file_ = Hdf5Id(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, memory.get()));
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation.get(), rank, extents.data());
    setup(creation.get());
    const Hdf5Id space(H5Screate_simple(rank, extents.data(), nullptr));
    dataset_ = Hdf5Id(H5Dcreate2(file_.get(), "d", type_.get(), space.get(), H5P_DEFAULT,
                                 creation.get(), H5P_DEFAULT));
    schema_.path = "/d";
    schema_.type_text = "tested type";
    std::size_t n_type = 0;
    H5Tencode(type_.get(), nullptr, &n_type);
    schema_.type.resize(n_type);
    H5Tencode(type_.get(), schema_.type.data(), &n_type);
    schema_.element_bytes = H5Tget_size(type_.get());
    schema_.shape = chunk_shape;
    schema_.storage.kind = StoredForm::Kind::chunked;
    schema_.storage.chunk_shape = chunk_shape;
    if (dataset_.valid()) read_filters();
  }

  bool valid() const { return dataset_.valid(); }
  const StoredDataset& schema() const { return schema_; }
  std::size_t n_bytes() const { return n_elements(schema_.shape) * schema_.element_bytes; }
  Result<std::unique_ptr<Codec>> codec(const std::string& plugin_path = "") const {
    return make_stored_codec(schema_, schema_.storage, plugin_path);
  }

  /// Bytes and filter mask that HDF5 stores for `values`.
  std::pair<Bytes, std::uint32_t> store(const Bytes& values) {
    EXPECT_GE(H5Dwrite(dataset_.get(), type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
              0);
    H5Fflush(file_.get(), H5F_SCOPE_LOCAL);
    hsize_t n_stored = 0;
    EXPECT_GE(H5Dget_chunk_storage_size(dataset_.get(), start_.data(), &n_stored), 0);
    Bytes stored(n_stored);
    std::uint32_t mask = 0;
#if H5_VERSION_GE(2, 0, 0)
    std::size_t n_room = n_stored;
    H5Dread_chunk(dataset_.get(), H5P_DEFAULT, start_.data(), &mask, stored.data(), &n_room);
#else
    H5Dread_chunk(dataset_.get(), H5P_DEFAULT, start_.data(), &mask, stored.data());
#endif
    return {stored, mask};
  }

  /// Values that HDF5 reads from these stored bytes; empty if it fails.
  Bytes read(std::span<const std::byte> stored, std::uint32_t mask) {
    // HDF5 1.10.8 keeps the mask of a chunk that is replaced by one of the same length.
    const std::vector<hsize_t> extents(schema_.shape.begin(), schema_.shape.end());
    std::vector<hsize_t> none = extents;
    none[0] = 0;
    H5Dset_extent(dataset_.get(), none.data());
    H5Dset_extent(dataset_.get(), extents.data());
    EXPECT_GE(H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, mask, start_.data(), stored.size(),
                             stored.data()),
              0);
    // Closed first: HDF5 1.10.8 remembers a filter mask of 0 for a chunk that was just written.
    dataset_.reset();
    dataset_ = Hdf5Id(H5Dopen2(file_.get(), "d", H5P_DEFAULT));
    Bytes values(n_bytes());
    const herr_t rc =
        H5Dread(dataset_.get(), type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    return rc >= 0 ? values : Bytes();
  }

 private:
  void read_filters() {
    const Hdf5Id list(H5Dget_create_plist(dataset_.get()));
    for (int i = 0; i < H5Pget_nfilters(list.get()); ++i) {
      std::vector<unsigned> words(256);
      std::size_t n_words = words.size();
      unsigned flags = 0;
      unsigned config = 0;
      char name[64] = {};
      FilterSpec filter;
      filter.filter_id = static_cast<std::uint32_t>(H5Pget_filter2(
          list.get(), unsigned(i), &flags, &n_words, words.data(), sizeof(name), name, &config));
      filter.flags = flags;
      words.resize(n_words);
      filter.final_client_data = words;
      filter.name = name;
      schema_.storage.filters.push_back(filter);
    }
  }

  Hdf5Id file_;
  Hdf5Id type_;
  Hdf5Id dataset_;
  std::vector<hsize_t> start_;
  StoredDataset schema_;
};

}  // namespace tailrace::test
