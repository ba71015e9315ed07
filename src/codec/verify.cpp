// Chunk verifier.
//
// Values are compared in blocks. The result of a branch-free pass over a block is valid if the
// block is ordinary: every finite value's difference is strictly below the bound, and every other
// value is the same bit for bit. (Rounding is monotone: a difference that exceeds the bound cannot
// round to below it, so "strictly below" needs no exact comparison.) Any other block is compared
// again, value by value with exceeds_bound. With a pointwise bound differences are divided by
// magnitudes. Zeros must be the same bit for bit, and "below" leaves room for the rounding of the
// quotient.

#include "codec/verify.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/value_lanes.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kCompareValues = 1024;

template <class T>
bool same_bits(T a, T b) {
  // Compare bits: a NaN's payload and the sign of zero count.
  return std::memcmp(&a, &b, sizeof(T)) == 0;  // NOLINT(bugprone-suspicious-memory-comparison)
}

template <class T>
bool is_finite(T x) {
  if constexpr (std::is_integral_v<T>)
    return true;
  else
    return std::isfinite(x);
}

/// Allowed error: an absolute distance, or a fraction of the original's magnitude.
struct Allowance {
  double bound = 0;
  bool pointwise = false;
};

/// True if an integer gap exceeds fraction * magnitude, that is, the largest integer in it.
bool gap_exceeds(std::uint64_t gap, std::uint64_t magnitude, double fraction) {
  __extension__ using Wide = unsigned __int128;
  if (!(fraction > 0)) return gap > 0;
  int exponent = 0;
  const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(fraction, &exponent), 53));
  const int shift = 53 - exponent;  // fraction = digits / 2^shift < 1
  const Wide product = Wide{digits} * magnitude;
  return gap > (shift < 128 ? static_cast<std::uint64_t>(product >> shift) : 0);
}

/// x - y| as a double, and true if it exceeds the allowance, tested exactly.
template <class T>
std::pair<double, bool> distance(T x, T y, Allowance allowed) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const auto a = static_cast<std::uint64_t>(x);
    const auto b = static_cast<std::uint64_t>(y);
    const std::uint64_t gap = x > y ? a - b : b - a;
    constexpr double past_u64 = 18446744073709551616.0;
    const bool beyond = allowed.pointwise ? gap_exceeds(gap, x < T{0} ? 0 - a : a, allowed.bound)
                                          : allowed.bound < past_u64 &&
                                                gap > static_cast<std::uint64_t>(allowed.bound);
    return {static_cast<double>(gap), beyond};
  } else {
    const auto a = static_cast<double>(x);
    const auto b = static_cast<double>(y);
    const bool beyond = allowed.pointwise ? exceeds_pointwise_bound(a, b, allowed.bound)
                                          : exceeds_bound(a, b, allowed.bound);
    return {std::fabs(a - b), beyond};
  }
}

/// The error as reported: absolute, or relative to the original.
template <class T>
double reported(double error, T x, Allowance allowed) {
  if (!allowed.pointwise || error == 0) return error;
  return error / std::fabs(static_cast<double>(x));  // infinite for a zero
}

/// Results of the fast pass over a block.
struct BlockErrors {
  std::uint64_t n_finite = 0;
  double largest = 0;
  double sum_squares = 0;
  bool ordinary = false;  ///< True if the results are valid.
};

using Doubles = Lanes<double>;

using Pair = float __attribute__((vector_size(8)));

/// Two adjacent elements of the four. g++ 11 needs a copy for this.
template <int first>
Pair pair_at(Lanes<float>::Values x) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(x, x, first, first + 1);
#else
  Pair pair;
  std::memcpy(&pair, reinterpret_cast<const char*>(&x) + first * sizeof(float), sizeof pair);
  return pair;
#endif
}

/// Absolute differences of two vectors, in double: one or two vectors.
std::array<Doubles::Values, 1> differences(Lanes<double>::Values x, Lanes<double>::Values y) {
  return {Doubles::magnitude(x - y)};
}
std::array<Doubles::Values, 2> differences(Lanes<float>::Values x, Lanes<float>::Values y) {
  const auto widen = [](Pair pair) { return __builtin_convertvector(pair, Doubles::Values); };
  return {Doubles::magnitude(widen(pair_at<0>(x)) - widen(pair_at<0>(y))),
          Doubles::magnitude(widen(pair_at<2>(x)) - widen(pair_at<2>(y)))};
}

