// The pointwise transform: plans, loops over blocks, and values without a y.

#include "trz/predict/pointwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "trz/base/error_bound.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kBatchBlocks = 32;
constexpr std::size_t kBatch = kBatchBlocks * kPointwiseBlock;

template <class T, class Y>
const PointwiseFunctions<T, Y>& functions(Isa isa) {
  const PointwiseKernels& kernels = pointwise_kernels(isa);
  if constexpr (std::is_same_v<T, double>) {
    return kernels.f64_f64;
  } else if constexpr (std::is_same_v<Y, double>) {
    return kernels.f32_f64;
  } else {
    return kernels.f32_f32;
  }
}

template <class T>
T round_down(double bound) {
  const auto rounded = static_cast<T>(bound);
  return static_cast<double>(rounded) > bound ? std::nextafter(rounded, T(0)) : rounded;
}

/// Replace the values marked in a batch by the previous y, and mark them as patches.
template <class Y>
void hold(const std::uint64_t* exceptions, std::size_t start, std::size_t n, Y& held, Y* y,
          PatchMap& patches) {
  for (std::size_t block = 0; block * kPointwiseBlock < n; ++block) {
    std::uint64_t left = exceptions[block];
    const std::size_t first = block * kPointwiseBlock;
    while (left != 0) {
      const auto i = first + static_cast<std::size_t>(std::countr_zero(left));
      left &= left - 1;
      if (i >= n) break;
      y[i] = i == 0 ? held : y[i - 1];
      patches.mark(start + i);
    }
  }
  held = y[n - 1];
}

/// Least index that is not an exception; n if all are.
std::size_t first_ordinary(const std::uint64_t* exceptions, std::size_t n) {
  for (std::size_t block = 0; block * kPointwiseBlock < n; ++block) {
    const auto i =
        block * kPointwiseBlock + static_cast<std::size_t>(std::countr_one(exceptions[block]));
    if (i < std::min(n, (block + 1) * kPointwiseBlock)) return i;
  }
  return n;
}

}  // namespace

std::optional<PointwisePlan> PointwisePlan::for_bound(DType dtype, double bound) {
  const bool single = dtype == DType::f32;
  if (!single && dtype != DType::f64) return std::nullopt;
  if (!(bound >= (single ? 0x1p-20 : 0x1p-26))) return std::nullopt;
  PointwisePlan plan;
  plan.work = single && bound >= 0x1p-12 ? DType::f32 : DType::f64;
  // Sum of the relative rounding errors of a magnitude. y: half an ulp of 127 or 1023, 2^-18 and
  // 2^-44, over sqrt(2). The map and its inverse: ten operations of half an ulp of 1 at most, 10 *
  // 2^-24 and 10 * 2^-53. Rounding a double to an f32 at the end: 2^-24 (1 + p).
  double rounding = 0x1p-43;
  if (plan.work == DType::f32) rounding = 0x1p-18;
  if (plan.work == DType::f64 && single) rounding = 0x1p-43 + 0x1.8p-24;
  // 1.4142135 is below the least slope even with the f32 constants, sqrt(2) - 1.6e-8.
  const double p = std::min(bound, 0.5) - rounding;
  plan.y_bound = 1.4142135 * (p + p * p * p / 3);
  plan.scale = std::sqrt((1 - p) * (1 + p));
  return plan;
}

template <class T, class Y>
void pointwise_forward(const T* values, std::size_t n, const PointwisePlan& plan, const T* fill,
                       Y* y, std::uint8_t* sign_bits, PatchMap& patches, Isa isa) {
  const PointwiseFunctions<T, Y>& f = functions<T, Y>(isa);
  PointwiseForward<T, Y> settings;
  settings.scale = static_cast<Y>(plan.scale);
  settings.fill = fill == nullptr ? std::numeric_limits<T>::quiet_NaN() : *fill;
  std::uint64_t exceptions[kBatchBlocks];
  Y held = 0;
  bool any_ordinary = false;
  for (std::size_t start = 0; start < n; start += kBatch) {
    const std::size_t n_batch = std::min(kBatch, n - start);
    const std::size_t n_whole = n_batch / kPointwiseBlock;
    const std::size_t n_rest = n_batch % kPointwiseBlock;
    bool found =
        f.forward(values + start, n_whole, settings, y + start, sign_bits + start / 8, exceptions);
    if (n_rest > 0) {
      T rest[kPointwiseBlock];
      Y rest_y[kPointwiseBlock];
      std::uint8_t rest_signs[kPointwiseBlock / 8];
      const std::size_t at = start + n_whole * kPointwiseBlock;
      std::fill(rest, rest + kPointwiseBlock, T(1));
      std::copy_n(values + at, n_rest, rest);
      found |= f.forward(rest, 1, settings, rest_y, rest_signs, exceptions + n_whole);
      std::copy_n(rest_y, n_rest, y + at);
      std::copy_n(rest_signs, pointwise_sign_bytes(n_rest), sign_bits + at / 8);
    }
    if (!any_ordinary) {
      const std::size_t first = found ? first_ordinary(exceptions, n_batch) : 0;
      any_ordinary = first < n_batch;
      if (any_ordinary) {
        held = y[start + first];
        std::fill(y, y + start, held);
      }
    }
    if (found) {
      hold(exceptions, start, n_batch, held, y + start, patches);
    } else {
      held = y[start + n_batch - 1];
    }
  }
}

