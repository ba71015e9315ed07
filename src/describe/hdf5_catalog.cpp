// What the catalogue notes of the objects of an input HDF5 file.

#include "describe/hdf5_catalog.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "describe/hdf5_walk.hpp"
#include "describe/input_conventions.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_paths.hpp"

namespace tailrace {
namespace {

/// netCDF-4 marks dimensions that have no variable by this start of the scale's name.
constexpr std::string_view kDimensionWithoutVariable =
    "This is a netCDF dimension but not a netCDF variable";

/// Registered filters that may change values; a codec's error then adds to theirs.
/// Scale-offset (6), FPZIP (32014), ZFP (32013), SZ (32017), FCIDECOMP (32018), JPEG (32019), SZ3
/// (32024), SPERR (32028), granular bit round (32022), bit round (37373), EBCC (308).
constexpr std::array<H5Z_filter_t, 11> kLossyFilters = {6,     32013, 32014, 32017, 32018, 32019,
                                                        32022, 32024, 32028, 37373, 308};

/// netCDF-4's names for the number of digits that its quantisation kept.
constexpr std::array<const char*, 3> kQuantizedAttributes = {
    "_QuantizeBitGroomNumberOfSignificantDigits", "_QuantizeBitRoundNumberOfSignificantBits",
    "_QuantizeGranularBitRoundNumberOfSignificantDigits"};

/// The dtype of a plain number type in either byte order; none for everything else.
std::optional<DType> plain_dtype(hid_t type) {
  const H5T_class_t type_class = H5Tget_class(type);
  if (type_class == H5T_FLOAT) {
    if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0) return DType::f32;
    if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0) return DType::f64;
    return std::nullopt;
  }
  if (type_class != H5T_INTEGER) return std::nullopt;
  const H5T_order_t order = H5Tget_order(type);
  const std::size_t n_bytes = H5Tget_size(type);
  // Integers with padding bits (n-bit types) are values of another type: carried over verbatim.
  if ((order != H5T_ORDER_LE && order != H5T_ORDER_BE) || H5Tget_precision(type) != 8 * n_bytes) {
    return std::nullopt;
  }
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (n_bytes) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 4: return is_signed ? DType::i32 : DType::u32;
    case 8: return is_signed ? DType::i64 : DType::u64;
    default: return std::nullopt;
  }
}

