// Random chunks for the codec trz: the values, and the check of decoded values.
//
// Calls no mathematical function of the C library, since results may differ between machines.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/trz_cases.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace::trz_cases {
namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// One period of a sine-like function: parabolas, from -1 to 1.
double wave(double turns) {
  const double t = turns - std::floor(turns);
  return t < 0.5 ? 16 * t * (0.5 - t) : -16 * (t - 0.5) * (1 - t);
}

/// Generates the floating-point values of one chunk.
template <class T>
class FloatMaker {
 public:
  FloatMaker(const Case& chunk, Random& random, T* values)
      : chunk_(chunk), random_(random), values_(values), n_(chunk.n_values()) {
    const double bound = chunk.type.bound;
    const bool absolute = chunk.type.kind == trz::BoundKind::absolute;
    const auto greatest = static_cast<double>(std::numeric_limits<T>::max());
    bound_ = absolute && bound > 0 && bound < greatest ? bound : 1.0;
    // Between a range that two codes cover and one that exceeds 32-bit codes.
    amplitude_ =
        std::min(bound_ * std::ldexp(1.0, static_cast<int>(random.below(26))), greatest / 64);
  }

  void make(Data data) {
    switch (data) {
      case Data::smooth: smooth(0, n_, 0); break;
      case Data::rough: smooth(0, n_, 4 * bound_); break;
      case Data::walk: walk(); break;
      case Data::noise: each([&] { return amplitude_ * (2 * random_.unit() - 1); }); break;
      case Data::constant: std::fill_n(values_, n_, static_cast<T>(amplitude_ / 3)); break;
      case Data::nearly: nearly(); break;
      case Data::ties: ties(); break;
      case Data::offset: offset(); break;
      case Data::masked: masked(); break;
      case Data::specials: specials(); break;
      case Data::random_bits: random_bits(); break;
      case Data::huge: huge(); break;
      case Data::denormals: denormals(); break;
      case Data::decades: decades(); break;
      case Data::repeated: repeated(); break;
      case Data::decimals: decimals(); break;
      case Data::mixture: mixture(); break;
      case Data::n_kinds: break;
    }
  }

 private:
  template <class Source>
  void each(Source source) {
    for (std::size_t i = 0; i < n_; ++i) values_[i] = static_cast<T>(source());
  }

  /// Fill with waves along the fastest axis and along rows, plus noise of the given amplitude.
  void smooth(std::size_t begin, std::size_t end, double noise) {
    if (begin == end) return;  // An extent may be 0.
    const Shape& shape = chunk_.type.shape;
    const std::size_t row = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
    const std::size_t plane =
        shape.size() < 2 ? row : row * static_cast<std::size_t>(shape[shape.size() - 2]);
    const double along_x = random_.unit() * 0.1;
    const double along_y = random_.unit() * 0.1;
    const double along_z = random_.unit() * 0.1;
    double of_row = 0;
    std::size_t x = begin % row;
    for (std::size_t i = begin; i < end; ++i, x = x + 1 == row ? 0 : x + 1) {
      if (x == 0 || i == begin) {
        of_row = wave(static_cast<double>(i % plane / row) * along_y) +
                 wave(static_cast<double>(i / plane) * along_z);
      }
      const double value = amplitude_ * (of_row + wave(static_cast<double>(x) * along_x + of_row));
      values_[i] = static_cast<T>(noise > 0 ? value + noise * (2 * random_.unit() - 1) : value);
    }
  }

  void walk() {
    double at = 0;
    const double step = amplitude_ / 64;
    each([&] { return at += step * (2 * random_.unit() - 1); });
  }

  void nearly() {
    std::fill_n(values_, n_, static_cast<T>(amplitude_ / 3));
    for (std::uint64_t k = 1 + random_.below(4); n_ > 0 && k > 0; --k) {
      values_[random_.below(n_)] = static_cast<T>(amplitude_ * (random_.unit() - 0.5));
    }
  }

  void ties() {
    const std::uint64_t reach = 1 + random_.below(2000);
    each([&] { return bound_ * (2 * static_cast<double>(random_.below(reach)) + 1); });
  }

  void offset() {
    const double base = bound_ * std::ldexp(1.0, std::numeric_limits<T>::digits - 3 +
                                                     static_cast<int>(random_.below(6)));
    if (base > static_cast<double>(std::numeric_limits<T>::max()) / 2) return smooth(0, n_, 0);
    each([&] { return base + 16 * bound_ * random_.unit(); });
  }

  void masked() {
    smooth(0, n_, random_.chance(0.5) ? 0 : bound_);
    const auto fill = static_cast<T>(chunk_.type.fill_value.value_or(-1e34));
    const std::size_t run = 1 + random_.below(100);
    for (std::size_t i = random_.below(run + 1); i < n_; i += 2 * run) {
      std::fill(values_ + i, values_ + std::min(i + random_.below(run) + 1, n_), fill);
    }
  }

