// C and C++ library functions that the module needs and h5wasm does not export.
//
// A side module has no C++ library. The functions that h5wasm's main module exports from one are
// neither documented nor from the same compiler version. Memory comes from h5wasm's malloc(). A C++
// exception, such as failing to allocate a few bytes, would trap: JavaScript catches it as a
// WebAssembly.RuntimeError. The codec itself reports errors as values.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" {
int posix_memalign(void** block, std::size_t alignment, std::size_t n_bytes);

void abort() { __builtin_trap(); }

void* aligned_alloc(std::size_t alignment, std::size_t n_bytes) {
  void* block = nullptr;
  return posix_memalign(&block, alignment, n_bytes) == 0 ? block : nullptr;
}

__attribute__((no_builtin("memcmp"))) int memcmp(const void* left, const void* right,
                                                 std::size_t n_bytes) {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (std::size_t i = 0; i < n_bytes; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

void __cxa_pure_virtual() { __builtin_trap(); }

/// Ignore destructors of thread-local objects, which exist as long as the module.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }

/// Multiply 128-bit numbers, given as low and high halves; the compiler calls it. @param product
/// two halves.
void __multi3(std::uint64_t* product, std::uint64_t a, std::uint64_t a_high, std::uint64_t b,
              std::uint64_t b_high) {
  const std::uint64_t a0 = a & UINT32_MAX;
  const std::uint64_t a1 = a >> 32;
  const std::uint64_t b0 = b & UINT32_MAX;
  const std::uint64_t b1 = b >> 32;
  const std::uint64_t low = a0 * b0;
  const std::uint64_t middle = a1 * b0 + (low >> 32);
  const std::uint64_t other = a0 * b1 + (middle & UINT32_MAX);
  product[0] = other << 32 | (low & UINT32_MAX);
  product[1] = a1 * b1 + (middle >> 32) + (other >> 32) + a * b_high + a_high * b;
}

/// Compute CRC-32 (zlib's polynomial), eight bytes a step.
std::uint32_t libdeflate_crc32(std::uint32_t crc, const void* buffer, std::size_t n_bytes);
}

namespace {

/// Computed at the first call: as constants they would add 8 kB to the module.
struct CrcTables {
  std::uint32_t after[8][256];  // [k]: a byte that is followed by k zero bytes.

  CrcTables() {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
      after[0][byte] = crc;
    }
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      for (int k = 1; k < 8; ++k) {
        after[k][byte] = after[k - 1][byte] >> 8 ^ after[0][after[k - 1][byte] & 0xFFU];
      }
    }
  }
};

template <class Number>
std::string digits_of(Number value, bool negative) {
  char digits[24];
  char* first = digits + sizeof digits;
  do {
    *--first = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  if (negative) *--first = '-';
  return {first, static_cast<std::size_t>(digits + sizeof digits - first)};
}

}  // namespace

std::uint32_t libdeflate_crc32(std::uint32_t crc, const void* buffer, std::size_t n_bytes) {
  static const CrcTables tables;
  const auto* bytes = static_cast<const unsigned char*>(buffer);
  crc = ~crc;
  for (; n_bytes >= 8; n_bytes -= 8, bytes += 8) {
    std::uint32_t next = 0;
    for (int k = 0; k < 4; ++k) next ^= tables.after[7 - k][bytes[k] ^ (crc >> (8 * k) & 0xFFU)];
    for (int k = 4; k < 8; ++k) next ^= tables.after[7 - k][bytes[k]];
    crc = next;
  }
  for (; n_bytes > 0; --n_bytes) crc = crc >> 8 ^ tables.after[0][(crc ^ *bytes++) & 0xFFU];
  return ~crc;
}

void* operator new(std::size_t n_bytes) {
  void* block = std::malloc(n_bytes > 0 ? n_bytes : 1);
  if (block == nullptr) abort();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

_LIBCPP_BEGIN_NAMESPACE_STD
string to_string(int value) {
  const auto magnitude = static_cast<unsigned>(value);
  return digits_of(value < 0 ? 0U - magnitude : magnitude, value < 0);
}
string to_string(unsigned value) { return digits_of(value, false); }
string to_string(unsigned long value) { return digits_of(value, false); }
string to_string(unsigned long long value) { return digits_of(value, false); }
_LIBCPP_END_NAMESPACE_STD
