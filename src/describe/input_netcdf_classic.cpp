// A netCDF classic file as an InputFile: boxes of its variables, and the rest carried into HDF5.

#include "describe/input_netcdf_classic.hpp"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/buffer.hpp"
#include "describe/hdf5_copy.hpp"
#include "describe/input_conventions.hpp"
#include "describe/netcdf_classic_header.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {

// --- netCDF's classic model in HDF5: dimensions as scales, char variables, attributes.
//
// The conventions are those of the netCDF-4 library, so that it, xarray and ncdump show the output
// with the dimensions, variables, attributes and order of the input:
// a dimension is a scale dataset; it is the coordinate variable where there is one, else a dataset
// without values whose NAME says so. _Netcdf4Dimid keeps the order of dimensions;
// _Netcdf4Coordinates keeps the dimensions of a scale that has several (scales have no scales).
// Source: the netCDF-4 file format specification ("dimension scales", "dimension ordering").

namespace {

using Lines = std::vector<std::string>;

/// Char values are copied in pieces of about this size.
constexpr std::uint64_t kClassicPieceBytes = 4U << 20;
/// Chunks of growing char variables; HDF5's own default cache holds one.
constexpr std::uint64_t kChunkBytes = 1U << 20;

/// Attribute names that netCDF-4 and HDF5's dimension scales keep for themselves.
constexpr std::array<const char*, 8> kReservedNames = {
    "CLASS",         "NAME",        "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates",
    "_Netcdf4Dimid", "_nc3_strict", "_NCProperties"};

hid_t number_type(NetcdfType type) {
  switch (type) {
    case NetcdfType::char_: return H5T_C_S1;
    case NetcdfType::byte_: return H5T_NATIVE_INT8;
    case NetcdfType::short_: return H5T_NATIVE_INT16;
    case NetcdfType::int_: return H5T_NATIVE_INT32;
    case NetcdfType::float_: return H5T_NATIVE_FLOAT;
    case NetcdfType::double_: return H5T_NATIVE_DOUBLE;
    case NetcdfType::ubyte: return H5T_NATIVE_UINT8;
    case NetcdfType::ushort: return H5T_NATIVE_UINT16;
    case NetcdfType::uint: return H5T_NATIVE_UINT32;
    case NetcdfType::int64: return H5T_NATIVE_INT64;
    case NetcdfType::uint64: return H5T_NATIVE_UINT64;
  }
  return H5I_INVALID_HID;
}

/// Dataset creation properties whose attributes keep their order, as netCDF-4 wants them.
Hdf5Id ordered_creation() {
  Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return creation;
}

/// Create a dataset; the first dimension is unlimited if `grows`.
Hdf5Id create_dataset(hid_t output, const std::string& path, hid_t type, const Shape& shape,
                      bool grows) {
  const Hdf5Id creation = ordered_creation();
  std::vector<hsize_t> extents(shape.begin(), shape.end());
  std::vector<hsize_t> limits = extents;
  if (grows) {
    limits[0] = H5S_UNLIMITED;
    // The slowest dimension is cut first, then the next, until a chunk is small enough.
    std::vector<hsize_t> chunk = extents;
    chunk[0] = std::max<hsize_t>(chunk[0], 1);
    for (std::size_t d = 0; d < chunk.size(); ++d) {
      std::uint64_t rest_bytes = H5Tget_size(type);
      for (std::size_t e = d + 1; e < chunk.size(); ++e) rest_bytes *= chunk[e];
      chunk[d] =
          std::clamp<hsize_t>(kChunkBytes / std::max<std::uint64_t>(rest_bytes, 1), 1, chunk[d]);
    }
    H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
  }
  const Hdf5Id space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(extents.size()),
                                                      extents.data(), limits.data()));
  const Hdf5Id links = utf8_link_properties();
  return Hdf5Id(H5Dcreate2(output, path.c_str(), type, space.get(), links.get(), creation.get(),
                           H5P_DEFAULT));
}

/// netCDF-4's type of char values: strings of length 1.
Hdf5Id char_type(std::size_t n_bytes) {
  Hdf5Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), n_bytes);
  H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
  return type;
}

