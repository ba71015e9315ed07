// tailrace verify --concat: did every element of every input arrive in the output, and nothing
// else?

#pragma once

#include "commands.hpp"

namespace tailrace::cli {

/// Collective. Exit code: 0 the output is the concatenation, 1 it differs, 2 and 3 as elsewhere.
int run_verify_concat(Session& session, const VerifyArguments& arguments);

}  // namespace tailrace::cli
