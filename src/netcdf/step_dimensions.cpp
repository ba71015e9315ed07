// Named dimensions: their lengths on every rank, and their scales in the file.

#include "netcdf/step_dimensions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/utf8.hpp"
#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/hdf5_values.hpp"
#include "netcdf/netcdf_attributes.hpp"
#include "netcdf/netcdf_scales.hpp"

namespace tailrace {
namespace {

std::string what_of(const NamedDataset& dataset) { return quoted(dataset.kind, dataset.path); }

Status misfit(const NamedDataset& dataset, const std::string& why) {
  return Status(Code::invalid_argument, what_of(dataset) + ": " + why);
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return "(" + text + ")";
}

/// Datasets with the coordinates first: these decide in which group their dimension lies.
std::vector<const NamedDataset*> coordinates_first(std::span<const NamedDataset> datasets) {
  std::vector<const NamedDataset*> ordered;
  for (const NamedDataset& dataset : datasets) ordered.push_back(&dataset);
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const NamedDataset* dataset) { return dataset->is_coordinate(); });
  return ordered;
}

/// "after this step it would have length 3 along dimension "time", which has length 4"
std::string length_text(const NamedDataset& dataset, std::uint64_t length) {
  return "after this step it would have length " + std::to_string(dataset.shape[0]) +
         " along dimension \"" + dataset.names[0] + "\", which has length " +
         std::to_string(length);
}

/// True if one of the datasets is the coordinate at `path`.
bool puts_time(std::span<const NamedDataset> datasets, const std::string& path) {
  return std::ranges::any_of(datasets, [&](const NamedDataset& dataset) {
    return dataset.path == path && dataset.is_coordinate();
  });
}

/// Compare a coordinate with the dataset of its path in the file.
Status check_same_values(hid_t file, const Coordinate& coordinate) {
  const std::string what = quoted("coordinate", coordinate.path) + ": ";
  const Hdf5Id dataset(H5Dopen2(file, coordinate.path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) {
    return Status(Code::already_exists, what + "the file has a group of this name");
  }
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const Hdf5Id type(H5Dget_type(dataset.get()));
  const Hdf5Id native(H5Tget_native_type(type.get(), H5T_DIR_ASCEND));
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  const bool same_form = H5Sget_simple_extent_ndims(space.get()) == 1 && n_values >= 0 &&
                         static_cast<std::uint64_t>(n_values) == coordinate.n_values() &&
                         H5Tequal(native.get(), hdf5_native_type(coordinate.dtype)) > 0;
  Bytes values(same_form ? coordinate.values.size() : 0);
  const bool readable = values.empty() || H5Dread(dataset.get(), native.get(), H5S_ALL, H5S_ALL,
                                                  H5P_DEFAULT, values.data()) >= 0;
  if (same_form && readable && values == coordinate.values) return Status();
  return Status(Code::already_exists,
                what + "the file has it already, with other values; a coordinate is written once");
}

/// True if the dataset is the scale of a dimension without a coordinate.
bool is_placeholder(hid_t file, const std::string& path) {
  const Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  return dataset.valid() && is_dimension_without_variable(dataset.get());
}

}  // namespace

bool NamedDataset::is_coordinate() const {
  return !names.empty() && names.front() == last_component(path);
}

NamedDataset Coordinate::dataset() const {
  return {path, {last_component(path)}, {n_values()}, false, "coordinate"};
}