/// The first value of a number attribute as a fill value of `dtype`.
std::optional<double> fill_attribute(hid_t dataset, const char* name, DType dtype) {
  if (H5Aexists(dataset, name) <= 0) return std::nullopt;
  const Hdf5Id attribute(H5Aopen(dataset, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  // Real fill attributes hold one value, seldom two or three; anything large is something else.
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

/// A fill value that the dataset's creator set in HDF5 itself, unless it is zero.
std::optional<double> hdf5_fill(hid_t creation, DType dtype) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(creation, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED) {
    return std::nullopt;
  }
  std::optional<double> fill;
  if (is_floating(dtype)) {
    double value = 0;
    if (H5Pget_fill_value(creation, H5T_NATIVE_DOUBLE, &value) < 0) return std::nullopt;
    fill = fill_for_dtype(value, dtype);
  } else if (dtype == DType::u64) {
    std::uint64_t value = 0;
    if (H5Pget_fill_value(creation, H5T_NATIVE_UINT64, &value) < 0) return std::nullopt;
    fill = fill_for_dtype(value, dtype);
  } else {
    std::int64_t value = 0;
    if (H5Pget_fill_value(creation, H5T_NATIVE_INT64, &value) < 0) return std::nullopt;
    fill = fill_for_dtype(value, dtype);
  }
  return fill && *fill == 0 ? std::nullopt : fill;
}

/// Whether the dataset says that its values are already approximations.
bool says_lossy(hid_t dataset, hid_t creation) {
  const std::string mode = hdf5_text_attribute(dataset, "tailrace_bound_mode");
  if (!mode.empty() && mode != "none") return true;
  for (const char* name : kQuantizedAttributes) {
    if (H5Aexists(dataset, name) > 0) return true;
  }
  const int n_filters = H5Pget_nfilters(creation);
  for (int i = 0; i < n_filters; ++i) {
    unsigned flags = 0;
    std::size_t n_client_data = 0;
    unsigned config = 0;
    const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags,
                                           &n_client_data, nullptr, 0, nullptr, &config);
    if (std::find(kLossyFilters.begin(), kLossyFilters.end(), id) != kLossyFilters.end()) {
      return true;
    }
  }
  return false;
}

class CatalogVisitor final : public Hdf5Visitor {
 public:
  explicit CatalogVisitor(hid_t file) : file_(file) {}

  Hdf5Catalog take_catalog() {
    mark_coordinates(named_coordinates_, catalog_.fields);
    return std::move(catalog_);
  }

  Status group(hid_t group, const std::string& path) override {
    if (path == "/" && H5Aexists(group, "_NCProperties") > 0) catalog_.netcdf4 = true;
    if (path == "/" && H5Aexists(group, "_nc3_strict") > 0) catalog_.netcdf4 = true;
    return add(group, path, Hdf5Node::Kind::group);
  }

  Status other_object(hid_t object, const std::string& path) override {
    return add(object, path,
               H5Iget_type(object) == H5I_DATATYPE ? Hdf5Node::Kind::named_type
                                                   : Hdf5Node::Kind::unknown_link);
  }

  Status again(const std::string& path, const std::string& first_path) override {
    Hdf5Node node;
    node.kind = Hdf5Node::Kind::duplicate;
    node.path = path;
    node.target = first_path;
    catalog_.nodes.push_back(std::move(node));
    return Status();
  }

  Status other_link(const std::string& path, const LinkInfo& info) override {
    Hdf5Node node;
    node.path = path;
    node.kind = Hdf5Node::Kind::unknown_link;
    if (info.type == H5L_TYPE_SOFT || info.type == H5L_TYPE_EXTERNAL) {
      const Result<std::string> value = read_link_value(file_, path, info);
      if (!value.ok()) return value.status();
      if (info.type == H5L_TYPE_SOFT) {
        node.kind = Hdf5Node::Kind::soft_link;
        node.target = value->c_str();
      } else {
        const char* target_file = nullptr;
        const char* target = nullptr;
        unsigned flags = 0;
        if (H5Lunpack_elink_val(value->data(), value->size(), &flags, &target_file, &target) < 0) {
          return failed(path, "unpack the external link");
        }
        node.kind = Hdf5Node::Kind::external_link;
        node.target_file = target_file;
        node.target = target;
      }
    }
    catalog_.nodes.push_back(std::move(node));
    return Status();
  }

  Status dataset(hid_t dataset, const std::string& path) override {
    Hdf5Node node;
    node.path = path;
    TAILRACE_TRY(count_attributes(dataset, node));
    return add_dataset(dataset, std::move(node));
  }

 private:
  static Status failed(const std::string& path, const char* what) {
    return Status(Code::corrupt,
                  "object \"" + path + "\": cannot " + what + ": " + hdf5_error_text());
  }

  static Status count_attributes(hid_t object, Hdf5Node& node) {
    ObjectFacts facts;
    if (!get_object_facts(object, facts)) return failed(node.path, "open it");
    node.n_attributes = facts.n_attributes;
    return Status();
  }

  Status add(hid_t object, const std::string& path, Hdf5Node::Kind kind) {
    Hdf5Node node;
    node.path = path;
    node.kind = kind;
    TAILRACE_TRY(count_attributes(object, node));
    catalog_.nodes.push_back(std::move(node));
    return Status();
  }

  void note_attributes(hid_t dataset, Hdf5Node& node) {
    node.scale = hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
    if (node.scale && H5Aexists(dataset, "_Netcdf4Dimid") > 0) catalog_.netcdf4 = true;
    for (const char* name : {"coordinates", "bounds"}) {
      std::string names = hdf5_text_attribute(dataset, name);
      if (!names.empty()) {
        named_coordinates_.push_back({parent_path(node.path), std::move(names)});
      }
    }
  }

  Status add_dataset(hid_t dataset, Hdf5Node node) {
    node.kind = Hdf5Node::Kind::dataset;
    if (node.n_attributes > 0) note_attributes(dataset, node);
    const Hdf5Id type(H5Dget_type(dataset));
    const Hdf5Id space(H5Dget_space(dataset));
    const Hdf5Id creation(H5Dget_create_plist(dataset));
    if (!type.valid() || !space.valid() || !creation.valid()) {
      return failed(node.path, "read its header");
    }
    const std::optional<DType> dtype = plain_dtype(type.get());
    const bool is_field = dtype && H5Sget_simple_extent_type(space.get()) != H5S_NULL &&
                          !(node.scale && is_dimension_without_variable(dataset));
    if (is_field) {
      InputField field;
      field.path = node.path;
      field.dtype = *dtype;
      field.coordinate = node.scale;
      node.grows_to_limit = describe(dataset, space.get(), creation.get(), field);
      node.kind = Hdf5Node::Kind::field;
      node.field_index = catalog_.fields.size();
      catalog_.fields.push_back(std::move(field));
    }
    catalog_.nodes.push_back(std::move(node));
    return Status();
  }

  /// Fill in a field's facts. @returns whether a dimension could grow up to a limit.
  static bool describe(hid_t dataset, hid_t space, hid_t creation, InputField& field) {
    std::array<hsize_t, max_rank> extents = {};
    std::array<hsize_t, max_rank> limits = {};
    const int rank = H5Sget_simple_extent_dims(space, extents.data(), limits.data());
    field.shape.assign(extents.begin(), extents.begin() + std::max(rank, 0));
    field.extendable = rank > 0 && limits[0] == H5S_UNLIMITED;
    if (H5Pget_layout(creation) == H5D_CHUNKED) {
      std::array<hsize_t, max_rank> chunk = {};
      const int chunk_rank = H5Pget_chunk(creation, static_cast<int>(max_rank), chunk.data());
      field.chunk_shape.assign(chunk.begin(), chunk.begin() + std::max(chunk_rank, 0));
    }
    field.stored_bytes = H5Dget_storage_size(dataset);
    field.fill_value = fill_attribute(dataset, "_FillValue", field.dtype);
    if (!field.fill_value) field.fill_value = fill_attribute(dataset, "missing_value", field.dtype);
    if (!field.fill_value) field.fill_value = hdf5_fill(creation, field.dtype);
    field.lossy_attribute = says_lossy(dataset, creation);
    bool limited = false;
    for (std::size_t d = 0; d < field.shape.size(); ++d) {
      if (limits[d] == H5S_UNLIMITED) {
        if (d > 0) field.more_unlimited |= std::uint64_t{1} << d;
      } else {
        limited = limited || limits[d] != extents[d];
      }
    }
    return limited;
  }

  hid_t file_;
  Hdf5Catalog catalog_;
  std::vector<NamedCoordinates> named_coordinates_;
};

}  // namespace

Result<Hdf5Catalog> read_hdf5_catalog(hid_t file) {
  CatalogVisitor visitor(file);
  TAILRACE_TRY(walk_hdf5(file, visitor));
  return visitor.take_catalog();
}

std::string hdf5_text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return std::string();
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id type(H5Aget_type(attribute.get()));
  const Hdf5Id space(H5Aget_space(attribute.get()));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1) {
    return std::string();
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.get(), type.get(), &text) < 0 || text == nullptr) return std::string();
    std::string copy(text);
    reclaim_variable_length(type.get(), space.get(), &text);
    return copy;
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return std::string();
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

bool is_dimension_without_variable(hid_t dataset) {
  return hdf5_text_attribute(dataset, "NAME").rfind(kDimensionWithoutVariable, 0) == 0;
}

}  // namespace tailrace
