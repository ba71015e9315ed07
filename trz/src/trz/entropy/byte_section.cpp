// Byte sections: choose a form by its exact size, write it, and read it.

#include "trz/entropy/byte_section.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "trz/kernels/byte_kernels.hpp"

namespace tailrace::trz {
namespace {

enum class Form : std::uint8_t {
  stored = 0,
  constant = 1,
  huffman = 2,
  shared = 3,
  zstd = 4,
  runs = 5
};

constexpr std::size_t kVarintBytesMax = 10;

std::size_t write_varint(std::uint64_t value, std::uint8_t* out) {
  std::size_t n = 0;
  for (; value >= 0x80; value >>= 7) out[n++] = static_cast<std::uint8_t>(value | 0x80);
  out[n++] = static_cast<std::uint8_t>(value);
  return n;
}

/// Write a varint of exactly n_bytes, which may be more than the value needs.
void write_long_varint(std::uint64_t value, std::size_t n_bytes, std::uint8_t* out) {
  for (std::size_t i = 0; i < n_bytes; ++i) {
    const unsigned more = i + 1 < n_bytes ? 0x80U : 0U;
    out[i] = static_cast<std::uint8_t>((value >> (7 * i) & 0x7F) | more);
  }
}

std::size_t varint_bytes(std::uint64_t value) {
  std::uint8_t scratch[kVarintBytesMax];
  return write_varint(value, scratch);
}

/// Read a varint. Returns the bytes read; 0 if truncated or longer than 64 bits.
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

/// Write a section with the book's code lengths. Returns 0 if a symbol has no code or the section
/// would not be smaller than the bytes.
std::size_t write_shared(std::span<const std::uint8_t> bytes, const CodeLengths& lengths,
                         std::uint8_t* out, Isa isa) {
  // The payload's length is known only afterwards: leave room for the longest varint, then move the
  // payload down.
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

/// Write a zstd section of fewer than bytes_limit bytes in total; return its size, or 0.
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

/// A sparse sample ends after so many bytes if at most one position in kSearchedShare repeats.
constexpr std::size_t kSearchedFirst = 8192;
constexpr std::size_t kSearchedShare = 64;

/// Share of the positions in a sample at which the next eight bytes have occurred earlier in it.
/// kOneIn: a sample has the positions whose hash is a multiple of it. Equal bytes have equal
/// hashes, so a sparse sample of a long stream finds repeats at any distance.
template <std::size_t kOneIn>
double repeated_share(std::span<const std::uint8_t> bytes) {
  constexpr unsigned hash_bits = kOneIn == 1 ? 10 : 12;
  constexpr unsigned chosen_bits = std::bit_width(kOneIn) - 1;
  std::uint32_t last_place[1U << hash_bits] = {};
  std::size_t n_seen = 0;
  std::size_t n_matches = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if (kOneIn > 1 && i == kSearchedFirst && kSearchedShare * n_matches < n_seen) return 0;
    const std::uint64_t hash = word * 0x9E3779B97F4A7C15U >> (64 - hash_bits - chosen_bits);
    if (hash % kOneIn != 0) continue;
    ++n_seen;
    std::uint32_t& place = last_place[hash / kOneIn];
    std::uint64_t before;
    std::memcpy(&before, bytes.data() + place, sizeof before);
    n_matches += before == word ? 1 : 0;
    place = static_cast<std::uint32_t>(i);
  }
  return static_cast<double>(n_matches) / static_cast<double>(std::max<std::size_t>(n_seen, 1));
}

/// True if zstd promises a gain over Huffman coding: at many positions of a sample, the next eight
/// bytes have occurred earlier in it. Streams of few bits per byte repeat by chance and are
/// excluded; form runs serves them.
/// @param bits  bits of all codes of the Huffman code.
bool zstd_promises(std::span<const std::uint8_t> bytes, std::uint64_t bits) {
  constexpr std::size_t n_sampled = 1024;
  if (bytes.size() < 2 * n_sampled || bits < 2 * bytes.size()) return false;
  // More than 1024 / 8 of the 1017 positions that have eight bytes.
  constexpr double promising = 128.5 / (n_sampled - 7);
  return repeated_share<1>(bytes.subspan((bytes.size() - n_sampled) / 2, n_sampled)) > promising;
}

/// True if a search promises a gain by zstd over another form.
bool search_promises(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t n_least = 1024;
  constexpr std::size_t n_most = std::size_t{1} << 15;
  if (bytes.size() < n_least) return false;
  const std::size_t n = std::min(bytes.size(), n_most);
  return repeated_share<32>(bytes.subspan((bytes.size() - n) / 2, n)) > 1.0 / 16;
}

/// True if zstd shall be tried on a section. @param has_runs  form runs is smaller than Huffman.
bool tries_zstd(std::span<const std::uint8_t> bytes, ZstdUse use, std::uint64_t bits,
                bool has_runs) {
  switch (use) {
    case ZstdUse::never: return false;
    case ZstdUse::promising: return !has_runs && zstd_promises(bytes, bits);
    case ZstdUse::searched: return search_promises(bytes);
    case ZstdUse::always: break;
  }
  return true;
}

/// A section's own Huffman code, made from the counts of all of its bytes or of some.
struct OwnCode {
  Histogram histogram{};
  std::uint64_t n_counted = 0;
  CodeLengths lengths;
  std::uint8_t text[kLengthsBytesMax];  ///< The code lengths in serialised form.
  std::size_t n_text = 0;
  std::uint64_t bits = 0;           ///< Bits of all codes; an estimate if only some are counted.
  std::uint64_t section_bytes = 0;  ///< Size of the section; an estimate if `bits` is one.