std::string coordinate_text(const Coordinate& coordinate) {
  std::uint64_t checksum = 0xcbf29ce484222325U;  // FNV-1a
  for (const std::byte byte : coordinate.values) {
    checksum = (checksum ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  }
  return quoted("coordinate", coordinate.path) + ": " + std::to_string(coordinate.n_values()) +
         " values of type " + std::string(dtype_name(coordinate.dtype)) + " with checksum " +
         std::to_string(checksum) + "\n";
}

// --- DimensionTable

std::string DimensionTable::path_of(const NamedDataset& dataset, std::size_t d) const {
  const std::string& name = dataset.names[d];
  const std::string own = child_path(parent_path(dataset.path), name);
  if (d == 0 && dataset.is_coordinate()) return own;
  for (std::string group = parent_path(dataset.path);; group = parent_path(group)) {
    const std::string path = child_path(group, name);
    if (dimensions_.contains(path)) return path;
    if (group == "/") return own;
  }
}

Status DimensionTable::enter(const NamedDataset& dataset, std::size_t d) {
  const std::string& name = dataset.names[d];
  const bool unlimited = dataset.over_time && d == 0;
  const std::uint64_t length = dataset.shape[d];
  const auto [found, is_new] = dimensions_.try_emplace(path_of(dataset, d));
  Dimension& dimension = found->second;
  if (is_new) {
    dimension.length = length;
    dimension.unlimited = unlimited;
    dimension.user = dataset.path;
  }
  const bool is_own = d == 0 && dataset.is_coordinate();
  (is_own ? dimension.has_coordinate : dimension.is_used) = true;
  // A dataset differs from itself in the file, or along two dimensions of one name.
  const bool twice = std::ranges::count(dataset.names, name) > 1;
  const std::string elsewhere = dimension.user != dataset.path ? " in \"" + dimension.user + "\""
                                : twice ? " along another of its dimensions with this name"
                                        : " in the file, which has it already";
  if (dimension.unlimited != unlimited) {
    return misfit(dataset, "dimension \"" + name + "\" is " +
                               (unlimited ? "its time dimension, but has a fixed length"
                                          : "of fixed length here, but grows with the steps") +
                               elsewhere);
  }
  if (unlimited) {
    dimension.length = std::max(dimension.length, length);
    dimension.count_entries(dataset.path, length, is_own);
  } else if (dimension.length != length) {
    return misfit(dataset, "dimension \"" + name + "\" has length " + std::to_string(length) +
                               ", but " + std::to_string(dimension.length) + elsewhere);
  }
  return Status();
}

Status DimensionTable::add(std::span<const NamedDataset> datasets) {
  for (const NamedDataset* dataset : coordinates_first(datasets)) {
    if (dataset->names.size() != dataset->shape.size()) {
      return misfit(*dataset, "it has " + std::to_string(dataset->shape.size()) +
                                  " dimensions and " + std::to_string(dataset->names.size()) +
                                  " names for them");
    }
    for (std::size_t d = 0; d < dataset->names.size(); ++d) {
      TAILRACE_TRY(check_netcdf_name(dataset->names[d])
                       .within(what_of(*dataset) + ", dimension \"" + dataset->names[d] + "\""));
      TAILRACE_TRY(enter(*dataset, d));
    }
  }
  for (const NamedDataset& dataset : datasets) {
    if (!dataset.over_time || lacks_time(dataset, datasets)) continue;
    const Dimension& time = dimensions_.at(path_of(dataset, 0));
    if (dataset.shape[0] == time.length) continue;
    return misfit(dataset, length_text(dataset, time.length) +
                               "; put fields that share a time dimension in the same steps, or "
                               "give this field a time dimension of another name (after a crash: "
                               "cut the longer fields)");
  }
  return Status();
}

void DimensionTable::Dimension::count_entries(const std::string& path, std::uint64_t n_entries,
                                              bool of_coordinate) {
  std::uint64_t& most = of_coordinate ? coordinate_length : field_length;
  most = std::max(most, n_entries);
  if (!of_coordinate && field.empty()) field = path;
}

/// The dimension over which a dataset grows; null if the table lacks it.
const DimensionTable::Dimension* DimensionTable::time_of(const NamedDataset& dataset) const {
  if (!dataset.over_time || dataset.names.empty()) return nullptr;
  const auto found = dimensions_.find(path_of(dataset, 0));
  return found == dimensions_.end() ? nullptr : &found->second;
}

bool DimensionTable::lacks_time(const NamedDataset& dataset,
                                std::span<const NamedDataset> datasets) const {
  const Dimension* const time = time_of(dataset);
  return time != nullptr && time->has_coordinate && dataset.shape[0] > time->coordinate_length &&
         !puts_time(datasets, path_of(dataset, 0));
}

Status DimensionTable::check_times(std::span<const NamedDataset> datasets,
                                   std::span<const NamedDataset> waiting,
                                   std::span<const NamedDataset> earlier) const {
  for (const auto& some : {datasets, waiting}) {
    for (const NamedDataset& dataset : some) {
      if (!lacks_time(dataset, datasets)) continue;
      const std::string time = path_of(dataset, 0);
      return misfit(dataset, "this step puts its entry " + std::to_string(dataset.shape[0] - 1) +
                                 " (counted from 0) without a time: \"" + time + "\" has " +
                                 std::to_string(time_of(dataset)->coordinate_length) +
                                 " entries; call set_time in each step that puts a field over "
                                 "dimension \"" +
                                 dataset.names[0] + "\"");
    }
  }
  for (const NamedDataset& dataset : waiting) {
    const Dimension* const time = time_of(dataset);
    if (time == nullptr || !time->has_coordinate || !puts_time(datasets, path_of(dataset, 0))) {
      continue;
    }
    if (dataset.shape[0] == time->coordinate_length) continue;
    return misfit(dataset, length_text(dataset, time->coordinate_length) +
                               "; call set_time in each step that puts a field over this "
                               "dimension, from the first one on (after a crash: cut the longer "
                               "fields)");
  }
  for (const NamedDataset& dataset : datasets) {
    const Dimension* const time = time_of(dataset);
    if (time == nullptr || !dataset.is_coordinate()) continue;
    const std::string own = path_of(dataset, 0);
    std::uint64_t longest = time->field_length;
    std::string field = time->field;
    for (const auto& some : {waiting, earlier}) {
      for (const NamedDataset& other : some) {
        if (path_of(other, 0) != own) continue;
        longest = std::max(longest, other.shape[0]);
        field = other.path;
      }
    }
    if (field.empty() || longest >= time->coordinate_length) continue;
    return misfit(dataset, "set_time was called in a step that puts no field over dimension \"" +
                               dataset.names[0] + "\", such as \"" + field +
                               "\"; call it in the step that puts the fields of this time");
  }
  return Status();
}

/// Paths of the coordinates over time in the nearest group above `path` that has any. Those of
/// named datasets are left out, because they need not have the same times.
std::vector<std::string> DimensionTable::times_above(const std::string& path) const {
  std::vector<std::string> times;
  for (std::string group = parent_path(path); times.empty(); group = parent_path(group)) {
    for (const auto& [other, dimension] : dimensions_) {
      const bool is_time =
          dimension.unlimited && dimension.has_coordinate && dimension.field.empty();
      if (is_time && parent_path(other) == group) times.push_back(other);
    }
    if (group == "/") break;
  }
  return times;
}

Status DimensionTable::check_unnamed(std::span<const NamedDataset> unnamed,
                                     std::span<const NamedDataset> datasets) const {
  for (const NamedDataset& dataset : unnamed) {
    const std::vector<std::string> times = times_above(dataset.path);
    if (times.empty()) continue;
    const std::string* set = nullptr;
    for (const std::string& time : times) {
      if (!puts_time(datasets, time)) continue;
      set = &time;
      if (dataset.shape[0] <= dimensions_.at(time).coordinate_length) break;
    }
    const std::string& time = set == nullptr ? times.front() : *set;
    const std::uint64_t n_times = dimensions_.at(time).coordinate_length;
    // A coordinate that had another length before the step is not that of the dataset.
    const bool is_late = set != nullptr && n_times == 1 && dataset.shape[0] > 1;
    const bool is_missing = set == nullptr && n_times > 0 && dataset.shape[0] == n_times + 1;
    if (!is_late && !is_missing) continue;
    const std::string what =
        set == nullptr
            ? "this step puts its entry " + std::to_string(dataset.shape[0] - 1) +
                  " (counted from 0) without a time: "
            : "this step makes its length " + std::to_string(dataset.shape[0]) + ", but ";
    return misfit(dataset, what + "\"" + time + "\" has " + std::to_string(n_times) +
                               (n_times == 1 ? " entry" : " entries") +
                               "; call set_time in each step that puts a field over time, from the "
                               "first one on, or name the dimensions of a field with other times");
  }
  return Status();
}

Status DimensionTable::check_coordinates(std::span<const Coordinate> coordinates,
                                         std::span<const NamedDataset> waiting,
                                         std::span<const NamedDataset> earlier) const {
  std::vector<std::string> used;
  for (const auto& [path, dimension] : dimensions_) {
    if (dimension.is_used) used.push_back(path);
  }
  for (const auto& some : {waiting, earlier}) {
    for (const NamedDataset& dataset : some) {
      for (std::size_t d = 0; d < dataset.names.size(); ++d) used.push_back(path_of(dataset, d));
    }
  }
  for (const Coordinate& coordinate : coordinates) {
    if (std::ranges::find(used, coordinate.path) != used.end()) continue;
    return misfit(coordinate.dataset(),
                  "no field has a dimension \"" + last_component(coordinate.path) +
                      "\" in its group or below; define the fields that have it before this "
                      "end_step" +
                      (used.empty() ? "" : "; their dimensions are " + first_names_text(used, 8)) +
                      did_you_mean(coordinate.path, used));
  }
  return Status();
}

Status DimensionTable::check_late_time(const NamedDataset& dataset) const {
  const Dimension* const time = time_of(dataset);
  if (time == nullptr || !dataset.is_coordinate() || time->has_coordinate) return Status();
  if (!time->unlimited || time->length == 0) return Status();
  const std::string last = std::to_string(time->length - 1);
  return misfit(dataset,
                "the earlier " +
                    (time->length == 1 ? "entry 0 of \"" : "entries 0 to " + last + " of \"") +
                    time->user + "\" (counted from 0) " + (time->length == 1 ? "has" : "have") +
                    " no time; call set_time in each step, from the first one on, or "
                    "choose another path and time dimension");
}

std::string DimensionTable::user_of_placeholder(const std::string& path) const {
  const auto found = dimensions_.find(path);
  const bool placed = found != dimensions_.end() && !found->second.has_coordinate;
  return placed ? found->second.user : "";
}

std::vector<std::string> DimensionTable::new_placeholders(const DimensionTable& earlier) const {
  std::vector<std::string> paths;
  for (const auto& [path, dimension] : dimensions_) {
    const bool is_new = !dimension.has_coordinate && !earlier.dimensions_.contains(path);
    if (is_new) paths.push_back(path);
  }
  return paths;
}

void DimensionTable::pack(ByteWriter& writer) const {
  writer.add(dimensions_.size());
  for (const auto& [path, dimension] : dimensions_) {
    writer.add_text(path);
    writer.add(dimension.length);
    writer.add(dimension.unlimited);
    writer.add(dimension.has_coordinate);
    writer.add(dimension.is_used);
    writer.add_text(dimension.user);
    writer.add(dimension.coordinate_length);
    writer.add(dimension.field_length);
    writer.add_text(dimension.field);
  }
}

void DimensionTable::take(ByteReader& reader) {
  dimensions_.clear();
  for (auto n = reader.take<std::size_t>(); n > 0; --n) {
    Dimension& dimension = dimensions_[reader.take_text()];
    dimension.length = reader.take<std::uint64_t>();
    dimension.unlimited = reader.take<bool>();
    dimension.has_coordinate = reader.take<bool>();
    dimension.is_used = reader.take<bool>();
    dimension.user = reader.take_text();
    dimension.coordinate_length = reader.take<std::uint64_t>();
    dimension.field_length = reader.take<std::uint64_t>();
    dimension.field = reader.take_text();
  }
}

// --- StepDimensions

StepDimensions::StepDimensions() = default;
StepDimensions::~StepDimensions() = default;

Result<DimensionTable> StepDimensions::open(Hdf5File& file) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(NetcdfFile read, read_netcdf_file(file.hdf5_id(), GroupNames::first));
  constexpr std::size_t kUnnamed = static_cast<std::size_t>(-1);
  std::vector<std::size_t> kept(read.model.dimensions.size(), kUnnamed);
  NetcdfFile named;
  named.model.groups = std::move(read.model.groups);
  for (ModelGroup& group : named.model.groups) group.attributes.clear();
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (read.model.dimensions[d].anonymous) continue;
    kept[d] = named.model.dimensions.size();
    named.model.dimensions.push_back(std::move(read.model.dimensions[d]));
    named.dimension_ids.push_back(read.dimension_ids[d]);
    named.scale_paths.push_back(std::move(read.scale_paths[d]));
  }
  DimensionTable table;
  std::vector<DimensionTable::Dimension> lengths;
  for (const ModelDimension& dimension : named.model.dimensions) {
    // A placeholder may be longer than all datasets: a crash may have cut a commit short.
    lengths.emplace_back().length = dimension.unlimited ? 0 : dimension.length;
    lengths.back().unlimited = dimension.unlimited;
  }
  for (ModelVariable& variable : read.model.variables) {
    for (std::size_t& d : variable.dimensions) d = kept[d];
    const bool has_names =
        !variable.dimensions.empty() &&
        std::ranges::find(variable.dimensions, kUnnamed) == variable.dimensions.end();
    if (!has_names) continue;
    variable.attributes.clear();
    TAILRACE_TAKE(const Shape shape, file.dataset_shape(variable.dataset_path));
    const std::optional<std::size_t> own = coordinate_of(named.model, variable);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      DimensionTable::Dimension& dimension = lengths[variable.dimensions[d]];
      if (dimension.unlimited) dimension.length = std::max(dimension.length, shape[d]);
      if (dimension.user.empty()) dimension.user = variable.dataset_path;
      dimension.is_used = dimension.is_used || d > 0 || !own;
      if (dimension.unlimited) {
        dimension.count_entries(variable.dataset_path, shape[d], d == 0 && own.has_value());
      }
    }
    if (own) lengths[*own].has_coordinate = true;
    variables_[variable.dataset_path] = named.model.variables.size();
    named.model.variables.push_back(std::move(variable));
  }
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const ModelDimension& dimension = named.model.dimensions[d];
    const std::string& group = named.model.groups[dimension.group].path;
    if (lengths[d].user.empty()) lengths[d].user = named.scale_paths[d];
    table.dimensions_[child_path(group, dimension.name)] = lengths[d];
  }
  scales_ = std::make_unique<NetcdfScales>(file.hdf5_id(), named);
  model_ = std::move(named.model);
  return table;
}