Status copy_char_variable(const InputBytes& input, const NetcdfVariable& variable,
                          const std::string& path, hid_t output) {
  const std::string what = "char variable \"" + variable.name + "\"";
  const Shape& shape = variable.array.shape;
  const Hdf5Id type = char_type(1);
  const Hdf5Id dataset = create_dataset(output, path, type.get(), shape, variable.record);
  if (!dataset.valid()) return hdf5_failure(Code::internal, what);
  Box box = whole_box(shape);
  if (box.empty()) return Status();
  const std::uint64_t n_entries = shape.empty() ? 1 : shape[0];
  const std::uint64_t entry_bytes = box.n_elements() / n_entries;
  const std::uint64_t n_per_piece = std::max<std::uint64_t>(1, kClassicPieceBytes / entry_bytes);
  Buffer values(std::min(n_per_piece, n_entries) * entry_bytes);
  if (!values.allocated()) return Status(Code::out_of_memory, what + ": no memory to copy it");
  const Hdf5Id space(H5Dget_space(dataset.get()));
  for (std::uint64_t done = 0; done < n_entries; done += n_per_piece) {
    if (!shape.empty()) {
      box.start[0] = done;
      box.count[0] = std::min(n_per_piece, n_entries - done);
      const std::vector<hsize_t> start(box.start.begin(), box.start.end());
      const std::vector<hsize_t> count(box.count.begin(), box.count.end());
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
    }
    const hsize_t n_bytes = box.n_elements();
    TAILRACE_TRY(
        read_strided_box(input, variable.array, box, values.bytes().first(n_bytes)).within(what));
    const Hdf5Id piece(H5Screate_simple(1, &n_bytes, nullptr));
    if (H5Dwrite(dataset.get(), type.get(), piece.get(), space.get(), H5P_DEFAULT, values.data()) <
        0) {
      return hdf5_failure(Code::io_error, what);
    }
  }
  return Status();
}

void write_attribute(hid_t object, const std::string& owner, const NetcdfAttribute& attribute,
                     Lines& lines) {
  const std::string what = "attribute \"" + attribute.name + "\" of \"" + owner + "\"";
  const bool reserved = std::any_of(kReservedNames.begin(), kReservedNames.end(),
                                    [&](const char* name) { return attribute.name == name; });
  if (reserved) {
    lines.push_back(what + " has a name that netCDF-4 keeps for itself: not carried over");
    return;
  }
  if (H5Aexists(object, attribute.name.c_str()) > 0) return;
  const bool text = attribute.type == NetcdfType::char_;
  const Hdf5Id text_type =
      text ? char_type(std::max<std::size_t>(1, attribute.values.size())) : Hdf5Id();
  const hid_t type = text ? text_type.get() : number_type(attribute.type);
  const hsize_t n_values = attribute.n_values;
  // netCDF-4 writes texts as scalars, numbers as lists, and nothing as a null space.
  const Hdf5Id space(n_values == 0 ? H5Screate(H5S_NULL)
                     : text        ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(1, &n_values, nullptr));
  const Hdf5Id properties(H5Pcreate(H5P_ATTRIBUTE_CREATE));
  H5Pset_char_encoding(properties.get(), H5T_CSET_UTF8);
  const Hdf5Id made(
      H5Acreate2(object, attribute.name.c_str(), type, space.get(), properties.get(), H5P_DEFAULT));
  if (!made.valid() || (n_values > 0 && H5Awrite(made.get(), type, attribute.values.data()) < 0)) {
    lines.push_back(what + " cannot be written: " + hdf5_error_text());
  }
}

/// Whether the variable is the coordinate variable of its first dimension.
bool is_scale(const NetcdfHeader& header, const NetcdfVariable& variable) {
  return !variable.dimensions.empty() &&
         header.dimensions[variable.dimensions[0]].name == variable.name;
}

/// Make the scale dataset of one dimension: its coordinate variable, or a dataset without values.
Status make_scale(const NetcdfHeader& header, std::size_t dimension_index, hid_t output) {
  const NetcdfDimension& dimension = header.dimensions[dimension_index];
  const std::string path = "/" + dimension.name;
  const auto found = std::find_if(
      header.variables.begin(), header.variables.end(), [&](const NetcdfVariable& variable) {
        return variable.name == dimension.name && is_scale(header, variable);
      });
  const bool has_variable = found != header.variables.end() && link_exists(output, path);
  Hdf5Id dataset;
  std::string name = dimension.name;
  if (has_variable) {
    dataset = Hdf5Id(H5Dopen2(output, path.c_str(), H5P_DEFAULT));
  } else {
    dataset = create_dataset(output, path, H5T_IEEE_F32BE, {dimension.length}, dimension.record);
    std::array<char, 96> text = {};
    std::snprintf(text.data(), text.size(),
                  "This is a netCDF dimension but not a netCDF variable.%10llu",
                  static_cast<unsigned long long>(dimension.length));
    name = text.data();
  }
  if (!dataset.valid() || H5DSset_scale(dataset.get(), name.c_str()) < 0) {
    return hdf5_failure(Code::internal, "dimension \"" + dimension.name + "\"");
  }
  if (has_variable && found->dimensions.size() > 1) {
    const std::vector<int> ids(found->dimensions.begin(), found->dimensions.end());
    TAILRACE_TRY(write_own_numbers(dataset.get(), "_Netcdf4Coordinates", ids, false));
  }
  return write_own_numbers(dataset.get(), "_Netcdf4Dimid", {static_cast<int>(dimension_index)},
                           true);
}

}  // namespace

