// ByteWriter and ByteReader: numbers, boxes, slabs and texts packed into messages between ranks.
//
// Native byte order and widths: these bytes never leave the job. A reader that runs past the end is
// a programmer error, since both sides are the same code.

#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/box.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"

namespace tailrace {

class ByteWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  void add(const Shape& shape) {
    add(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t extent : shape) add(extent);
  }
  void add(const Box& box) {
    add(box.start);
    add(box.count);
  }
  void add(const Slab& slab) {
    add(slab.start);
    add(slab.count);
    add(slab.stride);
  }
  void add_text(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  /// Room for `n_bytes` at the end, to be filled by the caller before the next add.
  std::byte* extend(std::size_t n_bytes) {
    bytes_.resize(bytes_.size() + n_bytes);
    return bytes_.data() + bytes_.size() - n_bytes;
  }
  bool empty() const { return bytes_.empty(); }
  Bytes take() { return std::move(bytes_); }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  Shape take_shape() {
    Shape shape(take<std::uint32_t>());
    for (std::uint64_t& extent : shape) extent = take<std::uint64_t>();
    return shape;
  }
  Box take_box() {
    Box box;
    box.start = take_shape();
    box.count = take_shape();
    return box;
  }
  Slab take_slab() {
    Slab slab;
    slab.start = take_shape();
    slab.count = take_shape();
    slab.stride = take_shape();
    return slab;
  }
  std::string take_text() {
    const auto n_bytes = static_cast<std::size_t>(take<std::uint64_t>());
    const std::span<const std::byte> text = take_bytes(n_bytes);
    return std::string(reinterpret_cast<const char*>(text.data()), n_bytes);
  }
  std::span<const std::byte> take_bytes(std::size_t n_bytes) {
    TAILRACE_CHECK(n_bytes <= rest_.size());
    const std::span<const std::byte> taken = rest_.first(n_bytes);
    rest_ = rest_.subspan(n_bytes);
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace tailrace
