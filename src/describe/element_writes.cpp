#include "describe/element_writes.hpp"

#include <array>
#include <cstddef>

#include "hdf5/dataset_describe.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

bool is_array_of_such(hid_t type) {
  return H5Tget_class(type) == H5T_ARRAY && holds_variable_length(type);
}

bool is_list_of_such_arrays(hid_t type) {
  return H5Tget_class(type) == H5T_VLEN && arrays_hold_variable_length(type);
}

}  // namespace

bool holds_variable_length(hid_t type) { return any_type_within(type, has_variable_length); }

bool arrays_hold_variable_length(hid_t type) { return any_type_within(type, is_array_of_such); }

Status check_lists(hid_t type, const std::string& what) {
  if (!any_type_within(type, is_list_of_such_arrays)) return Status();
  return Status(Code::unsupported, what +
                                       " contains variable-length lists of arrays of strings or "
                                       "lists, which this HDF5 cannot write");
}

herr_t write_elements(hid_t dataset, hid_t type, hid_t space, hid_t transfer, const void* values) {
  const hssize_t n_values = H5Sget_select_npoints(space);
  if (n_values < 0) return -1;
  const auto n_elements = static_cast<hsize_t>(n_values);
  if (n_elements <= 1 || !arrays_hold_variable_length(type)) {
    const Hdf5Id memory(H5Screate_simple(1, &n_elements, nullptr));
    return H5Dwrite(dataset, type, memory.get(), space, transfer, values);
  }
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
  std::array<hsize_t, kMaxRank> first{};
  std::array<hsize_t, kMaxRank> last{};
  if (H5Sget_select_bounds(space, first.data(), last.data()) < 0) return -1;
  const hsize_t one = 1;
  const Hdf5Id memory(H5Screate_simple(1, &one, nullptr));
  const std::size_t value_bytes = H5Tget_size(type);
  std::array<hsize_t, kMaxRank> at = first;
  const auto* value = static_cast<const std::byte*>(values);
  for (hsize_t i = 0; i < n_elements; ++i, value += value_bytes) {
    if (H5Sselect_elements(space, H5S_SELECT_SET, 1, at.data()) < 0 ||
        H5Dwrite(dataset, type, memory.get(), space, transfer, value) < 0) {
      return -1;
    }
    for (std::size_t d = rank; d-- > 0;) {
      if (++at[d] <= last[d]) break;
      at[d] = first[d];
    }
  }
  return 0;
}

}  // namespace tailrace
