// Dimension scales of a model that changes.

#include "netcdf/netcdf_scales.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {
namespace {

/// Limit for open datasets; HDF5 takes some 10 KB for each.
constexpr std::size_t kOpenMax = 4096;

/// Entries per chunk of a growing placeholder; no chunk is ever written.
constexpr hsize_t kPlaceholderChunk = 1024;

std::string dimension_path(const NetcdfModel& model, const ModelDimension& dimension) {
  const std::string& group = model.groups[dimension.group].path;
  return (group == "/" ? group : group + "/") + dimension.name;
}

std::string what_of(const ModelDimension& dimension) {
  return "dimension \"" + dimension.name + "\"";
}

Hdf5Id open_dataset(hid_t file, const std::string& path) {
  return Hdf5Id(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
}

/// Create a dataset without values that represents a dimension.
Hdf5Id create_placeholder(hid_t file, const std::string& path, const ModelDimension& dimension) {
  const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(creation.get(), false);
  H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const hsize_t length = dimension.length;
  const hsize_t limit = dimension.unlimited ? H5S_UNLIMITED : length;
  if (dimension.unlimited) H5Pset_chunk(creation.get(), 1, &kPlaceholderChunk);
  const Hdf5Id space(H5Screate_simple(1, &length, &limit));
  const Hdf5Id links = utf8_link_properties();
  return Hdf5Id(H5Dcreate2(file, path.c_str(), H5T_IEEE_F32BE, space.get(), links.get(),
                           creation.get(), H5P_DEFAULT));
}

/// Scale name that the netCDF-4 library writes for a placeholder.
std::string placeholder_text(std::uint64_t length) {
  std::array<char, 96> text = {};
  std::snprintf(text.data(), text.size(), "%s.%10llu", kDimensionWithoutVariableText.data(),
                static_cast<unsigned long long>(length));
  return text.data();
}

/// The coordinate variable with a dataset, for each dimension.
std::vector<std::optional<std::size_t>> coordinate_variables(const NetcdfModel& model,
                                                             const std::vector<bool>& has_dataset) {
  std::vector<std::optional<std::size_t>> variables(model.dimensions.size());
  for (std::size_t v = 0; v < has_dataset.size(); ++v) {
    const std::optional<std::size_t> d = coordinate_of(model, model.variables[v]);
    if (d && has_dataset[v]) variables[*d] = v;
  }
  return variables;
}

}  // namespace

void OpenDatasets::add(std::size_t variable, Hdf5Id dataset) {
  if (open_.size() >= kOpenMax) open_.clear();
  open_[variable] = std::move(dataset);
}

Result<hid_t> OpenDatasets::find(hid_t file, std::size_t variable, const std::string& path) {
  const auto found = open_.find(variable);
  if (found != open_.end()) return found->second.get();
  Hdf5Id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_open_failure("dataset \"" + path + "\"");
  const hid_t id = dataset.get();
  add(variable, std::move(dataset));
  return id;
}

NetcdfScales::NetcdfScales(hid_t file, const NetcdfFile& opened) : file_(file) {
  const NetcdfModel& model = opened.model;
  for (std::size_t d = 0; d < model.dimensions.size(); ++d) {
    const std::string& path = opened.scale_paths[d];
    const bool is_variable =
        std::any_of(model.variables.begin(), model.variables.end(),
                    [&](const ModelVariable& variable) { return variable.dataset_path == path; });
    scales_.push_back(
        {opened.dimension_ids[d], path, !path.empty() && !is_variable, model.dimensions[d].length});
    next_id_ = std::max(next_id_, opened.dimension_ids[d] + 1);
  }
  // The file's attachments stay unchanged until a dimension is released.
  for (const ModelVariable& variable : model.variables) {
    attached_.emplace_back(variable.dimensions.size(), true);
    new_.push_back(false);
  }
}

void NetcdfScales::grow(const NetcdfModel& model) {
  while (scales_.size() < model.dimensions.size()) {
    scales_.push_back({next_id_++, "", false, 0});
    ids_written_ = false;
  }
  while (attached_.size() < model.variables.size()) {
    attached_.emplace_back(model.variables[attached_.size()].dimensions.size(), false);
    new_.push_back(false);
  }
}

Status NetcdfScales::release(const NetcdfModel& model, std::size_t dimension) {
  Scale& scale = scales_[dimension];
  if (scale.path.empty()) return Status();
  const std::string what = what_of(model.dimensions[dimension]);
  const Hdf5Id dataset = open_dataset(file_, scale.path);
  if (!dataset.valid()) return hdf5_failure(Code::internal, what + ": its scale cannot be opened");
  for (std::size_t v = 0; v < attached_.size(); ++v) {
    const ModelVariable& variable = model.variables[v];
    for (std::size_t d = 0; d < variable.dimensions.size(); ++d) {
      // A former scale was never attached to the scales of its further dimensions.
      const bool own = variable.dataset_path == scale.path;
      if (own) attached_[v][d] = false;
      if (own || variable.dimensions[d] != dimension || !attached_[v][d]) continue;
      attached_[v][d] = false;
      const Hdf5Id user = open_dataset(file_, variable.dataset_path);
      const auto index = static_cast<unsigned>(d);
      if (H5DSis_attached(user.get(), dataset.get(), index) > 0 &&
          H5DSdetach_scale(user.get(), dataset.get(), index) < 0) {
        return hdf5_failure(Code::internal, what + ": its scale cannot be detached from \"" +
                                                variable.dataset_path + "\"");
      }
    }
  }
  if (scale.placeholder) {
    if (H5Ldelete(file_, scale.path.c_str(), H5P_DEFAULT) < 0) {
      return hdf5_failure(Code::internal, what + ": its scale cannot be deleted");
    }
  } else {
    for (const char* name : {"CLASS", "NAME", "REFERENCE_LIST", "_Netcdf4Dimid"}) {
      if (H5Aexists(dataset.get(), name) > 0 && H5Adelete(dataset.get(), name) < 0) {
        return hdf5_failure(Code::internal,
                            what + ": attribute \"" + name + "\" of its scale cannot be deleted");
      }
    }
  }
  scale.path.clear();
  scale.placeholder = false;
  return Status();
}

Status NetcdfScales::make_scale(const NetcdfModel& model, std::size_t dimension,
                                std::optional<std::size_t> variable) {
  Scale& scale = scales_[dimension];
  const ModelDimension& wanted = model.dimensions[dimension];
  const std::string path =
      variable ? model.variables[*variable].dataset_path : dimension_path(model, wanted);
  if (!variable && link_exists(file_, path)) {
    return Status(Code::already_exists,
                  what_of(wanted) + ": \"" + path + "\" already exists as another object");
  }
  const Hdf5Id dataset =
      variable ? open_dataset(file_, path) : create_placeholder(file_, path, wanted);
  const std::string name = variable ? wanted.name : placeholder_text(wanted.length);
  if (!dataset.valid() || H5DSset_scale(dataset.get(), name.c_str()) < 0) {
    return hdf5_failure(Code::internal, what_of(wanted) + ": its scale cannot be created");
  }
  scale.path = path;
  scale.placeholder = !variable;
  scale.length = wanted.length;
  return write_own_numbers(dataset.get(), "_Netcdf4Dimid", {scale.id}, true);
}

Status NetcdfScales::grow_placeholder(const NetcdfModel& model, std::size_t dimension) {
  Scale& scale = scales_[dimension];
  const hsize_t length = model.dimensions[dimension].length;
  if (!scale.placeholder || scale.length >= length) return Status();
  const Hdf5Id dataset = open_dataset(file_, scale.path);
  if (H5Dset_extent(dataset.get(), &length) < 0) {
    return hdf5_failure(Code::internal,
                        what_of(model.dimensions[dimension]) + ": its scale cannot be extended");
  }
  scale.length = length;
  return Status();
}

Status NetcdfScales::attach(const NetcdfModel& model, std::size_t v, hid_t dataset,
                            ScaleAttacher& attacher) {
  const ModelVariable& variable = model.variables[v];
  DimensionScales wanted(variable.dimensions.size());
  // Scales have no scales: _Netcdf4Coordinates stores a coordinate variable's dimensions.
  const bool is_scale = coordinate_of(model, variable).has_value();
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    const std::string& path = scales_[variable.dimensions[d]].path;
    if (!attached_[v][d] && !path.empty() && !is_scale) wanted[d].push_back(path);
    attached_[v][d] = true;
  }
  return attacher.attach(dataset, variable.dataset_path, wanted);
}

