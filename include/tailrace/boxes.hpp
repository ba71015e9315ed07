// Shapes, boxes and views of memory of Tailrace's C++ API. Included by tailrace.hpp.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tailrace/tailrace.h>
#include <tailrace/cpp17.hpp>

namespace tailrace {
inline namespace api {

/// Extents or positions per dimension, slowest first.
using Shape = std::vector<std::uint64_t>;

/// Argument type for one number per dimension, of any integral type: {i, 0, n}, a Shape, a
/// std::vector<int>, a std::array, a span. A negative number fails where it is used.
class Extents {
 public:
  struct Extent {
    std::uint64_t value;
    template <class Number, Require<std::is_integral_v<Number>> = 0>
    Extent(Number number) : value(static_cast<std::uint64_t>(number)) {}
  };

  Extents() = default;
  Extents(std::initializer_list<Extent> extents) {
    for (const Extent& extent : extents) values_.push_back(extent.value);
  }
  Extents(Shape extents) : values_(std::move(extents)) {}
  template <class Numbers, Require<is_range<const Numbers> && !std::is_same_v<Numbers, Shape>> = 0,
            Require<std::is_integral_v<ValueOf<const Numbers>>> = 0>
  Extents(const Numbers& numbers) {
    for (const auto number : numbers) values_.push_back(static_cast<std::uint64_t>(number));
  }

  const Shape& shape() const& { return values_; }
  Shape shape() && { return std::move(values_); }

 private:
  Shape values_;
};

/// A dimension of a field: its name and its length, {"x", nx}.
struct Dimension {
  template <class Number, Require<std::is_integral_v<Number>> = 0>
  Dimension(std::string dimension_name, Number n)
      : name(std::move(dimension_name)), length(static_cast<std::uint64_t>(n)) {}
  std::string name;
  std::uint64_t length;
};

/// Argument type for the shape of a field: extents, or dimensions with names, slowest first:
/// {{"z", nz}, {"y", ny}, {"x", nx}}, a std::vector<Dimension>.
class Dimensions : public Extents {
 public:
  using Extents::Extents;
  Dimensions() = default;
  Dimensions(Extents extents) : Extents(std::move(extents)) {}
  Dimensions(std::initializer_list<Dimension> dimensions)
      : Dimensions(Span<const Dimension>(dimensions.begin(), dimensions.size())) {}
  Dimensions(const std::vector<Dimension>& dimensions)
      : Dimensions(Span<const Dimension>(dimensions)) {}

  const std::vector<std::string>& names() const { return names_; }  ///< Empty: no names.

 private:
  explicit Dimensions(Span<const Dimension> dimensions)
      : Extents(lengths_of(dimensions)), names_(names_of(dimensions)) {}
  static Shape lengths_of(Span<const Dimension> dimensions) {
    Shape lengths;
    for (const Dimension& dimension : dimensions) lengths.push_back(dimension.length);
    return lengths;
  }
  static std::vector<std::string> names_of(Span<const Dimension> dimensions) {
    std::vector<std::string> names;
    for (const Dimension& dimension : dimensions) names.push_back(dimension.name);
    return names;
  }

  std::vector<std::string> names_;
};

/// A rectangular part of a field: {{first row, first column}, {rows, columns}}; in one dimension
/// also {first, count}. The functions say which numbers they take. All take integers of any type;
/// the put that gets a box with negative numbers reports them.
struct Box {
  Shape start;
  Shape count;

  Box() = default;
  Box(Extents box_start, Extents box_count)
      : start(std::move(box_start).shape()), count(std::move(box_count).shape()) {}
  /// A template, so that Box({}, {}) selects the other constructor: the one box of a scalar.
  template <class First, class Count,
            Require<std::is_integral_v<First> && std::is_integral_v<Count>> = 0>
  Box(First first, Count n)
      : start{static_cast<std::uint64_t>(first)}, count{static_cast<std::uint64_t>(n)} {}

  /// Box with its first element and its number of elements per dimension, like the constructor.
  static Box from_start_count(Extents start, Extents count) {
    return Box(std::move(start), std::move(count));
  }
  /// Box with its first element and its end, one past the last element, per dimension.
  static Box from_start_end(Extents start, const Extents& end) {
    Box box(std::move(start), end);
    for (std::size_t d = 0; d < box.count.size() && d < box.start.size(); ++d) {
      box.count[d] -= box.start[d];
    }
    return box;
  }

  std::uint64_t n_elements() const {
    std::uint64_t product = 1;
    for (const std::uint64_t extent : count) product *= extent;
    return product;
  }
};

/// Element type of a field: float, double, and all integers except bool.
template <class T>
inline constexpr bool is_element = (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                    std::is_integral_v<T>)&&!std::is_same_v<T, bool> &&
                                   std::is_same_v<T, std::remove_cv_t<T>>;
/// std::mdspan and classes like it: strided arrays that do not own their values.
template <class Array, class = void>
inline constexpr bool is_strided_array = false;
template <class Array>
inline constexpr bool is_strided_array<
    Array, std::void_t<typename Array::value_type,
                       decltype(std::size_t(std::declval<const Array&>().rank()),
                                std::uint64_t(std::declval<const Array&>().extent(0)),
                                std::int64_t(std::declval<const Array&>().stride(0)),
                                typename Array::value_type(
                                    *std::declval<const Array&>().data_handle()))>> = true;

/// Values in memory that belong to a box: a part of an array, for example the interior of a block
/// with a halo, or one member of an array of structs. Made by view(). It does not own the values.
/// The put or read that gets the view reports errors of its functions. @tparam T  const for values
/// that may only be put
template <class T>
class View {
 public:
  /// View an array of any order.
  /// @param first    the view's first value.
  /// @param strides  values from one to the next along each dimension; may be negative.
  View(T* first, Shape extents, std::vector<std::int64_t> strides)
      : first_(first), extents_(std::move(extents)), strides_(std::move(strides)) {
    if (strides_.size() == extents_.size()) return;
    fail(std::to_string(strides_.size()) + " strides for " + std::to_string(extents_.size()) +
         " dimensions");
  }
  /// View a dense, row-major array.
  View(T* first, Shape extents)
      : first_(first), extents_(std::move(extents)), strides_(extents_.size()) {
    std::int64_t stride = 1;
    for (std::size_t d = extents_.size(); d-- > 0;) {
      strides_[d] = stride;
      stride *= static_cast<std::int64_t>(extents_[d]);
    }
  }

  /// The view without `n` values at both ends of every dimension.
  View interior(std::uint64_t n) const { return interior(Shape(extents_.size(), n)); }
  /// The view without a halo of these widths, one for each dimension.
  View interior(const Extents& widths) const {
    Shape count = extents_;
    for (std::size_t d = 0; d < count.size() && d < widths.shape().size(); ++d) {
      count[d] -= std::min(count[d], 2 * widths.shape()[d]);
    }
    return sub(widths, count);
  }
  /// A part of the view.
  View sub(const Extents& start, const Extents& count) const {
    View part = *this;
    const Shape& from = start.shape();
    const Shape& n = count.shape();
    if (from.size() != extents_.size() || n.size() != extents_.size()) {
      part.fail("a part of " + std::to_string(from.size()) + " and " + std::to_string(n.size()) +
                " dimensions, the view has " + std::to_string(extents_.size()));
      return part;
    }
    for (std::size_t d = 0; d < n.size(); ++d) {
      if (from[d] > extents_[d] || n[d] > extents_[d] - from[d]) {
        part.fail("a part of " + std::to_string(n[d]) + " values from " + std::to_string(from[d]) +
                  " along dimension " + std::to_string(d) + ", which has " +
                  std::to_string(extents_[d]));
        return part;
      }
      part.extents_[d] = n[d];
      if (n[d] > 0) part.first_ += static_cast<std::int64_t>(from[d]) * strides_[d];
    }
    return part;
  }

  T* first() const { return first_; }
  const Shape& extents() const { return extents_; }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  /// Bytes from one value to the next along each dimension.
  std::vector<std::int64_t> byte_strides() const {
    std::vector<std::int64_t> bytes = strides_;
    for (std::int64_t& stride : bytes) stride *= static_cast<std::int64_t>(sizeof(T));
    return bytes;
  }
  const std::string& error() const { return error_; }  ///< Empty: none.
  /// Why the view is not that of a box with these counts; empty if it is.
  std::string misfit(const Shape& counts) const {
    if (!error_.empty() || extents_ == counts) return error_;
    return "the view has " + extents_text(extents_) + " values, the box " + extents_text(counts);
  }
  /// Record an error, which the next put or read reports.
  void fail(const std::string& why) {
    if (error_.empty()) error_ = "the view is wrong: " + why;
  }

 private:
  static std::string extents_text(const Shape& extents) {
    std::string text;
    for (const std::uint64_t extent : extents) {
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text.empty() ? "1" : text;
  }

  T* first_;
  Shape extents_;
  std::vector<std::int64_t> strides_;
  std::string error_;
};

/// View a dense, row-major array of these extents.
///   field.put(box, tailrace::view(u.data(), {nz + 2, ny + 2, nx + 2}).interior(1));
template <class T, Require<is_element<std::remove_const_t<T>>> = 0>
View<T> view(T* values, const Extents& extents) {
  return View<T>(values, extents.shape());
}
/// View an array of any order; see View. One member of an array of structs:
///   tailrace::view(&atoms[0].x, {n}, {sizeof(Atom) / sizeof(double)});
template <class T, Require<is_element<std::remove_const_t<T>>> = 0>
View<T> view(T* first, const Extents& extents, std::vector<std::int64_t> strides) {
  return View<T>(first, extents.shape(), std::move(strides));
}
/// View the values of a vector, array or span. A temporary does not compile.
template <class Range, Require<is_contiguous<Range> && !is_temporary<Range>> = 0>
auto view(Range&& values, const Extents& extents) {
  using T = std::remove_pointer_t<decltype(std::data(values))>;
  View<T> whole(std::data(values), extents.shape());
  std::uint64_t n_expected = 1;
  for (const std::uint64_t extent : extents.shape()) n_expected *= extent;
  if (n_expected != std::size(values)) {
    whole.fail("its extents need " + std::to_string(n_expected) + " values, " +
               std::to_string(std::size(values)) + " were given");
  }
  return whole;
}
template <class Range, Require<is_temporary<Range>> = 0>
void view(Range&& values, const Extents& extents) = delete;
/// View a std::mdspan.
template <class Array, Require<is_strided_array<Array>> = 0>
auto view(const Array& array) {
  Shape extents(array.rank());
  std::vector<std::int64_t> strides(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    extents[d] = static_cast<std::uint64_t>(array.extent(d));
    strides[d] = static_cast<std::int64_t>(array.stride(d));
  }
  using T = std::remove_reference_t<decltype(*array.data_handle())>;
  return View<T>(array.data_handle(), std::move(extents), std::move(strides));
}

template <class T, Require<is_element<T>> = 0>
constexpr tailrace_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return TAILRACE_F32;
  if constexpr (std::is_same_v<T, double>) return TAILRACE_F64;
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return is_signed ? TAILRACE_I8 : TAILRACE_U8;
  if constexpr (sizeof(T) == 2) return is_signed ? TAILRACE_I16 : TAILRACE_U16;
  if constexpr (sizeof(T) == 4) return is_signed ? TAILRACE_I32 : TAILRACE_U32;
  return is_signed ? TAILRACE_I64 : TAILRACE_U64;
}

}  // namespace api
}  // namespace tailrace
