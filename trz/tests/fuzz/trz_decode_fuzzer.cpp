// Fuzzer: arbitrary bytes as a chunk for trz::decode and trz::describe.
//
// Corrects the head's magic, version and checksum first, so that decoding gets past them. All
// instruction sets of this machine must return the same status and the same values, and memory use
// must stay within the codec's documented limit. Crashes and sanitizer reports are also failures.

#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "fuzz/fuzz_support.hpp"
#include "trz/chunk_header.hpp"
#include "trz/joined.hpp"
#include "trz/refined.hpp"
#include "trz/trz.hpp"

using namespace tailrace;

namespace {

constexpr std::size_t kValueBytesMax = std::size_t{1} << 19;
/// Limit for most runs: a head of a few bytes may request so many values that they dominate the
/// cost.
constexpr std::size_t kShortBytesMax = std::size_t{1} << 12;

void put_head_right(std::span<std::byte> chunk) {
  fuzz::put_trz_magic(chunk.data());
  trz::seal({reinterpret_cast<std::uint8_t*>(chunk.data()), chunk.size()});
}

/// Correct the heads of the parts of a joined chunk.
void put_parts_right(std::span<std::byte> chunk) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(chunk.data());
  trz::ChunkReader in({bytes, chunk.size()});
  trz::ChunkHead head;
  trz::JoinedParts parts;
  if (read_head_alone(in, head) != trz::HeadFailure::none || head.method != trz::Method::joined ||
      !read_parts(in, head, parts)) {
    return;
  }
  for (const trz::JoinedPart& part : parts.all()) {
    if (part.chunk.size() < trz::kChecksummedFrom) continue;
    const auto begin = static_cast<std::size_t>(part.chunk.data() - bytes);
    put_head_right(chunk.subspan(begin, part.chunk.size()));
  }
}

std::span<std::byte> with_right_head(std::span<const std::uint8_t> data) {
  static fuzz::Room room;
  const std::span<std::byte> chunk = room.copy_of(data);
  if (chunk.size() < trz::kChecksummedFrom) return chunk;
  // Find inner chunks from the outermost inwards, since a head gives the position of the next one.
  // Seal them from the innermost outwards, since a checksum covers the inner chunks.
  std::array<std::span<std::byte>, trz::kCoarseViewsMax + 1> nested;
  std::size_t n = 0;
  nested[n++] = chunk;
  fuzz::put_trz_magic(chunk.data());
  while (n < nested.size()) {
    const auto inner = trz::coarse_view(chunk, static_cast<int>(n));
    const bool whole = inner && inner->n_bytes >= trz::kChecksummedFrom &&
                       inner->begin <= chunk.size() &&
                       inner->n_bytes <= chunk.size() - inner->begin;
    if (!whole) break;
    nested[n] = chunk.subspan(inner->begin, inner->n_bytes);
    fuzz::put_trz_magic(nested[n].data());
    ++n;
  }
  if (n == 1) put_parts_right(chunk);
  trz::seal_refined({reinterpret_cast<std::uint8_t*>(chunk.data()), chunk.size()});
  for (; n > 0; --n) {
    trz::seal({reinterpret_cast<std::uint8_t*>(nested[n - 1].data()), nested[n - 1].size()});
  }
  return chunk;
}

struct Outcome {
  Code code = Code::ok;
  std::span<std::byte> values;  ///< Empty on failure.
};

/// Decode into a buffer with distinct initial contents per decoder, so that unwritten bytes differ.
Outcome decode_with(trz::Workspace& workspace, std::span<const std::byte> chunk,
                    std::size_t n_bytes, const trz::Book* book, bool prefix = false) {
  // The last room is for prefixes, since callers compare the values of complete chunks.
  static fuzz::Room rooms[4];
  static fuzz::Count count("decodings");
  const auto isa = static_cast<std::size_t>(workspace.isa());
  Outcome outcome;
  outcome.values = rooms[prefix ? 3 : isa].filled(n_bytes, static_cast<unsigned char>(0x5A + isa));
  outcome.code = prefix ? trz::decode_prefix(chunk, outcome.values, book, workspace).code()
                        : trz::decode(chunk, outcome.values, book, workspace).code();
  if (outcome.code != Code::ok) outcome.values = {};
  count.one_more();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes < 1) return 0;
  const std::uint8_t options = data[0];
  const std::span<const std::byte> chunk = with_right_head({data + 1, n_bytes - 1});
  const Result<trz::ChunkSummary> summary = trz::describe(chunk);
  // Depends only on the bytes, so that a saved input reproduces it; one chunk in 16.
  const bool rare =
      chunk.size() > trz::kChecksumAt && (chunk[trz::kChecksumAt] >> 4) == std::byte{0};
  std::size_t n_values_bytes = options;
  if (summary.ok()) {
    const std::size_t element_bytes = dtype_bytes(summary->dtype);
    const std::size_t most = rare ? kValueBytesMax : kShortBytesMax;
    if (summary->n_values > most / element_bytes) return 0;
    n_values_bytes = static_cast<std::size_t>(summary->n_values) * element_bytes;
    if ((options & 7) == 7) n_values_bytes += options >> 3;  // A wrong size in some runs.
  }
  const trz::Book* book = (options & 1) != 0 ? &fuzz::shared_book() : nullptr;
  // The size of a new workspace afterwards is the memory that this chunk needed.
  std::optional<trz::Workspace> fresh;
  if (rare) fresh.emplace(trz::Isa::plain);
  trz::Workspace& workspace = fresh ? *fresh : fuzz::kept_workspace(trz::Isa::plain);
  const Outcome plain = decode_with(workspace, chunk, n_values_bytes, book);
  FUZZ_CHECK(!fresh ||
             fresh->held_bytes() <= 16 * (n_values_bytes + chunk.size()) + (std::size_t{1} << 20));
  const std::optional<std::size_t> first = trz::bound_prefix(chunk, HUGE_VAL);
  if (first && *first <= chunk.size()) {
    decode_with(workspace, chunk.first(*first), n_values_bytes, book, true);
  }
  for (const trz::Isa isa : {trz::Isa::avx2, trz::Isa::avx512}) {
    if (!trz::isa_supported(isa)) continue;
    const Outcome other = decode_with(fuzz::kept_workspace(isa), chunk, n_values_bytes, book);
    FUZZ_CHECK(other.code == plain.code);
    FUZZ_CHECK(
        fuzz::same_but_nan(summary.ok() ? summary->dtype : DType::u8, plain.values, other.values));
  }
  return 0;
}
