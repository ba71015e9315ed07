// Client data of the xor filter: words and back.

#include "codec/xor/xor_client_data.hpp"

#include <string>

namespace tailrace::neighbour_xor {
namespace {

constexpr std::uint32_t kLayout = 1;
constexpr std::uint32_t kChunkFollows = 1U << 16;
constexpr std::size_t kBeforeExtents = 2;

Status wrong(const std::string& why) {
  return Status(Code::invalid_argument, "xor: client data: " + why);
}

}  // namespace

std::vector<std::uint32_t> client_words(int dimension) {
  return {kLayout | static_cast<std::uint32_t>(dimension) << 8};
}

std::vector<std::uint32_t> client_words(const ChunkType& chunk) {
  std::vector<std::uint32_t> words = client_words(chunk.dimension);
  words[0] |= kChunkFollows;
  words.push_back(static_cast<std::uint32_t>(chunk.element_bytes));
  for (const std::uint64_t extent : chunk.shape) {
    words.push_back(static_cast<std::uint32_t>(extent));
  }
  return words;
}

Result<ClientData> read_client_words(std::span<const std::uint32_t> words) {
  ClientData data;
  if (words.empty()) return data;
  if ((words[0] & 0xFFU) != kLayout) {
    return wrong("layout " + std::to_string(words[0] & 0xFFU) + ", this is layout 1");
  }
  const std::uint32_t dimension = words[0] >> 8 & 0xFFU;
  if (dimension > 3 || words[0] >> 17 != 0) {
    return wrong("word 0 is " + std::to_string(words[0]) + ", of a dimension 0 to 3");
  }
  data.dimension = static_cast<int>(dimension);
  if ((words[0] & kChunkFollows) == 0) {
    if (words.size() == 1) return data;
    return wrong(std::to_string(words.size()) + " words, 1 is expected");
  }
  if (words.size() < kBeforeExtents || words.size() > kBeforeExtents + max_rank || words[1] == 0) {
    return wrong("the chunk's type and extents are wrong");
  }
  ChunkType chunk;
  chunk.dimension = data.dimension;
  chunk.element_bytes = words[1];
  // The product is checked as it grows: no header makes us believe in a chunk past 2^63 bytes.
  std::uint64_t n_bytes = words[1];
  for (const std::uint32_t extent : words.subspan(kBeforeExtents)) {
    if (extent == 0 || n_bytes > (std::uint64_t{1} << 63) / extent) {
      return wrong("the chunk's extents are wrong");
    }
    n_bytes *= extent;
    chunk.shape.push_back(extent);
  }
  data.chunk = std::move(chunk);
  return data;
}

}  // namespace tailrace::neighbour_xor