  OwnCode(std::span<const std::uint8_t> bytes, bool count_all, Isa isa) {
    n_counted = bytes.size();
    if (count_all) {
      count_bytes(bytes, histogram, isa);
    } else {
      n_counted = count_some_bytes(bytes, histogram, isa);
    }
    lengths = code_lengths(histogram, code_limit(bytes.size()));
    n_text = write_lengths(lengths, text);
    bits = encoded_bits(histogram, lengths);
    if (n_counted < bytes.size()) bits = bits * (bytes.size() / 64) / (n_counted / 64);
    const std::uint64_t n_payload = huffman_bytes(bytes.size(), bits);
    section_bytes = 1 + varint_bytes(bytes.size()) + n_text + n_payload;
  }
};

/// Write a huffman section with `code`, which was made from these bytes. Returns 0 if n_room bytes
/// do not suffice. Extra room lets the encoder skip its slow, checked path near the end.
std::size_t write_huffman(std::span<const std::uint8_t> bytes, const OwnCode& code,
                          std::size_t n_room, std::uint8_t* out, Isa isa) {
  const std::size_t n_varint = varint_bytes(bytes.size());
  const std::size_t head = 1 + n_varint + code.n_text;
  if (n_room <= head) return 0;
  const std::size_t n_payload =
      huffman_encode(bytes, code.lengths, {out + head, n_room - head}, isa);
  if (n_payload == 0) return 0;
  out[0] = static_cast<std::uint8_t>(Form::huffman);
  write_long_varint(n_payload, n_varint, out + 1);
  std::memcpy(out + 1 + n_varint, code.text, code.n_text);
  return head + n_payload;
}

/// Write a section as runs of the most frequent byte; return its size, or 0 if not written. Runs
/// need a byte that makes up half of all bytes, and another that does not occur. The section's
/// estimated size must be below bytes_limit.
std::size_t write_runs(std::span<const std::uint8_t> bytes, const OwnCode& plain_code,
                       bool count_all, std::uint64_t bytes_limit, std::uint8_t* out,
                       Workspace& workspace) {
  const Histogram& histogram = plain_code.histogram;
  const auto most = std::max_element(histogram.begin(), histogram.end());
  const auto absent = std::find(histogram.begin(), histogram.end(), 0U);
  if (*most < plain_code.n_counted / 2 || absent == histogram.end() || bytes.size() < 64) return 0;
  const auto common = static_cast<std::uint8_t>(most - histogram.begin());
  const auto spare = static_cast<std::uint8_t>(absent - histogram.begin());
  auto* tokens = workspace.area<std::uint8_t>(Slot::section, bytes.size() + 8);
  if (tokens == nullptr) return 0;
  const std::size_t n_tokens =
      run_kernels(workspace.isa()).encode(bytes.data(), bytes.size(), common, spare, tokens);
  const OwnCode code({tokens, n_tokens}, count_all, workspace.isa());
  const std::size_t n_head = 3 + varint_bytes(n_tokens);
  const std::size_t n_room = section_bytes_max(bytes.size()) - n_head;
  if (n_head + std::min<std::uint64_t>(code.section_bytes, 1 + n_tokens) >= bytes_limit) return 0;
  out[0] = static_cast<std::uint8_t>(Form::runs);
  out[1] = common;
  out[2] = spare;
  write_varint(n_tokens, out + 3);
  if (code.section_bytes < 1 + n_tokens) {
    const std::size_t n_inner =
        write_huffman({tokens, n_tokens}, code, n_room, out + n_head, workspace.isa());
    return n_inner == 0 ? 0 : n_head + n_inner;
  }
  if (1 + n_tokens > n_room) return 0;
  return n_head + write_stored({tokens, n_tokens}, out + n_head);
}

std::size_t write_own(std::span<const std::uint8_t> bytes, const SectionPlan& plan,
                      std::uint8_t* out, Workspace& workspace) {
  const bool count_all = plan.zstd >= ZstdUse::searched;
  const OwnCode code(bytes, count_all, workspace.isa());
  const std::size_t n_stored = 1 + bytes.size();
  std::uint64_t limit = std::min<std::uint64_t>(code.section_bytes, n_stored);
  const std::size_t n_runs = write_runs(bytes, code, count_all, limit, out, workspace);
  if (n_runs != 0) limit = n_runs;
  if (tries_zstd(bytes, plan.zstd, code.bits, n_runs != 0)) {
    const std::size_t n_zstd =
        write_zstd(bytes, plan.zstd_level, static_cast<std::size_t>(limit), out, workspace);
    if (n_zstd != 0) return n_zstd;
    // The attempt with zstd has overwritten the runs.
    if (n_runs != 0) return write_runs(bytes, code, count_all, UINT64_MAX, out, workspace);
  }
  if (n_runs != 0) return n_runs;
  const std::size_t n_huffman =
      limit == n_stored ? 0 : write_huffman(bytes, code, n_stored - 1, out, workspace.isa());
  return n_huffman != 0 ? n_huffman : write_stored(bytes, out);
}

/// Temporary memory of the reader, in Slot::section.
struct ReadArea {
  DecodeTable* table;
  std::uint8_t* tokens;

