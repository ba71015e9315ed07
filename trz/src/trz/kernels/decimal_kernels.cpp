// Decimal kernels: the loops of decimal_kernels.hpp, compiled once per instruction set.
//
// Plain loops, which the compiler vectorises. A number is computed approximately in f64; the
// comparison of bits decides if it is the right one.

#include "trz/kernels/decimal_kernels.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr double kRoundWide =
    6755399441055744.0;  // 1.5 * 2^52: the sum's low bits are the integer.

template <class T>
struct Float;
template <>
struct Float<float> {
  using Bits = std::uint32_t;
  static constexpr float kRound = 12582912.0F;  // 1.5 * 2^23
};
template <>
struct Float<double> {
  using Bits = std::uint64_t;
  static constexpr double kRound = kRoundWide;
};

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// Parameters of a map as T.
template <class T>
struct Parameters {
  T scale;
  T base;
  T offset;
  explicit Parameters(const DecimalMap& map)
      : scale(static_cast<T>(map.scale)),
        base(static_cast<T>(map.base)),
        offset(static_cast<T>(map.offset)) {}
};

template <class T, DecimalKind kind>
T value_of(T number, const Parameters<T>& p) {
  const T m = number + p.base;
  const T q = kind == DecimalKind::quotient  ? m / p.scale
              : kind == DecimalKind::product ? m * p.scale
                                             : p.scale / m;
  return q + p.offset;
}

template <class T, DecimalKind kind>
bool to_numbers(const T* values, std::size_t n, const DecimalMap& map,
                std::int32_t* __restrict numbers, std::uint64_t* __restrict marks) {
  using Bits = typename Float<T>::Bits;
  const Parameters<T> p(map);
  const double offset = map.offset;
  const double factor = kind == DecimalKind::product ? 1 / map.scale : map.scale;
  const double base = map.base;
  Bits any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(values[i]) - offset;
    const double m = kind == DecimalKind::reciprocal ? factor / x : x * factor;
    const auto number = static_cast<std::int32_t>(
        static_cast<std::uint32_t>(bits_as<std::uint64_t>((m - base) + kRoundWide)));
    numbers[i] = number;
    any |= bits_as<Bits>(value_of<T, kind>(static_cast<T>(number), p)) ^ bits_as<Bits>(values[i]);
  }
  if (any == 0) return false;
  for (std::size_t begin = 0; begin < n; begin += 64) {
    const std::size_t n_here = n - begin < 64 ? n - begin : 64;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < n_here; ++i) {
      const T value = value_of<T, kind>(static_cast<T>(numbers[begin + i]), p);
      word |= static_cast<std::uint64_t>(bits_as<Bits>(value) != bits_as<Bits>(values[begin + i]))
              << i;
    }
    marks[begin / 64] = word;
  }
  return true;
}

template <class T, DecimalKind kind>
void from_numbers(const std::int32_t* numbers, std::size_t n, const DecimalMap& map,
                  T* __restrict values) {
  const Parameters<T> p(map);
  for (std::size_t i = 0; i < n; ++i) values[i] = value_of<T, kind>(static_cast<T>(numbers[i]), p);
}

template <class T, DecimalKind kind>
void from_near(const T* near, std::size_t n, const DecimalMap& map, T* values) {
  const Parameters<T> p(map);
  for (std::size_t i = 0; i < n; ++i) {
    const T number = (near[i] + Float<T>::kRound) - Float<T>::kRound;
    values[i] = value_of<T, kind>(number, p);
  }
}

template <class T>
bool to_numbers_of_any(const T* values, std::size_t n, const DecimalMap& map, std::int32_t* numbers,
                       std::uint64_t* marks) {
  switch (map.kind) {
    case DecimalKind::quotient:
      return to_numbers<T, DecimalKind::quotient>(values, n, map, numbers, marks);
    case DecimalKind::product:
      return to_numbers<T, DecimalKind::product>(values, n, map, numbers, marks);
    case DecimalKind::reciprocal: break;
  }
  return to_numbers<T, DecimalKind::reciprocal>(values, n, map, numbers, marks);
}

template <class T>
void from_numbers_of_any(const std::int32_t* numbers, std::size_t n, const DecimalMap& map,
                         T* values) {
  switch (map.kind) {
    case DecimalKind::quotient:
      from_numbers<T, DecimalKind::quotient>(numbers, n, map, values);
      return;
    case DecimalKind::product:
      from_numbers<T, DecimalKind::product>(numbers, n, map, values);
      return;
    case DecimalKind::reciprocal: break;
  }
  from_numbers<T, DecimalKind::reciprocal>(numbers, n, map, values);
}

template <class T>
void from_near_of_any(const T* near, std::size_t n, const DecimalMap& map, T* values) {
  switch (map.kind) {
    case DecimalKind::quotient: from_near<T, DecimalKind::quotient>(near, n, map, values); return;
    case DecimalKind::product: from_near<T, DecimalKind::product>(near, n, map, values); return;
    case DecimalKind::reciprocal: break;
  }
  from_near<T, DecimalKind::reciprocal>(near, n, map, values);
}

template <class T>
constexpr DecimalKernelsOf<T> kernels_of() {
  return {TRZ_ENCODES(to_numbers_of_any<T>), from_numbers_of_any<T>, from_near_of_any<T>};
}

}  // namespace

extern const DecimalKernels decimal_kernels_table;
const DecimalKernels decimal_kernels_table = {kernels_of<float>(), kernels_of<double>()};

}  // namespace tailrace::trz::TRZ_ISA
