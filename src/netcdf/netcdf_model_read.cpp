// Reads any HDF5 file as netCDF-4's data model.
//
// One walk lists groups and datasets. Then scales become dimensions, and all datasets become
// variables, except the scales of dimensions without a variable. A group with several hard links is
// listed with its members under each name. Dimensions stated in a damaged or foreign file count
// only if they match the dataset's own extents.
//
// All other dimensions are anonymous, by the netCDF-4 library's rule. Groups are processed in one
// pass, each after its child groups. A dimension of the group is used if it has the same length and
// the variable does not have it yet; otherwise a new one is created.
// Source: libhdf5/hdf5open.c of netCDF-C (read_scale, rec_match_dimscales), as observed.

#include "netcdf/netcdf_scales.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <unordered_map>

#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "netcdf/netcdf_attributes.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Limit for groups and datasets listed under further names of the groups above them. A few links
/// that double the objects at each level would exceed any memory.
constexpr std::size_t kFurtherObjectsMax = std::size_t{1} << 16;

/// A dataset as found by the walk.
struct FoundDataset {
  std::string name;
  std::string path;
  std::size_t group = 0;
  ModelType type = ModelType::other;
  Shape extents;
  Shape limits;
  bool scale = false;
  bool without_variable = false;
  std::optional<int> id;           ///< Value of _Netcdf4Dimid.
  std::vector<int> coordinates;    ///< Value of _Netcdf4Coordinates.
  std::vector<hobj_ref_t> scales;  ///< First scale of each dimension; 0: none. Empty: no list.
  hobj_ref_t reference = 0;        ///< Reference to this dataset, if it is a scale.
  bool no_fill = false;
  std::vector<ModelAttribute> attributes;
  std::size_t dimension = kNone;  ///< Dimension that this scale represents.
  std::string first_path;         ///< Path under which it was listed first; else empty.

  bool unlimited(std::size_t d) const { return limits[d] == H5S_UNLIMITED; }
};

/// The first scale of each dimension, as referenced by DIMENSION_LIST; empty if that list does not
/// exist or does not match the rank.
std::vector<hobj_ref_t> listed_scales(hid_t dataset, std::size_t rank) {
  if (rank == 0 || H5Aexists(dataset, "DIMENSION_LIST") <= 0) return {};
  const Hdf5Id attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  if (H5Tget_class(type.get()) != H5T_VLEN) return {};
  const Hdf5Id element(H5Tget_super(type.get()));
  if (H5Tequal(element.get(), H5T_STD_REF_OBJ) <= 0 ||
      H5Sget_simple_extent_npoints(space.get()) != static_cast<hssize_t>(rank)) {
    return {};
  }
  const Hdf5Id in_memory(H5Tvlen_create(H5T_STD_REF_OBJ));
  std::vector<hvl_t> lists(rank, hvl_t{0, nullptr});
  if (H5Aread(attribute.get(), in_memory.get(), lists.data()) < 0) return {};
  std::vector<hobj_ref_t> scales(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    if (lists[d].len > 0 && lists[d].p != nullptr) {
      std::memcpy(&scales[d], lists[d].p, sizeof(hobj_ref_t));
    }
  }
  reclaim_variable_length(in_memory.get(), space.get(), lists.data());
  return scales;
}

/// True if no fill value was set, as netCDF-C defines it. HDF5 then reads never-written elements as
/// zeros as well, unless its fill time is "never".
bool is_without_fill(hid_t creation) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
  return H5Pfill_value_defined(creation, &defined) >= 0 && defined != H5D_FILL_VALUE_USER_DEFINED;
}

class ModelReader final : private Hdf5Visitor {
 public:
  ModelReader(hid_t file, GroupNames names) : file_(file), names_(names) {}

  Result<NetcdfFile> run() {
    out_.model.groups.clear();
    TAILRACE_TRY(walk_hdf5(file_, *this));
    // netCDF-4 lists all objects of a group before its child groups.
    std::ranges::stable_sort(datasets_, {}, &FoundDataset::group);
    make_dimensions();
    make_variables();
    find_lengths();
    for (std::size_t g = out_.model.groups.size(); g-- > 0;)
      child_groups_[parent_of(g)].push_back(g);
    make_anonymous();
    return std::move(out_);
  }

 private:
  std::size_t parent_of(std::size_t g) const {
    return g == 0 ? kNone : out_.model.groups[g].parent;
  }

  Status failed(const std::string& path, const char* what) const {
    return hdf5_failure(Code::corrupt, "object \"" + path + "\": cannot " + what);
  }

