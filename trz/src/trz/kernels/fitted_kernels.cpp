// Rows of fitted interpolation: the loops of fitted_kernels.hpp, compiled once per instruction set.
//
// The loops are plain C++ that the compiler vectorises. Rows are cut into parts that stay in the
// cache, so that a group costs only its loads and one addition.

#include "trz/kernels/fitted_kernels.hpp"

#include "trz/kernels/kernel_vectors.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

static_assert(kFittedPart <= kPart);

template <class T, std::size_t kTaps>
inline T sum_of(const T* const* tap, std::size_t i) {
  if constexpr (kTaps == 1) {
    return tap[0][i];
  } else {
    return sum_of<T, kTaps / 2>(tap, i) + sum_of<T, kTaps / 2>(tap + kTaps / 2, i);
  }
}

template <class T, std::size_t kTaps>
inline void add_group(const typename FittedRow<T>::Group& group, std::size_t begin, std::size_t n,
                      bool first, T* __restrict p) {
  const T* tap[kTaps];
  for (std::size_t k = 0; k < kTaps; ++k) tap[k] = group.tap[k] + begin;
  const T weight = group.weight;
  if (first) {
    for (std::size_t i = 0; i < n; ++i) p[i] = sum_of<T, kTaps>(tap, i) * weight;
  } else {
    for (std::size_t i = 0; i < n; ++i) p[i] = p[i] + sum_of<T, kTaps>(tap, i) * weight;
  }
}

template <class T>
void predict(const FittedRow<T>& row, std::size_t begin, std::size_t n, T* p) {
  for (std::size_t g = 0; g < row.n_groups; ++g) {
    switch (row.groups[g].n_taps) {
      case 2: add_group<T, 2>(row.groups[g], begin, n, g == 0, p); break;
      case 4: add_group<T, 4>(row.groups[g], begin, n, g == 0, p); break;
      default: add_group<T, 8>(row.groups[g], begin, n, g == 0, p); break;
    }
  }
}

template <class T>
void encode(const T* x, const T* p, std::size_t n, const Lattice<T>& lattice, const T* fill,
            std::int32_t* codes, T* recon, std::uint8_t* failed) {
  quantise_carefully<T, 2>(x, p, n, lattice, fill, codes, recon, failed);
}

template <class T>
void decode(const T* __restrict p, const std::int32_t* __restrict codes, std::size_t n, T step,
            T* __restrict recon) {
  for (std::size_t i = 0; i < n; ++i) recon[i] = p[i] + static_cast<T>(codes[i]) * step;
}

template <class T>
void interleave(const T* __restrict even, std::size_t n_even, const T* __restrict odd,
                std::size_t n_odd, T* __restrict to) {
  for (std::size_t i = 0; i < n_odd; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
  if (n_even > n_odd) to[2 * n_odd] = even[n_odd];
}

void magnitudes(const std::int32_t* __restrict codes, std::size_t n, std::uint16_t* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) {
    // Unsigned arithmetic represents the magnitude of the least code, too.
    const auto code = static_cast<std::uint32_t>(codes[i]);
    const std::uint32_t magnitude = codes[i] < 0 ? 0U - code : code;
    constexpr auto max = static_cast<std::uint32_t>(kMagnitudeMax);
    to[i] = static_cast<std::uint16_t>(magnitude < max ? magnitude : max);
  }
}

/// Add weight times the sum of all pairs to sum[i].
template <std::size_t kPairs>
inline void add_pairs(const std::uint16_t* const (*pairs)[2], std::size_t begin, std::size_t n,
                      std::int32_t weight, std::int32_t* __restrict sum) {
  const std::uint16_t* a[kPairs];
  const std::uint16_t* b[kPairs];
  for (std::size_t k = 0; k < kPairs; ++k) {
    a[k] = pairs[k][0] + begin;
    b[k] = pairs[k][1] + begin;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t together = 0;
    for (std::size_t k = 0; k < kPairs; ++k) together += std::int32_t{a[k][i]} + b[k][i];
    sum[i] += together * weight;
  }
}

void contexts(const ContextRow& row, std::size_t begin, std::size_t n,
              std::uint8_t* __restrict to) {
  std::int32_t sums[kFittedPart];
  std::int32_t* __restrict sum = sums;
  for (std::size_t i = 0; i < n; ++i) sum[i] = row.least;
  switch (row.n_near) {
    case 1: add_pairs<1>(row.near, begin, n, row.near_weight, sum); break;
    case 2: add_pairs<2>(row.near, begin, n, row.near_weight, sum); break;
    default: add_pairs<3>(row.near, begin, n, row.near_weight, sum); break;
  }
  switch (row.n_aslant) {
    case 0: break;
    case 2: add_pairs<2>(row.aslant, begin, n, row.aslant_weight, sum); break;
    case 4: add_pairs<4>(row.aslant, begin, n, row.aslant_weight, sum); break;
    default: add_pairs<6>(row.aslant, begin, n, row.aslant_weight, sum); break;
  }
  if (row.before[0] != nullptr && row.before_weight != 0) {
    const std::uint16_t* a = row.before[0] + begin;
    const std::uint16_t* b = row.before[1] + begin;
    const std::int32_t weight = row.before_weight;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t here = 2 * (std::int32_t{a[i]} + b[i]);
      const std::int32_t left = std::int32_t{(a - 1)[i]} + (b - 1)[i];
      const std::int32_t right = std::int32_t{a[i + 1]} + b[i + 1];
      sum[i] += (here + left + right) * weight;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    // Two contexts per octave, from 16 on: the exponent and the first bit of the mantissa.
    constexpr std::int32_t below_sixteen = 2 * (4 + 127) - 1;
    std::int32_t s = sum[i] < kContextSumMax ? sum[i] : kContextSumMax;
    s = s > 0 ? s : 0;
    const auto bits = __builtin_bit_cast(std::int32_t, static_cast<float>(s));
    const std::int32_t context = (bits >> 22) - below_sixteen;
    to[i] = static_cast<std::uint8_t>(context > 0 ? context : 0);
  }
}

}  // namespace

extern const FittedKernels fitted_kernels_table;
const FittedKernels fitted_kernels_table = {
    {predict<float>, TRZ_ENCODES(encode<float>), decode<float>, interleave<float>},
    {predict<double>, TRZ_ENCODES(encode<double>), decode<double>, interleave<double>},
    magnitudes,
    contexts,
    interleave<std::uint16_t>};

}  // namespace tailrace::trz::TRZ_ISA
