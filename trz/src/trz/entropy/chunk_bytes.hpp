// ChunkWriter and ChunkReader: write and read the little-endian numbers of a trz chunk, with every
// limit checked.
//
// A writer that runs out of space, or a reader that reaches the end, stays failed: later calls do
// nothing and return zeros. The caller checks failed() once at the end. A corrupt length therefore
// does no harm.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tailrace::trz {

static_assert(std::endian::native == std::endian::little, "trz is written for little-endian hosts");

inline std::span<const std::uint8_t> as_uint8(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

class ChunkWriter {
 public:
  explicit ChunkWriter(std::span<std::uint8_t> room) : room_(room) {}

  template <class Number>
  void number(Number value) {
    bytes(&value, sizeof value);
  }
  void bytes(const void* from, std::size_t n_bytes) {
    std::uint8_t* to = skip(n_bytes);
    if (to != nullptr && n_bytes > 0) std::memcpy(to, from, n_bytes);
  }
  /// Write a varint: seven bits per byte, least significant first; all bytes except the last have
  /// the top bit set.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) number(static_cast<std::uint8_t>(value | 0x80));
    number(static_cast<std::uint8_t>(value));
  }
  /// Reserve n_bytes, which the caller fills; nullptr if they do not fit.
  std::uint8_t* skip(std::size_t n_bytes) {
    if (failed_ || n_bytes > room_.size() - n_written_) {
      failed_ = true;
      return nullptr;
    }
    n_written_ += n_bytes;
    return room_.data() + n_written_ - n_bytes;
  }
  /// The unused part of the output, to be written directly; then call advance().
  std::span<std::uint8_t> rest() const { return room_.subspan(n_written_); }
  void advance(std::size_t n_bytes) { static_cast<void>(skip(n_bytes)); }

  std::size_t n_written() const { return n_written_; }
  bool failed() const { return failed_; }

 private:
  std::span<std::uint8_t> room_;
  std::size_t n_written_ = 0;
  bool failed_ = false;
};

class ChunkReader {
 public:
  explicit ChunkReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    if (const std::uint8_t* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  /// Consume the next n_bytes; nullptr if fewer are left.
  const std::uint8_t* take(std::size_t n_bytes) {
    if (failed_ || n_bytes > rest_.size()) {
      failed_ = true;
      return nullptr;
    }
    const std::uint8_t* from = rest_.data();
    rest_ = rest_.subspan(n_bytes);
    return from;
  }
  std::span<const std::uint8_t> rest() const {
    return failed_ ? std::span<const std::uint8_t>() : rest_;
  }
  bool at_end() const { return !failed_ && rest_.empty(); }
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }

 private:
  std::span<const std::uint8_t> rest_;
  bool failed_ = false;
};

}  // namespace tailrace::trz
