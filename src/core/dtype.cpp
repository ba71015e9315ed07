// The names of the element types.

#include "core/dtype.hpp"

#include <array>
#include <string>
#include <utility>

namespace tailrace {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 10> kNames = {{
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

}  // namespace

std::string_view dtype_name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)].second; }

Result<DType> parse_dtype(std::string_view text) {
  for (const auto& [dtype, name] : kNames) {
    if (name == text) return dtype;
  }
  return Status(Code::invalid_argument, "dtype \"" + std::string(text) +
                                            "\" is unknown; expected f32, f64, i8, i16, i32, i64, "
                                            "u8, u16, u32 or u64");
}

}  // namespace tailrace
