// Byte sections: choose a form by its exact size, write it, read it back.

#include "codec/trz/byte_section.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace tailrace::trz {
namespace {

enum class Form : std::uint8_t { stored = 0, constant = 1, huffman = 2, shared = 3, zstd = 4 };

constexpr std::size_t kVarintBytesMax = 10;

std::size_t write_varint(std::uint64_t value, std::uint8_t* out) {
  std::size_t n = 0;
  for (; value >= 0x80; value >>= 7) out[n++] = static_cast<std::uint8_t>(value | 0x80);
  out[n++] = static_cast<std::uint8_t>(value);
  return n;
}

std::size_t varint_bytes(std::uint64_t value) {
  std::uint8_t scratch[kVarintBytesMax];
  return write_varint(value, scratch);
}

/// Bytes read; 0 if truncated or longer than 64 bits.
std::size_t read_varint(std::span<const std::uint8_t> in, std::uint64_t& value) {
  value = 0;
  const std::size_t n_max = std::min(in.size(), kVarintBytesMax);
  for (std::size_t i = 0; i < n_max; ++i) {
    value |= static_cast<std::uint64_t>(in[i] & 0x7F) << (7 * i);
    if (in[i] < 0x80) return i + 1;
  }
  return 0;
}

std::size_t write_stored(std::span<const std::uint8_t> bytes, std::uint8_t* out) {
  out[0] = static_cast<std::uint8_t>(Form::stored);
  if (!bytes.empty()) std::memcpy(out + 1, bytes.data(), bytes.size());
  return 1 + bytes.size();
}

/// With the book's lengths. 0 if a symbol has none or the section would not get smaller.
std::size_t write_shared(std::span<const std::uint8_t> bytes, const CodeLengths& lengths,
                         std::uint8_t* out, Isa isa) {
  // The length of the payload is known afterwards: leave room for the longest, then close up.
  const std::size_t head_max = 1 + varint_bytes(bytes.size());
  if (bytes.size() <= head_max) return 0;
  const std::size_t n_payload =
      huffman_encode(bytes, lengths, {out + head_max, bytes.size() - head_max}, isa);
  if (n_payload == 0) return 0;
  out[0] = static_cast<std::uint8_t>(Form::shared);
  const std::size_t head = 1 + write_varint(n_payload, out + 1);
  if (head < head_max) std::memmove(out + head, out + head_max, n_payload);
  return head + n_payload;
}

/// A zstd section of fewer than bytes_limit bytes in all, or 0.
std::size_t write_zstd(std::span<const std::uint8_t> bytes, int level, std::size_t bytes_limit,
                       std::uint8_t* out, Workspace& workspace) {
  auto* context = static_cast<ZSTD_CCtx*>(workspace.zstd_compressor());
  const std::size_t head_max = 1 + varint_bytes(bytes_limit);
  if (context == nullptr || bytes_limit <= head_max + 1) return 0;
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const std::size_t n_payload = ZSTD_compress2(context, out + head_max, bytes_limit - head_max - 1,
                                               bytes.data(), bytes.size());
  if (ZSTD_isError(n_payload) != 0U) return 0;
  out[0] = static_cast<std::uint8_t>(Form::zstd);
  const std::size_t head = 1 + write_varint(n_payload, out + 1);
  if (head < head_max) std::memmove(out + head, out + head_max, n_payload);
  return head + n_payload;
}

bool zstd_promises(std::span<const std::uint8_t> bytes, std::uint64_t bits) {
  return bytes.size() >= 256 && bits < 2 * bytes.size();
}

std::size_t write_own(std::span<const std::uint8_t> bytes, const SectionPlan& plan,
                      std::uint8_t* out, Workspace& workspace) {
  Histogram histogram{};
  count_bytes(bytes, histogram, workspace.isa());
  const CodeLengths lengths = code_lengths(histogram, code_limit(bytes.size()));
  std::uint8_t lengths_text[kLengthsBytesMax];
  const std::size_t n_lengths = write_lengths(lengths, lengths_text);
  const std::uint64_t bits = encoded_bits(histogram, lengths);
  const std::uint64_t n_payload = huffman_bytes(bytes.size(), bits);
  const std::uint64_t n_huffman = 1 + varint_bytes(n_payload) + n_lengths + n_payload;
  if (plan.zstd == ZstdUse::always ||
      (plan.zstd == ZstdUse::promising && zstd_promises(bytes, bits))) {
    const auto limit = static_cast<std::size_t>(
        std::min<std::uint64_t>(n_huffman, section_bytes_max(bytes.size())));
    const std::size_t n_zstd = write_zstd(bytes, plan.zstd_level, limit, out, workspace);
    if (n_zstd != 0) return n_zstd;
  }
  if (n_huffman >= 1 + bytes.size()) return write_stored(bytes, out);
  out[0] = static_cast<std::uint8_t>(Form::huffman);
  std::size_t at = 1 + write_varint(n_payload, out + 1);
  std::memcpy(out + at, lengths_text, n_lengths);
  at += n_lengths;
  // More room than it needs, so that the encoder need not be careful towards the end.
  return at + huffman_encode(bytes, lengths, {out + at, section_bytes_max(bytes.size()) - at},
                             workspace.isa());
}

bool read_huffman(std::span<const std::uint8_t> payload, const CodeLengths& lengths,
                  std::span<std::uint8_t> bytes, Workspace& workspace) {
  auto* table = workspace.area<DecodeTable>(Slot::section, 1);
  if (table == nullptr) return false;
  build_decode_table(lengths, *table);
  return huffman_decode(payload, *table, bytes, workspace.isa());
}

bool read_zstd(std::span<const std::uint8_t> payload, std::span<std::uint8_t> bytes,
               Workspace& workspace) {
  auto* context = static_cast<ZSTD_DCtx*>(workspace.zstd_decompressor());
  return context != nullptr && ZSTD_decompressDCtx(context, bytes.data(), bytes.size(),
                                                   payload.data(), payload.size()) == bytes.size();
}

}  // namespace

