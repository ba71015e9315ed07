// Parts of C++20's library that tailrace.hpp and reader.hpp use, for C++17. In C++20 they are the
// library's own.

#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <ranges>
#include <span>
#endif

namespace tailrace {
inline namespace api {

template <bool condition>
using Require = std::enable_if_t<condition, int>;

template <class Range>
using ValueOf =
    std::remove_cv_t<std::remove_reference_t<decltype(*std::begin(std::declval<Range&>()))>>;

template <class Range, class = void>
inline constexpr bool is_range = false;
template <class Range>
inline constexpr bool is_range<Range, std::void_t<decltype(std::end(std::declval<Range&>()))>> =
    true;

/// True for ranges of adjacent values that know their number.
template <class Range, class = void>
inline constexpr bool is_contiguous = false;
template <class Range>
inline constexpr bool is_contiguous<
    Range,
    std::void_t<decltype(std::data(std::declval<Range&>()), std::size(std::declval<Range&>()))>> =
    true;

#if __cplusplus >= 202002L
template <class T>
using Span = std::span<T>;

template <class Range>
inline constexpr bool is_view = std::ranges::borrowed_range<Range>;
#else
/// Contiguous values that another object owns; std::span in C++20.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}
  /// The values of a vector, an array or another range; of a temporary only to read them.
  template <class Range,
            Require<is_contiguous<Range> && !std::is_same_v<std::decay_t<Range>, Span> &&
                    (std::is_lvalue_reference_v<Range> || std::is_const_v<T>)> = 0,
            class Element = std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))>,
            Require<std::is_convertible_v<Element (*)[], T (*)[]>> = 0>
  constexpr Span(Range&& range) : data_(std::data(range)), size_(std::size(range)) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr std::size_t size_bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr Span subspan(std::size_t first) const { return {data_ + first, size_ - first}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// True for ranges whose values live on after them.
template <class Range>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<Span<T>> = true;
template <class Character, class Traits>
inline constexpr bool is_view<std::basic_string_view<Character, Traits>> = true;
#endif

/// True for a range that owns its values and is destroyed at the end of the statement, such as a
/// returned vector. @tparam Range  as a forwarding reference deduces it
template <class Range>
inline constexpr bool is_temporary =
    is_contiguous<Range> && !std::is_lvalue_reference_v<Range> && !is_view<std::remove_cv_t<Range>>;

/// True for a contiguous range of numbers other than T, which a Field<T> does not convert.
template <class Range, class T, class = void>
inline constexpr bool holds_another_type_than = false;
template <class Range, class T>
inline constexpr bool holds_another_type_than<Range, T, std::enable_if_t<is_contiguous<Range>>> =
    !std::is_same_v<T, std::byte> &&
    std::is_arithmetic_v<std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))>> &&
    !std::is_same_v<
        std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))>>, T>;

}  // namespace api
}  // namespace tailrace
