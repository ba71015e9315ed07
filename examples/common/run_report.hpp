// The report of a run: a table for people, and --json for programs.

#pragma once

#include <string>

#include "common/application.hpp"

namespace app {

/// Gathers the times of all ranks, prints the summary at rank 0 and, if requested, writes the
/// report file. Returns true if all checks passed. Collective. Times are means over the ranks,
/// except total_s of an iteration, which is the slowest rank's.
/// @param close_s  wall-clock seconds of this rank for closing the output after the last iteration:
/// time that no iteration could hide.
bool report_run(const std::string& program, const CommonOptions& common, const Run& run,
                double close_s);

}  // namespace app
