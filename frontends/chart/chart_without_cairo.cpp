// Replacement of the chart functions in a build without cairo.

#include "chart/chart.hpp"

namespace tailrace::chart {
namespace {

Status no_cairo() {
  return {Code::unsupported,
          "plots: this Tailrace was built without cairo, which draws plots; install libcairo2-dev "
          "and rebuild"};
}

}  // namespace

Status write_figure(const Figure& /*figure*/, const std::string& /*path*/) { return no_cairo(); }

Result<std::string> figure_svg(const Figure& /*figure*/) { return no_cairo(); }

}  // namespace tailrace::chart
