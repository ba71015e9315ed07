// InputBytes: positioned, bounds-checked reads of one input file; StridedArray: an array inside it.
//
// Three formats that we parse ourselves (netCDF classic, .npy, raw) store their arrays as plain
// values at computed positions. One function reads a box of such an array with few large reads and
// converts it to native byte order. Rows may be dense or interleaved with other variables' records.

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

/// Compute a number that changes when a file is written, replaced, or given other timestamps. It
/// combines the file's length, modification time and status change time; a program cannot set the
/// last. 0: the file does not exist. Not collective.
std::uint64_t file_version(const std::string& path);

class InputBytes {
 public:
  /// Open for reading. Not collective.
  /// @error not_found, io_error (unreadable), invalid_argument (a directory or another special
  /// file)
  /// @error corrupt  a writer died while it changed the file (check_not_half_committed).
  /// @param own_output  true: the caller's own job writes the file, so its commit is not waited
  /// for.
  static Result<std::shared_ptr<InputBytes>> open(const std::string& path, bool own_output = false);
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;
  ~InputBytes();

  const std::string& path() const { return path_; }
  /// Size of the file when it was opened.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Value of file_version() when the file was opened.
  std::uint64_t version() const { return version_; }

  /// Fill all of `bytes` from `address`. Thread-safe.
  /// @error corrupt  the file ends before `bytes` is full.  @error io_error
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) const;
  /// Advise the system that the file is read from front to back, so that it reads far ahead.
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
  std::uint64_t outer_stride_bytes = 0;  ///< Distance between entries of the first dimension; inner
                                         ///< dimensions are dense.
  std::size_t element_bytes = 1;         ///< 1, 2, 4 or 8.
  bool swap_bytes = false;               ///< The file's byte order differs from this machine's.

  /// Bytes of one entry of the first dimension (of the scalar, for rank 0).
  std::uint64_t entry_bytes() const;
};

/// Read one box, row-major in native order. Not collective. Thread-safe.
/// Memory: at most 4 MiB of scratch. Rows that lie close together share one read.
/// @error corrupt  the file ends before the box does.  @error io_error  @error invalid_argument
Status read_strided_box(const InputBytes& input, const StridedArray& array, const Box& box,
                        std::span<std::byte> values);

/// Check that `box` lies in `shape` and that `values_bytes` fits the box; the message names `what`.
/// @error invalid_argument
Status check_read_request(const std::string& what, const Shape& shape, const Box& box,
                          std::size_t element_bytes, std::size_t values_bytes);

/// Bytes of an HDF5 file behind the end stated in its superblock. HDF5 ignores them.
struct BytesBehindEnd {
  std::uint64_t end = 0;  ///< End of HDF5's part of the file.
  std::uint64_t n_bytes = 0;

  /// Sentence for the user: "12 bytes from byte 2048 on lie behind the end of the HDF5 file".
  std::string text() const;
};
/// Find the bytes behind the end. Not collective. @param user_block_bytes  address of the
/// superblock
/// @param read_at  reads like InputBytes::read_at()
/// @error corrupt, unsupported  as parse_superblock(); errors of read_at()
Result<BytesBehindEnd> bytes_behind_end(
    std::uint64_t file_bytes, std::uint64_t user_block_bytes,
    const std::function<Status(std::uint64_t address, std::span<std::byte> bytes)>& read_at);
/// Find the bytes behind the end of an open file. The errors are the same.
Result<BytesBehindEnd> bytes_behind_end(const InputBytes& bytes, std::uint64_t user_block_bytes);

/// Field path of .npy and raw files: "/" and the file's name without folder and last extension.
std::string field_path_of_file(const std::string& path);

}  // namespace tailrace
