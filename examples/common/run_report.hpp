// What a run leaves behind: a table for people, and --json for programs.

#pragma once

#include <string>

#include "common/application.hpp"

namespace app {

/// Gather the times of all ranks, print the summary at rank 0 and write the report file, if one is
/// wanted. True if all checks passed. Collective.
/// Times are the mean over the ranks, but for total_s of an iteration: the slowest rank's.
/// @param close_s  wall-clock seconds of this rank in closing the output after the last iteration:
///                 what the output could hide behind no iteration.
bool report_run(const std::string& program, const CommonOptions& common, const Run& run,
                double close_s);

}  // namespace app