Status StepDimensions::check(Hdf5File& file, std::span<const NamedDataset> datasets,
                             std::span<const std::string> placeholders,
                             std::span<const Coordinate> coordinates) const {
  const Hdf5Scope scope;
  const hid_t id = file.hdf5_id();
  for (const std::string& path : placeholders) {
    if (!link_exists(id, path)) continue;
    return Status(Code::already_exists, "dimension \"" + last_component(path) +
                                            "\" needs the name \"" + path +
                                            "\", which another object of the file has");
  }
  for (const Coordinate& coordinate : coordinates) {
    for (std::string parent = parent_path(coordinate.path); parent != "/";
         parent = parent_path(parent)) {
      if (!link_exists(id, parent) || !file.dataset_shape(parent).ok()) continue;
      return Status(Code::invalid_argument, quoted("coordinate", coordinate.path) + ": \"" +
                                                parent + "\" is a field, not a group");
    }
    if (!link_exists(id, coordinate.path) || is_placeholder(id, coordinate.path)) continue;
    TAILRACE_TRY(check_same_values(id, coordinate));
  }
  for (const NamedDataset& dataset : datasets) {
    if (!link_exists(id, dataset.path)) continue;
    const auto found = variables_.find(dataset.path);
    std::vector<std::string> names;
    if (found != variables_.end()) {
      for (const std::size_t d : model_.variables[found->second].dimensions) {
        names.push_back(model_.dimensions[d].name);
      }
    } else if (!file.has_attribute(dataset.path, "DIMENSION_LIST")) {
      continue;
    }
    if (names == dataset.names) continue;
    return misfit(dataset, "its dimensions in the file are " +
                               (names.empty() ? "named in part" : names_text(names)) + ", not " +
                               names_text(dataset.names));
  }
  return Status();
}

