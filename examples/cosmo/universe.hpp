// Universe: dark matter and gas under their common gravity, one leapfrog step at a time.
//
// Gas is a second kind of particles. They also feel the pressure of a polytropic gas, as the
// gradient of its specific enthalpy (hydro particle mesh, Gnedin & Hui 1998):
//   T = T0 r^(gamma-1),  h = c0^2 / (gamma-1) r^(gamma-1),  c0^2 = gamma k T0 / m,
// with r the gas density over its mean, smoothed over a cell. Shocks are not resolved. One step is
// kick, drift, force, kick. Its phases run on the lanes of a GPU code. Particles and transforms are
// on the device. The particles' order, the gas's equation of state, the stencils and the sums are
// on the host, with MPI in between.

#pragma once

#include <vector>

#include "common/application.hpp"
#include "cosmo/background.hpp"
#include "cosmo/particle_mesh.hpp"
#include "cosmo/slab_fft.hpp"
#include "cosmo/zeldovich.hpp"

namespace cosmo {

struct Settings {
  int grid = 64;                ///< Cells per edge.
  int particles_per_cell = 1;   ///< Particles of either kind; a cube: 1, 8, 27.
  double start = 0.1, end = 1;  ///< Linear growth; equals the scale factor if expanding.
  bool expanding = true;
  double box = 20;           ///< Mpc/h, comoving.
  double gas_share = 0.16;   ///< Share of the mass.
  double temperature = 1e4;  ///< Gas temperature at mean density, K. 0: no pressure.
  double gamma = 1.6;
  Spectrum spectrum;

  /// c0^2 in units of (box * H0)^2, with 0.6 proton masses per particle.
  double sound_speed_squared() const;
};

/// Quantities for the checks, over all ranks, at the end of a step.
struct Sums {
  double growth = 0;                                ///< Growth of linear theory.
  double kinetic = 0, potential = 0, internal = 0;  ///< Energies of the box, whose mass is 1.
  double lost = 0;  ///< Energy lost to the expansion: the sum of (2 T + W) dln(a).
  double mass = 0;  ///< Mass on the mesh.
  double n_particles = 0;
  std::array<double, 3> momentum{};
  double absolute_momentum = 0;  ///< Sum of |p| of all components.
  double large_scale_power = 0;  ///< Sum of |delta_k|^2 over the longest waves.
  double linear_until = 0;       ///< The last growth with a density sigma below 0.5,
  double linear_power = 0;       ///< the large-scale power at that time
  double variance = 0;           ///< Variance of the total density on the mesh.
  double densest = 0;            ///< Maximum density of dark matter over its mean.

  /// Conserved by the Layzer-Irvine equation d(T + W + U) = -(2 T + W) dln(a); T, W and U are the
  /// three energies.
  double energy() const { return kinetic + potential + internal + lost; }
};

class Universe {
 public:
  /// Collective, like all other functions.
  Universe(app::Run& run, const Settings& settings);

  /// Advances to this growth, in as many leapfrog steps as accuracy needs.
  void advance(double growth);
  /// Computes the fields of the output, six meshes of f32, for put_fields().
  void derive_fields();
  void put_fields();

  const Sums& sums() const { return sums_; }
  /// Hash of every bit of the particles.
  std::uint64_t state_hash();

 private:
  void leap(double growth);
  void find_forces();
  void deposit_all();
  void solve_gravity();
  void gas_potential();
  void migrate();
  void kick_all(double from, double to);
  void add_up();
  void put(const char* name, const char* options, std::vector<float>& values);

  app::Run& run_;
  app::Lanes& lanes_;
  Settings settings_;
  Slabs slabs_;
  Background background_;
  SlabFft fft_;
  double growth_ = 0;
  Particles dark_, gas_;
  Mesh dark_density_, gas_density_;  ///< Relative to their means.
  Mesh smooth_gas_;
  Mesh delta_, potential_;  ///< The potential: the inverse Laplacian of delta.
  Mesh gas_potential_;      ///< Potential plus enthalpy, in the same units.
  VectorMesh dark_force_, gas_force_;
  double own_power_ = 0;
  std::vector<std::vector<float>> fields_;
  Sums sums_;
};

}  // namespace cosmo
