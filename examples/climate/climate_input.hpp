// ClimateInput: the input of the analyses examples/at and examples/matt.
//
// The input is one variable of single precision over (time, layer, lat, lon) or (time, layer,
// cell). Ranks read parts of it: some time steps of all layers of some lines. A line is the unit of
// summation: a row along lon, or kCellsOfLine neighbouring cells if the horizontal has one
// dimension.
//
// Implementations: climate_pnetcdf.cpp, which does not use Tailrace and reads compressed files only
// if another libpnetcdf is loaded instead of its own; climate_hdf5.cpp, the parallel HDF5;
// climate_tailrace.cpp.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace climate {

inline constexpr std::uint64_t kCellsOfLine = 256;

/// The grid of the variable.
struct Grid {
  std::uint64_t n_times = 0, n_layers = 0;
  std::uint64_t n_cells = 0;     ///< Cells of a layer.
  std::uint64_t line_cells = 0;  ///< Cells of every line except the last, which may be shorter.
  bool has_rows = false;         ///< True for four dimensions, false for three.

  std::uint64_t n_lines() const { return (n_cells + line_cells - 1) / line_cells; }
  /// Number of cells before line `line`, which may be n_lines().
  std::uint64_t cells_before(std::uint64_t line) const {
    return line < n_lines() ? line * line_cells : n_cells;
  }
};

/// A part to be read; its values are dense, in the order (time, layer, cell).
struct Part {
  std::uint64_t first_time = 0, n_times = 0;
  std::uint64_t first_line = 0, n_lines = 0;

  std::uint64_t n_cells(const Grid& grid) const {
    return grid.cells_before(first_line + n_lines) - grid.cells_before(first_line);
  }
  std::uint64_t n_values(const Grid& grid) const { return n_times * grid.n_layers * n_cells(grid); }
};

/// A part in the variable's own dimensions.
struct PartBox {
  std::vector<std::uint64_t> start, count;
};
PartBox box_of(const Grid& grid, const Part& part);

/// The grid of a variable with these lengths. Throws std::runtime_error unless they are three or
/// four.
Grid grid_of(const std::vector<std::uint64_t>& lengths, const std::string& variable);

struct InputOptions {
  std::string input = "tailrace";  ///< Or pnetcdf, hdf5.
  std::string path = "climate.nc";
  std::string variable = "temperature";
  std::string transfer = "collective";  ///< Or independent.
  std::string extra;                    ///< Options of Tailrace's reader.
};

/// Interface of an input. Failures are exceptions (std::runtime_error) that name file and variable.
class ClimateInput {
 public:
  virtual ~ClimateInput() = default;
  const Grid& grid() const { return grid_; }
  /// The value that marks missing values in addition to NaN; NaN if the variable has none.
  float fill_value() const { return fill_value_; }
  /// Reads one part into n_values floats; a rank may pass a part without times or lines.
  /// Collective.
  virtual void read(const Part& part, float* values) = 0;
  /// Collective.
  virtual void close() = 0;

 protected:
  Grid grid_;
  float fill_value_ = 0;
};

/// The input with which this executable is linked. Collective over `comm`.
std::unique_ptr<ClimateInput> open_input(const InputOptions& options, MPI_Comm comm);

}  // namespace climate