std::size_t StepDimensions::group_at(const std::string& path) {
  if (const std::optional<std::size_t> known = model_.find_group(path)) return *known;
  const std::size_t parent = group_at(parent_path(path));
  model_.groups.push_back({path, parent, {}});
  return model_.groups.size() - 1;
}

/// Enter a dataset into the model, or let its unlimited dimension grow.
Status StepDimensions::add(const NamedDataset& dataset) {
  const auto [found, is_new] = variables_.try_emplace(dataset.path, model_.variables.size());
  if (!is_new) {
    for (std::size_t d = 0; d < dataset.shape.size(); ++d) {
      ModelDimension& dimension = model_.dimensions[model_.variables[found->second].dimensions[d]];
      if (dimension.unlimited) dimension.length = std::max(dimension.length, dataset.shape[d]);
    }
    return Status();
  }
  ModelVariable variable;
  variable.name = last_component(dataset.path);
  variable.group = group_at(parent_path(dataset.path));
  variable.dataset_path = dataset.path;
  for (std::size_t d = 0; d < dataset.names.size(); ++d) {
    const std::string& name = dataset.names[d];
    const bool own = d == 0 && dataset.is_coordinate();
    std::optional<std::size_t> known = model_.find_dimension(variable.group, name);
    if (own && known && model_.dimensions[*known].group != variable.group) known.reset();
    if (!known) {
      known = model_.dimensions.size();
      model_.dimensions.push_back(
          {name, variable.group, dataset.shape[d], dataset.over_time && d == 0, false});
    }
    ModelDimension& dimension = model_.dimensions[*known];
    if (dimension.unlimited) dimension.length = std::max(dimension.length, dataset.shape[d]);
    variable.dimensions.push_back(*known);
  }
  model_.variables.push_back(std::move(variable));
  scales_->grow(model_);
  scales_->add(model_.variables.size() - 1);
  return Status();
}

