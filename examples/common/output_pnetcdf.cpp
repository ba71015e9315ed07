// Output pnetcdf: the PnetCDF library, used as its documentation recommends.
//
// One record variable per field, over (step, ...), in a file of classic format with 64-bit data
// (CDF-5). A step is a record (--records off: steps are a dimension of fixed length). All
// definitions happen when the first step is written, because the fields are unknown before.
//
// This code does not mention compression: it ignores bounds and codecs of the options. If
// libtailrace_pnetcdf.so is loaded instead of libpnetcdf (LD_PRELOAD), the same program writes
// compressed netCDF-4.

#include <pnetcdf.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/arguments.hpp"
#include "common/step_output.hpp"
#include "common/variant.hpp"

namespace app {
namespace {

nc_type type_of(ValueType type) {
  switch (type) {
    case ValueType::f32: return NC_FLOAT;
    case ValueType::f64: return NC_DOUBLE;
    case ValueType::i32: return NC_INT;
    case ValueType::i64: return NC_INT64;
  }
  return NC_DOUBLE;
}

MPI_Datatype memory_type_of(ValueType type) {
  switch (type) {
    case ValueType::f32: return MPI_FLOAT;
    case ValueType::f64: return MPI_DOUBLE;
    case ValueType::i32: return MPI_INT;
    case ValueType::i64: return MPI_LONG_LONG_INT;
  }
  return MPI_DOUBLE;
}

class PnetcdfOutput final : public StepOutput {
 public:
  PnetcdfOutput(const OutputOptions& options, MPI_Comm comm)
      : StepOutput(options, comm), collective_(options.transfer == "collective") {
    if (!options.over_time) {
      throw Unavailable(
          "--output pnetcdf: not available with --over-time off: its files have no groups");
    }
  }

  void open() override {
    check(ncmpi_create(comm_, options_.path.c_str(), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL,
                       &file_),
          "creating it");
  }

  void close() override {
    if (file_ < 0) return;
    if (n_written_ == 0) check(ncmpi_enddef(file_), "ending its definitions");
    check(ncmpi_close(file_), "closing it");
    file_ = -1;
  }

 protected:
  void write_step() override {
    if (n_written_ == 0) define();
    if (!collective_) check(ncmpi_begin_indep_data(file_), "beginning independent writes");
    for (std::size_t i = 0; i < parts_.size(); ++i) write_part(i);
    if (!collective_) check(ncmpi_end_indep_data(file_), "ending independent writes");
    if (options_.fsync) check(ncmpi_sync(file_), "syncing it");
    totals_.n_steps += 1;
  }

 private:
  void check(int status, const std::string& what) const {
    if (status == NC_NOERR) return;
    throw std::runtime_error("PnetCDF, \"" + options_.path + "\": " + what + ": " +
                             ncmpi_strerror(status));
  }

  void define() {
    int step = -1;
    const MPI_Offset n_outputs = options_.n_steps / options_.every;
    check(ncmpi_def_dim(file_, "step_index", options_.records ? NC_UNLIMITED : n_outputs, &step),
          "defining the steps");
    std::map<std::string, int> dimensions;
    for (const FieldPart& part : parts_) {
      std::vector<int> ids{step};
      for (std::size_t axis = 0; axis < part.shape.size(); ++axis) {
        ids.push_back(dimension(part, axis, dimensions));
      }
      int variable = -1;
      check(ncmpi_def_var(file_, part.name.c_str(), type_of(part.type),
                          static_cast<int>(ids.size()), ids.data(), &variable),
            "defining " + part.name);
      variables_.push_back(variable);
    }
    check(ncmpi_enddef(file_), "ending its definitions");
  }

  /// Axes of equal length share a dimension if they have the same distance from the last axis.
  /// i_500 is a last axis of length 500, j_500 a last but one.
  int dimension(const FieldPart& part, std::size_t axis, std::map<std::string, int>& known) {
    const auto from_last = static_cast<char>(part.shape.size() - 1 - axis);
    const std::string name =
        std::string(1, static_cast<char>('i' + from_last)) + "_" + std::to_string(part.shape[axis]);
    const auto [entry, is_new] = known.try_emplace(name, -1);
    if (is_new) {
      check(ncmpi_def_dim(file_, name.c_str(), static_cast<MPI_Offset>(part.shape[axis]),
                          &entry->second),
            "defining " + name);
    }
    return entry->second;
  }

  void write_part(std::size_t index) {
    const FieldPart& part = parts_[index];
    std::vector<MPI_Offset> start{n_written_};
    std::vector<MPI_Offset> count{1};
    for (const std::uint64_t first : part.start) start.push_back(static_cast<MPI_Offset>(first));
    for (const std::uint64_t n : part.count) count.push_back(static_cast<MPI_Offset>(n));
    // Rank 0 has a scalar's value. The part of other ranks has no values, but also no dimension
    // with a count of 0.
    MPI_Offset n_values = 1;
    if (part.shape.empty()) count[0] = part.values == nullptr ? 0 : 1;
    for (const MPI_Offset n : count) n_values *= n;
    start.resize(part.shape.size() + 1);
    count.resize(part.shape.size() + 1);
    // Nothing to write: use the origin, because older versions require a start within the variable.
    if (n_values == 0) std::fill(start.begin() + 1, start.end(), 0);
    const MPI_Datatype type = memory_type_of(part.type);
    if (collective_) {
      check(ncmpi_put_vara_all(file_, variables_[index], start.data(), count.data(), part.values,
                               n_values, type),
            "writing " + part.name);
    } else if (n_values > 0) {
      check(ncmpi_put_vara(file_, variables_[index], start.data(), count.data(), part.values,
                           n_values, type),
            "writing " + part.name);
    }
    std::uint64_t n_bytes = bytes_of(part.type);
    for (const std::uint64_t extent : part.shape) n_bytes *= extent;
    totals_.raw_bytes += n_bytes;
    totals_.encoded_bytes += n_bytes;
  }

  bool collective_;
  int file_ = -1;
  std::vector<int> variables_;
};

}  // namespace

const char* linked_suffix() { return "-pnetcdf"; }

std::unique_ptr<StepOutput> make_linked_output(const OutputOptions& options, MPI_Comm comm) {
  return std::make_unique<PnetcdfOutput>(options, comm);
}

}  // namespace app
