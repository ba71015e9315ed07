// File options as a user writes them.

#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/option_table.hpp"

namespace tailrace::test {

/// What `text` ("key=value ...") asks for; all else is default. A text that is not taken fails the
/// test.
inline FileOptions options_of(const std::string& text) {
  FileOptions options;
  EXPECT_TRUE(apply_file_options(text, options).ok()) << text;
  return options;
}

}  // namespace tailrace::test
