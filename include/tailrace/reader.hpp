// Tailrace for C++17 and newer: reading any HDF5 or netCDF-4 file. The C API of reader.h with RAII,
// types, spans and exceptions.
//
//   tailrace::Reader reader = tailrace::Reader::open("out.h5");
//   std::vector<float> whole = reader.read<float>("/temperature");
//   std::vector<float> part = reader.read<float>("/temperature", {{0, 100}, {512, 10}});
//   reader.read("/temperature", {{0, 100}, {512, 10}, {1, 2}}, buffer);  // every second
//
// A restart on any number of ranks, each with its own part:
//
//   auto reader = tailrace::Reader::open("out.h5", tailrace::mpi(MPI_COMM_WORLD));
//   const tailrace::Step last = reader.step(reader.last_step().value());
//   std::vector<double> rho = last.read_all<double>("/rho", {{first_row, 0}, {n_rows, 1024}});
//   const double time = reader.attribute<double>("/", "time");
//
// Read reader.h first; a comment below says only what C++ adds. Every failure is a tailrace::Error.
// A Reader that is destroyed without close() is abandoned, without the other ranks.

#pragma once

#if __cplusplus < 201703L
#error "reader.hpp needs C++17 (-std=c++17); older C++ may use the C interface, reader.h"
#else

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  /// Select {first, count} in one dimension, as a Box does. A template, so that Selection({}, {})
  /// calls the other constructor: that of a scalar.
  template <class First, class Count,
            Require<std::is_integral_v<First> && std::is_integral_v<Count>> = 0>
  Selection(First first, Count n)
      : start{static_cast<std::uint64_t>(first)}, count{static_cast<std::uint64_t>(n)} {}
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

/// Description of an attribute, as a copy that stays valid; see tailrace_attribute_info.
struct AttributeInfo {
  std::string name;
  std::string type_text;
  std::optional<tailrace_dtype> dtype;  ///< None: not a number.
  bool is_text = false;
  std::size_t n_values = 0;
};

class Reader;

/// One step of a file that is read: an entry of the fields that were written over time. Boxes are
/// those of the field, without time, as in Field::put(). A small value to copy and pass around; it
/// must not outlive its Reader.
class Step {
 public:
  /// Return the step's number, from 0.
  std::uint64_t index() const noexcept { return index_; }

  /// Read a box of the step on every rank, dense and row-major; a box may be empty. If one rank's
  /// request is invalid, all ranks throw its error. Collective. Errors: see
  /// tailrace_reader_read_step.
  template <class T>
  void read_all(const std::string& path, const Box& box, Span<T> values) const;
  template <class T>
  void read_all(const std::string& path, const Box& box, std::vector<T>& values) const {
    read_all(path, box, Span<T>(values));
  }
  template <class T>
  std::vector<T> read_all(const std::string& path, const Box& box) const;
  /// Read a box of the step into a view: the inverse of Field::put() of that view. Collective.
  ///   step.read_all("/u", box, tailrace::view(u, {ny + 2, nx + 2}).interior(1));
  template <class T, Require<!std::is_const_v<T>> = 0>
  void read_all(const std::string& path, const Box& box, const View<T>& values) const;

  /// Read a box of the step, or the complete step of a field, into a new vector. Not collective.
  template <class T>
  std::vector<T> read(const std::string& path, const Box& box) const;
  template <class T>
  std::vector<T> read(const std::string& path) const;

 private:
  friend class Reader;
  friend class Steps;
  Step(Reader* reader, std::uint64_t index) : reader_(reader), index_(index) {}
  Selection slab_of(const Box& box) const {
    Selection slab{Shape{index_}, Shape{1}};
    slab.start.insert(slab.start.end(), box.start.begin(), box.start.end());
    slab.count.insert(slab.count.end(), box.count.begin(), box.count.end());
    return slab;
  }

  Reader* reader_;
  std::uint64_t index_;
};

/// The committed steps of a file, in their order, for a range-based for.
class Steps {
 public:
  class Iterator {
   public:
    Step operator*() const { return Step(reader_, index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    friend class Steps;
    Iterator(Reader* reader, std::uint64_t index) : reader_(reader), index_(index) {}
    Reader* reader_;
    std::uint64_t index_;
  };

  std::size_t size() const noexcept { return n_; }
  bool empty() const noexcept { return n_ == 0; }
  Iterator begin() const { return {reader_, 0}; }
  Iterator end() const { return {reader_, n_}; }

 private:
  friend class Reader;
  Steps(Reader* reader, std::uint64_t n) : reader_(reader), n_(n) {}

  Reader* reader_;
  std::uint64_t n_;
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

  /// Return the paths of all datasets, in the file's order. Not collective.
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < n_datasets(); ++i) all.push_back(dataset(i).path);
    return all;
  }

