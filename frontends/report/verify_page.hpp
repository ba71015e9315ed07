// Page of `tailrace verify --report`: the effect of compression on each variable, for authors who
// publish the data.

#pragma once

#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::report {

/// One self-contained HTML file. The report must hold each field's fidelity.
std::string verify_page(const verbs::VerifyReport& report);

}  // namespace tailrace::report
