// Buffer: a malloc'ed block of bytes that can change hands with an HDF5 filter callback.
//
// Filter callbacks (H5Z_func_t) free their input and return another malloc'ed block, so chunk data
// on its way through a codec lives in such blocks rather than in a std::vector.

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
  /// Allocate `capacity` bytes, uninitialised. Check data() for nullptr: no exception is thrown.
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

  /// Take over a malloc'ed block of which the first `n_bytes` count.
  static Buffer adopt(void* data, std::size_t capacity, std::size_t n_bytes) {
    Buffer buffer;
    buffer.data_ = data;
    buffer.capacity_ = capacity;
    buffer.n_bytes_ = n_bytes;
    return buffer;
  }
  /// A malloc'ed copy of `bytes`; data() is nullptr if memory is short.
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

  /// Give the block away; the caller frees it with free().
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
