// The page of `tailrace verify --report`: what compression has done to each variable, for who
// publishes it.

#pragma once

#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::report {

/// One HTML file that needs nothing else. The report holds each field's fidelity.
std::string verify_page(const verbs::VerifyReport& report);

}  // namespace tailrace::report
