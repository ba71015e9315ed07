// Blocks, chunk shapes, bounds and the checksum.

#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/options.hpp"
#include "workload_fit.hpp"
#include "workload_sets.hpp"

namespace tailrace::bench {
namespace {

constexpr std::uint64_t kDefaultChunkEdge = 64;
/// Chunk size of fields that the default chunk shape does not fit. It equals a default chunk of
/// f32, so that a rank has several chunks.
constexpr std::uint64_t kLargestChunkBytes = 1U << 20;

/// Coordinates of the rank in the grid of ranks, last dimension fastest.
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

/// The block, halved along its slowest even dimensions until it is small enough.
Shape chunk_of_block(Shape block, std::uint64_t element_bytes) {
  for (std::size_t d = 0; d < block.size(); ++d) {
    while (n_elements(block) * element_bytes > kLargestChunkBytes && block[d] % 2 == 0)
      block[d] /= 2;
  }
  return block;
}

/// Compute the field's position in the global shape, and its chunks.
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
  if (!field.values.allocated())
    return Status(Code::out_of_memory, "not enough memory for a block");
  const bool given = options.chunk_shape && options.chunk_shape->size() == block.size();
  const Shape wanted = given ? *options.chunk_shape : Shape(3, kDefaultChunkEdge);
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

/// Origin of a block's values, for the label.
enum class Fit : std::uint8_t { made, whole, tiled, refined };

/// Fill this rank's block of a field. Not collective.
Status add_field(const Comm& comm, const BenchOptions& options, SourceField&& source,
                 Workload& work, Fit& fit) {
  Shape block = source.is_block ? source.shape
                                : wanted_block(options, source.n_fields, source.shape,
                                               dtype_bytes(source.dtype));
  if (block.size() != source.shape.size()) block = source.shape;
  BenchField field;
  field.path = source.path;
  field.dtype = source.dtype;
  field.fill_value = source.fill_value;
  TAILRACE_TRY(place_field(comm, options, block, field));
  bool larger = false;
  for (std::size_t d = 0; d < block.size(); ++d) larger = larger || block[d] > source.shape[d];
  const Shape shift = shift_of(comm.rank(), source.shape);
  if (source.is_block) {
    field.values = std::move(source.values);
  } else if (larger && options.refine) {
    if (field.fill_value) {
      return Status(Code::unsupported, "--fit refine: \"" + field.path +
                                           "\" has fill values, which cannot be interpolated");
    }
    field.values = refine(field.dtype, source.values.bytes(), source.shape, shift, block);
    if (!field.values.allocated())
      return Status(Code::out_of_memory, "not enough memory for a block");
    fit = Fit::refined;
  } else {
    tile(source.values.bytes(), source.shape, dtype_bytes(field.dtype), shift, block,
         field.values.bytes());
    if (fit != Fit::refined) fit = larger || fit == Fit::tiled ? Fit::tiled : Fit::whole;
  }
  work.fields.push_back(std::move(field));
  return Status();
}

const char* fit_label(Fit fit) {
  switch (fit) {
    case Fit::made: return "";
    case Fit::whole:
      return "; tiled over the ranks: each one's block is the field, shifted around by an amount "
             "of "
             "its own";
    case Fit::tiled:
      return "; tiled: each rank's block is the field repeated, shifted around by an amount of its "
             "own";
    case Fit::refined:
      return "; refined: linear interpolation between the field's values (smoother than real), "
             "shifted around by an amount of each rank's own";
  }
  return "";
}

/// Find the range of every field. Collective: one allreduce.
void find_ranges(Comm& comm, Workload& work) {
  std::vector<double> extremes;  // least and minus greatest, so that one minimum reduces both
  for (const BenchField& field : work.fields) {
    const ValueRange range = value_range(field.dtype, field.values.bytes(), field.fill_value);
    extremes.push_back(range.least);
    extremes.push_back(-range.greatest);
  }
  comm.allreduce(std::span<double>(extremes), Reduction::min);
  for (std::size_t f = 0; f < work.fields.size(); ++f) {
    work.fields[f].least = extremes[2 * f];
    work.fields[f].greatest = -extremes[2 * f + 1];
  }
}

/// FNV-1a over 64-bit words: the quality of the byte-wise hash at an eighth of its cost.
std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001B3U;
  }
  return hash;
}

/// Compute the totals and the checksum. Collective: one gather and one allreduce.
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
  Fit fit = Fit::made;
  Result<Source> source = visit_source(comm, options, [&](SourceField&& field) {
    return add_field(comm, options, std::move(field), work, fit);
  });
  TAILRACE_TRY(comm.agree(source.status()));
  work.source = source->label + fit_label(fit);
  work.remarks = std::move(source->remarks);
  find_ranges(comm, work);
  add_up(comm, work);
  return work;
}

void set_bound(const ErrorBound& bound, const std::vector<FieldBound>& field_bounds,
               Workload& work) {
  for (BenchField& field : work.fields) {
    const auto own =
        std::find_if(field_bounds.begin(), field_bounds.end(),
                     [&](const FieldBound& one) { return glob_matches(one.glob, field.path); });
    field.absolute_bound =
        absolute_bound(own == field_bounds.end() ? bound : own->bound, field.least, field.greatest);
  }
}

}  // namespace tailrace::bench
