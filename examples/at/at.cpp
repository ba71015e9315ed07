// at: the mean temperature of each atmospheric layer, over all times and cells (AT of Bicer et al.
// 2014).
//
//   mpiexec -n 4 ./at --file climate.nc --input pnetcdf
//
// Each rank has a share of neighbouring time steps, and reads as many at a time as --memory allows.
// Ranks exchange only the sums of their (time, layer) planes, at the end. One rank sums each plane,
// and the planes are added in the order of time. The means therefore have the same bits on any
// number of ranks and for any storage of the values. A mean is over cells with equal weights.

#include <algorithm>
#include <cstdio>

#include "climate/analysis.hpp"
#include "climate/line_sums.hpp"

namespace {

using climate::Analysis;
using climate::Grid;
using climate::Part;

struct LayerMean {
  double mean = 0, n_values = 0;
};

/// Appends the sum and the count of each (time, layer) plane of a part.
void sum_planes(const Analysis& analysis, const Part& part, const float* values,
                std::vector<double>& planes) {
  const Grid& grid = analysis.grid();
  for (std::uint64_t plane = 0; plane < part.n_times * grid.n_layers; ++plane) {
    double sum = 0;
    double n_values = 0;
    for (std::uint64_t line = 0; line < grid.n_lines(); ++line) {
      const std::uint64_t first = grid.cells_before(line);
      const climate::LineSum found =
          climate::sum_of_line(values + plane * grid.n_cells + first,
                               grid.cells_before(line + 1) - first, analysis.fill_value());
      sum += found.sum;
      n_values += found.n_values;
    }
    planes.push_back(sum);
    planes.push_back(n_values);
  }
}

/// Layer means from the planes of all ranks, in the order of time.
std::vector<LayerMean> means_of(const std::vector<double>& planes, std::uint64_t n_layers) {
  std::vector<LayerMean> means(n_layers);
  for (std::size_t i = 0; i + 1 < planes.size(); i += 2) {
    LayerMean& layer = means[i / 2 % n_layers];
    layer.mean += planes[i];
    layer.n_values += planes[i + 1];
  }
  for (LayerMean& layer : means) layer.mean /= layer.n_values;  // without values: NaN
  return means;
}

void analyse(Analysis& analysis) {
  const Grid& grid = analysis.grid();
  const double step_bytes = static_cast<double>(grid.n_layers * grid.n_cells) * sizeof(float);
  const auto n_at_once =
      static_cast<std::uint64_t>(std::max(1.0, analysis.memory_bytes() / step_bytes));
  const climate::Share mine = climate::share_of(grid.n_times, analysis.rank(), analysis.n_ranks());
  // Every rank makes the same number of reads, because they are collective. Rank 0 has the largest
  // share.
  const std::uint64_t most = climate::share_of(grid.n_times, 0, analysis.n_ranks()).count;
  std::vector<double> planes;
  for (std::uint64_t done = 0; done < most; done += n_at_once) {
    Part part{.first_time = mine.first + std::min(done, mine.count), .n_lines = grid.n_lines()};
    part.n_times = std::min(n_at_once, mine.count - std::min(done, mine.count));
    if (part.n_times == 0) part.first_time = 0;  // a part without times has no position
    const float* const values = analysis.read(part);
    analysis.compute([&] { sum_planes(analysis, part, values, planes); });
  }
  const std::vector<double> all = analysis.gather(planes);
  std::vector<LayerMean> means;
  analysis.compute([&] { means = means_of(all, grid.n_layers); });

  analysis.print = [means] {
    for (std::size_t layer = 0; layer < means.size(); ++layer) {
      std::printf("layer %2zu  mean %.6f  of %.0f values\n", layer, means[layer].mean,
                  means[layer].n_values);
    }
  };
  analysis.write = [means](app::JsonFile& json) {
    json.open("mean", '[');
    for (const LayerMean& layer : means) json.exact(nullptr, layer.mean);
    json.close(']');
    json.open("n_values", '[');
    for (const LayerMean& layer : means) json.exact(nullptr, layer.n_values);
    json.close(']');
  };
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments("at", "Mean temperature of each atmospheric layer.");
  return climate::run_analysis(argc, argv, arguments, analyse);
}
