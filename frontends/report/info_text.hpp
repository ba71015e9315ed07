// Output of `tailrace info` and of tailrace.info in Python.

#pragma once

#include <string>

#include "verbs/file_info.hpp"

namespace tailrace::report {

/// One screen about the file, then the chunks of the fields that the request names.
std::string info_text(const verbs::InfoReport& report);

}  // namespace tailrace::report
