// Lays a model out in HDF5 as the netCDF-4 library does.
//
//   create / open -> (change | create_variable)* -> prepare_commit -> Hdf5File::commit -> ...
//
// Every variable's dataset lies at the path where the library expects it, with the library's types,
// fill values and attributes; netcdf_scales.cpp handles dimension scales. After a failure, the
// file's uncommitted metadata are inconsistent: do not commit.
// Source: the netCDF-4 file format specification; files of netCDF-C 4.9 and 4.10 (docs/netcdf.md).

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "netcdf/netcdf_attributes.hpp"
#include "netcdf/netcdf_model.hpp"
#include "netcdf/netcdf_scales.hpp"

namespace tailrace {
namespace {

/// Chunk sizes for growing variables without a requested chunk shape: netCDF-C's defaults.
constexpr std::uint64_t kChunkBytes = 4U << 20;
constexpr std::uint64_t kListChunkBytes = 4096;

Status unchangeable(const std::string& what, const std::string& why) {
  return Status(Code::invalid_argument, what + ": " + why);
}

/// Check that only permitted parts differ between the file's model and the next one.
Status check_same_frame(const NetcdfModel& now, const NetcdfModel& next) {
  if (next.groups.size() < now.groups.size() || next.dimensions.size() < now.dimensions.size() ||
      next.variables.size() < now.variables.size()) {
    return unchangeable("model", "groups, dimensions and variables cannot be deleted");
  }
  for (std::size_t g = 0; g < now.groups.size(); ++g) {
    if (now.groups[g].path != next.groups[g].path) {
      return unchangeable("group \"" + now.groups[g].path + "\"", "it cannot be renamed or moved");
    }
  }
  for (std::size_t d = 0; d < now.dimensions.size(); ++d) {
    const ModelDimension& a = now.dimensions[d];
    const ModelDimension& b = next.dimensions[d];
    const std::string what = "dimension \"" + a.name + "\"";
    if (a.group != b.group || a.unlimited != b.unlimited || a.anonymous != b.anonymous) {
      return unchangeable(what, "its group and kind cannot change");
    }
    if (a.anonymous && a.name != b.name) {
      return unchangeable(what, "it has no name in the file and cannot be renamed");
    }
    if (a.unlimited ? b.length < a.length : b.length != a.length) {
      return unchangeable(what, "cannot set its length to " + std::to_string(b.length) +
                                    ", it is " + std::to_string(a.length));
    }
  }
  for (std::size_t v = 0; v < now.variables.size(); ++v) {
    const ModelVariable& a = now.variables[v];
    const ModelVariable& b = next.variables[v];
    if (a.group != b.group || a.type != b.type || a.dimensions != b.dimensions) {
      return unchangeable("variable \"" + now.path_of(a) + "\"",
                          "its group, type and dimensions cannot change");
    }
  }
  return Status();
}

/// True if netCDF's classic data model can represent the model.
bool is_classic(const NetcdfModel& model) {
  const auto old_types = [](const std::vector<ModelAttribute>& attributes) {
    return std::all_of(attributes.begin(), attributes.end(), [](const ModelAttribute& attribute) {
      return attribute.type <= ModelType::f64;
    });
  };
  return model.groups.size() == 1 && old_types(model.groups[0].attributes) &&
         std::ranges::count_if(model.dimensions, &ModelDimension::unlimited) <= 1 &&
         std::ranges::all_of(model.variables, [&](const ModelVariable& variable) {
           return variable.type <= ModelType::f64 && old_types(variable.attributes);
         });
}

class LayoutOnHdf5 final : public NetcdfLayout {
 public:
  explicit LayoutOnHdf5(Hdf5File& file) : file_(file), scales_(file.hdf5_id()) {
    model_.netcdf4 = true;
  }
  LayoutOnHdf5(Hdf5File& file, NetcdfFile opened)
      : file_(file),
        scales_(file.hdf5_id(), opened),
        model_(std::move(opened.model)),
        begun_(true),
        may_lag_(true) {
    has_dataset_.assign(model_.variables.size(), true);
  }

