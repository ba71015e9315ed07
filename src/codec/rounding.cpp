// The rounding passes.
//
// Real numbers are processed in vectors of 16 bytes without branches: round to S and to 2 S, choose
// the second where it is within the bound, restore the special values. The difference between a
// value and its rounding is exact, so its comparison with the greatest T up to the bound is an
// exact test. Holding the previous value is a second pass, since each value depends on the one
// before.

#include "codec/rounding.hpp"

#include <algorithm>

#include "codec/value_lanes.hpp"

namespace tailrace {
namespace {

/// The passes over real numbers. A Rounder defines how one vector is rounded, and which values may
/// be replaced by the previous one.
template <class T, class Rounder>
class RoundingPasses {
 public:
  using L = Lanes<T>;
  using Values = typename L::Values;
  using Mask = typename L::Mask;

  template <bool prefer_coarse>
  void round_all(const T* from, T* to, std::size_t n) const {
    std::size_t i = 0;
    for (; i + L::count <= n; i += L::count) {
      const Values y = rounder().template round<prefer_coarse>(L::load(from + i));
      std::memcpy(to + i, &y, sizeof y);
    }
    if (i == n) return;
    T rest[L::count] = {};
    std::copy(from + i, from + n, rest);
    const Values y = rounder().template round<prefer_coarse>(L::load(rest));
    std::memcpy(to + i, &y, (n - i) * sizeof(T));
  }

  void round_and_hold(T* values, std::size_t n) const {
    constexpr std::size_t block_values = 1024;
    T rounded[block_values];
    T previous = std::numeric_limits<T>::quiet_NaN();
    for (std::size_t start = 0; start < n; start += block_values) {
      const std::size_t n_block = std::min(block_values, n - start);
      round_all<true>(values + start, rounded, n_block);
      for (std::size_t i = 0; i < n_block; ++i) {
        const bool hold = rounder().may_hold(values[start + i], previous);
        previous = hold ? previous : rounded[i];
        values[start + i] = previous;
      }
    }
  }

  void run(Rounding rounding, T* values, std::size_t n) const {
    if (rounding == Rounding::nearest) return round_all<false>(values, values, n);
    if (rounding == Rounding::coarse) return round_all<true>(values, values, n);
    round_and_hold(values, n);
  }

 protected:
  explicit RoundingPasses(std::optional<T> fill)
      : fill_(fill.value_or(std::numeric_limits<T>::quiet_NaN())) {}

  T fill_;  ///< NaN without a fill value: it equals nothing.

 private:
  const Rounder& rounder() const { return static_cast<const Rounder&>(*this); }
};

template <class T>
class FloatRounder : public RoundingPasses<T, FloatRounder<T>> {
 public:
  using Passes = RoundingPasses<T, FloatRounder<T>>;
  using L = Lanes<T>;
  using Values = typename L::Values;
  using Mask = typename L::Mask;

  FloatRounder(const Lattice<T>& lattice, std::optional<T> fill)
      : Passes(fill), lattice_(lattice) {}

  static Values snap(Values x, T magic, T reach) {
    const Values rounded = (x + L::all(magic)) - L::all(magic);
    return L::select(L::opaque(L::magnitude(x) < L::all(reach)), rounded, x);
  }

  template <bool prefer_coarse>
  Values round(Values x) const {
    const Values fills = L::all(fill_);
    const Values bounds = L::all(lattice_.bound_below());
    Values y = snap(x, lattice_.magic(), lattice_.reach());
    if constexpr (prefer_coarse) {
      const Values coarse = snap(x, 2 * lattice_.magic(), 2 * lattice_.reach());
      y = L::select(L::opaque(L::magnitude(x - coarse) <= bounds), coarse, y);
    }
    // NaN fails every comparison, and an infinity minus itself is NaN; zeros and fill are tested.
    const Mask good = L::opaque(L::magnitude(x - y) <= bounds);
    const Mask kept = L::opaque(x == Values{}) | L::opaque(x == fills) | L::opaque(y == fills);
    return L::select(good & ~kept, y, x);
  }

  /// True if `previous` may replace `x`.
  bool may_hold(T x, T previous) const {
    const T gap = std::fabs(x - previous);
    const T bound = lattice_.bound_below();
    if (!(gap <= bound) || x == 0 || x == fill_ || previous == fill_) return false;
    return gap < bound || lattice_.close(x, previous);
  }