template <class T, class Y>
void pointwise_inverse(const Y* y, const std::uint8_t* sign_bits, std::size_t n, T* values,
                       Isa isa) {
  const PointwiseFunctions<T, Y>& f = functions<T, Y>(isa);
  const std::size_t n_whole = n / kPointwiseBlock;
  f.inverse(y, sign_bits, n_whole, values);
  const std::size_t at = n_whole * kPointwiseBlock;
  if (at == n) return;
  Y rest[kPointwiseBlock] = {};
  T rest_values[kPointwiseBlock];
  std::uint8_t rest_signs[kPointwiseBlock / 8] = {};
  std::copy_n(y + at, n - at, rest);
  std::copy_n(sign_bits + at / 8, pointwise_sign_bytes(n - at), rest_signs);
  f.inverse(rest, rest_signs, 1, rest_values);
  std::copy_n(rest_values, n - at, values + at);
}

template <class T, class Y>
std::size_t pointwise_check(const T* values, const Y* decoded_y, const std::uint8_t* sign_bits,
                            std::size_t n, double bound, PatchMap& patches, Isa isa) {
  const PointwiseFunctions<T, Y>& f = functions<T, Y>(isa);
  // The product with a magnitude may round up by half an ulp; the kernel's bound is lowered by
  // more.
  const T bound_below = round_down<T>(bound * (1 - 4.0 * std::numeric_limits<T>::epsilon()));
  std::uint64_t exceptions[kBatchBlocks];
  std::size_t n_marked = 0;
  for (std::size_t start = 0; start < n; start += kBatch) {
    const std::size_t n_batch = std::min(kBatch, n - start);
    const std::size_t n_whole = n_batch / kPointwiseBlock;
    bool found = f.check(values + start, decoded_y + start, n_whole, bound_below, exceptions);
    if (n_batch % kPointwiseBlock > 0) {
      exceptions[n_whole] = ~std::uint64_t{0};
      found = true;
    }
    for (std::size_t block = 0; found && block * kPointwiseBlock < n_batch; ++block) {
      std::uint64_t left = exceptions[block];
      const std::size_t at = start + block * kPointwiseBlock;
      if (patches.any()) left &= ~patches.words()[at / 64];
      if (left == 0) continue;
      // Exact arithmetic for undecided values.
      const std::size_t n_block = std::min(kPointwiseBlock, n - at);
      T decoded[kPointwiseBlock];
      pointwise_inverse<T, Y>(decoded_y + at, sign_bits + at / 8, n_block, decoded, isa);
      for (std::size_t i = 0; i < n_block; ++i) {
        if (((left >> i) & 1) == 0) continue;
        const auto x = static_cast<double>(values[at + i]);
        // NaN, infinity or zero, whose sign counts: no inverse is good enough.
        const bool bad = !(std::fabs(x) <= std::numeric_limits<double>::max()) || x == 0 ||
                         exceeds_pointwise_bound(x, static_cast<double>(decoded[i]), bound);
        if (!bad) continue;
        patches.mark(at + i);
        ++n_marked;
      }
    }
  }
  return n_marked;
}

// NOLINTBEGIN(bugprone-macro-parentheses): a template argument cannot stand in parentheses.
#define TRZ_POINTWISE(T, Y)                                                                        \
  template void pointwise_forward<T, Y>(const T*, std::size_t, const PointwisePlan&, const T*, Y*, \
                                        std::uint8_t*, PatchMap&, Isa);                            \
  template void pointwise_inverse<T, Y>(const Y*, const std::uint8_t*, std::size_t, T*, Isa);      \
  template std::size_t pointwise_check<T, Y>(const T*, const Y*, const std::uint8_t*, std::size_t, \
                                             double, PatchMap&, Isa);
// NOLINTEND(bugprone-macro-parentheses)
TRZ_POINTWISE(float, float)
TRZ_POINTWISE(float, double)
TRZ_POINTWISE(double, double)
#undef TRZ_POINTWISE

}  // namespace tailrace::trz