  /// List the attributes of "/", a group or a dataset, in the file's order. Not collective. Errors:
  /// not_found, unsupported.
  std::vector<AttributeInfo> attributes(const std::string& object_path) const {
    std::size_t n = 0;
    check(tailrace_reader_n_attributes(reader_.get(), object_path.c_str(), &n));
    std::vector<AttributeInfo> all;
    for (std::size_t i = 0; i < n; ++i) {
      tailrace_attribute_info info;
      check(tailrace_reader_attribute(reader_.get(), object_path.c_str(), i, &info));
      AttributeInfo copied{info.name, info.type_text, {}, info.texts != nullptr, info.n_values};
      if (info.is_number != 0) copied.dtype = info.dtype;
      all.push_back(std::move(copied));
    }
    return all;
  }
  /// Return an attribute as a number, a std::string, or a std::vector of one of these. Numbers are
  /// converted; the type must hold an integer exactly, and floating-point numbers are rounded. A
  /// single number or string needs an attribute of one value. Not collective. Errors: not_found,
  /// invalid_argument (type, number of values, a value that T cannot hold).
  template <class T>
  T attribute(const std::string& object_path, const std::string& name) const {
    tailrace_attribute_info info;
    check(tailrace_reader_find_attribute(reader_.get(), object_path.c_str(), name.c_str(), &info));
    const auto refuse = [&](const std::string& why) {
      throw Error(TAILRACE_ERROR_INVALID_ARGUMENT,
                  "attribute \"" + name + "\" of \"" + object_path + "\": " + why);
    };
    if constexpr (std::is_arithmetic_v<T>) {
      return numbers<T>(object_path, name, 1)[0];
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (info.texts == nullptr || info.n_values != 1) {
        refuse("it is " + std::to_string(info.n_values) + " of " + info.type_text +
               ", not a single text");
      }
      return info.texts[0];
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      if (info.texts == nullptr) refuse(std::string("it is ") + info.type_text + ", not text");
      return {info.texts, info.texts + info.n_values};
    } else {
      return numbers<typename T::value_type>(object_path, name, info.n_values);
    }
  }