/// The branch-free pass over n values, n a multiple of the lanes. limit > 0. A finite value that
/// decodes to NaN or Inf makes the sum NaN or Inf.
template <class T, bool pointwise>
BlockErrors scan_block(const T* x, const T* y, std::size_t n, double limit, T fill) {
  using L = Lanes<T>;
  constexpr std::size_t parts = std::is_same_v<T, float> ? 2 : 1;  // doubles per lane of T
  const typename L::Values fills = L::all(fill);
  std::array<Doubles::Values, parts> largest{};
  std::array<Doubles::Values, parts> squares{};
  typename L::Mask changed{};
  typename L::Mask n_counted{};
  for (std::size_t i = 0; i < n; i += L::count) {
    const auto a = L::load(x + i);
    const auto b = L::load(y + i);
    const typename L::Mask counted = L::counted(a, fills);
    n_counted -= counted;
    const typename L::Mask judged = pointwise ? counted & ~L::opaque(a == L::all(0)) : counted;
    changed |= ~judged & (L::bits(a) ^ L::bits(b));
    const auto gaps = differences(L::where(judged, a), L::where(judged, b));
    auto shares = gaps;
    if constexpr (pointwise) {
      const auto sizes = differences(L::select(judged, a, L::all(1)), typename L::Values{});
      for (std::size_t part = 0; part < parts; ++part) shares[part] = gaps[part] / sizes[part];
    }
    for (std::size_t part = 0; part < parts; ++part) {
      largest[part] = shares[part] > largest[part] ? shares[part] : largest[part];
      squares[part] += gaps[part] * gaps[part];
    }
  }
  BlockErrors result;
  result.n_finite = static_cast<std::uint64_t>(L::sum(n_counted));
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::size_t lane = 0; lane < Doubles::count; ++lane) {
      result.largest = std::max(result.largest, double{largest[part][lane]});
      result.sum_squares += squares[part][lane];
    }
  }
  result.ordinary = result.largest < limit && std::isfinite(result.sum_squares) && !L::any(changed);
  return result;
}

/// Comparison for one element type.
template <class T>
class Comparer {
 public:
  Comparer(const T* original, const T* decoded, Allowance allowed, std::optional<T> fill)
      : original_(original), decoded_(decoded), allowed_(allowed), fill_(fill), is_fill_(fill) {}

  ChunkComparison compare(std::size_t n) {
    result_.n_values = n;
    for (std::size_t start = 0; start < n; start += kCompareValues) {
      const std::size_t n_block = std::min(kCompareValues, n - start);
      if (!compare_fast(start, n_block)) compare_exactly(start, n_block);
    }
    return result_;
  }

 private:
  bool is_fill(T x) const { return is_fill_(x); }

