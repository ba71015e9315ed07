// replay: writes a field that was computed elsewhere, step by step, as fast as the output accepts
// it.
//
//   lab/bench/data/make_climate.py climate.nc --raw climate.f32
//   mpiexec -n 4 ./replay --source climate.f32 --shape 18x192x384 --steps 48 --output pnetcdf
//
// The microbenchmark of Bicer et al. 2014, section IV-B: ranks iteratively write their parts of one
// large variable. --source holds f32 in native byte order, one step after the other, and is read
// into memory before the first iteration. Each rank has a share of the rows (the last but one
// axis). The program computes nothing, so it times only the output.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/application.hpp"

namespace {

/// "18x192x384": slowest first; at least two axes.
std::vector<std::uint64_t> shape_of(const std::string& text) {
  std::vector<std::uint64_t> shape;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 12 ||
        word.find_first_not_of("0123456789") != std::string::npos || std::stoull(word) == 0) {
      throw app::Unavailable("--shape: expected lengths, such as 18x192x384, got \"" + text + "\"");
    }
    shape.push_back(std::stoull(word));
    at = end + 1;
  }
  if (shape.size() < 2) throw app::Unavailable("--shape: expected two axes or more");
  return shape;
}

/// This rank's rows of every plane of a step.
struct Rows {
  std::uint64_t n_planes = 1, n_rows = 0, row_values = 0;  ///< Sizes of the complete field.
  std::uint64_t first = 0, count = 0;

  Rows(const std::vector<std::uint64_t>& shape, int rank, int n_ranks)
      : n_rows(shape[shape.size() - 2]), row_values(shape.back()) {
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) n_planes *= shape[axis];
    const auto r = static_cast<std::uint64_t>(rank);
    const auto n = static_cast<std::uint64_t>(n_ranks);
    first = n_rows * r / n;
    count = n_rows * (r + 1) / n - first;
  }

  std::vector<float> read_step(std::FILE* file, int step) const {
    std::vector<float> values(n_planes * count * row_values);
    for (std::uint64_t plane = 0; plane < n_planes; ++plane) {
      const std::uint64_t row =
          (static_cast<std::uint64_t>(step) * n_planes + plane) * n_rows + first;
      const auto at = static_cast<long>(row * row_values * sizeof(float));
      float* const to = values.data() + plane * count * row_values;
      if (std::fseek(file, at, SEEK_SET) != 0 ||
          std::fread(to, sizeof(float), count * row_values, file) != count * row_values) {
        throw std::runtime_error("--source ends before step " + std::to_string(step + 1));
      }
    }
    return values;
  }
};

void replay(const std::string& source, const std::string& shape_text, app::Run& run) {
  const std::vector<std::uint64_t> shape = shape_of(shape_text);
  const Rows rows(shape, run.rank, run.n_ranks);
  std::vector<std::vector<float>> steps;
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(source.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) throw app::Unavailable("--source: cannot read \"" + source + "\"");
    for (int step = 0; step < run.n_steps; ++step) {
      steps.push_back(rows.read_step(file.get(), step));
    }
  }
  std::vector<app::StateBytes> pieces;
  pieces.reserve(steps.size());
  for (const std::vector<float>& values : steps) pieces.push_back(app::state_of(values));
  run.state_hash = app::hash_of_state(run.comm, pieces);
  for (int step = 1; step <= run.n_steps; ++step) {
    run.lanes.begin_iteration(step);
    if (run.output.wants(step)) {
      run.lanes.output(step, step, [&] {
        app::FieldPart part{.name = "temperature", .shape = shape};
        part.start.assign(shape.size(), 0);
        part.count = shape;
        part.start[shape.size() - 2] = rows.first;
        part.count[shape.size() - 2] = rows.count;
        run.output.put(std::move(part), std::move(steps[static_cast<std::size_t>(step) - 1]));
      });
    }
    run.lanes.end_iteration();
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string source = "climate.f32";
  std::string shape = "18x192x384";
  app::Arguments arguments("replay", "Writes a field that was computed elsewhere.");
  arguments.add("--source", source, "f32 in native byte order, a step after the other");
  arguments.add("--shape", shape, "of a step, the slowest axis first");
  app::CommonOptions common("replay.h5");
  return app::run_application(argc, argv, arguments, common,
                              [&](app::Run& run) { replay(source, shape, run); });
}
