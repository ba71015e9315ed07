// Guards that concern several values of a chunk: the order of neighbours along an axis, and the
// sum. A value changed for them becomes a patch, as for guards of single values (value_guards.hpp).
// A patch for a sum may differ from the original, within its bound.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/entropy/patches.hpp"

namespace tailrace::trz {

/// A chunk's original and decoded values, with its shape, bound and guards.
template <class T>
struct GuardedChunk {
  const ValueGuards& guards;
  const Shape& shape;  ///< The array's axes, at most max_rank.
  double bound = 0;    ///< Absolute.
  const T* fill = nullptr;
  const T* values = nullptr;
  T* decoded = nullptr;  ///< Including patches.
  std::size_t n = 0;
  PatchMap& patches;

  void patch(std::size_t i, T with) {
    patches.mark(i);
    decoded[i] = with;
  }
  bool counts(std::size_t i) const {
    if (guards.counted.empty()) return true;
    for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) {
      if (i % shape[d] >= guards.counted[d]) return false;
    }
    return true;
  }
};

// --- Order

/// Loops over an axis: `n_outer` * `stride` lines of `length` values that lie `stride` apart.
struct AxisLoops {
  std::size_t n_outer = 1;
  std::size_t length = 1;
  std::size_t stride = 1;

  AxisLoops(const Shape& shape, std::size_t axis) {
    for (std::size_t d = 0; d < axis; ++d) n_outer *= static_cast<std::size_t>(shape[d]);
    length = static_cast<std::size_t>(shape[axis]);
    for (std::size_t d = axis + 1; d < shape.size(); ++d) {
      stride *= static_cast<std::size_t>(shape[d]);
    }
  }
};

/// Patch pairs of neighbours whose order decoding reversed. A patch may reverse its neighbour's
/// order, so passes run forwards and backwards until no pair changes. @returns true if it patched
/// any.
template <class T>
bool restore_order(GuardedChunk<T>& chunk, const AxisLoops& axis) {
  bool any = false;
  const auto look_at = [&](std::size_t i) {
    const std::size_t j = i + axis.stride;
    const T* x = chunk.values;
    if (!turns_order(x[i], x[j], chunk.decoded[i], chunk.decoded[j])) return false;
    chunk.patch(i, x[i]);
    chunk.patch(j, x[j]);
    return true;
  };
  for (bool turned = true; turned;) {
    turned = false;
    for (std::size_t outer = 0; outer < axis.n_outer; ++outer) {
      const std::size_t begin = outer * axis.length * axis.stride;
      const std::size_t n_pairs = (axis.length - 1) * axis.stride;
      for (std::size_t i = 0; i < n_pairs; ++i) turned |= look_at(begin + i);
      for (std::size_t i = n_pairs; i-- > 0;) turned |= look_at(begin + i);
    }
    any |= turned;
  }
  return any;
}

/// Patch the values at the chunk's ends. Chunks are decoded independently: the order holds across
/// the border of two chunks because the values on both sides are exact.
template <class T>
void fix_ends(GuardedChunk<T>& chunk, const AxisLoops& axis, bool is_last) {
  for (std::size_t outer = 0; outer < axis.n_outer; ++outer) {
    for (std::size_t i = 0; i < axis.stride; ++i) {
      const std::size_t first = outer * axis.length * axis.stride + i;
      const std::size_t last = first + (axis.length - 1) * axis.stride;
      chunk.patch(first, chunk.values[first]);
      if (!is_last) chunk.patch(last, chunk.values[last]);
    }
  }
}

template <class T>
void keep_orders(GuardedChunk<T>& chunk) {
  const ValueGuards& guards = chunk.guards;
  for (const auto& [axis, alone] : guards.orders) {
    const bool is_last = !guards.counted.empty() && guards.counted[axis] < chunk.shape[axis];
    if (!alone) fix_ends(chunk, AxisLoops(chunk.shape, axis), is_last);
  }
  // Patches for one axis may reverse neighbours along another.
  for (bool turned = true; turned;) {
    turned = false;
    for (const auto& order : guards.orders) {
      turned |= restore_order(chunk, AxisLoops(chunk.shape, order.axis));
    }
    turned &= guards.orders.size() > 1;
  }
}

// --- Sum

/// Compensated sum of doubles with negligible loss: `low` collects the rounding errors of `high`
/// (Knuth's TwoSum). Number: a double, or a vector of doubles.
template <class Number>
struct PairSum {
  Number high{};
  Number low{};

  void add(Number value) {
    const Number sum = high + value;
    const Number rest = sum - high;
    low += (high - (sum - rest)) + (value - rest);
    high = sum;
  }
};

