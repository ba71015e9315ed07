// The parts of a stream, in order.

#include "codec/zlib_stream.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "codec/literal_block.hpp"
#include "codec/match_sample.hpp"
#include "trz/base/kept_by_thread.hpp"

namespace tailrace {
namespace {

using Bytes8 = std::span<const std::uint8_t>;

/// End of a searched part that begins at a segment. A part includes short runs of unsearched
/// segments: its end costs time to find (BlockEnds), and matches cannot cross it.
std::size_t end_of_search(const std::vector<bool>& by_search, std::size_t begin) {
  std::size_t end = begin;
  for (;;) {
    while (end < by_search.size() && by_search[end]) ++end;
    std::size_t next = end;
    while (next < by_search.size() && !by_search[next]) ++next;
    if (next == end || next - end >= std::max<std::size_t>(2, (end - begin) / 4)) return end;
    end = next;
  }
}

/// Write segments that are not searched, two in one block if that is shorter. @returns their
/// number.
std::size_t put_literals(Bytes8 segments, BitWriter& out) {
  const LiteralBlock first(segments.first(segment_bytes));
  if (segments.size() >= 2 * segment_bytes) {
    const LiteralBlock second(segments.subspan(segment_bytes, segment_bytes));
    const LiteralBlock both(first, second);
    if (both.encoded_bytes() <= first.encoded_bytes() + second.encoded_bytes()) {
      both.put(out);
      return 2;
    }
  }
  first.put(out);
  return 1;
}

/// Finds the ends of libdeflate's blocks.
class BlockEnds {
 public:
  BlockEnds() = default;
  ~BlockEnds() {
    if (ready_) inflateEnd(&stream_);
  }
  BlockEnds(const BlockEnds&) = delete;
  BlockEnds& operator=(const BlockEnds&) = delete;

  struct Bits {
    std::size_t last_begin = 0;  ///< First bit of the last block.
    std::size_t end = 0;
  };
  /// @returns end 0 if memory is insufficient.
  Bits of(std::span<std::byte> blocks) {
    Bits bits;
    if (!ready_) ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK;  // without zlib's header
    if (!ready_ || inflateReset(&stream_) != Z_OK) return bits;
    const std::size_t most = std::numeric_limits<uInt>::max();
    std::size_t n_left = blocks.size();
    stream_.next_in = reinterpret_cast<Bytef*>(blocks.data());
    stream_.avail_in = 0;
    while (bits.end == 0) {
      if (stream_.avail_in == 0) {
        stream_.avail_in = static_cast<uInt>(std::min(n_left, most));
        n_left -= stream_.avail_in;
      }
      stream_.next_out = values_.data();
      stream_.avail_out = static_cast<uInt>(values_.size());
      if (inflate(&stream_, Z_BLOCK) != Z_OK) return {};
      const auto state = static_cast<unsigned>(stream_.data_type);
      constexpr unsigned unused_bits = 63;  // bits of the last byte read
      constexpr unsigned is_last = 64;
      constexpr unsigned ends_here = 128;
      if ((state & ends_here) == 0) continue;
      const std::size_t n_taken = blocks.size() - n_left - stream_.avail_in;
      ((state & is_last) != 0 ? bits.end : bits.last_begin) = 8 * n_taken - (state & unused_bits);
    }
    return bits;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  std::array<Bytef, 64U << 10> values_{};
};

/// Encode with libdeflate. If `more` follows, clear the mark of the last block. @returns false
/// without enough memory.
bool put_searched(libdeflate_compressor& compressor, std::span<const std::byte> values, bool more,
                  BitWriter& out) {
  if (!out.is_at_byte()) out.put_stored_block({});
  if (out.failed()) return true;
  const std::span<std::byte> room = out.room();
  const std::size_t n = libdeflate_deflate_compress(&compressor, values.data(), values.size(),
                                                    room.data(), room.size());
  if (n == 0) out.fail();
  if (!more) out.skip(8 * n);
  if (n == 0 || !more) return true;
  const BlockEnds::Bits bits = kept_by_thread<BlockEnds>().of(room.first(n));
  if (bits.end == 0) return false;
  room[bits.last_begin / 8] &= ~(std::byte{1} << bits.last_begin % 8);
  out.skip(bits.end);
  return true;
}

/// Segments of the chunk that a thread encodes, cached to reuse the memory.
struct Segments {
  std::vector<bool> by_search;
};

}  // namespace

std::uint64_t zlib_parts_bytes(std::uint64_t n_bytes) {
  constexpr std::uint64_t sample_bytes = 33U << 10;
  constexpr std::uint64_t inflate_bytes = 48U << 10;  // zlib.h: a window, and its state
  return sample_bytes + sizeof(BlockEnds) + inflate_bytes + n_bytes / segment_bytes;
}

std::size_t encode_zlib_stream(libdeflate_compressor& compressor, int level,
                               std::span<const std::byte> values, std::span<std::byte> to) {
  const auto by_libdeflate = [&] {
    return libdeflate_zlib_compress(&compressor, values.data(), values.size(), to.data(),
                                    to.size());
  };
  const bool too_large = values.size() > std::numeric_limits<std::uint32_t>::max();
  if (too_large || values.size() < segment_bytes) return by_libdeflate();
  const Bytes8 bytes(reinterpret_cast<const std::uint8_t*>(values.data()), values.size());
  std::vector<bool>& by_search = kept_by_thread<Segments>().by_search;
  judge_segments(bytes, by_search);
  const std::size_t n_segments = by_search.size();
  if (by_search[0] && end_of_search(by_search, 0) == n_segments) return by_libdeflate();

  constexpr std::size_t n_header = 2;
  constexpr std::size_t n_sum = 4;
  if (to.size() < n_sum) return 0;
  BitWriter out(to.first(to.size() - n_sum));
  if (!out.has_room(n_header)) return 0;
  // Header: a window of 32 KiB, and the encoder's effort.
  const unsigned effort = level < 2 ? 0 : level < 6 ? 1 : level < 8 ? 2 : 3;
  const unsigned first = 0x78;
  unsigned second = effort << 6;
  second += 31 - (first << 8 | second) % 31;
  out.put(first | second << 8, 8 * n_header);
  out.flush();
  for (std::size_t segment = 0; !out.failed();) {
    const std::size_t begin = segment * segment_bytes;
    if (segment < n_segments && !by_search[segment]) {
      const std::size_t n = segment + 1 < n_segments && !by_search[segment + 1] ? 2 : 1;
      segment += put_literals(bytes.subspan(begin, n * segment_bytes), out);
      continue;
    }
    segment = end_of_search(by_search, segment);
    const bool more = segment < n_segments;
    const std::size_t end = more ? segment * segment_bytes : values.size();
    if (!put_searched(compressor, values.subspan(begin, end - begin), more, out)) {
      return by_libdeflate();
    }
    if (!more) break;
  }
  if (out.failed()) return 0;
  const std::uint32_t sum = libdeflate_adler32(1, values.data(), values.size());
  for (std::size_t i = 0; i < n_sum; ++i) {
    to[out.at() + i] = std::byte(sum >> 8 * (n_sum - 1 - i) & 0xFF);
  }
  return out.at() + n_sum;
}

}  // namespace tailrace
