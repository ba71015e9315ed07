// Conversion of regular hyperslabs to slabs, of other blocks to rows, of points to runs of
// elements.

#include "hdf5/selections.hpp"

#include <algorithm>
#include <string>

#include "hdf5/hdf5_handle.hpp"

namespace tailrace::hdf5_programs {
namespace {

using Extents = std::vector<hsize_t>;

Status bad_selection(const std::string& why) {
  return hdf5_failure(Code::invalid_argument, "the selection in the file " + why);
}

/// Find the first selected position in each dimension, including H5Soffset_simple's offset, which
/// HDF5's lists of blocks and points omit.
bool first_of(hid_t space, std::size_t rank, Extents& low) {
  low.assign(rank, 0);
  Extents high(rank);
  return H5Sget_select_bounds(space, low.data(), high.data()) >= 0;
}

/// Convert the selection to one slab, if possible.
bool regular_slab(hid_t space, std::size_t rank, Slab& slab) {
  if (H5Sis_regular_hyperslab(space) <= 0) return false;
  Extents start(rank);
  Extents stride(rank);
  Extents count(rank);
  Extents block(rank);
  if (H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(), block.data()) < 0)
    return false;
  slab = {Shape(rank), Shape(rank), Shape(rank, 1)};
  Extents low;
  if (!first_of(space, rank, low)) return false;
  for (std::size_t d = 0; d < rank; ++d) {
    slab.start[d] = low[d];
    if (count[d] == 1) {
      slab.count[d] = block[d];
    } else if (block[d] == 1) {
      slab.count[d] = count[d];
      slab.stride[d] = stride[d];
    } else if (block[d] == stride[d]) {
      slab.count[d] = count[d] * block[d];
    } else {
      return false;
    }
  }
  if (slab.dense()) slab.stride.clear();
  return true;
}

/// Run of elements of one row.
struct Run {
  Shape start;
  std::uint64_t n = 0;
};

Slab slab_of(const Run& run) {
  Slab slab{run.start, Shape(run.start.size(), 1), {}};
  slab.count.back() = run.n;
  return slab;
}

/// Convert blocks to rows. Blocks do not overlap, so sorting the rows sorts their elements.
Status slabs_of_blocks(hid_t space, std::size_t rank, std::vector<Slab>& slabs) {
  const hssize_t n_blocks = H5Sget_select_hyper_nblocks(space);
  if (n_blocks < 0) return bad_selection("cannot be listed");
  Extents corners(static_cast<std::size_t>(n_blocks) * 2 * rank);
  Extents low;
  if (H5Sget_select_hyper_blocklist(space, 0, static_cast<hsize_t>(n_blocks), corners.data()) < 0 ||
      !first_of(space, rank, low)) {
    return bad_selection("cannot be listed");
  }
  Extents listed(rank, UINT64_MAX);
  for (std::size_t at = 0; at < corners.size(); at += 2 * rank) {
    for (std::size_t d = 0; d < rank; ++d) listed[d] = std::min(listed[d], corners[at + d]);
  }
  std::vector<Run> runs;
  for (std::size_t at = 0; at < corners.size(); at += 2 * rank) {
    Box rows{Shape(rank - 1), Shape(rank - 1)};
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      rows.start[d] = corners[at + d] + low[d] - listed[d];
      rows.count[d] = corners[at + rank + d] - corners[at + d] + 1;
    }
    const std::size_t last = rank - 1;
    for_each_position(rows, [&](const Shape& row) {
      Run run{row, corners[at + rank + last] - corners[at + last] + 1};
      run.start.push_back(corners[at + last] + low[last] - listed[last]);
      runs.push_back(std::move(run));
    });
  }
  std::ranges::sort(runs, {}, &Run::start);
  for (const Run& run : runs) slabs.push_back(slab_of(run));
  return Status();
}

/// Visit HDF5's list of points in parts: HDF5 walks the list from its start for each part, and a
/// point takes 8 bytes a dimension.
template <class Visit>
Status for_each_point(hid_t space, std::size_t rank, const Visit& visit) {
  constexpr std::uint64_t kLeastPart = 1U << 16;
  constexpr std::uint64_t kMostParts = 16;
  const hssize_t n_points = H5Sget_select_elem_npoints(space);
  if (n_points < 0) return bad_selection("cannot be listed");
  const auto n = static_cast<std::uint64_t>(n_points);
  const std::uint64_t at_once =
      std::min(n, std::max(kLeastPart, (n + kMostParts - 1) / kMostParts));
  Extents points(at_once * rank);
  for (std::uint64_t first = 0; first < n; first += at_once) {
    const std::uint64_t n_here = std::min(at_once, n - first);
    if (H5Sget_select_elem_pointlist(space, first, n_here, points.data()) < 0) {
      return bad_selection("cannot be listed");
    }
    for (std::uint64_t i = 0; i < n_here; ++i) TAILRACE_TRY(visit(points.data() + i * rank));
  }
  return Status();
}

