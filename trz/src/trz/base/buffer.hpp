// Buffer: a malloc'ed block of bytes whose ownership can pass to and from an HDF5 filter callback.
//
// Filter callbacks (H5Z_func_t) free their input and return another malloc'ed block. Codecs
// therefore hold chunk data in malloc'ed blocks instead of a std::vector.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "trz/base/large_block.hpp"

namespace tailrace {

class Buffer {
 public:
  Buffer() = default;
  /// Allocate `capacity` uninitialised bytes. Never throws; on failure data() is nullptr.
  explicit Buffer(std::size_t capacity)
      : data_(allocate_block(capacity)), capacity_(capacity), n_bytes_(capacity) {
    if (data_ == nullptr) capacity_ = n_bytes_ = 0;
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  /// Acquire ownership of a malloc'ed block whose first `n_bytes` bytes are valid.
  static Buffer adopt(void* data, std::size_t capacity, std::size_t n_bytes) {
    Buffer buffer;
    buffer.data_ = data;
    buffer.capacity_ = capacity;
    buffer.n_bytes_ = n_bytes;
    return buffer;
  }
  /// A malloc'ed copy of `bytes`; data() is nullptr if the allocation failed.
  static Buffer copy_of(std::span<const std::byte> bytes) {
    Buffer buffer(bytes.size());
    if (buffer.data_ != nullptr && !bytes.empty()) {
      std::memcpy(buffer.data_, bytes.data(), bytes.size());
    }
    return buffer;
  }

  std::byte* data() { return static_cast<std::byte*>(data_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  bool allocated() const { return data_ != nullptr; }
  std::size_t capacity() const { return capacity_; }
  std::size_t n_bytes() const { return n_bytes_; }
  void set_n_bytes(std::size_t n_bytes) { n_bytes_ = n_bytes; }
  std::span<const std::byte> bytes() const { return {data(), n_bytes_}; }
  std::span<std::byte> bytes() { return {data(), n_bytes_}; }

  /// Release ownership of the block; the caller frees it with free().
  void* release() {
    void* data = std::exchange(data_, nullptr);
    capacity_ = n_bytes_ = 0;
    return data;
  }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(n_bytes_, other.n_bytes_);
  }

 private:
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t n_bytes_ = 0;
};

}  // namespace tailrace
