// Helpers of the tests of ArrayFile: short models, options, and a reference for random puts of many
// ranks.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "array/array_file.hpp"
#include "array/array_staging.hpp"
#include "array/element_runs.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"

namespace tailrace::test {

inline ArrayFileOptions array_options(const std::string& text) {
  ArrayFileOptions options;
  const Status applied = apply_glob_options(text, options);
  EXPECT_TRUE(applied.ok()) << applied.message();
  options.file.replace = true;
  options.file.sync = false;
  return options;
}

/// A model of one variable; a length of 0 is unlimited. Dimensions are called d0, d1, ...
inline NetcdfModel one_variable(ModelType type, const Shape& lengths,
                                const std::string& name = "v") {
  NetcdfModel model;
  model.netcdf4 = true;
  ModelVariable variable;
  variable.name = name;
  variable.type = type;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    variable.dimensions.push_back(d);
    model.dimensions.push_back({"d" + std::to_string(d), 0, lengths[d], lengths[d] == 0, false});
  }
  model.variables.push_back(variable);
  return model;
}

inline std::unique_ptr<ArrayFile> created(std::unique_ptr<Comm> comm, const std::string& path,
                                          const ArrayFileOptions& options) {
  Result<std::unique_ptr<ArrayFile>> file = ArrayFile::create(std::move(comm), path, options);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(*file) : nullptr;
}

inline std::unique_ptr<ArrayFile> opened(std::unique_ptr<Comm> comm, const std::string& path,
                                         ArrayFile::Access access,
                                         const ArrayFileOptions& options) {
  Result<std::unique_ptr<ArrayFile>> file = ArrayFile::open(std::move(comm), path, access, options);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(*file) : nullptr;
}

template <class T>
Status put_values(ArrayFile& file, std::size_t variable, const Slab& slab,
                  const std::vector<T>& values) {
  return file.put(variable, slab, std::as_bytes(std::span(values)));
}

template <class T>
Status put_values(ArrayFile& file, std::size_t variable, const ElementRuns& runs,
                  const std::vector<T>& values) {
  return file.put_runs(variable, runs, std::as_bytes(std::span(values)));
}

template <class T>
std::vector<T> get_values(ArrayFile& file, std::size_t variable, const Slab& slab) {
  std::vector<T> values(slab.n_elements());
  const Status got = file.get(variable, slab, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(got.ok()) << got.message();
  return values;
}

#define EXPECT_OK(expression)                             \
  do {                                                    \
    const Status expect_ok_ = (expression);               \
    EXPECT_TRUE(expect_ok_.ok()) << expect_ok_.message(); \
  } while (false)

/// A random slab within `shape`, strided or not; it has an element unless `shape` is empty.
inline Slab random_slab(const Shape& shape, std::mt19937& random) {
  Slab slab;
  const bool strided = random() % 3 == 0;
  for (const std::uint64_t extent : shape) {
    const std::uint64_t start = random() % extent;
    const std::uint64_t stride = strided ? 1 + random() % 4 : 1;
    const std::uint64_t most = (extent - 1 - start) / stride + 1;
    slab.start.push_back(start);
    slab.count.push_back(1 + random() % most);
    slab.stride.push_back(stride);
  }
  if (!strided) slab.stride.clear();
  return slab;
}

/// One or more runs of up to 5 elements of `shape`, in random order and usually not adjacent.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> random_runs(const Shape& shape,
                                                                        std::mt19937& random) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  const std::uint64_t end = n_elements(shape);
  for (std::uint64_t at = random() % std::min<std::uint64_t>(end, 4); at < end;) {
    const std::uint64_t n = std::min<std::uint64_t>(end - at, 1 + random() % 5);
    runs.emplace_back(at, n);
    at += n + random() % 7;
  }
  std::shuffle(runs.begin(), runs.end(), random);
  if (random() % 8 == 0) runs.push_back(runs.front());
  return runs;
}

/// True if a variable of these lengths (0: unlimited) accepts runs: only its first dimension may
/// grow.
inline bool runs_serve(const Shape& lengths) {
  return !lengths.empty() && std::find(lengths.begin() + 1, lengths.end(), 0) == lengths.end();
}

inline ElementRuns runs_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs) {
  ElementRuns runs;
  for (const auto& [first, n] : pairs) runs.add(first, n);
  return runs;
}

/// Expected values of a variable. Each element has the value of the last flush, and the last value
/// that each rank has put since then, any of which may win.
template <class T>
class ReferenceArray {
 public:
  ReferenceArray(Shape shape, T fill) : shape_(std::move(shape)) {
    elements_.resize(n_elements(shape_), {fill, {}});
  }
  /// Copies the elements into a larger shape.
  void grow(const Shape& shape, T fill) {
    ReferenceArray larger(shape, fill);
    for_each_position(whole_box(shape_), [&](const Shape& at) {
      larger.elements_[larger.index(at)] = elements_[index(at)];
    });
    *this = larger;
  }
  void put(int rank, const Slab& slab, const std::vector<T>& values) {
    std::size_t i = 0;
    for_each(slab, [&](std::size_t e) {
      std::erase_if(elements_[e].staged, [&](const auto& one) { return one.first == rank; });
      elements_[e].staged.emplace_back(rank, values[i++]);
    });
  }
  /// Puts runs of elements.
  void put(int rank, const ElementRuns& runs, const std::vector<T>& values) {
    const T* from = values.data();
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::uint64_t first = runs.firsts[r];
      for_each_box_of_run(whole_box(shape_), first, first + runs.counts[r], [&](const Box& box) {
        put(rank, Slab::of(box), std::vector<T>(from, from + box.n_elements()));
        from += box.n_elements();
      });
    }
  }
  /// Values that `rank` must read before a flush: its own staged values.
  std::vector<T> seen_by(int rank, const Slab& slab) const {
    std::vector<T> values;
    for_each(slab, [&](std::size_t e) {
      T value = elements_[e].value;
      for (const auto& [who, staged] : elements_[e].staged) {
        if (who == rank) value = staged;
      }
      values.push_back(value);
    });
    return values;
  }
  /// Number of `values` that the flush cannot have produced. The reference then adopts `values`.
  std::size_t n_wrong_after_flush(const std::vector<T>& values) {
    std::size_t n_wrong = 0;
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      bool right = elements_[e].staged.empty() && same(elements_[e].value, values[e]);
      for (const auto& [who, staged] : elements_[e].staged) {
        right = right || same(staged, values[e]);
      }
      n_wrong += right ? 0 : 1;
      elements_[e] = {values[e], {}};
    }
    return n_wrong;
  }
  const Shape& shape() const { return shape_; }

 private:
  struct Element {
    T value;
    std::vector<std::pair<int, T>> staged;
  };
  static bool same(T a, T b) { return std::memcmp(&a, &b, sizeof a) == 0; }
  std::size_t index(const Shape& at) const {
    std::size_t i = 0;
    for (std::size_t d = 0; d < at.size(); ++d) i = i * shape_[d] + at[d];
    return i;
  }
  template <class Visit>
  void for_each(const Slab& slab, Visit&& visit) const {
    for_each_position({Shape(slab.rank(), 0), slab.count}, [&](const Shape& step) {
      Shape at = step;
      for (std::size_t d = 0; d < at.size(); ++d) {
        at[d] = slab.start[d] + step[d] * slab.stride_of(d);
      }
      visit(index(at));
    });
  }

  Shape shape_;
  std::vector<Element> elements_;
};

}  // namespace tailrace::test
