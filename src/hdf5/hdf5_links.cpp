// Link order, attributes and dimension scales.

#include "hdf5/hdf5_links.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

template <class Info>
herr_t collect_name(hid_t, const char* name, const Info*, void* names) {
  return called_by_hdf5([&] {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  });
}

/// The path of an open object.
std::string path_of(hid_t object) {
  const ssize_t n_bytes = H5Iget_name(object, nullptr, 0);
  std::string path(n_bytes > 0 ? static_cast<std::size_t>(n_bytes) : 0, '\0');
  if (n_bytes > 0) H5Iget_name(object, path.data(), path.size() + 1);
  return path;
}

herr_t collect_scale(hid_t, unsigned dimension, hid_t scale, void* scales) {
  return called_by_hdf5([&] {
    using Scales = std::vector<std::pair<std::string, unsigned>>;
    static_cast<Scales*>(scales)->emplace_back(path_of(scale), dimension);
    return 0;
  });
}

/// The type of ScaleUser in memory and in a file, as HDF5's own functions write it.
Hdf5Id scale_user_type() {
  Hdf5Id type(H5Tcreate(H5T_COMPOUND, sizeof(ScaleUser)));
  H5Tinsert(type.get(), "dataset", HOFFSET(ScaleUser, dataset), H5T_STD_REF_OBJ);
  H5Tinsert(type.get(), "dimension", HOFFSET(ScaleUser, dimension), H5T_NATIVE_INT);
  return type;
}

/// The users listed in a scale's REFERENCE_LIST; empty without that attribute.
std::vector<ScaleUser> scale_users(hid_t scale) {
  if (H5Aexists(scale, "REFERENCE_LIST") <= 0) return {};
  const Hdf5Id attribute(H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const Hdf5Id type = scale_user_type();
  const hssize_t n_users = H5Sget_simple_extent_npoints(space.get());
  std::vector<ScaleUser> users(n_users > 0 ? static_cast<std::size_t>(n_users) : 0);
  if (!users.empty() && H5Aread(attribute.get(), type.get(), users.data()) < 0) users.clear();
  return users;
}

/// Write a 1-D attribute with these elements. @returns true on success
bool write_list(hid_t object, const char* name, hid_t type, hsize_t n_elements,
                const void* elements) {
  const Hdf5Id space(H5Screate_simple(1, &n_elements, nullptr));
  const Hdf5Id made(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  return made.valid() && H5Awrite(made.get(), type, elements) >= 0;
}

}  // namespace

Result<ScaleTies> untie_scales(hid_t file, hid_t dataset, const std::string& path) {
  ScaleTies ties;
  const std::string what = "dimension scales of dataset \"" + path + "\"";
  const Hdf5Id space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space.get());
  for (unsigned d = 0; rank > 0 && d < static_cast<unsigned>(rank); ++d) {
    if (H5DSget_num_scales(dataset, d) <= 0) continue;
    if (H5DSiterate_scales(dataset, d, nullptr, collect_scale, &ties.scales) < 0) {
      return hdf5_failure(Code::internal, what + " cannot be listed");
    }
  }
  for (const auto& [scale_path, dimension] : ties.scales) {
    const Hdf5Id scale(H5Dopen2(file, scale_path.c_str(), H5P_DEFAULT));
    if (!scale.valid() || H5DSdetach_scale(dataset, scale.get(), dimension) < 0) {
      return hdf5_failure(Code::internal, what + " cannot be detached");
    }
  }
  for (const ScaleUser& entry : scale_users(dataset)) {
    const Hdf5Id user(H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &entry.dataset));
    if (!user.valid() || H5DSdetach_scale(user.get(), dataset, entry.dimension) < 0) {
      return hdf5_failure(Code::internal, what + " cannot be detached");
    }
    ties.users.emplace_back(path_of(user.get()), entry.dimension);
  }
  return ties;
}

Status tie_scales(hid_t file, const std::string& path, const ScaleTies& ties) {
  ScaleAttacher attacher(file);
  std::map<std::string, DimensionScales> scales_of;
  const auto tie = [&](const std::string& dataset, const std::string& scale, unsigned dimension) {
    DimensionScales& scales = scales_of[dataset];
    if (scales.size() <= dimension) scales.resize(dimension + 1);
    scales[dimension].push_back(scale);
  };
  for (const auto& [scale, dimension] : ties.scales) tie(path, scale, dimension);
  for (const auto& [user, dimension] : ties.users) tie(user, path, dimension);
  for (const auto& [user, scales] : scales_of) {
    const Hdf5Id dataset(H5Dopen2(file, user.c_str(), H5P_DEFAULT));
    TAILRACE_TRY(attacher.attach(dataset.get(), user, scales));
  }
  return attacher.finish();
}