  T special() {
    using Bits = BitsOf<T>;
    constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    const auto bits = static_cast<Bits>(random_.next());
    switch (random_.below(8)) {
      case 0: return std::bit_cast<T>(static_cast<Bits>(bits | exponent));  // NaN with a payload
      case 1: return std::numeric_limits<T>::infinity();
      case 2: return -std::numeric_limits<T>::infinity();
      case 3: return T(-0.0);
      case 4: return std::bit_cast<T>(static_cast<Bits>(bits & ~exponent));  // Denormal
      case 5: return std::numeric_limits<T>::max();
      case 6: return -std::numeric_limits<T>::max();
      default: return std::bit_cast<T>(static_cast<Bits>((bits & sign) | 1));
    }
  }

  void specials() {
    smooth(0, n_, 0);
    const double share = random_.chance(0.5) ? 0.002 : 0.3;
    for (std::size_t i = 0; i < n_; ++i) {
      if (!random_.chance(share)) continue;
      const T value = special();
      std::memcpy(values_ + i, &value, sizeof value);
    }
  }

  void random_bits() {
    for (std::size_t i = 0; i < n_; ++i) {
      const auto bits = static_cast<BitsOf<T>>(random_.next());
      std::memcpy(values_ + i, &bits, sizeof bits);
    }
  }

  void huge() {
    const auto greatest = static_cast<double>(std::numeric_limits<T>::max());
    each(
        [&] { return greatest * (random_.chance(0.5) ? 1 : -1) * (1 - 0x1p-10 * random_.unit()); });
  }

  void denormals() {
    const double least = static_cast<double>(std::numeric_limits<T>::denorm_min());
    each([&] { return least * static_cast<double>(random_.below(std::uint64_t{1} << 25)); });
  }

  void decades() {
    const int reach = std::numeric_limits<T>::max_exponent - 2;
    each([&] {
      const int exponent = static_cast<int>(random_.below(static_cast<std::uint64_t>(2 * reach)));
      return std::ldexp(random_.unit() - 0.5, exponent - reach);
    });
  }

  void repeated() {
    std::array<double, 7> table;
    for (double& value : table) value = amplitude_ * (random_.unit() - 0.5);
    each([&] { return table[random_.below(table.size())]; });
  }

  /// Fill with integers of a walk, as k / 10^d, k * 10^-d, either with an offset, or 10^d / k.
  void decimals() {
    double power = 1;
    for (std::uint64_t places = random_.below(7); places > 0; --places) power *= 10;
    const std::uint64_t kind = random_.below(5);
    const auto step = static_cast<T>(1 / power);
    const auto offset = static_cast<T>(random_.chance(0.5) ? -10 : 273.15);
    const double strays = random_.chance(0.5) ? 0 : 0.01;
    const std::uint64_t reach = std::uint64_t{1} << random_.below(12);
    std::uint64_t k = 1000;
    for (std::size_t i = 0; i < n_; ++i) {
      k += random_.below(2 * reach + 1);
      k = k < reach ? k + reach : k - reach;
      const auto m = static_cast<T>(k);
      const T quotient = m / static_cast<T>(power);
      const T product = m * step;
      values_[i] = kind == 0   ? quotient
                   : kind == 1 ? product
                   : kind == 2 ? quotient + offset
                   : kind == 3 ? product + offset
                               : static_cast<T>(power) / m;
      if (strays > 0 && random_.chance(strays)) {
        const T value = special();
        std::memcpy(values_ + i, &value, sizeof value);
      }
    }
  }

  void mixture() {
    make(static_cast<Data>(random_.below(static_cast<std::uint64_t>(Data::mixture))));
    std::vector<T> first(values_, values_ + n_);
    make(static_cast<Data>(random_.below(static_cast<std::uint64_t>(Data::mixture))));
    const std::size_t cut = n_ == 0 ? 0 : random_.below(n_);
    if (cut > 0) std::memcpy(values_, first.data(), cut * sizeof(T));
  }

  const Case& chunk_;
  Random& random_;
  T* values_;
  std::size_t n_;
  double bound_ = 1;
  double amplitude_ = 1;
};

template <class T>
void make_integers(Data data, Random& random, T* values, std::size_t n) {
  const unsigned width = 1 + static_cast<unsigned>(random.below(8 * sizeof(T)));
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  std::uint64_t at = random.next();
  for (std::size_t i = 0; i < n; ++i) {
    switch (data) {
      case Data::constant: break;
      case Data::noise:
      case Data::random_bits: at = random.next() & mask; break;
      case Data::repeated: at = 1000 * random.below(5); break;
      case Data::nearly: at = random.chance(0.01) ? random.next() : 7; break;
      case Data::masked: at = random.chance(0.3) ? mask : (i / 5) & 0xFFF; break;
      case Data::ties: at += 10; break;
      default: at += random.below(9) - 4; break;
    }
    values[i] = static_cast<T>(at);
  }
}

