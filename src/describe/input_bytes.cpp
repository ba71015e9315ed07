// Positioned reads, and boxes of strided arrays.

#include "describe/input_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "core/byte_order.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/recover.hpp"
#include "hdf5/superblock.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

/// Scratch for one gathered read. 4 MiB keeps a rotating disk or a network file system near its
/// full bandwidth, and is small compared with any memory cap.
constexpr std::uint64_t kScratchBytes = 4U << 20;

/// A gap that is cheaper to read than to skip: about one read-ahead window of Linux.
constexpr std::uint64_t kGapBytes = 128U << 10;

/// Collects rows that lie close together in the file, and reads each group with one call.
class RowGatherer {
 public:
  RowGatherer(const InputBytes& input, std::uint64_t row_bytes)
      : input_(input), row_bytes_(row_bytes) {}

  /// Add a row; addresses must ascend. `to` receives row_bytes bytes.
  Status add(std::uint64_t address, std::byte* to) {
    if (row_bytes_ >= kScratchBytes) {
      return input_.read_at(address, {to, static_cast<std::size_t>(row_bytes_)});
    }
    const bool near = !rows_.empty() && address - rows_.back().first <= row_bytes_ + kGapBytes &&
                      address + row_bytes_ - rows_.front().first <= kScratchBytes;
    if (!near) TAILRACE_TRY(finish());
    rows_.emplace_back(address, to);
    return Status();
  }

  /// Read the collected rows.
  Status finish() {
    if (rows_.empty()) return Status();
    const std::uint64_t first = rows_.front().first;
    const std::uint64_t span_bytes = rows_.back().first + row_bytes_ - first;
    if (rows_.size() == 1) {
      TAILRACE_TRY(input_.read_at(first, {rows_[0].second, static_cast<std::size_t>(row_bytes_)}));
    } else {
      if (!scratch_.allocated()) scratch_ = Buffer(kScratchBytes);
      if (!scratch_.allocated()) {
        return Status(Code::out_of_memory,
                      "reading " + input_.path() + ": not enough memory for a buffer of 4 MiB");
      }
      TAILRACE_TRY(input_.read_at(first, scratch_.bytes().first(span_bytes)));
      for (const auto& [address, to] : rows_) {
        std::memcpy(to, scratch_.data() + (address - first), row_bytes_);
      }
    }
    rows_.clear();
    return Status();
  }

 private:
  const InputBytes& input_;
  std::uint64_t row_bytes_;
  std::vector<std::pair<std::uint64_t, std::byte*>> rows_;
  Buffer scratch_;
};

std::uint64_t version_of(const struct stat& facts) {
  const std::array<std::uint64_t, 5> identity = {static_cast<std::uint64_t>(facts.st_size),
                                                 static_cast<std::uint64_t>(facts.st_mtim.tv_sec),
                                                 static_cast<std::uint64_t>(facts.st_mtim.tv_nsec),
                                                 static_cast<std::uint64_t>(facts.st_ctim.tv_sec),
                                                 static_cast<std::uint64_t>(facts.st_ctim.tv_nsec)};
  const std::uint32_t low = lookup3(std::as_bytes(std::span(identity)));
  return std::uint64_t{lookup3(std::as_bytes(std::span(identity)), 1)} << 32U | low | 1U;
}

}  // namespace

std::uint64_t file_version(const std::string& path) {
  struct stat facts = {};
  return ::stat(path.c_str(), &facts) == 0 ? version_of(facts) : 0;
}

Result<std::shared_ptr<InputBytes>> InputBytes::open(const std::string& path, bool own_output) {
  if (!own_output) TAILRACE_TRY(check_not_half_committed(path));
  TAILRACE_TAKE(RegularFile opened, open_regular(path, O_RDONLY));
  struct stat facts = {};
  if (::fstat(opened.at.fd(), &facts) != 0) {
    return status_from_errno(errno, "cannot stat " + path);
  }
  return std::shared_ptr<InputBytes>(
      new InputBytes(path, opened.at.release(), opened.n_bytes, version_of(facts)));
}

InputBytes::~InputBytes() { ::close(descriptor_); }

void InputBytes::expect_sequential() const {
  // Advice only: if the system ignores it, reads still work.
  static_cast<void>(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL));
}

Status InputBytes::read_at(std::uint64_t address, std::span<std::byte> bytes) const {
  // Linux transfers at most 2 GiB per call, so large reads need a loop anyway.
  while (!bytes.empty()) {
    const ssize_t n_read =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0) {
      return status_from_errno(errno, "reading " + path_ + " at byte " + std::to_string(address));
    }
    if (n_read == 0) {
      return Status(Code::corrupt, path_ + ": the file ends at byte " + std::to_string(address) +
                                       ", expected " + std::to_string(bytes.size()) +
                                       " more bytes (truncated)");
    }
    address += static_cast<std::uint64_t>(n_read);
    bytes = bytes.subspan(static_cast<std::size_t>(n_read));
  }
  return Status();
}