std::string netcdf4_variable_path(const NetcdfHeader& header, const NetcdfVariable& variable) {
  const bool names_dimension = std::any_of(
      header.dimensions.begin(), header.dimensions.end(),
      [&](const NetcdfDimension& dimension) { return dimension.name == variable.name; });
  if (names_dimension && !is_scale(header, variable)) return "/_nc4_non_coord_" + variable.name;
  return "/" + variable.name;
}

Result<Lines> carry_over_netcdf_objects(const InputBytes& input, const NetcdfHeader& header,
                                        Hdf5File& output) {
  const Hdf5Scope scope;
  const hid_t out = output.hdf5_id();
  for (const NetcdfVariable& variable : header.variables) {
    if (variable.type != NetcdfType::char_) continue;
    TAILRACE_TRY(copy_char_variable(input, variable, netcdf4_variable_path(header, variable), out));
  }
  return Lines();
}

Result<Lines> carry_over_netcdf_attributes(const NetcdfHeader& header, Hdf5File& output) {
  const Hdf5Scope scope;
  const hid_t out = output.hdf5_id();
  Lines lines;
  for (std::size_t i = 0; i < header.dimensions.size(); ++i) {
    TAILRACE_TRY(make_scale(header, i, out));
  }
  const Hdf5Id root(H5Gopen2(out, "/", H5P_DEFAULT));
  for (const NetcdfAttribute& attribute : header.attributes) {
    write_attribute(root.get(), "/", attribute, lines);
  }
  std::vector<std::string> names;
  for (const NetcdfVariable& variable : header.variables) {
    const std::string path = netcdf4_variable_path(header, variable);
    if (!link_exists(out, path)) continue;
    names.push_back(path.substr(1));
    const Hdf5Id dataset(H5Dopen2(out, path.c_str(), H5P_DEFAULT));
    for (const NetcdfAttribute& attribute : variable.attributes) {
      write_attribute(dataset.get(), variable.name, attribute, lines);
    }
    if (is_scale(header, variable)) continue;
    for (std::size_t d = 0; d < variable.dimensions.size(); ++d) {
      const std::string scale = "/" + header.dimensions[variable.dimensions[d]].name;
      TAILRACE_TRY(attach_scale(out, path, scale, static_cast<unsigned>(d)));
    }
  }
  TAILRACE_TRY(order_links(out, "/", names));
  return lines;
}

// --- Reads boxes of a netCDF classic file; its header is parsed by netcdf_classic_header.cpp.