  Status change(const NetcdfModel& next) override;
  Status create_variable(std::size_t variable, const ModelStorage& storage) override;
  bool has_dataset(std::size_t variable) const override { return has_dataset_[variable]; }
  Result<std::int64_t> open_dataset(std::size_t variable) override;
  std::string dataset_path(std::size_t variable) const override {
    return model_.variables[variable].dataset_path;
  }
  Status prepare_commit() override;
  const NetcdfModel& model() const override { return model_; }

 private:
  hid_t hdf5() const { return file_.hdf5_id(); }
  Status begin(const NetcdfModel& next);
  Status change_groups(const NetcdfModel& next);
  Status release_dimensions(const NetcdfModel& next);
  Status move_datasets(const NetcdfModel& next, std::vector<std::string>& paths);
  Status change_variables(const NetcdfModel& next, const std::vector<std::string>& paths);
  Status grow_dataset(const ModelVariable& variable);
  Result<Hdf5Id> creation_list(const ModelVariable& variable, const Shape& shape,
                               const ModelStorage& storage);

  Hdf5File& file_;
  NetcdfScales scales_;
  NetcdfModel model_;
  std::vector<bool> has_dataset_;  ///< Per variable.
  /// Cleared by prepare_commit(): opening a dataset costs HDF5 more than most operations on it.
  OpenDatasets open_;
  bool begun_ = false;  ///< Set by the first change(), or if the file was opened.
  bool may_lag_ =
      false;  ///< Datasets may be shorter than their dimensions, as netCDF-C leaves them.
  /// Groups that received datasets since the last prepare_commit().
  std::set<std::size_t> reordered_;
};

/// Prepare a new file at its first change, which determines the number of links in the root group.
Status LayoutOnHdf5::begin(const NetcdfModel& next) {
  const auto in_root = [](const auto& object) { return object.group == 0; };
  const auto is_no_dimension = [&](const ModelVariable& variable) {
    return in_root(variable) && !coordinate_of(next, variable);
  };
  const auto n_links = std::ranges::count_if(next.dimensions, in_root) +
                       std::ranges::count_if(next.variables, is_no_dimension);
  TAILRACE_TRY(file_.create_group("/", static_cast<std::uint64_t>(n_links)));
  scales_ = NetcdfScales(hdf5());
  const Hdf5Id root(H5Gopen2(hdf5(), "/", H5P_DEFAULT));
  TAILRACE_TRY(write_netcdf_properties(root.get()));
  begun_ = true;
  return Status();
}

Status LayoutOnHdf5::change_groups(const NetcdfModel& next) {
  for (std::size_t g = 0; g < next.groups.size(); ++g) {
    const ModelGroup& group = next.groups[g];
    const bool is_new = g >= model_.groups.size();
    if (is_new) TAILRACE_TRY(file_.create_group(group.path));
    const std::vector<ModelAttribute> none;
    const std::vector<ModelAttribute>& old = is_new ? none : model_.groups[g].attributes;
    if (old == group.attributes) continue;
    const Hdf5Id object(H5Gopen2(hdf5(), group.path.c_str(), H5P_DEFAULT));
    TAILRACE_TRY(change_model_attributes(object.get(), group.path, old, group.attributes));
  }
  const Hdf5Id root(H5Gopen2(hdf5(), "/", H5P_DEFAULT));
  // _nc3_strict promises a classic model; the library would enforce that for later writers.
  if (!is_classic(next) && H5Aexists(root.get(), "_nc3_strict") > 0 &&
      H5Adelete(root.get(), "_nc3_strict") < 0) {
    return hdf5_failure(Code::internal, "attribute \"_nc3_strict\" cannot be deleted");
  }
  return Status();
}

/// Release dimensions that get another name, or another dataset as their scale.
Status LayoutOnHdf5::release_dimensions(const NetcdfModel& next) {
  const std::size_t n_dimensions = model_.dimensions.size();
  std::vector<bool> touched(n_dimensions, false);
  for (std::size_t d = 0; d < n_dimensions; ++d) {
    touched[d] = model_.dimensions[d].name != next.dimensions[d].name;
  }
  for (std::size_t v = 0; v < model_.variables.size(); ++v) {
    if (!has_dataset_[v]) continue;
    const std::optional<std::size_t> before = coordinate_of(model_, model_.variables[v]);
    const std::optional<std::size_t> after = coordinate_of(next, next.variables[v]);
    if (before == after) continue;
    if (before) touched[*before] = true;
    if (!after || *after >= n_dimensions) continue;
    touched[*after] = true;
  }
  for (std::size_t d = 0; d < n_dimensions; ++d) {
    if (touched[d]) TAILRACE_TRY(scales_.release(model_, d));
  }
  // A variable that becomes a scale must not have scales.
  for (std::size_t v = 0; v < model_.variables.size(); ++v) {
    if (!has_dataset_[v] || !coordinate_of(next, next.variables[v]) ||
        coordinate_of(model_, model_.variables[v])) {
      continue;
    }
    for (const std::size_t d : model_.variables[v].dimensions) {
      TAILRACE_TRY(scales_.release(model_, d));
    }
  }
  return Status();
}

/// Move datasets whose path changes by netCDF-4's rules. All are first moved to temporary names,
/// since names may be exchanged.
Status LayoutOnHdf5::move_datasets(const NetcdfModel& next, std::vector<std::string>& paths) {
  std::vector<std::pair<std::size_t, std::string>> aside;
  const auto move = [&](const std::string& from, const std::string& to) {
    return H5Lmove(hdf5(), from.c_str(), hdf5(), to.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0
               ? hdf5_failure(Code::internal, "\"" + from + "\" cannot be moved to \"" + to + "\"")
               : Status();
  };
  for (std::size_t v = 0; v < next.variables.size(); ++v) {
    const std::string wanted = netcdf4_dataset_path(next, next.variables[v]);
    const bool known = v < model_.variables.size();
    const bool stays = known && wanted == netcdf4_dataset_path(model_, model_.variables[v]);
    paths.push_back(stays ? model_.variables[v].dataset_path : wanted);
    if (!known || stays || !has_dataset_[v]) continue;
    const std::string& from = model_.variables[v].dataset_path;
    std::string to = child_path(parent_path(from), "tailrace_moving_" + std::to_string(v));
    while (link_exists(hdf5(), to)) to += "_";
    TAILRACE_TRY(move(from, to));
    aside.emplace_back(v, to);
  }
  for (const auto& [v, from] : aside) {
    TAILRACE_TRY(move(from, paths[v]));
    reordered_.insert(next.variables[v].group);
  }
  return Status();
}

Status LayoutOnHdf5::grow_dataset(const ModelVariable& variable) {
  const std::string what = "variable \"" + variable.dataset_path + "\"";
  const Hdf5Id dataset(H5Dopen2(hdf5(), variable.dataset_path.c_str(), H5P_DEFAULT));
  const Hdf5Id space(H5Dget_space(dataset.get()));
  std::vector<hsize_t> now(variable.dimensions.size());
  if (H5Sget_simple_extent_ndims(space.get()) != static_cast<int>(now.size())) {
    return hdf5_failure(Code::internal, what + ": expected a dataset of " +
                                            std::to_string(now.size()) + " dimensions");
  }
  H5Sget_simple_extent_dims(space.get(), now.data(), nullptr);
  Shape extents(now.begin(), now.end());
  bool grows = false;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const ModelDimension& dimension = model_.dimensions[variable.dimensions[d]];
    if (!dimension.unlimited || dimension.length <= extents[d]) continue;
    extents[d] = dimension.length;
    grows = true;
  }
  if (!grows) return Status();
  return file_.set_extents(dataset.get(), extents).within(what);
}

/// Change the variables' attributes. `model_` is still the current model; `paths` are the new ones.
Status LayoutOnHdf5::change_variables(const NetcdfModel& next,
                                      const std::vector<std::string>& paths) {
  for (std::size_t v = 0; v < model_.variables.size(); ++v) {
    const std::vector<ModelAttribute>& old = model_.variables[v].attributes;
    const std::vector<ModelAttribute>& attributes = next.variables[v].attributes;
    if (!has_dataset_[v] || old == attributes) continue;
    const ModelAttribute* const old_fill = model_.variables[v].attribute("_FillValue");
    const ModelAttribute* const fill = next.variables[v].attribute("_FillValue");
    if (fill != nullptr && (old_fill == nullptr || *old_fill != *fill)) {
      return unchangeable("variable \"" + paths[v] + "\"",
                          "its fill value cannot change once it is in the file");
    }
    const Hdf5Id dataset(H5Dopen2(hdf5(), paths[v].c_str(), H5P_DEFAULT));
    TAILRACE_TRY(change_model_attributes(dataset.get(), paths[v], old, attributes));
  }
  return Status();
}

Status LayoutOnHdf5::change(const NetcdfModel& next) {
  const Hdf5Scope scope;
  TAILRACE_TRY(check_same_frame(model_, next));
  TAILRACE_TRY(check_model_change(next, &model_));
  if (!begun_) TAILRACE_TRY(begin(next));
  TAILRACE_TRY(change_groups(next));
  TAILRACE_TRY(release_dimensions(next));
  std::vector<std::string> paths;
  TAILRACE_TRY(move_datasets(next, paths));
  TAILRACE_TRY(change_variables(next, paths));
  const bool any = std::exchange(may_lag_, false);
  std::vector<bool> longer(next.dimensions.size(), any);
  for (std::size_t d = 0; d < model_.dimensions.size(); ++d) {
    longer[d] = longer[d] || next.dimensions[d].length > model_.dimensions[d].length;
  }
  const bool netcdf4 = model_.netcdf4;
  model_ = next;
  model_.netcdf4 = netcdf4;
  for (std::size_t v = 0; v < paths.size(); ++v) model_.variables[v].dataset_path = paths[v];
  has_dataset_.resize(model_.variables.size(), false);
  scales_.grow(model_);
  for (std::size_t v = 0; v < has_dataset_.size(); ++v) {
    const bool grows = std::ranges::any_of(model_.variables[v].dimensions,
                                           [&](std::size_t d) -> bool { return longer[d]; });
    if (has_dataset_[v] && grows) TAILRACE_TRY(grow_dataset(model_.variables[v]));
  }
  return Status();
}

/// netCDF-C's default chunk shape: one entry of growing dimensions, the complete extent of the
/// others if that is small enough.
Shape default_chunk_shape(const NetcdfModel& model, const ModelVariable& variable,
                          std::uint64_t element_bytes) {
  Shape chunk = model.shape_of(variable);
  if (chunk.size() == 1) return {std::max<std::uint64_t>(1, kListChunkBytes / element_bytes)};
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (model.dimensions[variable.dimensions[d]].unlimited) chunk[d] = 1;
    chunk[d] = std::max<std::uint64_t>(chunk[d], 1);
  }
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::uint64_t others = std::max<std::uint64_t>(1, n_elements(chunk) / chunk[d]);
    const std::uint64_t fitting = kChunkBytes / element_bytes / others;
    chunk[d] = std::clamp<std::uint64_t>(fitting, 1, chunk[d]);
  }
  return chunk;
}

