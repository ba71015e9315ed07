// What NetcdfLayout needs to know of an opened file beside its model: how it is laid out.

#pragma once

#include <string>
#include <vector>

#include "core/status.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {

/// A model and where its dimensions and ties lie in HDF5.
struct NetcdfFile {
  NetcdfModel model;
  std::vector<int> dimension_ids;        ///< As _Netcdf4Coordinates spells dimensions.
  std::vector<std::string> scale_paths;  ///< Per dimension; empty: anonymous.
  std::vector<bool> tied;                ///< Per variable: it has a DIMENSION_LIST.
};

/// read_netcdf_model() with the layout. Call with HDF5 locked.
Result<NetcdfFile> read_netcdf_file(hid_t file);

}  // namespace tailrace
