// Chunks of the codec xor: the head, the choice of neighbours, and the loop over blocks.
//
// The format is docs/trz-format.md. The encoder packs each block into a buffer and appends it to
// the output as long as the chunk stays smaller than the unencoded bytes; otherwise it stores
// these.

#include "xor/xor_chunk.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "trz/base/printable.hpp"
#include "xor/xor_kernels.hpp"

namespace tailrace::neighbour_xor {
namespace {

constexpr std::array<std::uint8_t, 4> kMagicAndVersion = {'X', 'O', 'R', 1};
constexpr std::size_t kChecksumAt = 4;
constexpr std::size_t kChecksummedFrom = 8;
constexpr std::size_t kKindAt = 8;
constexpr std::uint8_t kFeatureBits = 0xE0;  // No bit has a meaning yet.
constexpr std::size_t kDistancesMax = 3;
constexpr std::size_t kVarintBytesMax = 10;

enum class Method : std::uint8_t { blocks = 0, stored = 1 };

/// Distances to the neighbours along the chosen axes, ascending.
using Distances = std::vector<std::size_t>;

const Kernels& kernels_of(Build build) {
#if defined(__x86_64__)
  if (build == Build::avx2) return avx2::kernels;
#endif
  static_cast<void>(build);
  return plain::kernels;
}

std::size_t varint_bytes(std::uint64_t number) {
  std::size_t n = 1;
  for (; number >= 0x80; number >>= 7) ++n;
  return n;
}

std::uint8_t* put_varint(std::uint64_t number, std::uint8_t* out) {
  for (; number >= 0x80; number >>= 7) *out++ = static_cast<std::uint8_t>(number | 0x80);
  *out++ = static_cast<std::uint8_t>(number);
  return out;
}

/// Read a varint. False if the bytes end first, or if the number has more than 64 bits.
bool take_varint(const std::uint8_t*& in, const std::uint8_t* end, std::uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 64 && in < end; shift += 7) {
    const std::uint8_t byte = *in++;
    if (shift == 63 && byte > 1) return false;
    number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// Distances of all values that a value is xored with: all sums of subsets of `distances`,
/// ascending. The decoder omits distance 1, which it undoes by a running xor.
Terms terms_of(std::span<const std::size_t> distances) {
  Terms terms;
  for (unsigned chosen = 1; chosen < 1U << distances.size(); ++chosen) {
    std::size_t sum = 0;
    for (std::size_t k = 0; k < distances.size(); ++k) {
      if ((chosen >> k & 1U) != 0) sum += distances[k];
    }
    unsigned at = terms.n++;
    for (; at > 0 && terms.distances[at - 1] > sum; --at) {
      terms.distances[at] = terms.distances[at - 1];
    }
    terms.distances[at] = sum;
  }
  return terms;
}

std::size_t log2_of(std::size_t element_bytes) {
  return static_cast<std::size_t>(std::countr_zero(element_bytes));
}

/// Words of a chunk: elements, or bytes if no word size matches the element.
struct Words {
  std::span<const std::byte> values;
  std::size_t bytes = 1;  ///< Bytes of a word: 1, 2, 4, 8.
  std::size_t n = 0;
  Distances axes;  ///< Distance of the neighbour along each axis longer than 1, fastest first.
};

Words words_of(const ChunkType& type, std::span<const std::byte> values) {
  Words words;
  words.values = values;
  const bool whole = std::has_single_bit(type.element_bytes) && type.element_bytes <= 8;
  words.bytes = whole ? type.element_bytes : 1;
  words.n = values.size() / words.bytes;
  std::size_t distance = whole ? 1 : type.element_bytes;
  for (auto extent = type.shape.rbegin(); extent != type.shape.rend(); ++extent) {
    if (*extent > 1) words.axes.push_back(distance);
    distance *= static_cast<std::size_t>(*extent);
  }
  return words;
}

/// Measures the cost of a sample of the chunk with the neighbours at given distances.
class Sampler {
 public:
  Sampler(const Words& words, const Kernels& kernels) : words_(words), kernels_(kernels) {}

  std::uint64_t cost(const Distances& distances) const {
    constexpr std::size_t n_span = 64;
    const Terms terms = terms_of(distances);
    const std::size_t n_all = (words_.n + n_span - 1) / n_span;
    const std::size_t n_spans = std::min(n_all, std::clamp<std::size_t>(n_all / 64, 32, 128));
    const std::size_t stride = n_spans < n_all ? words_.n / n_spans : n_span;
    const std::size_t kind = log2_of(words_.bytes);
    std::uint64_t n_bits = 0;
    BlockWords block;
    for (std::size_t span = 0; span < n_spans; ++span) {
      // Vary the position in a row, since the row length is usually a power of 2.
      const std::size_t n_free = stride - n_span;
      const std::size_t start = span * stride + (n_free > 0 ? span * 2654435761U % n_free : 0);
      const std::size_t n = std::min(n_span, words_.n - start);
      kernels_.residuals[kind](words_.values.data(), start, n, terms, block);
      n_bits += kernels_.cost[kind == 3 ? 1 : 0](block, n);
    }
    return n_bits;
  }

 private:
  const Words& words_;
  const Kernels& kernels_;
};

/// Choose distances greedily: start with no neighbour and add the axis that saves most, while one
/// does. Chooses at most three of the four fastest axes.
Distances choose_distances(const Words& words, const Kernels& kernels) {
  constexpr std::size_t n_axes_max = 4;
  const Sampler sampler(words, kernels);
  Distances chosen;
  std::uint64_t n_least = sampler.cost(chosen);
  const std::size_t n_axes = std::min(n_axes_max, words.axes.size());
  while (chosen.size() < kDistancesMax) {
    std::size_t best = n_axes;
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      if (std::find(chosen.begin(), chosen.end(), words.axes[axis]) != chosen.end()) continue;
      Distances tried = chosen;
      tried.push_back(words.axes[axis]);
      const std::uint64_t n_bits = sampler.cost(tried);
      if (n_bits < n_least) {
        n_least = n_bits;
        best = axis;
      }
    }
    if (best == n_axes) break;
    chosen.push_back(words.axes[best]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Distances distances_for(const ChunkType& type, const Words& words, const Kernels& kernels) {
  if (type.dimension == 0) return choose_distances(words, kernels);
  const auto n = std::min(static_cast<std::size_t>(type.dimension), words.axes.size());
  return {words.axes.begin(), words.axes.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Buffer with slack at the end, so that kernels need not check the end.
using BlockBytes = std::array<std::uint8_t, kBlockBytesMax + kSlackBytes>;

/// Appends the blocks of a chunk to a buffer.
class BlockWriter {
 public:
  BlockWriter(std::uint8_t* begin, std::size_t capacity) : at_(begin), end_(begin + capacity) {}

  /// Append a block; empty if all its words are 0. False if the buffer is full.
  bool add(std::span<const std::uint8_t> block) {
    if (block.empty()) {
      ++n_zeros_;
      return true;
    }
    if (!flush() || block.size() > room()) return false;
    std::memcpy(at_, block.data(), block.size());
    at_ += block.size();
    return true;
  }
  bool flush() {
    if (n_zeros_ == 0) return true;
    if (1 + varint_bytes(n_zeros_) > room()) return false;
    *at_++ = static_cast<std::uint8_t>(Form::zeros);
    at_ = put_varint(n_zeros_, at_);
    n_zeros_ = 0;
    return true;
  }
  std::uint8_t* at() const { return at_; }

 private:
  std::size_t room() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t* at_;
  std::uint8_t* end_;
  std::uint64_t n_zeros_ = 0;
};

std::uint8_t* put_head(std::size_t word_bytes, std::size_t n_distances, Method method,
                       std::uint64_t n_words, std::uint8_t* out) {
  std::memcpy(out, kMagicAndVersion.data(), kMagicAndVersion.size());
  out[kKindAt] = static_cast<std::uint8_t>(log2_of(word_bytes) | n_distances << 2 |
                                           static_cast<std::size_t>(method) << 4);
  return put_varint(n_words, out + kKindAt + 1);
}

/// Encode the chunk as blocks; 0 if the result is not smaller than the unencoded bytes.
std::size_t encode_blocks(const ChunkType& type, std::span<const std::byte> values,
                          std::uint8_t* out, std::size_t capacity, const Kernels& kernels) {
  const Words words = words_of(type, values);
  const Distances distances = distances_for(type, words, kernels);
  const Terms terms = terms_of(distances);
  // Written to a buffer first: the head may be longer than a stored chunk's, and `out` may be too
  // small.
  std::array<std::uint8_t, kKindAt + 1 + (1 + kDistancesMax) * kVarintBytesMax> head;
  std::uint8_t* head_end =
      put_head(words.bytes, distances.size(), Method::blocks, words.n, head.data());
  for (const std::size_t distance : distances) head_end = put_varint(distance, head_end);
  const auto n_head = static_cast<std::size_t>(head_end - head.data());
  if (n_head >= capacity) return 0;
  std::memcpy(out, head.data(), n_head);

  BlockWriter writer(out + n_head, capacity - n_head);
  BlockWords block;
  BlockBytes packed;
  const std::size_t kind = log2_of(words.bytes);
  for (std::size_t position = 0; position < words.n; position += kBlockValues) {
    const std::size_t n = std::min(kBlockValues, words.n - position);
    kernels.residuals[kind](values.data(), position, n, terms, block);
    const std::size_t n_packed = kernels.pack[kind == 3 ? 1 : 0](block, n, packed.data());
    if (!writer.add({packed.data(), n_packed})) return 0;
  }
  if (!writer.flush()) return 0;
  const auto n_encoded = static_cast<std::size_t>(writer.at() - out);
  return n_encoded < capacity ? n_encoded : 0;
}

std::size_t store(std::span<const std::byte> values, std::uint8_t* out) {
  std::uint8_t* at = put_head(1, 0, Method::stored, values.size(), out);
  if (!values.empty()) std::memcpy(at, values.data(), values.size());
  return static_cast<std::size_t>(at - out) + values.size();
}

std::uint32_t checksum_of(std::span<const std::uint8_t> chunk) {
  const std::span<const std::uint8_t> covered = chunk.subspan(kChecksummedFrom);
  return libdeflate_crc32(0, covered.data(), covered.size());
}

Status bad_argument(const std::string& why) {
  return Status(Code::invalid_argument, "xor: " + why);
}
Status corrupt(const std::string& why) { return Status(Code::corrupt, "xor: " + why); }

/// Fields before the blocks.
struct Head {
  std::size_t log2_word_bytes = 0;
  Method method = Method::blocks;
  std::size_t n_words = 0;
  std::size_t n_distances = 0;
  std::size_t distances[kDistancesMax] = {};
};

/// Read the head, advance `in` past it, and check it against the size of the decoded chunk.
Status read_head(std::span<const std::uint8_t> chunk, std::size_t n_values_bytes, Head& head,
                 const std::uint8_t*& in) {
  if (chunk.size() <= kKindAt ||
      std::memcmp(chunk.data(), kMagicAndVersion.data(), kMagicAndVersion.size() - 1) != 0) {
    return corrupt("not a chunk of codec xor (wrong magic number)");
  }
  if (chunk[kMagicAndVersion.size() - 1] != kMagicAndVersion.back()) {
    return corrupt("the chunk needs a newer xor: format version " +
                   std::to_string(chunk[kMagicAndVersion.size() - 1]) + ", expected 1");
  }
  std::uint32_t checksum;
  std::memcpy(&checksum, chunk.data() + kChecksumAt, sizeof checksum);
  if (checksum != checksum_of(chunk)) {
    return corrupt("the chunk is damaged: its checksum is wrong");
  }
  const std::uint8_t kind = chunk[kKindAt];
  if ((kind & kFeatureBits) != 0) {
    return corrupt("the chunk needs a newer xor: unknown feature bits 0x" +
                   hexadecimal(kind & kFeatureBits, 2));
  }
  const std::uint8_t* end = chunk.data() + chunk.size();
  in = chunk.data() + kKindAt + 1;
  std::uint64_t number = 0;
  head.log2_word_bytes = kind & 3U;
  head.n_distances = kind >> 2 & 3U;
  head.method = static_cast<Method>(kind >> 4);
  if (!take_varint(in, end, number)) {
    return corrupt("the chunk's header is invalid");
  }
  if (number != n_values_bytes >> head.log2_word_bytes ||
      number << head.log2_word_bytes != n_values_bytes) {
    return corrupt("the chunk holds " + std::to_string(number) + " values of " +
                   std::to_string(1U << head.log2_word_bytes) + " bytes, where " +
                   std::to_string(n_values_bytes) + " bytes are expected");
  }
  head.n_words = static_cast<std::size_t>(number);
  std::uint64_t last = 0;
  for (std::size_t k = 0; k < head.n_distances; ++k) {
    if (!take_varint(in, end, number) || number <= last || number >= head.n_words) {
      return corrupt("the chunk's neighbour distances are invalid");
    }
    last = number;
    head.distances[k] = static_cast<std::size_t>(number);
  }
  return Status();
}

/// Reader of the blocks' bytes that lets kernels read past a block's end. It copies the last bytes
/// to a buffer with slack.
class BlockReader {
 public:
  BlockReader(const std::uint8_t* begin, const std::uint8_t* end) : at_(begin), end_(end) {}

  /// Remaining bytes, at most the maximum size of a block; readable to kSlackBytes past the end.
  std::span<const std::uint8_t> bytes() {
    const auto n_left = static_cast<std::size_t>(end_ - at_);
    if (n_left < tail_.size() - kSlackBytes && !copied_) {
      if (n_left > 0) std::memcpy(tail_.data(), at_, n_left);
      std::memset(tail_.data() + n_left, 0, tail_.size() - n_left);
      at_ = tail_.data();
      end_ = at_ + n_left;
      copied_ = true;
    }
    return {at_, std::min(static_cast<std::size_t>(end_ - at_), kBlockBytesMax)};
  }
  void skip(std::size_t n) { at_ += n; }
  /// Read a run of empty blocks; false and no change if the next block is not empty.
  bool take_run(std::uint64_t& n_blocks) {
    if (at_ == end_ || *at_ != static_cast<std::uint8_t>(Form::zeros)) return false;
    ++at_;
    if (!take_varint(at_, end_, n_blocks)) n_blocks = 0;
    return true;
  }
  bool at_end() const { return at_ == end_; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool copied_ = false;
  std::array<std::uint8_t, kBlockBytesMax + 2 * kSlackBytes> tail_;
};

Status decode_blocks(const Head& head, const std::uint8_t* in, const std::uint8_t* end,
                     std::span<std::byte> values, const Kernels& kernels) {
  const bool running = head.n_distances > 0 && head.distances[0] == 1;
  const std::span<const std::size_t> distances(head.distances, head.n_distances);
  const Terms terms = terms_of(running ? distances.subspan(1) : distances);
  const std::size_t kind = head.log2_word_bytes;
  BlockReader reader(in, end);
  BlockWords block;
  std::uint64_t carry = 0;
  std::uint64_t n_zeros = 0;
  const std::uint64_t n_blocks = (head.n_words + kBlockValues - 1) / kBlockValues;
  for (std::uint64_t index = 0; index < n_blocks; ++index) {
    const std::size_t position = static_cast<std::size_t>(index) * kBlockValues;
    const std::size_t n = std::min(kBlockValues, head.n_words - position);
    if (n_zeros == 0) {
      const std::span<const std::uint8_t> bytes = reader.bytes();
      if (reader.take_run(n_zeros)) {
        if (n_zeros == 0 || n_zeros > n_blocks - index) {
          return corrupt("a run of empty blocks is invalid");
        }
      } else {
        const std::size_t n_taken =
            kernels.unpack[kind == 3 ? 1 : 0](bytes.data(), bytes.size(), n, block);
        if (n_taken == 0) return corrupt("block " + std::to_string(index) + " is damaged");
        reader.skip(n_taken);
      }
    }
    if (n_zeros > 0) {
      --n_zeros;
      std::memset(&block, 0, sizeof block);
    }
    kernels.restore[kind](block, terms, running ? &carry : nullptr, values.data(), position, n);
  }
  return reader.at_end() ? Status() : corrupt("extra bytes follow the last block");
}

}  // namespace

bool build_supported(Build build) {
  if (build == Build::plain) return true;
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0 &&
         __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}

Build best_build() {
  static const Build best = build_supported(Build::avx2) ? Build::avx2 : Build::plain;
  return best;
}

std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) {
  return kKindAt + 1 + varint_bytes(n_bytes) + n_bytes;
}

Result<std::size_t> encode(const ChunkType& type, std::span<const std::byte> values,
                           std::span<std::byte> out, Build build) {
  const std::size_t capacity = encoded_bytes_max(values.size());
  if (type.element_bytes == 0 || type.dimension < 0 || type.dimension > 3) {
    return bad_argument("elements of " + std::to_string(type.element_bytes) +
                        " bytes and dimension " + std::to_string(type.dimension) +
                        ", expected at least 1 byte and a dimension from 0 to 3");
  }
  if (n_elements(type.shape) * type.element_bytes != values.size()) {
    return bad_argument("a chunk of shape " + shape_text(type.shape) + " has " +
                        std::to_string(n_elements(type.shape) * type.element_bytes) +
                        " bytes, got " + std::to_string(values.size()));
  }
  if (out.size() < capacity) {
    return bad_argument("the output has room for " + std::to_string(out.size()) + " bytes, " +
                        std::to_string(capacity) + " are needed");
  }
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  std::size_t n_encoded = encode_blocks(type, values, to, capacity, kernels_of(build));
  if (n_encoded == 0) n_encoded = store(values, to);
  const std::uint32_t checksum = checksum_of({to, n_encoded});
  std::memcpy(to + kChecksumAt, &checksum, sizeof checksum);
  return n_encoded;
}

Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, Build build) {
  const std::span<const std::uint8_t> chunk(reinterpret_cast<const std::uint8_t*>(encoded.data()),
                                            encoded.size());
  Head head;
  const std::uint8_t* in = nullptr;
  TAILRACE_TRY(read_head(chunk, values.size(), head, in));
  const std::uint8_t* end = chunk.data() + chunk.size();
  if (head.method == Method::blocks) {
    return decode_blocks(head, in, end, values, kernels_of(build));
  }
  if (static_cast<std::size_t>(end - in) != values.size() || head.log2_word_bytes != 0 ||
      head.n_distances != 0) {
    return corrupt("a stored chunk has " + std::to_string(end - in) + " bytes of values, not " +
                   std::to_string(values.size()));
  }
  if (!values.empty()) std::memcpy(values.data(), in, values.size());
  return Status();
}

// --- Client data of the xor filter: packing and unpacking.

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
    return wrong("layout " + std::to_string(words[0] & 0xFFU) + ", expected 1");
  }
  const std::uint32_t dimension = words[0] >> 8 & 0xFFU;
  if (dimension > 3 || words[0] >> 17 != 0) {
    return wrong("word 0 is " + std::to_string(words[0]) +
                 ", which is not a dimension from 0 to 3");
  }
  data.dimension = static_cast<int>(dimension);
  if ((words[0] & kChunkFollows) == 0) {
    if (words.size() == 1) return data;
    return wrong("got " + std::to_string(words.size()) + " words, expected 1");
  }
  if (words.size() < kBeforeExtents || words.size() > kBeforeExtents + kMaxRank || words[1] == 0) {
    return wrong("the chunk's type or extents are invalid");
  }
  ChunkType chunk;
  chunk.dimension = data.dimension;
  chunk.element_bytes = words[1];
  // Overflow check: the product must stay below 2^63 bytes, whatever the header says.
  std::uint64_t n_bytes = words[1];
  for (const std::uint32_t extent : words.subspan(kBeforeExtents)) {
    if (extent == 0 || n_bytes > (std::uint64_t{1} << 63) / extent) {
      return wrong("the chunk's extents are invalid");
    }
    n_bytes *= extent;
    chunk.shape.push_back(extent);
  }
  data.chunk = std::move(chunk);
  return data;
}

}  // namespace tailrace::neighbour_xor
