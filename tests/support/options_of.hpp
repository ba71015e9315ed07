// File options from the text that a user writes.

#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/option_table.hpp"

namespace tailrace::test {

/// Parses `text` ("key=value ..."); all other options have their defaults. Fails the test if `text`
/// is refused.
inline FileOptions options_of(const std::string& text) {
  FileOptions options;
  EXPECT_TRUE(apply_file_options(text, options).ok()) << text;
  return options;
}

}  // namespace tailrace::test
