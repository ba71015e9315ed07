// Joining chunks, and reading their parts.

#include "trz/joined.hpp"

#include <algorithm>
#include <string>

namespace tailrace::trz {
namespace {

constexpr std::size_t kVarintMax = 10;
constexpr std::size_t kHeadMax = 10 + 4 * kVarintMax;

Status no_chunk() {
  return {Code::corrupt,
          "trz: cannot join: the input is not a trz chunk, is damaged, or needs a newer trz"};
}

}  // namespace

bool read_parts(ChunkReader& in, const ChunkHead& joined, JoinedParts& parts) {
  const std::uint64_t n_parts = in.varint();
  if (in.failed() || n_parts < 2 || n_parts > kJoinedPartsMax) return false;
  parts.n = static_cast<std::size_t>(n_parts);
  std::array<std::uint64_t, kJoinedPartsMax> n_bytes{};
  std::uint64_t n_left = joined.n_values;
  for (std::size_t p = 0; p < parts.n; ++p) {
    const std::uint64_t n_values = in.varint();
    n_bytes[p] = in.varint();
    if (in.failed() || n_values == 0 || n_values > n_left) return false;
    parts.parts[p].n_values = static_cast<std::size_t>(n_values);
    n_left -= n_values;
  }
  if (n_left != 0) return false;
  for (std::size_t p = 0; p < parts.n; ++p) {
    if (n_bytes[p] > in.rest().size()) return false;
    const std::uint8_t* const begin = in.take(static_cast<std::size_t>(n_bytes[p]));
    if (begin == nullptr) return false;
    parts.parts[p].chunk = {begin, static_cast<std::size_t>(n_bytes[p])};
  }
  return true;
}

std::size_t joined_bytes_max(std::size_t n_first_bytes, std::size_t n_second_bytes) {
  return n_first_bytes + n_second_bytes + kHeadMax + kVarintMax + kJoinedPartsMax * 2 * kVarintMax;
}

Result<std::size_t> join(std::span<const std::byte> first, std::uint64_t n_first,
                         std::span<const std::byte> second, std::span<std::byte> out) {
  ChunkHead head;
  ChunkReader in(as_uint8(first));
  if (read_head(as_uint8(first), in, head) != HeadFailure::none) return no_chunk();
  JoinedParts parts;
  if (head.method != Method::joined) {
    parts.n = 1;
    parts.parts[0] = {head.n_values, as_uint8(first)};
  } else if (!read_parts(in, head, parts) || !in.at_end()) {
    return no_chunk();
  }
  ChunkHead of_second;
  ChunkReader in_second(as_uint8(second));
  if (read_head(as_uint8(second), in_second, of_second) != HeadFailure::none) return no_chunk();
  const std::size_t n = head.n_values;
  if (of_second.n_values != n || of_second.dtype != head.dtype ||
      of_second.method == Method::joined || n_first == 0 || n_first >= n) {
    return Status(Code::invalid_argument, "trz: cannot join: the chunks do not fit together");
  }
  std::size_t n_left = static_cast<std::size_t>(n_first);
  for (std::size_t p = 0; p < parts.n; ++p) {
    parts.parts[p].n_values = std::min(parts.parts[p].n_values, n_left);
    n_left -= parts.parts[p].n_values;
    if (n_left == 0) parts.n = p + 1;
  }
  if (parts.n == kJoinedPartsMax) {
    return Status(Code::unsupported,
                  "trz: a joined chunk has at most " + std::to_string(kJoinedPartsMax) + " parts");
  }
  parts.parts[parts.n++] = {n - static_cast<std::size_t>(n_first), as_uint8(second)};

  const std::span<std::uint8_t> room(reinterpret_cast<std::uint8_t*>(out.data()), out.size());
  ChunkWriter writer(room);
  of_second.method = Method::joined;
  write_head(of_second, writer);
  writer.varint(parts.n);
  for (const JoinedPart& part : parts.all()) {
    writer.varint(part.n_values);
    writer.varint(part.chunk.size());
  }
  for (const JoinedPart& part : parts.all()) writer.bytes(part.chunk.data(), part.chunk.size());
  if (writer.failed()) {
    return Status(Code::invalid_argument,
                  "trz: the output buffer is too small for the joined chunk");
  }
  seal(room.first(writer.n_written()));
  return writer.n_written();
}

}  // namespace tailrace::trz
