// What the C++ library of Debian's emscripten 3.1.6 lacks. scripts/build-javascript includes this
// file before every source.

#pragma once

#include <bit>
#include <charconv>
#include <version>

#if !defined(__cpp_lib_bit_cast)
// Both stand where the sources look for them. NOLINTBEGIN(cert-dcl58-cpp)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
/// Without a definition: the texts that need it (describe()) are no part of the module, and the
/// linker refuses a module in which they are.
to_chars_result to_chars(char* first, char* last, double value, chars_format format, int precision);
}  // namespace std
// NOLINTEND(cert-dcl58-cpp)
#endif
