// What `tailrace verify` prints, and tailrace.verify of Python shows: a table, and the offending
// values.

#pragma once

#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::report {

std::string verify_text(const verbs::VerifyReport& report);

}  // namespace tailrace::report