  Status group(hid_t group, const std::string& path) override {
    std::vector<ModelGroup>& groups = out_.model.groups;
    const bool root = groups.empty();
    for (const char* mark : {"_NCProperties", "_nc3_strict"}) {
      if (root && H5Aexists(group, mark) > 0) out_.model.netcdf4 = true;
    }
    group_of_.emplace(path, groups.size());
    groups.push_back(
        {path, group_around(path), read_model_attributes(group, path, out_.model.remarks)});
    return Status();
  }

  /// Called for a further hard link. A dataset is a variable under each of its names, and so are
  /// the members of a group.
  Status again(const std::string& path, const std::string& first_path) override {
    if (group_of_.contains(first_path)) {
      list_group_again(path, first_path);
      return Status();
    }
    const auto first = std::ranges::find(datasets_, first_path, &FoundDataset::path);
    if (first != datasets_.end()) list_dataset_again(path, *first);
    return Status();
  }

  void list_dataset_again(const std::string& path, FoundDataset found) {
    if (found.first_path.empty()) found.first_path = found.path;
    set_place(path, found);
    datasets_.push_back(std::move(found));
  }

  /// List a group under a further name. The walk is depth first, so all of the group's members are
  /// listed already, unless the link lies among them.
  void list_group_again(const std::string& path, const std::string& first_path) {
    if (names_ == GroupNames::first) return;
    const std::string inside = first_path == "/" ? first_path : first_path + "/";
    const std::string quoted = "hard link \"" + path + "\"";
    if (path.starts_with(inside)) {
      out_.model.remarks.push_back(quoted + " leads back to group \"" + first_path +
                                   "\", which contains it; the link is not followed");
      return;
    }
    std::vector<std::size_t> groups;
    std::vector<std::size_t> datasets;
    for (std::size_t g = 0; g < out_.model.groups.size(); ++g) {
      const std::string& listed = out_.model.groups[g].path;
      if (listed == first_path || listed.starts_with(inside)) groups.push_back(g);
    }
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      if (datasets_[i].path.starts_with(inside)) datasets.push_back(i);
    }
    if (n_further_ + groups.size() + datasets.size() > kFurtherObjectsMax) {
      out_.model.remarks.push_back(
          quoted + ": the members of group \"" + first_path +
          "\" are listed under that name only, because the file has more than " +
          std::to_string(kFurtherObjectsMax) + " objects under other names of groups");
      return;
    }
    n_further_ += groups.size() + datasets.size();
    const auto renamed = [&](const std::string& listed) {
      return path + listed.substr(first_path.size());
    };
    for (const std::size_t g : groups) {
      ModelGroup group = out_.model.groups[g];
      if (group.first_path.empty()) group.first_path = group.path;
      group.path = renamed(group.path);
      group.parent = group_around(group.path);
      group_of_.emplace(group.path, out_.model.groups.size());
      out_.model.groups.push_back(std::move(group));
    }
    for (const std::size_t i : datasets)
      list_dataset_again(renamed(datasets_[i].path), datasets_[i]);
  }

  /// Position of the parent group; the root for names that contain slashes, which damaged files
  /// have.
  std::size_t group_around(const std::string& path) const {
    const auto found = group_of_.find(parent_path(path));
    return found == group_of_.end() ? 0 : found->second;
  }

  void set_place(const std::string& path, FoundDataset& found) const {
    found.name = last_component(path);
    found.path = path;
    found.group = group_around(path);
  }

  Status dataset(hid_t dataset, const std::string& path) override {
    FoundDataset found;
    set_place(path, found);
    const Hdf5Id type(H5Dget_type(dataset));
    const Hdf5Id space(H5Dget_space(dataset));
    const Hdf5Id creation(H5Dget_create_plist(dataset));
    const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
    if (!type.valid() || !creation.valid() || rank < 0)
      return failed(found.path, "read its header");
    const std::optional<ModelType> model_type = model_type_of(type.get());
    if (!model_type || H5Sget_simple_extent_type(space.get()) == H5S_NULL) return Status();
    found.type = *model_type;
    std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
    std::vector<hsize_t> limits(extents.size());
    H5Sget_simple_extent_dims(space.get(), extents.data(), limits.data());
    found.extents.assign(extents.begin(), extents.end());
    found.limits.assign(limits.begin(), limits.end());
    found.scale = rank > 0 && hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
    found.coordinates = read_own_numbers(dataset, "_Netcdf4Coordinates");
    if (found.scale) {
      found.without_variable = is_dimension_without_variable(dataset);
      const std::vector<int> id = read_own_numbers(dataset, "_Netcdf4Dimid");
      if (!id.empty()) found.id = id[0];
      out_.model.netcdf4 = out_.model.netcdf4 || found.id.has_value();
      if (H5Rcreate(&found.reference, dataset, ".", H5R_OBJECT, -1) < 0) found.reference = 0;
    } else {
      found.scales = listed_scales(dataset, found.extents.size());
    }
    found.no_fill = is_without_fill(creation.get());
    if (!found.without_variable) {
      found.attributes = read_model_attributes(dataset, found.path, out_.model.remarks);
    }
    datasets_.push_back(std::move(found));
    return Status();
  }

  /// Make dimensions in the order of their ids, as netCDF lists them, or in walk order without ids.
  void make_dimensions() {
    struct Numbered {
      int id;
      std::size_t dataset;
    };
    std::vector<Numbered> scales;
    std::set<int> ids;
    std::map<hobj_ref_t, int> id_of;  // A scale has the same id under all of its names.
    int next_id = 0;
    bool fit = true;
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      const FoundDataset& scale = datasets_[i];
      if (!scale.scale) continue;
      const auto known = id_of.find(scale.reference);
      if (scale.reference != 0 && known != id_of.end()) {
        scales.push_back({known->second, i});
        continue;
      }
      const int id = scale.id.value_or(next_id);
      fit = fit && id >= 0 && id < std::numeric_limits<int>::max() && ids.insert(id).second;
      if (fit) next_id = std::max(next_id, id + 1);
      id_of.emplace(scale.reference, id);
      scales.push_back({id, i});
    }
    if (fit) {
      std::ranges::stable_sort(scales, {}, &Numbered::id);
    }
    for (std::size_t d = 0; d < scales.size(); ++d) {
      FoundDataset& scale = datasets_[scales[d].dataset];
      scale.dimension = d;
      const int id = fit ? scales[d].id : static_cast<int>(d);
      // Contradictory ids cannot identify a dimension.
      if (fit) by_id_.emplace(id, d);
      if (scale.reference != 0) by_reference_.emplace(scale.reference, d);
      out_.model.dimensions.push_back(
          {scale.name, scale.group, scale.extents[0], scale.unlimited(0), false});
      out_.dimension_ids.push_back(id);
      out_.scale_paths.push_back(scale.path);
    }
    next_id_ = fit ? next_id : static_cast<int>(scales.size());
  }

  /// True if a dimension can be the d-th of a dataset: visible from its group, and of its length.
  bool fits(const FoundDataset& dataset, std::size_t d, std::size_t dimension) const {
    const ModelDimension& candidate = out_.model.dimensions[dimension];
    if (!candidate.unlimited && candidate.length != dataset.extents[d]) return false;
    for (std::size_t g = dataset.group;; g = out_.model.groups[g].parent) {
      if (g == candidate.group) return true;
      if (g == 0) return false;
    }
  }

  /// The first dimension with this key that fits; kNone: no such dimension. A scale in a group with
  /// several names represents one dimension for each of them.
  template <class Key>
  std::size_t fitting(const std::multimap<Key, std::size_t>& dimensions, Key key,
                      const FoundDataset& dataset, std::size_t d) const {
    for (auto [at, end] = dimensions.equal_range(key); at != end; ++at) {
      if (fits(dataset, d, at->second)) return at->second;
    }
    return kNone;
  }

  /// The d-th dimension of a dataset, as stated in the file; kNone: not stated.
  std::size_t named_dimension(const FoundDataset& dataset, std::size_t d) const {
    if (dataset.scale && d == 0) return dataset.dimension;
    std::size_t found = kNone;
    if (dataset.coordinates.size() == dataset.extents.size()) {
      found = fitting(by_id_, dataset.coordinates[d], dataset, d);
    }
    if (found == kNone && d < dataset.scales.size() && dataset.scales[d] != 0) {
      found = fitting(by_reference_, dataset.scales[d], dataset, d);
    }
    return found;
  }

  void make_variables() {
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
      FoundDataset& found = datasets_[i];
      if (found.without_variable) continue;
      ModelVariable variable;
      const bool renamed = found.name.starts_with(kNonCoordinatePrefix) &&
                           found.name.size() > kNonCoordinatePrefix.size();
      variable.name = renamed ? found.name.substr(kNonCoordinatePrefix.size()) : found.name;
      variable.group = found.group;
      variable.type = found.type;
      variable.dataset_path = found.path;
      variable.no_fill = found.no_fill;
      variable.first_path = found.first_path;
      variable.attributes = std::move(found.attributes);
      for (std::size_t d = 0; d < found.extents.size(); ++d) {
        variable.dimensions.push_back(named_dimension(found, d));
      }
      out_.tied.push_back(!found.scales.empty());
      dataset_of_.push_back(i);
      out_.model.variables.push_back(std::move(variable));
    }
  }

  /// An unlimited dimension is as long as the longest of its variables.
  void find_lengths() {
    for (std::size_t v = 0; v < out_.model.variables.size(); ++v) {
      const std::vector<std::size_t>& dimensions = out_.model.variables[v].dimensions;
      for (std::size_t d = 0; d < dimensions.size(); ++d) {
        if (dimensions[d] == kNone) continue;
        ModelDimension& dimension = out_.model.dimensions[dimensions[d]];
        if (!dimension.unlimited) continue;
        dimension.length = std::max(dimension.length, datasets_[dataset_of_[v]].extents[d]);
      }
    }
  }

  void make_anonymous() {
    std::map<std::size_t, std::vector<std::size_t>> variables_of;
    for (std::size_t v = 0; v < out_.model.variables.size(); ++v) {
      variables_of[out_.model.variables[v].group].push_back(v);
    }
    std::map<std::size_t, std::vector<std::size_t>> dimensions_of;
    for (std::size_t d = 0; d < out_.model.dimensions.size(); ++d) {
      dimensions_of[out_.model.dimensions[d].group].push_back(d);
    }
    for (const std::size_t group : children_first()) {
      for (const std::size_t v : variables_of[group]) add_anonymous(v, dimensions_of[group]);
    }
  }

  /// Groups in the order in which the library matches dimensions.
  std::vector<std::size_t> children_first() const {
    std::vector<std::size_t> order;
    std::vector<std::pair<std::size_t, bool>> stack = {{0, false}};
    while (!stack.empty()) {
      const auto [group, done] = stack.back();
      stack.pop_back();
      if (done) {
        order.push_back(group);
        continue;
      }
      stack.emplace_back(group, true);
      // Push the last child first, so that the first is on top.
      const auto children = child_groups_.find(group);
      if (children == child_groups_.end()) continue;
      for (const std::size_t child : children->second) stack.emplace_back(child, false);
    }
    return order;
  }

  void add_anonymous(std::size_t v, std::vector<std::size_t>& dimensions_of_group) {
    ModelVariable& variable = out_.model.variables[v];
    const FoundDataset& dataset = datasets_[dataset_of_[v]];
    for (std::size_t d = 0; d < variable.dimensions.size(); ++d) {
      if (variable.dimensions[d] != kNone) continue;
      const auto matches = [&](std::size_t candidate) {
        const ModelDimension& dimension = out_.model.dimensions[candidate];
        return dimension.length == dataset.extents[d] &&
               dimension.unlimited == dataset.unlimited(d) &&
               std::ranges::find(variable.dimensions, candidate) == variable.dimensions.end();
      };
      const auto found = std::ranges::find_if(dimensions_of_group, matches);
      if (found != dimensions_of_group.end()) {
        variable.dimensions[d] = *found;
        continue;
      }
      variable.dimensions[d] = out_.model.dimensions.size();
      dimensions_of_group.push_back(out_.model.dimensions.size());
      out_.model.dimensions.push_back({"phony_dim_" + std::to_string(next_id_), variable.group,
                                       dataset.extents[d], dataset.unlimited(d), true});
      out_.dimension_ids.push_back(next_id_++);
      out_.scale_paths.emplace_back();
    }
  }

  hid_t file_;
  GroupNames names_;
  std::size_t n_further_ = 0;  // Objects listed under further names of groups.
  NetcdfFile out_;
  std::unordered_map<std::string, std::size_t> group_of_;  // Group number by path.
  std::vector<FoundDataset> datasets_;
  std::vector<std::size_t> dataset_of_;  // Dataset of each variable.
  std::multimap<int, std::size_t> by_id_;
  std::multimap<hobj_ref_t, std::size_t> by_reference_;
  std::map<std::size_t, std::vector<std::size_t>> child_groups_;
  int next_id_ = 0;
};

}  // namespace

Result<NetcdfFile> read_netcdf_file(hid_t file, GroupNames names) {
  return ModelReader(file, names).run();
}

Result<NetcdfModel> read_netcdf_model(std::int64_t hdf5_id) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(NetcdfFile file, read_netcdf_file(hdf5_id, GroupNames::all));
  return std::move(file.model);
}

}  // namespace tailrace
