// Collects the catalog entries for the objects of an input HDF5 file.

#include "describe/hdf5_catalog.hpp"

#include "describe/file_properties.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/encoding_notes.hpp"
#include "describe/field_attributes.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_walk.hpp"

namespace tailrace {
namespace {

/// Start of NAME with which netCDF-4 marks a dimension without a variable.
constexpr std::string_view kDimensionWithoutVariable =
    "This is a netCDF dimension but not a netCDF variable";

/// Read the first value of a number attribute as a fill value of `dtype`.
std::optional<double> fill_attribute(hid_t dataset, const char* name, DType dtype) {
  if (H5Aexists(dataset, name) <= 0) return std::nullopt;
  const Hdf5Id attribute(H5Aopen(dataset, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  // Real fill attributes hold one value, rarely two or three. A longer attribute means something
  // else.
  if (n_values < 1 || n_values > 64) return std::nullopt;
  const std::size_t n = static_cast<std::size_t>(n_values);
  if (H5Tget_class(type.get()) == H5T_FLOAT) {
    std::vector<double> values(n);
    if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, values.data()) < 0) return std::nullopt;
    return fill_for_dtype(values[0], dtype);
  }
  if (H5Tget_class(type.get()) != H5T_INTEGER) return std::nullopt;
  if (H5Tget_sign(type.get()) == H5T_SGN_2) {
    std::vector<std::int64_t> values(n);
    if (H5Aread(attribute.get(), H5T_NATIVE_INT64, values.data()) < 0) return std::nullopt;
    return fill_for_dtype(values[0], dtype);
  }
  std::vector<std::uint64_t> values(n);
  if (H5Aread(attribute.get(), H5T_NATIVE_UINT64, values.data()) < 0) return std::nullopt;
  return fill_for_dtype(values[0], dtype);
}

/// Fill value that the dataset's creator set in HDF5, unless it is zero.
std::optional<double> hdf5_fill(const StoredDataset& field) {
  if (field.fill_value.empty()) return std::nullopt;
  const DType dtype = *field.dtype;
  std::uint64_t bits = 0;
  Bytes value = field.fill_value;
  if (field.swapped) std::reverse(value.begin(), value.end());
  std::optional<double> fill;
  if (dtype == DType::u64) {
    std::memcpy(&bits, value.data(), sizeof bits);
    fill = fill_for_dtype(bits, dtype);
  } else if (dtype == DType::i64) {
    std::memcpy(&bits, value.data(), sizeof bits);
    fill = fill_for_dtype(static_cast<std::int64_t>(bits), dtype);
  } else if (field.fill_number) {
    fill = fill_for_dtype(*field.fill_number, dtype);
  }
  return fill.value_or(0) == 0 ? std::nullopt : fill;
}

/// True if a dataset that is not a field is stored as the plain bytes of its elements, without
/// filters. Element size is limited, since a chunk holds complete elements.
bool is_plain_bytes(const StoredDataset& described) {
  constexpr std::uint64_t element_bytes_max = 1U << 20;
  return described.by_value && described.appended && !described.foreign &&
         described.element_bytes <= element_bytes_max && described.shape.size() < kMaxRank &&
         (described.storage.kind == StoredForm::Kind::contiguous ||
          (described.chunked() && described.storage.filters.empty()));
}

/// True if no element has a value: nothing was written, and HDF5 does not fill. If the dataset
/// became a field, its elements would get values.
bool has_no_values(const StoredDataset& described) {
  constexpr std::uint8_t never = 1;  // H5D_FILL_TIME_NEVER
  const bool unfilled = described.times.no_fill_value || described.times.fill == never;
  return unfilled && !described.foreign && described.stored_bytes == 0 &&
         n_elements(described.shape) > 0;
}

class CatalogVisitor final : public Hdf5Visitor {
 public:
  CatalogVisitor(hid_t file, CatalogDetail detail, OtherFiles other_files, bool skip_unreadable)
      : file_(file),
        wants_fields_(detail == CatalogDetail::fields),
        other_files_(other_files),
        skip_unreadable_(skip_unreadable),
        describer_(DatasetDescriber::Foreign::describe) {}

  Hdf5Catalog take_catalog() {
    for (const auto& [dataset, key] : types_of_datasets_) {
      const auto found = named_types_.find(key);
      if (found != named_types_.end()) catalog_.datasets[dataset].type_path = found->second;
    }
    mark_coordinates(named_coordinates_, catalog_.datasets);
    return std::move(catalog_);
  }

