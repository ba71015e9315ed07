// Fill values and coordinates by convention.

#include "describe/input_conventions.hpp"

#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include "hdf5/hdf5_paths.hpp"

namespace tailrace {
namespace {

/// The value as an integer of type T, if it is one.
template <class T>
std::optional<double> whole_in(double value) {
  // Both limits are exact doubles: T's least is 0 or a power of two, and so is its greatest plus 1.
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= least && value < end) || value != std::floor(value)) return std::nullopt;
  return value;
}

/// A double equals at most one integer up to 2^53; beyond that the integer's neighbours share it.
template <class T>
bool exact_as_double(T value) {
  constexpr T kExactMax = T{1} << 53;
  if constexpr (std::is_signed_v<T>) return value >= -kExactMax && value <= kExactMax;
  return value <= kExactMax;
}

/// The nearest float; none if that would be infinite for a finite value.
std::optional<double> as_float(double value) {
  constexpr double kFloatMax = std::numeric_limits<float>::max();
  constexpr double kRoundsToInfinity = 0x1.ffffffp127;
  if (!std::isfinite(value) || std::fabs(value) <= kFloatMax) {
    return static_cast<double>(static_cast<float>(value));
  }
  if (std::fabs(value) < kRoundsToInfinity) return std::copysign(kFloatMax, value);
  return std::nullopt;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::optional<double> fill_for_dtype(double value, DType dtype) {
  switch (dtype) {
    case DType::f32: return as_float(value);
    case DType::f64: return value;
    case DType::i8: return whole_in<std::int8_t>(value);
    case DType::i16: return whole_in<std::int16_t>(value);
    case DType::i32: return whole_in<std::int32_t>(value);
    case DType::i64: return whole_in<std::int64_t>(value);
    case DType::u8: return whole_in<std::uint8_t>(value);
    case DType::u16: return whole_in<std::uint16_t>(value);
    case DType::u32: return whole_in<std::uint32_t>(value);
    case DType::u64: return whole_in<std::uint64_t>(value);
  }
  return std::nullopt;
}

std::optional<double> fill_for_dtype(std::int64_t value, DType dtype) {
  if (!exact_as_double(value)) return std::nullopt;
  return fill_for_dtype(static_cast<double>(value), dtype);
}

std::optional<double> fill_for_dtype(std::uint64_t value, DType dtype) {
  if (!exact_as_double(value)) return std::nullopt;
  return fill_for_dtype(static_cast<double>(value), dtype);
}

void mark_coordinates(const std::vector<NamedCoordinates>& named, std::vector<InputField>& fields) {
  std::unordered_map<std::string, InputField*> by_path;
  for (InputField& field : fields) {
    by_path.emplace(field.path, &field);
    if (ends_with(field.path, "_bnds") || ends_with(field.path, "_bounds")) {
      field.coordinate = true;
    }
  }
  for (const NamedCoordinates& entry : named) {
    std::istringstream words(entry.names);
    for (std::string name; words >> name;) {
      for (std::string group = entry.group_path;; group = parent_path(group)) {
        const auto found = by_path.find(name[0] == '/' ? name : child_path(group, name));
        if (found != by_path.end()) found->second->coordinate = true;
        if (found != by_path.end() || group == "/") break;
      }
    }
  }
}

}  // namespace tailrace
