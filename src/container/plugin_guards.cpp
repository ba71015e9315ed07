// Scans for values that a plug-in does not survive.

#include "container/plugin_guards.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tailrace {
namespace {

template <class T>
std::span<const T> as_values(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Counts instead of stopping at the first: a loop without exits runs at memory speed.
template <class T>
bool holds_nan(std::span<const T> values) {
  unsigned any = 0;
  for (const T x : values) any |= static_cast<unsigned>(x != x);
  return any != 0;
}

/// Whether every |x| <= most; false for NaN.
template <class T>
bool all_within(std::span<const T> values, T most) {
  unsigned any = 0;
  for (const T x : values) any |= static_cast<unsigned>(!(std::fabs(x) <= most));
  return any == 0;
}

/// The greatest finite T that is at most `value`.
template <class T>
T at_most(double value) {
  constexpr auto greatest = static_cast<double>(std::numeric_limits<T>::max());
  return static_cast<T>(std::min(value, greatest));
}

}  // namespace

const char* guard_sz3(DType dtype, std::span<const std::byte> values, double) {
  const bool has_nan = (dtype == DType::f32 && holds_nan(as_values<float>(values))) ||
                       (dtype == DType::f64 && holds_nan(as_values<double>(values)));
  return has_nan ? "the chunk holds NaN, from which SZ3 3.1 does not return" : nullptr;
}

const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound) {
  const double most =
      absolute_bound > 0 ? absolute_bound * 0x1p48 : std::numeric_limits<double>::max();
  const bool good =
      (dtype == DType::f32 && all_within(as_values<float>(values), at_most<float>(most))) ||
      (dtype == DType::f64 && all_within(as_values<double>(values), at_most<double>(most)));
  return good ? nullptr
              : "the chunk holds NaN, Inf or values beyond 2^48 bounds, on which SPERR crashes";
}

}  // namespace tailrace
