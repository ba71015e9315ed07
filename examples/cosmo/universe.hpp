// Universe: dark matter and gas under their common gravity, one leapfrog step at a time.
//
// Gas is a second kind of particles that also feel the pressure of a polytropic gas, as the
// gradient of its specific enthalpy (hydro particle mesh, Gnedin & Hui 1998):
//   T = T0 r^(gamma-1),  h = c0^2 / (gamma-1) r^(gamma-1),  c0^2 = gamma k T0 / m,
// with r the gas density over its mean, smoothed over a cell. Shocks are not resolved. One step is
// kick, drift, force, kick. Its phases run on the lanes that a GPU code would use: particles and
// transforms on the device; the particles' order, the gas's equation of state, the stencils and the
// sums on the host; MPI in between.

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
  int particles_per_cell = 1;   ///< Of either kind; a cube: 1, 8, 27.
  double start = 0.1, end = 1;  ///< Linear growth; the scale factor, if expanding.
  bool expanding = true;
  double box = 20;           ///< Mpc/h, comoving.
  double gas_share = 0.16;   ///< Of the mass.
  double temperature = 1e4;  ///< Of gas at the mean density, K. 0: no pressure.
  double gamma = 1.6;
  Spectrum spectrum;

  /// c0^2 in units of (box * H0)^2, with 0.6 proton masses per particle.
  double sound_speed_squared() const;
};

/// What the checks look at, over all ranks, at the end of a step.
struct Sums {
  double growth = 0;                                ///< Linear theory's.
  double kinetic = 0, potential = 0, internal = 0;  ///< Of the box; mass 1.
  double lost = 0;  ///< What the expansion has taken since the start: (2 T + W) dln(a), summed up.
  double mass = 0;  ///< On the mesh.
  double n_particles = 0;
  std::array<double, 3> momentum{};
  double absolute_momentum = 0;  ///< Sum of |p| of all components.
  double large_scale_power = 0;  ///< Sum of |delta_k|^2 over the longest waves.
  double linear_until = 0;       ///< The last growth at which the density's sigma was below 0.5,
  double linear_power = 0;       ///< and the large-scale power of that moment.
  double variance = 0;           ///< Of the whole density on the mesh.
  double densest = 0;            ///< Of dark matter, over its mean.

  /// Stays, by the Layzer-Irvine equation d(T + W + U) = -(2 T + W) dln(a); T, W and U are the
  /// three energies.
  double energy() const { return kinetic + potential + internal + lost; }
};

class Universe {
 public:
  /// Collective, and so are all functions.
  Universe(app::Run& run, const Settings& settings);

  /// To this growth, in as many leapfrog steps as accuracy needs.
  void advance(double growth);
  /// The fields of the output, six meshes of f32, for put_fields().
  void derive_fields();
  void put_fields();

  const Sums& sums() const { return sums_; }
  /// Every bit of the particles.
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
  Mesh dark_density_, gas_density_;  ///< Over their means.
  Mesh smooth_gas_;
  Mesh delta_, potential_;  ///< The potential: the inverse Laplacian of delta.
  Mesh gas_potential_;      ///< With the enthalpy, in the same units.
  VectorMesh dark_force_, gas_force_;
  double own_power_ = 0;
  std::vector<std::vector<float>> fields_;
  Sums sums_;
};

}  // namespace cosmo
