// Output of `tailrace verify` and of tailrace.verify in Python: a table, and the offending values.

#pragma once

#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::report {

/// Bound of a field's errors and the largest error's share of it, as the table shows them.
std::string verify_bound_text(const verbs::VerifyTask& task);
std::string verify_share_text(const verbs::VerifiedField& field);

std::string verify_text(const verbs::VerifyReport& report);

}  // namespace tailrace::report
