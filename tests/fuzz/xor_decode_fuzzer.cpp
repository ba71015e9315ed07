// Fuzzer: any bytes as a chunk of codec xor, and as values to encode.
//
// Magic, version and checksum are put right first, or nothing would ever get behind them. Both
// builds must come to the same verdict and the same values, and whatever is encoded must return.

#include <libdeflate.h>

#include <cstring>
#include <vector>

#include "codec/xor/xor_chunk.hpp"
#include "fuzz/fuzz_support.hpp"

using namespace tailrace;
using neighbour_xor::Build;

namespace {

constexpr Build kBuilds[] = {Build::plain, Build::avx2};

void check_decode(const std::vector<std::byte>& chunk, std::size_t n_values_bytes) {
  std::vector<std::byte> first;
  for (const Build build : kBuilds) {
    if (!neighbour_xor::build_supported(build)) continue;
    std::vector<std::byte> values(n_values_bytes);
    if (!neighbour_xor::decode(chunk, values, build).ok()) values.clear();
    if (build == Build::plain) first = values;
    FUZZ_CHECK(values == first);
  }
}

void check_round_trip(std::span<const std::byte> values, std::size_t element_bytes) {
  const neighbour_xor::ChunkType type = {
      .element_bytes = element_bytes, .shape = {values.size() / element_bytes}, .dimension = 0};
  const auto given = values.first(values.size() / element_bytes * element_bytes);
  std::vector<std::byte> first;
  for (const Build build : kBuilds) {
    if (!neighbour_xor::build_supported(build)) continue;
    std::vector<std::byte> encoded(neighbour_xor::encoded_bytes_max(given.size()));
    const Result<std::size_t> n = neighbour_xor::encode(type, given, encoded, build);
    FUZZ_CHECK(n.ok());
    encoded.resize(*n);
    if (build == Build::plain) first = encoded;
    FUZZ_CHECK(encoded == first);
    std::vector<std::byte> decoded(given.size());
    FUZZ_CHECK(neighbour_xor::decode(encoded, decoded, build).ok());
    FUZZ_CHECK(std::equal(decoded.begin(), decoded.end(), given.begin()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 2) return 0;
  const std::size_t element_bytes = std::size_t{1} << (data[0] & 3U);
  const std::size_t n_values = data[1] * std::size_t{23};
  const auto* rest = reinterpret_cast<const std::byte*>(data + 2);
  std::vector<std::byte> chunk(rest, rest + n_bytes - 2);
  check_round_trip(chunk, element_bytes);
  if (chunk.size() >= 8) {
    std::memcpy(chunk.data(), "XOR\1", 4);
    const std::uint32_t checksum = libdeflate_crc32(0, chunk.data() + 8, chunk.size() - 8);
    std::memcpy(chunk.data() + 4, &checksum, sizeof checksum);
  }
  check_decode(chunk, n_values * element_bytes);
  return 0;
}
