// The version of Tailrace, as recorded in the files that it writes. CMakeLists.txt and tailrace.h
// have the same number; a unit test compares them.

#pragma once

#include <string_view>

namespace tailrace {

inline constexpr std::string_view version_text = "0.1.0";

}  // namespace tailrace
