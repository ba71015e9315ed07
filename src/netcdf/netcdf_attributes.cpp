// netCDF-4's forms of attributes.
//
// Numbers are lists, even a single one. NC_CHAR is a scalar fixed-length string, exactly as long as
// the text; NC_STRING is a list of variable-length strings; an empty attribute is a null dataspace.
// On reading, a list of fixed-length strings counts as NC_STRING, as in the netCDF-4 library.
// Source: libhdf5/hdf5open.c and nc4hdf.c of netCDF-C, as observed in its files.

#include "netcdf/netcdf_attributes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/version.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {
namespace {

/// Limits for memory and texts, since a damaged header may state any size.
constexpr std::uint64_t kAttributeBytesMax = std::uint64_t{1} << 30;
constexpr hssize_t kAttributeTextsMax = hssize_t{1} << 24;

std::string what_of(const std::string& owner, const std::string& name) {
  return "attribute \"" + name + "\" of \"" + owner + "\"";
}

Hdf5Id string_type(std::size_t n_bytes, H5T_cset_t characters) {
  Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), n_bytes);
  H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
  H5Tset_cset(type.get(), characters);
  return type;
}

bool read_variable_texts(hid_t attribute, hid_t space, std::vector<std::string>& texts) {
  const Hdf5Id type = hdf5_memory_type(ModelType::text);
  const Hdf5Id stored(H5Aget_type(attribute));
  H5Tset_cset(type.get(), H5Tget_cset(stored.get()));
  std::vector<char*> pointers(texts.size(), nullptr);
  if (H5Aread(attribute, type.get(), pointers.data()) < 0) return false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (pointers[i] != nullptr) texts[i] = pointers[i];
  }
  reclaim_variable_length(type.get(), space, pointers.data());
  return true;
}

bool read_fixed_texts(hid_t attribute, hid_t type, std::vector<std::string>& texts) {
  const std::size_t n_bytes = H5Tget_size(type);
  const bool blanks = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<char> bytes(texts.size() * n_bytes);
  if (H5Aread(attribute, type, bytes.data()) < 0) return false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string text(bytes.data() + i * n_bytes, n_bytes);
    text.resize(std::min(text.size(), text.find('\0')));
    while (blanks && !text.empty() && text.back() == ' ') text.pop_back();
    texts[i] = std::move(text);
  }
  return true;
}

bool read_bytes(hid_t attribute, hid_t type, std::uint64_t n_bytes,
                std::vector<std::byte>& values) {
  values.resize(n_bytes);
  return n_bytes == 0 || H5Aread(attribute, type, values.data()) >= 0;
}

Result<ModelAttribute> read_one(hid_t object, const std::string& owner, const std::string& name) {
  const auto corrupt = [&] {
    return hdf5_failure(Code::corrupt, what_of(owner, name) + " cannot be read");
  };
  const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  if (!type.valid() || !space.valid()) return corrupt();
  const hssize_t n_points = H5Sget_simple_extent_npoints(space.get());
  const int rank = H5Sget_simple_extent_ndims(space.get());
  const std::uint64_t element_bytes = H5Tget_size(type.get());
  std::uint64_t n_bytes = 0;
  if (n_points < 0 || element_bytes == 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(n_points), element_bytes, &n_bytes) ||
      n_bytes > kAttributeBytesMax ||
      (H5Tget_class(type.get()) == H5T_STRING && n_points > kAttributeTextsMax)) {
    return Status(Code::corrupt, what_of(owner, name) +
                                     " has an invalid size: " + std::to_string(n_points) +
                                     " values of " + std::to_string(element_bytes) + " bytes");
  }
  const bool is_null = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
  ModelAttribute model;
  model.name = name;
  // Values of an enum are read as its integers.
  const bool named_values = H5Tget_class(type.get()) == H5T_ENUM;
  const Hdf5Id base(named_values ? H5Tget_super(type.get()) : H5I_INVALID_HID);
  model.type = model_type_of(named_values ? base.get() : type.get()).value_or(ModelType::other);
  model.n_values = static_cast<std::uint64_t>(n_points);
  if (rank > 1 || model.type == ModelType::other) {
    model.type = ModelType::other;
    return model;
  }
  const bool fixed_text =
      H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) <= 0;
  bool done = true;
  if (fixed_text && (rank == 0 || is_null)) {
    // One fixed-length string: its characters are the values.
    model.type = ModelType::text_char;
    model.n_values = is_null ? 0 : element_bytes;
    done = read_bytes(attribute.get(), type.get(), model.n_values, model.values);
  } else if (fixed_text || model.type == ModelType::text) {
    model.type = ModelType::text;
    model.texts.resize(is_null ? 0 : model.n_values);
    model.n_values = model.texts.size();
    done = model.texts.empty() ||
           (fixed_text ? read_fixed_texts(attribute.get(), type.get(), model.texts)
                       : read_variable_texts(attribute.get(), space.get(), model.texts));
  } else {
    if (is_null) model.n_values = 0;
    const Hdf5Id native = hdf5_memory_type(model.type);
    done = read_bytes(attribute.get(), native.get(), model.n_values * model_type_bytes(model.type),
                      model.values);
  }
  if (!done) return corrupt();
  return model;
}

