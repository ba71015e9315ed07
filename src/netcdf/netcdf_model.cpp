// Relations between a netCDF-4 model's values, its rules, and its serialisation. No HDF5 here.

#include "netcdf/netcdf_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/utf8.hpp"
#include "describe/input_netcdf_classic.hpp"

namespace tailrace {

namespace {

constexpr std::array<std::string_view, 14> kTypeNames = {
    "",      "byte",   "char", "short", "int",    "float",  "double",
    "ubyte", "ushort", "uint", "int64", "uint64", "string", "other"};

/// Quote a text on one line, without ambiguity: characters other than printable ASCII, quotes and
/// backslashes become \\xNN.
std::string shown(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7F && c != '"' && c != '\\') {
      out += c;
    } else {
      out.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 0xF]);
    }
  }
  return out + "\"";
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The items of an attribute's line: its type, the number of values, the values.
std::string values_text(const ModelAttribute& attribute) {
  std::string text = "type " + std::string(model_type_name(attribute.type)) + ", " +
                     std::to_string(attribute.n_values) + " values";
  const std::optional<DType> dtype = model_dtype(attribute.type);
  if (dtype && attribute.values.size() == attribute.n_values * dtype_bytes(*dtype)) {
    visit_dtype(*dtype, [&]<class T>() {
      std::array<char, 32> digits{};
      for (std::size_t at = 0; at < attribute.values.size(); at += sizeof(T)) {
        T value{};
        std::memcpy(&value, &attribute.values[at], sizeof(T));
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        text.append(", ").append(digits.data(), end);
        // Digits do not distinguish the payloads of NaN.
        if constexpr (std::is_floating_point_v<T>) {
          if (std::isnan(value)) text += " " + shown(as_text({&attribute.values[at], sizeof(T)}));
        }
      }
    });
  } else if (!attribute.values.empty()) {
    text += ", " + shown(as_text(attribute.values));
  }
  for (const std::string& one : attribute.texts) text += ", " + shown(one);
  return text;
}

void append(std::string& text, const std::string& owner,
            const std::vector<ModelAttribute>& attributes) {
  for (const ModelAttribute& attribute : attributes) {
    text += "attribute " + shown(attribute.name) + " of " + owner + ": " + values_text(attribute) +
            "\n";
  }
}

}  // namespace

std::size_t model_type_bytes(ModelType type) {
  if (type == ModelType::text_char) return 1;
  const std::optional<DType> dtype = model_dtype(type);
  return dtype ? dtype_bytes(*dtype) : 0;
}

std::optional<DType> model_dtype(ModelType type) {
  return netcdf_dtype(static_cast<NetcdfType>(type));  // Both use the numbers of nc_type.
}

ModelType model_type(DType dtype) {
  auto type = ModelType::i8;
  while (model_dtype(type) != dtype) type = static_cast<ModelType>(static_cast<int>(type) + 1);
  return type;
}

std::string_view model_type_name(ModelType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kTypeNames.size() ? kTypeNames[number] : kTypeNames.back();
}

