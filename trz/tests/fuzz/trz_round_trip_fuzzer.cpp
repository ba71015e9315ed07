// Fuzzer: arbitrary values, type, shape, bound and settings through trz::encode and trz::decode.
//
// The input's first bytes are the type and the settings, the others the values (repeated as needed
// for the shape). Checks the bound in exact arithmetic, the documented sizes, and that all
// instruction sets of this machine produce the same bytes.

#include <cmath>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_support.hpp"
#include "support/trz_cases.hpp"

using namespace tailrace;

namespace {

constexpr std::uint64_t kValuesMax = 1 << 12;

trz_cases::Case case_of(fuzz::Input& in) {
  trz_cases::Case chunk;
  trz::ChunkType& type = chunk.type;
  type.dtype = static_cast<DType>(in.below(10));
  type.kind = static_cast<trz::BoundKind>(in.below(is_floating(type.dtype) ? 3 : 2));
  type.bound = std::fabs(in.number<double>());
  if (std::isnan(type.bound)) type.bound = 0;
  const unsigned flags = in.number<std::uint8_t>();
  if ((flags & 1) != 0) type.fill_value = in.number<double>();
  if ((flags & 2) != 0) type.book = &fuzz::shared_book();
  chunk.settings.preset = static_cast<trz::Preset>(in.below(4));
  chunk.settings.predictor = static_cast<trz::Predictor>(in.below(4));
  chunk.settings.dimensions = static_cast<int>(in.below(5));
  chunk.settings.spline = static_cast<trz::Spline>(in.below(4));
  chunk.settings.last_axis = static_cast<int>(in.below(5)) - 1;
  const unsigned knobs = in.below(3 * (trz::kCoarseViewsMax + 1));
  chunk.settings.lossless_stage = static_cast<trz::Choice>(knobs % 3);
  chunk.settings.coarse_views = static_cast<int>(knobs / 3);
  const unsigned n_planes = in.below(trz::kBitPlanesMax + 1);
  if (chunk.settings.coarse_views == 0) chunk.settings.bit_planes = static_cast<int>(n_planes);
  const unsigned rank = in.below(7);
  std::uint64_t left = kValuesMax;
  for (unsigned axis = 0; axis < rank; ++axis) {
    const std::uint64_t extent = std::min<std::uint64_t>(in.number<std::uint16_t>() % 1025, left);
    type.shape.push_back(extent);
    if (extent > 1) left /= extent;
  }
  return chunk;
}

void take_values(trz_cases::Case& chunk, std::span<const std::uint8_t> bytes) {
  const auto n_values = static_cast<std::size_t>(n_elements(chunk.type.shape));
  chunk.values.assign(n_values * dtype_bytes(chunk.type.dtype), std::byte{0});
  for (std::size_t at = 0; at < chunk.values.size() && !bytes.empty(); at += bytes.size()) {
    std::memcpy(chunk.values.data() + at, bytes.data(),
                std::min(bytes.size(), chunk.values.size() - at));
  }
}

/// Check that every prefix of a chunk decodes to values within the bound requested for it.
void check_prefixes(const trz_cases::Case& chunk, std::span<const std::byte> encoded,
                    trz::Workspace& workspace) {
  trz::ChunkType type = chunk.type;
  for (unsigned level = 1; level <= trz::kBitPlanesMax; ++level) {
    type.bound = std::ldexp(chunk.type.bound, static_cast<int>(level));
    const auto n = trz::bound_prefix(encoded, type.bound);
    if (!n) continue;
    FUZZ_CHECK(*n < encoded.size());
    const std::vector<std::byte> prefix(encoded.begin(),
                                        encoded.begin() + static_cast<std::ptrdiff_t>(*n));
    std::vector<std::byte> decoded(chunk.values.size(), std::byte{0xA5});
    FUZZ_CHECK(trz::decode_prefix(prefix, decoded, type.book, workspace).ok());
    FUZZ_CHECK(trz_cases::count_violations(type, chunk.values, decoded) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  fuzz::Input in(data, n_bytes);
  trz_cases::Case chunk = case_of(in);
  take_values(chunk, in.rest());
  std::vector<std::byte> first;
  for (const trz::Isa isa : {trz::Isa::plain, trz::Isa::avx2, trz::Isa::avx512}) {
    if (!trz::isa_supported(isa)) continue;
    trz::Workspace& workspace = fuzz::kept_workspace(isa);
    std::vector<std::byte> encoded(trz::encoded_bytes_max(chunk.values.size()));
    const Result<std::size_t> n =
        trz::encode(chunk.type, chunk.settings, chunk.values, encoded, workspace);
    FUZZ_CHECK(n.ok());
    FUZZ_CHECK(*n <= encoded.size());
    encoded.resize(*n);
    encoded.shrink_to_fit();
    std::vector<std::byte> decoded(chunk.values.size(), std::byte{0xA5});
    FUZZ_CHECK(trz::decode(encoded, decoded, chunk.type.book, workspace).ok());
    FUZZ_CHECK(trz_cases::count_violations(chunk.type, chunk.values, decoded) == 0);
    FUZZ_CHECK(trz::describe(encoded).ok());
    check_prefixes(chunk, encoded, workspace);
    if (isa == trz::Isa::plain) first = encoded;
    FUZZ_CHECK(encoded == first);
  }
  return 0;
}
