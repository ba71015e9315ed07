// Vectors of 16 bytes over f32 and f64, for the branch-free passes of verify.cpp.
//
// Written with the compiler's vector types, so that the passes are fast at -O2 on every machine and
// give the same results everywhere: the lanes, not the optimiser, fix the order of all sums.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "trz/base/dtype.hpp"
#include "trz/base/set_number.hpp"

namespace tailrace {

template <class T>
using WordOf = std::conditional_t<
    sizeof(T) == 8, std::int64_t,
    std::conditional_t<sizeof(T) == 4, std::int32_t,
                       std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>>>;

/// Values and masks of one vector; T is float or double.
template <class T>
struct Lanes {
  // A typedef, since an alias-declaration drops the attribute if T is a template parameter.
  typedef T Values __attribute__((vector_size(16)));
  typedef WordOf<T> Mask __attribute__((vector_size(16)));
  static constexpr std::size_t count = 16 / sizeof(T);

  static Values load(const T* from) {
    Values values;
    std::memcpy(&values, from, sizeof values);
    return values;
  }
  static Values all(T value) { return value - Values{}; }
  static Mask bits(Values values) { return reinterpret_cast<Mask>(values); }
  static Values where(Mask mask, Values values) {
    return reinterpret_cast<Values>(bits(values) & mask);
  }
  static Values select(Mask mask, Values yes, Values no) {
    return reinterpret_cast<Values>((bits(yes) & mask) | (bits(no) & ~mask));
  }
  static Values magnitude(Values values) {
    return reinterpret_cast<Values>(bits(values) & std::numeric_limits<WordOf<T>>::max());
  }
  /// All ones where the value is finite and not `fill` (NaN: no fill value).
  static Mask counted(Values values, Values fill) {
    const Values most = all(std::numeric_limits<T>::max());
    return opaque(magnitude(values) <= most) & ~opaque(values == fill);
  }
  /// Hide from the compiler that the mask is the result of a comparison. gcc 12 turns bit
  /// operations on two such masks of f64 into scalar code if SSE2 has no 64-bit compare.
  static Mask opaque(Mask mask) {
#if defined(__SSE2__)
    asm("" : "+x"(mask));
#endif
    return mask;
  }
  static bool any(Mask mask) {
    std::int64_t halves[2];
    std::memcpy(halves, &mask, sizeof halves);
    return (halves[0] | halves[1]) != 0;
  }
  static std::int64_t sum(Mask mask) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < count; ++i) total += mask[i];
    return total;
  }
};

/// The fill value in the type T; nothing if it is not set, is NaN, or T cannot represent it.
template <class T>
std::optional<T> fill_as(const std::optional<double>& fill) {
  if (set_number(fill) == nullptr) return std::nullopt;
  if constexpr (std::is_integral_v<T>) {
    const double past = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const auto least = static_cast<double>(std::numeric_limits<T>::min());
    if (!(*fill >= least && *fill < past) || *fill != std::floor(*fill)) return std::nullopt;
  }
  return static_cast<T>(*fill);
}

/// Tests values for a fill value. If the fill value is not set, compares with 0: the memory of an
/// unset optional may hold a signalling NaN. See set_number().
template <class T>
class FillTest {
 public:
  explicit FillTest(const std::optional<T>& fill)
      : is_set_(fill.has_value()), value_(fill.value_or(T{})) {}
  bool operator()(T x) const { return is_set_ && x == value_; }

 private:
  bool is_set_;
  T value_;
};

}  // namespace tailrace