/// Convert points to runs, in list order, which is the order of their values.
Status runs_of_points(hid_t space, const Shape& shape, ElementRuns& runs) {
  const std::size_t rank = shape.size();
  Extents low;
  if (!first_of(space, rank, low)) return bad_selection("cannot be listed");
  Extents listed(rank, UINT64_MAX);
  TAILRACE_TRY(for_each_point(space, rank, [&](const hsize_t* point) {
    for (std::size_t d = 0; d < rank; ++d) listed[d] = std::min(listed[d], point[d]);
    return Status();
  }));
  return for_each_point(space, rank, [&](const hsize_t* point) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t at = point[d] + low[d] - listed[d];
      if (at >= shape[d]) {
        Slab alone{Shape(rank), Shape(rank, 1), {}};
        for (std::size_t e = 0; e < rank; ++e) alone.start[e] = point[e] + low[e] - listed[e];
        return check_slab(alone, shape).within("the selection in the file");
      }
      element = element * shape[d] + at;
    }
    runs.add(element, 1);
    return Status();
  });
}

Status check_slabs(const std::vector<Slab>& slabs, const Shape& shape) {
  for (const Slab& slab : slabs) {
    TAILRACE_TRY(check_slab(slab, shape).within("the selection in the file"));
  }
  return Status();
}

}  // namespace

std::uint64_t FileSelection::n_elements() const {
  std::uint64_t n = runs.n_elements();
  for (const Slab& slab : slabs) n += slab.n_elements();
  return n;
}

Result<FileSelection> selection_of(hid_t space, const Shape& shape) {
  FileSelection selection;
  std::vector<Slab>& slabs = selection.slabs;
  if (space == H5S_ALL) {
    slabs.push_back(Slab::of(whole_box(shape)));
    if (slabs.front().empty()) slabs.clear();
    return selection;
  }
#if H5_VERSION_GE(1, 14, 0)
  if (space == H5S_PLIST)
    return bad_selection(
        "comes from the transfer list (H5S_PLIST), which Tailrace does not support");
#endif
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind == H5S_NO_CLASS) return bad_selection("is not a dataspace");
  if (kind == H5S_NULL || H5Sget_select_npoints(space) == 0) return selection;
  const int rank_there = H5Sget_simple_extent_ndims(space);
  const std::size_t rank = shape.size();
  if (rank_there != int(rank)) {
    return Status(Code::invalid_argument, "the file dataspace has " + std::to_string(rank_there) +
                                              " dimensions, the dataset " + std::to_string(rank));
  }
  if (rank == 0) {
    slabs.push_back(Slab{});
    return selection;
  }
  switch (H5Sget_select_type(space)) {
    case H5S_SEL_NONE: return selection;
    case H5S_SEL_ALL: {
      Extents extents(rank);
      H5Sget_simple_extent_dims(space, extents.data(), nullptr);
      slabs.push_back({Shape(rank, 0), Shape(extents.begin(), extents.end()), {}});
      break;
    }
    case H5S_SEL_HYPERSLABS: {
      Slab slab;
      if (regular_slab(space, rank, slab)) {
        slabs.push_back(std::move(slab));
      } else {
        TAILRACE_TRY(slabs_of_blocks(space, rank, slabs));
      }
      break;
    }
    case H5S_SEL_POINTS: TAILRACE_TRY(runs_of_points(space, shape, selection.runs)); break;
    default: return bad_selection("is of an unknown kind");
  }
  TAILRACE_TRY(check_slabs(slabs, shape));
  return selection;
}

std::optional<std::uint64_t> run_of(hid_t space) {
  const H5S_sel_type type = H5Sget_select_type(space);
  if (type == H5S_SEL_ALL) return 0;
  const int rank = H5Sget_simple_extent_ndims(space);
  const hssize_t n = H5Sget_select_npoints(space);
  if (type != H5S_SEL_HYPERSLABS || rank <= 0 || n <= 0) return std::nullopt;
  Extents extents(static_cast<std::size_t>(rank));
  Extents low(extents.size());
  Extents high(extents.size());
  if (H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0 ||
      H5Sget_select_bounds(space, low.data(), high.data()) < 0) {
    return std::nullopt;
  }
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    first = first * extents[d] + low[d];
    last = last * extents[d] + high[d];
  }
  // If the count equals the distance from first to last, all elements between them are selected.
  if (last - first + 1 != static_cast<std::uint64_t>(n)) return std::nullopt;
  return first;
}

}  // namespace tailrace::hdf5_programs
