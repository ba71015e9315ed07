// The rules that choose chunk shapes.

#include "policy/chunk_shape.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace tailrace {
namespace {

std::uint64_t chunk_bytes(const Shape& chunk, std::uint64_t element_bytes) {
  return n_elements(chunk) * element_bytes;
}

/// Return the smallest divisor > 1 of `extent`, or `extent` itself if none is below 8.
std::uint64_t smallest_factor(std::uint64_t extent) {
  for (const std::uint64_t factor : {2U, 3U, 5U, 7U}) {
    if (extent % factor == 0) return factor;
  }
  return extent;
}

/// Cut the largest dimension into the fewest equal parts. If it has only large factors and
/// `may_pad` allows a chunk to exceed the shape's end, cut it into two unequal parts.
/// @returns false if no dimension can be cut.
bool split_once(Shape& chunk, const Shape& may_pad) {
  std::size_t best = chunk.size();
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (chunk[d] > 1 && (best == chunk.size() || chunk[d] > chunk[best])) best = d;
  }
  if (best == chunk.size()) return false;
  const std::uint64_t factor = smallest_factor(chunk[best]);
  const bool even = factor <= 7 && factor <= chunk[best];
  chunk[best] = even || may_pad[best] == 0 ? chunk[best] / factor : (chunk[best] + 1) / 2;
  return true;
}

void shrink_to(Shape& chunk, const Shape& may_pad, std::uint64_t element_bytes,
               std::uint64_t limit_bytes) {
  while (chunk_bytes(chunk, element_bytes) > limit_bytes && split_once(chunk, may_pad)) {
  }
}

/// Double the smallest dimension, in whole multiples of its block, until the chunk is large enough.
void grow_to(Shape& chunk, const Shape& shape, std::uint64_t element_bytes,
             std::uint64_t wanted_bytes) {
  while (chunk_bytes(chunk, element_bytes) < wanted_bytes) {
    std::size_t best = chunk.size();
    for (std::size_t d = 0; d < chunk.size(); ++d) {
      const bool can_grow = chunk[d] < shape[d];
      if (can_grow && (best == chunk.size() || chunk[d] < chunk[best])) best = d;
    }
    if (best == chunk.size()) return;
    chunk[best] = std::min(chunk[best] * 2, shape[best]);
  }
}

/// Number of leading dimensions that are taken for steps or components. See chunk_shape_by_rows().
std::size_t n_dimensions_of_steps(const Shape& shape) {
  constexpr std::size_t dimensions_of_space = 3;
  constexpr std::uint64_t times_shorter = 8;
  if (shape.size() > dimensions_of_space) return shape.size() - dimensions_of_space;
  if (shape.size() < 2) return 0;
  const std::uint64_t least = *std::min_element(shape.begin() + 1, shape.end());
  return shape[0] <= least / times_shorter ? 1 : 0;
}

}  // namespace

void add_cuts(const Shape& shape, const Box& box, std::uint64_t* cut_gcd,
              std::uint64_t* largest_box) {
  if (box.empty()) return;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::uint64_t end = box.start[d] + box.count[d];
    cut_gcd[d] = std::gcd(cut_gcd[d], box.start[d]);
    if (end < shape[d]) cut_gcd[d] = std::gcd(cut_gcd[d], end);
    largest_box[d] = std::max(largest_box[d], box.count[d]);
  }
}

