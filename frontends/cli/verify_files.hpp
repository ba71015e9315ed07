// The comparison behind `tailrace verify` and tailrace.verify of Python, without its printing.

#pragma once

#include "commands.hpp"
#include "verify_report.hpp"
#include "verify_task.hpp"

namespace tailrace::cli {

/// Open both files, pair their fields by path and compare them. Collective; the same Status on
/// every rank. Findings at rank 0 are those of all ranks, elsewhere the rank's own.
/// @error what kept the comparison from being made; that a bound is broken is no error.
Status verify_files(Session& session, const VerifyArguments& arguments,
                    const VerifyProgress& progress, VerifyOutcome& outcome);

}  // namespace tailrace::cli
