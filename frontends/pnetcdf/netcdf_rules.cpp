// See netcdf_rules.hpp.

#include "pnetcdf/netcdf_rules.hpp"

#include <pnetcdf.h>

#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace tailrace::pnetcdf {
namespace {

/// Bytes of the UTF-8 character that `text` starts with, its shortest form; 0: it is none.
std::size_t utf8_bytes(const char* text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(text[i]));
  };
  if (byte(0) < 0x80) return 1;
  const std::size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;  // a zero at the end of the text stops here, too
  }
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  const bool beyond = byte(0) == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : n;
}

}  // namespace

int check_sought_name(const char* name) {
  if (name == nullptr || *name == '\0') return NC_EBADNAME;
  return std::strlen(name) > NC_MAX_NAME ? NC_EMAXNAME : NC_NOERR;
}

int check_name(const char* name) {
  if (const int status = check_sought_name(name); status != NC_NOERR) return status;
  const auto first = static_cast<unsigned char>(name[0]);
  if (first < 0x80 && std::isalnum(first) == 0 && first != '_') return NC_EBADNAME;
  for (const char* at = name; *at != '\0';) {
    const auto byte = static_cast<unsigned char>(*at);
    const std::size_t n = utf8_bytes(at);
    if (n == 0 || byte < ' ' || byte == 0x7f || byte == '/') return NC_EBADNAME;
    at += n;
  }
  return name[std::strlen(name) - 1] == ' ' ? NC_EBADNAME : NC_NOERR;
}

namespace {

/// Whether `value` has a place in To. Fractions are cut off, but only within To's bounds; like the
/// real library's, an infinity does not fit from double into float, and a NaN no integer.
template <class To, class From>
bool fits(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
      return std::isnan(value) ||
             std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max());
    }
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // The largest 64-bit integers are no doubles, but the power of two above them is one.
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

/// Call `visit` with a value of the C++ type that holds `type`.
template <class Visit>
int with_type(ModelType type, Visit&& visit) {
  switch (type) {
    case ModelType::i8: return visit(std::int8_t{});
    case ModelType::u8: return visit(std::uint8_t{});
    case ModelType::i16: return visit(std::int16_t{});
    case ModelType::u16: return visit(std::uint16_t{});
    case ModelType::i32: return visit(std::int32_t{});
    case ModelType::u32: return visit(std::uint32_t{});
    case ModelType::i64: return visit(std::int64_t{});
    case ModelType::u64: return visit(std::uint64_t{});
    case ModelType::f32: return visit(float{});
    case ModelType::f64: return visit(double{});
    case ModelType::text_char:
    case ModelType::text:
    case ModelType::other: break;
  }
  return NC_EBADTYPE;
}

bool is_byte(ModelType type) { return type == ModelType::i8 || type == ModelType::u8; }

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

void default_fill_value(ModelType type, std::byte* value) {
  switch (type) {
    case ModelType::i8: return store<std::int8_t>(NC_FILL_BYTE, value);
    case ModelType::text_char: return store<char>(NC_FILL_CHAR, value);
    case ModelType::i16: return store<std::int16_t>(NC_FILL_SHORT, value);
    case ModelType::i32: return store<std::int32_t>(NC_FILL_INT, value);
    case ModelType::f32: return store<float>(NC_FILL_FLOAT, value);
    case ModelType::f64: return store<double>(NC_FILL_DOUBLE, value);
    case ModelType::u8: return store<std::uint8_t>(NC_FILL_UBYTE, value);
    case ModelType::u16: return store<std::uint16_t>(NC_FILL_USHORT, value);
    case ModelType::u32: return store<std::uint32_t>(NC_FILL_UINT, value);
    case ModelType::i64: return store<std::int64_t>(NC_FILL_INT64, value);
    case ModelType::u64: return store<std::uint64_t>(NC_FILL_UINT64, value);
    case ModelType::text:
    case ModelType::other: return;
  }
}

int convert_values(const std::byte* from, ModelType from_type, std::byte* to, ModelType to_type,
                   std::size_t n_values, const std::byte* fill, bool loose_bytes) {
  if (n_values == 0) return NC_NOERR;
  if (from_type == to_type || (loose_bytes && is_byte(from_type) && is_byte(to_type))) {
    std::memcpy(to, from, n_values * model_type_bytes(from_type));
    return NC_NOERR;
  }
  return with_type(from_type, [&](auto source) {
    return with_type(to_type, [&](auto target) {
      return convert_pair<decltype(source), decltype(target)>(from, to, n_values, fill);
    });
  });
}

}  // namespace tailrace::pnetcdf