  bool compare_fast(std::size_t start, std::size_t n_block) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!(allowed_.bound > 0) || n_block % Lanes<T>::count != 0) return false;
      const T fill = fill_.value_or(std::numeric_limits<T>::quiet_NaN());
      // The difference and the quotient each have a relative rounding error of 2^-53.
      const BlockErrors block =
          allowed_.pointwise ? scan_block<T, true>(original_ + start, decoded_ + start, n_block,
                                                   allowed_.bound * (1 - 0x1p-50), fill)
                             : scan_block<T, false>(original_ + start, decoded_ + start, n_block,
                                                    allowed_.bound, fill);
      if (!block.ordinary) return false;
      result_.n_finite += block.n_finite;
      result_.sum_squared_errors += block.sum_squares;
      if (block.largest > result_.largest_error) find_worst(start, n_block, block.largest);
      return true;
    } else {
      // Fast path: almost every codec returns integers unchanged.
      if (std::memcmp(original_ + start, decoded_ + start, n_block * sizeof(T)) != 0) return false;
      const auto n_fill = std::count_if(original_ + start, original_ + start + n_block,
                                        [this](T x) { return is_fill(x); });
      result_.n_finite += n_block - static_cast<std::size_t>(n_fill);
      return true;
    }
  }

  void find_worst(std::size_t start, std::size_t n_block, double largest) {
    result_.largest_error = largest;
    for (std::size_t i = start; i < start + n_block; ++i) {
      const T x = original_[i];
      if (!is_finite(x) || is_fill(x)) continue;
      const double error = distance(x, decoded_[i], allowed_).first;
      if (reported(error, x, allowed_) == largest) {
        result_.worst_index = i;
        return;
      }
    }
  }

  void compare_exactly(std::size_t start, std::size_t n_block) {
    for (std::size_t i = start; i < start + n_block; ++i) {
      const T x = original_[i];
      const T y = decoded_[i];
      if (!is_finite(x) || is_fill(x)) {
        if (!same_bits(x, y)) fail(i, result_.n_special_changed);
        continue;
      }
      ++result_.n_finite;
      if (!is_finite(y)) {
        fail(i, result_.n_beyond_bound);
        if (result_.largest_error < std::numeric_limits<double>::infinity()) {
          result_.largest_error = std::numeric_limits<double>::infinity();
          result_.worst_index = i;
        }
        continue;
      }
      const auto [error, beyond] = distance(x, y, allowed_);
      const bool exactly = allowed_.bound == 0 || (allowed_.pointwise && x == T{0});
      if (beyond || (exactly && !same_bits(x, y))) fail(i, result_.n_beyond_bound);
      result_.sum_squared_errors += error * error;
      const double largest = reported(error, x, allowed_);
      if (largest > result_.largest_error) {
        result_.largest_error = largest;
        result_.worst_index = i;
      }
    }
  }

  void fail(std::size_t index, std::uint64_t& counter) {
    ++counter;
    if (result_.first_bad_index != ChunkComparison::kNoIndex) return;
    result_.first_bad_index = index;
    result_.first_bad_original = static_cast<double>(original_[index]);
    result_.first_bad_decoded = static_cast<double>(decoded_[index]);
  }

  const T* original_;
  const T* decoded_;
  Allowance allowed_;
  std::optional<T> fill_;
  FillTest<T> is_fill_;
  ChunkComparison result_;
};

/// Index plus shift; kNoIndex stays kNoIndex.
std::uint64_t shifted(std::uint64_t index, std::uint64_t shift) {
  return index == ChunkComparison::kNoIndex ? index : index + shift;
}

ChunkComparison compare(DType dtype, std::span<const std::byte> original,
                        std::span<const std::byte> decoded, Allowance allowed,
                        std::optional<double> fill_value) {
  const std::size_t n = original.size() / dtype_bytes(dtype);
  if (original.size() != decoded.size() || original.size() % dtype_bytes(dtype) != 0) {
    ChunkComparison all_bad;
    all_bad.n_values = all_bad.n_finite = all_bad.n_beyond_bound = std::max<std::size_t>(n, 1);
    all_bad.largest_error = std::numeric_limits<double>::infinity();
    all_bad.worst_index = all_bad.first_bad_index = 0;
    return all_bad;
  }
  return visit_dtype(dtype, [&]<class T>() {
    return Comparer<T>(reinterpret_cast<const T*>(original.data()),
                       reinterpret_cast<const T*>(decoded.data()), allowed, fill_as<T>(fill_value))
        .compare(n);
  });
}

}  // namespace

void ChunkComparison::merge(const ChunkComparison& other, std::uint64_t index_shift) {
  n_values += other.n_values;
  n_finite += other.n_finite;
  sum_squared_errors += other.sum_squared_errors;
  n_beyond_bound += other.n_beyond_bound;
  n_special_changed += other.n_special_changed;
  const std::uint64_t other_worst = shifted(other.worst_index, index_shift);
  if (other.largest_error > largest_error ||
      (other.largest_error == largest_error && other_worst < worst_index)) {
    largest_error = other.largest_error;
    worst_index = other_worst;
  }
  const std::uint64_t other_bad = shifted(other.first_bad_index, index_shift);
  if (other_bad < first_bad_index) {
    first_bad_index = other_bad;
    first_bad_original = other.first_bad_original;
    first_bad_decoded = other.first_bad_decoded;
  }
}

