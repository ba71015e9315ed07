// The mantissa rounding passes, in vectors of 16 bytes without a branch; see rounding.cpp for the
// same on an absolute grid.

#include "codec/mantissa_rounding.hpp"

#include <algorithm>

#include "codec/value_lanes.hpp"

namespace tailrace {
namespace {

template <class T>
class MantissaRounder {
 public:
  using L = Lanes<T>;
  using Values = typename L::Values;
  using Mask = typename L::Mask;
  using Word = std::make_unsigned_t<WordOf<T>>;
  typedef Word Words __attribute__((vector_size(16)));  // unsigned: sums may wrap

  MantissaRounder(const MantissaGrid<T>& grid, std::optional<T> fill)
      : grid_(grid), fill_(fill.value_or(std::numeric_limits<T>::quiet_NaN())) {}

  /// To the nearest number whose last n_dropped mantissa bits are 0, ties to even. A carry goes
  /// into the exponent, where it belongs.
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
    // Rounding may leave the range of finite numbers, or hit the fill value.
    const Values fills = L::all(fill_);
    const Mask normal = L::opaque(L::magnitude(x) >= L::all(std::numeric_limits<T>::min()));
    const Mask finite = L::opaque(L::magnitude(y) <= L::all(std::numeric_limits<T>::max()));
    const Mask kept = L::opaque(x == fills) | L::opaque(y == fills) | L::opaque(x != x);
    return L::select(normal & finite & ~kept, y, x);
  }

  template <bool prefer_coarse>
  void round_all(const T* from, T* to, std::size_t n) const {
    std::size_t i = 0;
    for (; i + L::count <= n; i += L::count) {
      const Values y = round<prefer_coarse>(L::load(from + i));
      std::memcpy(to + i, &y, sizeof y);
    }
    if (i == n) return;
    T rest[L::count] = {};
    std::copy(from + i, from + n, rest);
    const Values y = round<prefer_coarse>(L::load(rest));
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
        const T x = values[start + i];
        const bool hold = grid_.close(x, previous) && x != fill_ && previous != fill_;
        previous = hold ? previous : rounded[i];
        values[start + i] = previous;
      }
    }
  }

 private:
  const MantissaGrid<T>& grid_;
  T fill_;  ///< NaN for none: it equals nothing.
};

}  // namespace

template <class T>
void round_values(const MantissaGrid<T>& grid, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n) {
  const MantissaRounder<T> rounder(grid, fill);
  // One bit more than the mantissa has would be a bit of the exponent.
  const bool may_be_coarse = grid.n_dropped() + 1 < std::numeric_limits<T>::digits;
  if (rounding == Rounding::nearest || !may_be_coarse) {
    return rounder.template round_all<false>(values, values, n);
  }
  if (rounding == Rounding::coarse) return rounder.template round_all<true>(values, values, n);
  rounder.round_and_hold(values, n);
}

template void round_values<float>(const MantissaGrid<float>&, Rounding, std::optional<float>,
                                  float*, std::size_t);
template void round_values<double>(const MantissaGrid<double>&, Rounding, std::optional<double>,
                                   double*, std::size_t);

}  // namespace tailrace
