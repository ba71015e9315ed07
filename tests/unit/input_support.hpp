// Helpers of the tests of input files: files made byte by byte, reading in boxes, and a carry-over
// from an input into an uncompressed output of Tailrace.

#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "container_support.hpp"
#include "read/read.hpp"

namespace tailrace::test {

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A value's bytes, most significant first.
template <class T>
std::string big_endian(T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  std::string text(bytes.begin(), bytes.end());
  if constexpr (std::endian::native == std::endian::little) text.assign(text.rbegin(), text.rend());
  return text;
}

/// A value's bytes, least significant first.
template <class T>
std::string little_endian(T value) {
  const std::string text = big_endian(value);
  return std::string(text.rbegin(), text.rend());
}

/// Opens an input, or fails the test.
inline std::unique_ptr<InputFile> open_or_fail(const std::string& path,
                                               const std::optional<RawFormat>& raw = {},
                                               const ReadOptions& options = {}) {
  Result<std::unique_ptr<InputFile>> input = open_input_file(path, raw, options);
  EXPECT_TRUE(input.ok()) << text_of(input.status());
  return input.ok() ? std::move(input).value() : nullptr;
}

/// Options that allow reading values in other files.
inline ReadOptions with_other_files() {
  ReadOptions options;
  options.follow_external = true;
  return options;
}

/// The status of an attempt to open the file.
inline Status open_status(const std::string& path, const std::optional<RawFormat>& raw = {}) {
  return open_input_file(path, raw).status();
}

/// Position of a field by its path; fails the test if the field does not exist.
std::size_t field_index(const InputFile& input, const std::string& path);

/// One box of a field as numbers.
template <class T>
std::vector<T> read_box(InputFile& input, std::size_t field, const Box& box) {
  EXPECT_EQ(input.fields().at(field).value_bytes(), sizeof(T));
  std::vector<T> values(box.n_elements());
  const Status status = input.read(field, box, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << text_of(status);
  return values;
}

template <class T>
std::vector<T> read_whole(InputFile& input, const std::string& path) {
  const std::size_t field = field_index(input, path);
  return read_box<T>(input, field, whole_box(input.fields().at(field).shape));
}

/// Reads a field in boxes of `box_shape`, in row-major order, and compares each with the complete
/// field.
void expect_boxes_match(InputFile& input, std::size_t field, const Shape& box_shape);

/// Copies an input into a new HDF5 file through Hdf5File with uncompressed fields, like repack.
/// `lines` receives the report of the carry-over.
void carry_over(InputFile& input, const std::string& output_path, std::vector<std::string>& lines);

/// Output of a program; empty if it fails or is not installed.
std::string tool_output(const std::string& command);

}  // namespace tailrace::test
