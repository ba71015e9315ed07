// Neighbour lists by cells, and Lennard-Jones forces.
//
// The lists are made on the host, as LAMMPS does if it leaves the forces to a GPU; forces() is the
// phase that runs on the device. Each pair of own atoms is listed once, a pair with a ghost on both
// ranks. Both ranks compute the same integers, so action equals reaction to the last bit.

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

  /// Sorts own atoms into the order of their cells (by id within a cell). Neighbours in space
  /// become neighbours in memory, and the order does not depend on the atoms' history.
  void sort(std::vector<Atom>& atoms) const;

  /// Lists the neighbours of the first n_own positions among all positions; ghosts follow the own
  /// atoms.
  void list(const std::vector<Triple>& positions, std::size_t n_own, Neighbours& neighbours);

 private:
  std::size_t cell_of(const Triple& position) const;

  Triple low_{};
  std::array<double, 3> cells_per_unit_{};
  std::array<std::size_t, 3> n_cells_{};
  std::vector<std::uint32_t> first_in_cell_;
  std::vector<std::uint32_t> in_cell_;
};

/// Effect of the force of half a time step on an atom, and the atom's half of its pairs'
/// quantities.
struct Pull {
  Triple kick;     // change of velocity in half a time step, kVelocityUnit
  Fixed energy;    // half of the potential of each of its pairs, kEnergyUnit
  Fixed virial;    // half of r . f of each of its pairs, kEnergyUnit
  Fixed n_halves;  // pairs within the cutoff, each seen from both of its atoms
};

/// Fills pulls[0 .. n_own). Not collective. Touches nothing except its arguments.
/// @param time_step  tau
void forces(const std::vector<Triple>& positions, std::size_t n_own, const Neighbours& neighbours,
            double time_step, std::vector<Pull>& pulls);

/// The potential of a pair at the cutoff, epsilon. forces() includes it in the energy, so that the
/// energy is comparable with miniMD's and LAMMPS's. It must be subtracted to get the conserved
/// energy.
double potential_at_cutoff();

}  // namespace md
