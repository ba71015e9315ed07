// See netcdf_rules.hpp.

#include "pnetcdf/netcdf_rules.hpp"

#include <pnetcdf.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace tailrace::pnetcdf {
int check_sought_name(const char* name) {
  if (name == nullptr || *name == '\0') return NC_EBADNAME;
  return std::strlen(name) > NC_MAX_NAME ? NC_EMAXNAME : NC_NOERR;
}

int check_name(const char* name) {
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  return check_netcdf_name(name).ok() ? NC_NOERR : NC_EBADNAME;
}

namespace {

/// True if `value` fits into To. Fractions are truncated, but only within To's bounds. As in the
/// real library, an infinity does not fit from double into float, and a NaN fits no integer.
template <class To, class From>
bool fits(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
      return std::isnan(value) ||
             std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max());
    }
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // The largest 64-bit integers are not doubles, but the power of two above them is one.
    const double wide = static_cast<double>(value);
    const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
    return wide >= static_cast<double>(std::numeric_limits<To>::lowest()) &&
           (sizeof(To) == 8 ? wide < above : wide <= above - 1.0);
  } else {
    return std::in_range<To>(value);
  }
}

template <class From, class To>
int convert_pair(const std::byte* from, std::byte* to, std::size_t n_values,
                 const std::byte* fill) {
  int status = NC_NOERR;
  for (std::size_t i = 0; i < n_values; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    if (fits<To>(value)) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): NC_BYTE is a number
      const To converted = static_cast<To>(value);
      std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
    } else {
      std::memcpy(to + i * sizeof(To), fill, sizeof(To));
      status = NC_ERANGE;
    }
  }
  return status;
}

bool is_byte(ModelType type) { return type == ModelType::i8 || type == ModelType::u8; }

}  // namespace

void default_fill_value(ModelType type, std::byte* value) {
  const FillValue fill(type);
  std::memcpy(value, fill.bytes().data(), model_type_bytes(type));
}

int convert_values(const std::byte* from, ModelType from_type, std::byte* to, ModelType to_type,
                   std::size_t n_values, const std::byte* fill, bool loose_bytes) {
  if (n_values == 0) return NC_NOERR;
  if (from_type == to_type || (loose_bytes && is_byte(from_type) && is_byte(to_type))) {
    std::memcpy(to, from, n_values * model_type_bytes(from_type));
    return NC_NOERR;
  }
  const std::optional<DType> source = model_dtype(from_type);
  const std::optional<DType> target = model_dtype(to_type);
  if (!source || !target) return NC_EBADTYPE;
  return visit_dtype(*source, [&]<class From>() {
    return visit_dtype(
        *target, [&]<class To>() { return convert_pair<From, To>(from, to, n_values, fill); });
  });
}

}  // namespace tailrace::pnetcdf
