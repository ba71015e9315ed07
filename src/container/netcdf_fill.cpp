// netCDF's default fill values (NC_FILL_* in its user's guide).

#include "container/netcdf_fill.hpp"

#include <cstdint>
#include <cstring>

namespace tailrace {
namespace {

constexpr double kFloatingFill = 9.9692099683868690e+36;

}  // namespace

template <class T>
void FillValue::set(T value) {
  static_assert(sizeof(T) <= sizeof(element_));
  std::memcpy(element_.data(), &value, sizeof value);
  n_bytes_ = sizeof value;
}

FillValue::FillValue(const ModelVariable& variable) {
  if (!set_own(variable)) set_default(variable.type);
}

bool FillValue::set_own(const ModelVariable& variable) {
  const ModelAttribute* const own = variable.attribute("_FillValue");
  if (own == nullptr || own->type != variable.type || own->n_values != 1) return false;
  if (own->type == ModelType::text) {
    text_ = own->texts[0];
    set(text_.c_str());
    return true;
  }
  if (own->values.size() > element_.size()) return false;
  n_bytes_ = own->values.size();
  std::memcpy(element_.data(), own->values.data(), n_bytes_);
  return true;
}

void FillValue::set_default(ModelType type) {
  switch (type) {
    case ModelType::i8: return set(std::int8_t{-127});
    case ModelType::text_char: return set(char{0});
    case ModelType::i16: return set(std::int16_t{-32767});
    case ModelType::i32: return set(std::int32_t{-2147483647});
    case ModelType::f32: return set(static_cast<float>(kFloatingFill));
    case ModelType::f64: return set(kFloatingFill);
    case ModelType::u8: return set(std::uint8_t{255});
    case ModelType::u16: return set(std::uint16_t{65535});
    case ModelType::u32: return set(std::uint32_t{4294967295U});
    case ModelType::i64: return set(std::int64_t{-9223372036854775806LL});
    case ModelType::u64: return set(std::uint64_t{18446744073709551614ULL});
    case ModelType::text: return set(text_.c_str());
    case ModelType::other: return;
  }
}

}  // namespace tailrace