  Status group(hid_t group, const std::string& path) override {
    // Carrying over looks objects up by path many times, and HDF5 takes a step for each group in a
    // path.
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    if (wants_fields_ && depth > kGroupDepthMax) {
      return Status(Code::unsupported, "group \"" + path.substr(0, 60) +
                                           "...\": groups are nested more than " +
                                           std::to_string(kGroupDepthMax) + " levels deep");
    }
    if (path == "/" && wants_fields_) {
      catalog_.netcdf4 =
          H5Aexists(group, "_NCProperties") > 0 || H5Aexists(group, "_nc3_strict") > 0;
    }
    return add(group, path, Hdf5Node::Kind::group);
  }

  Status other_object(hid_t object, const std::string& path) override {
    return add(object, path,
               H5Iget_type(object) == H5I_DATATYPE ? Hdf5Node::Kind::named_type
                                                   : Hdf5Node::Kind::unknown_link);
  }

  Status again(const std::string& path, const std::string& first_path) override {
    add_node(path, Hdf5Node::Kind::duplicate).target = first_path;
    if (path.starts_with(first_path == "/" ? first_path : first_path + "/")) {
      catalog_.remarks.push_back("hard link \"" + path + "\" leads back to group \"" + first_path +
                                 "\", which contains it; the link is not followed");
    }
    return Status();
  }

  Status other_link(const std::string& path, const LinkInfo& info) override {
    Hdf5Node& node = add_node(path, Hdf5Node::Kind::unknown_link);
    if (info.type != H5L_TYPE_SOFT && info.type != H5L_TYPE_EXTERNAL) return Status();
    const Result<std::string> value = read_link_value(file_, path, info);
    if (!value.ok()) return wants_fields_ ? value.status() : Status();
    if (info.type == H5L_TYPE_SOFT) {
      node.kind = Hdf5Node::Kind::soft_link;
      node.target = value->c_str();
      return Status();
    }
    const char* target_file = nullptr;
    const char* target = nullptr;
    unsigned flags = 0;
    if (H5Lunpack_elink_val(value->data(), value->size(), &flags, &target_file, &target) < 0) {
      return wants_fields_ ? failed(path, "unpack the external link") : Status();
    }
    node.kind = Hdf5Node::Kind::external_link;
    node.target_file = target_file;
    node.target = target;
    return Status();
  }

  Status dataset(hid_t dataset, const std::string& path) override {
    TAILRACE_TRY(add(dataset, path, Hdf5Node::Kind::dataset));
    StoredDataset& described = catalog_.datasets.emplace_back();
    described.path = path;
    const Status read = describer_.describe(dataset, described);
    if (!read.ok()) {
      catalog_.datasets.pop_back();
      catalog_.nodes.pop_back();
      return unreadable(path, read);
    }
    if (described.foreign && other_files_ == OtherFiles::leave_out) {
      const bool mapped = described.storage.kind == StoredForm::Kind::nothing;
      catalog_.nodes.back().left_out = true;
      catalog_.nodes.back().virtual_mappings = mapped;
      catalog_.remarks.push_back(
          values_elsewhere_text(described) +
          (mapped ? ": only its mappings are copied; --follow-external copies the values"
                  : ": left out; --follow-external includes it"));
    } else if (wants_fields_) {
      ask_for_field(dataset, catalog_.nodes.back(), described);
    }
    return Status();
  }

  Status unreadable(const std::string& path, const Status& why) override {
    if (!skip_unreadable_ || path == "/") return why;
    // Remove the node of a group whose links cannot be listed: the group is left out completely.
    std::erase_if(catalog_.nodes, [&](const Hdf5Node& node) { return node.path == path; });
    catalog_.unreadable.push_back(why.message());
    return Status();
  }

 private:
  static Status failed(const std::string& path, const char* what) {
    return Status(Code::corrupt,
                  "object \"" + path + "\": cannot " + what + ": " + hdf5_error_text());
  }

  Hdf5Node& add_node(const std::string& path, Hdf5Node::Kind kind) {
    Hdf5Node& node = catalog_.nodes.emplace_back();
    node.path = path;
    node.kind = kind;
    return node;
  }

  Status add(hid_t object, const std::string& path, Hdf5Node::Kind kind) {
    Hdf5Node& node = add_node(path, kind);
    if (!wants_fields_) return Status();
    ObjectFacts facts;
    if (!get_object_facts(object, facts)) return failed(path, "open it");
    node.n_attributes = facts.n_attributes;
    if (node.n_attributes > 0) {
      // A single damaged attribute, or one of a later HDF5, hides those behind it.
      const Status listed = attribute_names(object, path).status();
      if (!listed.ok() && !skip_unreadable_) return listed;
      if (!listed.ok()) {
        node.n_attributes = 0;
        catalog_.unreadable.push_back(listed.message());
      }
    }
    node.has_comment = !object_comment(object).empty();
    if (kind == Hdf5Node::Kind::named_type) named_types_.emplace(facts.key, path);
    return Status();
  }

