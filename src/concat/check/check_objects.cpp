// Comparison of values, objects and attributes of two files.

#include "concat/check/check_objects.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/encoding_notes.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_walk.hpp"

namespace tailrace {

namespace {

/// Name, by CheckedPaths, of the object that a reference leads to; empty if it leads nowhere.
std::string path_of(const CheckedFile& file, const std::byte* bytes) {
  return file.paths->of(bytes);
}

bool is_object_reference(hid_t type) { return H5Tequal(type, H5T_STD_REF_OBJ) > 0; }

hvl_t sequence_at(const std::byte* bytes) {
  hvl_t sequence{};
  std::memcpy(&sequence, bytes, sizeof sequence);
  return sequence;
}

const char* text_at(const std::byte* bytes) {
  const char* text = nullptr;
  std::memcpy(&text, bytes, sizeof text);
  return text;
}

/// Number of elements of an array type.
std::size_t array_length(hid_t type, hid_t element) {
  const std::size_t n_element = H5Tget_size(element);
  return n_element > 0 ? H5Tget_size(type) / n_element : 0;
}

bool same_elements(hid_t type, std::size_t n, CheckedValue a, CheckedValue b) {
  const std::size_t n_bytes = H5Tget_size(type);
  for (std::size_t i = 0; i < n; ++i) {
    if (!same_value(type, {a.bytes + i * n_bytes, a.file}, {b.bytes + i * n_bytes, b.file})) {
      return false;
    }
  }
  return true;
}

std::string hex_text(const std::byte* bytes, std::size_t n_bytes) {
  constexpr std::size_t most = 16;
  std::string text;
  for (std::size_t i = 0; i < n_bytes && i < most; ++i) {
    char digits[3] = {};
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(bytes[i]));
    text += digits;
  }
  return n_bytes > most ? text + "..." : text;
}

std::string quoted(const char* text, std::size_t n_most) {
  constexpr std::size_t most = 60;
  const std::size_t n = text != nullptr ? strnlen(text, n_most) : 0;
  return '"' + std::string(text != nullptr ? text : "", n < most ? n : most) +
         (n > most ? "...\"" : "\"");
}

std::string number_text(hid_t type, const std::byte* bytes) {
  const std::size_t n_bytes = H5Tget_size(type);
  std::vector<std::byte> room(n_bytes > 16 ? n_bytes : 16);
  std::memcpy(room.data(), bytes, n_bytes);
  char text[64] = {};
  if (H5Tget_class(type) == H5T_FLOAT) {
    double value = 0;
    H5Tconvert(type, H5T_NATIVE_DOUBLE, 1, room.data(), nullptr, H5P_DEFAULT);
    std::memcpy(&value, room.data(), sizeof value);
    std::snprintf(text, sizeof text, "%.*g", n_bytes <= 4 ? 9 : 17, value);
    if (std::isnan(value)) return std::string(text) + " (" + hex_text(bytes, n_bytes) + ")";
  } else if (H5Tget_sign(type) == H5T_SGN_NONE) {
    unsigned long long value = 0;
    H5Tconvert(type, H5T_NATIVE_ULLONG, 1, room.data(), nullptr, H5P_DEFAULT);
    std::memcpy(&value, room.data(), sizeof value);
    std::snprintf(text, sizeof text, "%llu", value);
  } else {
    long long value = 0;
    H5Tconvert(type, H5T_NATIVE_LLONG, 1, room.data(), nullptr, H5P_DEFAULT);
    std::memcpy(&value, room.data(), sizeof value);
    std::snprintf(text, sizeof text, "%lld", value);
  }
  return text;
}

/// True if references, or lists of them, lead only to objects that the output lacks.
bool leads_nowhere(hid_t type, CheckedValue value, hid_t output) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: {
      if (!is_object_reference(type)) return false;
      const std::string path = path_of(value.file, value.bytes);
      return path.empty() || H5Oexists_by_name(output, path.c_str(), H5P_DEFAULT) <= 0;
    }
    case H5T_VLEN: {
      const Hdf5Id element(H5Tget_super(type));
      const std::size_t n_bytes = H5Tget_size(element.get());
      const hvl_t sequence = sequence_at(value.bytes);
      const auto* first = static_cast<const std::byte*>(sequence.p);
      for (std::size_t i = 0; i < sequence.len; ++i) {
        if (!leads_nowhere(element.get(), {first + i * n_bytes, value.file}, output)) return false;
      }
      return true;
    }
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const Hdf5Id member(H5Tget_member_type(type, unsigned(m)));
        const std::size_t at = H5Tget_member_offset(type, unsigned(m));
        if (leads_nowhere(member.get(), {value.bytes + at, value.file}, output)) return true;
      }
      return false;
    default: return false;
  }
}

