// Page of --report: tables and plots of a run in one self-contained HTML file.

#pragma once

#include <string>

#include "sweep.hpp"

namespace tailrace::bench {

/// Check that this build can draw plots. @error unsupported  built without cairo.
Status can_draw();

/// The complete page, from rank 0's sweep. Not collective. @error  like chart::figure_svg()
Result<std::string> report_page(const Sweep& sweep, const BenchOptions& options,
                                const Workload& work);

}  // namespace tailrace::bench
