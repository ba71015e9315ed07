// Reads boxes of a netCDF classic file; its header is parsed by netcdf_classic_header.cpp.

#include "container/input_netcdf_classic.hpp"

#include <cstring>
#include <utility>

#include "container/carry_over_netcdf_classic.hpp"
#include "container/input_conventions.hpp"
#include "container/netcdf_classic_header.hpp"

namespace tailrace {
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