std::size_t section_bytes_max(std::size_t n_bytes) { return 1 + n_bytes; }

std::size_t write_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan,
                          std::uint8_t* out, Workspace& workspace) {
  if (bytes.size() < 2) return write_stored(bytes, out);
  if (std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0) {
    out[0] = static_cast<std::uint8_t>(Form::constant);
    out[1] = bytes[0];
    return 2;
  }
  if (plan.shared != nullptr) {
    const std::size_t n_shared = write_shared(bytes, *plan.shared, out, workspace.isa());
    if (n_shared != 0) return n_shared;
  }
  return write_own(bytes, plan, out, workspace);
}

std::size_t read_section(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                         const CodeLengths* shared, Workspace& workspace) {
  if (in.empty()) return 0;
  const std::uint8_t form = in[0];
  std::span<const std::uint8_t> rest = in.subspan(1);
  if (form == static_cast<std::uint8_t>(Form::stored)) {
    if (rest.size() < bytes.size()) return 0;
    if (!bytes.empty()) std::memcpy(bytes.data(), rest.data(), bytes.size());
    return 1 + bytes.size();
  }
  if (form == static_cast<std::uint8_t>(Form::constant)) {
    if (rest.empty()) return 0;
    std::fill(bytes.begin(), bytes.end(), rest[0]);
    return 2;
  }
  if (form > static_cast<std::uint8_t>(Form::zstd)) return 0;
  std::uint64_t n_payload = 0;
  rest = rest.subspan(read_varint(rest, n_payload));
  if (rest.size() == in.size() - 1) return 0;
  CodeLengths lengths;
  if (form == static_cast<std::uint8_t>(Form::huffman)) {
    const std::size_t n_lengths = read_lengths(rest, lengths);
    if (n_lengths == 0) return 0;
    rest = rest.subspan(n_lengths);
    shared = &lengths;
  }
  if (n_payload > rest.size() || bytes.empty()) return 0;
  const auto payload = rest.first(static_cast<std::size_t>(n_payload));
  const bool decoded = form == static_cast<std::uint8_t>(Form::zstd)
                           ? read_zstd(payload, bytes, workspace)
                           : shared != nullptr && read_huffman(payload, *shared, bytes, workspace);
  return decoded ? in.size() - rest.size() + payload.size() : 0;
}

}  // namespace tailrace::trz
