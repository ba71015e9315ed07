// Who is near whom, and how they pull: neighbour lists by cells, and Lennard-Jones forces.
//
// The lists are made on the host, as LAMMPS does where it leaves the forces to a GPU; forces() is
// the phase that runs on the device. Each pair of own atoms is listed once, a pair with a ghost on
// both ranks; both come to the same integers, so that action equals reaction to the last bit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "md_atoms.hpp"

namespace md {

/// Neighbours within kReach of each own atom: entries first[i] .. first[i + 1] of `of`.
struct Neighbours {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> of;
};

/// Cells of at least kReach over a rank's box and the ghosts around it.
class Cells {
 public:
  explicit Cells(const Domain& domain);

  /// Bring own atoms into the order of their cells (by id within one): neighbours in space become
  /// neighbours in memory, and the order does not depend on the way they came.
  void sort(std::vector<Atom>& atoms) const;

  /// List the neighbours of the first n_own positions among all of them; ghosts follow the own
  /// ones.
  void list(const std::vector<Triple>& positions, std::size_t n_own, Neighbours& neighbours);

 private:
  std::size_t cell_of(const Triple& position) const;

  Triple low_{};
  std::array<double, 3> cells_per_unit_{};
  std::array<std::size_t, 3> n_cells_{};
  std::vector<std::uint32_t> first_in_cell_;
  std::vector<std::uint32_t> in_cell_;
};

/// What half a time step's force does to an atom, and its half of what its pairs have.
struct Pull {
  Triple kick;     // change of velocity in half a time step, kVelocityUnit
  Fixed energy;    // half of the potential of each of its pairs, kEnergyUnit
  Fixed virial;    // half of r . f of each of its pairs, kEnergyUnit
  Fixed n_halves;  // pairs within the cutoff, each seen from both of its atoms
};

/// Fill pulls[0 .. n_own). Not collective. Touches nothing but its arguments.
/// @param time_step  tau
void forces(const std::vector<Triple>& positions, std::size_t n_own, const Neighbours& neighbours,
            double time_step, std::vector<Pull>& pulls);

/// The potential of a pair at the cutoff, epsilon: what forces() leaves in the energy, so that
/// it compares with miniMD's and LAMMPS's, and what must be taken off for it to be conserved.
double potential_at_cutoff();

}  // namespace md
