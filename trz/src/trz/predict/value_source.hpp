// ValueSource: where a sampler gets its values, if they do not lie in memory one behind the other.
//
// A chunk that is still part of a larger array (StridedValues), or its pointwise transform, is
// looked at in short runs by row-major index, so that a sample copies only what it looks at.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/predict/pointwise.hpp"

namespace tailrace::trz {

/// The greatest number of values asked for at once.
inline constexpr std::size_t kSourceRunMax = 512;

template <class T>
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  /// n <= kSourceRunMax values in row-major order of the chunk from `first` on, all of them inside:
  /// in place, or copied to `buffer`. Thread-safe with a buffer each.
  virtual const T* run(std::size_t first, std::size_t n, T* buffer) const = 0;
  /// These will be asked for soon: runs lie far apart, and memory answers many requests at once.
  virtual void prefetch(std::size_t first, std::size_t n) const = 0;
};

/// Fetch what n values from `from` on touch.
template <class T>
inline void prefetch_values(const T* from, std::size_t n) {
  constexpr std::size_t line = 64 / sizeof(T);
  for (std::size_t i = 0; i < n; i += line) __builtin_prefetch(from + i);
  __builtin_prefetch(from + n - 1);
}

/// A box inside a larger array. T is of its element's width.
template <class T>
class StridedSource final : public ValueSource<T> {
 public:
  explicit StridedSource(const StridedValues& values)
      : values_(reinterpret_cast<const T*>(values.data)) {
    // Dimensions that follow each other in memory are one.
    for (std::size_t d = values.shape.size(); d > 0; --d) {
      const auto count = static_cast<std::size_t>(values.shape[d - 1]);
      const auto stride = static_cast<std::size_t>(values.strides[d - 1]);
      if (count == 1) continue;
      if (axes_.empty() ? stride == 1 : stride == axes_.back().count * axes_.back().stride) {
        if (axes_.empty()) axes_.push_back({1, 1});
        axes_.back().count *= count;
      } else {
        if (axes_.empty()) axes_.push_back({1, 1});
        axes_.push_back({count, stride});
      }
    }
    if (axes_.empty()) axes_.push_back({1, 1});
  }

  const T* run(std::size_t first, std::size_t n, T* buffer) const override {
    const std::size_t in_memory = axes_[0].count;
    std::size_t n_here = in_memory - first % in_memory;
    if (n <= n_here) return values_ + place_of(first);
    for (std::size_t done = 0; done < n; n_here = in_memory) {
      n_here = std::min(n_here, n - done);
      std::memcpy(buffer + done, values_ + place_of(first + done), n_here * sizeof(T));
      done += n_here;
    }
    return buffer;
  }
  void prefetch(std::size_t first, std::size_t n) const override {
    prefetch_values(values_ + place_of(first),
                    std::min(n, axes_[0].count - first % axes_[0].count));
  }

 private:
  struct Axis {
    std::size_t count;
    std::size_t stride;
  };
  std::size_t place_of(std::size_t index) const {
    std::size_t place = 0;
    for (std::size_t k = 0; k + 1 < axes_.size(); ++k) {
      place += index % axes_[k].count * axes_[k].stride;
      index /= axes_[k].count;
    }
    return place + index * axes_.back().stride;
  }

  const T* values_;
  std::vector<Axis> axes_;  ///< Fastest first; the first has stride 1.
};

/// The y of another source's values (pointwise.hpp). A value without one takes that of the value
/// before it within the run.
template <class T, class Y>
class PointwiseSource final : public ValueSource<Y> {
 public:
  PointwiseSource(const ValueSource<T>& values, const PointwisePlan& plan, const T* fill, Isa isa)
      : values_(values), plan_(plan), fill_(fill), isa_(isa) {}

  const Y* run(std::size_t first, std::size_t n, Y* buffer) const override {
    T copied[kSourceRunMax];
    Y y[kSourceRunMax + kSlack];
    std::uint8_t signs[kSourceRunMax / 8 + kSlack];
    std::uint64_t marks[kSourceRunMax / 64];
    PatchMap patches(marks, n);
    pointwise_forward(values_.run(first, n, copied), n, plan_, fill_, y, signs, patches, isa_);
    std::memcpy(buffer, y, n * sizeof(Y));
    return buffer;
  }
  void prefetch(std::size_t first, std::size_t n) const override { values_.prefetch(first, n); }

 private:
  static constexpr std::size_t kSlack = 64;
  const ValueSource<T>& values_;
  PointwisePlan plan_;
  const T* fill_;
  Isa isa_;
};

}  // namespace tailrace::trz
