// Properties of objects and files other than types, values and attributes.

#include "describe/file_properties.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "hdf5/hdf5_properties.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

struct FileForm {
  std::size_t address_bytes = 0;
  std::size_t length_bytes = 0;
  unsigned n_shared_tables = 0;

  static FileForm of(hid_t creation) {
    FileForm form;
    H5Pget_sizes(creation, &form.address_bytes, &form.length_bytes);
    H5Pget_shared_mesg_nindexes(creation, &form.n_shared_tables);
    return form;
  }
};

}  // namespace

std::string object_comment(hid_t object) {
  const ssize_t n_bytes = H5Oget_comment(object, nullptr, 0);
  if (n_bytes <= 0) return "";
  std::string comment(static_cast<std::size_t>(n_bytes), '\0');
  H5Oget_comment(object, comment.data(), comment.size() + 1);
  return comment;
}

std::vector<std::pair<const char*, std::string>> file_properties(hid_t file) {
  const Hdf5Id creation(H5Fget_create_plist(file));
  const FileForm form = FileForm::of(creation.get());
  std::vector<std::pair<const char*, std::string>> properties;
#if H5_VERSION_GE(1, 10, 1)
  H5F_fspace_strategy_t strategy = H5F_FSPACE_STRATEGY_FSM_AGGR;
  hbool_t persistent = false;
  hsize_t threshold = 0;
  hsize_t page_bytes = 0;
  H5Pget_file_space_strategy(creation.get(), &strategy, &persistent, &threshold);
  H5Pget_file_space_page_size(creation.get(), &page_bytes);
  constexpr std::array names = {"aggregated, with managers", "paged", "aggregated", "none"};
  const auto index = static_cast<std::size_t>(strategy);
  properties.emplace_back("file space",
                          fmt::format("{}{}, sections from {} bytes, pages of {} bytes",
                                      index < names.size() ? names.at(index) : "unknown",
                                      persistent ? ", kept" : "", threshold, page_bytes));
#endif
  properties.emplace_back("addresses", fmt::format("{} bytes, lengths of {} bytes",
                                                   form.address_bytes, form.length_bytes));
  unsigned tree = 0;
  unsigned leaf = 0;
  unsigned chunks = 0;
  H5Pget_sym_k(creation.get(), &tree, &leaf);
  H5Pget_istore_k(creation.get(), &chunks);
  properties.emplace_back(
      "nodes of B-trees",
      fmt::format("{} of groups, {} of their leaves, {} of chunk indexes", tree, leaf, chunks));
  properties.emplace_back("tables of shared messages", std::to_string(form.n_shared_tables));
  return properties;
}

bool has_usual_attribute_numbers(hid_t creation) {
  unsigned compact_max = 0;
  unsigned dense_min = 0;
  return H5Pget_attr_phase_change(creation, &compact_max, &dense_min) >= 0 &&
         compact_max == kDefaultCompactMax && dense_min == kDefaultDenseMin;
}

bool has_default_attribute_form(hid_t creation) {
  unsigned compact_max = kDefaultCompactMax;
  unsigned dense_min = kDefaultDenseMin;
  H5Pget_attr_phase_change(creation, &compact_max, &dense_min);
  const bool ours = compact_max == kCompactAttributesMax && dense_min == compact_max / 2;
  return ours || (compact_max == kDefaultCompactMax && dense_min == kDefaultDenseMin);
}

Result<bool> has_old_chunk_index(hid_t dataset) {
  H5D_chunk_index_t index = H5D_CHUNK_IDX_BTREE;
  if (H5Dget_chunk_index_type(dataset, &index) < 0) {
    return hdf5_failure(Code::corrupt, "the type of the chunk index cannot be read");
  }
  return index == H5D_CHUNK_IDX_BTREE;
}

bool loses_link_form(hid_t creation, hid_t copy) {
  std::array<unsigned, 2> before = {kDefaultCompactMax, kDefaultDenseMin};
  std::array<unsigned, 2> after = before;
  const auto default_form = before;
  H5Pget_link_phase_change(creation, &before[0], &before[1]);
  H5Pget_link_phase_change(copy, &after[0], &after[1]);
  // Tailrace derives the limits from the number of links for which a group is created.
  const bool ours = before[0] > kUnexpectedLinksMax && before[1] == before[0] / 2 &&
                    after[1] == after[0] / 2 && after[0] >= before[0];
  return before != default_form && before != after && !ours;
}

Hdf5Id detached_space(hid_t space) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SIMPLE) return Hdf5Id(H5Screate(kind));
  std::array<hsize_t, kMaxRank> extents{};
  std::array<hsize_t, kMaxRank> limits{};
  const int rank = H5Sget_simple_extent_dims(space, extents.data(), limits.data());
  return Hdf5Id(H5Screate_simple(rank, extents.data(), limits.data()));
}

Hdf5Id detached_type(hid_t type) {
  // A file's references are as long as its addresses.
  if (H5Tget_class(type) == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF_OBJ) > 0) {
    return Hdf5Id(H5Tcopy(H5T_STD_REF_OBJ));
  }
  if (H5Tget_class(type) == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF_DSETREG) > 0) {
    return Hdf5Id(H5Tcopy(H5T_STD_REF_DSETREG));
  }
  const Hdf5Id copy(H5Tcopy(type));  // A copy drops the name of a committed type.
  std::size_t n_bytes = 0;
  if (!copy.valid() || H5Tencode(copy.get(), nullptr, &n_bytes) < 0) return Hdf5Id();
  std::vector<std::byte> bytes(n_bytes);
  if (H5Tencode(copy.get(), bytes.data(), &n_bytes) < 0) return Hdf5Id();
  return Hdf5Id(H5Tdecode(bytes.data()));
}

std::size_t address_bytes_of(hid_t file) {
  const Hdf5Id creation(H5Fget_create_plist(file));
  return FileForm::of(creation.get()).address_bytes;
}

bool has_short_addresses(hid_t file) { return address_bytes_of(file) < sizeof(haddr_t); }

bool headers_are_alike(hid_t input, hid_t output) {
  const Hdf5Id of_input(H5Fget_create_plist(input));
  const Hdf5Id of_output(H5Fget_create_plist(output));
  const FileForm a = FileForm::of(of_input.get());
  const FileForm b = FileForm::of(of_output.get());
  return a.address_bytes == b.address_bytes && a.length_bytes == b.length_bytes &&
         a.n_shared_tables == 0;
}

}  // namespace tailrace
