// The element types that codecs accept: f32, f64 and the eight integer types, in native byte order.
//
// The container layer copies all other types (strings, compounds, enums, halves) verbatim; they
// never reach a codec.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trz/base/status.hpp"

namespace tailrace {

enum class DType : std::uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

/// Bytes of one element: 1, 2, 4 or 8.
constexpr std::size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8: return 1;
    case DType::i16:
    case DType::u16: return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

/// Names of the dtypes, in the order of the enum.
inline constexpr std::array<std::pair<DType, std::string_view>, 10> kDtypeNames = {{
    {DType::f32, "f32"},
    {DType::f64, "f64"},
    {DType::i8, "i8"},
    {DType::i16, "i16"},
    {DType::i32, "i32"},
    {DType::i64, "i64"},
    {DType::u8, "u8"},
    {DType::u16, "u16"},
    {DType::u32, "u32"},
    {DType::u64, "u64"},
}};

/// Name of a dtype: "f32", "i64", ...
inline std::string_view dtype_name(DType dtype) {
  return kDtypeNames[static_cast<std::size_t>(dtype)].second;
}

/// The dtype of this kind ('f', 'i' or 'u') and size; nullopt if no dtype matches.
inline std::optional<DType> find_dtype(char kind, std::size_t n_bytes) {
  for (const auto& [dtype, name] : kDtypeNames) {
    if (name[0] == kind && dtype_bytes(dtype) == n_bytes) return dtype;
  }
  return std::nullopt;
}

/// Call `visitor.template operator()<T>()`, where T is the C++ type of `dtype`.
template <class Visitor>
auto visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::f32: return visitor.template operator()<float>();
    case DType::f64: return visitor.template operator()<double>();
    case DType::i8: return visitor.template operator()<std::int8_t>();
    case DType::i16: return visitor.template operator()<std::int16_t>();
    case DType::i32: return visitor.template operator()<std::int32_t>();
    case DType::i64: return visitor.template operator()<std::int64_t>();
    case DType::u8: return visitor.template operator()<std::uint8_t>();
    case DType::u16: return visitor.template operator()<std::uint16_t>();
    case DType::u32: return visitor.template operator()<std::uint32_t>();
    case DType::u64: break;
  }
  return visitor.template operator()<std::uint64_t>();
}

/// The inverse of dtype_name. @error invalid_argument  an unknown name.
inline Result<DType> parse_dtype(std::string_view text) {
  for (const auto& [dtype, name] : kDtypeNames) {
    if (name == text) return dtype;
  }
  return Status(Code::invalid_argument, "dtype \"" + std::string(text) +
                                            "\" is unknown; expected f32, f64, i8, i16, i32, i64, "
                                            "u8, u16, u32 or u64");
}

}  // namespace tailrace
