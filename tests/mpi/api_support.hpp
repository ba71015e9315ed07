// Helpers of the tests of the public API: decompositions, errors, reading with stock HDF5.
//
// The tests include only the public headers. Rank 0 reads every written file back with HDF5's C API
// and its default driver, like any other program.

#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <tailrace/tailrace.hpp>
#include <utility>
#include <vector>

#include "rank_support.hpp"

namespace api_test {

using tailrace::Box;
using tailrace::Shape;

inline bool exists(const std::string& path) { return std::filesystem::exists(path); }

/// Creates a file of all ranks with these options and fsync=off, because fsync would slow down the
/// tests.
inline tailrace::File create(const std::string& path, const std::string& options = {}) {
  return tailrace::File::create(path, tailrace::mpi(MPI_COMM_WORLD), "fsync=off," + options);
}
inline tailrace::File open(const std::string& path, const std::string& options = {}) {
  return tailrace::File::open(path, tailrace::mpi(MPI_COMM_WORLD), "fsync=off," + options);
}

// --- errors -----------------------------------------------------------------------------------

struct Outcome {
  tailrace_error code = TAILRACE_OK;
  std::string text;
};

/// Runs `action` and returns its exception as an Outcome.
template <class Action>
Outcome outcome_of(Action&& action) {
  try {
    action();
  } catch (const tailrace::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

/// Expects `code` on every rank, and one identical text that contains all `parts`.
inline void expect_everywhere(const Outcome& outcome, tailrace_error code,
                              std::initializer_list<const char*> parts = {}) {
  EXPECT_STREQ(tailrace_error_name(outcome.code), tailrace_error_name(code)) << outcome.text;
  EXPECT_EQ(outcome.text, from_root(outcome.text));
  for (const char* part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos)
        << '"' << part << "\" is not in: " << outcome.text;
}

// --- decompositions ---------------------------------------------------------------------------

/// Cuts a shape into n boxes of uneven size, by bisection along the longest side. Deterministic.
inline std::vector<Box> cut(const Shape& shape, int n) {
  if (shape.empty()) return {Box({}, {})};
  std::vector<Box> boxes{Box(Shape(shape.size(), 0), shape)};
  while (static_cast<int>(boxes.size()) < n) {
    const auto largest = std::max_element(boxes.begin(), boxes.end(), [](auto& a, auto& b) {
      return a.n_elements() < b.n_elements();
    });
    const auto side = std::max_element(largest->count.begin(), largest->count.end());
    const auto d = static_cast<std::size_t>(side - largest->count.begin());
    if (*side < 2) break;
    Box rest = *largest;
    const std::uint64_t kept = std::max<std::uint64_t>(1, *side * 3 / 7);
    largest->count[d] = kept;
    rest.start[d] += kept;
    rest.count[d] -= kept;
    boxes.push_back(rest);
  }
  return boxes;
}

/// This rank's boxes if boxes are dealt to the ranks in turn, starting with `first_rank`.
inline std::vector<Box> mine(const std::vector<Box>& boxes, int first_rank = 0) {
  std::vector<Box> dealt;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if ((static_cast<int>(i) + first_rank) % n_ranks() == rank()) dealt.push_back(boxes[i]);
  }
  return dealt;
}

/// A field's value at row-major position `index`: rough, exactly representable in every dtype.
template <class T>
T rough_value(std::uint64_t index, std::uint64_t seed) {
  const std::uint64_t mixed = (index + 1) * 2654435761U + seed * 40503U;
  return static_cast<T>((mixed >> 7) % 120);
}

/// A smooth value, for lossy codecs.
template <class T>
T smooth_value(std::uint64_t index, std::uint64_t seed) {
  const auto x = static_cast<double>(index);
  return static_cast<T>(10 * std::sin(x * 0.011 + static_cast<double>(seed)) + 1e-3 * x);
}

template <class T>
using ValueAt = T (*)(std::uint64_t index, std::uint64_t seed);

/// All values of a shape, in row-major order.
template <class T>
std::vector<T> all_values(const Shape& shape, std::uint64_t seed, ValueAt<T> value_at) {
  std::vector<T> values(Box(Shape(shape.size(), 0), shape).n_elements());
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = value_at(i, seed);
  return values;
}

/// The values of one box, in row-major order.
template <class T>
std::vector<T> box_values(const Shape& shape, const Box& box, std::uint64_t seed,
                          ValueAt<T> value_at) {
  std::vector<T> values(box.n_elements());
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    std::uint64_t rest = i;
    std::uint64_t index = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index += (box.start[d] + rest % box.count[d]) * stride;
      rest /= box.count[d];
      stride *= shape[d];
    }
    values[i] = value_at(index, seed);
  }
  return values;
}

