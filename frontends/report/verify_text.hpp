// What `tailrace verify` prints, and tailrace.verify of Python shows: a table, and the offending
// values.

#pragma once

#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::report {

/// What a field's errors are held to, and their share of it; as the table has them.
std::string verify_bound_text(const verbs::VerifyTask& task);
std::string verify_share_text(const verbs::VerifiedField& field);

std::string verify_text(const verbs::VerifyReport& report);

}  // namespace tailrace::report
