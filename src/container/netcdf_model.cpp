// What a model's values say of one another; no HDF5 here.

#include "container/netcdf_model.hpp"

#include <algorithm>
#include <array>

namespace tailrace {
namespace {

constexpr std::array<std::string_view, 14> kTypeNames = {
    "",      "byte",   "char", "short", "int",    "float",  "double",
    "ubyte", "ushort", "uint", "int64", "uint64", "string", "other"};

void append(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

void append(std::string& text, std::uint64_t number) {
  text += std::to_string(number);
  text += ';';
}

void append(std::string& text, const std::vector<ModelAttribute>& attributes) {
  append(text, attributes.size());
  for (const ModelAttribute& attribute : attributes) {
    append(text, attribute.name);
    append(text, static_cast<std::uint64_t>(attribute.type));
    append(text, attribute.n_values);
    append(text, std::string_view(reinterpret_cast<const char*>(attribute.values.data()),
                                  attribute.values.size()));
    append(text, attribute.texts.size());
    for (const std::string& one : attribute.texts) append(text, one);
  }
}

}  // namespace

std::size_t model_type_bytes(ModelType type) {
  if (type == ModelType::text_char) return 1;
  const std::optional<DType> dtype = model_dtype(type);
  return dtype ? dtype_bytes(*dtype) : 0;
}

std::optional<DType> model_dtype(ModelType type) {
  switch (type) {
    case ModelType::i8: return DType::i8;
    case ModelType::i16: return DType::i16;
    case ModelType::i32: return DType::i32;
    case ModelType::i64: return DType::i64;
    case ModelType::u8: return DType::u8;
    case ModelType::u16: return DType::u16;
    case ModelType::u32: return DType::u32;
    case ModelType::u64: return DType::u64;
    case ModelType::f32: return DType::f32;
    case ModelType::f64: return DType::f64;
    case ModelType::text_char:
    case ModelType::text:
    case ModelType::other: return std::nullopt;
  }
  return std::nullopt;
}

ModelType model_type(DType dtype) {
  switch (dtype) {
    case DType::i8: return ModelType::i8;
    case DType::i16: return ModelType::i16;
    case DType::i32: return ModelType::i32;
    case DType::i64: return ModelType::i64;
    case DType::u8: return ModelType::u8;
    case DType::u16: return ModelType::u16;
    case DType::u32: return ModelType::u32;
    case DType::u64: return ModelType::u64;
    case DType::f32: return ModelType::f32;
    case DType::f64: return ModelType::f64;
  }
  return ModelType::other;
}

std::string_view model_type_name(ModelType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kTypeNames.size() ? kTypeNames[number] : kTypeNames.back();
}

const ModelAttribute* ModelVariable::attribute(std::string_view attribute_name) const {
  const auto found = std::find_if(
      attributes.begin(), attributes.end(),
      [&](const ModelAttribute& attribute) { return attribute.name == attribute_name; });
  return found == attributes.end() ? nullptr : &*found;
}

Shape NetcdfModel::shape_of(const ModelVariable& variable) const {
  Shape shape;
  shape.reserve(variable.dimensions.size());
  for (const std::size_t d : variable.dimensions) shape.push_back(dimensions[d].length);
  return shape;
}

std::string NetcdfModel::path_of(const ModelVariable& variable) const {
  const std::string& group = groups[variable.group].path;
  return (group == "/" ? group : group + "/") + variable.name;
}

std::optional<std::size_t> NetcdfModel::find_variable(std::size_t group,
                                                      std::string_view name) const {
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].group == group && variables[v].name == name) return v;
  }
  return std::nullopt;
}

std::optional<std::size_t> NetcdfModel::find_dimension(std::size_t group,
                                                       std::string_view name) const {
  // Parents stand before their children, so this walk up ends.
  for (std::size_t at = group; at < groups.size(); at = groups[at].parent) {
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      if (dimensions[d].group == at && dimensions[d].name == name) return d;
    }
    if (groups[at].parent >= at) break;
  }
  return std::nullopt;
}

std::optional<std::size_t> NetcdfModel::find_group(std::string_view path) const {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].path == path) return g;
  }
  return std::nullopt;
}

std::string model_text(const NetcdfModel& model) {
  std::string text;
  append(text, model.netcdf4 ? 1 : 0);
  append(text, model.groups.size());
  for (const ModelGroup& group : model.groups) {
    append(text, group.path);
    append(text, group.parent);
    append(text, group.attributes);
  }
  append(text, model.dimensions.size());
  for (const ModelDimension& dimension : model.dimensions) {
    append(text, dimension.name);
    append(text, dimension.group);
    append(text, dimension.length);
    append(text, (dimension.unlimited ? 2 : 0) + (dimension.anonymous ? 1 : 0));
  }
  append(text, model.variables.size());
  for (const ModelVariable& variable : model.variables) {
    append(text, variable.name);
    append(text, variable.group);
    append(text, static_cast<std::uint64_t>(variable.type));
    append(text, variable.dimensions.size());
    for (const std::size_t d : variable.dimensions) append(text, d);
    append(text, variable.attributes);
    append(text, variable.dataset_path);
    append(text, variable.no_fill ? 1 : 0);
  }
  return text;
}

}  // namespace tailrace
