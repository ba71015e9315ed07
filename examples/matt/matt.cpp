// matt: minimum, maximum and mean temperature of each time frame, and the mean range of a cell
// within it (MATT of Bicer et al. 2014).
//
//   mpiexec -n 4 ./matt --file climate.nc --frame 8 --input pnetcdf
//
// A frame is --frame time steps, for instance a day of three-hourly ones. Each rank has a share of
// neighbouring lines of every layer. It holds all steps of a frame in memory, because the range of
// a cell needs its minimum and maximum over them. After every frame rank 0 gathers the numbers of
// each line, and adds them in the order of layers and lines. The answer therefore has the same bits
// on any number of ranks. matt exchanges more data and needs more memory than at.

#include <algorithm>
#include <array>
#include <cstdio>

#include "climate/analysis.hpp"
#include "climate/line_sums.hpp"

namespace {

using climate::Analysis;
using climate::Grid;
using climate::LineSum;
using climate::Part;

/// Statistics of a line, a layer or a frame, stored as doubles for sending.
struct Extremes {
  double least = LineSum{}.least, greatest = LineSum{}.greatest;
  double sum = 0, n_values = 0;
  double range_sum = 0, n_cells = 0;  ///< Sum and number over the cells that have values.

  static constexpr std::size_t kNumbers = 6;
  void add(const Extremes& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
    sum += other.sum;
    n_values += other.n_values;
    range_sum += other.range_sum;
    n_cells += other.n_cells;
  }
  double mean() const { return sum / n_values; }
  double mean_range() const { return range_sum / n_cells; }
};

/// One line of one layer over all steps of a frame: step k's cells begin at `cells` + k * `stride`.
class FrameLine {
 public:
  explicit FrameLine(float fill_value) : fill_value_(fill_value) {}

  Extremes of(const float* cells, std::size_t n_cells, std::uint64_t n_steps, std::size_t stride) {
    const LineSum none;
    least_.assign(n_cells, none.least);
    greatest_.assign(n_cells, none.greatest);
    Extremes line;
    for (std::uint64_t step = 0; step < n_steps; ++step) {
      const float* const at = cells + step * stride;
      const LineSum found = climate::sum_of_line(at, n_cells, fill_value_);
      line.add({found.least, found.greatest, found.sum, found.n_values, 0, 0});
      for (std::size_t i = 0; i < n_cells; ++i) {
        const bool missing = climate::is_missing(at[i], fill_value_);
        least_[i] = !missing && at[i] < least_[i] ? at[i] : least_[i];
        greatest_[i] = !missing && at[i] > greatest_[i] ? at[i] : greatest_[i];
      }
    }
    for (std::size_t i = 0; i < n_cells; ++i) {
      if (least_[i] > greatest_[i]) continue;  // no value in the complete frame
      line.range_sum += static_cast<double>(greatest_[i]) - static_cast<double>(least_[i]);
      line.n_cells += 1;
    }
    return line;
  }

 private:
  float fill_value_;
  std::vector<float> least_, greatest_;
};

/// This rank's lines, layer by layer.
std::vector<double> lines_of(const Analysis& analysis, const Part& part, const float* values) {
  const Grid& grid = analysis.grid();
  const std::uint64_t n_cells = part.n_cells(grid);
  FrameLine frame_line(analysis.fill_value());
  std::vector<double> numbers;
  numbers.reserve(grid.n_layers * part.n_lines * Extremes::kNumbers);
  for (std::uint64_t layer = 0; layer < grid.n_layers; ++layer) {
    for (std::uint64_t line = 0; line < part.n_lines; ++line) {
      const std::uint64_t begin = grid.cells_before(part.first_line + line);
      const std::uint64_t first = begin - grid.cells_before(part.first_line);
      const Extremes found = frame_line.of(values + layer * n_cells + first,
                                           grid.cells_before(part.first_line + line + 1) - begin,
                                           part.n_times, grid.n_layers * n_cells);
      numbers.insert(numbers.end(), {found.least, found.greatest, found.sum, found.n_values,
                                     found.range_sum, found.n_cells});
    }
  }
  return numbers;
}

/// A frame from the lines of all ranks. They are stored rank by rank, in each rank layer by layer,
/// in each layer in the order of lines.
Extremes frame_of(const Analysis& analysis, const std::vector<double>& all) {
  const Grid& grid = analysis.grid();
  Extremes frame;
  for (std::uint64_t layer = 0; layer < grid.n_layers; ++layer) {
    std::size_t before = 0;
    for (int rank = 0; rank < analysis.n_ranks(); ++rank) {
      const std::uint64_t n = climate::share_of(grid.n_lines(), rank, analysis.n_ranks()).count;
      for (std::uint64_t line = 0; line < n; ++line) {
        const double* at = all.data() + (before + layer * n + line) * Extremes::kNumbers;
        frame.add({at[0], at[1], at[2], at[3], at[4], at[5]});
      }
      before += grid.n_layers * n;
    }
  }
  return frame;
}

void write_frames(app::JsonFile& json, const std::vector<Extremes>& frames) {
  const auto list = [&](const char* name, auto of) {
    json.open(name, '[');
    for (const Extremes& frame : frames) json.exact(nullptr, of(frame));
    json.close(']');
  };
  list("least", [](const Extremes& frame) { return frame.least; });
  list("greatest", [](const Extremes& frame) { return frame.greatest; });
  list("mean", [](const Extremes& frame) { return frame.mean(); });
  list("mean_range", [](const Extremes& frame) { return frame.mean_range(); });
  list("n_values", [](const Extremes& frame) { return frame.n_values; });
}

void analyse(Analysis& analysis, std::uint64_t frame_steps) {
  const Grid& grid = analysis.grid();
  const climate::Share mine =
      climate::share_of(grid.n_lines(), analysis.rank(), analysis.n_ranks());
  Part part{.first_line = mine.count > 0 ? mine.first : 0, .n_lines = mine.count};
  std::vector<Extremes> frames;
  for (std::uint64_t time = 0; time < grid.n_times; time += frame_steps) {
    part.first_time = time;
    part.n_times = std::min(frame_steps, grid.n_times - time);
    const float* const values = analysis.read(part);
    std::vector<double> lines;
    analysis.compute([&] { lines = lines_of(analysis, part, values); });
    const std::vector<double> all = analysis.gather(lines);
    if (!analysis.is_root()) continue;
    analysis.compute([&] { frames.push_back(frame_of(analysis, all)); });
  }

  analysis.print = [frames] {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      std::printf("frame %3zu  min %.4f  max %.4f  mean %.6f  mean range of a cell %.6f\n", i,
                  frames[i].least, frames[i].greatest, frames[i].mean(), frames[i].mean_range());
    }
  };
  analysis.write = [frames](app::JsonFile& json) { write_frames(json, frames); };
}

}  // namespace

int main(int argc, char** argv) {
  int frame_steps = 8;
  app::Arguments arguments("matt", "Minimum, maximum and mean temperature of each time frame.");
  arguments.add("--frame", frame_steps, "time steps of a frame");
  return climate::run_analysis(argc, argv, arguments, [&](Analysis& analysis) {
    if (frame_steps < 1) throw app::Unavailable("--frame: must be >= 1");
    analyse(analysis, static_cast<std::uint64_t>(frame_steps));
  });
}