  ReadArea(Workspace& workspace, std::size_t n_tokens)
      : table(workspace.area<DecodeTable>(
            Slot::section, 1 + (n_tokens + sizeof(DecodeTable) - 1) / sizeof(DecodeTable))),
        tokens(table == nullptr ? nullptr : reinterpret_cast<std::uint8_t*>(table + 1)) {}
};

/// Read a section of form stored or constant. Returns the bytes consumed, or 0.
std::size_t read_plain(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes) {
  if (in[0] == static_cast<std::uint8_t>(Form::stored)) {
    if (in.size() - 1 < bytes.size()) return 0;
    if (!bytes.empty()) std::memcpy(bytes.data(), in.data() + 1, bytes.size());
    return 1 + bytes.size();
  }
  if (in.size() < 2) return 0;
  std::fill(bytes.begin(), bytes.end(), in[1]);
  return 2;
}

/// Read a section of form huffman, shared or zstd. Returns the bytes consumed, or 0.
std::size_t read_payload(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                         const CodeLengths* shared, DecodeTable& table, Workspace& workspace) {
  const auto form = static_cast<Form>(in[0]);
  std::uint64_t n_payload = 0;
  const std::size_t n_varint = read_varint(in.subspan(1), n_payload);
  if (n_varint == 0 || bytes.empty()) return 0;
  std::span<const std::uint8_t> rest = in.subspan(1 + n_varint);
  CodeLengths lengths;
  if (form == Form::huffman) {
    const std::size_t n_lengths = read_lengths(rest, lengths);
    if (n_lengths == 0) return 0;
    rest = rest.subspan(n_lengths);
    shared = &lengths;
  }
  if (n_payload > rest.size()) return 0;
  const auto payload = rest.first(static_cast<std::size_t>(n_payload));
  if (form == Form::zstd) {
    auto* context = static_cast<ZSTD_DCtx*>(workspace.zstd_decompressor());
    if (context == nullptr || ZSTD_decompressDCtx(context, bytes.data(), bytes.size(),
                                                  payload.data(), payload.size()) != bytes.size()) {
      return 0;
    }
  } else {
    if (shared == nullptr) return 0;
    build_decode_table(*shared, table);
    if (!huffman_decode(payload, table, bytes, workspace.isa())) return 0;
  }
  return in.size() - rest.size() + payload.size();
}

/// Read a section of form runs. Returns the bytes consumed, or 0.
std::size_t read_runs(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                      Workspace& workspace) {
  std::uint64_t n_tokens = 0;
  const std::size_t n_varint = in.size() < 4 ? 0 : read_varint(in.subspan(3), n_tokens);
  if (n_varint == 0 || n_tokens == 0 || n_tokens > bytes.size()) return 0;
  const auto inner = in.subspan(3 + n_varint);
  if (inner.empty() || inner[0] > static_cast<std::uint8_t>(Form::huffman)) return 0;
  const ReadArea area(workspace, static_cast<std::size_t>(n_tokens));
  if (area.table == nullptr) return 0;
  const std::span<std::uint8_t> tokens(area.tokens, static_cast<std::size_t>(n_tokens));
  const std::size_t n_inner = inner[0] == static_cast<std::uint8_t>(Form::huffman)
                                  ? read_payload(inner, tokens, nullptr, *area.table, workspace)
                                  : read_plain(inner, tokens);
  if (n_inner == 0 || in[1] == in[2] ||
      !run_kernels(workspace.isa())
           .decode(tokens.data(), tokens.size(), in[1], in[2], bytes.data(), bytes.size())) {
    return 0;
  }
  return 3 + n_varint + n_inner;
}

}  // namespace

std::size_t section_bytes_max(std::size_t n_bytes) { return 1 + n_bytes; }

bool own_code_may_pay(std::size_t n_bytes, std::size_t n_shared, const CodeLengths& lengths) {
  if (n_shared < n_bytes / 4) return true;
  std::uint64_t made_for = 0;  // Bits of 2^12 bytes if a code of l bits occurs once in 2^l.
  bool one_bit = false;
  for (const std::uint8_t length : lengths.bits) {
    if (length == 0) continue;
    made_for += static_cast<std::uint64_t>(length) << (12 - length);
    one_bit = one_bit || length == 1;
  }
  if (one_bit && n_shared < n_bytes / 3) return true;
  constexpr std::size_t n_shared_min = 1024;  // Below, stored lengths cost more than they gain.
  const std::uint64_t expected = made_for * n_bytes;
  const std::uint64_t taken = static_cast<std::uint64_t>(n_shared) << 15;
  const std::uint64_t apart = taken > expected ? taken - expected : expected - taken;
  return n_shared >= n_shared_min && apart > expected / 16;
}

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
    const bool own_may = own_code_may_pay(bytes.size(), n_shared, *plan.shared);
    const bool zstd_may = tries_zstd(bytes, plan.zstd, 8 * n_shared, false);
    if (n_shared != 0 && !own_may && !zstd_may) return n_shared;
    const std::size_t n_own = write_own(bytes, plan, out, workspace);
    if (n_shared == 0 || n_own <= n_shared) return n_own;
    return write_shared(bytes, *plan.shared, out, workspace.isa());
  }
  return write_own(bytes, plan, out, workspace);
}

std::size_t read_section(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                         const CodeLengths* shared, Workspace& workspace) {
  if (in.empty() || in[0] > static_cast<std::uint8_t>(Form::runs)) return 0;
  switch (static_cast<Form>(in[0])) {
    case Form::stored:
    case Form::constant: return read_plain(in, bytes);
    case Form::runs: return read_runs(in, bytes, workspace);
    default: break;
  }
  const ReadArea area(workspace, 0);
  return area.table == nullptr ? 0 : read_payload(in, bytes, shared, *area.table, workspace);
}

bool add_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan, ChunkWriter& out,
                 Workspace& workspace) {
  if (out.rest().size() < section_bytes_max(bytes.size())) return false;
  const std::size_t n_bytes = write_section(bytes, plan, out.rest().data(), workspace);
  out.advance(n_bytes);
  return n_bytes != 0;
}

bool take_section(ChunkReader& in, std::span<std::uint8_t> bytes, const CodeLengths* shared,
                  Workspace& workspace) {
  const std::size_t n_bytes = read_section(in.rest(), bytes, shared, workspace);
  if (n_bytes == 0) in.fail();
  return in.take(n_bytes) != nullptr && n_bytes != 0;
}

}  // namespace tailrace::trz