  /// Return the last committed step that all fields over time have, counted from 0, from which a
  /// program can continue; nothing if no step is committed. Not collective.
  std::optional<std::uint64_t> last_step() const noexcept {
    const std::int64_t last = tailrace_reader_last_step(reader_.get());
    return last < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(last));
  }
  /// Return the committed steps that all fields over time have. Not collective.
  ///   for (const tailrace::Step step : reader.steps()) use(step.read<float>("/rho"));
  Steps steps() {
    std::uint64_t n = 0;
    check(tailrace_reader_n_steps(reader_.get(), nullptr, &n));
    return {this, n};
  }
  /// Return the steps of one field, which may have more than others. Not collective. Errors:
  /// not_found, invalid_argument (not written over time).
  Steps steps(const std::string& path) {
    std::uint64_t n = 0;
    check(tailrace_reader_n_steps(reader_.get(), path.c_str(), &n));
    return {this, n};
  }
  /// Return a step by its number. Not collective; the calls of the step check that it exists.
  Step step(std::uint64_t index) { return {this, index}; }

  /// Read and share the chunk addresses of these datasets; see tailrace_reader_open_index.
  /// Collective.
  void open_index(Span<const std::size_t> datasets) {
    check(tailrace_reader_open_index(reader_.get(), datasets.size(), datasets.data()));
  }

  /// Read a slab into existing memory, dense and row-major. T must be the dataset's type, or
  /// std::byte. Not collective.
  template <class T>
  void read(const std::string& path, const Selection& slab, Span<T> values) {
    read_bytes<T>(find(path), slab, values.data(), values.size_bytes());
  }
  template <class T>
  void read(const std::string& path, const Selection& slab, std::vector<T>& values) {
    read(path, slab, Span<T>(values));
  }
  /// Read a slab into a view, whose extents are slab.count: a part of an array, in any order. Not
  /// collective.
  template <class T, Require<!std::is_const_v<T>> = 0>
  void read(const std::string& path, const Selection& slab, const View<T>& values) {
    const std::size_t number = find(path);
    check_type<T>(number);
    check_dims(number, slab);
    check_view(path, slab.count, values);
    check(tailrace_reader_read_strided(
        reader_.get(), number, slab.start.data(), slab.count.data(), stride_of(slab),
        values.first(), slab.n_elements() * sizeof(T), values.byte_strides().data()));
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
  void read_all(const std::string& path, const Selection& slab, Span<T> values) {
    request_all<T>(path, slab, values.data(), values.size_bytes(), nullptr, [] {});
  }
  /// Read one slab on every rank into a view, whose extents are slab.count. Collective.
  template <class T, Require<!std::is_const_v<T>> = 0>
  void read_all(const std::string& path, const Selection& slab, const View<T>& values) {
    const std::vector<std::int64_t> strides = values.byte_strides();
    request_all<T>(path, slab, values.first(), slab.n_elements() * sizeof(T), strides.data(),
                   [&] { check_view(path, slab.count, values); });
  }
  template <class T>
  void read_all(const std::string& path, const Selection& slab, std::vector<T>& values) {
    read_all(path, slab, Span<T>(values));
  }
  /// Read any number of slabs; see tailrace_reader_read_all. Collective.
  void read_all(Span<const tailrace_read_request> requests) {
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
  /// Return the C handle, for mixing both APIs; this object owns it.
  tailrace_reader* handle() const { return reader_.get(); }

 private:
  friend class Step;
  struct Abandon {
    void operator()(tailrace_reader* reader) const { tailrace_reader_abandon(reader); }
  };

  explicit Reader(tailrace_reader* reader) : reader_(reader) {}

  template <class T>
  std::vector<T> numbers(const std::string& object_path, const std::string& name,
                         std::size_t n) const {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    using Wide =
        std::conditional_t<std::is_floating_point_v<T>, double,
                           std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
    std::vector<Wide> wide(n == 0 ? 1 : n);
    const char* const path = object_path.c_str();
    if constexpr (std::is_floating_point_v<T>) {
      check(tailrace_attribute_get_f64(reader_.get(), path, name.c_str(), n, wide.data()));
    } else if constexpr (std::is_signed_v<T>) {
      check(tailrace_attribute_get_i64(reader_.get(), path, name.c_str(), n, wide.data()));
    } else {
      check(tailrace_attribute_get_u64(reader_.get(), path, name.c_str(), n, wide.data()));
    }
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<T>(wide[i]);
      if (std::is_integral_v<T> && static_cast<Wide>(values[i]) != wide[i]) {
        throw Error(TAILRACE_ERROR_INVALID_ARGUMENT,
                    "attribute \"" + name + "\" of \"" + object_path + "\": value " +
                        std::to_string(i) + " is " + std::to_string(wide[i]) +
                        ", which the type asked for cannot hold");
      }
    }
    return values;
  }

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
  static void check_view(const std::string& path, const Shape& counts, const View<T>& values) {
    const std::string wrong = values.misfit(counts);
    if (wrong.empty()) return;
    throw Error(TAILRACE_ERROR_INVALID_ARGUMENT, "dataset \"" + path + "\": " + wrong);
  }
  /// @param strides  in bytes; null: dense.   @param check_values  throws if they do not fit.
  template <class T, class CheckValues>
  void request_all(const std::string& path, const Selection& slab, T* values, std::size_t n_bytes,
                   const std::int64_t* strides, const CheckValues& check_values) {
    tailrace_read_request request{
        0, slab.start.data(), slab.count.data(), stride_of(slab), values, n_bytes};
    try {
      request.dataset = find(path);
      check_type<T>(request.dataset);
      check_dims(request.dataset, slab);
      check_values();
    } catch (const Error& error) {  // Release the other ranks, which wait in read_all.
      check(tailrace_reader_fail_read_all(reader_.get(), error.code(), error.what()));
      throw;
    }
    check(tailrace_reader_read_all_strided(reader_.get(), 1, &request, &strides));
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

template <class T>
void Step::read_all(const std::string& path, const Box& box, Span<T> values) const {
  reader_->read_all(path, slab_of(box), values);
}

template <class T, Require<!std::is_const_v<T>>>
void Step::read_all(const std::string& path, const Box& box, const View<T>& values) const {
  std::vector<std::int64_t> strides = values.byte_strides();
  strides.insert(strides.begin(), 0);  // The dataset's first dimension is time.
  reader_->request_all<T>(path, slab_of(box), values.first(), box.n_elements() * sizeof(T),
                          strides.data(), [&] { Reader::check_view(path, box.count, values); });
}

template <class T>
std::vector<T> Step::read_all(const std::string& path, const Box& box) const {
  std::vector<T> values;
  try {
    values.resize(box.n_elements());
  } catch (const std::exception&) {  // Release the other ranks, which wait in read_all.
    check(tailrace_reader_fail_read_all(reader_->reader_.get(), TAILRACE_ERROR_OUT_OF_MEMORY,
                                        "not enough memory for the values of the box"));
  }
  read_all(path, box, Span<T>(values));
  return values;
}

template <class T>
std::vector<T> Step::read(const std::string& path, const Box& box) const {
  return reader_->read<T>(path, slab_of(box));
}

template <class T>
std::vector<T> Step::read(const std::string& path) const {
  Shape shape = reader_->dataset(reader_->find(path)).shape;
  if (!shape.empty()) shape.erase(shape.begin());
  return read<T>(path, Box(Shape(shape.size(), 0), shape));
}

}  // namespace api
}  // namespace tailrace

#endif
