// See object_names.hpp.

#include "pnetcdf/object_names.hpp"

#include <pnetcdf.h>

#include <cctype>
#include <cstddef>
#include <cstring>

namespace tailrace::pnetcdf {
namespace {

/// Bytes of the UTF-8 character that `text` starts with, its shortest form; 0: it is none.
std::size_t utf8_bytes(const char* text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(text[i]));
  };
  if (byte(0) < 0x80) return 1;
  const std::size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;  // a zero at the end of the text stops here, too
  }
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) > 0x9f;
  const bool beyond = byte(0) == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : n;
}

}  // namespace

int check_sought_name(const char* name) {
  if (name == nullptr || *name == '\0') return NC_EBADNAME;
  return std::strlen(name) > NC_MAX_NAME ? NC_EMAXNAME : NC_NOERR;
}

int check_name(const char* name) {
  const int status = check_sought_name(name);
  if (status != NC_NOERR) return status;
  const auto first = static_cast<unsigned char>(name[0]);
  if (first < 0x80 && std::isalnum(first) == 0 && first != '_') return NC_EBADNAME;
  for (const char* at = name; *at != '\0';) {
    const auto byte = static_cast<unsigned char>(*at);
    const std::size_t n = utf8_bytes(at);
    if (n == 0 || byte < ' ' || byte == 0x7f || byte == '/') return NC_EBADNAME;
    at += n;
  }
  return name[std::strlen(name) - 1] == ' ' ? NC_EBADNAME : NC_NOERR;
}

}  // namespace tailrace::pnetcdf
