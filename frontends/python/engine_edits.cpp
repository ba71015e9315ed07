// Edits of a netCDF-4 model.

#include "python/engine_edits.hpp"

#include <algorithm>
#include <cstring>

namespace tailrace::python {
namespace {

/// The list itself; null where there is no such position.
std::vector<ModelAttribute>* list_of(NetcdfModel& model, Owner owner, std::size_t position) {
  if (owner == Owner::group) {
    return position < model.groups.size() ? &model.groups[position].attributes : nullptr;
  }
  return position < model.variables.size() ? &model.variables[position].attributes : nullptr;
}

Status no_position(const char* what, std::size_t position) {
  return Status(Code::not_found,
                "there is no " + std::string(what) + " " + std::to_string(position));
}

Status no_owner(Owner owner, std::size_t position) {
  return no_position(owner == Owner::group ? "group" : "variable", position);
}

auto find_named(std::vector<ModelAttribute>& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const ModelAttribute& attribute) { return attribute.name == name; });
}

}  // namespace

ModelEdit add_group(const std::string& path) {
  return [path](NetcdfModel& model) -> Status {
    const std::size_t slash = path.rfind('/');
    if (path.size() < 2 || path[0] != '/' || slash + 1 == path.size()) {
      return Status(Code::invalid_argument, "group \"" + path + "\": expected a path such as /g/h");
    }
    if (model.find_group(path)) {
      return Status(Code::already_exists, "group \"" + path + "\" exists already");
    }
    const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    const std::optional<std::size_t> found = model.find_group(parent);
    if (!found) return Status(Code::not_found, "group \"" + parent + "\" does not exist");
    model.groups.push_back({path, *found, {}});
    return Status();
  };
}

ModelEdit add_dimension(std::size_t group, const std::string& name, std::uint64_t length,
                        bool unlimited) {
  return [=](NetcdfModel& model) -> Status {
    if (group >= model.groups.size()) return no_position("group", group);
    ModelDimension dimension;
    dimension.name = name;
    dimension.group = group;
    dimension.length = length;
    dimension.unlimited = unlimited;
    model.dimensions.push_back(std::move(dimension));
    return Status();
  };
}

ModelEdit add_variable(std::size_t group, const std::string& name, ModelType type,
                       const std::vector<std::size_t>& dimensions,
                       const std::optional<std::string>& fill) {
  return [=](NetcdfModel& model) -> Status {
    if (group >= model.groups.size()) return no_position("group", group);
    for (const std::size_t dimension : dimensions) {
      if (dimension >= model.dimensions.size()) return no_position("dimension", dimension);
    }
    ModelVariable variable;
    variable.name = name;
    variable.group = group;
    variable.type = type;
    variable.dimensions = dimensions;
    if (fill) {
      ModelAttribute attribute;
      attribute.name = "_FillValue";
      attribute.type = type;
      attribute.n_values = 1;
      if (type == ModelType::text) {
        attribute.texts = {*fill};
      } else {
        attribute.values.resize(fill->size());
        if (!fill->empty()) std::memcpy(attribute.values.data(), fill->data(), fill->size());
      }
      variable.attributes.push_back(std::move(attribute));
    }
    model.variables.push_back(std::move(variable));
    return Status();
  };
}

ModelEdit set_attribute(Owner owner, std::size_t position, const ModelAttribute& attribute) {
  return [=](NetcdfModel& model) -> Status {
    std::vector<ModelAttribute>* list = list_of(model, owner, position);
    if (list == nullptr) return no_owner(owner, position);
    const auto found = find_named(*list, attribute.name);
    if (found != list->end()) {
      *found = attribute;
    } else {
      list->push_back(attribute);
    }
    return Status();
  };
}

ModelEdit delete_attribute(Owner owner, std::size_t position, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    std::vector<ModelAttribute>* list = list_of(model, owner, position);
    if (list == nullptr) return no_owner(owner, position);
    const auto found = find_named(*list, name);
    if (found == list->end()) {
      return Status(Code::not_found, "there is no attribute \"" + name + "\"");
    }
    list->erase(found);
    return Status();
  };
}

ModelEdit rename_dimension(std::size_t dimension, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    if (dimension >= model.dimensions.size()) return no_position("dimension", dimension);
    model.dimensions[dimension].name = name;
    return Status();
  };
}

ModelEdit rename_variable(std::size_t variable, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    if (variable >= model.variables.size()) return no_position("variable", variable);
    model.variables[variable].name = name;
    return Status();
  };
}

Result<std::vector<ModelAttribute>> attributes_of(const NetcdfModel& model, Owner owner,
                                                  std::size_t position) {
  const bool known =
      owner == Owner::group ? position < model.groups.size() : position < model.variables.size();
  if (!known) return no_owner(owner, position);
  return owner == Owner::group ? model.groups[position].attributes
                               : model.variables[position].attributes;
}

}  // namespace tailrace::python