  void ask_for_field(hid_t dataset, Hdf5Node& node, StoredDataset& described) {
    const bool has_attributes = node.n_attributes > 0;
    const bool scale = has_attributes && hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
    if (scale && H5Aexists(dataset, "_Netcdf4Dimid") > 0) catalog_.netcdf4 = true;
    for (const char* name : {"coordinates", "bounds"}) {
      std::string names = has_attributes ? hdf5_text_attribute(dataset, name) : std::string();
      if (!names.empty()) {
        named_coordinates_.push_back({parent_path(node.path), std::move(names)});
      }
    }
    const bool null = !described.appended && !described.shape.empty();
    note_times(dataset, described);
    described.is_dimension = scale && is_dimension_without_variable(dataset);
    const bool number = described.plain_number && !null && !described.is_dimension;
    if (number) described.stored_bytes = H5Dget_storage_size(dataset);
    described.field = number && !has_no_values(described);
    if (described.field || is_plain_bytes(described)) {
      note_type(dataset, described);
      described.stored_bytes = H5Dget_storage_size(dataset);
      count_chunks(dataset, described);
    }
    if (!described.field) {
      described.may_be_bytes = is_plain_bytes(described) && described.stored_bytes > 0;
      return;
    }
    node.kind = Hdf5Node::Kind::field;
    described.coordinate = scale;
    for (const char* name : {kFillValueAttribute, "_FillValue", "missing_value"}) {
      if (described.missing_value || !has_attributes) break;
      described.missing_value = fill_attribute(dataset, name, *described.dtype);
      described.fill_noted = described.missing_value && name == kFillValueAttribute;
    }
    if (!described.missing_value) described.missing_value = hdf5_fill(described);
  }

  void note_type(hid_t dataset, StoredDataset& described) {
    const Hdf5Id type(H5Dget_type(dataset));
    described.named_type = H5Tcommitted(type.get()) > 0;
    ObjectFacts facts;
    if (described.named_type && get_object_facts(type.get(), facts)) {
      types_of_datasets_.emplace_back(catalog_.datasets.size() - 1, facts.key);
    }
  }

  static void note_times(hid_t dataset, StoredDataset& described) {
    const Hdf5Id list(H5Dget_create_plist(dataset));
    H5D_alloc_time_t allocation = H5D_ALLOC_TIME_DEFAULT;
    H5D_fill_time_t fill = H5D_FILL_TIME_IFSET;
    if (H5Pget_alloc_time(list.get(), &allocation) < 0 || H5Pget_fill_time(list.get(), &fill) < 0) {
      return;
    }
    H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
    H5Pfill_value_defined(list.get(), &defined);
    described.times = {static_cast<std::uint8_t>(allocation), static_cast<std::uint8_t>(fill),
                       defined == H5D_FILL_VALUE_UNDEFINED};
    described.own_attribute_form = !has_default_attribute_form(list.get());
  }

  static void count_chunks(hid_t dataset, StoredDataset& described) {
    if (!described.chunked() || described.stored_bytes == 0) return;
    const Hdf5Id space(H5Dget_space(dataset));
    hsize_t n_chunks = 0;
    if (H5Dget_num_chunks(dataset, space.get(), &n_chunks) >= 0) {
      described.n_chunks_there = n_chunks;
    }
  }

  hid_t file_;
  bool wants_fields_;
  OtherFiles other_files_;
  bool skip_unreadable_;
  DatasetDescriber describer_;
  Hdf5Catalog catalog_;
  std::vector<NamedCoordinates> named_coordinates_;
  std::unordered_map<ObjectKey, std::string> named_types_;  ///< Paths of named types.
  std::vector<std::pair<std::size_t, ObjectKey>> types_of_datasets_;
};

}  // namespace

Result<Hdf5Catalog> read_hdf5_catalog(hid_t file, CatalogDetail detail, OtherFiles other_files,
                                      bool skip_unreadable) {
  CatalogVisitor visitor(file, detail, other_files, skip_unreadable);
  TAILRACE_TRY(walk_hdf5(file, visitor));
  return visitor.take_catalog();
}

bool is_dimension_without_variable(hid_t dataset) {
  return hdf5_text_attribute(dataset, "NAME").rfind(kDimensionWithoutVariable, 0) == 0;
}

}  // namespace tailrace