Shape chunk_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                      const DecompositionFacts& facts) {
  const std::size_t rank = shape.size();
  Shape chunk(rank, 1);
  Shape may_pad(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    chunk[d] = std::max<std::uint64_t>(facts.cut_gcd[d], 1);
    may_pad[d] = facts.cut_gcd[d] == shape[d] ? 1 : 0;
  }
  const std::uint64_t whole_bytes = chunk_bytes(shape, element_bytes);
  const std::uint64_t least_bytes =
      std::min({kSmallestOwnChunkBytes, target_bytes, std::max<std::uint64_t>(whole_bytes, 1)});
  if (chunk_bytes(chunk, element_bytes) < least_bytes) {
    if (chunk_bytes(facts.largest_box, element_bytes) >= least_bytes) {
      for (std::size_t d = 0; d < rank; ++d) {
        chunk[d] = std::max<std::uint64_t>(std::min(facts.largest_box[d], shape[d]), 1);
        may_pad[d] = 1;
      }
    } else {
      grow_to(chunk, shape, element_bytes, least_bytes);
    }
  }
  shrink_to(chunk, may_pad, element_bytes, 2 * target_bytes);
  return chunk;
}

Shape chunk_shape_to_share(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t target_bytes, std::uint64_t n_owners) {
  constexpr std::uint64_t kLeastBytes = 1U << 20;  // below this, codecs lose ratio (codec notes, 2)
  constexpr std::uint64_t kChunksPerOwner = 4;     // enough to balance and to overlap
  Shape chunk(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) chunk[d] = std::max<std::uint64_t>(shape[d], 1);
  const std::uint64_t share = chunk_bytes(chunk, element_bytes) / (kChunksPerOwner * n_owners);
  const std::uint64_t limit =
      std::clamp(share, std::min(kLeastBytes, target_bytes), 2 * target_bytes);
  shrink_to(chunk, Shape(shape.size(), 1), element_bytes, limit);
  return chunk;
}

Shape chunk_shape_by_rows(const Shape& shape, std::uint64_t element_bytes,
                          std::uint64_t target_bytes, std::uint64_t n_ranks) {
  constexpr std::uint64_t least_bytes = 1U << 20;
  constexpr std::uint64_t chunks_per_rank = 4;
  const auto space = shape.begin() + static_cast<std::ptrdiff_t>(n_dimensions_of_steps(shape));
  if (space != shape.begin()) {
    const Shape of_step(space, shape.end());
    if (n_elements(of_step) * element_bytes >= kStepChunkBytesMin) {
      Shape chunk = chunk_shape_by_rows(of_step, element_bytes, target_bytes, n_ranks);
      chunk.insert(chunk.begin(), shape.size() - of_step.size(), 1);
      return chunk;
    }
  }
  const std::uint64_t share = n_elements(shape) * element_bytes / (chunks_per_rank * n_ranks);
  const std::uint64_t most = std::max<std::uint64_t>(2 * target_bytes, 1);
  const std::uint64_t limit = std::clamp(share, std::min(least_bytes, most), most);
  DecompositionFacts facts;
  facts.cut_gcd = facts.largest_box = shape;
  if (shape[0] % n_ranks == 0) facts.cut_gcd[0] = shape[0] / n_ranks;
  facts.largest_box[0] = facts.cut_gcd[0];
  return chunk_shape_for(shape, element_bytes, std::max<std::uint64_t>(limit / 2, 1), facts);
}

Shape chunk_shape_of_least(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t least_bytes) {
  Shape chunk(shape.size(), 1);
  std::uint64_t row_bytes = element_bytes;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t extent = std::max<std::uint64_t>(shape[d], 1);
    if (row_bytes >= least_bytes) break;
    const std::uint64_t n_needed = (least_bytes - 1) / row_bytes + 1;
    // Cut as evenly as possible: 19 levels of which 14 are needed stay complete.
    const std::uint64_t n_parts = std::max<std::uint64_t>(extent / n_needed, 1);
    chunk[d] = (extent - 1) / n_parts + 1;
    row_bytes *= chunk[d];
  }
  return chunk;
}