Result<Hdf5Id> LayoutOnHdf5::creation_list(const ModelVariable& variable, const Shape& shape,
                                           const ModelStorage& storage) {
  const Hdf5Id type = hdf5_file_type(variable.type);
  const bool grows = std::any_of(variable.dimensions.begin(), variable.dimensions.end(),
                                 [&](std::size_t d) { return model_.dimensions[d].unlimited; });
  StoredForm form;
  form.filters = storage.filters;
  form.chunk_shape = storage.chunk_shape;
  if (grows && form.chunk_shape.empty()) {
    form.chunk_shape = default_chunk_shape(model_, variable, H5Tget_size(type.get()));
  }
  form.kind = form.chunk_shape.empty() ? StoredForm::Kind::contiguous : StoredForm::Kind::chunked;
  if (form.kind == StoredForm::Kind::chunked && form.chunk_shape.size() != shape.size()) {
    return Status(Code::invalid_argument, "chunk shape " + shape_text(form.chunk_shape) +
                                              " must have as many dimensions as shape " +
                                              shape_text(shape));
  }
  if (form.kind == StoredForm::Kind::contiguous && !form.filters.empty()) {
    return Status(Code::invalid_argument, "filtered variables need a chunk shape");
  }
  const FillValue fill(variable);
  const bool planned = storage.contiguous_address != 0;
  // Use HDF5's zeros even without a fill value: if HDF5 never filled the space, readers would see
  // old memory contents.
  TAILRACE_TAKE(const auto made,
                file_.creation_list(form, type.get(),
                                    variable.no_fill ? std::span<const std::byte>() : fill.bytes(),
                                    planned, false));
  return Hdf5Id(made);
}

