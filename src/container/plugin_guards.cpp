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

/// Whether every |x| <= most; false for NaN. Counts instead of stopping at the first: a loop
/// without exits runs at memory speed.
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

/// The same for real numbers of either type; true for other types.
bool all_reals_within(DType dtype, std::span<const std::byte> values, double most) {
  if (dtype == DType::f32) return all_within(as_values<float>(values), at_most<float>(most));
  if (dtype == DType::f64) return all_within(as_values<double>(values), at_most<double>(most));
  return true;
}

}  // namespace

const char* guard_sz3(DType dtype, std::span<const std::byte> values, double) {
  const double greatest = dtype == DType::f32 ? double{std::numeric_limits<float>::max()}
                                              : std::numeric_limits<double>::max();
  return all_reals_within(dtype, values, greatest / 32)
             ? nullptr
             : "the chunk holds NaN, Inf or values near the end of the type's range, from which "
               "SZ3 3.1 may not return";
}

const char* guard_sperr(DType dtype, std::span<const std::byte> values, double absolute_bound) {
  if (absolute_bound > 0x1p59) return "SPERR crashes on bounds whose square is no finite f32";
  const double most =
      absolute_bound > 0 ? absolute_bound * 0x1p48 : std::numeric_limits<double>::max();
  return all_reals_within(dtype, values, most)
             ? nullptr
             : "the chunk holds NaN, Inf or values beyond 2^48 bounds, on which SPERR crashes";
}

}  // namespace tailrace