ChunkComparison compare_values(DType dtype, std::span<const std::byte> original,
                               std::span<const std::byte> decoded, double absolute_bound,
                               std::optional<double> fill_value) {
  return compare(dtype, original, decoded, {absolute_bound, false}, fill_value);
}

ChunkComparison compare_pointwise(DType dtype, std::span<const std::byte> original,
                                  std::span<const std::byte> decoded, double pointwise_bound,
                                  std::optional<double> fill_value) {
  return compare(dtype, original, decoded, {pointwise_bound, true}, fill_value);
}

// --- Value scan: range of the counted values, and counts of NaN, infinite and fill values.

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values scanned before the lanes' counters are reset; far below 2^31.
constexpr std::size_t kBlockValues = 1U << 16;

/// Count a block's least and greatest value, and find the next ones. The block is still in the
/// cache.
template <class T>
void scan_ends(const T* values, std::size_t n, T fill, ValueRange& block) {
  using L = Lanes<T>;
  const auto fills = L::all(fill);
  const auto first = L::all(static_cast<T>(block.least));
  const auto last = L::all(static_cast<T>(block.greatest));
  auto least = L::all(std::numeric_limits<T>::infinity());
  auto greatest = L::all(-std::numeric_limits<T>::infinity());
  typename L::Mask n_least{};
  typename L::Mask n_greatest{};
  for (std::size_t i = 0; i < n; i += L::count) {
    const auto x = L::load(values + i);
    const typename L::Mask counted = L::counted(x, fills);
    const typename L::Mask is_first = L::opaque(x == first) & counted;
    const typename L::Mask is_last = L::opaque(x == last) & counted;
    n_least -= is_first;
    n_greatest -= is_last;
    const auto low = L::select(counted & ~is_first, x, least);
    const auto high = L::select(counted & ~is_last, x, greatest);
    least = low < least ? low : least;
    greatest = high > greatest ? high : greatest;
  }
  for (std::size_t lane = 0; lane < L::count; ++lane) {
    block.next_least = std::min(block.next_least, static_cast<double>(least[lane]));
    block.next_greatest = std::max(block.next_greatest, static_cast<double>(greatest[lane]));
  }
  block.n_least = static_cast<std::uint64_t>(L::sum(n_least));
  block.n_greatest = static_cast<std::uint64_t>(L::sum(n_greatest));
}

/// The branch-free pass over n values, n a multiple of the lanes.
template <class T>
void scan_block(const T* values, std::size_t n, T fill, ValueRange& range) {
  using L = Lanes<T>;
  const auto fills = L::all(fill);
  auto least = L::all(std::numeric_limits<T>::infinity());
  auto greatest = L::all(-std::numeric_limits<T>::infinity());
  typename L::Mask n_counted{};
  typename L::Mask n_nan{};
  typename L::Mask n_fill{};
  for (std::size_t i = 0; i < n; i += L::count) {
    const auto x = L::load(values + i);
    const typename L::Mask counted = L::counted(x, fills);
    n_counted -= counted;
    n_nan -= L::opaque(x != x);
    n_fill -= L::opaque(x == fills);
    const auto low = L::select(counted, x, least);
    const auto high = L::select(counted, x, greatest);
    least = low < least ? low : least;
    greatest = high > greatest ? high : greatest;
  }
  ValueRange block;
  for (std::size_t lane = 0; lane < L::count; ++lane) {
    block.least = std::min(block.least, static_cast<double>(least[lane]));
    block.greatest = std::max(block.greatest, static_cast<double>(greatest[lane]));
  }
  block.n_finite = static_cast<std::uint64_t>(L::sum(n_counted));
  block.n_nan = static_cast<std::uint64_t>(L::sum(n_nan));
  block.n_fill = static_cast<std::uint64_t>(L::sum(n_fill));
  block.n_inf = n - block.n_finite - block.n_nan - block.n_fill;
  // If the block's extremes are not those of the range, they are at most its next ones, which need
  // no counts.
  const bool is_end = block.least <= range.least || block.greatest >= range.greatest;
  if (block.n_finite > 0 && is_end) scan_ends(values, n, fill, block);
  range.merge(block);
}

