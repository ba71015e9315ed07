// What `tailrace repack --netcdf` asks of dimensions, beside command_line.cpp for its length.

#pragma once

#include <string>
#include <vector>

#include "netcdf/netcdf_dimension_names.hpp"
#include "core/status.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name.
class App;
}

namespace tailrace::cli {

struct NetcdfArguments {
  bool wanted = false;
  std::vector<std::string> dimensions;  ///< "GLOB=time,y,x"; later ones win.
};

/// Add --netcdf and --dims to a subcommand; they write into `netcdf`, which must outlive it.
void add_netcdf_options(CLI::App* sub, NetcdfArguments& netcdf);

/// The names that --dims gives. @error invalid_argument  not of the form GLOB=NAME,..., or --dims
/// without --netcdf.
Result<std::vector<DimensionNames>> parse_dimension_names(const NetcdfArguments& netcdf);

}  // namespace tailrace::cli
