// plasma: two electron beams stream through each other until they become unstable. Electromagnetic
// particle-in-cell in two dimensions of space and three of momentum, as in WarpX and VPIC.
//
//   mpiexec -n 4 ./plasma --problem weibel --nx 128 --ny 128 --steps 400 --output in_situ
//
// Each output holds the fields on the plane: ex ey ez bx by bz jx jy jz rho. It also holds the
// electrons of all ranks, one rank after the other, in 1-D fields. These are x, y in c/omega_p, the
// momentum ux, uy, uz in m c, weight, and id. Electrons move from rank to rank, so the length of
// each rank's part changes every time. The program checks itself: see checks() and
// examples/README.md.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/application.hpp"
#include "plasma_beams.hpp"
#include "plasma_theory.hpp"

namespace {

/// Data of all steps for the checks.
struct Record {
  std::vector<double> amplitudes;  // amplitude of the seeded wave, while it is small
  bool linear = true;
  double first_energy = 0;
  double largest_drift = 0;  // drift of the energy, over its first value
  double largest_gauss = 0, largest_div_b = 0, largest_magnetic = 0, largest_electric = 0;

  void add(const plasma::Measures& now) {
    if (first_energy == 0) first_energy = now.total();
    linear = linear && now.electric + now.magnetic < 5e-3;
    if (linear) amplitudes.push_back(now.amplitude);
    largest_drift = std::max(largest_drift, std::abs(now.total() / first_energy - 1));
    largest_gauss = std::max(largest_gauss, now.gauss);
    largest_div_b = std::max(largest_div_b, now.div_b);
    largest_magnetic = std::max(largest_magnetic, now.magnetic);
    largest_electric = std::max(largest_electric, now.electric);
  }
};

void put_fields(const plasma::Beams& beams, app::StepOutput& output) {
  const plasma::Slab& slab = beams.slab();
  const plasma::Fields& f = beams.fields();
  const auto put = [&](const std::string& name, const plasma::Grid<double>& grid,
                       const std::string& options) {
    const auto nx = static_cast<std::uint64_t>(slab.nx);
    const auto ny = static_cast<std::uint64_t>(slab.ny);
    std::vector<float> values;
    values.reserve(nx * ny);
    for (int j = 0; j < slab.ny; ++j) {
      for (int i = 0; i < slab.nx; ++i) values.push_back(static_cast<float>(grid.at(i, j)));
    }
    app::FieldPart part;
    part.name = name;
    part.shape = {static_cast<std::uint64_t>(slab.ny_all), nx};
    part.start = {static_cast<std::uint64_t>(slab.first_row), 0};
    part.count = {ny, nx};
    part.options = options;
    output.put(std::move(part), std::move(values));
  };
  const std::string fine = "bound=abs=1e-3";
  const std::string coarse = "bound=abs=1e-2";
  put("ex", f.ex, fine), put("ey", f.ey, fine), put("ez", f.ez, fine);
  put("bx", f.bx, fine), put("by", f.by, fine), put("bz", f.bz, fine);
  put("jx", f.jx, coarse), put("jy", f.jy, coarse), put("jz", f.jz, coarse);
  put("rho", f.rho, coarse);
}

void put_electrons(const plasma::Beams& beams, std::uint64_t n_before, app::StepOutput& output) {
  const std::vector<plasma::Electron>& electrons = beams.electrons();
  const auto put = [&](const std::string& name, const std::string& options, auto of) {
    std::vector<decltype(of(electrons.front()))> values;
    values.reserve(electrons.size());
    for (const plasma::Electron& e : electrons) values.push_back(of(e));
    app::FieldPart part;
    part.name = name;
    part.shape = {static_cast<std::uint64_t>(beams.setup().n_electrons())};
    part.start = {n_before};
    part.count = {electrons.size()};
    part.options = options;
    output.put(std::move(part), std::move(values));
  };
  using plasma::Electron;
  const double width = beams.setup().cell_width;
  const std::string bound = "bound=abs=1e-3";
  put("x", bound, [&](const Electron& e) { return static_cast<float>(e.x * width); });
  put("y", bound, [&](const Electron& e) { return static_cast<float>(e.y * width); });
  put("ux", bound, [](const Electron& e) { return static_cast<float>(e.ux); });
  put("uy", bound, [](const Electron& e) { return static_cast<float>(e.uy); });
  put("uz", bound, [](const Electron& e) { return static_cast<float>(e.uz); });
  put("weight", "", [](const Electron& e) { return static_cast<float>(e.weight); });
  put("id", "", [](const Electron& e) { return e.id; });
}

void output_step(const plasma::Beams& beams, int step, app::Run& run) {
  std::uint64_t n_before = 0;
  run.lanes.exchange([&] {
    const std::uint64_t n_mine = beams.electrons().size();
    MPI_Exscan(&n_mine, &n_before, 1, MPI_UINT64_T, MPI_SUM, run.comm);
    if (run.is_root()) n_before = 0;  // MPI leaves it undefined there
  });
  run.lanes.output(step, step * beams.setup().time_step, [&] {
    put_fields(beams, run.output);
    put_electrons(beams, n_before, run.output);
  });
}

void checks(const Record& record, const plasma::Beams& beams, app::Run& run) {
  const auto lost = beams.setup().n_electrons() - beams.n_electrons_of_all();
  run.checks.push_back({"electrons lost", static_cast<double>(lost), 0});
  run.checks.push_back({"div E - rho", record.largest_gauss, 2e-12});
  run.checks.push_back({"div B", record.largest_div_b, 1e-12});
  run.checks.push_back(
      {"drift of the energy", record.largest_drift, beams.setup().along_x() ? 2e-2 : 5e-3});
  const double theory = plasma::growth_rate(beams.setup());
  const plasma::Growth growth = plasma::measured_growth(record.amplitudes, beams.setup().time_step);
  run.facts.emplace_back("growth_rate_theory", theory);
  run.facts.emplace_back("growth_rate", growth.rate);
  run.facts.emplace_back("e_foldings", growth.e_foldings);
  run.facts.emplace_back("largest_magnetic_energy", record.largest_magnetic);
  run.facts.emplace_back("largest_electric_energy", record.largest_electric);
  if (plasma::can_be_compared(beams.setup(), record.amplitudes.size())) {
    run.checks.push_back({"growth rate / linear theory - 1", growth.rate / theory - 1, 0.05});
  }
}

void simulate(const plasma::Setup& setup, app::Run& run) {
  if (setup.ratio() >= 0.7 || setup.time_step <= 0 || setup.per_edge < 1) {
    throw app::Unavailable(
        "--time-step must be positive and below 0.7 of --cell-width, where the "
        "field solver is stable, and --per-edge at least 1");
  }
  plasma::Beams beams(run.comm, setup);
  Record record;
  for (int step = 1; step <= run.n_steps; ++step) {
    run.lanes.begin_iteration(step);
    const plasma::Measures now = beams.advance(run.lanes);
    record.add(now);
    if (run.output.wants(step)) output_step(beams, step, run);
    run.lanes.end_iteration();
    if (run.is_root() && (step % 50 == 0 || step == 1)) {
      std::printf(
          "step %4d  energy: kinetic %.6f electric %.2e magnetic %.2e sum %.6f  "
          "wave %.2e  div E - rho %.1e\n",
          step - 1, now.kinetic, now.electric, now.magnetic, now.total(), now.amplitude, now.gauss);
    }
  }
  checks(record, beams, run);
  run.state_hash = beams.state_hash();
}

}  // namespace

