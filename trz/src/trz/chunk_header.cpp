// The head of a trz chunk: extents, magic, checksum.

#include "trz/chunk_header.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

namespace tailrace::trz {
namespace {

constexpr std::uint8_t kMagic[3] = {'T', 'R', 'Z'};

std::uint32_t checksum_of(std::span<const std::uint8_t> chunk) {
  const std::span<const std::uint8_t> covered = chunk.subspan(kChecksummedFrom);
  return libdeflate_crc32(0, covered.data(), covered.size());
}

}  // namespace

Extents extents_of(const Shape& shape, int dimensions) {
  const std::size_t n_kept = dimensions == 0 ? 4 : static_cast<std::size_t>(dimensions);
  Extents extents{1, 1, 1, 1};
  std::size_t at = 4;
  for (auto axis = shape.rbegin(); axis != shape.rend(); ++axis) {
    if (*axis == 1) continue;
    if (at > 4 - n_kept) {
      extents[--at] = static_cast<std::size_t>(*axis);
    } else {
      extents[at] *= static_cast<std::size_t>(*axis);
    }
  }
  return extents;
}

void write_head(const ChunkHead& head, ChunkWriter& out) {
  out.bytes(kMagic, sizeof kMagic);
  out.number(kFormatVersion);
  out.number(std::uint32_t{0});
  out.number(static_cast<std::uint8_t>(static_cast<unsigned>(head.dtype) |
                                       static_cast<unsigned>(head.method) << 4));
  if (head.n_values == 0) {
    out.number(std::uint8_t{1});
    out.varint(0);
    return;
  }
  const auto first = std::find_if(head.extents.begin(), head.extents.end(),
                                  [](std::size_t extent) { return extent != 1; });
  out.number(static_cast<std::uint8_t>(head.extents.end() - first));
  for (auto extent = first; extent != head.extents.end(); ++extent) out.varint(*extent);
}

void seal(std::span<std::uint8_t> chunk) {
  const std::uint32_t checksum = checksum_of(chunk);
  std::memcpy(chunk.data() + kChecksumAt, &checksum, sizeof checksum);
}

namespace {

/// Read everything before the checksummed part.
HeadFailure read_opening(ChunkReader& in) {
  const std::uint8_t* opening = in.take(kChecksummedFrom);
  if (opening == nullptr || std::memcmp(opening, kMagic, sizeof kMagic) != 0) {
    return HeadFailure::no_trz;
  }
  return opening[kVersionAt] == kFormatVersion ? HeadFailure::none : HeadFailure::version;
}

}  // namespace

HeadFailure read_head(std::span<const std::uint8_t> chunk, ChunkReader& in, ChunkHead& head) {
  const HeadFailure failure = read_opening(in);
  if (failure != HeadFailure::none) return failure;
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, chunk.data() + kChecksumAt, sizeof checksum);
  return checksum == checksum_of(chunk) ? read_bare_head(in, head) : HeadFailure::checksum;
}

HeadFailure read_head_alone(ChunkReader& in, ChunkHead& head) {
  const HeadFailure failure = read_opening(in);
  return failure == HeadFailure::none ? read_bare_head(in, head) : failure;
}

HeadFailure read_bare_head(ChunkReader& in, ChunkHead& head) {
  const auto kinds = in.number<std::uint8_t>();
  const auto n_extents = in.number<std::uint8_t>();
  if (in.failed()) return HeadFailure::content;
  if ((n_extents & kFeatureBits) != 0) return HeadFailure::features;
  if ((kinds >> 4) >= kMethods) return HeadFailure::method;
  if ((kinds & 0x0F) > static_cast<unsigned>(DType::u64)) return HeadFailure::dtype;
  if (n_extents > 4) return HeadFailure::content;
  head.dtype = static_cast<DType>(kinds & 0x0F);
  head.method = static_cast<Method>(kinds >> 4);
  head.extents = {1, 1, 1, 1};
  std::uint64_t n_values = 1;
  for (std::size_t axis = 4U - n_extents; axis < 4; ++axis) {
    const std::uint64_t extent = in.varint();
    const bool none = extent == 0 && n_extents == 1;
    if (extent == 1 || (extent == 0 && !none) || extent > kChunkValuesMax / n_values) {
      return HeadFailure::content;
    }
    head.extents[axis] = static_cast<std::size_t>(extent);
    n_values *= extent;
    if (none) break;
  }
  head.n_values = static_cast<std::size_t>(n_values);
  return in.failed() ? HeadFailure::content : HeadFailure::none;
}

}  // namespace tailrace::trz