/// "{a, b, ...}" of the first elements
std::string list_text(hid_t type, std::size_t n, CheckedValue first) {
  constexpr std::size_t most = 4;
  const std::size_t n_bytes = H5Tget_size(type);
  std::string text;
  for (std::size_t i = 0; i < n && i < most; ++i) {
    text += (i > 0 ? ", " : "") + checked_value_text(type, {first.bytes + i * n_bytes, first.file});
  }
  return "{" + text + (n > most ? ", ...}" : "}");
}

}  // namespace

bool is_plain_type(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: return H5Tis_variable_str(type) <= 0;
    case H5T_VLEN:
    case H5T_REFERENCE: return false;
    case H5T_ARRAY: return is_plain_type(Hdf5Id(H5Tget_super(type)).get());
    case H5T_COMPOUND:
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        if (!is_plain_type(Hdf5Id(H5Tget_member_type(type, unsigned(m))).get())) return false;
      }
      return true;
    default: return true;
  }
}

bool same_value(hid_t type, CheckedValue a, CheckedValue b) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: {
      if (H5Tis_variable_str(type) <= 0) break;
      const char* text_a = text_at(a.bytes);
      const char* text_b = text_at(b.bytes);
      // HDF5 distinguishes an empty string from a null pointer; readers treat both as empty.
      return std::strcmp(text_a != nullptr ? text_a : "", text_b != nullptr ? text_b : "") == 0;
    }
    case H5T_VLEN: {
      const Hdf5Id element(H5Tget_super(type));
      const hvl_t sequence_a = sequence_at(a.bytes);
      const hvl_t sequence_b = sequence_at(b.bytes);
      return sequence_a.len == sequence_b.len &&
             same_elements(element.get(), sequence_a.len,
                           {static_cast<const std::byte*>(sequence_a.p), a.file},
                           {static_cast<const std::byte*>(sequence_b.p), b.file});
    }
    case H5T_REFERENCE: {
      // References to regions and attributes have no form that is common to two files, so they are
      // not compared. References to omitted objects become null.
      if (!is_object_reference(type)) return true;
      return path_of(b.file, b.bytes) == path_of(a.file, a.bytes) || leads_nowhere(type, a, b.file);
    }
    case H5T_ARRAY: {
      const Hdf5Id element(H5Tget_super(type));
      if (is_plain_type(element.get())) break;
      return same_elements(element.get(), array_length(type, element.get()), a, b);
    }
    case H5T_COMPOUND: {
      if (is_plain_type(type)) break;
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const Hdf5Id member(H5Tget_member_type(type, unsigned(m)));
        const std::size_t at = H5Tget_member_offset(type, unsigned(m));
        if (!same_value(member.get(), {a.bytes + at, a.file}, {b.bytes + at, b.file})) return false;
      }
      return true;
    }
    default: break;
  }
  return std::memcmp(a.bytes, b.bytes, H5Tget_size(type)) == 0;
}

std::string checked_value_text(hid_t type, CheckedValue value) {
  const std::size_t n_bytes = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT: return number_text(type, value.bytes);
    case H5T_STRING:
      if (H5Tis_variable_str(type) > 0) return quoted(text_at(value.bytes), SIZE_MAX);
      return quoted(reinterpret_cast<const char*>(value.bytes), n_bytes);
    case H5T_ENUM: {
      char name[128] = {};
      if (H5Tenum_nameof(type, value.bytes, name, sizeof name) >= 0) return name;
      return hex_text(value.bytes, n_bytes);
    }
    case H5T_VLEN: {
      const hvl_t sequence = sequence_at(value.bytes);
      return list_text(Hdf5Id(H5Tget_super(type)).get(), sequence.len,
                       {static_cast<const std::byte*>(sequence.p), value.file});
    }
    case H5T_ARRAY: {
      const Hdf5Id element(H5Tget_super(type));
      return list_text(element.get(), array_length(type, element.get()), value);
    }
    case H5T_COMPOUND: {
      std::string text;
      for (int m = 0; m < H5Tget_nmembers(type); ++m) {
        const Hdf5Id member(H5Tget_member_type(type, unsigned(m)));
        const std::size_t at = H5Tget_member_offset(type, unsigned(m));
        text +=
            (m > 0 ? ", " : "") + checked_value_text(member.get(), {value.bytes + at, value.file});
      }
      return "{" + text + "}";
    }
    case H5T_REFERENCE:
      if (is_object_reference(type)) return "-> " + path_of(value.file, value.bytes);
      return "a reference";
    default: return hex_text(value.bytes, n_bytes);
  }
}

// --- Listing objects, comparing attributes.

