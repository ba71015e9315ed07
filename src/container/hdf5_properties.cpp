// Creation property lists.

#include "container/hdf5_properties.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace tailrace {
namespace {

/// Length of a step's name that the root group is pre-sized for; longer names only waste the
/// effort.
constexpr unsigned step_name_bytes = 12;
/// A link's size in an object header beside its name.
constexpr std::uint64_t link_overhead_bytes = 22;
/// Object header chunks above 64 KiB are split by HDF5 2.x, so pre-size below that.
constexpr std::uint64_t root_header_bytes_max = 60000;
/// Attributes up to this number stay in the object header; HDF5's own limit is 8, after which it
/// spends 4 KiB and more on a heap and B-trees per dataset.
constexpr unsigned compact_attributes_max = 64;
/// Links up to this number stay in a (not the root) group's header; more go into a heap and a
/// B-tree, which later commits can only change under the journal.
constexpr unsigned compact_links_max = 512;
/// HDF5 stores a chunk's length in 32 bits.
constexpr std::uint64_t chunk_bytes_limit = std::uint64_t{1} << 32;

/// Settings that all objects of a new file share.
bool set_object_properties(hid_t list, bool track_order) {
  // No time stamps: equal inputs give equal files, and headers are smaller.
  bool done =
      H5Pset_obj_track_times(list, false) >= 0 &&
      H5Pset_attr_phase_change(list, compact_attributes_max, compact_attributes_max / 2) >= 0;
  if (track_order) {
    done = done &&
           H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
  }
  return done;
}

bool set_group_properties(hid_t list, bool track_order) {
  if (!set_object_properties(list, track_order)) return false;
  if (!track_order) return true;
  return H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0;
}

/// Links in the root group's own header, with room for all steps: then adding a step rewrites one
/// old block only, and a commit has one in-place write that a crash could tear.
/// But where more are announced than other groups hold there, none starts there: each new one takes
/// HDF5 time that grows with their number (docs/format.md).
bool set_root_properties(hid_t list, bool track_order, std::uint64_t expected_steps,
                         std::uint64_t expected_links) {
  if (expected_links > compact_links_max) {
    return set_group_properties(list, track_order) && H5Pset_link_phase_change(list, 0, 0) >= 0;
  }
  const std::uint64_t n_links_max = root_header_bytes_max / (step_name_bytes + link_overhead_bytes);
  const std::uint64_t n_links = std::clamp<std::uint64_t>(expected_steps, 4, n_links_max);
  return set_group_properties(list, track_order) && H5Pset_link_phase_change(list, 65535, 0) >= 0 &&
         H5Pset_est_link_info(list, unsigned(n_links), step_name_bytes) >= 0;
}

/// Layout `kind` in a dataset creation list. `planned`: contiguous data lie where the caller says,
/// so space is taken at creation, and nothing fills it.
bool set_layout(hid_t list, StoredForm::Kind kind, const Shape& chunk_shape, bool planned) {
  if (kind == StoredForm::Kind::chunked) {
    const std::vector<hsize_t> extents(chunk_shape.begin(), chunk_shape.end());
    return H5Pset_chunk(list, int(extents.size()), extents.data()) >= 0;
  }
  if (kind == StoredForm::Kind::compact) return H5Pset_layout(list, H5D_COMPACT) >= 0;
  if (H5Pset_layout(list, H5D_CONTIGUOUS) < 0) return false;
  return !planned || (H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
                      H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
}

}  // namespace

Result<Hdf5Id> file_creation_list(bool track_order, std::uint64_t expected_steps,
                                  std::uint64_t expected_links) {
  Hdf5Id list(H5Pcreate(H5P_FILE_CREATE));
  if (!list.valid() ||
      !set_root_properties(list.get(), track_order, expected_steps, expected_links)) {
    return hdf5_failure(Code::internal, "file creation list");
  }
  return list;
}

Result<Hdf5Id> group_creation_list(bool track_order) {
  Hdf5Id list(H5Pcreate(H5P_GROUP_CREATE));
  if (!list.valid() || !set_group_properties(list.get(), track_order) ||
      H5Pset_link_phase_change(list.get(), compact_links_max, compact_links_max / 2) < 0) {
    return hdf5_failure(Code::internal, "group creation list");
  }
  return list;
}

Status check_definition(const DatasetDefinition& definition) {
  const Shape& shape = definition.shape;
  const Shape& chunk_shape = definition.chunk_shape;
  if (shape.size() > max_rank) {
    return Status(Code::unsupported, "rank is " + std::to_string(shape.size()) + ", HDF5 allows " +
                                         std::to_string(max_rank));
  }
  if (chunk_shape.empty()) {
    const bool grows = definition.extendable || definition.more_unlimited != 0;
    if (grows || !definition.filters.empty()) {
      return Status(Code::invalid_argument, "extendable or filtered datasets need a chunk shape");
    }
    return Status();
  }
  if (chunk_shape.size() != shape.size()) {
    return Status(Code::invalid_argument, "chunk shape " + shape_text(chunk_shape) +
                                              " must have the rank of shape " + shape_text(shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (chunk_shape[d] == 0 || (!definition.unlimited(d) && chunk_shape[d] > shape[d])) {
      return Status(Code::invalid_argument, "chunk shape " + shape_text(chunk_shape) +
                                                " must be at least 1 and at most the shape, " +
                                                shape_text(shape));
    }
  }
  const std::uint64_t n = n_elements(chunk_shape);
  if (n >= chunk_bytes_limit / dtype_bytes(definition.dtype)) {
    return Status(Code::unsupported,
                  "chunk shape " + shape_text(chunk_shape) + " is 4 GiB or more, HDF5's limit");
  }
  return Status();
}

Result<Hdf5Id> dataset_creation_list(const DatasetDefinition& definition, bool track_order,
                                     StubFilters& stubs) {
  Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  bool done = list.valid() && set_object_properties(list.get(), track_order);
  const Shape& chunk_shape = definition.chunk_shape;
  const auto kind = chunk_shape.empty() ? StoredForm::Kind::contiguous : StoredForm::Kind::chunked;
  done = done && set_layout(list.get(), kind, chunk_shape, definition.contiguous_address != 0);
  if (!done) return hdf5_failure(Code::invalid_argument, "chunk shape " + shape_text(chunk_shape));
  if (definition.fill_value) {
    TAILRACE_TRY(set_fill_value(list.get(), definition.dtype, *definition.fill_value));
  }
  TAILRACE_TRY(append_filters(list.get(), definition.filters, stubs));
  return list;
}

Result<Hdf5Id> stored_creation_list(const StoredForm& storage, hid_t type,
                                    std::span<const std::byte> fill_value, bool planned, bool bare,
                                    bool track_order, StubFilters& stubs) {
  Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  if (!list.valid() || !set_object_properties(list.get(), track_order) ||
      !set_layout(list.get(), storage.kind, storage.chunk_shape, planned)) {
    return hdf5_failure(Code::invalid_argument, "chunk shape " + shape_text(storage.chunk_shape));
  }
  if (!fill_value.empty() && (fill_value.size() != H5Tget_size(type) ||
                              H5Pset_fill_value(list.get(), type, fill_value.data()) < 0)) {
    return hdf5_failure(Code::internal, "fill value");
  }
#if H5_VERSION_GE(1, 10, 5)
  // Without it HDF5 leaves 120 bytes of room for attributes in every header.
  if (bare && H5Pset_dset_no_attrs_hint(list.get(), true) < 0) {
    return hdf5_failure(Code::internal, "dataset creation list");
  }
#endif
  // The stored client data are what a filter's set_local has made of the user's. HDF5's own filters
  // make the same of them once more; plug-ins must not see them again (append_filters).
  std::vector<FilterSpec> filters = storage.filters;
  for (FilterSpec& filter : filters) {
    const bool own = filter.filter_id < H5Z_FILTER_RESERVED;
    if (own && !filter.final_client_data.empty()) filter.client_data = filter.final_client_data;
    if (!own) filter.client_data.clear();
  }
  TAILRACE_TRY(append_filters(list.get(), filters, stubs));
  return list;
}

}  // namespace tailrace
