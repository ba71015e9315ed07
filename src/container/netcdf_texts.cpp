// Rewrites a dataset of strings within its file.

#include "container/netcdf_texts.hpp"

#include <algorithm>

#include "container/hdf5_copy.hpp"
#include "container/hdf5_links.hpp"
#include "container/hdf5_references.hpp"
#include "container/input_conventions.hpp"
#include "container/netcdf_attributes.hpp"
#include "core/box.hpp"

namespace tailrace {
namespace {

/// Texts are no place for large data; what is larger stays as it is.
constexpr std::uint64_t kTextBytesMax = std::uint64_t{1} << 28;

std::string what_of(const std::string& path) { return "strings of \"" + path + "\""; }

/// The texts of a dataset whose type is `type`.
Result<std::vector<std::string>> read_texts(hid_t dataset, hid_t type, std::uint64_t n_texts,
                                            const std::string& path) {
  const std::size_t text_bytes = H5Tget_size(type);
  std::vector<char> bytes(n_texts * text_bytes);
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    return hdf5_failure(Code::corrupt, what_of(path));
  }
  const bool blanks = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < n_texts; ++i) {
    std::string text(bytes.data() + i * text_bytes, text_bytes);
    text.resize(std::min(text.size(), text.find('\0')));
    while (blanks && !text.empty() && text.back() == ' ') text.pop_back();
    texts.push_back(std::move(text));
  }
  return texts;
}

/// An empty dataset like `old`, of variable-length strings.
Hdf5Id create_like(hid_t file, hid_t old, hid_t type, const std::string& path) {
  const Hdf5Id space(H5Dget_space(old));
  const Hdf5Id given(H5Dget_create_plist(old));
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(list.get(), false);
  H5Pset_attr_creation_order(list.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  if (H5Pget_layout(given.get()) == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(max_rank);
    const int rank = H5Pget_chunk(given.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_chunk(list.get(), rank, chunk.data());
  }
  const Hdf5Id links = utf8_link_properties();
  return Hdf5Id(
      H5Dcreate2(file, path.c_str(), type, space.get(), links.get(), list.get(), H5P_DEFAULT));
}

}  // namespace

Status make_texts_variable(hid_t file, const std::string& path, std::vector<std::string>& lines) {
  Hdf5Id old(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(old.get()));
  const Hdf5Id space(H5Dget_space(old.get()));
  const bool fixed = H5Tget_class(type.get()) == H5T_STRING && H5Tget_size(type.get()) > 1 &&
                     H5Tis_variable_str(type.get()) <= 0;
  const hssize_t n_texts = H5Sget_simple_extent_npoints(space.get());
  if (!fixed || n_texts < 0) return Status();
  if (static_cast<std::uint64_t>(n_texts) > kTextBytesMax / H5Tget_size(type.get())) {
    lines.push_back(what_of(path) + " have a fixed length, which netCDF cannot read: too many");
    return Status();
  }
  const Result<std::vector<std::string>> texts =
      read_texts(old.get(), type.get(), static_cast<std::uint64_t>(n_texts), path);
  if (!texts.ok()) return texts.status();
  const std::string group = parent_path(path);
  const Result<std::vector<std::string>> order = link_names(file, group);
  if (!order.ok()) return order.status();
  std::string aside = child_path(group, "tailrace_moving");
  while (link_exists(file, aside)) aside += "_";

  const Hdf5Id text_type = hdf5_memory_type(ModelType::text);
  H5Tset_cset(text_type.get(), H5Tget_cset(type.get()));
  const Hdf5Id made = create_like(file, old.get(), text_type.get(), aside);
  std::vector<const char*> pointers;
  for (const std::string& text : *texts) pointers.push_back(text.c_str());
  if (!made.valid() || (!pointers.empty() && H5Dwrite(made.get(), text_type.get(), H5S_ALL, H5S_ALL,
                                                      H5P_DEFAULT, pointers.data()) < 0)) {
    return hdf5_failure(Code::internal, what_of(path));
  }
  const Hdf5Catalog no_catalog;  // Within one file references stay as they are.
  Hdf5References references(file, no_catalog, file);
  Hdf5Copier(file, file, references, lines).copy_plain_attributes(old.get(), made.get(), path);
  const Result<ScaleTies> ties = untie_scales(file, old.get(), path);
  if (!ties.ok()) return ties.status();
  old.reset();
  if (H5Ldelete(file, path.c_str(), H5P_DEFAULT) < 0 ||
      H5Lmove(file, aside.c_str(), file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0) {
    return hdf5_failure(Code::internal, what_of(path));
  }
  TAILRACE_TRY(tie_scales(file, path, *ties));
  return order_links(file, group, *order);
}

}  // namespace tailrace