Shape slab_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                     const Shape& cut_gcd) {
  Shape slab(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) slab[d] = std::max<std::uint64_t>(shape[d], 1);
  std::uint64_t row_bytes = chunk_bytes(slab, element_bytes);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    row_bytes /= slab[d];
    const std::uint64_t most_rows = std::max<std::uint64_t>(2 * target_bytes / row_bytes, 1);
    std::uint64_t rows = std::min(most_rows, slab[d]);
    const std::uint64_t block = cut_gcd.empty() ? slab[d] : std::max<std::uint64_t>(cut_gcd[d], 1);
    if (block < slab[d] || rows < slab[d]) {
      const std::uint64_t fewest = (block + most_rows - 1) / most_rows;
      std::uint64_t n_parts = fewest;
      while (block % n_parts != 0 && n_parts < 2 * fewest) ++n_parts;
      const bool tiny = block / n_parts * row_bytes < kSmallestOwnChunkBytes;
      if (block % n_parts == 0 && !tiny) rows = block / n_parts;
    }
    const bool cut_here = rows < slab[d];
    slab[d] = rows;
    if (cut_here && rows > 1) break;
  }
  return slab;
}

// --- consecutive boxes

namespace {

/// Limit on the number of chunks, because rank 0 stores about 50 bytes per chunk while it writes a
/// file.
constexpr std::uint64_t kMostBoxChunks = std::uint64_t{1} << 22;

/// Return the shape of the box's slab that `length` consecutive cells form. If they form none,
/// return a shape of one dimension. `length` divides the box's cells.
Shape slab_of(const Shape& cells, std::uint64_t length) {
  Shape slab;
  std::uint64_t inner = 1;
  for (std::size_t d = cells.size(); d-- > 0 && inner < length;) {
    const std::uint64_t thickness = length % (inner * cells[d]) == 0 ? cells[d] : length / inner;
    if ((inner * cells[d]) % (inner * thickness) != 0) return {length};
    slab.insert(slab.begin(), thickness);
    inner *= thickness;
    if (thickness < cells[d]) break;
  }
  return inner == length ? slab : Shape{length};
}

}  // namespace

std::uint64_t chunk_length_for(const BoxSeries& boxes, std::uint64_t least, std::uint64_t most) {
  constexpr std::uint64_t kMostParts = 1U << 16;
  std::uint64_t common = 0;
  std::uint64_t n_all = 0;
  for (const BoxSeries::Run& run : boxes.runs) {
    common = std::gcd(common, n_elements(run.cells));
    n_all += run.n_boxes * boxes.components.size() * n_elements(run.cells);
  }
  least = std::max(least, n_all / kMostBoxChunks);
  std::uint64_t longest = 0;
  for (std::uint64_t n_parts = 1; n_parts <= kMostParts && common / n_parts >= least; ++n_parts) {
    const std::uint64_t length = common / n_parts;
    if (common % n_parts != 0 || length > most) continue;
    if (longest == 0) longest = length;
    const bool slabs = std::all_of(boxes.runs.begin(), boxes.runs.end(), [&](const auto& run) {
      return run.cells.size() == 1 || slab_of(run.cells, length).size() > 1;
    });
    if (slabs) return length;
  }
  return longest;
}

BoxChunks::BoxChunks(const BoxSeries& boxes, std::uint64_t chunk_length)
    : n_components_(boxes.components.size()) {
  std::uint64_t first_chunk = 0;
  std::map<Shape, std::size_t> known;
  for (const BoxSeries::Run& run : boxes.runs) {
    const std::uint64_t of_component = n_elements(run.cells) / chunk_length;
    const Shape slab = slab_of(run.cells, chunk_length);
    const auto [at, fresh] = known.try_emplace(slab, shapes_.size());
    if (fresh) shapes_.push_back(slab);
    runs_.push_back({first_chunk, of_component, at->second});
    first_chunk += run.n_boxes * n_components_ * of_component;
  }
}

BoxChunks::Part BoxChunks::part(std::uint64_t chunk_index) const {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), chunk_index,
                       [](std::uint64_t index, const Run& run) { return index < run.first_chunk; });
  const Run& run = *(behind - 1);
  const std::uint64_t within = (chunk_index - run.first_chunk) / run.chunks_of_component;
  return {run.shape, static_cast<std::size_t>(within % n_components_)};
}

}  // namespace tailrace