namespace {

template <class T>
T first_value(const NetcdfAttribute& attribute) {
  T value;
  std::memcpy(&value, attribute.values.data(), sizeof(T));
  return value;
}

/// The first value of a number attribute as a fill value of `dtype`.
std::optional<double> fill_attribute(const NetcdfVariable& variable, const char* name,
                                     DType dtype) {
  const NetcdfAttribute* const attribute = variable.attribute(name);
  if (attribute == nullptr || attribute->n_values == 0) return std::nullopt;
  switch (attribute->type) {
    case NetcdfType::char_: return std::nullopt;
    case NetcdfType::float_: return fill_for_dtype(double{first_value<float>(*attribute)}, dtype);
    case NetcdfType::double_: return fill_for_dtype(first_value<double>(*attribute), dtype);
    case NetcdfType::byte_:
      return fill_for_dtype(std::int64_t{first_value<std::int8_t>(*attribute)}, dtype);
    case NetcdfType::short_:
      return fill_for_dtype(std::int64_t{first_value<std::int16_t>(*attribute)}, dtype);
    case NetcdfType::int_:
      return fill_for_dtype(std::int64_t{first_value<std::int32_t>(*attribute)}, dtype);
    case NetcdfType::int64: return fill_for_dtype(first_value<std::int64_t>(*attribute), dtype);
    case NetcdfType::ubyte:
      return fill_for_dtype(std::uint64_t{first_value<std::uint8_t>(*attribute)}, dtype);
    case NetcdfType::ushort:
      return fill_for_dtype(std::uint64_t{first_value<std::uint16_t>(*attribute)}, dtype);
    case NetcdfType::uint:
      return fill_for_dtype(std::uint64_t{first_value<std::uint32_t>(*attribute)}, dtype);
    case NetcdfType::uint64: return fill_for_dtype(first_value<std::uint64_t>(*attribute), dtype);
  }
  return std::nullopt;
}

/// What the netCDF library puts where nothing has been written (NC_FILL_FLOAT, ...), and readers
/// take for missing. Bytes have no such value, and those of 64-bit integers are no exact doubles.
std::optional<double> default_fill(NetcdfType type) {
  switch (type) {
    case NetcdfType::short_: return -32767;
    case NetcdfType::int_: return -2147483647;
    case NetcdfType::float_:
    case NetcdfType::double_: return 0x1.ep+122;  // 9.9692099683868690e+36
    case NetcdfType::ushort: return 65535;
    case NetcdfType::uint: return 4294967295.0;
    default: return std::nullopt;
  }
}

std::string text_of(const NetcdfAttribute* attribute) {
  if (attribute == nullptr || attribute->type != NetcdfType::char_) return std::string();
  const auto* const text = reinterpret_cast<const char*>(attribute->values.data());
  return std::string(text, attribute->values.size());
}

class NetcdfClassicInput final : public InputFile {
 public:
  NetcdfClassicInput(std::shared_ptr<InputBytes> bytes, NetcdfHeader header)
      : bytes_(std::move(bytes)), header_(std::move(header)) {
    std::vector<NamedCoordinates> named;
    for (std::size_t i = 0; i < header_.variables.size(); ++i) {
      const NetcdfVariable& variable = header_.variables[i];
      for (const char* name : {"coordinates", "bounds"}) {
        std::string names = text_of(variable.attribute(name));
        if (!names.empty()) named.push_back({"/", std::move(names)});
      }
      if (variable.type == NetcdfType::char_) continue;
      fields_.push_back(describe(variable));
      variable_of_field_.push_back(i);
    }
    mark_coordinates(named, fields_);
  }

  const std::string& format() const override { return format_; }
  const std::vector<InputField>& fields() const override { return fields_; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index >= fields_.size()) {
      return Status(Code::invalid_argument, bytes_->path() + ": there is no field " +
                                                std::to_string(field_index) + " of " +
                                                std::to_string(fields_.size()));
    }
    const NetcdfVariable& variable = header_.variables[variable_of_field_[field_index]];
    return read_strided_box(*bytes_, variable.array, box, values)
        .within("field \"" + fields_[field_index].path + "\"");
  }

  Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) override {
    return carry_over_netcdf_objects(*bytes_, header_, output);
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output) override {
    return carry_over_netcdf_attributes(header_, output);
  }

 private:
  InputField describe(const NetcdfVariable& variable) const {
    InputField field;
    field.path = netcdf4_variable_path(header_, variable);
    field.dtype = *netcdf_dtype(variable.type);
    field.shape = variable.array.shape;
    field.fill_value = fill_attribute(variable, "_FillValue", field.dtype);
    if (!field.fill_value)
      field.fill_value = fill_attribute(variable, "missing_value", field.dtype);
    if (!field.fill_value) field.fill_value = default_fill(variable.type);
    field.coordinate = variable.dimensions.size() == 1 &&
                       header_.dimensions[variable.dimensions[0]].name == variable.name;
    field.extendable = variable.record;
    field.stored_bytes = n_elements(field.shape) * variable.array.element_bytes;
    return field;
  }

  std::string format_ = "netCDF classic";
  std::shared_ptr<InputBytes> bytes_;
  NetcdfHeader header_;
  std::vector<InputField> fields_;
  std::vector<std::size_t> variable_of_field_;
};

}  // namespace

Result<std::unique_ptr<InputFile>> open_netcdf_classic_input(std::shared_ptr<InputBytes> bytes) {
  Result<NetcdfHeader> header = read_netcdf_header(*bytes);
  if (!header.ok()) return header.status();
  return std::unique_ptr<InputFile>(
      std::make_unique<NetcdfClassicInput>(std::move(bytes), std::move(header).value()));
}

}  // namespace tailrace
