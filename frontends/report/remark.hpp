// Remarks on stderr of the libraries that are preloaded or linked into a program: one line each.

#pragma once

#include <cstdio>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "trz/base/printable.hpp"

namespace tailrace::report {

/// Print "tailrace: " and the parts on stderr, on one line whatever the names contain. Thread-safe.
inline void print_remark(std::initializer_list<std::string_view> parts) noexcept {
  std::string line;
  try {
    for (const std::string_view part : parts) line += part;
    line = printable(std::move(line));
  } catch (const std::exception&) {
    line.clear();
  }
  std::fprintf(stderr, "tailrace: %s\n",
               line.empty() ? "not enough memory to print a remark" : line.c_str());
}

}  // namespace tailrace::report
