// Helpers of the fuzzers of files: a file in memory, and the boxes that are read.

#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "describe/input_file.hpp"
#include "fuzz/fuzz_support.hpp"
#include "trz/base/box.hpp"

namespace tailrace::fuzz {

inline constexpr std::uint64_t kFieldsMax = 16;
inline constexpr std::uint64_t kExtentMax = 16;  ///< Largest extent of the boxes that are read.

/// This process's folder on a file system in memory; scripts/fuzz removes it.
inline const std::string& folder() {
  static const std::string name = [] {
    const char* whose = std::getenv("TAILRACE_FUZZ_FOLDER");  // Set by scripts/fuzz.
    std::string text = "/dev/shm/tailrace-fuzz-" + std::string(whose == nullptr ? "" : whose);
    text += "-XXXXXX";
    FUZZ_CHECK(::mkdtemp(text.data()) != nullptr);
    return text;
  }();
  return name;
}

/// A file in that folder that stays open, because creating a file costs more than parsing a header.
class FileInMemory {
 public:
  explicit FileInMemory(const std::string& name)
      : path_(folder() + "/" + name),
        descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    FUZZ_CHECK(descriptor_ >= 0);
  }
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;
  ~FileInMemory() { ::close(descriptor_); }

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  void write(std::span<const std::uint8_t> bytes) {
    FUZZ_CHECK(::pwrite(descriptor_, bytes.data(), bytes.size(), 0) ==
               static_cast<ssize_t>(bytes.size()));
    if (bytes.size() != n_bytes_) {
      FUZZ_CHECK(::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) == 0);
    }
    n_bytes_ = bytes.size();
  }

 private:
  std::string path_;
  int descriptor_;
  std::size_t n_bytes_ = 0;
};

/// The first and the last values of a shape.
inline std::array<Box, 2> corners(const Shape& shape) {
  std::array<Box, 2> boxes{whole_box(shape), whole_box(shape)};
  std::uint64_t n_left = 65536;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::uint64_t n = std::min({shape[d], kExtentMax, n_left});
    n_left = std::max<std::uint64_t>(n_left / std::max<std::uint64_t>(n, 1), 1);
    boxes[0].count[d] = boxes[1].count[d] = n;
    boxes[1].start[d] = shape[d] - n;
  }
  return boxes;
}

inline void read_fields(InputFile& input) {
  for (std::size_t f = 0; f < std::min<std::size_t>(input.fields().size(), kFieldsMax); ++f) {
    const StoredDataset& field = input.fields()[f];
    for (const Box& box : corners(field.shape)) {
      std::vector<std::byte> values(box.n_elements() * field.value_bytes());
      (void)input.read(f, box, values);
    }
  }
}

}  // namespace tailrace::fuzz
