// Declarations that the C++ library of Debian's emscripten 3.1.6 lacks. scripts/build-javascript
// includes this file before every source.

#pragma once

#include <bit>
#include <charconv>
#include <version>

#if !defined(__cpp_lib_bit_cast)
// The sources expect both in namespace std. NOLINTBEGIN(cert-dcl58-cpp)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
/// Declared without a definition: the texts that need it (describe()) are not part of the module.
/// The linker rejects a module that contains them.
to_chars_result to_chars(char* first, char* last, double value, chars_format format, int precision);
}  // namespace std
// NOLINTEND(cert-dcl58-cpp)
#endif
