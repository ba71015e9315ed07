// InputBytes: positioned, bounds-checked reads of one input file; StridedArray: an array inside it.
//
// The formats that we parse by ourselves (netCDF classic, .npy, raw) store their arrays as plain
// values at computed places. One function reads a box of such an array with few large reads,
// whether rows are dense or interleaved with other variables' records, and turns the bytes to
// native order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A number that changes when a file is written, replaced or given other times: of its length and
/// of the times of its last modification and last change of status, of which nobody can choose the
/// second. 0: there is no such file. Not collective.
std::uint64_t file_version(const std::string& path);

class InputBytes {
 public:
  /// Open for reading. Not collective. @error not_found, io_error (unreadable),
  /// invalid_argument (a directory or another thing that is not a file)
  /// @error corrupt  a writer died in the midst of changing it (check_not_half_committed).
  /// @param own_output  the caller's job writes the file, and need not wait for itself.
  static Result<std::shared_ptr<InputBytes>> open(const std::string& path, bool own_output = false);
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;
  ~InputBytes();

  const std::string& path() const { return path_; }
  /// Bytes in the file when it was opened.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// As of file_version(), when it was opened.
  std::uint64_t version() const { return version_; }

  /// Fill all of `bytes` from `address`. Thread-safe.
  /// @error corrupt  the file ends before that.  @error io_error
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) const;
  /// Say that all of it will be read from front to back, so that the system reads far ahead.
  void expect_sequential() const;

 private:
  InputBytes(std::string path, int descriptor, std::uint64_t file_bytes, std::uint64_t version)
      : path_(std::move(path)),
        descriptor_(descriptor),
        file_bytes_(file_bytes),
        version_(version) {}

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t version_ = 0;
};

/// An array of plain values inside a file.
struct StridedArray {
  std::uint64_t address = 0;             ///< Byte position of the first value.
  Shape shape;                           ///< Slowest dimension first, as the file stores it.
  std::uint64_t outer_stride_bytes = 0;  ///< Between entries of the first dimension; inner: dense.
  std::size_t element_bytes = 1;         ///< 1, 2, 4 or 8.
  bool swap_bytes = false;               ///< The file's byte order is not this machine's.

  /// Bytes of one entry of the first dimension (of the scalar, for rank 0).
  std::uint64_t entry_bytes() const;
};

/// Read one box, row-major in native order. Not collective. Thread-safe.
/// Memory: 4 MiB of scratch at most. Rows that lie near one another share one read.
/// @error corrupt  the file ends before the box does.  @error io_error  @error invalid_argument
Status read_strided_box(const InputBytes& input, const StridedArray& array, const Box& box,
                        std::span<std::byte> values);

/// a * b, or no value if that overflows 64 bits: for sizes that come from untrusted headers.
bool multiply_checked(std::uint64_t a, std::uint64_t b, std::uint64_t& product);

/// Check that `box` lies in `shape` and `values_bytes` fits it; the message names `what`.
/// @error invalid_argument
Status check_read_request(const std::string& what, const Shape& shape, const Box& box,
                          std::size_t element_bytes, std::size_t values_bytes);

/// Bytes of an HDF5 file behind the end that its superblock states. HDF5 ignores them.
struct BytesBehindEnd {
  std::uint64_t end = 0;  ///< Of HDF5's part of the file.
  std::uint64_t n_bytes = 0;

  /// "12 bytes from byte 2048 on lie behind the end of the HDF5 file".
  std::string text() const;
};
/// Not collective. @param user_block_bytes  where the superblock begins
/// @param read_at  as InputBytes::read_at()
/// @error corrupt, unsupported  as parse_superblock(); and what read_at() returns
Result<BytesBehindEnd> bytes_behind_end(
    std::uint64_t file_bytes, std::uint64_t user_block_bytes,
    const std::function<Status(std::uint64_t address, std::span<std::byte> bytes)>& read_at);
/// Read the superblock of an open file. Otherwise as above.
Result<BytesBehindEnd> bytes_behind_end(const InputBytes& bytes, std::uint64_t user_block_bytes);

/// "/" and the file's name without folder and last extension: the field path of .npy and raw files.
std::string field_path_of_file(const std::string& path);

}  // namespace tailrace