constexpr std::size_t kBlock = 64;

/// True if a block of values is clearly within the bound: the computed |x - y| is below it.
/// Rounding is monotone, so this is a proof. Values near the bound, NaN and Inf need a separate
/// check.
template <class T>
bool clearly_good(const std::byte* original, const std::byte* decoded, double bound) {
  std::array<T, kBlock> x;
  std::array<T, kBlock> y;
  std::memcpy(x.data(), original, sizeof x);
  std::memcpy(y.data(), decoded, sizeof y);
  unsigned bad = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double error = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    bad |= static_cast<unsigned>(!((error < bound) & (error > -bound)));
  }
  return bad == 0;
}

template <class T>
std::uint64_t count_float_violations(const trz::ChunkType& type, const std::byte* original,
                                     const std::byte* decoded, std::size_t n) {
  const bool has_fill = type.fill_value && !std::isnan(*type.fill_value);
  const T fill = has_fill ? static_cast<T>(*type.fill_value) : T(0);
  const bool pointwise = type.kind == trz::BoundKind::pointwise;
  const double bound = type.kind == trz::BoundKind::exact ? 0 : type.bound;
  std::uint64_t n_violations = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % kBlock == 0 && n - i >= kBlock && !has_fill && !pointwise && bound > 0 &&
        clearly_good<T>(original + i * sizeof(T), decoded + i * sizeof(T), bound)) {
      i += kBlock - 1;
      continue;
    }
    T x{};
    T y{};
    std::memcpy(&x, original + i * sizeof(T), sizeof(T));
    std::memcpy(&y, decoded + i * sizeof(T), sizeof(T));
    if (std::bit_cast<BitsOf<T>>(x) == std::bit_cast<BitsOf<T>>(y)) continue;
    const auto wide_x = static_cast<double>(x);
    const auto wide_y = static_cast<double>(y);
    bool good = std::isfinite(x) && std::isfinite(y) && !(has_fill && x == fill) && bound > 0;
    if (good && pointwise) {
      good = x != T(0) && !exceeds_pointwise_bound(wide_x, wide_y, std::min(bound, 0.5));
    } else if (good) {
      good = !exceeds_bound(wide_x, wide_y, bound);
    }
    n_violations += good ? 0 : 1;
  }
  return n_violations;
}

}  // namespace

void make_values(Case& chunk, Random& random) {
  const auto n = static_cast<std::size_t>(n_elements(chunk.type.shape));
  chunk.values.assign(n * dtype_bytes(chunk.type.dtype), std::byte{0});
  std::byte* to = chunk.values.data();
  switch (chunk.type.dtype) {
    case DType::f32:
      FloatMaker<float>(chunk, random, reinterpret_cast<float*>(to)).make(chunk.data);
      break;
    case DType::f64:
      FloatMaker<double>(chunk, random, reinterpret_cast<double*>(to)).make(chunk.data);
      break;
    case DType::i8:
    case DType::u8:
      make_integers(chunk.data, random, reinterpret_cast<std::uint8_t*>(to), n);
      break;
    case DType::i16:
    case DType::u16:
      make_integers(chunk.data, random, reinterpret_cast<std::uint16_t*>(to), n);
      break;
    case DType::i32:
    case DType::u32:
      make_integers(chunk.data, random, reinterpret_cast<std::uint32_t*>(to), n);
      break;
    case DType::i64:
    case DType::u64:
      make_integers(chunk.data, random, reinterpret_cast<std::uint64_t*>(to), n);
      break;
  }
}

std::uint64_t count_violations(const trz::ChunkType& type, std::span<const std::byte> original,
                               std::span<const std::byte> decoded) {
  const std::size_t n = original.size() / dtype_bytes(type.dtype);
  if (decoded.size() != original.size()) return n + 1;
  if (type.dtype == DType::f32) {
    return count_float_violations<float>(type, original.data(), decoded.data(), n);
  }
  if (type.dtype == DType::f64) {
    return count_float_violations<double>(type, original.data(), decoded.data(), n);
  }
  std::uint64_t n_violations = 0;
  const std::size_t element_bytes = dtype_bytes(type.dtype);
  for (std::size_t at = 0; at < original.size(); at += element_bytes) {
    n_violations += std::memcmp(original.data() + at, decoded.data() + at, element_bytes) != 0;
  }
  return n_violations;
}

}  // namespace tailrace::trz_cases
