// Blocks, chunk shapes, bounds and the checksum.

#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "container/input_file.hpp"
#include "synthetic_nyx.hpp"

namespace tailrace::bench {
namespace {

constexpr std::uint64_t kDefaultEdge = 128;
constexpr std::uint64_t kDefaultChunkEdge = 64;
/// Chunks of fields that the default chunk shape does not divide are made this small.
constexpr std::uint64_t kLargestChunkBytes = 8U << 20;

/// The rank's coordinates in the grid of ranks, last dimension fastest.
Shape rank_position(int rank, const Shape& grid) {
  return ChunkGrid{grid, Shape(grid.size(), 1)}.coordinates(static_cast<std::uint64_t>(rank));
}

bool divides(const Shape& chunk, const Shape& block) {
  if (chunk.size() != block.size()) return false;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (block[d] % chunk[d] != 0) return false;
  }
  return true;
}

/// The block halved along its slowest even dimensions until it is small enough.
Shape chunk_of_block(Shape block, std::uint64_t element_bytes) {
  for (std::size_t d = 0; d < block.size(); ++d) {
    while (n_elements(block) * element_bytes > kLargestChunkBytes && block[d] % 2 == 0)
      block[d] /= 2;
  }
  return block;
}

/// Give the field its place in the global shape, and its chunks.
Status place_field(const Comm& comm, const BenchOptions& options, const Shape& block,
                   BenchField& field) {
  const Shape grid = rank_grid(comm.n_ranks(), block.size());
  const Shape position = rank_position(comm.rank(), grid);
  field.box.count = block;
  for (std::size_t d = 0; d < block.size(); ++d) {
    field.shape.push_back(grid[d] * block[d]);
    field.box.start.push_back(position[d] * block[d]);
  }
  field.values = Buffer(field.block_bytes());
  if (!field.values.allocated()) return Status(Code::out_of_memory, "no memory for a block");
  const bool given = options.chunk_shape && options.chunk_shape->size() == block.size();
  const Shape wanted = given ? *options.chunk_shape : Shape(block.size(), kDefaultChunkEdge);
  if (divides(wanted, block)) {
    field.chunk_shape = wanted;
    return Status();
  }
  if (given) {
    return Status(Code::invalid_argument,
                  fmt::format("--chunk: {} does not divide a rank's block {} of field \"{}\"",
                              shape_text(wanted), shape_text(block), field.path));
  }
  field.chunk_shape = chunk_of_block(block, dtype_bytes(field.dtype));
  return Status();
}

/// The block of one rank: --cells, or a cube of --size-per-rank over `n_fields` fields.
Shape block_of(const BenchOptions& options, std::size_t n_fields, std::size_t n_dimensions,
               std::uint64_t element_bytes) {
  if (options.bytes_per_rank && n_dimensions > 0) {
    const double cells = static_cast<double>(*options.bytes_per_rank) /
                         static_cast<double>(n_fields * element_bytes);
    const double edge = std::pow(cells, 1.0 / static_cast<double>(n_dimensions));
    // Whole default chunks, or a power of two below one of them.
    auto rounded =
        static_cast<std::uint64_t>(std::lround(edge / kDefaultChunkEdge)) * kDefaultChunkEdge;
    if (rounded == 0) {
      for (rounded = 1; static_cast<double>(2 * rounded) <= edge;) rounded *= 2;
    }
    return Shape(n_dimensions, rounded);
  }
  return options.cells;
}

Status make_synthetic(const Comm& comm, const BenchOptions& options, Workload& work) {
  Shape block = block_of(options, synthetic_nyx_names.size(), 3, sizeof(float));
  if (block.empty()) block = Shape(3, kDefaultEdge);
  if (block.size() != 3) {
    return Status(Code::invalid_argument, "--cells: synthetic fields have three dimensions");
  }
  work.source = fmt::format(
      "synthetic nyx, seed {}: Gaussian random fields with a cold-dark-matter "
      "spectrum, log-normal densities",
      options.seed);
  const auto n_ranks = static_cast<std::uint64_t>(comm.n_ranks());
  const std::vector<std::vector<float>> fields =
      make_synthetic_nyx(block, options.seed * n_ranks + static_cast<std::uint64_t>(comm.rank()));
  for (std::size_t f = 0; f < fields.size(); ++f) {
    BenchField field;
    field.path = std::string("/") + synthetic_nyx_names[f];
    TAILRACE_TRY(place_field(comm, options, block, field));
    std::memcpy(field.values.data(), fields[f].data(), field.block_bytes());
    work.fields.push_back(std::move(field));
  }
  return Status();
}

/// Fill the block with copies of the input field side by side, shifted around by an amount of the
/// rank's own, so that ranks do not encode equal chunks. In periodic data no seam shows.
void tile(const Buffer& whole, const Shape& whole_shape, int rank, BenchField& field) {
  const std::size_t element_bytes = dtype_bytes(field.dtype);
  const std::size_t last = whole_shape.size() - 1;
  Shape shift;
  for (std::size_t d = 0; d <= last; ++d) {
    // Multiples of the golden section's share leave the ranks far apart in every dimension.
    const double share = 0.381966 * rank * static_cast<double>(d + 1);
    shift.push_back(static_cast<std::uint64_t>((share - std::floor(share)) *
                                               static_cast<double>(whole_shape[d])));
  }
  std::byte* target = field.values.data();
  Box rows = whole_box(field.box.count);
  rows.count[last] = 1;
  for_each_position(rows, [&](const Shape& at) {
    std::uint64_t row = 0;
    for (std::size_t d = 0; d < last; ++d) {
      row = row * whole_shape[d] + (at[d] + shift[d]) % whole_shape[d];
    }
    const std::byte* line = whole.data() + row * whole_shape[last] * element_bytes;
    std::uint64_t from = shift[last];
    for (std::uint64_t done = 0; done < field.box.count[last];) {
      const std::uint64_t n = std::min(whole_shape[last] - from, field.box.count[last] - done);
      std::memcpy(target, line + from * element_bytes, n * element_bytes);
      target += n * element_bytes;
      done += n;
      from = 0;
    }
  });
}

/// Why a field of the input cannot be part of the workload; empty if it can.
std::string unfit(const InputField& field) {
  if (!is_floating(field.dtype)) return "no floating point numbers";
  if (field.coordinate) return "a coordinate";
  if (field.shape.empty() || n_elements(field.shape) < 4096) return "too small";
  if (field.fill_value) return "has fill values";
  return "";
}

Status make_from_input(const Comm& comm, const BenchOptions& options, Workload& work) {
  Result<std::unique_ptr<InputFile>> opened = InputFile::open(options.input);
  if (!opened.ok()) return opened.status();
  InputFile& input = **opened;
  const auto n_fit = static_cast<std::size_t>(
      std::count_if(input.fields().begin(), input.fields().end(),
                    [](const InputField& field) { return unfit(field).empty(); }));
  for (std::size_t f = 0; f < input.fields().size(); ++f) {
    const InputField& found = input.fields()[f];
    std::string reason = unfit(found);
    Buffer whole;
    if (reason.empty()) {
      whole = Buffer(n_elements(found.shape) * dtype_bytes(found.dtype));
      if (!whole.allocated()) return Status(Code::out_of_memory, "no memory for " + found.path);
      TAILRACE_TRY(input.read(f, whole_box(found.shape), whole.bytes()));
      const ValueRange range = value_range(found.dtype, whole.bytes());
      if (range.n_nan + range.n_inf > 0) reason = "has values that are not finite";
      if (range.constant()) reason = "all values are equal";
    }
    if (!reason.empty()) {
      work.remarks.push_back(fmt::format("left out {}: {}", found.path, reason));
      continue;
    }
    Shape block = block_of(options, n_fit, found.shape.size(), dtype_bytes(found.dtype));
    if (block.size() != found.shape.size()) block = found.shape;
    BenchField field;
    field.path = found.path;
    field.dtype = found.dtype;
    TAILRACE_TRY(place_field(comm, options, block, field));
    tile(whole, found.shape, comm.rank(), field);
    work.fields.push_back(std::move(field));
  }
  work.source = fmt::format(
      "{}, tiled: each rank's block is the file's field repeated, shifted "
      "around by an amount of its own",
      std::filesystem::path(options.input).filename().string());
  if (!work.fields.empty()) return Status();
  return Status(Code::invalid_argument, options.input + " has no field that bench can use");
}

/// Collective: one allreduce.
void resolve_bounds(Comm& comm, const ErrorBound& bound, Workload& work) {
  std::vector<double> extremes;  // least and minus greatest, so that one minimum finds both
  for (const BenchField& field : work.fields) {
    const ValueRange range = value_range(field.dtype, field.values.bytes());
    extremes.push_back(range.least);
    extremes.push_back(-range.greatest);
  }
  comm.allreduce(std::span<double>(extremes), Reduction::min);
  for (std::size_t f = 0; f < work.fields.size(); ++f) {
    work.fields[f].absolute_bound = absolute_bound(bound, extremes[2 * f], -extremes[2 * f + 1]);
  }
}

/// FNV-1a over 64-bit words, which is a byte-wise one's quality at an eighth of its cost.
std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001B3U;
  }
  return hash;
}