/// An attribute as HDF5 expects it.
struct StoredAttribute {
  Hdf5Id file_type;
  Hdf5Id memory_type;
  Hdf5Id space;
  std::vector<const char*> pointers;
  const void* values = nullptr;
};

StoredAttribute stored_form(const ModelAttribute& attribute) {
  StoredAttribute stored;
  const hsize_t n = attribute.n_values;
  const bool characters = attribute.type == ModelType::text_char;
  stored.space = Hdf5Id(n == 0       ? H5Screate(H5S_NULL)
                        : characters ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(1, &n, nullptr));
  if (characters) {
    const auto beyond_ascii = [](std::byte byte) { return byte >= std::byte{0x80}; };
    const bool plain = std::none_of(attribute.values.begin(), attribute.values.end(), beyond_ascii);
    stored.file_type =
        string_type(std::max<std::size_t>(n, 1), plain ? H5T_CSET_ASCII : H5T_CSET_UTF8);
    stored.memory_type = Hdf5Id(H5Tcopy(stored.file_type.get()));
  } else {
    stored.file_type = hdf5_file_type(attribute.type);
    stored.memory_type = hdf5_memory_type(attribute.type);
  }
  stored.values = attribute.values.data();
  if (attribute.type == ModelType::text) {
    for (const std::string& text : attribute.texts) stored.pointers.push_back(text.c_str());
    stored.values = stored.pointers.data();
  }
  return stored;
}

/// The attribute if it has this type and extent, so that it can be overwritten in place.
Hdf5Id open_same(hid_t object, const char* name, const StoredAttribute& wanted) {
  Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const bool same = H5Tequal(type.get(), wanted.file_type.get()) > 0 &&
                    H5Sextent_equal(space.get(), wanted.space.get()) > 0;
  return same ? std::move(attribute) : Hdf5Id();
}

Hdf5Id create_attribute(hid_t object, const char* name, hid_t type, hid_t space) {
  const Hdf5Id properties(H5Pcreate(H5P_ATTRIBUTE_CREATE));
  H5Pset_char_encoding(properties.get(), H5T_CSET_UTF8);
  return Hdf5Id(H5Acreate2(object, name, type, space, properties.get(), H5P_DEFAULT));
}

const ModelAttribute* find(const std::vector<ModelAttribute>& attributes, const std::string& name) {
  const auto found = std::ranges::find(attributes, name, &ModelAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

/// True if an attribute can be overwritten by another without losing its position in the order.
bool same_form(const ModelAttribute& a, const ModelAttribute& b) {
  return a.name == b.name && a.type == b.type && a.n_values == b.n_values;
}

}  // namespace

std::optional<ModelType> model_type_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0) {
        return ModelType::f32;
      }
      if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0) {
        return ModelType::f64;
      }
      return ModelType::other;
    case H5T_INTEGER: {
      if (H5Tget_precision(type) != 8 * H5Tget_size(type)) return ModelType::other;
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      switch (H5Tget_size(type)) {
        case 1: return is_signed ? ModelType::i8 : ModelType::u8;
        case 2: return is_signed ? ModelType::i16 : ModelType::u16;
        case 4: return is_signed ? ModelType::i32 : ModelType::u32;
        case 8: return is_signed ? ModelType::i64 : ModelType::u64;
        default: return ModelType::other;
      }
    }
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 || H5Tget_size(type) > 1 ? ModelType::text
                                                                   : ModelType::text_char;
    case H5T_COMPOUND:
    case H5T_ENUM:
    case H5T_OPAQUE:
    case H5T_VLEN:
    case H5T_ARRAY: return ModelType::other;
    default: return std::nullopt;
  }
}

Hdf5Id hdf5_memory_type(ModelType type) {
  if (type == ModelType::text_char) return string_type(1, H5T_CSET_ASCII);
  if (type == ModelType::text) return string_type(H5T_VARIABLE, H5T_CSET_UTF8);
  const std::optional<DType> dtype = model_dtype(type);
  return dtype ? Hdf5Id(H5Tcopy(hdf5_native_type(*dtype))) : Hdf5Id();
}

// By default, the netCDF-4 library stores numbers in native byte order.
Hdf5Id hdf5_file_type(ModelType type) { return hdf5_memory_type(type); }

