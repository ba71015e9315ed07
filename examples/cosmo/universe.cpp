// The phases of a step.

#include "cosmo/universe.hpp"

#include <algorithm>
#include <cmath>

#include "cosmo/stencils.hpp"

namespace cosmo {
namespace {

constexpr double kTwoPi = 6.283185307179586;
/// Waves with numbers up to this one (lengths from the box's edge over it) are compared with linear
/// theory.
constexpr int kLongestWaves = 2;
/// The comparison ends at this standard deviation of the density.
constexpr double kLinearSigma = 0.5;
/// Largest change of ln(D) in one leapfrog step. Half of it changes the energy by 1-2 % of the
/// kinetic energy.
constexpr double kLargestStep = 0.12;

}  // namespace

double Settings::sound_speed_squared() const {
  constexpr double kBoltzmann = 1.380649e-23, kProtonMass = 1.67262e-27;
  const double m_per_s = std::sqrt(gamma * kBoltzmann * temperature / (0.6 * kProtonMass));
  const double in_boxes = m_per_s / (1e5 * box);  // H0 is 100 h km/s/Mpc.
  return in_boxes * in_boxes;
}

Universe::Universe(app::Run& run, const Settings& settings)
    : run_(run),
      lanes_(run.lanes),
      settings_(settings),
      slabs_(settings.grid, run.comm),
      background_{settings.expanding},
      fft_(slabs_),
      growth_(settings.start),
      dark_density_(slabs_),
      gas_density_(slabs_),
      smooth_gas_(slabs_),
      delta_(slabs_),
      potential_(slabs_),
      gas_potential_(slabs_),
      dark_force_(vector_mesh(slabs_)),
      gas_force_(vector_mesh(slabs_)) {
  const int m = static_cast<int>(std::lround(std::cbrt(settings.particles_per_cell)));
  InitialParticles initial =
      zeldovich(lanes_, slabs_, fft_, background_, settings.spectrum, m, growth_);
  dark_ = std::move(initial.dark);
  gas_ = std::move(initial.gas);
  find_forces();
  add_up();
}

void Universe::advance(double growth) {
  const double from = growth_;
  const int n_steps = static_cast<int>(std::ceil(std::log(growth / from) / kLargestStep));
  for (int i = 1; i <= n_steps; ++i) {
    leap(i == n_steps ? growth : from * std::pow(growth / from, double(i) / n_steps));
  }
}

void Universe::leap(double growth) {
  const double middle = std::sqrt(growth_ * growth);
  const double cells_per_momentum = background_.drift(growth_, growth) * slabs_.n;
  lanes_.offload([&] {
    kick_all(growth_, middle);
    drift(slabs_, dark_, cells_per_momentum);
    drift(slabs_, gas_, cells_per_momentum);
  });
  migrate();
  growth_ = growth;
  find_forces();
  lanes_.offload([&] { kick_all(middle, growth_); });
  add_up();
}

void Universe::kick_all(double from, double to) {
  const double factor = background_.kick(from, to);
  kick(slabs_, dark_, dark_force_, factor);
  kick(slabs_, gas_, gas_force_, factor);
}

void Universe::migrate() {
  for (Particles* particles : {&dark_, &gas_}) {
    Migration migration(slabs_);
    lanes_.host([&] { migration.pack(*particles); });
    lanes_.exchange([&] { migration.travel(); });
    lanes_.host([&] { migration.settle(*particles); });
  }
}

void Universe::find_forces() {
  deposit_all();
  solve_gravity();
  lanes_.host([&] { gas_potential(); });
  lanes_.exchange([&] { fill_ghosts(slabs_, {&potential_, &gas_potential_}); });
  lanes_.host([&] {
    negative_gradient(slabs_, potential_, dark_force_);
    negative_gradient(slabs_, gas_potential_, gas_force_);
  });
}

void Universe::deposit_all() {
  const double each = 1.0 / settings_.particles_per_cell;
  lanes_.offload([&] {
    deposit(slabs_, dark_, dark_density_, [each](std::size_t) { return each; });
    deposit(slabs_, gas_, gas_density_, [each](std::size_t) { return each; });
  });
  lanes_.exchange([&] {
    add_upper_ghost(slabs_, {&dark_density_, &gas_density_});
    fill_ghosts(slabs_, {&gas_density_});
  });
}

void Universe::solve_gravity() {
  lanes_.offload([&] {
    const double share = settings_.gas_share;
    for (int x = 0; x < slabs_.count(); ++x) {
      for (std::size_t cell = 0; cell < slabs_.plane_cells(); ++cell) {
        delta_.plane(x)[cell] =
            (1 - share) * dark_density_.plane(x)[cell] + share * gas_density_.plane(x)[cell] - 1;
      }
    }
    fft_.forward_planes(delta_);
  });
  lanes_.exchange([&] { fft_.to_lines(); });
  lanes_.offload([&] {
    fft_.forward_lines();
    const double n_cells = std::pow(slabs_.n, 3);
    own_power_ = 0;
    fft_.visit([&](const Mode& mode, Complex& value) {
      const int k2 = mode.k2();
      value /= n_cells;
      if (k2 > 0 && k2 <= kLongestWaves * kLongestWaves)
        own_power_ += mode.weight * std::norm(value);
      value *= k2 == 0 ? 0 : -1 / (kTwoPi * kTwoPi * k2);
    });
    fft_.inverse_lines();
  });
  lanes_.exchange([&] { fft_.to_planes(); });
  lanes_.offload([&] { fft_.inverse_planes(potential_); });
}

void Universe::gas_potential() {
  // The enthalpy is smoothed like the density. The force is then the gradient of an energy, the
  // mean of r u(r). The kick multiplies by the factor of gravity, so the enthalpy is divided by it.
  const double gamma = settings_.gamma;
  const double factor =
      settings_.sound_speed_squared() / (gamma - 1) / background_.potential_factor(growth_);
  smooth(slabs_, gas_density_, smooth_gas_, -1, slabs_.count() + 1);
  Mesh enthalpy(slabs_);
  for (int x = -1; x <= slabs_.count(); ++x) {
    for (std::size_t cell = 0; cell < slabs_.plane_cells(); ++cell) {
      enthalpy.plane(x)[cell] = factor * std::pow(smooth_gas_.plane(x)[cell], gamma - 1);
    }
  }
  smooth(slabs_, enthalpy, gas_potential_, 0, slabs_.count());
  for (int x = 0; x < slabs_.count(); ++x) {
    for (std::size_t cell = 0; cell < slabs_.plane_cells(); ++cell) {
      gas_potential_.plane(x)[cell] += potential_.plane(x)[cell];
    }
  }
}

void Universe::add_up() {
  std::vector<double> mine;
  double densest = 0;
  const double n_particles = std::pow(slabs_.n, 3) * settings_.particles_per_cell;
  lanes_.host([&] {
    const double share = settings_.gas_share;
    const double a = background_.a(growth_);
    const double gamma = settings_.gamma;
    const double c2 = settings_.sound_speed_squared();
    mine = {
        ((1 - share) * sum_squares(dark_) + share * sum_squares(gas_)) / (2 * a * a * n_particles),
        sum_cells(slabs_,
                  [&](int x, std::size_t cell) {
                    return delta_.plane(x)[cell] * potential_.plane(x)[cell];
                  }),
        sum_cells(
            slabs_,
            [&](int x, std::size_t cell) { return std::pow(smooth_gas_.plane(x)[cell], gamma); }) *
            share * c2 / (gamma * (gamma - 1)),
        sum_cells(slabs_, [&](int x, std::size_t cell) { return delta_.plane(x)[cell]; }),
        sum_cells(
            slabs_,
            [&](int x, std::size_t cell) { return delta_.plane(x)[cell] * delta_.plane(x)[cell]; }),
        own_power_,
        static_cast<double>(dark_.count() + gas_.count()),
        0};
    for (std::size_t d = 0; d < 3; ++d) {
      double sum = 0;
      for (const double p : dark_.p[d])
        sum += (1 - share) * p, mine[7] += (1 - share) * std::abs(p);
      for (const double p : gas_.p[d]) sum += share * p, mine[7] += share * std::abs(p);
      mine.push_back(sum);
    }
    for (int x = 0; x < slabs_.count(); ++x) {
      densest = std::max(densest, *std::max_element(dark_density_.plane(x),
                                                    dark_density_.plane(x) + slabs_.plane_cells()));
    }
  });
  lanes_.exchange([&] {
    mine = app::sum_over_ranks(run_.comm, mine);
    MPI_Allreduce(MPI_IN_PLACE, &densest, 1, MPI_DOUBLE, MPI_MAX, run_.comm);
  });
  const double n_cells = std::pow(slabs_.n, 3);
  const Sums before = sums_;
  sums_ = {.growth = growth_,
           .kinetic = mine[0],
           .potential = 0.5 * background_.potential_factor(growth_) * mine[1] / n_cells,
           .internal = mine[2] / n_cells,
           .lost = before.lost,
           .mass = 1 + mine[3] / n_cells,
           .n_particles = mine[6],
           .momentum = {mine[8], mine[9], mine[10]},
           .absolute_momentum = mine[7],
           .large_scale_power = mine[5],
           .linear_until = before.linear_until,
           .linear_power = before.linear_power,
           .variance = mine[4] / n_cells,
           .densest = densest};
  if (sums_.variance < kLinearSigma * kLinearSigma) {
    sums_.linear_until = growth_;
    sums_.linear_power = sums_.large_scale_power;
  }
  if (before.growth == 0) return;
  const auto loss = [](const Sums& sums) { return 2 * sums.kinetic + sums.potential; };
  sums_.lost += background_.expansion(before.growth, growth_) * (loss(before) + loss(sums_)) / 2;
}

void Universe::derive_fields() {
  VectorMesh momentum = vector_mesh(slabs_);
  lanes_.offload([&] {
    const double each = 1.0 / settings_.particles_per_cell;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::vector<double>& p = gas_.p[d];
      deposit(slabs_, gas_, momentum[d], [&](std::size_t i) { return each * p[i]; });
    }
  });
  lanes_.exchange([&] {
    add_upper_ghost(slabs_, {&momentum[0], &momentum[1], &momentum[2]});
    fill_ghosts(slabs_, {&momentum[0], &momentum[1], &momentum[2]});
  });
  lanes_.offload([&] {
    const std::size_t n_plane = slabs_.plane_cells();
    fields_.assign(6, std::vector<float>(n_plane * std::size_t(slabs_.count())));
    const double cm_per_s = settings_.box * 1e7 / background_.a(growth_);
    VectorMesh smooth_momentum = vector_mesh(slabs_);
    for (std::size_t d = 0; d < 3; ++d) {
      smooth(slabs_, momentum[d], smooth_momentum[d], 0, slabs_.count());
    }
    for (int x = 0; x < slabs_.count(); ++x) {
      for (std::size_t cell = 0; cell < n_plane; ++cell) {
        const std::size_t i = std::size_t(x) * n_plane + cell;
        const double r = smooth_gas_.plane(x)[cell];
        fields_[0][i] = static_cast<float>(r);
        fields_[1][i] = static_cast<float>(dark_density_.plane(x)[cell]);
        fields_[2][i] =
            static_cast<float>(settings_.temperature * std::pow(r, settings_.gamma - 1));
        for (std::size_t d = 0; d < 3; ++d) {
          const double p = r > 0 ? smooth_momentum[d].plane(x)[cell] / r : 0;
          fields_[3 + d][i] = static_cast<float>(cm_per_s * p);
        }
      }
    }
  });
}