/// Collective: one gather and one allreduce.
void add_up(Comm& comm, Workload& work) {
  constexpr std::uint64_t kBasis = 0xCBF29CE484222325U;
  std::uint64_t mine = kBasis;
  for (const BenchField& field : work.fields) {
    mine = checksum_of(field.values.bytes(), mine);
    work.raw_bytes += field.block_bytes();
    work.chunks_per_rank += field.block_bytes() / field.chunk_bytes();
  }
  work.raw_bytes *= static_cast<std::uint64_t>(comm.n_ranks());
  const std::vector<Bytes> all = comm.gather(std::as_bytes(std::span(&mine, 1)), 0);
  std::uint64_t total = 0;
  if (comm.is_root()) {
    total = kBasis;
    for (const Bytes& one : all) total = checksum_of(one, total);
  }
  comm.allreduce(std::span<std::uint64_t>(&total, 1), Reduction::max);
  work.checksum = total;
}

}  // namespace

Shape rank_grid(int n_ranks, std::size_t n_dimensions) {
  Shape grid(n_dimensions, 1);
  std::vector<std::uint64_t> factors;
  auto rest = static_cast<std::uint64_t>(n_ranks);
  for (std::uint64_t p = 2; rest > 1; ++p) {
    for (; rest % p == 0; rest /= p) factors.push_back(p);
  }
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    *std::min_element(grid.begin(), grid.end()) *= *factor;
  }
  return grid;
}

Result<Workload> make_workload(Comm& comm, const BenchOptions& options) {
  Workload work;
  TAILRACE_TRY(comm.agree(options.input.empty() ? make_synthetic(comm, options, work)
                                                : make_from_input(comm, options, work)));
  resolve_bounds(comm, options.bound, work);
  add_up(comm, work);
  return work;
}

}  // namespace tailrace::bench