template <class T>
ValueRange scan(const T* values, std::size_t n, std::optional<T> fill) {
  ValueRange range;
  if constexpr (std::is_floating_point_v<T>) {
    const T fill_or_nan = fill.value_or(std::numeric_limits<T>::quiet_NaN());
    const std::size_t n_whole = n - n % Lanes<T>::count;
    for (std::size_t start = 0; start < n_whole; start += kBlockValues) {
      scan_block(values + start, std::min(kBlockValues, n_whole - start), fill_or_nan, range);
    }
    // The remaining values, padded with NaN to one vector.
    if (n_whole < n) {
      T last[Lanes<T>::count];
      std::fill(std::begin(last), std::end(last), std::numeric_limits<T>::quiet_NaN());
      std::copy(values + n_whole, values + n, last);
      scan_block(last, Lanes<T>::count, fill_or_nan, range);
      range.n_nan -= Lanes<T>::count - (n - n_whole);
    }
  } else {
    T least = std::numeric_limits<T>::max();
    T greatest = std::numeric_limits<T>::min();
    std::uint64_t n_fill = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const T x = values[i];
      if (fill && x == *fill) {
        ++n_fill;
        continue;
      }
      least = x < least ? x : least;
      greatest = x > greatest ? x : greatest;
    }
    range.n_fill = n_fill;
    range.n_finite = n - n_fill;
    if (range.n_finite > 0) {
      range.least = static_cast<double>(least);
      range.greatest = static_cast<double>(greatest);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const T x = values[i];
      if (fill && x == *fill) continue;
      range.n_least += x == least ? 1 : 0;
      range.n_greatest += x == greatest ? 1 : 0;
      if (x != least) range.next_least = std::min(range.next_least, static_cast<double>(x));
      if (x != greatest)
        range.next_greatest = std::max(range.next_greatest, static_cast<double>(x));
    }
  }
  return range;
}

/// Merges the least values of two parts; also used for negated greatest values.
struct LeastValues {
  double least;
  std::uint64_t n;
  double next;

  void merge(const LeastValues& other) {
    if (other.least < least) {
      *this = {other.least, other.n, std::min(least, other.next)};
    } else if (other.least > least) {
      next = std::min(next, other.least);
    } else {
      n += other.n;
      next = std::min(next, other.next);
    }
  }
};

}  // namespace

ValueRange::ValueRange()
    : least(kInfinity), greatest(-kInfinity), next_least(kInfinity), next_greatest(-kInfinity) {}

void ValueRange::merge(const ValueRange& other) {
  LeastValues low{least, n_least, next_least};
  low.merge({other.least, other.n_least, other.next_least});
  LeastValues high{-greatest, n_greatest, -next_greatest};
  high.merge({-other.greatest, other.n_greatest, -other.next_greatest});
  least = low.least;
  n_least = low.n;
  next_least = low.next;
  greatest = -high.least;
  n_greatest = high.n;
  next_greatest = -high.next;
  n_finite += other.n_finite;
  n_nan += other.n_nan;
  n_inf += other.n_inf;
  n_fill += other.n_fill;
}

ValueRange value_range(DType dtype, std::span<const std::byte> values,
                       std::optional<double> fill_value) {
  return visit_dtype(dtype, [&]<class T>() {
    return scan<T>(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T),
                   fill_as<T>(fill_value));
  });
}

MagnitudeCount count_below(DType dtype, std::span<const std::byte> values, double bound,
                           std::optional<double> fill_value) {
  return visit_dtype(dtype, [&]<class T>() {
    const FillTest<T> is_fill(fill_as<T>(fill_value));
    const std::span<const T> all(reinterpret_cast<const T*>(values.data()),
                                 values.size() / sizeof(T));
    MagnitudeCount count;
    for (const T value : all) {
      const double magnitude = std::fabs(static_cast<double>(value));
      const bool counts = magnitude > 0 && magnitude < kInfinity && !is_fill(value);
      count.n_nonzero += counts ? 1 : 0;
      count.n_below += counts && magnitude < bound ? 1 : 0;
    }
    return count;
  });
}

}  // namespace tailrace
