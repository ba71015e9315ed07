// Fuzzer: arbitrary bytes as a chunk of codec xor, and as values to encode.
//
// The input: bits for the type, its length and the operation; the number of values; the chunk.
// Corrects magic, version and checksum first, so that decoding gets past them. Both builds must
// return the same status and the same values, and encoded values must decode unchanged.

#include <libdeflate.h>

#include <cstring>

#include "fuzz/fuzz_support.hpp"
#include "xor/xor_chunk.hpp"

using namespace tailrace;
using neighbour_xor::Build;

namespace {

constexpr Build kBuilds[] = {Build::plain, Build::avx2};

/// Buffer with distinct initial contents per build, so that unwritten bytes differ.
std::span<std::byte> room_of(Build build, std::size_t n_bytes) {
  static fuzz::Room rooms[2];
  const auto index = static_cast<std::size_t>(build);
  return rooms[index].filled(n_bytes, static_cast<unsigned char>(0x5A + index));
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

void check_decode(std::span<const std::byte> chunk, std::size_t n_values_bytes) {
  static fuzz::Count count("decodings");
  std::span<const std::byte> first;
  for (const Build build : kBuilds) {
    if (!neighbour_xor::build_supported(build)) continue;
    std::span<std::byte> values = room_of(build, n_values_bytes);
    if (!neighbour_xor::decode(chunk, values, build).ok()) values = {};
    count.one_more();
    if (build == Build::plain) first = values;
    FUZZ_CHECK(same(values, first));
  }
}

void check_round_trip(std::span<const std::byte> values, std::size_t element_bytes) {
  const neighbour_xor::ChunkType type = {
      .element_bytes = element_bytes, .shape = {values.size() / element_bytes}, .dimension = 0};
  const auto given = values.first(values.size() / element_bytes * element_bytes);
  static fuzz::Room rooms[2];
  std::span<const std::byte> first;
  for (const Build build : kBuilds) {
    if (!neighbour_xor::build_supported(build)) continue;
    fuzz::Room& room = rooms[static_cast<std::size_t>(build)];
    const std::span<std::byte> all = room.bytes(neighbour_xor::encoded_bytes_max(given.size()));
    const Result<std::size_t> n = neighbour_xor::encode(type, given, all, build);
    FUZZ_CHECK(n.ok());
    FUZZ_CHECK(*n <= all.size());
    const std::span<const std::byte> encoded = room.bytes(*n);
    if (build == Build::plain) first = encoded;
    FUZZ_CHECK(same(encoded, first));
    const std::span<std::byte> decoded = room_of(build, given.size());
    FUZZ_CHECK(neighbour_xor::decode(encoded, decoded, build).ok());
    FUZZ_CHECK(same(decoded, given));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 2) return 0;
  const std::size_t element_bytes = std::size_t{1} << (data[0] & 3U);
  // Most runs are short.
  const std::size_t n_values = data[1] * std::size_t{(data[0] & 0x80) != 0 ? 23U : 1U};
  static fuzz::Room room;
  const std::span<std::byte> chunk = room.copy_of({data + 2, n_bytes - 2});
  if ((data[0] & 0x1C) == 0) check_round_trip(chunk, element_bytes);
  if (chunk.size() >= 8) {
    std::memcpy(chunk.data(), "XOR\1", 4);
    const std::uint32_t checksum = libdeflate_crc32(0, chunk.data() + 8, chunk.size() - 8);
    std::memcpy(chunk.data() + 4, &checksum, sizeof checksum);
  }
  check_decode(chunk, n_values * element_bytes);
  return 0;
}