std::vector<ModelAttribute> read_model_attributes(hid_t object, const std::string& owner,
                                                  std::vector<std::string>& remarks) {
  const Result<std::vector<std::string>> names = attribute_names(object, owner);
  if (!names.ok()) {
    H5Eclear2(H5E_DEFAULT);
    remarks.push_back("the attributes of \"" + owner + "\" cannot be listed and are left out");
    return {};
  }
  std::vector<ModelAttribute> attributes;
  for (const std::string& name : *names) {
    if (is_reserved_attribute(name)) continue;
    Result<ModelAttribute> attribute = read_one(object, owner, name);
    if (attribute.ok()) {
      attributes.push_back(std::move(*attribute));
      continue;
    }
    remarks.push_back(attribute.status().message() + "; its value is left out");
    attributes.push_back({name, ModelType::other, 0, {}, {}});
  }
  return attributes;
}

Status write_model_attribute(hid_t object, const std::string& owner,
                             const ModelAttribute& attribute) {
  const std::string what = what_of(owner, attribute.name);
  if (attribute.type == ModelType::other) {
    return Status(Code::unsupported, what + ": attributes of this type cannot be written");
  }
  const StoredAttribute stored = stored_form(attribute);
  const char* const name = attribute.name.c_str();
  Hdf5Id made;
  if (H5Aexists(object, name) > 0) {
    made = open_same(object, name, stored);
    if (!made.valid() && H5Adelete(object, name) < 0) {
      return hdf5_failure(Code::internal, what + " cannot be replaced");
    }
  }
  if (!made.valid()) {
    made = create_attribute(object, name, stored.file_type.get(), stored.space.get());
  }
  if (!made.valid()) return hdf5_failure(Code::internal, what + " cannot be created");
  if (attribute.n_values == 0) return Status();
  return H5Awrite(made.get(), stored.memory_type.get(), stored.values) < 0
             ? hdf5_failure(Code::internal, what + " cannot be written")
             : Status();
}

Status change_model_attributes(hid_t object, const std::string& owner,
                               const std::vector<ModelAttribute>& old,
                               const std::vector<ModelAttribute>& next) {
  // Overwrite values up to the first attribute whose name or form differs. From there on, delete
  // and create all attributes, since a new attribute comes last.
  std::size_t n_kept = 0;
  while (n_kept < old.size() && n_kept < next.size() && same_form(old[n_kept], next[n_kept])) {
    ++n_kept;
  }
  for (std::size_t i = n_kept; i < old.size(); ++i) {
    const ModelAttribute* const later = find(next, old[i].name);
    if (old[i].type == ModelType::other && later != nullptr) continue;
    if (H5Aexists(object, old[i].name.c_str()) > 0 && H5Adelete(object, old[i].name.c_str()) < 0) {
      return hdf5_failure(Code::internal, what_of(owner, old[i].name) + " cannot be deleted");
    }
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    const bool same = i < n_kept && old[i] == next[i];
    if (same || next[i].type == ModelType::other) continue;
    TAILRACE_TRY(write_model_attribute(object, owner, next[i]));
  }
  return Status();
}

Status flatten_wide_attributes(hid_t object, const std::string& owner,
                               std::vector<std::string>& lines) {
  TAILRACE_TAKE(const std::vector<std::string> names, attribute_names(object, owner));
  for (const std::string& name : names) {
    const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
    const Hdf5Id type(H5Aget_type(attribute.get()));
    const Hdf5Id space(H5Aget_space(attribute.get()));
    const std::optional<ModelType> model = model_type_of(type.get());
    if (H5Sget_simple_extent_ndims(space.get()) < 2 || !model || model_type_bytes(*model) < 1) {
      continue;
    }
    const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
    if (n_values < 0 || static_cast<std::uint64_t>(n_values) > kAttributeBytesMax / 8) continue;
    ModelAttribute list{name, *model, static_cast<std::uint64_t>(n_values), {}, {}};
    const Hdf5Id native = hdf5_memory_type(*model);
    if (!read_bytes(attribute.get(), native.get(), list.n_values * model_type_bytes(*model),
                    list.values)) {
      return hdf5_failure(Code::corrupt, what_of(owner, name) + " cannot be read");
    }
    TAILRACE_TRY(write_model_attribute(object, owner, list));
    lines.push_back(what_of(owner, name) +
                    " has several dimensions: converted to a list for netCDF");
  }
  return Status();
}

Status write_netcdf_properties(hid_t root) {
  if (H5Aexists(root, "_NCProperties") > 0) return Status();
  std::array<unsigned, 3> version = {};
  H5get_libversion(version.data(), &version[1], &version[2]);
  const std::string text = "version=2,tailrace=" + std::string(version_text) +
                           ",hdf5=" + std::to_string(version[0]) + "." +
                           std::to_string(version[1]) + "." + std::to_string(version[2]);
  ModelAttribute properties{"_NCProperties", ModelType::text_char, text.size(), {}, {}};
  properties.values.resize(text.size());
  std::memcpy(properties.values.data(), text.data(), text.size());
  return write_model_attribute(root, "/", properties);
}

}  // namespace tailrace
