// The model's lists one behind the other.

#include "read_model.hpp"

#include <algorithm>

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

void add(ByteWriter& writer, const std::vector<ModelAttribute>& attributes) {
  writer.add(std::uint64_t{attributes.size()});
  for (const ModelAttribute& attribute : attributes) {
    writer.add_text(attribute.name);
    writer.add(attribute.type);
    writer.add(attribute.n_values);
    writer.add(std::uint64_t{attribute.values.size()});
    std::copy(attribute.values.begin(), attribute.values.end(),
              writer.extend(attribute.values.size()));
    writer.add(std::uint64_t{attribute.texts.size()});
    for (const std::string& text : attribute.texts) writer.add_text(text);
  }
}

std::vector<ModelAttribute> take_attributes(ByteReader& reader) {
  std::vector<ModelAttribute> attributes(reader.take<std::uint64_t>());
  for (ModelAttribute& attribute : attributes) {
    attribute.name = reader.take_text();
    attribute.type = reader.take<ModelType>();
    attribute.n_values = reader.take<std::uint64_t>();
    const auto n_bytes = static_cast<std::size_t>(reader.take<std::uint64_t>());
    const std::span<const std::byte> values = reader.take_bytes(n_bytes);
    attribute.values.assign(values.begin(), values.end());
    attribute.texts.resize(reader.take<std::uint64_t>());
    for (std::string& text : attribute.texts) text = reader.take_text();
  }
  return attributes;
}

}  // namespace

Bytes pack_model(const NetcdfModel& model) {
  ByteWriter writer;
  writer.add(model.netcdf4);
  writer.add(std::uint64_t{model.remarks.size()});
  for (const std::string& remark : model.remarks) writer.add_text(remark);
  writer.add(std::uint64_t{model.groups.size()});
  for (const ModelGroup& group : model.groups) {
    writer.add_text(group.path);
    writer.add(std::uint64_t{group.parent});
    add(writer, group.attributes);
  }
  writer.add(std::uint64_t{model.dimensions.size()});
  for (const ModelDimension& dimension : model.dimensions) {
    writer.add_text(dimension.name);
    writer.add(std::uint64_t{dimension.group});
    writer.add(dimension.length);
    writer.add(dimension.unlimited);
    writer.add(dimension.anonymous);
  }
  writer.add(std::uint64_t{model.variables.size()});
  for (const ModelVariable& variable : model.variables) {
    writer.add_text(variable.name);
    writer.add(std::uint64_t{variable.group});
    writer.add(variable.type);
    writer.add(Shape(variable.dimensions.begin(), variable.dimensions.end()));
    add(writer, variable.attributes);
    writer.add_text(variable.dataset_path);
    writer.add(variable.no_fill);
  }
  return writer.take();
}

NetcdfModel unpack_model(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  NetcdfModel model;
  model.netcdf4 = reader.take<bool>();
  model.remarks.resize(reader.take<std::uint64_t>());
  for (std::string& remark : model.remarks) remark = reader.take_text();
  model.groups.resize(reader.take<std::uint64_t>());
  for (ModelGroup& group : model.groups) {
    group.path = reader.take_text();
    group.parent = reader.take<std::uint64_t>();
    group.attributes = take_attributes(reader);
  }
  model.dimensions.resize(reader.take<std::uint64_t>());
  for (ModelDimension& dimension : model.dimensions) {
    dimension.name = reader.take_text();
    dimension.group = reader.take<std::uint64_t>();
    dimension.length = reader.take<std::uint64_t>();
    dimension.unlimited = reader.take<bool>();
    dimension.anonymous = reader.take<bool>();
  }
  model.variables.resize(reader.take<std::uint64_t>());
  for (ModelVariable& variable : model.variables) {
    variable.name = reader.take_text();
    variable.group = reader.take<std::uint64_t>();
    variable.type = reader.take<ModelType>();
    const Shape dimensions = reader.take_shape();
    variable.dimensions.assign(dimensions.begin(), dimensions.end());
    variable.attributes = take_attributes(reader);
    variable.dataset_path = reader.take_text();
    variable.no_fill = reader.take<bool>();
  }
  return model;
}

}  // namespace tailrace
