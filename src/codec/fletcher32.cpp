// The sums, a block at a time: within a block the second sum is a weighted sum of the words.

#include "codec/fletcher32.hpp"

#include <algorithm>

namespace tailrace {
namespace {

/// Modulo 65535 without ever making a 0 of what is not 0, as end-around carries do.
std::uint64_t fold(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<std::uint32_t>(bytes[index]);
}

/// The checksum with the bytes of each 16-bit half swapped: that of words of the other byte order.
std::uint32_t swap_halves(std::uint32_t sum) {
  return (sum & 0x00FF00FFU) << 8 | (sum >> 8 & 0x00FF00FFU);
}

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  // Within a block of n words w the first sum grows by the sum of w, the second by n times the
  // first and by the sum of (n - i) w[i]: 1024 words keep that below 2^36.
  constexpr std::size_t words_per_block = 1024;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::size_t at = 0;
  for (std::size_t n_left = bytes.size() / 2; n_left > 0;) {
    const std::size_t n = std::min(n_left, words_per_block);
    std::uint64_t plain = 0;
    std::uint64_t weighted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t word = byte_at(bytes, at + 2 * i) << 8 | byte_at(bytes, at + 2 * i + 1);
      plain += word;
      weighted += (n - i) * word;
    }
    second = fold(second + n * first + weighted);
    first = fold(first + plain);
    at += 2 * n;
    n_left -= n;
  }
  if (bytes.size() % 2 != 0) {
    first = fold(first + (byte_at(bytes, at) << 8));
    second = fold(second + first);
  }
  return static_cast<std::uint32_t>(second << 16 | first);
}

void store_fletcher32(std::uint32_t sum, std::byte* to) {
  for (std::size_t i = 0; i < fletcher32_bytes; ++i) to[i] = std::byte(sum >> 8 * i & 0xFF);
}

bool ends_in_fletcher32(std::span<const std::byte> bytes) {
  if (bytes.size() < fletcher32_bytes) return false;
  const std::size_t n_summed = bytes.size() - fletcher32_bytes;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < fletcher32_bytes; ++i) {
    stored |= byte_at(bytes, n_summed + i) << 8 * i;
  }
  const std::uint32_t sum = fletcher32(bytes.first(n_summed));
  return stored == sum || stored == swap_halves(sum);
}

}  // namespace tailrace
