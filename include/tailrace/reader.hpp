// Tailrace for C++20: reading any HDF5 or netCDF-4 file. The C API of reader.h with RAII, types,
// spans and exceptions.
//
//   tailrace::Reader reader = tailrace::Reader::open("out.h5");
//   std::vector<float> whole = reader.read<float>("/temperature");
//   std::vector<float> part = reader.read<float>("/temperature", {{0, 100}, {512, 10}});
//   reader.read("/temperature", {{0, 100}, {512, 10}, {1, 2}}, std::span(buffer));  // every second
//
// Read reader.h first; a comment below says only what C++ adds. Every failure is a tailrace::Error.
// A Reader that is destroyed without close() is abandoned, without the other ranks.

#pragma once

#if __cplusplus < 201709L
#error "reader.hpp needs C++20 (-std=c++20); older C++ may use the C interface, reader.h"
#else

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tailrace/reader.h>
#include <tailrace/tailrace.hpp>

namespace tailrace {
inline namespace api {

/// A slab: `count` elements from `start` in each dimension, `stride` apart; empty stride: all 1.
struct Selection {
  std::vector<std::uint64_t> start;
  std::vector<std::uint64_t> count;
  std::vector<std::uint64_t> stride;

  Selection() = default;
  Selection(Extents from, Extents counts, Extents strides = {})
      : start(std::move(from).shape()),
        count(std::move(counts).shape()),
        stride(std::move(strides).shape()) {}

  std::uint64_t n_elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : count) n *= extent;
    return n;
  }
};

/// Description of a dataset, as a copy that stays valid; see tailrace_dataset_info.
struct DatasetInfo {
  std::string path;
  std::string type_text;
  std::optional<tailrace_dtype> dtype;  ///< None: elements are the file's bytes.
  std::size_t element_bytes = 0;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> max_shape;
  std::vector<std::uint64_t> chunk_shape;  ///< Empty: not chunked, or a scalar.
  std::optional<double> fill_value;

  Selection whole() const { return {std::vector<std::uint64_t>(shape.size(), 0), shape}; }
};

/// An open file for reading; see reader.h. Movable, not copyable.
class Reader {
 public:
  /// Open a file for reading; see tailrace_reader_open. Collective.
  static Reader open(const std::string& path, const Comm& comm = serial(),
                     const Options& options = {}) {
    tailrace_reader* reader = nullptr;
    check(tailrace_reader_open(path.c_str(), comm.address(), comm.n_bytes(), options.text().c_str(),
                               &reader));
    return Reader(reader);
  }

  /// Return the number of datasets in the file. Not collective.
  std::size_t n_datasets() const { return tailrace_reader_n_datasets(reader_.get()); }
  /// Describe a dataset by its number, from 0. Not collective.
  DatasetInfo dataset(std::size_t number) const {
    tailrace_dataset_info info;
    check(tailrace_reader_dataset(reader_.get(), number, &info));
    DatasetInfo copied{info.path, info.type_text, {}, info.element_bytes, {}, {}, {}, {}};
    if (info.is_number != 0) copied.dtype = info.dtype;
    copied.shape.assign(info.shape, info.shape + info.n_dims);
    copied.max_shape.assign(info.max_shape, info.max_shape + info.n_dims);
    if (info.chunk_shape != nullptr) {
      copied.chunk_shape.assign(info.chunk_shape, info.chunk_shape + info.n_dims);
    }
    if (info.has_fill_value != 0) copied.fill_value = info.fill_value;
    return copied;
  }
  /// Find the number of the dataset with this path. Not collective. Errors: not_found.
  std::size_t find(const std::string& path) const {
    std::size_t number = 0;
    check(tailrace_reader_find(reader_.get(), path.c_str(), &number));
    return number;
  }

  /// Read and share the chunk addresses of these datasets; see tailrace_reader_open_index.
  /// Collective.
  void open_index(std::span<const std::size_t> datasets) {
    check(tailrace_reader_open_index(reader_.get(), datasets.size(), datasets.data()));
  }

