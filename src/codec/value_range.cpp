// Value scan: least and greatest of what counts, and how many values are NaN, infinite or fill.

#include <algorithm>
#include <limits>

#include "codec/value_lanes.hpp"
#include "codec/verify.hpp"

namespace tailrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Values scanned before the lanes' counters are emptied; far below 2^31.
constexpr std::size_t kBlockValues = 1U << 16;

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
    // The rest, filled up with NaN to one vector.
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
  }
  return range;
}

}  // namespace

ValueRange::ValueRange() : least(kInfinity), greatest(-kInfinity) {}

void ValueRange::merge(const ValueRange& other) {
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
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

}  // namespace tailrace
