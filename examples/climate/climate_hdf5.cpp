// Input hdf5: the parallel HDF5 library, used as its documentation recommends; the comparison
// H_Original and H_Comp of Bicer et al. 2014. Filters other than HDF5's own come from plug-ins in
// HDF5_PLUGIN_PATH. Every rank that needs part of a chunk decodes it, on one thread.

#include <hdf5.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "climate/climate_input.hpp"
#include "common/variant.hpp"

namespace climate {
namespace {

class Hdf5Input final : public ClimateInput {
 public:
  Hdf5Input(const InputOptions& options, MPI_Comm comm) : options_(options) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    check(H5Pset_fapl_mpio(access, comm, MPI_INFO_NULL), "setting MPI-IO");
    file_ = check(H5Fopen(options.path.c_str(), H5F_ACC_RDONLY, access), "opening");
    H5Pclose(access);
    dataset_ =
        check(H5Dopen2(file_, options.variable.c_str(), H5P_DEFAULT), "finding the variable");
    const hid_t type = check(H5Dget_type(dataset_), "its type");
    const bool is_f32 = H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == sizeof(float);
    H5Tclose(type);
    if (!is_f32) {
      throw std::runtime_error("variable \"" + options.variable + "\" of \"" + options.path +
                               "\": expected single precision");
    }
    space_ = check(H5Dget_space(dataset_), "its shape");
    const int n_dimensions = check(H5Sget_simple_extent_ndims(space_), "its shape");
    std::vector<hsize_t> lengths(static_cast<std::size_t>(n_dimensions));
    check(H5Sget_simple_extent_dims(space_, lengths.data(), nullptr), "its shape");
    grid_ = grid_of({lengths.begin(), lengths.end()}, options.variable);
    transfer_ = H5Pcreate(H5P_DATASET_XFER);
    const bool collective = options.transfer == "collective";
    check(H5Pset_dxpl_mpio(transfer_, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
          "setting its transfers");
    read_fill_value();
  }

  void read(const Part& part, float* values) override {
    const PartBox box = box_of(grid_, part);
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    const hid_t memory =
        check(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "selecting");
    if (part.n_values(grid_) == 0) {
      check(H5Sselect_none(space_), "selecting");
      check(H5Sselect_none(memory), "selecting");
    } else {
      check(
          H5Sselect_hyperslab(space_, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          "selecting");
    }
    check(H5Dread(dataset_, H5T_NATIVE_FLOAT, memory, space_, transfer_, values), "reading");
    H5Sclose(memory);
  }

  void close() override {
    H5Pclose(transfer_);
    H5Sclose(space_);
    check(H5Dclose(dataset_), "closing");
    check(H5Fclose(file_), "closing");
  }

 private:
  /// Throws if an HDF5 call failed: ids and statuses are negative then.
  template <class Number>
  Number check(Number returned, const char* what) const {
    if (returned >= 0) return returned;
    throw std::runtime_error("HDF5, \"" + options_.path + "\", variable \"" + options_.variable +
                             "\": " + what + " failed");
  }

  void read_fill_value() {
    fill_value_ = std::numeric_limits<float>::quiet_NaN();
    if (H5Aexists(dataset_, "_FillValue") <= 0) return;
    const hid_t attribute = check(H5Aopen(dataset_, "_FillValue", H5P_DEFAULT), "its fill value");
    check(H5Aread(attribute, H5T_NATIVE_FLOAT, &fill_value_), "its fill value");
    H5Aclose(attribute);
  }

  InputOptions options_;
  hid_t file_ = -1, dataset_ = -1, space_ = -1, transfer_ = -1;
};

}  // namespace

std::unique_ptr<ClimateInput> open_input(const InputOptions& options, MPI_Comm comm) {
  return std::make_unique<Hdf5Input>(options, comm);
}

}  // namespace climate

const char* app::linked_suffix() { return "-hdf5"; }