Status LayoutOnHdf5::create_variable(std::size_t v, const ModelStorage& storage) {
  const Hdf5Scope scope;
  if (v >= model_.variables.size()) {
    return Status(Code::invalid_argument, "variable " + std::to_string(v) + " is not in the model");
  }
  const ModelVariable& variable = model_.variables[v];
  const std::string what = "variable \"" + model_.path_of(variable) + "\"";
  if (has_dataset_[v]) return Status(Code::already_exists, what + " already has a dataset");
  if (variable.type == ModelType::text && !storage.filters.empty()) {
    return Status(Code::unsupported,
                  what + ": strings are stored outside the chunks and cannot be compressed");
  }
  if (const auto dimension = coordinate_of(model_, variable); dimension) {
    TAILRACE_TRY(scales_.release(model_, *dimension));
  }
  const Shape shape = model_.shape_of(variable);
  TAILRACE_TAKE(Hdf5Id list, creation_list(variable, shape, storage).within(what));
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  std::vector<hsize_t> limits = extents;
  for (std::size_t d = 0; d < limits.size(); ++d) {
    if (model_.dimensions[variable.dimensions[d]].unlimited) limits[d] = H5S_UNLIMITED;
  }
  const Hdf5Id space(extents.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(static_cast<int>(extents.size()),
                                                        extents.data(), limits.data()));
  const Hdf5Id type = hdf5_file_type(variable.type);
  const std::string group_path = parent_path(variable.dataset_path);
  const Hdf5Id group(H5Gopen2(hdf5(), group_path.c_str(), H5P_DEFAULT));
  Hdf5File::ExactDataset exact;
  exact.path = variable.dataset_path;
  exact.group_id = group.get();
  exact.name = last_component(variable.dataset_path);
  exact.type_id = type.get();
  exact.space_id = space.get();
  exact.creation_list_id = list.get();
  exact.filters = storage.filters;
  exact.contiguous_address = storage.contiguous_address;
  exact.contiguous_bytes = n_elements(shape) * H5Tget_size(type.get());
  TAILRACE_TAKE(const std::int64_t made, file_.create_exact(exact));
  open_.add(v, Hdf5Id(made));
  for (const ModelAttribute& attribute : variable.attributes) {
    TAILRACE_TRY(write_model_attribute(made, variable.dataset_path, attribute));
  }
  has_dataset_[v] = true;
  scales_.add(v);
  reordered_.insert(variable.group);
  return Status();
}