namespace {

/// Lists the objects of a file by their first paths.
class ObjectLister final : public Hdf5Visitor {
 public:
  Status group(hid_t, const std::string& path) override { return add(path, H5O_TYPE_GROUP); }
  Status dataset(hid_t, const std::string& path) override { return add(path, H5O_TYPE_DATASET); }
  Status other_object(hid_t object, const std::string& path) override {
    const bool type = H5Iget_type(object) == H5I_DATATYPE;
    return add(path, type ? H5O_TYPE_NAMED_DATATYPE : H5O_TYPE_UNKNOWN);
  }
  std::vector<CheckedObject> objects;

 private:
  Status add(const std::string& path, H5O_type_t type) {
    objects.push_back({path, type});
    return Status();
  }
};

/// Visits every hard link, with the first path of its object.
class PathLister final : public Hdf5Visitor {
 public:
  Status group(hid_t, const std::string& path) override { return again(path, path); }
  Status dataset(hid_t, const std::string& path) override { return again(path, path); }
  Status other_object(hid_t, const std::string& path) override { return again(path, path); }
  Status again(const std::string& path, const std::string& first_path) override {
    paths.emplace_back(path, first_path);
    return Status();
  }
  std::vector<std::pair<std::string, std::string>> paths;
};

herr_t note_name(hid_t, const char* name, const H5A_info_t*, void* data) {
  return called_by_hdf5([&] {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  });
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  hsize_t start = 0;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &start, note_name, &names);
  return names;
}

CheckedElements read_attribute(hid_t attribute) {
  return {Hdf5Id(H5Aget_type(attribute)), Hdf5Id(H5Aget_space(attribute)),
          [&](hid_t type, void* bytes) { return H5Aread(attribute, type, bytes); }};
}

/// True if an attribute refers only to dimension scales that the output lacks.
bool is_of_scales_left_out(const std::string& name, hid_t attribute, const CheckedSide& input,
                           const CheckedSide& output) {
  if (name != "DIMENSION_LIST" && name != "REFERENCE_LIST") return false;
  const CheckedElements values = read_attribute(attribute);
  for (std::size_t i = 0; i < values.n_elements(); ++i) {
    if (!leads_nowhere(values.type(), {values.at(i), input.file}, output.file)) return false;
  }
  return values.read();
}

/// netCDF-4 gives a dimension without a variable a NAME that ends with its length. The output's
/// dimension may have a variable.
constexpr std::string_view dimension_name = "This is a netCDF dimension but not a netCDF variable.";

/// True if two spaces have the same extents. Maximum extents, which only some writers state, are
/// ignored: attributes never grow.
bool have_same_extents(hid_t a, hid_t b) {
  const int rank = H5Sget_simple_extent_ndims(a);
  if (H5Sget_simple_extent_type(a) != H5Sget_simple_extent_type(b) || rank < 0 ||
      rank != H5Sget_simple_extent_ndims(b)) {
    return false;
  }
  std::array<hsize_t, H5S_MAX_RANK> extents_a{};
  std::array<hsize_t, H5S_MAX_RANK> extents_b{};
  H5Sget_simple_extent_dims(a, extents_a.data(), nullptr);
  H5Sget_simple_extent_dims(b, extents_b.data(), nullptr);
  return extents_a == extents_b;
}

constexpr const char* kInTheOther = " in the first input";

/// Text of the difference between two attributes of one type; empty: none.
std::string difference(const std::string& name, hid_t a, hid_t b, const CheckedSide& input,
                       const CheckedSide& output) {
  const Hdf5Id space_a(H5Aget_space(a));
  const Hdf5Id space_b(H5Aget_space(b));
  const bool back_references = name == "REFERENCE_LIST";
  if (!back_references && !have_same_extents(space_a.get(), space_b.get())) {
    return std::string("has another shape than") + kInTheOther;
  }
  const CheckedElements values_a = read_attribute(a);
  const CheckedElements values_b = read_attribute(b);
  if (!values_a.read() || !values_b.read()) return "cannot be read";
  std::vector<std::string> texts_a;
  std::vector<std::string> texts_b;
  for (std::size_t i = 0; i < values_a.n_elements() && back_references; ++i) {
    const CheckedValue value{values_a.at(i), input.file};
    if (leads_nowhere(values_a.type(), value, output.file)) continue;
    texts_a.push_back(checked_value_text(values_a.type(), value));
  }
  for (std::size_t i = 0; i < values_b.n_elements() && back_references; ++i) {
    texts_b.push_back(checked_value_text(values_b.type(), {values_b.at(i), output.file}));
  }
  if (back_references) {
    // The users of a dimension scale are listed in the order of attachment.
    std::sort(texts_a.begin(), texts_a.end());
    std::sort(texts_b.begin(), texts_b.end());
    return texts_a == texts_b ? "" : std::string("refers to other datasets than") + kInTheOther;
  }
  for (std::size_t i = 0; i < values_a.n_elements(); ++i) {
    const CheckedValue value_a{values_a.at(i), input.file};
    const CheckedValue value_b{values_b.at(i), output.file};
    if (same_value(values_a.type(), value_a, value_b)) continue;
    const std::string text_a = checked_value_text(values_a.type(), value_a);
    if (name == "NAME" && text_a.starts_with('"' + std::string(dimension_name))) continue;
    return "is " + checked_value_text(values_b.type(), value_b) + ", but " + text_a + kInTheOther;
  }
  return "";
}

}  // namespace

