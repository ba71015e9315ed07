// Byte shuffle by perfect interleaving.
//
// A block of sixteen elements of K bytes fills K registers of 16 bytes. A byte's address in the
// block has the bits eeee b..b (element, then byte within it). Interleaving the block's lower and
// upper half byte by byte rotates every address left by one bit. So four rounds turn eeee b..b into
// b..b eeee (the shuffle), and log2(K) rounds turn b..b eeee back (the inverse). One round is K
// unpack instructions. The code uses the compiler's vector types: one source compiles to SSE2, NEON
// and other instruction sets.

#include "trz/base/byte_shuffle.hpp"

#include <array>
#include <cstring>

namespace tailrace {
namespace {

using Vector = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kVectorBytes = sizeof(Vector);

inline Vector load(const std::byte* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(std::byte* to, Vector value) { std::memcpy(to, &value, sizeof value); }

/// The bytes at `places` of the concatenation of `a` and `b`: places from 16 on are in `b`. g++ 11
/// has another builtin for it.
template <int... places>
inline Vector shuffled(Vector a, Vector b) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, places...);
#else
  return __builtin_shuffle(a, b, Vector{places...});
#endif
}

inline Vector interleave_low(Vector a, Vector b) {
  return shuffled<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
}

inline Vector interleave_high(Vector a, Vector b) {
  return shuffled<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b);
}

/// Rotate the byte addresses of a block of K registers left by `n_rounds` bits.
template <std::size_t K, int n_rounds>
inline void rotate_addresses(std::array<Vector, K>& block) {
  for (int round = 0; round < n_rounds; ++round) {
    std::array<Vector, K> next;
    for (std::size_t i = 0; i < K / 2; ++i) {
      next[2 * i] = interleave_low(block[i], block[i + K / 2]);
      next[2 * i + 1] = interleave_high(block[i], block[i + K / 2]);
    }
    block = next;
  }
}

constexpr int log2_of(std::size_t k) { return k == 1 ? 0 : 1 + log2_of(k / 2); }

/// Shuffle all complete blocks of 16 elements. Returns the number of elements shuffled.
template <std::size_t K>
std::size_t shuffle_blocks(const std::byte* from, std::byte* to, std::size_t n_elements) {
  std::size_t element = 0;
  for (; element + kVectorBytes <= n_elements; element += kVectorBytes) {
    std::array<Vector, K> block;
    for (std::size_t k = 0; k < K; ++k) block[k] = load(from + element * K + k * kVectorBytes);
    rotate_addresses<K, 4>(block);
    for (std::size_t k = 0; k < K; ++k) store(to + k * n_elements + element, block[k]);
  }
  return element;
}

template <std::size_t K>
std::size_t unshuffle_blocks(const std::byte* from, std::byte* to, std::size_t n_elements) {
  std::size_t element = 0;
  for (; element + kVectorBytes <= n_elements; element += kVectorBytes) {
    std::array<Vector, K> block;
    for (std::size_t k = 0; k < K; ++k) block[k] = load(from + k * n_elements + element);
    rotate_addresses<K, log2_of(K)>(block);
    for (std::size_t k = 0; k < K; ++k) store(to + element * K + k * kVectorBytes, block[k]);
  }
  return element;
}

/// True if HDF5's shuffle filter would change the order of the bytes.
bool has_planes(std::size_t element_bytes, std::size_t n_bytes) {
  return element_bytes > 1 && n_bytes / element_bytes > 1;
}

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

void shuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                   std::span<std::byte> to) {
  if (!has_planes(element_bytes, from.size())) return copy_bytes(from, to);
  const std::size_t n = from.size() / element_bytes;
  std::size_t done = 0;
  if (element_bytes == 2) done = shuffle_blocks<2>(from.data(), to.data(), n);
  if (element_bytes == 4) done = shuffle_blocks<4>(from.data(), to.data(), n);
  if (element_bytes == 8) done = shuffle_blocks<8>(from.data(), to.data(), n);
  for (std::size_t k = 0; k < element_bytes; ++k) {
    for (std::size_t i = done; i < n; ++i) to[k * n + i] = from[i * element_bytes + k];
  }
  copy_bytes(from.subspan(n * element_bytes), to.subspan(n * element_bytes));
}

void unshuffle_bytes(std::size_t element_bytes, std::span<const std::byte> from,
                     std::span<std::byte> to) {
  if (!has_planes(element_bytes, from.size())) return copy_bytes(from, to);
  const std::size_t n = from.size() / element_bytes;
  std::size_t done = 0;
  if (element_bytes == 2) done = unshuffle_blocks<2>(from.data(), to.data(), n);
  if (element_bytes == 4) done = unshuffle_blocks<4>(from.data(), to.data(), n);
  if (element_bytes == 8) done = unshuffle_blocks<8>(from.data(), to.data(), n);
  for (std::size_t k = 0; k < element_bytes; ++k) {
    for (std::size_t i = done; i < n; ++i) to[i * element_bytes + k] = from[k * n + i];
  }
  copy_bytes(from.subspan(n * element_bytes), to.subspan(n * element_bytes));
}

}  // namespace tailrace