 private:
  const Lattice<T>& lattice_;
  using Passes::fill_;
};

template <class T>
class MantissaRounder : public RoundingPasses<T, MantissaRounder<T>> {
 public:
  using Passes = RoundingPasses<T, MantissaRounder<T>>;
  using L = Lanes<T>;
  using Values = typename L::Values;
  using Mask = typename L::Mask;
  using Word = std::make_unsigned_t<WordOf<T>>;
  typedef Word Words __attribute__((vector_size(16)));  // unsigned: sums may wrap

  MantissaRounder(const MantissaGrid<T>& grid, std::optional<T> fill) : Passes(fill), grid_(grid) {}

  /// Round to the nearest number whose last n_dropped mantissa bits are 0, ties to even. A carry
  /// into the exponent gives the correct number.
  static Values snap(Values x, int n_dropped) {
    const Word unit = Word{1} << n_dropped;
    const auto bits = reinterpret_cast<Words>(x);
    const Words odd = (bits >> n_dropped) & Word{1};
    return reinterpret_cast<Values>((bits + (unit / 2 - 1) + odd) & ~(unit - 1));
  }

  template <bool prefer_coarse>
  Values round(Values x) const {
    Values y = snap(x, grid_.n_dropped());
    if constexpr (prefer_coarse) {
      const Values coarse = snap(x, grid_.n_dropped() + 1);
      const Values size = L::magnitude(x);
      const Mask near = L::opaque(L::magnitude(x - coarse) <= L::all(grid_.bound_below()) * size);
      const Mask sure = L::opaque(size >= L::all(MantissaGrid<T>::least_sure()));
      y = L::select(near & sure, coarse, y);
    }
    // Rounding may overflow to infinity, or produce the fill value.
    const Values fills = L::all(fill_);
    const Mask normal = L::opaque(L::magnitude(x) >= L::all(std::numeric_limits<T>::min()));
    const Mask finite = L::opaque(L::magnitude(y) <= L::all(std::numeric_limits<T>::max()));
    const Mask kept = L::opaque(x == fills) | L::opaque(y == fills) | L::opaque(x != x);
    return L::select(normal & finite & ~kept, y, x);
  }

  bool may_hold(T x, T previous) const {
    return grid_.close(x, previous) && x != fill_ && previous != fill_;
  }

 private:
  const MantissaGrid<T>& grid_;
  using Passes::fill_;
};

template <class T>
void round_integers(const Lattice<T>& lattice, Rounding rounding, std::optional<T> fill, T* values,
                    std::size_t n) {
  bool has_previous = false;
  T previous{};
  for (std::size_t i = 0; i < n; ++i) {
    const T x = values[i];
    if (fill && x == *fill) continue;
    if (rounding == Rounding::held && has_previous && lattice.close(x, previous)) {
      values[i] = previous;
      continue;
    }
    const T rounded = rounding == Rounding::nearest ? lattice.nearest(x) : lattice.coarse(x);
    const bool keep = !lattice.close(x, rounded) || (fill && rounded == *fill);
    previous = keep ? x : rounded;
    has_previous = true;
    values[i] = previous;
  }
}

}  // namespace

template <class T>
void round_values(const Lattice<T>& lattice, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n) {
  if constexpr (std::is_integral_v<T>) {
    round_integers(lattice, rounding, fill, values, n);
  } else {
    FloatRounder<T>(lattice, fill).run(rounding, values, n);
  }
}

// A template argument cannot be parenthesised.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_ROUND_VALUES(T) \
  template void round_values<T>(const Lattice<T>&, Rounding, std::optional<T>, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
TAILRACE_ROUND_VALUES(float)
TAILRACE_ROUND_VALUES(double)
TAILRACE_ROUND_VALUES(std::int8_t)
TAILRACE_ROUND_VALUES(std::int16_t)
TAILRACE_ROUND_VALUES(std::int32_t)
TAILRACE_ROUND_VALUES(std::int64_t)
TAILRACE_ROUND_VALUES(std::uint8_t)
TAILRACE_ROUND_VALUES(std::uint16_t)
TAILRACE_ROUND_VALUES(std::uint32_t)
TAILRACE_ROUND_VALUES(std::uint64_t)
#undef TAILRACE_ROUND_VALUES

template <class T>
void round_values(const MantissaGrid<T>& grid, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n) {
  // Dropping all mantissa bits and one more would change the exponent.
  const bool may_be_coarse = grid.n_dropped() + 1 < std::numeric_limits<T>::digits;
  MantissaRounder<T>(grid, fill).run(may_be_coarse ? rounding : Rounding::nearest, values, n);
}

template void round_values<float>(const MantissaGrid<float>&, Rounding, std::optional<float>,
                                  float*, std::size_t);
template void round_values<double>(const MantissaGrid<double>&, Rounding, std::optional<double>,
                                   double*, std::size_t);

}  // namespace tailrace
