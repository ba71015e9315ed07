// cosmo: structure grows out of a nearly homogeneous universe. A particle-mesh simulation on MPI.
//
//   mpiexec -n 2 ./cosmo --grid 64 --steps 10 --output in_situ --file cosmo.h5
//
// Writes the six fields of the cosmological code Nyx: densities of gas and dark matter over their
// means, the gas's temperature in K and its velocity in cm/s. At its end it checks itself: mass,
// momentum, energy, and the growth of the longest waves against linear theory. It fails if a check
// fails. See README.md.

#include <cmath>

#include "common/application.hpp"
#include "cosmo/universe.hpp"

namespace {

using cosmo::Settings;
using cosmo::Sums;

std::vector<app::Check> checks(const Settings& settings, const Sums& start, const Sums& end) {
  double momentum = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    momentum = std::max(momentum, std::abs(end.momentum[d] - start.momentum[d]));
  }
  // Gravity alone conserves momentum to rounding; the enthalpy's gradient on a mesh conserves it
  // approximately.
  const double momentum_limit = settings.temperature > 0 ? 1e-3 : 1e-11;
  // Forces that conserve momentum are not exactly the gradient of the mesh's energy if structure is
  // as small as a cell. Shorter steps do not change this.
  std::vector<app::Check> all = {
      {"particles lost", end.n_particles - start.n_particles, 0},
      {"mass on the mesh", end.mass - 1, 1e-12},
      {"momentum, of the sum of |p|", momentum / end.absolute_momentum, momentum_limit},
      {"energy, of the kinetic", (end.energy() - start.energy()) / end.kinetic, 0.1}};
  // A run that starts beyond linear theory cannot be compared with it.
  if (end.linear_until > start.growth) {
    const double waves = std::sqrt(end.linear_power / start.large_scale_power);
    const double theory = end.linear_until / start.growth;
    all.push_back({"growth over linear theory's, - 1", waves / theory - 1, 0.05});
  }
  return all;
}

void simulate(const Settings& settings, app::Run& run) {
  cosmo::Universe universe(run, settings);
  const Sums start = universe.sums();
  for (int step = 1; step <= run.n_steps; ++step) {
    run.lanes.begin_iteration(step);
    const double growth =
        settings.start * std::pow(settings.end / settings.start, double(step) / run.n_steps);
    universe.advance(growth);
    if (run.output.wants(step)) {
      universe.derive_fields();
      run.lanes.output(step, growth, [&] { universe.put_fields(); });
    }
    run.lanes.end_iteration();
  }
  const Sums& end = universe.sums();
  run.checks = checks(settings, start, end);
  run.facts = {{"linear until a growth of", end.linear_until},
               {"sigma of the density at the start", std::sqrt(start.variance)},
               {"sigma of the density at the end", std::sqrt(end.variance)},
               {"densest cell over the mean", end.densest},
               {"kinetic energy", end.kinetic},
               {"potential energy", end.potential},
               {"internal energy", end.internal}};
  run.state_hash = universe.state_hash();
}

/// Returns "" or the error in the settings.
void check_settings(const Settings& settings, int n_ranks) {
  const auto m = std::lround(std::cbrt(settings.particles_per_cell));
  if (m * m * m != settings.particles_per_cell || m < 1) {
    throw app::Unavailable("--particles-per-cell: expected a cube, 1, 8 or 27");
  }
  if (settings.grid < cosmo::Mesh::kGhosts * n_ranks || settings.grid < 8) {
    throw app::Unavailable("--grid: expected 8 cells or more, and 3 for each rank");
  }
  if (settings.start <= 0 || settings.end <= settings.start || settings.gamma <= 1) {
    throw app::Unavailable("--start, --end, --gamma: expected 0 < start < end and gamma > 1");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  app::Arguments arguments("cosmo", "Particle-mesh gravity and gas in an expanding box.");
  int seed = 42;
  arguments.add("--grid", settings.grid, "cells per edge");
  arguments.add("--particles-per-cell", settings.particles_per_cell, "of either kind: 1, 8 or 27");
  arguments.add("--start", settings.start, "linear growth at the start (scale factor)");
  arguments.add("--end", settings.end, "and at the end");
  arguments.add("--expanding", settings.expanding, "Einstein-de Sitter, or a static box");
  arguments.add("--box", settings.box, "its edge, Mpc/h");
  arguments.add("--gas", settings.gas_share, "the gas's share of the mass");
  arguments.add("--temperature", settings.temperature, "of gas at the mean density, K");
  arguments.add("--gamma", settings.gamma, "polytropic index");
  arguments.add("--sigma", settings.spectrum.sigma, "linear fluctuations at growth 1");
  arguments.add("--index", settings.spectrum.index, "of the power spectrum");
  arguments.add("--seed", seed, "of the initial conditions");
  app::CommonOptions common("cosmo.h5");
  return app::run_application(argc, argv, arguments, common, [&](app::Run& run) {
    settings.spectrum.seed = static_cast<std::uint64_t>(seed);
    check_settings(settings, run.n_ranks);
    simulate(settings, run);
  });
}