void Universe::put(const char* name, const char* options, std::vector<float>& values) {
  const auto n = static_cast<std::uint64_t>(slabs_.n);
  app::FieldPart part;
  part.name = name;
  part.options = options;
  part.shape = {n, n, n};
  part.start = {static_cast<std::uint64_t>(slabs_.first()), 0, 0};
  part.count = {static_cast<std::uint64_t>(slabs_.count()), n, n};
  run_.output.put(std::move(part), std::move(values));
}

void Universe::put_fields() {
  // The bounds of Jin et al. 2024, 5.1, for the same six fields of Nyx in the same units.
  put("baryon_density", "bound=abs=0.2", fields_[0]);
  put("dark_matter_density", "bound=abs=0.4", fields_[1]);
  put("temperature", "bound=abs=1e3", fields_[2]);
  put("velocity_x", "bound=abs=2e5", fields_[3]);
  put("velocity_y", "bound=abs=2e5", fields_[4]);
  put("velocity_z", "bound=abs=2e5", fields_[5]);
}

std::uint64_t Universe::state_hash() {
  std::vector<app::StateBytes> pieces;
  for (const Particles* particles : {&dark_, &gas_}) {
    for (std::size_t d = 0; d < 3; ++d) {
      pieces.push_back(app::state_of(particles->at[d]));
      pieces.push_back(app::state_of(particles->p[d]));
    }
  }
  return app::hash_of_state(run_.comm, pieces);
}

}  // namespace cosmo
