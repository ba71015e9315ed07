// Swaps the bytes of elements, one word at a time.

#include "core/byte_order.hpp"

#include <cstdint>
#include <cstring>

namespace tailrace {
namespace {

template <class Word>
void swap_words(std::span<std::byte> values) {
  for (std::size_t at = 0; at + sizeof(Word) <= values.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, values.data() + at, sizeof(Word));
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(values.data() + at, &word, sizeof(Word));
  }
}

}  // namespace

void swap_elements(std::span<std::byte> values, std::size_t element_bytes) {
  if (element_bytes == 2) swap_words<std::uint16_t>(values);
  if (element_bytes == 4) swap_words<std::uint32_t>(values);
  if (element_bytes == 8) swap_words<std::uint64_t>(values);
}

}  // namespace tailrace
