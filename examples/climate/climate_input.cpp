// Parts in the dimensions of the file.

#include "climate/climate_input.hpp"

#include <stdexcept>

namespace climate {

Grid grid_of(const std::vector<std::uint64_t>& lengths, const std::string& variable) {
  if (lengths.size() != 3 && lengths.size() != 4) {
    throw std::runtime_error("variable \"" + variable +
                             "\": expected (time, layer, lat, lon) or (time, layer, cell), got " +
                             std::to_string(lengths.size()) + " dimensions");
  }
  Grid grid;
  grid.n_times = lengths[0];
  grid.n_layers = lengths[1];
  grid.has_rows = lengths.size() == 4;
  grid.n_cells = grid.has_rows ? lengths[2] * lengths[3] : lengths[2];
  grid.line_cells = grid.has_rows ? lengths[3] : kCellsOfLine;
  if (grid.n_times == 0 || grid.n_layers == 0 || grid.n_cells == 0) {
    throw std::runtime_error("variable \"" + variable + "\": has no values");
  }
  return grid;
}

PartBox box_of(const Grid& grid, const Part& part) {
  PartBox box{{part.first_time, 0}, {part.n_times, grid.n_layers}};
  if (grid.has_rows) {
    box.start.insert(box.start.end(), {part.first_line, 0});
    box.count.insert(box.count.end(), {part.n_lines, grid.line_cells});
  } else {
    box.start.push_back(grid.cells_before(part.first_line));
    box.count.push_back(part.n_cells(grid));
  }
  return box;
}

}  // namespace climate