int main(int argc, char** argv) {
  plasma::Setup setup;
  app::Arguments arguments("plasma", "Two electron beams: electromagnetic particle-in-cell.");
  arguments.add("--problem", setup.problem, {"weibel", "two-stream"},
                "beams across the plane, or along x");
  arguments.add("--nx", setup.nx, "cells along x");
  arguments.add("--ny", setup.ny, "cells along y, which are dealt to the ranks");
  arguments.add("--cell-width", setup.cell_width, "in c/omega_p");
  arguments.add("--time-step", setup.time_step, "in 1/omega_p");
  arguments.add("--per-edge", setup.per_edge, "electrons of each beam along a cell's edge");
  arguments.add("--beam", setup.beam, "momentum of the beams, m c");
  arguments.add("--thermal", setup.thermal, "spread of the momentum, m c");
  arguments.add("--mode", setup.mode, "waves of the seed along x");
  arguments.add("--seed-amplitude", setup.seed, "of the seed, m c");
  arguments.add("--deposit", setup.deposit_on, {"host", "device"}, "where the current is summed");
  arguments.add("--random", setup.random, "number that the random momenta start from");
  app::CommonOptions common("plasma.h5");
  common.output.n_steps = 300;
  return app::run_application(argc, argv, arguments, common,
                              [&](app::Run& run) { simulate(setup, run); });
}