struct LongSum : PairSum<double> {
  using PairSum::add;
  void add(const LongSum& other) {
    add(other.high);
    low += other.low;
    const double sum = high + low;  // Makes low small relative to high again.
    low -= sum - high;
    high = sum;
  }
  double value() const { return high + low; }
};

/// Return `value`, or 0 if `judge` is an infinity or a NaN. Integer operations, so that loops over
/// it vectorise.
template <class T>
T or_zero(T value, T judge) {
  constexpr auto kExponent = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());
  const auto finite = (std::bit_cast<BitsOf<T>>(judge) & kExponent) != kExponent;
  const BitsOf<T> mask = finite ? ~BitsOf<T>(0) : BitsOf<T>(0);
  return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(value) & mask);
}

/// Sum of y - x over those of n values whose x is finite.
template <class T>
LongSum sum_of_errors(const T* x, const T* y, std::size_t n) {
  constexpr std::size_t kBlock = 512;  // Short enough that no lane's low part grows.
  constexpr std::size_t kSums = 4;
  constexpr std::size_t kLanes = 2;
  typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
  LongSum all;
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t n_block = std::min(kBlock, n - start);
    double to[kBlock];
    double from[kBlock];
    for (std::size_t i = 0; i < n_block; ++i) {
      to[i] = static_cast<double>(or_zero(y[start + i], x[start + i]));
      from[i] = -static_cast<double>(or_zero(x[start + i], x[start + i]));
    }
    std::fill(to + n_block, to + kBlock, 0.0);
    std::fill(from + n_block, from + kBlock, 0.0);
    PairSum<Lanes> sums[kSums];  // Independent dependency chains.
    for (std::size_t i = 0; i < kBlock; i += kSums * kLanes) {
      for (std::size_t s = 0; s < kSums; ++s) {
        const std::size_t at = i + s * kLanes;
        Lanes values;
        std::memcpy(&values, to + at, sizeof values);
        sums[s].add(values);
        std::memcpy(&values, from + at, sizeof values);
        sums[s].add(values);
      }
    }
    for (const PairSum<Lanes>& sum : sums) {
      for (std::size_t k = 0; k < kLanes; ++k) all.add(LongSum{{sum.high[k], sum.low[k]}});
    }
  }
  return all;
}

/// Sum of the errors of a chunk's decoded values.
template <class T>
LongSum excess_of(const GuardedChunk<T>& chunk) {
  const Shape& counted = chunk.guards.counted;
  if (counted.empty()) return sum_of_errors(chunk.values, chunk.decoded, chunk.n);
  LongSum sum;
  const auto row = static_cast<std::size_t>(chunk.shape.back());
  for (std::size_t begin = 0; begin < chunk.n; begin += row) {
    if (!chunk.counts(begin)) continue;
    sum.add(sum_of_errors(chunk.values + begin, chunk.decoded + begin,
                          static_cast<std::size_t>(counted.back())));
  }
  return sum;
}

/// True if y may replace value i: within the bound, not a fill value, and no guard broken.
template <class T>
bool may_hold(const GuardedChunk<T>& chunk, std::size_t i, T y) {
  const T x = chunk.values[i];
  if (!std::isfinite(y)) return false;
  const double bound = chunk.guards.tighter.bound_of(i, chunk.bound);
  if (exceeds_bound(static_cast<double>(x), static_cast<double>(y), bound)) return false;
  if (y != x) {
    if (chunk.fill != nullptr && (x == *chunk.fill || y == *chunk.fill)) return false;
    for (const FunctionLimit& limit : chunk.guards.functions) {
      if (!limit.keeps(static_cast<double>(x), static_cast<double>(y))) return false;
    }
    if (breaks_guards(chunk.guards, static_cast<double>(x), static_cast<double>(y))) return false;
  }
  for (const auto& [axis, alone] : chunk.guards.orders) {
    const AxisLoops loops(chunk.shape, axis);
    const std::size_t at = i / loops.stride % loops.length;
    const bool at_end = at == 0 || at + 1 == loops.length;
    if (at_end && !alone && y != x) return false;
    if (at > 0) {
      const std::size_t before = i - loops.stride;
      if (turns_order(chunk.values[before], x, chunk.decoded[before], y)) return false;
    }
    if (at + 1 < loops.length) {
      const std::size_t behind = i + loops.stride;
      if (turns_order(x, chunk.values[behind], y, chunk.decoded[behind])) return false;
    }
  }
  return true;
}