/// Puts boxes of a field as copies, so the caller may free the values.
template <class T>
void put_boxes(const tailrace::Field<T>& field, const std::vector<Box>& boxes, std::uint64_t seed,
               ValueAt<T> value_at) {
  for (const Box& box : boxes) {
    field.put_copy(box, box_values<T>(field.shape(), box, seed, value_at));
  }
}

// --- reading with stock HDF5 ------------------------------------------------------------------

template <class T>
hid_t native_type() {
  switch (tailrace::dtype_of<T>()) {
    case TAILRACE_F32: return H5T_NATIVE_FLOAT;
    case TAILRACE_F64: return H5T_NATIVE_DOUBLE;
    case TAILRACE_I8: return H5T_NATIVE_INT8;
    case TAILRACE_I16: return H5T_NATIVE_INT16;
    case TAILRACE_I32: return H5T_NATIVE_INT32;
    case TAILRACE_I64: return H5T_NATIVE_INT64;
    case TAILRACE_U8: return H5T_NATIVE_UINT8;
    case TAILRACE_U16: return H5T_NATIVE_UINT16;
    case TAILRACE_U32: return H5T_NATIVE_UINT32;
    case TAILRACE_U64: return H5T_NATIVE_UINT64;
  }
  return H5I_INVALID_HID;
}

/// A file opened for reading with HDF5's default driver. Rank 0 only.
class StockFile {
 public:
  explicit StockFile(const std::string& path)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
    EXPECT_GE(file_, 0) << path << " does not open";
  }
  ~StockFile() {
    if (file_ >= 0) H5Fclose(file_);
  }
  StockFile(const StockFile&) = delete;
  StockFile& operator=(const StockFile&) = delete;

  bool has(const std::string& path) const {
    return H5Lexists(file_, path.c_str(), H5P_DEFAULT) > 0;
  }

  Shape shape(const std::string& path) const {
    const hid_t dataset = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
    EXPECT_GE(dataset, 0) << path;
    const hid_t space = H5Dget_space(dataset);
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    H5Sclose(space);
    H5Dclose(dataset);
    return Shape(extents.begin(), extents.end());
  }

  /// All values; the dataset's type in the file must be exactly T.
  template <class T>
  std::vector<T> read(const std::string& path) const {
    const hid_t dataset = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
    EXPECT_GE(dataset, 0) << path;
    const hid_t space = H5Dget_space(dataset);
    const hid_t type = H5Dget_type(dataset);
    EXPECT_GT(H5Tequal(type, native_type<T>()), 0) << path << " has another type";
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    if (!values.empty()) {
      EXPECT_GE(H5Dread(dataset, native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
          << path;
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
    return values;
  }

  bool has_attribute(const std::string& object, const std::string& name) const {
    return H5Aexists_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
  }

  template <class T>
  std::vector<T> numbers(const std::string& object, const std::string& name) const {
    const hid_t attribute =
        H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(attribute, 0) << object << " has no attribute " << name;
    if (attribute < 0) return {};
    const hid_t space = H5Aget_space(attribute);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    EXPECT_GE(H5Aread(attribute, native_type<T>(), values.data()), 0);
    H5Sclose(space);
    H5Aclose(attribute);
    return values;
  }

  std::string text(const std::string& object, const std::string& name) const {
    const hid_t attribute =
        H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(attribute, 0) << object << " has no attribute " << name;
    if (attribute < 0) return {};
    const hid_t type = H5Aget_type(attribute);
    std::string value;
    if (H5Tis_variable_str(type) > 0) {
      char* held = nullptr;
      EXPECT_GE(H5Aread(attribute, type, &held), 0);
      value = held == nullptr ? "" : held;
      H5free_memory(held);
    } else {
      value.resize(H5Tget_size(type));
      EXPECT_GE(H5Aread(attribute, type, value.data()), 0);
      value.resize(std::strlen(value.c_str()));
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
  }

 private:
  hid_t file_;
};

/// Positions at which two lists of equal length differ, as one line for a message; "" if none.
template <class T>
std::string differences(const std::vector<T>& found, const std::vector<T>& expected) {
  if (found.size() != expected.size()) {
    return std::to_string(found.size()) + " values in place of " + std::to_string(expected.size());
  }
  std::size_t n = 0;
  std::string first;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::memcmp(&found[i], &expected[i], sizeof(T)) == 0) continue;
    if (n++ == 0) {
      first = "first at " + std::to_string(i) + ": " + std::to_string(found[i]) + " in place of " +
              std::to_string(expected[i]);
    }
  }
  return n == 0 ? "" : std::to_string(n) + " values differ, " + first;
}

}  // namespace api_test
