// The page of --report: tables and plots of a run in one HTML file that needs nothing else.

#pragma once

#include <string>

#include "sweep.hpp"

namespace tailrace::bench {

/// Whether plots can be drawn in this build. @error unsupported  built without cairo.
Status can_draw();

/// The whole page. Not collective; rank 0's sweep. @error as of chart::figure_svg.
Result<std::string> report_page(const Sweep& sweep, const BenchOptions& options,
                                const Workload& work);

}  // namespace tailrace::bench