  /// Read a slab into existing memory, dense and row-major. T must be the dataset's type, or
  /// std::byte. Not collective.
  template <class T>
  void read(const std::string& path, const Selection& slab, std::span<T> values) {
    read_bytes<T>(find(path), slab, values.data(), values.size_bytes());
  }
  /// Read a slab, or the complete dataset, into a new vector. Not collective.
  template <class T>
  std::vector<T> read(const std::string& path, const Selection& slab) {
    std::vector<T> values(slab.n_elements());
    read_bytes<T>(find(path), slab, values.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  std::vector<T> read(const std::string& path) {
    return read<T>(path, dataset(find(path)).whole());
  }

  /// Read one slab of one dataset on every rank; a slab may be empty. If one rank's request is
  /// invalid, all ranks throw its error. Collective.
  template <class T>
  void read_all(const std::string& path, const Selection& slab, std::span<T> values) {
    tailrace_read_request request{0,
                                  slab.start.data(),
                                  slab.count.data(),
                                  stride_of(slab),
                                  values.data(),
                                  values.size_bytes()};
    try {
      request.dataset = find(path);
      check_type<T>(request.dataset);
      check_dims(request.dataset, slab);
    } catch (const Error& error) {  // Release the other ranks, which wait in read_all.
      check(tailrace_reader_fail_read_all(reader_.get(), error.code(), error.what()));
      throw;
    }
    check(tailrace_reader_read_all(reader_.get(), 1, &request));
  }
  /// Read any number of slabs; see tailrace_reader_read_all. Collective.
  void read_all(std::span<const tailrace_read_request> requests) {
    check(tailrace_reader_read_all(reader_.get(), requests.size(), requests.data()));
  }

  /// List the file again after it has changed. Collective.
  void refresh() { check(tailrace_reader_refresh(reader_.get())); }
  /// Return the counters of this rank. Not collective.
  tailrace_read_report report() const {
    tailrace_read_report report;
    check(tailrace_reader_report(reader_.get(), &report));
    return report;
  }
  /// Close the file. Collective. The Reader cannot be used afterwards.
  void close() { check(tailrace_reader_close(reader_.release())); }

 private:
  struct Abandon {
    void operator()(tailrace_reader* reader) const { tailrace_reader_abandon(reader); }
  };

  explicit Reader(tailrace_reader* reader) : reader_(reader) {}

  static const std::uint64_t* stride_of(const Selection& slab) {
    return slab.stride.empty() ? nullptr : slab.stride.data();
  }
  template <class T>
  void check_type(std::size_t number) const {
    if constexpr (!std::is_same_v<T, std::byte>) {
      tailrace_dataset_info info;
      check(tailrace_reader_dataset(reader_.get(), number, &info));
      if (info.is_number == 0 || info.dtype != dtype_of<T>()) {
        throw Error(TAILRACE_ERROR_INVALID_ARGUMENT, std::string("dataset \"") + info.path +
                                                         "\" is " + info.type_text +
                                                         ", not of the type asked for");
      }
    }
  }
  void check_dims(std::size_t number, const Selection& slab) const {
    tailrace_dataset_info info;
    check(tailrace_reader_dataset(reader_.get(), number, &info));
    if (slab.start.size() == info.n_dims && slab.count.size() == info.n_dims &&
        (slab.stride.empty() || slab.stride.size() == info.n_dims)) {
      return;
    }
    throw Error(TAILRACE_ERROR_INVALID_ARGUMENT,
                std::string("dataset \"") + info.path + "\": the slab has " +
                    std::to_string(slab.start.size()) + " starts, " +
                    std::to_string(slab.count.size()) + " counts and " +
                    std::to_string(slab.stride.size()) + " strides; the dataset has " +
                    std::to_string(info.n_dims) + " dimensions");
  }
  template <class T>
  void read_bytes(std::size_t number, const Selection& slab, T* values, std::size_t n_bytes) {
    check_type<T>(number);
    check_dims(number, slab);
    check(tailrace_reader_read(reader_.get(), number, slab.start.data(), slab.count.data(),
                               stride_of(slab), values, n_bytes));
  }

  std::unique_ptr<tailrace_reader, Abandon> reader_;
};

}  // namespace api
}  // namespace tailrace

#endif