/// Create the dataset of a coordinate. A dimension without values gets it as its new scale.
Status StepDimensions::write_coordinate(Hdf5File& file, const Coordinate& coordinate) {
  const hid_t id = file.hdf5_id();
  if (link_exists(id, coordinate.path)) {
    if (!is_placeholder(id, coordinate.path)) return Status();  // check() has compared the values.
    const std::size_t group = group_at(parent_path(coordinate.path));
    const auto dimension = model_.find_dimension(group, last_component(coordinate.path));
    if (dimension) TAILRACE_TRY(scales_->release(model_, *dimension));
  }
  TAILRACE_TRY(file.create_group(parent_path(coordinate.path)));
  DatasetDefinition definition;
  definition.path = coordinate.path;
  definition.dtype = coordinate.dtype;
  definition.shape = {coordinate.n_values()};
  TAILRACE_TRY(file.create_dataset(definition));
  if (coordinate.values.empty()) return Status();
  return write_dataset_values(id, coordinate.path, Slab::of({{0}, definition.shape}),
                              coordinate.dtype, false, coordinate.values);
}

Status StepDimensions::publish(Hdf5File& file, std::span<const NamedDataset> datasets,
                               std::span<const Coordinate> coordinates) {
  if (datasets.empty() && coordinates.empty()) return Status();
  const Hdf5Scope scope;
  if (!scales_) scales_ = std::make_unique<NetcdfScales>(file.hdf5_id());
  const Hdf5Id root(H5Gopen2(file.hdf5_id(), "/", H5P_DEFAULT));
  TAILRACE_TRY(write_netcdf_properties(root.get()));
  for (const Coordinate& coordinate : coordinates) {
    TAILRACE_TRY(write_coordinate(file, coordinate));
    TAILRACE_TRY(add(coordinate.dataset()));
  }
  for (const NamedDataset* dataset : coordinates_first(datasets)) TAILRACE_TRY(add(*dataset));
  // Entries of datasets that share a dimension belong together: a kill must not cut a commit short.
  if (std::ranges::any_of(model_.dimensions, &ModelDimension::unlimited)) file.make_commits_whole();
  OpenDatasets open;
  return scales_->attach_scales(model_, std::vector<bool>(model_.variables.size(), true), open);
}

}  // namespace tailrace
