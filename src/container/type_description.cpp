// Types as HDF5 has them, walked from the outside in.

#include "container/type_description.hpp"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "container/hdf5_handle.hpp"

namespace tailrace {
namespace {

using Json = nlohmann::json;
using Described = std::optional<Json>;

/// Deeper than any program nests its types; a damaged file cannot exhaust the stack.
constexpr int depth_max = 16;

Described describe(hid_t type, int depth);

std::string order_sign(hid_t type, std::size_t n_bytes) {
  if (n_bytes == 1) return "|";
  return H5Tget_order(type) == H5T_ORDER_BE ? ">" : "<";
}

std::optional<std::string> integer_name(hid_t type) {
  const std::size_t n_bytes = H5Tget_size(type);
  const bool whole = H5Tget_precision(type) == 8 * n_bytes && H5Tget_offset(type) == 0;
  if (!whole || (n_bytes != 1 && n_bytes != 2 && n_bytes != 4 && n_bytes != 8)) return std::nullopt;
  return order_sign(type, n_bytes) + (H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i") +
         std::to_string(n_bytes);
}

/// IEEE's half, single and double precision.
std::optional<std::string> float_name(hid_t type) {
  struct Format {
    std::size_t n_bytes, exponent_bits, mantissa_bits, bias;
  };
  constexpr std::array<Format, 3> formats = {{{2, 5, 10, 15}, {4, 8, 23, 127}, {8, 11, 52, 1023}}};
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  if (H5Tget_order(type) != H5T_ORDER_BE && H5Tget_order(type) != H5T_ORDER_LE) return std::nullopt;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
    return std::nullopt;
  }
  for (const Format& format : formats) {
    if (H5Tget_size(type) == format.n_bytes && sign == 8 * format.n_bytes - 1 && mantissa == 0 &&
        exponent == format.mantissa_bits && exponent_bits == format.exponent_bits &&
        mantissa_bits == format.mantissa_bits && H5Tget_ebias(type) == format.bias) {
      return order_sign(type, format.n_bytes) + "f" + std::to_string(format.n_bytes);
    }
  }
  return std::nullopt;
}

std::string member_name(hid_t type, unsigned member) {
  char* name = H5Tget_member_name(type, member);
  if (name == nullptr) return "";
  std::string copy = name;
  H5free_memory(name);
  return copy;
}

Described describe_enum(hid_t type) {
  const Hdf5Id base(H5Tget_super(type));
  const int n_members = H5Tget_nmembers(type);
  if (!base.valid() || n_members < 0) return std::nullopt;
  const std::optional<std::string> name = integer_name(base.get());
  if (!name) return std::nullopt;
  const bool is_signed = H5Tget_sign(base.get()) != H5T_SGN_NONE;
  Json values = Json::array();
  for (unsigned member = 0; member < static_cast<unsigned>(n_members); ++member) {
    std::uint64_t value = 0;  // room for the widest, as HDF5 converts it in place
    if (H5Tget_member_value(type, member, &value) < 0 ||
        H5Tconvert(base.get(), is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, 1, &value, nullptr,
                   H5P_DEFAULT) < 0) {
      return std::nullopt;
    }
    Json number = is_signed ? Json(static_cast<std::int64_t>(value)) : Json(value);
    values.push_back(Json::array({member_name(type, member), std::move(number)}));
  }
  return Json{{"kind", "enum"}, {"numpy", *name}, {"values", std::move(values)}};
}

Described describe_array(hid_t type, int depth) {
  const Hdf5Id base(H5Tget_super(type));
  const int rank = H5Tget_array_ndims(type);
  if (!base.valid() || rank < 1) return std::nullopt;
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  if (H5Tget_array_dims2(type, shape.data()) < 0) return std::nullopt;
  Described of = describe(base.get(), depth + 1);
  if (!of) return std::nullopt;
  return Json{{"kind", "array"}, {"shape", shape}, {"of", std::move(*of)}};
}

Described describe_compound(hid_t type, int depth) {
  const int n_members = H5Tget_nmembers(type);
  if (n_members < 1) return std::nullopt;
  Json members = Json::array();
  for (unsigned member = 0; member < static_cast<unsigned>(n_members); ++member) {
    const Hdf5Id member_type(H5Tget_member_type(type, member));
    if (!member_type.valid()) return std::nullopt;
    Described of = describe(member_type.get(), depth + 1);
    if (!of) return std::nullopt;
    members.push_back(Json{{"name", member_name(type, member)},
                           {"at", H5Tget_member_offset(type, member)},
                           {"of", std::move(*of)}});
  }
  return Json{{"kind", "compound"}, {"bytes", H5Tget_size(type)}, {"members", std::move(members)}};
}

Json number(const std::string& numpy) { return Json{{"kind", "number"}, {"numpy", numpy}}; }

Described describe(hid_t type, int depth) {
  if (depth > depth_max) return std::nullopt;
  std::optional<std::string> name;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: name = integer_name(type); break;
    case H5T_FLOAT: name = float_name(type); break;
    case H5T_OPAQUE:
    case H5T_BITFIELD: name = "V" + std::to_string(H5Tget_size(type)); break;
    case H5T_ENUM: return describe_enum(type);
    case H5T_ARRAY: return describe_array(type, depth);
    case H5T_COMPOUND: return describe_compound(type, depth);
    case H5T_STRING:
      if (H5Tis_variable_str(type) != 0) return std::nullopt;
      return Json{{"kind", "string"}, {"bytes", H5Tget_size(type)}};
    default: break;
  }
  if (!name) return std::nullopt;
  return number(*name);
}

}  // namespace

std::string describe_type(const Bytes& type) {
  const Hdf5Scope scope;
  const Hdf5Id decoded(H5Tdecode(type.data()));
  if (!decoded.valid()) return "";
  const Described described = describe(decoded.get(), 0);
  return described ? described->dump(-1, ' ', false, Json::error_handler_t::replace) : "";
}

}  // namespace tailrace