CheckedElements::~CheckedElements() {
  if (read_ && n_elements_ > 0 && !is_plain_type(type_.get())) {
    reclaim_variable_length(type_.get(), space_.get(), bytes_.data());
  }
}

Status CheckedPaths::learn() {
  learnt_ = true;
  PathLister lister;
  TAILRACE_TRY(walk_hdf5(file_, lister, WalkOrder::names));
  for (const auto& [path, first] : lister.paths) {
    const Hdf5Id object(H5Oopen(file_, first.c_str(), H5P_DEFAULT));
    ObjectFacts facts;
    if (!object.valid() || !get_object_facts(object.get(), facts)) {
      return hdf5_failure(Code::corrupt, "object \"" + path + "\" cannot be opened");
    }
    names_[facts.key].paths.push_back(path);
  }
  return Status();
}

std::string CheckedPaths::name_of(hid_t object) {
  if (!learnt_) failure_ = learn();
  ObjectFacts facts;
  if (!get_object_facts(object, facts)) {
    failure_ = hdf5_failure(Code::corrupt, "the target of an object reference cannot be read");
  }
  if (!failure_.ok()) return "";
  const auto found = names_.find(facts.key);
  if (found == names_.end()) return "";
  Names& names = found->second;
  for (std::size_t i = 0; other_ != nullptr && names.name.empty() && i < names.paths.size(); ++i) {
    const Hdf5Id there(H5Oopen(other_->file_, names.paths[i].c_str(), H5P_DEFAULT));
    if (there.valid()) names.name = other_->name_of(there.get());
  }
  if (names.name.empty()) names.name = names.paths.front();
  return names.name;
}

std::string CheckedPaths::of(const std::byte* reference) {
  hobj_ref_t stored{};
  std::memcpy(&stored, reference, sizeof stored);
  if (stored == 0) return "";
  const Hdf5Id object(H5Rdereference2(file_, H5P_DEFAULT, H5R_OBJECT, &stored));
  return object.valid() ? name_of(object.get()) : "";
}

Result<std::vector<CheckedObject>> list_checked_objects(hid_t file, const std::string& file_name) {
  ObjectLister lister;
  TAILRACE_TRY(walk_hdf5(file, lister, WalkOrder::names).within(file_name));
  return std::move(lister.objects);
}

Result<Hdf5Id> open_checked_file(const std::string& path) {
  // HDF5 would block on a pipe.
  const Result<std::shared_ptr<InputBytes>> regular = InputBytes::open(path);
  if (!regular.ok()) return regular.status();
  prepare_plugin_folders();
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) return hdf5_open_failure(path);
  return file;
}

void compare_attributes(const CheckedSide& input, const CheckedSide& output, const std::string& who,
                        ConcatFindings& findings) {
  const std::vector<std::string> names = attribute_names(input.object);
  for (const std::string& name : attribute_names(output.object)) {
    if (is_own_attribute(name) || std::binary_search(names.begin(), names.end(), name)) continue;
    findings.add(who + ": attribute \"" + name + "\" is not" + kInTheOther);
  }
  for (const std::string& name : names) {
    // Attributes on the encoding describe the writer's file, so inputs and output may differ.
    if (is_own_attribute(name)) continue;
    const std::string which = who + ": attribute \"" + name + "\" ";
    const Hdf5Id a(H5Aopen(input.object, name.c_str(), H5P_DEFAULT));
    if (H5Aexists(output.object, name.c_str()) <= 0) {
      // Tiles state their position; the output is the complete domain.
      if (name == "domain_decomposition" || name == "NumFilesInSet") continue;
      if (!is_of_scales_left_out(name, a.get(), input, output)) {
        findings.add(which + "is missing in the output");
      }
      continue;
    }
    const Hdf5Id b(H5Aopen(output.object, name.c_str(), H5P_DEFAULT));
    const Hdf5Id type_a(H5Aget_type(a.get()));
    const Hdf5Id type_b(H5Aget_type(b.get()));
    // HDF5 releases use different dimension types here.
    if (name != "REFERENCE_LIST" && H5Tequal(type_a.get(), type_b.get()) <= 0) {
      findings.add(which + "has another type than" + kInTheOther);
      continue;
    }
    const std::string text = difference(name, a.get(), b.get(), input, output);
    if (!text.empty()) findings.add(which + text);
  }
}

}  // namespace tailrace
