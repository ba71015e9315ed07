// FileBytes: the content of a library or program, to be searched for texts.
//
// Header only: the preloaded HDF5 library, which contains no engine, uses it, too.

#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace tailrace {

/// HDF5's own text about its version, in every HDF5 library and every program that links one
/// statically.
inline constexpr std::string_view kHdf5VersionText = "HDF5 library version: ";

/// Maps a regular file; empty if that fails.
class FileBytes {
 public:
  explicit FileBytes(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    struct stat facts {};
    if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      n_bytes_ = static_cast<std::size_t>(facts.st_size);
      void* const mapped = ::mmap(nullptr, n_bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      address_ = mapped == MAP_FAILED ? nullptr : mapped;
    }
    ::close(file);
    if (address_ == nullptr) n_bytes_ = 0;
  }
  ~FileBytes() {
    if (address_ != nullptr) ::munmap(address_, n_bytes_);
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  bool opened() const { return address_ != nullptr; }
  bool contains(std::string_view text) const { return view().find(text) != std::string::npos; }
  /// Digits, dots and dashes after the first `text` that a digit follows: "1.14.4-3"; empty without
  /// a match.
  std::string number_after(std::string_view text) const {
    const std::string_view all = view();
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
      const std::string_view after = all.substr(at + text.size());
      const std::size_t n = std::min(after.find_first_not_of("0123456789.-"), after.size());
      if (n > 0) return std::string(after.substr(0, n));
    }
    return "";
  }

 private:
  std::string_view view() const { return {static_cast<const char*>(address_), n_bytes_}; }

  void* address_ = nullptr;
  std::size_t n_bytes_ = 0;
};

}  // namespace tailrace