const ModelAttribute* ModelVariable::attribute(std::string_view attribute_name) const {
  const auto found = std::ranges::find(attributes, attribute_name, &ModelAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string ModelVariable::text_attribute(std::string_view attribute_name) const {
  const ModelAttribute* found = attribute(attribute_name);
  if (found == nullptr) return "";
  if (found->type == ModelType::text && found->texts.size() == 1) return found->texts.front();
  if (found->type != ModelType::text_char) return "";
  return {reinterpret_cast<const char*>(found->values.data()), found->values.size()};
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
  // Parents precede their children, so this walk up ends.
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
  std::string text = model.netcdf4 ? "the file: netCDF-4\n" : "the file: HDF5\n";
  const auto group_name = [&](std::size_t group) {
    return group < model.groups.size() ? shown(model.groups[group].path)
                                       : "number " + std::to_string(group);
  };
  for (const ModelGroup& group : model.groups) {
    const std::string name = "group " + shown(group.path);
    text += name + ": in group " + group_name(group.parent) + "\n";
    append(text, name, group.attributes);
  }
  for (const ModelDimension& dimension : model.dimensions) {
    text += "dimension " + shown(dimension.name) + " of group " + group_name(dimension.group) +
            ": length " + std::to_string(dimension.length) +
            (dimension.unlimited ? ", unlimited" : "") + (dimension.anonymous ? ", unnamed" : "") +
            "\n";
  }
  for (const ModelVariable& variable : model.variables) {
    const std::string name =
        "variable " + shown(variable.name) + " of group " + group_name(variable.group);
    text += name + ": type " + std::string(model_type_name(variable.type)) + ", dimensions";
    for (const std::size_t d : variable.dimensions) {
      // A name may also be that of a dimension in another group.
      text += " " + (d < model.dimensions.size() ? shown(model.dimensions[d].name) : "") + "#" +
              std::to_string(d);
    }
    text += ", dataset " + shown(variable.dataset_path) + (variable.no_fill ? ", not filled" : "") +
            "\n";
    append(text, name, variable.attributes);
  }
  return text;
}

// --- The rules of netCDF-4's data model.
//
// Source: the netCDF user's guide (names, _FillValue) and file format specification (reserved
// names); tests/python/test_netcdf_model.py checks each rule against the library.

namespace {

constexpr std::size_t kNameBytesMax = 256;

/// HDF5's dimension scales reserve CLASS, NAME and the two lists; netCDF-4 reserves the rest.
constexpr std::array<std::string_view, 11> kReservedNames = {"CLASS",
                                                             "NAME",
                                                             "DIMENSION_LIST",
                                                             "REFERENCE_LIST",
                                                             "_Netcdf4Coordinates",
                                                             "_Netcdf4Dimid",
                                                             "_nc3_strict",
                                                             "_NCProperties",
                                                             "_NCCOPY",
                                                             "_IsNetcdf4",
                                                             "_SuperblockVersion"};

Status wrong(const std::string& what, const std::string& why) {
  return Status(Code::invalid_argument, what + ": " + why);
}

std::string attribute_text(const std::string& owner, const ModelAttribute& attribute) {
  return "attribute \"" + attribute.name + "\" of " + owner;
}

Status check_attribute(const std::string& what, const ModelAttribute& attribute) {
  TAILRACE_TRY(check_netcdf_name(attribute.name).within(what));
  if (is_reserved_attribute(attribute.name)) {
    return wrong(what, "this name is reserved by netCDF-4");
  }
  if (attribute.type == ModelType::other) {
    return Status(Code::unsupported, what + ": attributes of this type cannot be written");
  }
  const bool texts = attribute.type == ModelType::text;
  const std::uint64_t element_bytes = model_type_bytes(attribute.type);
  const bool consistent =
      texts ? attribute.values.empty() && attribute.texts.size() == attribute.n_values
            : element_bytes != 0 && attribute.texts.empty() &&
                  attribute.values.size() % element_bytes == 0 &&
                  attribute.values.size() / element_bytes == attribute.n_values;
  if (!consistent) {
    return wrong(what, "it has " + std::to_string(attribute.n_values) + " values of type " +
                           std::string(model_type_name(attribute.type)) + ", but " +
                           std::to_string(attribute.values.size()) + " bytes and " +
                           std::to_string(attribute.texts.size()) + " strings");
  }
  const bool has_zero =
      std::any_of(attribute.texts.begin(), attribute.texts.end(),
                  [](const std::string& text) { return text.find('\0') != std::string::npos; });
  return has_zero ? wrong(what, "a string contains a zero byte") : Status();
}

Status check_attributes(const std::string& owner, const std::vector<ModelAttribute>& attributes,
                        const std::vector<ModelAttribute>* old) {
  std::set<std::string_view> names;
  for (const ModelAttribute& attribute : attributes) {
    const std::string what = attribute_text(owner, attribute);
    if (!names.insert(attribute.name).second) return wrong(what, "this name occurs twice");
    const bool known = old != nullptr && std::ranges::find(*old, attribute) != old->end();
    if (!known) TAILRACE_TRY(check_attribute(what, attribute));
  }
  return Status();
}

/// Refuse a change through a further name of a group, which would not appear under its first name.
/// @param group  group of the new or changed object
Status check_first_name(const std::string& what, const NetcdfModel& model, std::size_t group) {
  const std::string& first = model.groups[group].first_path;
  if (first.empty()) return Status();
  return wrong(what, "\"" + model.groups[group].path + "\" is another name of group \"" + first +
                         "\"; use \"" + first + "\" to define and change members and attributes");
}

Status check_groups(const NetcdfModel& model, const NetcdfModel* old) {
  if (model.groups.empty() || model.groups[0].path != "/" || model.groups[0].parent != 0) {
    return wrong("model", "its first group must be \"/\"");
  }
  std::set<std::string_view> paths;
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    const ModelGroup& group = model.groups[g];
    const std::string what = "group \"" + group.path + "\"";
    if (!paths.insert(group.path).second) return wrong(what, "this path occurs twice");
    const ModelGroup* const before =
        old != nullptr && g < old->groups.size() ? &old->groups[g] : nullptr;
    TAILRACE_TRY(check_attributes(what, group.attributes,
                                  before != nullptr ? &before->attributes : nullptr));
    if (g == 0) continue;
    if (group.parent >= g) return wrong(what, "its parent must be listed before it");
    if (old != nullptr && before == nullptr) {
      TAILRACE_TRY(check_first_name(what, model, group.parent));
    }
    if (before != nullptr && before->attributes != group.attributes) {
      TAILRACE_TRY(check_first_name(what, model, g));
    }
    const std::string& above = model.groups[group.parent].path;
    const std::string start = above == "/" ? above : above + "/";
    if (group.path.compare(0, start.size(), start) != 0) {
      return wrong(what, "its path must begin with its parent's, \"" + above + "\"");
    }
    if (before != nullptr && before->path == group.path) continue;
    TAILRACE_TRY(check_netcdf_name(group.path.substr(start.size())).within(what));
  }
  return Status();
}

/// Names of one group's objects. Groups and variables share a name space; dimensions have a
/// separate one. But a dimension's scale also takes a link, whose name no group may have.
class NameSpaces {
 public:
  explicit NameSpaces(const NetcdfModel& model) {
    for (std::size_t g = 1; g < model.groups.size(); ++g) {
      const std::string& path = model.groups[g].path;
      groups_.emplace(model.groups[g].parent, std::string_view(path).substr(path.rfind('/') + 1));
    }
  }
  bool add_dimension(std::size_t group, std::string_view name) {
    return dimensions_.emplace(group, name).second;
  }
  bool add_variable(std::size_t group, std::string_view name) {
    return variables_.emplace(group, name).second;
  }
  bool is_group(std::size_t group, std::string_view name) const {
    return groups_.contains({group, name});
  }

 private:
  using Names = std::set<std::pair<std::size_t, std::string_view>>;
  Names groups_;
  Names dimensions_;
  Names variables_;
};

Status check_dimensions(const NetcdfModel& model, const NetcdfModel* old, NameSpaces& names) {
  for (std::size_t d = 0; d < model.dimensions.size(); ++d) {
    const ModelDimension& dimension = model.dimensions[d];
    const std::string what = "dimension \"" + dimension.name + "\"";
    if (dimension.group >= model.groups.size()) return wrong(what, "its group does not exist");
    if (!names.add_dimension(dimension.group, dimension.name)) {
      return wrong(what, "this name exists already in its group");
    }
    if (old != nullptr && d < old->dimensions.size() && old->dimensions[d].name == dimension.name) {
      continue;
    }
    if (old != nullptr) TAILRACE_TRY(check_first_name(what, model, dimension.group));
    TAILRACE_TRY(check_netcdf_name(dimension.name).within(what));
    if (names.is_group(dimension.group, dimension.name)) {
      return wrong(what, "a group has this name already");
    }
  }
  return Status();
}

Status check_fill(const std::string& what, const ModelVariable& variable) {
  const ModelAttribute* const fill = variable.attribute("_FillValue");
  if (fill == nullptr) return Status();
  if (fill->type != variable.type || fill->n_values != 1) {
    return wrong("attribute \"_FillValue\" of " + what,
                 "it has " + std::to_string(fill->n_values) + " values of type " +
                     std::string(model_type_name(fill->type)) + ", must be one " +
                     std::string(model_type_name(variable.type)));
  }
  return Status();
}

bool is_above(const NetcdfModel& model, std::size_t group, std::size_t below) {
  while (below != group && below != 0) below = model.groups[below].parent;
  return below == group;
}

Status check_variable_dimensions(const std::string& what, const NetcdfModel& model,
                                 const ModelVariable& variable) {
  if (variable.dimensions.size() > kMaxRank) {
    return Status(Code::unsupported, what + ": it has " +
                                         std::to_string(variable.dimensions.size()) +
                                         " dimensions, HDF5 allows " + std::to_string(kMaxRank));
  }
  for (const std::size_t d : variable.dimensions) {
    if (d >= model.dimensions.size())
      return wrong(what, "it names a dimension that does not exist");
    if (!is_above(model, model.dimensions[d].group, variable.group)) {
      return wrong(what, "dimension \"" + model.dimensions[d].name +
                             "\" is neither in its group nor in a parent group");
    }
  }
  return Status();
}

Status check_variables(const NetcdfModel& model, const NetcdfModel* old, NameSpaces& names) {
  for (std::size_t v = 0; v < model.variables.size(); ++v) {
    const ModelVariable& variable = model.variables[v];
    if (variable.group >= model.groups.size()) {
      return wrong("variable \"" + variable.name + "\"", "its group does not exist");
    }
    const std::string what = "variable \"" + model.path_of(variable) + "\"";
    if (!names.add_variable(variable.group, variable.name)) {
      return wrong(what, "this name exists already in its group");
    }
    TAILRACE_TRY(check_variable_dimensions(what, model, variable));
    const ModelVariable* const before =
        old != nullptr && v < old->variables.size() ? &old->variables[v] : nullptr;
    TAILRACE_TRY(check_attributes(what, variable.attributes,
                                  before != nullptr ? &before->attributes : nullptr));
    if (before == nullptr || before->attributes != variable.attributes) {
      if (old != nullptr) TAILRACE_TRY(check_first_name(what, model, variable.group));
      TAILRACE_TRY(check_fill(what, variable));
    }
    if (before != nullptr && before->name == variable.name) continue;
    if (before != nullptr) TAILRACE_TRY(check_first_name(what, model, variable.group));
    TAILRACE_TRY(check_netcdf_name(variable.name).within(what));
    if (names.is_group(variable.group, variable.name))
      return wrong(what, "a group has this name already");
    if (variable.name.starts_with(kNonCoordinatePrefix)) {
      return wrong(what, "names that begin with \"_nc4_non_coord_\" are reserved by netCDF-4");
    }
    if (before == nullptr && variable.type == ModelType::other) {
      return Status(Code::unsupported, what + ": variables of this type cannot be written");
    }
  }
  return Status();
}

}  // namespace

bool is_reserved_attribute(std::string_view name) {
  return std::find(kReservedNames.begin(), kReservedNames.end(), name) != kReservedNames.end();
}

Status check_netcdf_name(std::string_view name) {
  const auto refused = [](const char* why) { return Status(Code::invalid_argument, why); };
  if (name.empty()) return refused("its name is empty");
  if (name.size() > kNameBytesMax) return refused("its name has more than 256 bytes");
  const auto first = static_cast<unsigned char>(name[0]);
  const bool letter = (first | 0x20U) >= 'a' && (first | 0x20U) <= 'z';
  if (first < 0x80 && !letter && !(first >= '0' && first <= '9') && first != '_') {
    return refused("its name must begin with a letter, a digit or an underscore");
  }
  for (std::size_t at = 0; at < name.size();) {
    const auto byte = static_cast<unsigned char>(name[at]);
    if (byte < 0x20 || byte == 0x7F) return refused("its name has a control character");
    if (byte == '/') return refused("its name has a slash");
    const std::size_t n_bytes = utf8_character_bytes(name, at);
    if (n_bytes == 0) return refused("its name is not UTF-8");
    at += n_bytes;
  }
  return name.back() == ' ' ? refused("its name ends in a space") : Status();
}

std::optional<std::size_t> coordinate_of(const NetcdfModel& model, const ModelVariable& variable) {
  if (variable.dimensions.empty()) return std::nullopt;
  const std::size_t first = variable.dimensions[0];
  const ModelDimension& dimension = model.dimensions[first];
  const bool is_scale =
      !dimension.anonymous && dimension.group == variable.group && dimension.name == variable.name;
  return is_scale ? std::optional(first) : std::nullopt;
}

std::string netcdf4_dataset_path(const NetcdfModel& model, const ModelVariable& variable) {
  const std::string& group = model.groups[variable.group].path;
  const std::string start = group == "/" ? group : group + "/";
  const bool taken = !coordinate_of(model, variable) &&
                     std::ranges::any_of(model.dimensions, [&](const ModelDimension& dimension) {
                       return !dimension.anonymous && dimension.group == variable.group &&
                              dimension.name == variable.name;
                     });
  return taken ? start + std::string(kNonCoordinatePrefix) + variable.name : start + variable.name;
}

Status check_model_change(const NetcdfModel& model, const NetcdfModel* old) {
  TAILRACE_TRY(check_groups(model, old));
  NameSpaces names(model);
  TAILRACE_TRY(check_dimensions(model, old, names));
  return check_variables(model, old, names);
}

Status check_model(const NetcdfModel& model) { return check_model_change(model, nullptr); }

// --- netCDF's default fill values (NC_FILL_* in its user's guide).

namespace {

constexpr double kFloatingFill = 9.9692099683868690e+36;

}  // namespace

template <class T>
void FillValue::set(T value) {
  static_assert(sizeof(T) <= sizeof(element_));
  std::memcpy(element_.data(), &value, sizeof value);
  n_bytes_ = sizeof value;
}

FillValue::FillValue(const ModelVariable& variable) {
  if (!set_own(variable)) set_default(variable.type);
}

bool FillValue::set_own(const ModelVariable& variable) {
  const ModelAttribute* const own = variable.attribute("_FillValue");
  if (own == nullptr || own->type != variable.type || own->n_values != 1) return false;
  if (own->type == ModelType::text) {
    text_ = own->texts[0];
    set(text_.c_str());
    return true;
  }
  if (own->values.size() > element_.size()) return false;
  n_bytes_ = own->values.size();
  std::memcpy(element_.data(), own->values.data(), n_bytes_);
  return true;
}

void FillValue::set_default(ModelType type) {
  switch (type) {
    case ModelType::i8: return set(std::int8_t{-127});
    case ModelType::text_char: return set(char{0});
    case ModelType::i16: return set(std::int16_t{-32767});
    case ModelType::i32: return set(std::int32_t{-2147483647});
    case ModelType::f32: return set(static_cast<float>(kFloatingFill));
    case ModelType::f64: return set(kFloatingFill);
    case ModelType::u8: return set(std::uint8_t{255});
    case ModelType::u16: return set(std::uint16_t{65535});
    case ModelType::u32: return set(std::uint32_t{4294967295U});
    case ModelType::i64: return set(std::int64_t{-9223372036854775806LL});
    case ModelType::u64: return set(std::uint64_t{18446744073709551614ULL});
    case ModelType::text: return set(text_.c_str());
    case ModelType::other: return;
  }
}

// --- Serialisation: the model's lists in sequence.

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
    writer.add_text(group.first_path);
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
    writer.add_text(variable.first_path);
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
    group.first_path = reader.take_text();
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
    variable.first_path = reader.take_text();
  }
  return model;
}

}  // namespace tailrace
