// Melt: the molecular dynamics itself, a Lennard-Jones crystal that melts and stays liquid.
//
// Integration is velocity Verlet. Neighbour lists are rebuilt as soon as any atom has moved by half
// the skin, so that no pair within the cutoff is ever missed. State, between steps: positions,
// velocities and the pulls that belong to these positions.

#pragma once

#include <cstdint>
#include <vector>

#include "common/lanes.hpp"
#include "md_atoms.hpp"
#include "md_forces.hpp"

namespace md {

/// Measured quantities of all atoms together; the same bits on any number of ranks.
struct Measures {
  double temperature = 0;    // epsilon / k
  double potential = 0;      // per atom, epsilon
  double pressure = 0;       // epsilon / sigma^3
  double conserved = 0;      // per atom: kinetic energy and the potential that is 0 at the cutoff
  double momentum = 0;       // the largest component of the sum, m sigma / tau
  std::int64_t n_atoms = 0;  // counted
};

class Melt {
 public:
  /// Collective. Throws like Domain.
  Melt(MPI_Comm comm, int n_cells, double time_step, std::uint64_t seed);
  Melt(const Melt&) = delete;
  Melt& operator=(const Melt&) = delete;

  /// Computes lists and pulls of the first atoms. Collective, once, before the first advance().
  void prepare(app::Lanes& lanes);
  /// Advances by one time step. Collective.
  void advance(app::Lanes& lanes);
  /// Collective.
  Measures measure(app::Lanes& lanes) const;
  /// Reverses time from here on. Not collective.
  void turn_back();
  /// One number for the atoms of all ranks, independent of their distribution. Collective.
  std::uint64_t state_hash() const;

  const Domain& domain() const { return domain_; }
  const std::vector<Atom>& atoms() const { return atoms_; }
  const std::vector<Pull>& pulls() const { return pulls_; }  ///< pulls()[i] belongs to atoms()[i].
  int n_rebuilds() const { return n_rebuilds_; }

 private:
  void kick();
  void drift();
  double largest_way_squared() const;
  void rebuild(app::Lanes& lanes);
  void copy_positions();
  void pull(app::Lanes& lanes);

  Domain domain_;
  double time_step_;
  std::vector<Atom> atoms_;
  Cells cells_;
  Ghosts ghosts_;
  Neighbours neighbours_;
  std::vector<Triple> positions_;   // own atoms, then ghosts
  std::vector<Triple> built_from_;  // own positions at the last rebuild of the lists
  std::vector<Pull> pulls_;
  int n_rebuilds_ = 0;
};

}  // namespace md