/// Permutation of all positions of a chunk, spread evenly over it and starting at the first.
class SpreadPositions {
 public:
  explicit SpreadPositions(std::size_t n)
      : n_(n), stride_(static_cast<std::size_t>(kGoldenRatio * static_cast<double>(n)) + 1) {
    while (std::gcd(stride_, n_) != 1) ++stride_;
  }
  std::size_t operator[](std::size_t k) const { return k * stride_ % n_; }

 private:
  static constexpr double kGoldenRatio = 0.6180339887498949;
  std::size_t n_;  ///< Number of positions of a chunk below 4 GiB, so that products fit.
  std::size_t stride_;
};

/// Replace values whose errors have the excess' sign and are large, until the excess is within the
/// bound. The replacement has an error of opposite sign, or none. The first passes search a part of
/// the chunk for the largest errors, later passes a larger part for smaller ones.
template <class T>
void lessen_excess(GuardedChunk<T>& chunk, const SpreadPositions& positions, LongSum& excess) {
  struct Pass {
    double least_error;  ///< Relative to the bound.
    std::size_t part;    ///< Every part-th of the chunk's positions is searched.
  };
  for (const auto& [least_error, part] :
       {Pass{0.75, 64}, Pass{0.5, 64}, Pass{0.25, 16}, Pass{0, 1}}) {
    for (std::size_t k = 0; k < (chunk.n + part - 1) / part; ++k) {
      const double left = excess.value();
      if (std::fabs(left) <= chunk.bound) return;
      const double sign = left > 0 ? 1 : -1;
      const std::size_t i = positions[k];
      const T x = chunk.values[i];
      const T y = chunk.decoded[i];
      if (!std::isfinite(x) || !chunk.counts(i)) continue;
      const double error = static_cast<double>(y) - static_cast<double>(x);
      if (!(sign * error > least_error * chunk.bound)) continue;
      const T far = static_cast<T>(static_cast<double>(x) - sign * chunk.bound);
      const T with = may_hold(chunk, i, far) ? far : x;
      if (!may_hold(chunk, i, with)) continue;
      excess.add(static_cast<double>(with));
      excess.add(-static_cast<double>(y));
      chunk.patch(i, with);
    }
  }
}

/// Remove the remaining excess, which is within the bound, by changing a single value: of several
/// candidates the one that leaves the smallest rest. @returns false if none qualifies.
template <class T>
bool remove_excess(GuardedChunk<T>& chunk, const SpreadPositions& positions, LongSum excess) {
  constexpr std::size_t kLooks = 256;
  std::optional<std::size_t> best;
  T best_value = 0;
  double best_rest = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < chunk.n && (k < kLooks || !best); ++k) {
    const std::size_t i = positions[k];
    const T y = chunk.decoded[i];
    if (!std::isfinite(chunk.values[i]) || !chunk.counts(i)) continue;
    const T with = static_cast<T>(static_cast<double>(y) - excess.value());
    if (!may_hold(chunk, i, with)) continue;
    LongSum rest = excess;
    rest.add(static_cast<double>(with));
    rest.add(-static_cast<double>(y));
    if (std::fabs(rest.value()) >= best_rest) continue;
    best = i;
    best_value = with;
    best_rest = std::fabs(rest.value());
  }
  // One of many candidates comes close; of few, perhaps none can represent the excess.
  if (!best || best_rest > sum_tolerance(std::fabs(best_value))) return false;
  chunk.patch(*best, best_value);
  return true;
}

/// Make the sum of the decoded values equal that of the originals, to half an ulp of one value.
template <class T>
void keep_sum(GuardedChunk<T>& chunk) {
  LongSum excess = excess_of(chunk);
  if (excess.value() == 0) return;
  const SpreadPositions positions(chunk.n);
  lessen_excess(chunk, positions, excess);
  if (excess.value() == 0) return;
  if (std::fabs(excess.value()) <= chunk.bound && remove_excess(chunk, positions, excess)) return;
  // Fall back to the originals, which have the right sum. As a chunk of patches they are larger
  // than an exact chunk, so exact coding replaces it.
  for (std::size_t i = 0; i < chunk.n; ++i) chunk.patch(i, chunk.values[i]);
}

/// Enforce the guards of the chunk as a whole, after mark_broken() has enforced those of single
/// values.
template <class T>
void keep_chunk_guards(GuardedChunk<T>& chunk) {
  chunk.patches.for_each([&](std::size_t i) { chunk.decoded[i] = chunk.values[i]; });
  keep_orders(chunk);
  if (chunk.guards.sum) keep_sum(chunk);
}

}  // namespace tailrace::trz
