// Conversion of regular hyperslabs to slabs, of other hyperslabs and of points to runs of elements.

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

/// Convert the selection to one slab, if possible.
/// @param around  bounding box of the selection.
std::optional<Slab> regular_slab(hid_t space, const Slab& around) {
  if (H5Sis_regular_hyperslab(space) <= 0) return std::nullopt;
  const std::size_t rank = around.rank();
  Extents start(rank);
  Extents stride(rank);
  Extents count(rank);
  Extents block(rank);
  if (H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(), block.data()) < 0)
    return std::nullopt;
  Slab slab{around.start, Shape(rank), Shape(rank, 1)};
  for (std::size_t d = 0; d < rank; ++d) {
    if (count[d] == 1) {
      slab.count[d] = block[d];
    } else if (block[d] == 1) {
      slab.count[d] = count[d];
      slab.stride[d] = stride[d];
    } else if (block[d] == stride[d]) {
      slab.count[d] = count[d] * block[d];
    } else {
      return std::nullopt;
    }
  }
  if (slab.dense()) slab.stride.clear();
  return slab;
}

/// Runs of the positions that HDF5 lists. Its lists omit H5Soffset_simple's offset. So element
/// numbers are counted without it, and all are shifted in the end.
class ListedRuns {
 public:
  explicit ListedRuns(const Shape& shape)
      : rank_(shape.size()), steps_(shape.size(), 1), low_(shape.size(), UINT64_MAX) {
    for (std::size_t d = rank_ - 1; d > 0; --d) steps_[d - 1] = steps_[d] * shape[d];
  }

  void add_point(const hsize_t* point) {
    lower(point);
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < rank_; ++d) first += point[d] * steps_[d];
    runs_.add(first, 1);
  }
  /// Add the rows of a block, given by its first and last corners.
  void add_block(const hsize_t* corners) {
    lower(corners);
    add_rows(corners, 0, 0);
  }
  /// Return the runs, in the order of the list or ascending.
  /// @param low  first position of the selection in each dimension.
  Result<ElementRuns> take(const Shape& low, bool ascending) {
    std::uint64_t shift = 0;
    for (std::size_t d = 0; d < rank_; ++d) shift += (low[d] - low_[d]) * steps_[d];
    for (std::uint64_t& first : runs_.firsts) first += shift;
    if (!ascending || std::ranges::is_sorted(runs_.firsts)) return std::move(runs_);
    SortedRuns sorted = sort_runs(runs_);
    if (sorted.overlap) return bad_selection("has blocks that overlap");
    return std::move(sorted.runs);
  }

 private:
  void lower(const hsize_t* position) {
    for (std::size_t d = 0; d < rank_; ++d) low_[d] = std::min<std::uint64_t>(low_[d], position[d]);
  }
  void add_rows(const hsize_t* corners, std::size_t d, std::uint64_t first) {
    const hsize_t begin = corners[d];
    const hsize_t last = corners[rank_ + d];
    if (d + 1 == rank_) return runs_.add(first + begin, last - begin + 1);
    for (hsize_t at = begin; at <= last; ++at) add_rows(corners, d + 1, first + at * steps_[d]);
  }

  std::size_t rank_;
  Shape steps_;  ///< Distance of neighbours along each dimension, in elements.
  Shape low_;    ///< First listed position in each dimension.
  ElementRuns runs_;
};

/// Visit a list of HDF5's in parts, because HDF5 walks it from its start for each part.
/// @param list  copies `n` items from item `first` on, of `n_words` words each.
template <class List, class Visit>
Status for_each_listed(hssize_t n_listed, std::size_t n_words, const List& list,
                       const Visit& visit) {
  constexpr std::uint64_t kLeastPart = 1U << 16;
  constexpr std::uint64_t kMostParts = 16;
  if (n_listed < 0) return bad_selection("cannot be listed");
  const auto n = static_cast<std::uint64_t>(n_listed);
  const std::uint64_t at_once =
      std::min(n, std::max(kLeastPart, (n + kMostParts - 1) / kMostParts));
  Extents words(at_once * n_words);
  for (std::uint64_t first = 0; first < n; first += at_once) {
    const std::uint64_t n_here = std::min(at_once, n - first);
    if (list(first, n_here, words.data()) < 0) return bad_selection("cannot be listed");
    for (std::uint64_t i = 0; i < n_here; ++i) visit(words.data() + i * n_words);
  }
  return Status();
}

/// Convert blocks to runs. Blocks do not overlap, so sorting their rows sorts their elements.
Result<ElementRuns> runs_of_blocks(hid_t space, const Shape& shape, const Shape& low) {
  ListedRuns runs(shape);
  TAILRACE_TRY(for_each_listed(
      H5Sget_select_hyper_nblocks(space), 2 * shape.size(),
      [&](hsize_t first, hsize_t n, hsize_t* corners) {
        return H5Sget_select_hyper_blocklist(space, first, n, corners);
      },
      [&](const hsize_t* corners) { runs.add_block(corners); }));
  return runs.take(low, true);
}

/// Convert points to runs, in list order, which is the order of their values.
Result<ElementRuns> runs_of_points(hid_t space, const Shape& shape, const Shape& low) {
  ListedRuns runs(shape);
  TAILRACE_TRY(for_each_listed(
      H5Sget_select_elem_npoints(space), shape.size(),
      [&](hsize_t first, hsize_t n, hsize_t* points) {
        return H5Sget_select_elem_pointlist(space, first, n, points);
      },
      [&](const hsize_t* point) { runs.add_point(point); }));
  return runs.take(low, false);
}

/// Find the bounding box of a selection, including H5Soffset_simple's offset, within the dataset.
Result<Slab> bounding_slab(hid_t space, const Shape& shape) {
  const std::size_t rank = shape.size();
  Extents low(rank);
  Extents high(rank);
  if (H5Sget_select_bounds(space, low.data(), high.data()) < 0)
    return bad_selection("cannot be listed");
  Slab around{Shape(low.begin(), low.end()), Shape(rank), {}};
  for (std::size_t d = 0; d < rank; ++d) around.count[d] = high[d] - low[d] + 1;
  TAILRACE_TRY(check_slab(around, shape).within("the selection in the file"));
  return around;
}

}  // namespace

std::uint64_t FileSelection::n_elements() const {
  return slab ? slab->n_elements() : runs.n_elements();
}

Result<FileSelection> selection_of(hid_t space, const Shape& shape) {
  FileSelection selection;
  if (space == H5S_ALL) {
    selection.slab = Slab::of(whole_box(shape));
    if (selection.slab->empty()) selection.slab.reset();
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
    selection.slab = Slab{};
    return selection;
  }
  TAILRACE_TAKE(Slab around, bounding_slab(space, shape));
  switch (H5Sget_select_type(space)) {
    case H5S_SEL_ALL: selection.slab = std::move(around); break;
    case H5S_SEL_HYPERSLABS:
      selection.slab = regular_slab(space, around);
      if (!selection.slab) {
        TAILRACE_TAKE(selection.runs, runs_of_blocks(space, shape, around.start));
      }
      break;
    case H5S_SEL_POINTS: {
      TAILRACE_TAKE(selection.runs, runs_of_points(space, shape, around.start));
      break;
    }
    default: return bad_selection("is of an unknown kind");
  }
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
