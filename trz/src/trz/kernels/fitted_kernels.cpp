// Rows of fitted interpolation: the loops of fitted_kernels.hpp, compiled once per instruction set.
//
// The loops use the compiler's vector types. Rows are often as short as one vector, and the
// compiler vectorises plain loops for longer ones only. Rows are cut into parts that stay in the
// cache.

#include "trz/kernels/fitted_kernels.hpp"

#include "trz/kernels/kernel_vectors.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

static_assert(kFittedPart <= kPart);

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr std::size_t n = kVectorBytes / sizeof(T);
};

template <class Vector, class T>
inline Vector load(const T* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <class T, std::size_t kTaps>
inline typename Lanes<T>::Vector sum_of(const T* from, const std::ptrdiff_t* tap) {
  if constexpr (kTaps == 1) {
    return load<typename Lanes<T>::Vector>(from + *tap);
  } else {
    return sum_of<T, kTaps / 2>(from, tap) + sum_of<T, kTaps / 2>(from, tap + kTaps / 2);
  }
}

/// Predict points that are odd along kAxes axes.
template <class T, std::size_t kAxes>
inline void predict_class(const FittedRow<T>& row, std::size_t begin, std::size_t n, T* p) {
  using Vector = typename Lanes<T>::Vector;
  const auto* groups = row.groups;
  for (std::size_t i = 0; i < n; i += Lanes<T>::n) {
    const std::size_t at = begin + i;
    Vector sum = sum_of<T, 2>(groups[0].here + at, groups[0].tap) * groups[0].weight;
    for (std::size_t g = 1; g < 2 * kAxes; ++g) {
      sum = sum + sum_of<T, 2>(groups[g].here + at, groups[g].tap) * groups[g].weight;
    }
    constexpr std::size_t n_squares = kAxes * (kAxes - 1) / 2;
    for (std::size_t g = 2 * kAxes; g < 2 * kAxes + n_squares; ++g) {
      sum = sum + sum_of<T, 4>(groups[g].here + at, groups[g].tap) * groups[g].weight;
    }
    if constexpr (kAxes == 3) {
      sum = sum + sum_of<T, 8>(groups[9].here + at, groups[9].tap) * groups[9].weight;
    }
    std::memcpy(p + i, &sum, sizeof sum);
  }
}

template <class T>
void predict(const FittedRow<T>& row, std::size_t begin, std::size_t n, T* p) {
  switch (row.n_groups) {
    case 2: predict_class<T, 1>(row, begin, n, p); break;
    case 5: predict_class<T, 2>(row, begin, n, p); break;
    default: predict_class<T, 3>(row, begin, n, p); break;
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

// --- magnitudes and contexts: vectors of 32-bit integers.

using Int = Lanes<std::int32_t>::Vector;
constexpr std::size_t kInts = Lanes<std::int32_t>::n;
typedef std::uint16_t Half __attribute__((vector_size(kVectorBytes / 2)));
typedef std::uint8_t Quarter __attribute__((vector_size(kVectorBytes / 4)));

inline Int least_of(Int a, std::int32_t limit) {
  const Int is_less = a < limit;
  return (a & is_less) | (limit & ~is_less);
}

inline Int magnitudes_at(const std::uint16_t* from) {
  return __builtin_convertvector(load<Half>(from), Int);
}

inline Half magnitudes_of(const std::int32_t* codes) {
  // Unsigned arithmetic represents the magnitude of the least code, too.
  using Unsigned = Lanes<std::uint32_t>::Vector;
  const Int code = load<Int>(codes);
  const auto sign = __builtin_bit_cast(Unsigned, code >> 31);
  const Unsigned magnitude = (__builtin_bit_cast(Unsigned, code) ^ sign) - sign;
  constexpr auto max = static_cast<std::uint32_t>(kMagnitudeMax);
  const auto is_less = __builtin_bit_cast(Unsigned, magnitude < max);
  return __builtin_convertvector((magnitude & is_less) | (max & ~is_less), Half);
}

void magnitudes(const std::int32_t* codes, std::size_t n, std::uint16_t* to) {
  std::size_t i = 0;
  for (; i + kInts <= n; i += kInts) {
    const Half some = magnitudes_of(codes + i);
    std::memcpy(to + i, &some, sizeof some);
  }
  if (i == n) return;
  std::int32_t rest[kInts] = {};
  for (std::size_t k = i; k < n; ++k) rest[k - i] = codes[k];
  const Half some = magnitudes_of(rest);
  for (std::size_t k = i; k < n; ++k) to[k] = some[k - i];
}

inline Int sum_of(const ContextRow::Pair& pair, std::size_t at) {
  const std::uint16_t* here = pair.here + at;
  return magnitudes_at(here) + magnitudes_at(here + pair.shift);
}

/// Sum of two rows of the same class, each with weights 1, 2, 1.
inline Int sum_before(const ContextRow& row, std::size_t at) {
  const std::uint16_t* a = row.before[0] + at;
  const std::uint16_t* b = row.before[1] + at;
  return (magnitudes_at(a) + magnitudes_at(b)) * 2 + magnitudes_at(a - 1) + magnitudes_at(b - 1) +
         magnitudes_at(a + 1) + magnitudes_at(b + 1);
}

template <std::size_t kNear, std::size_t kAslant>
inline void contexts_from(const ContextRow& row, std::size_t begin, std::size_t n,
                          std::uint8_t* to) {
  using Float = Lanes<float>::Vector;
  const bool has_before = row.before[0] != nullptr && row.before_weight != 0;
  for (std::size_t i = 0; i < n; i += kInts) {
    Int near = sum_of(row.near[0], begin + i);
    for (std::size_t k = 1; k < kNear; ++k) near += sum_of(row.near[k], begin + i);
    Int sum = near * row.near_weight + row.least;
    if constexpr (kAslant > 0) {
      Int aslant = sum_of(row.aslant[0], begin + i);
      for (std::size_t k = 1; k < kAslant; ++k) aslant += sum_of(row.aslant[k], begin + i);
      sum += aslant * row.aslant_weight;
    }
    if (has_before) sum += sum_before(row, begin + i) * row.before_weight;
    // Two contexts per octave, from 16 on: the exponent and the first bit of the mantissa.
    constexpr std::int32_t below_sixteen = 2 * (4 + 127) - 1;
    sum = least_of(sum & ~(sum >> 31), kContextSumMax);
    const Float as_float = __builtin_convertvector(sum, Float);
    Int context = (__builtin_bit_cast(Int, as_float) >> 22) - below_sixteen;
    context &= ~(context >> 31);
    const Quarter some = __builtin_convertvector(context, Quarter);
    std::memcpy(to + i, &some, sizeof some);
  }
}

template <std::size_t kNear>
inline void contexts_near(const ContextRow& row, std::size_t begin, std::size_t n,
                          std::uint8_t* to) {
  switch (row.n_aslant) {
    case 0: contexts_from<kNear, 0>(row, begin, n, to); break;
    case 2: contexts_from<kNear, 2>(row, begin, n, to); break;
    case 4: contexts_from<kNear, 4>(row, begin, n, to); break;
    default: contexts_from<kNear, 6>(row, begin, n, to); break;
  }
}

void contexts(const ContextRow& row, std::size_t begin, std::size_t n, std::uint8_t* to) {
  switch (row.n_near) {
    case 1: contexts_near<1>(row, begin, n, to); break;
    case 2: contexts_near<2>(row, begin, n, to); break;
    default: contexts_near<3>(row, begin, n, to); break;
  }
}

// --- fits: eight samples at once, in f64.

typedef double Eight __attribute__((vector_size(8 * kFitLanes)));
typedef std::int64_t EightInts __attribute__((vector_size(8 * kFitLanes)));
/// Load one value for each lane, around the points of a row.
template <class T>
inline void load_eight(const T* row, const FitPoints& points, Eight& to) {
  for (std::size_t k = 0; k < kFitLanes; ++k) to[k] = static_cast<double>(row[points.at(k)]);
}

/// All bits of a lane if |x| is below the limit, else none.
inline void keep_below(const Eight& x, double limit, EightInts& kept) {
  kept &= (x < limit) & (x > -limit);
}

/// Add samples with these shares to the sums.
template <std::size_t kUnknowns>
inline void add_products(const Eight* features, const Eight& target, const Eight& share,
                         FitSums& sums) {
  const auto add = [](double* to, const Eight& product) {
    Eight sum;
    std::memcpy(&sum, to, sizeof sum);
    sum += product;
    std::memcpy(to, &sum, sizeof sum);
  };
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    const Eight scaled = features[i] * share;
    for (std::size_t j = 0; j <= i; ++j) add(sums.product[i][j], scaled * features[j]);
    add(sums.target[i], scaled * target);
  }
}

template <class T, std::size_t kGroups>
inline void fit_class(const FittedRow<T>& row, const T* x, const FitPoints& points,
                      const GroupFit<T>& how, FitSums& sums) {
  // A value that does not take part is NaN, and so fails every comparison below.
  Eight target;
  for (std::size_t k = 0; k < kFitLanes; ++k) {
    const T value = x[2 * points.at(k)];
    const bool takes_part = k < points.n && !(how.fill != nullptr && value == *how.fill);
    target[k] = takes_part ? static_cast<double>(value) : __builtin_nan("");
  }
  Eight features[kGroups];
  Eight base = {};
  EightInts kept = ~EightInts{};
  for (std::size_t g = 0; g < kGroups; ++g) {
    const auto& group = row.groups[g];
    Eight sum = {};
    for (std::size_t k = 0; k < group.n_taps; ++k) {
      Eight tap;
      load_eight(group.here + group.tap[k], points, tap);
      sum += tap;
    }
    if (g == 0) {
      base = sum * 0.5;
      continue;
    }
    features[g - 1] = (sum - base * static_cast<double>(group.n_taps)) * how.inverse_step;
    keep_below(features[g - 1], 1e12, kept);
  }
  target = (target - base) * how.inverse_step;
  keep_below(target, 1e12, kept);
  const auto keep = [&](Eight& some) {
    some = __builtin_bit_cast(Eight, __builtin_bit_cast(EightInts, some) & kept);
  };
  keep(target);
  for (std::size_t g = 0; g + 1 < kGroups; ++g) keep(features[g]);
  Eight share = Eight{} + 1.0;
  if (how.weights != nullptr) {
    Eight error = target;
    for (std::size_t g = 0; g + 1 < kGroups; ++g) error -= how.weights[g] * features[g];
    constexpr std::int64_t without_sign = INT64_MAX;
    error = __builtin_bit_cast(Eight, __builtin_bit_cast(EightInts, error) & without_sign);
    share = 1.0 / (1.0 + error);
  }
  add_products<kGroups - 1>(features, target, share, sums);
}

template <class T>
void fit(const FittedRow<T>& row, const T* x, const FitPoints& points, const GroupFit<T>& how,
         FitSums& sums) {
  switch (row.n_groups) {
    case 2: fit_class<T, 2>(row, x, points, how, sums); break;
    case 5: fit_class<T, 5>(row, x, points, how, sums); break;
    default: fit_class<T, 10>(row, x, points, how, sums); break;
  }
}

void fit_contexts(const ContextRow& row, const std::uint16_t* own, const FitPoints& points,
                  FitSums& sums) {
  Eight features[kContextUnknowns] = {};  // Near, aslant, before, and 1.
  const auto add = [&](const std::uint16_t* from, double weight, Eight& sum) {
    Eight some;
    load_eight(from, points, some);
    sum += some * weight;
  };
  for (std::size_t k = 0; k < row.n_near; ++k) {
    add(row.near[k].here, 1, features[0]);
    add(row.near[k].here + row.near[k].shift, 1, features[0]);
  }
  for (std::size_t k = 0; k < row.n_aslant; ++k) {
    add(row.aslant[k].here, 1, features[1]);
    add(row.aslant[k].here + row.aslant[k].shift, 1, features[1]);
  }
  for (const std::uint16_t* line : row.before) {
    if (line == nullptr) continue;
    add(line - 1, 1, features[2]);
    add(line, 2, features[2]);
    add(line + 1, 1, features[2]);
  }
  features[3] = features[3] + 1.0;
  Eight target;
  load_eight(own, points, target);
  const double per_pair = 0.25 / static_cast<double>(row.n_near);
  const Eight around = 0.2 + features[0] * per_pair + features[2] * 0.0625;
  Eight share = 1.0 / (around * around);
  for (std::size_t k = points.n; k < kFitLanes; ++k) share[k] = 0;
  add_products<kContextUnknowns>(features, target, share, sums);
}

}  // namespace

extern const FittedKernels fitted_kernels_table;
const FittedKernels fitted_kernels_table = {
    {predict<float>, TRZ_ENCODES(encode<float>), decode<float>, interleave<float>,
     TRZ_ENCODES(fit<float>)},
    {predict<double>, TRZ_ENCODES(encode<double>), decode<double>, interleave<double>,
     TRZ_ENCODES(fit<double>)},
    magnitudes,
    contexts,
    interleave<std::uint16_t>,
    TRZ_ENCODES(fit_contexts)};

}  // namespace tailrace::trz::TRZ_ISA
