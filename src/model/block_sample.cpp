// The two sampling schemes, and copying of blocks.

#include "model/block_sample.hpp"

#include <algorithm>
#include <cstring>

namespace tailrace {
namespace {

/// Extents of uniform blocks by number of dimensions: common multiples of ZFP's 4 and SZ's 6, about
/// 1728 values each (Liang et al. 2019, V-C, gives the 3-D one).
constexpr std::uint64_t kExtent1d = 1728;
constexpr std::uint64_t kExtent2d = 42;
constexpr std::uint64_t kExtent3d = 12;

/// Finaliser of SplitMix64 (Steele, Lea, Flood 2014): hashes a number.
std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t z = number + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

Shape cut_to(Shape block_shape, const Shape& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d)
    block_shape[d] = std::min(block_shape[d], shape[d]);
  return block_shape;
}

/// Number of complete blocks along each dimension; 0 for an empty shape.
Shape places_of(const Shape& shape, const Shape& block_shape) {
  Shape places(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (block_shape[d] > 0) places[d] = shape[d] / block_shape[d];
  }
  return places;
}

Shape reference_block(const Shape& shape) {
  Shape block(shape.size(), 1);
  const std::size_t n_blocked = std::min<std::size_t>(shape.size(), 3);
  const std::uint64_t extent = n_blocked == 1 ? kExtent1d : n_blocked == 2 ? kExtent2d : kExtent3d;
  std::fill(block.end() - static_cast<std::ptrdiff_t>(n_blocked), block.end(), extent);
  return cut_to(std::move(block), shape);
}

/// Number of positions along each dimension if one of every k is selected; all along leading ones.
Shape places_at_stride(const Shape& places, std::uint64_t k) {
  Shape taken = places;
  for (std::size_t d = taken.size() - std::min<std::size_t>(taken.size(), 3); d < taken.size();
       ++d) {
    taken[d] = (places[d] + k - 1) / k;
  }
  return taken;
}

}  // namespace

Shape BlockSample::gathered_shape() const {
  Shape shape = block_shape;
  if (shape.empty()) return shape;
  std::size_t stacked = 0;
  while (stacked + 1 < shape.size() && shape[stacked] == 1) ++stacked;
  shape[stacked] *= starts.size();
  return shape;
}

BlockSample uniform_blocks(const Shape& shape, double share) {
  BlockSample sample{reference_block(shape), {}};
  const Shape places = places_of(shape, sample.block_shape);
  const double wanted = share * static_cast<double>(n_elements(shape));
  const auto block_values = static_cast<double>(n_elements(sample.block_shape));
  const std::uint64_t k_max = places.empty() ? 1 : *std::max_element(places.begin(), places.end());
  std::uint64_t k = 1;
  while (k < k_max &&
         block_values * static_cast<double>(n_elements(places_at_stride(places, k + 1))) >=
             wanted) {
    ++k;
  }
  const Shape taken = places_at_stride(places, k);
  for_each_position(whole_box(taken), [&](const Shape& position) {
    Shape start = position;
    for (std::size_t d = 0; d < start.size(); ++d) {
      start[d] *= sample.block_shape[d] * (taken[d] == places[d] ? 1 : k);
    }
    sample.starts.push_back(std::move(start));
  });
  return sample;
}

BlockSample scattered_blocks(const Shape& shape, const Shape& block_shape, std::size_t n_blocks) {
  BlockSample sample{cut_to(block_shape, shape), {}};
  const ChunkGrid grid{places_of(shape, sample.block_shape), Shape(shape.size(), 1)};
  const std::uint64_t n_places = n_elements(grid.shape);
  const std::uint64_t n = std::min<std::uint64_t>(n_blocks, n_places);
  sample.starts.reserve(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    // n_places is far below 2^63 / n: both count values in memory.
    const std::uint64_t begin = n_places / n * i + n_places % n * i / n;
    const std::uint64_t end = n_places / n * (i + 1) + n_places % n * (i + 1) / n;
    Shape start = grid.coordinates(begin + mixed(i) % (end - begin));
    for (std::size_t d = 0; d < start.size(); ++d) start[d] *= sample.block_shape[d];
    sample.starts.push_back(std::move(start));
  }
  return sample;
}

void gather_blocks(const StridedValues& values, const BlockSample& sample, std::byte* to) {
  const std::size_t element = dtype_bytes(values.dtype);
  if (sample.n_values() == 0) return;
  // Offsets of a block's rows from its first value: the same for all blocks.
  std::size_t row_bytes = element;
  Shape rows = sample.block_shape;
  if (!rows.empty()) {
    row_bytes *= rows.back();
    rows.pop_back();
  }
  const auto offset_of = [&](const Shape& position) {
    std::size_t offset = 0;
    for (std::size_t d = 0; d < position.size(); ++d) offset += position[d] * values.strides[d];
    return offset * element;
  };
  std::vector<std::size_t> row_offsets;
  row_offsets.reserve(n_elements(rows));
  for_each_position(whole_box(rows),
                    [&](const Shape& row) { row_offsets.push_back(offset_of(row)); });
  for (const Shape& start : sample.starts) {
    const std::byte* block = values.data + offset_of(start);
    for (const std::size_t offset : row_offsets) {
      std::memcpy(to, block + offset, row_bytes);
      to += row_bytes;
    }
  }
}

}  // namespace tailrace
