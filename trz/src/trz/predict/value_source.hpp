// ValueSource: access to sampled values that are not contiguous in memory.
//
// A sampler reads short runs, by row-major index, of a chunk that is part of a larger array
// (StridedValues), or of its pointwise transform. So a sample copies only the values that it reads.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/predict/pointwise.hpp"

namespace tailrace::trz {

/// Maximum number of values per request.
inline constexpr std::size_t kSourceRunMax = 512;

template <class T>
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  /// Return n <= kSourceRunMax values in row-major order of the chunk from `first` on, all inside
  /// the chunk: a pointer to them in place, or to a copy in `buffer`. Thread-safe if each thread
  /// has a buffer.
  virtual const T* run(std::size_t first, std::size_t n, T* buffer) const = 0;
  /// Prefetch values of a later run(). Runs lie far apart, and memory serves many requests in
  /// parallel.
  virtual void prefetch(std::size_t first, std::size_t n) const = 0;
};

/// Prefetch the cache lines of n values from `from` on.
template <class T>
inline void prefetch_values(const T* from, std::size_t n) {
  constexpr std::size_t line = 64 / sizeof(T);
  for (std::size_t i = 0; i < n; i += line) __builtin_prefetch(from + i);
  __builtin_prefetch(from + n - 1);
}

/// Source for a box inside a larger array. T has the size of the array's elements.
template <class T>
class StridedSource final : public ValueSource<T> {
 public:
  explicit StridedSource(const StridedValues& values)
      : values_(reinterpret_cast<const T*>(values.data)) {
    // Merge dimensions that are contiguous in memory.
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

/// Source of the y of another source's values (pointwise.hpp). A value without a y takes that of
/// the previous value in the run.
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