Status NetcdfScales::write_coordinates(const NetcdfModel& model, std::size_t v, hid_t dataset) {
  const ModelVariable& variable = model.variables[v];
  std::vector<int> ids;
  for (const std::size_t d : variable.dimensions) {
    if (model.dimensions[d].anonymous) return Status();
    ids.push_back(scales_[d].id);
  }
  if (ids.empty()) return Status();
  return write_own_numbers(dataset, "_Netcdf4Coordinates", ids, false)
      .within("variable \"" + variable.dataset_path + "\"");
}

Status NetcdfScales::attach_scales(const NetcdfModel& model, const std::vector<bool>& has_dataset,
                                   OpenDatasets& open) {
  const auto coordinates = coordinate_variables(model, has_dataset);
  for (std::size_t d = 0; d < scales_.size(); ++d) {
    if (model.dimensions[d].anonymous) continue;
    if (scales_[d].path.empty()) {
      TAILRACE_TRY(make_scale(model, d, coordinates[d]));
    } else {
      TAILRACE_TRY(grow_placeholder(model, d));
    }
  }
  ScaleAttacher attacher(file_);
  for (std::size_t v = 0; v < attached_.size(); ++v) {
    const bool is_attached = std::ranges::find(attached_[v], false) == attached_[v].end();
    if (!has_dataset[v] || (is_attached && !new_[v])) continue;
    TAILRACE_TAKE(const hid_t dataset, open.find(file_, v, model.variables[v].dataset_path));
    TAILRACE_TRY(attach(model, v, dataset, attacher));
    if (new_[v]) TAILRACE_TRY(write_coordinates(model, v, dataset));
    new_[v] = false;
  }
  TAILRACE_TRY(attacher.finish());
  if (ids_written_) return Status();
  // A reader would number scales without ids, and its numbers could collide with existing ids.
  for (const Scale& scale : scales_) {
    if (scale.path.empty()) continue;
    const Hdf5Id dataset = open_dataset(file_, scale.path);
    TAILRACE_TRY(write_own_numbers(dataset.get(), "_Netcdf4Dimid", {scale.id}, true));
  }
  ids_written_ = true;
  return Status();
}

}  // namespace tailrace
