// Beams: the particle-in-cell simulation itself, two electron beams that stream through each other.
//
// State between steps: positions and fields of time n, momenta of n - 1/2. Pushing the electrons is
// the device's phase; the host solves for the fields, sorts, and exchanges halos and electrons. The
// current is summed on the host, as hybrid codes do to avoid atomic adds on the device, or on the
// device. This choice affects how long the main lane is idle, not the result.

#pragma once

#include <cstdint>
#include <vector>

#include "common/lanes.hpp"
#include "plasma_fields.hpp"
#include "plasma_particles.hpp"

namespace plasma {

/// Measured quantities of all ranks together. Energies are in units of the beams' initial energy.
struct Measures {
  double kinetic = 0, electric = 0, magnetic = 0;
  double amplitude = 0;  // amplitude of the seeded wave: By (weibel) or Ex (two-stream)
  double gauss = 0;      // largest |div E - rho|, mean charge density
  double div_b = 0;      // largest |div B|
  double total() const { return kinetic + electric + magnetic; }
};

class Beams {
 public:
  /// Collective. Throws like Slab::of_rank().
  Beams(MPI_Comm comm, const Setup& setup);

  /// Advances by one time step. Collective. @returns quantities at the step's beginning; gauss and
  /// div_b at its end.
  Measures advance(app::Lanes& lanes);
  /// One number for the state of all ranks, the same on any number of ranks. Collective.
  std::uint64_t state_hash() const;

  const Setup& setup() const { return setup_; }
  const Slab& slab() const { return slab_; }
  const Fields& fields() const { return fields_; }
  const std::vector<Electron>& electrons() const { return electrons_; }
  std::int64_t n_electrons_of_all() const;  ///< Counted. Collective.

 private:
  void solve_fields(app::Lanes& lanes);
  void move_house(app::Lanes& lanes);

  Setup setup_;
  Slab slab_;
  Fields fields_;
  Deposits deposits_;
  std::vector<Electron> electrons_;
  std::vector<Place> places_before_;  // places of electrons_, before the push
  double first_energy_ = 0;           // of the beams, m c^2 n c^2/omega_p^2
};

}  // namespace plasma