std::uint64_t StridedArray::entry_bytes() const {
  std::uint64_t n_bytes = element_bytes;
  for (std::size_t d = 1; d < shape.size(); ++d) n_bytes *= shape[d];
  return n_bytes;
}

Status read_strided_box(const InputBytes& input, const StridedArray& array, const Box& box,
                        std::span<std::byte> values) {
  TAILRACE_TRY(
      check_read_request(input.path(), array.shape, box, array.element_bytes, values.size()));
  if (box.empty()) return Status();

  // A row is contiguous: the trailing dimensions that the box covers completely, and one more.
  const std::size_t rank = array.shape.size();
  std::size_t first_row_dimension = rank;
  std::uint64_t row_bytes = array.element_bytes;
  const bool outer_is_dense = rank > 0 && array.outer_stride_bytes == array.entry_bytes();
  while (first_row_dimension > (outer_is_dense || rank == 0 ? 0 : 1)) {
    --first_row_dimension;
    row_bytes *= box.count[first_row_dimension];
    if (box.count[first_row_dimension] != array.shape[first_row_dimension]) break;
  }

  Shape stride_bytes(rank, array.element_bytes);
  for (std::size_t d = rank; d-- > 1;) {
    if (d + 1 < rank) stride_bytes[d] = stride_bytes[d + 1] * array.shape[d + 1];
  }
  if (rank > 0) stride_bytes[0] = array.outer_stride_bytes;

  Box rows = box;
  for (std::size_t d = first_row_dimension; d < rank; ++d) rows.count[d] = 1;
  RowGatherer gatherer(input, row_bytes);
  std::byte* to = values.data();
  Status outcome;
  for_each_position(rows, [&](const Shape& at) {
    if (!outcome.ok()) return;
    std::uint64_t address = array.address;
    for (std::size_t d = 0; d < rank; ++d) address += at[d] * stride_bytes[d];
    outcome = gatherer.add(address, to);
    to += row_bytes;
  });
  TAILRACE_TRY(outcome);
  TAILRACE_TRY(gatherer.finish());
  if (array.swap_bytes) swap_elements(values, array.element_bytes);
  return Status();
}

Status check_read_request(const std::string& what, const Shape& shape, const Box& box,
                          std::size_t element_bytes, std::size_t values_bytes) {
  if (box.start.size() != shape.size() || box.count.size() != shape.size() ||
      !contains(whole_box(shape), box)) {
    return Status(Code::invalid_argument,
                  what + ": box " + box_text(box) + " is outside shape " + shape_text(shape));
  }
  const std::uint64_t expected = box.n_elements() * element_bytes;
  if (values_bytes != expected) {
    return Status(Code::invalid_argument, what + ": box " + box_text(box) + " has " +
                                              std::to_string(expected) + " bytes, the buffer has " +
                                              std::to_string(values_bytes));
  }
  return Status();
}

std::string BytesBehindEnd::text() const {
  return std::to_string(n_bytes) + (n_bytes == 1 ? " byte lies" : " bytes lie") +
         " behind the end of the HDF5 file at byte " + std::to_string(end);
}

Result<BytesBehindEnd> bytes_behind_end(
    std::uint64_t file_bytes, std::uint64_t user_block_bytes,
    const std::function<Status(std::uint64_t address, std::span<std::byte> bytes)>& read_at) {
  std::array<std::byte, kSuperblockBytesMax> buffer{};
  const std::uint64_t n_left = file_bytes - std::min(file_bytes, user_block_bytes);
  const auto bytes = std::span(buffer).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(n_left, buffer.size())));
  TAILRACE_TRY(read_at(user_block_bytes, bytes));
  TAILRACE_TAKE(const Superblock found, parse_superblock(bytes, user_block_bytes));
  BytesBehindEnd behind;
  behind.end = found.end_of_file;
  if (file_bytes > behind.end) behind.n_bytes = file_bytes - behind.end;
  return behind;
}

Result<BytesBehindEnd> bytes_behind_end(const InputBytes& bytes, std::uint64_t user_block_bytes) {
  return bytes_behind_end(
      bytes.file_bytes(), user_block_bytes,
      [&](std::uint64_t address, std::span<std::byte> to) { return bytes.read_at(address, to); });
}

std::string field_path_of_file(const std::string& path) {
  std::string stem = path.substr(path.find_last_of('/') + 1);
  const std::size_t dot = stem.find_last_of('.');
  if (dot != std::string::npos && dot > 0) stem.resize(dot);
  return "/" + (stem.empty() ? std::string("data") : stem);
}

}  // namespace tailrace
