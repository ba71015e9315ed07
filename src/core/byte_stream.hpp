// ByteWriter and ByteReader: numbers, boxes, slabs, texts and statuses in messages between ranks.
//
// Native byte order and widths: these bytes never leave the job. Reading past the end is a
// programmer error, since both sides are the same code. A wary reader instead records the error and
// returns zeros from then on; its user reports the damage.

#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

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
    add_bytes(std::as_bytes(std::span(text)));
  }
  void add_status(const Status& status) {
    add(status.code());
    add_text(status.message());
  }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Append `n_bytes`, to be filled by the caller before the next add.
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
  enum class Trust : std::uint8_t { ours, wary };

  explicit ByteReader(std::span<const std::byte> bytes, Trust trust = Trust::ours)
      : rest_(bytes), trust_(trust) {}

  bool at_end() const { return rest_.empty(); }
  /// Wary reader: true if all reads so far were inside the bytes. Once false, all reads are zero or
  /// empty.
  bool good() const { return good_; }
  /// Wary reader: mark the message as damaged, because its values cannot be valid.
  void refuse() {
    TAILRACE_CHECK(trust_ == Trust::wary);
    good_ = false;
    rest_ = {};
  }
  /// Return the bytes that have not been read yet.
  std::span<const std::byte> rest() const { return rest_; }
  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const std::span<const std::byte> bytes = take_bytes(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  /// Return true if `n_entries` of at least `entry_bytes` each can follow.
  bool has(std::uint64_t n_entries, std::size_t entry_bytes) const {
    return n_entries <= rest_.size() / entry_bytes;
  }
  /// Read the number of entries of at least `entry_bytes` each, and check that they can follow.
  std::size_t take_count(std::size_t entry_bytes) {
    const auto count = take<std::uint32_t>();
    if (!has(count, entry_bytes)) refuse();
    return good_ ? count : 0;
  }
  template <class T>
  std::vector<T> take_numbers() {
    std::vector<T> numbers(take_count(sizeof(T)));
    for (T& number : numbers) number = take<T>();
    return numbers;
  }
  Shape take_shape() { return take_numbers<std::uint64_t>(); }
  Slab take_slab() {
    Slab slab;
    slab.start = take_shape();
    slab.count = take_shape();
    slab.stride = take_shape();
    return slab;
  }
  std::string take_text() {
    const std::span<const std::byte> text = take_bytes(take<std::uint64_t>());
    return std::string(reinterpret_cast<const char*>(text.data()), text.size());
  }
  Status take_status() {
    const auto code = take<Code>();
    std::string message = take_text();
    return code == Code::ok ? Status() : Status::of_lines(code, std::move(message));
  }
  std::span<const std::byte> take_bytes(std::uint64_t n_bytes) {
    if (n_bytes > rest_.size()) refuse();
    if (!good_) return {};
    const std::span<const std::byte> taken = rest_.first(n_bytes);
    rest_ = rest_.subspan(n_bytes);
    return taken;
  }
  std::span<const std::byte> take_rest() { return take_bytes(rest_.size()); }

 private:
  std::span<const std::byte> rest_;
  Trust trust_;
  bool good_ = true;
};

/// Make the Status for a message that a wary reader found damaged.
inline Status damaged_message(std::string_view what, const Message& message) {
  return Status(Code::internal, std::string(what) + " from rank " + std::to_string(message.peer) +
                                    ": the message of " + std::to_string(message.payload.size()) +
                                    " bytes is damaged");
}

}  // namespace tailrace
