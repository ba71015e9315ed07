// Input tailrace: Tailrace's own reader, of HDF5 and netCDF-4 files with any filters (classic
// netCDF files are not HDF5: use --input pnetcdf). Threads decode chunks. With --transfer
// collective, one rank decodes a chunk that several ranks need.

#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <tailrace/reader.hpp>
#include <utility>

#include "climate/climate_input.hpp"
#include "common/variant.hpp"

namespace climate {
namespace {

class TailraceInput final : public ClimateInput {
 public:
  TailraceInput(const InputOptions& options, MPI_Comm comm)
      : options_(options),
        path_("/" + options.variable),
        reader_(tailrace::Reader::open(options.path, tailrace::mpi(comm),
                                       tailrace::Options(options.extra))) {
    const std::size_t number = reader_.find(path_);
    const tailrace::DatasetInfo info = reader_.dataset(number);
    if (info.dtype != TAILRACE_F32) {
      throw std::runtime_error("variable \"" + options.variable + "\" of \"" + options.path +
                               "\": expected single precision, got " + info.type_text);
    }
    grid_ = grid_of(info.shape, options.variable);
    fill_value_ = info.fill_value ? static_cast<float>(*info.fill_value)
                                  : std::numeric_limits<float>::quiet_NaN();
    reader_.open_index(std::span(&number, 1));
  }

  void read(const Part& part, float* values) override {
    PartBox box = box_of(grid_, part);
    const std::span<float> to(values, part.n_values(grid_));
    tailrace::Selection slab{std::move(box.start), std::move(box.count)};
    if (options_.transfer == "collective") {
      reader_.read_all(path_, slab, to);
    } else {
      reader_.read(path_, slab, to);
    }
  }

  void close() override { reader_.close(); }

 private:
  InputOptions options_;
  std::string path_;
  tailrace::Reader reader_;
};

}  // namespace

std::unique_ptr<ClimateInput> open_input(const InputOptions& options, MPI_Comm comm) {
  return std::make_unique<TailraceInput>(options, comm);
}

}  // namespace climate

const char* app::linked_suffix() { return ""; }