Result<std::vector<std::string>> link_names(hid_t file, const std::string& group_path) {
  const Hdf5Id group(H5Gopen2(file, group_path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation(H5Gget_create_plist(group.get()));
  unsigned order = 0;
  std::vector<std::string> names;
  if (!creation.valid() || H5Pget_link_creation_order(creation.get(), &order) < 0 ||
      iterate_links(group.get(),
                    (order & H5P_CRT_ORDER_TRACKED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME,
                    collect_name<LinkInfo>, &names) < 0) {
    return hdf5_failure(Code::internal, "links of group \"" + group_path + "\" cannot be listed");
  }
  return names;
}

Result<std::vector<std::string>> attribute_names(hid_t object, const std::string& owner) {
  Hdf5Id creation;
  const H5I_type_t kind = H5Iget_type(object);
  if (kind == H5I_GROUP) creation = Hdf5Id(H5Gget_create_plist(object));
  if (kind == H5I_DATASET) creation = Hdf5Id(H5Dget_create_plist(object));
  if (kind == H5I_DATATYPE) creation = Hdf5Id(H5Tget_create_plist(object));
  unsigned order = 0;
  const bool tracked = creation.valid() &&
                       H5Pget_attr_creation_order(creation.get(), &order) >= 0 &&
                       (order & H5P_CRT_ORDER_TRACKED) != 0;
  std::vector<std::string> names;
  hsize_t next = 0;
  // If an attribute of a later format version ends the iteration, HDF5 1.10 reads beyond its table.
  // Looking up an attribute that does not exist decodes the complete header first.
  if (H5Aexists(object, "\x01") < 0 ||
      H5Aiterate2(object, tracked ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, &next,
                  collect_name<H5A_info_t>, &names) < 0) {
    return hdf5_failure(Code::corrupt, "attributes of \"" + owner + "\" cannot be listed");
  }
  return names;
}

Status write_own_numbers(hid_t object, const char* name, const std::vector<int>& numbers,
                         bool scalar) {
  if (H5Aexists(object, name) > 0) {
    if (read_own_numbers(object, name) == numbers) return Status();
    if (H5Adelete(object, name) < 0)
      return hdf5_failure(Code::internal,
                          "attribute \"" + std::string(name) + "\" cannot be deleted");
  }
  const hsize_t n_numbers = numbers.size();
  const Hdf5Id space(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n_numbers, nullptr));
  const Hdf5Id made(
      H5Acreate2(object, name, H5T_NATIVE_INT, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!made.valid() || H5Awrite(made.get(), H5T_NATIVE_INT, numbers.data()) < 0) {
    return hdf5_failure(Code::internal,
                        "attribute \"" + std::string(name) + "\" cannot be written");
  }
  return Status();
}

std::vector<int> read_own_numbers(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  if (n < 1 || n > static_cast<hssize_t>(kMaxRank) || H5Tget_class(type.get()) != H5T_INTEGER) {
    return {};
  }
  std::vector<int> numbers(static_cast<std::size_t>(n));
  if (H5Aread(attribute.get(), H5T_NATIVE_INT, numbers.data()) < 0) return {};
  return numbers;
}

Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names) {
  const std::string what = "links of group \"" + group_path + "\" cannot be ";
  const Hdf5Id group(H5Gopen2(file, group_path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation(H5Gget_create_plist(group.get()));
  unsigned order = 0;
  if (!creation.valid() || H5Pget_link_creation_order(creation.get(), &order) < 0) {
    return hdf5_failure(Code::internal, what + "listed");
  }
  if ((order & H5P_CRT_ORDER_TRACKED) == 0) return Status();

  const std::unordered_set<std::string> named(names.begin(), names.end());
  std::vector<std::string> present;
  if (iterate_links(group.get(), H5_INDEX_CRT_ORDER, collect_name<LinkInfo>, &present) < 0) {
    return hdf5_failure(Code::internal, what + "listed");
  }
  const std::unordered_set<std::string> there(present.begin(), present.end());
  std::erase_if(present, [&](const std::string& name) { return !named.contains(name); });
  std::vector<std::string> wanted = names;
  std::erase_if(wanted, [&](const std::string& name) { return !there.contains(name); });

  const auto first_wrong = std::mismatch(wanted.begin(), wanted.end(), present.begin());
  std::string aside = "tailrace_moving";
  while (there.contains(aside)) aside += "_";
  for (auto name = first_wrong.first; name != wanted.end(); ++name) {
    const Hdf5Id list = link_properties_of(*name);
    const hid_t links = list.get();
    if (H5Lmove(group.get(), name->c_str(), group.get(), aside.c_str(), links, H5P_DEFAULT) < 0 ||
        H5Lmove(group.get(), aside.c_str(), group.get(), name->c_str(), links, H5P_DEFAULT) < 0) {
      return hdf5_failure(Code::internal, what + "reordered: cannot move link \"" + *name + "\"");
    }
  }
  return Status();
}

Result<ScaleAttacher::Scale*> ScaleAttacher::scale_at(const std::string& path) {
  const auto [found, is_new] = scales_.try_emplace(path);
  Scale& scale = found->second;
  if (!is_new) return &scale;
  scale.dataset = Hdf5Id(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
  const bool done =
      scale.dataset.valid() &&
      (H5DSis_scale(scale.dataset.get()) > 0 || H5DSset_scale(scale.dataset.get(), nullptr) >= 0) &&
      H5Rcreate(&scale.reference, scale.dataset.get(), ".", H5R_OBJECT, H5I_INVALID_HID) >= 0;
  if (done) return &scale;
  const Status failure =
      hdf5_failure(Code::internal, "dataset \"" + path + "\" cannot become a dimension scale");
  scales_.erase(found);
  return failure;
}

Status ScaleAttacher::attach(hid_t dataset, const std::string& path,
                             const DimensionScales& scales) {
  const std::string what = "dimension scales of \"" + path + "\"";
  const auto failed = [&] { return hdf5_failure(Code::internal, what + " cannot be attached"); };
  if (std::ranges::all_of(scales, &std::vector<std::string>::empty)) return Status();
  const Hdf5Id space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || scales.size() > static_cast<std::size_t>(rank)) return failed();
  if (H5DSis_scale(dataset) > 0) {
    return Status(Code::invalid_argument,
                  what + ": the dataset is a dimension scale, which cannot have scales");
  }
  Status outcome;
  std::vector<std::vector<Scale*>> found(static_cast<std::size_t>(rank));
  for (std::size_t d = 0; d < scales.size(); ++d) {
    for (const std::string& scale_path : scales[d]) {
      const Result<Scale*> scale = scale_at(scale_path);
      if (!scale.ok()) outcome = scale.status().within(what);
      const bool is_new = scale.ok() && std::ranges::find(found[d], *scale) == found[d].end();
      if (is_new) found[d].push_back(*scale);
    }
  }
  if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) {
    return attach_first(dataset, found) ? outcome : failed();
  }
  // H5DSattach_scale() searches the existing lists, which must be complete.
  TAILRACE_TRY(finish());
  for (std::size_t d = 0; d < found.size(); ++d) {
    for (const Scale* const scale : found[d]) {
      const herr_t made = H5DSattach_scale(dataset, scale->dataset.get(), static_cast<unsigned>(d));
      if (made < 0) outcome = failed();
    }
  }
  return outcome;
}

/// Attach the scales of a dataset that has none yet. @returns true on success
bool ScaleAttacher::attach_first(hid_t dataset, const std::vector<std::vector<Scale*>>& scales) {
  hobj_ref_t own = 0;
  if (H5Rcreate(&own, dataset, ".", H5R_OBJECT, H5I_INVALID_HID) < 0) return false;
  std::vector<std::vector<hobj_ref_t>> references(scales.size());
  std::vector<hvl_t> lists(scales.size());
  for (std::size_t d = 0; d < scales.size(); ++d) {
    for (const Scale* const scale : scales[d]) references[d].push_back(scale->reference);
    lists[d] = {references[d].size(), references[d].data()};
  }
  const Hdf5Id type(H5Tvlen_create(H5T_STD_REF_OBJ));
  if (!write_list(dataset, "DIMENSION_LIST", type.get(), lists.size(), lists.data())) return false;
  for (std::size_t d = 0; d < scales.size(); ++d) {
    for (Scale* const scale : scales[d]) {
      scale->new_users.push_back({own, static_cast<unsigned>(d)});
    }
  }
  return true;
}

Status ScaleAttacher::finish() {
  const Hdf5Id type = scale_user_type();
  for (auto& [path, scale] : scales_) {
    if (scale.new_users.empty()) continue;
    const hid_t dataset = scale.dataset.get();
    std::vector<ScaleUser> users = scale_users(dataset);
    users.insert(users.end(), scale.new_users.begin(), scale.new_users.end());
    scale.new_users.clear();
    const bool has_list = H5Aexists(dataset, "REFERENCE_LIST") > 0;
    if ((has_list && H5Adelete(dataset, "REFERENCE_LIST") < 0) ||
        !write_list(dataset, "REFERENCE_LIST", type.get(), users.size(), users.data())) {
      return hdf5_failure(Code::internal, "attribute \"REFERENCE_LIST\" of dimension scale \"" +
                                              path + "\" cannot be written");
    }
  }
  return Status();
}

bool link_exists(hid_t file, const std::string& path) {
  // If a group on the way is missing, HDF5 returns an error instead of "no"; this test covers both.
  return path == "/" || H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0;
}

}  // namespace tailrace
