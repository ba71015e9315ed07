// Bit planes that refine the values of a coarser chunk: choice of patches, writing, and reading.

#include "trz/refined.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "trz/encode_work.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/kernels/refined_kernels.hpp"

namespace tailrace::trz {
namespace {

/// Maximum size of a part, so that no sum overflows.
constexpr std::uint64_t kPartBytesMax = std::uint64_t{1} << 56;
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
std::size_t plane_bytes_of(std::size_t n_values) { return (n_values + 7) / 8; }

std::uint32_t part_checksum(std::span<const std::uint8_t> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

/// Value that the decoder computes (refined_kernels.hpp) if it knows all but the last `n_left` bits
/// of the cell.
template <class T>
T value_of(T coarser, std::int32_t cell, int n_left, const CellPlan<T>& plan) {
  const std::int32_t known = cell >> n_left;
  const std::int32_t c = ((2 * known + 1) << n_left) - (1 << plan.n_planes);
  return coarser + static_cast<T>(c) * plan.half_cell;
}

template <class T>
BitsOf<T> bits_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

/// True if a value is within the bounds of all levels; a fill value: if it is equal at all levels.
template <class T>
bool holds(T x, T coarser, std::int32_t cell, const CellPlan<T>& plan) {
  for (int n_left = plan.n_planes; n_left >= 0; --n_left) {
    const T y = value_of(coarser, cell, n_left, plan);
    if (!(std::fabs(x - y) < plan.bound * static_cast<T>(1 << n_left))) return false;
    if (x == plan.fill && bits_of(x) != bits_of(y)) return false;
  }
  return true;
}

/// Compute each value's cell, and mark patches for values that the cell does not restore. An
/// infinity or a NaN that the coarser chunk restores needs no patch.
template <class T>
void find_cells(const T* values, const T* coarser, std::size_t n, const CellPlan<T>& plan,
                std::uint8_t* cells, PatchMap& patches, Isa isa) {
  const RefinedKernelsOf<T>& kernels = refined_kernels(isa).of<T>();
  for (std::size_t start = 0; start < n; start += kCellBlock) {
    const std::size_t n_block = std::min(kCellBlock, n - start);
    if (kernels.find_cells(values + start, coarser + start, n_block, plan, cells + start)) continue;
    for (std::size_t i = start; i < start + n_block; ++i) {
      const bool finite = std::isfinite(coarser[i]);
      if (finite && holds(values[i], coarser[i], cells[i], plan)) continue;
      cells[i] = 0;
      if (finite || bits_of(values[i]) != bits_of(coarser[i])) patches.mark(i);
    }
  }
}

template <class T>
bool read_scale(ChunkReader& in, RefinedParts& parts) {
  const T bound = in.number<T>();
  const T half_cell = in.number<T>();
  parts.bound = static_cast<double>(bound);
  parts.half_cell = static_cast<double>(half_cell);
  return bound > 0 && std::isfinite(bound) && half_cell > 0 && std::isfinite(half_cell);
}

/// True if the checksum at `at` matches the bytes from `begin` to there.
bool checksum_fits(std::span<const std::uint8_t> chunk, std::size_t begin, std::size_t at) {
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, chunk.data() + at, sizeof checksum);
  return checksum == part_checksum(chunk.subspan(begin, at - begin));
}

void put_checksum(std::span<std::uint8_t> chunk, std::size_t begin, std::size_t at) {
  const std::uint32_t checksum = part_checksum(chunk.subspan(begin, at - begin));
  std::memcpy(chunk.data() + at, &checksum, sizeof checksum);
}

template <class T>
DecodeFailure decode_as(std::span<const std::uint8_t> prefix, const RefinedParts& parts, int n_read,
                        std::span<std::byte> values, const DecodeCoarser& decode_coarser,
                        Workspace& workspace) {
  const std::size_t n = parts.head.n_values;
  ChunkReader in(prefix.subspan(parts.inner_at, parts.n_inner_bytes));
  ChunkHead head;
  const HeadFailure head_failure = read_bare_head(in, head);
  if (head_failure != HeadFailure::none) return failure_within(head_failure);
  if (head.n_values != n || head.dtype != parts.head.dtype) return DecodeFailure::corrupt;
  DecodeFailure failure = decode_coarser(in, head, values);
  if (failure != DecodeFailure::none) return failure;
  if (!in.at_end()) return DecodeFailure::corrupt;

  const std::size_t n_plane_bytes = plane_bytes_of(n);
  const std::size_t n_bytes = n_plane_bytes * static_cast<std::size_t>(n_read);
  auto* planes = workspace.area<std::uint8_t>(Slot::refined, n_bytes + kSlack);
  if (planes == nullptr) return DecodeFailure::memory_out;
  for (int plane = 0; plane < n_read; ++plane) {
    const std::size_t begin = parts.end_of(plane);
    const std::size_t end = parts.end_of(plane + 1) - kChecksumBytes;
    if (!checksum_fits(prefix, begin, end)) return DecodeFailure::corrupt;
    ChunkReader section(prefix.subspan(begin, end - begin));
    std::uint8_t* const to = planes + static_cast<std::size_t>(plane) * n_plane_bytes;
    if (!take_section(section, {to, n_plane_bytes}, nullptr, workspace) || !section.at_end()) {
      return DecodeFailure::corrupt;
    }
  }
  auto* const refined = reinterpret_cast<T*>(values.data());
  if (n_read > 0) {
    refined_kernels(workspace.isa())
        .of<T>()
        .refine(refined, n, parts.n_planes, n_read, static_cast<T>(parts.half_cell), planes);
  }
  ChunkReader patches(prefix.subspan(parts.patches_at(), parts.n_patch_bytes));
  bool memory_out = false;
  auto* const bits = reinterpret_cast<BitsOf<T>*>(values.data());
  if (!apply_patches(patches, bits, n, workspace, &memory_out)) {
    return memory_out ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }
  return patches.at_end() ? DecodeFailure::none : DecodeFailure::corrupt;
}

}  // namespace

std::size_t RefinedParts::end_of(int n) const {
  std::size_t end = checksum_at() + kChecksumBytes;
  for (int plane = 0; plane < n; ++plane) {
    end += n_plane_bytes[static_cast<std::size_t>(plane)] + kChecksumBytes;
  }
  return end;
}

double RefinedParts::bound_of(int n) const { return std::ldexp(bound, n_planes - n); }

std::optional<RefinedParts> read_refined_parts(std::span<const std::uint8_t> beginning) {
  ChunkReader in(beginning);
  RefinedParts parts;
  if (read_head_alone(in, parts.head) != HeadFailure::none ||
      parts.head.method != Method::refined || !is_floating(parts.head.dtype) ||
      parts.head.n_values == 0) {
    return std::nullopt;
  }
  parts.n_planes = in.number<std::uint8_t>();
  if (parts.n_planes < 1 || parts.n_planes > kBitPlanesMax) return std::nullopt;
  const bool single = parts.head.dtype == DType::f32;
  if (!(single ? read_scale<float>(in, parts) : read_scale<double>(in, parts))) return std::nullopt;
  bool fits = true;
  const auto length = [&] {
    const std::uint64_t n_bytes = in.varint();
    fits = fits && n_bytes <= kPartBytesMax;
    return static_cast<std::size_t>(n_bytes);
  };
  parts.n_inner_bytes = length();
  parts.n_patch_bytes = length();
  for (int plane = 0; plane < parts.n_planes; ++plane) {
    parts.n_plane_bytes[static_cast<std::size_t>(plane)] = length();
  }
  if (in.failed() || !fits) return std::nullopt;
  parts.inner_at = beginning.size() - in.rest().size();
  return parts;
}

DecodeFailure decode_refined(std::span<const std::uint8_t> prefix, PlanesRead planes,
                             std::span<std::byte> values, const DecodeCoarser& decode_coarser,
                             Workspace& workspace) {
  const std::optional<RefinedParts> parts = read_refined_parts(prefix);
  if (!parts) return DecodeFailure::corrupt;
  int n_planes = planes == PlanesRead::all ? parts->n_planes : 0;
  while (n_planes < parts->n_planes && parts->end_of(n_planes) < prefix.size()) ++n_planes;
  if (parts->end_of(n_planes) != prefix.size() ||
      !checksum_fits(prefix, kChecksummedFrom, parts->checksum_at())) {
    return DecodeFailure::corrupt;
  }
  return parts->head.dtype == DType::f32
             ? decode_as<float>(prefix, *parts, n_planes, values, decode_coarser, workspace)
             : decode_as<double>(prefix, *parts, n_planes, values, decode_coarser, workspace);
}

bool seal_refined(std::span<std::uint8_t> chunk) {
  const std::optional<RefinedParts> parts = read_refined_parts(chunk);
  if (!parts || parts->end_of(parts->n_planes) != chunk.size()) return false;
  put_checksum(chunk, kChecksummedFrom, parts->checksum_at());
  for (int plane = 0; plane < parts->n_planes; ++plane) {
    put_checksum(chunk, parts->end_of(plane), parts->end_of(plane + 1) - kChecksumBytes);
  }
  return true;
}

template <class T>
Attempt encode_refined(Work& work, const Lattice<T>& lattice, const T* fill,
                       std::span<const std::uint8_t> coarser) {
  Workspace& workspace = work.workspace;
  const std::size_t n = work.n_values;
  const int n_planes = work.settings.bit_planes;
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  const std::size_t n_plane_bytes = plane_bytes_of(n);
  const std::size_t n_planes_bytes = n_plane_bytes * static_cast<std::size_t>(n_planes);
  auto* decoded = workspace.area<T>(Slot::nested, n + kSlack);
  auto* cells = workspace.area<std::uint8_t>(Slot::refined, 8 * n_plane_bytes + n_planes_bytes);
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  if (decoded == nullptr || cells == nullptr || bits == nullptr) return out_of_memory();
  const Status done = decode(std::as_bytes(coarser), std::as_writable_bytes(std::span(decoded, n)),
                             work.type.book, workspace);
  TAILRACE_CHECK(done.code() != Code::corrupt);
  if (!done.ok()) return out_of_memory();

  PatchMap patches(bits, n);
  const RefinedKernels& kernels = refined_kernels(workspace.isa());
  const CellPlan<T> plan{n_planes, lattice.step * T(0.5), lattice.inverse_step, lattice.bound,
                         fill != nullptr ? *fill : std::numeric_limits<T>::quiet_NaN()};
  find_cells(values, decoded, n, plan, cells, patches, workspace.isa());
  std::fill(cells + n, cells + 8 * n_plane_bytes, std::uint8_t{0});
  std::uint8_t* const planes = cells + 8 * n_plane_bytes;
  kernels.pack(cells, n, n_planes, planes);
  const T* patched = values;
  if (work.guards != nullptr) {
    kernels.of<T>().refine(decoded, n, n_planes, n_planes, plan.half_cell, planes);
    patched = keep_guards(work, values, fill, decoded, patches);
  }

  // The lengths of the parts precede the parts but are written last.
  constexpr std::size_t kBeforeMax = 2 * kHeadBytesMax + std::size_t{10} * kBitPlanesMax;
  const std::size_t n_patches_max = work.guards != nullptr ? n : patches.count();
  const std::size_t room =
      coarser.size() + patches_bytes_max(n, n_patches_max, sizeof(T)) + kChecksumBytes +
      static_cast<std::size_t>(n_planes) * (section_bytes_max(n_plane_bytes) + kChecksumBytes);
  auto* trial = workspace.area<std::uint8_t>(Slot::trial, kBeforeMax + room + kSlack);
  if (trial == nullptr) return out_of_memory();
  ChunkWriter out({trial + kBeforeMax, room});
  const std::span<const std::uint8_t> inner = coarser.subspan(kChecksummedFrom);
  out.bytes(inner.data(), inner.size());
  const SectionPlan sections{sections_for(work, 1).zstd, 1, nullptr};
  const auto* patched_bits = reinterpret_cast<const BitsOf<T>*>(patched);
  if (!write_patches(patched_bits, patches, sections, out, workspace)) {
    return out_of_memory();
  }
  const std::size_t n_patch_bytes = out.n_written() - inner.size();
  out.number(std::uint32_t{0});
  std::array<std::size_t, kBitPlanesMax> lengths{};
  for (int plane = 0; plane < n_planes; ++plane) {
    const std::size_t begin = out.n_written();
    const std::uint8_t* const from = planes + static_cast<std::size_t>(plane) * n_plane_bytes;
    if (!add_section({from, n_plane_bytes}, {ZstdUse::never, 1, nullptr}, out, workspace)) {
      return out_of_memory();
    }
    lengths[static_cast<std::size_t>(plane)] = out.n_written() - begin;
    out.number(std::uint32_t{0});
  }

  std::uint8_t before[kBeforeMax];
  ChunkWriter head(before);
  write_head(head_of(work, Method::refined, work.head.extents), head);
  head.number(static_cast<std::uint8_t>(n_planes));
  head.number(lattice.bound);
  head.number(plan.half_cell);
  head.varint(inner.size());
  head.varint(n_patch_bytes);
  for (int plane = 0; plane < n_planes; ++plane) {
    head.varint(lengths[static_cast<std::size_t>(plane)]);
  }
  std::uint8_t* const begin = trial + kBeforeMax - head.n_written();
  std::copy_n(before, head.n_written(), begin);
  const std::span<std::uint8_t> chunk(begin, head.n_written() + out.n_written());
  TAILRACE_CHECK(!out.failed() && seal_refined(chunk));
  return {chunk, false, patches.count()};
}

template Attempt encode_refined(Work&, const Lattice<float>&, const float*,
                                std::span<const std::uint8_t>);
template Attempt encode_refined(Work&, const Lattice<double>&, const double*,
                                std::span<const std::uint8_t>);

}  // namespace tailrace::trz
