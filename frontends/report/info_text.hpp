// What `tailrace info` prints, and tailrace.info of Python shows.

#pragma once

#include <string>

#include "verbs/file_info.hpp"

namespace tailrace::report {

/// One screen; then the chunks of the fields that were asked for.
std::string info_text(const verbs::InfoReport& report);

}  // namespace tailrace::report
