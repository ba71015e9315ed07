// Input pnetcdf: the PnetCDF library, used as its documentation recommends.
//
// This code does not mention compression. If libtailrace_pnetcdf.so is loaded instead of libpnetcdf
// (LD_PRELOAD), the same program reads compressed netCDF-4 files.

#include <pnetcdf.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "climate/climate_input.hpp"
#include "common/variant.hpp"

namespace climate {
namespace {

class PnetcdfInput final : public ClimateInput {
 public:
  PnetcdfInput(const InputOptions& options, MPI_Comm comm)
      : options_(options), collective_(options.transfer == "collective") {
    check(ncmpi_open(comm, options.path.c_str(), NC_NOWRITE, MPI_INFO_NULL, &file_), "opening");
    check(ncmpi_inq_varid(file_, options.variable.c_str(), &variable_), "finding the variable");
    nc_type type = NC_NAT;
    int n_dimensions = 0;
    check(ncmpi_inq_vartype(file_, variable_, &type), "its type");
    check(ncmpi_inq_varndims(file_, variable_, &n_dimensions), "its dimensions");
    if (type != NC_FLOAT) {
      throw std::runtime_error("variable \"" + options.variable + "\" of \"" + options.path +
                               "\": expected single precision");
    }
    std::vector<int> dimensions(static_cast<std::size_t>(n_dimensions));
    check(ncmpi_inq_vardimid(file_, variable_, dimensions.data()), "its dimensions");
    std::vector<std::uint64_t> lengths;
    for (const int dimension : dimensions) {
      MPI_Offset length = 0;
      check(ncmpi_inq_dimlen(file_, dimension, &length), "the length of a dimension");
      lengths.push_back(static_cast<std::uint64_t>(length));
    }
    grid_ = grid_of(lengths, options.variable);
    fill_value_ = std::numeric_limits<float>::quiet_NaN();
    float fill = 0;
    if (ncmpi_get_att_float(file_, variable_, "_FillValue", &fill) == NC_NOERR) fill_value_ = fill;
    if (!collective_) check(ncmpi_begin_indep_data(file_), "beginning independent reads");
  }

  void read(const Part& part, float* values) override {
    const PartBox box = box_of(grid_, part);
    const std::vector<MPI_Offset> start(box.start.begin(), box.start.end());
    const std::vector<MPI_Offset> count(box.count.begin(), box.count.end());
    if (collective_) {
      check(ncmpi_get_vara_float_all(file_, variable_, start.data(), count.data(), values),
            "reading");
    } else if (part.n_values(grid_) > 0) {
      check(ncmpi_get_vara_float(file_, variable_, start.data(), count.data(), values), "reading");
    }
  }

  void close() override {
    if (!collective_) check(ncmpi_end_indep_data(file_), "ending independent reads");
    check(ncmpi_close(file_), "closing");
  }

 private:
  void check(int status, const char* what) const {
    if (status == NC_NOERR) return;
    throw std::runtime_error("PnetCDF, \"" + options_.path + "\", variable \"" + options_.variable +
                             "\": " + what + ": " + ncmpi_strerror(status));
  }

  InputOptions options_;
  bool collective_;
  int file_ = -1;
  int variable_ = -1;
};

}  // namespace

std::unique_ptr<ClimateInput> open_input(const InputOptions& options, MPI_Comm comm) {
  return std::make_unique<PnetcdfInput>(options, comm);
}

}  // namespace climate

const char* app::linked_suffix() { return "-pnetcdf"; }
