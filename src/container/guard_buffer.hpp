// GuardBuffer: memory that stands in for the bytes of a chunk which HDF5 must not see.

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace tailrace {

/// Memory that looks long enough and faults when touched: stands in for a chunk's bytes.
class GuardBuffer {
 public:
  explicit GuardBuffer(std::uint64_t n_bytes) : n_bytes_(std::max<std::uint64_t>(n_bytes, 1)) {
    address_ =
        ::mmap(nullptr, n_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  GuardBuffer(const GuardBuffer&) = delete;
  GuardBuffer& operator=(const GuardBuffer&) = delete;
  ~GuardBuffer() {
    if (valid()) ::munmap(address_, n_bytes_);
  }
  bool valid() const { return address_ != MAP_FAILED; }
  std::uint64_t n_bytes() const { return n_bytes_; }
  const void* data() const { return address_; }

 private:
  std::uint64_t n_bytes_;
  void* address_;
};

}  // namespace tailrace
