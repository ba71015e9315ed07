// --netcdf and --dims.

#include "netcdf_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "core/options.hpp"

namespace tailrace::cli {

void add_netcdf_options(CLI::App* sub, NetcdfArguments& netcdf) {
  sub->add_flag("--netcdf", netcdf.wanted,
                "Make the output a netCDF-4 file with named dimensions, whatever the input is: "
                "those of --dims, else dim_LENGTH, shared by equal lengths of a group. netCDF "
                "inputs keep their own without being asked.")
      ->group("Output");
  // One value for each mention: a list must not swallow the inputs that follow it.
  sub->add_option("--dims", netcdf.dimensions,
                  "Names of the dimensions of fields that match, slowest first, with --netcdf: "
                  "--dims 'temperature=time,y,x' or --dims '*=z,y,x'. A one-dimensional field of "
                  "a dimension's name becomes its coordinate. Repeatable; a later one wins.")
      ->type_name("GLOB=NAME,...")
      ->group("Output")
      ->expected(1)
      ->take_all();
}

Result<std::vector<DimensionNames>> parse_dimension_names(const NetcdfArguments& netcdf) {
  std::vector<DimensionNames> all;
  if (!netcdf.dimensions.empty() && !netcdf.wanted) {
    return Status(Code::invalid_argument, "--dims names dimensions of --netcdf output");
  }
  for (const std::string& text : netcdf.dimensions) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return Status(Code::invalid_argument,
                    fmt::format("--dims '{}': expected GLOB=NAME,..., such as "
                                "'temperature=time,y,x'",
                                text));
    }
    DimensionNames names;
    names.pattern = text;
    names.matches = [glob = text.substr(0, equals)](std::string_view path) {
      return glob_matches(glob, path);
    };
    for (std::size_t at = equals + 1; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      names.names.push_back(text.substr(at, comma - at));
      if (names.names.back().empty()) {
        return Status(Code::invalid_argument, fmt::format("--dims '{}': a name is empty", text));
      }
      at = comma + 1;
    }
    all.push_back(std::move(names));
  }
  return all;
}

}  // namespace tailrace::cli