Result<std::int64_t> LayoutOnHdf5::open_dataset(std::size_t variable) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const hid_t dataset,
                open_.find(hdf5(), variable, model_.variables[variable].dataset_path));
  return dataset;
}

Status LayoutOnHdf5::prepare_commit() {
  const Hdf5Scope scope;
  const Status attached = scales_.attach_scales(model_, has_dataset_, open_);
  open_.clear();
  TAILRACE_TRY(attached);
  std::map<std::size_t, std::vector<std::string>> names;  // Dataset names by group.
  for (std::size_t v = 0; !reordered_.empty() && v < has_dataset_.size(); ++v) {
    const ModelVariable& variable = model_.variables[v];
    if (!has_dataset_[v] || !reordered_.contains(variable.group)) continue;
    names[variable.group].push_back(last_component(variable.dataset_path));
  }
  for (const auto& [group, of_group] : names) {
    TAILRACE_TRY(order_links(hdf5(), model_.groups[group].path, of_group));
  }
  reordered_.clear();
  return Status();
}

}  // namespace

Result<std::unique_ptr<NetcdfLayout>> NetcdfLayout::create(Hdf5File& file) {
  const Hdf5Scope scope;
  return std::unique_ptr<NetcdfLayout>(std::make_unique<LayoutOnHdf5>(file));
}

Result<std::unique_ptr<NetcdfLayout>> NetcdfLayout::open(Hdf5File& file, const NetcdfModel& model) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(NetcdfFile opened, read_netcdf_file(file.hdf5_id(), GroupNames::all));
  opened.model.remarks = model.remarks;  // The text of remarks may differ, but not the file.
  if (opened.model != model) {
    return Status(Code::invalid_argument, "the model differs from the contents of the file");
  }
  return std::unique_ptr<NetcdfLayout>(std::make_unique<LayoutOnHdf5>(file, std::move(opened)));
}

}  // namespace tailrace
