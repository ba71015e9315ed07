#include "hdf5_serial/chunk_places.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tailrace::hdf5_serial {
namespace {

using Extents = std::vector<hsize_t>;

/// Extents of a selection's space, and its bounding box, including H5Soffset_simple's offset.
struct Bounds {
  H5S_sel_type type = H5S_SEL_ERROR;
  Extents extents;
  Extents low;
  Extents high;
  std::uint64_t n = 0;  ///< Number of elements.
};

std::optional<Bounds> bounds_of(const SerialHdf5& hdf5, hid_t space) {
  Bounds bounds;
  const int rank = hdf5.H5Sget_simple_extent_ndims(space);
  const hssize_t n = hdf5.H5Sget_select_npoints(space);
  if (rank <= 0 || n <= 0) return std::nullopt;
  bounds.n = std::uint64_t(n);
  bounds.type = hdf5.H5Sget_select_type(space);
  if (bounds.type != H5S_SEL_ALL && bounds.type != H5S_SEL_HYPERSLABS) return std::nullopt;
  bounds.extents.resize(std::size_t(rank));
  bounds.low.resize(std::size_t(rank));
  bounds.high.resize(std::size_t(rank));
  if (hdf5.H5Sget_simple_extent_dims(space, bounds.extents.data(), nullptr) != rank ||
      hdf5.H5Sget_select_bounds(space, bounds.low.data(), bounds.high.data()) < 0) {
    return std::nullopt;
  }
  // HDF5 refuses selections that leave their space.
  for (std::size_t d = 0; d < bounds.high.size(); ++d) {
    if (bounds.high[d] >= bounds.extents[d] || bounds.low[d] > bounds.high[d]) return std::nullopt;
  }
  return bounds;
}

/// Convert a selection of every n-th element of each dimension.
bool strided_slab(const SerialHdf5& hdf5, hid_t space, const Extents& low, Slab& slab) {
  const std::size_t rank = low.size();
  Extents start(rank);
  Extents stride(rank);
  Extents count(rank);
  Extents block(rank);
  if (hdf5.H5Sis_regular_hyperslab(space) <= 0 ||
      hdf5.H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(),
                                    block.data()) < 0) {
    return false;
  }
  slab = {Shape(low.begin(), low.end()), Shape(rank), Shape(rank, 1)};
  for (std::size_t d = 0; d < rank; ++d) {
    const bool one_block = count[d] == 1;
    if (!one_block && block[d] != 1) return false;
    slab.count[d] = one_block ? block[d] : count[d];
    if (!one_block) slab.stride[d] = stride[d];
  }
  return true;
}

}  // namespace

bool slab_of(const SerialHdf5& hdf5, hid_t space, const Shape& extents, Slab& slab) {
  const std::optional<Bounds> bounds = bounds_of(hdf5, space);
  if (!bounds || bounds->low.size() != extents.size()) return false;
  // If a space was created before the dataset grew, H5S_SEL_ALL is not all of the dataset.
  if (bounds->type == H5S_SEL_ALL && !std::ranges::equal(bounds->extents, extents)) return false;
  Box box{Shape(bounds->low.begin(), bounds->low.end()), Shape(extents.size())};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    box.count[d] = bounds->high[d] - bounds->low[d] + 1;
  }
  if (box.n_elements() == bounds->n) {
    slab = Slab::of(box);
  } else if (!strided_slab(hdf5, space, bounds->low, slab) || slab.n_elements() != bounds->n) {
    return false;
  }
  return check_slab(slab, extents).ok();
}

std::optional<std::uint64_t> run_in_memory(const SerialHdf5& hdf5, hid_t space) {
  const std::optional<Bounds> bounds = bounds_of(hdf5, space);
  if (!bounds) return std::nullopt;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < bounds->extents.size(); ++d) {
    first = first * bounds->extents[d] + bounds->low[d];
    last = last * bounds->extents[d] + bounds->high[d];
  }
  // If the count equals the distance from first to last, all elements between them are selected.
  if (last - first + 1 != bounds->n) return std::nullopt;
  return first;
}

Box box_of(const Shape& chunk_shape, const Shape& place) {
  Box box{place, chunk_shape};
  for (std::size_t d = 0; d < place.size(); ++d) box.start[d] *= chunk_shape[d];
  return box;
}

Box clipped(const Shape& extents, const Shape& chunk_shape, const Shape& place) {
  return intersect(box_of(chunk_shape, place), whole_box(extents));
}

Buffer new_chunk(std::uint64_t chunk_bytes, const Buffer& fill_value, bool all_written) {
  Buffer chunk(chunk_bytes);
  if (!chunk.allocated() || all_written) return chunk;
  const std::size_t n_fill = fill_value.n_bytes();
  if (n_fill == 0) {
    std::memset(chunk.data(), 0, chunk_bytes);
    return chunk;
  }
  // Double the filled part: a few copies instead of one per element.
  std::memcpy(chunk.data(), fill_value.data(), n_fill);
  for (std::size_t n = n_fill; n < chunk_bytes; n *= 2) {
    std::memcpy(chunk.data() + n, chunk.data(), std::min(n, chunk_bytes - n));
  }
  return chunk;
}

}  // namespace tailrace::hdf5_serial
