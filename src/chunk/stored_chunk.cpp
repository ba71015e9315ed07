// Decoding one stored chunk, with the checks of its length.

#include "chunk/stored_chunk.hpp"

#include <string>
#include <utility>

#include "core/byte_order.hpp"

namespace tailrace {

bool is_raw_chunk(std::uint32_t filter_mask, std::size_t n_filters) {
  const std::uint32_t all = n_filters >= 32 ? UINT32_MAX : (1U << n_filters) - 1;
  return (filter_mask & all) == all;
}

Result<Buffer> decode_chunk(const Codec& codec, EncodedBytes encoded, std::uint64_t raw_bytes,
                            std::size_t swapped_bytes) {
  const auto wrong_length = [raw_bytes](const char* verb, std::uint64_t n_bytes) {
    return Status(Code::corrupt,
                  verb + std::to_string(n_bytes) + " bytes, must be " + std::to_string(raw_bytes));
  };
  if (is_raw_chunk(encoded.filter_mask, codec.filters().size())) {
    if (encoded.buffer.n_bytes() != raw_bytes) {
      return wrong_length("has ", encoded.buffer.n_bytes());
    }
    swap_elements(encoded.buffer.bytes(), swapped_bytes);
    return std::move(encoded.buffer);
  }
  Result<Buffer> values = codec.decode(std::move(encoded));
  if (values.ok() && values->n_bytes() != raw_bytes) {
    return wrong_length("decodes to ", values->n_bytes());
  }
  return values;
}

}  // namespace tailrace
