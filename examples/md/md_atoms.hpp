// The atoms of one rank in fixed-point numbers, and the rank's box of atoms.
//
// Positions, velocities and forces are integers, as on the special-purpose machine Anton (Shaw et
// al. 2009), because sums of integers do not depend on their order. Every rank count therefore
// gives the same bits, the momentum stays exactly zero, and the motion can run backwards to exactly
// its initial bits. Units are those of Lennard-Jones: length sigma, energy epsilon, mass m, and tau
// for time.

#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace md {

using Fixed = std::int64_t;
using Triple = std::array<Fixed, 3>;

// Units of the fixed-point numbers. A box may be 2^18 sigma long, some speeds may reach 2^12, and
// the energy of 2^24 atoms fits.
constexpr double kPositionUnit = 0x1p-44;  // sigma
constexpr double kVelocityUnit = 0x1p-50;  // sigma / tau
constexpr double kEnergyUnit = 0x1p-36;    // epsilon

constexpr double kDensity = 0.8442;    // atoms per sigma^3, as miniMD
constexpr double kTemperature = 1.44;  // at the start, epsilon / k
constexpr double kCutoff = 2.5;        // sigma
constexpr double kSkin = 0.3;          // sigma; neighbours up to kCutoff + kSkin are listed
constexpr double kReach = kCutoff + kSkin;

constexpr Fixed position_of(double sigma) { return static_cast<Fixed>(sigma / kPositionUnit); }

struct Atom {
  Triple position;  // may lie slightly outside the periodic box between rebuilds
  Triple velocity;
  std::int64_t id;  // 0 .. number of atoms - 1, over all ranks
};

/// The periodic cube and its division into a grid of n_parts[0] x n_parts[1] x n_parts[2] ranks.
class Domain {
 public:
  /// Collective over comm. n_cells: lattice cells along each edge, 4 atoms each. Throws
  /// app::Unavailable on all ranks if a rank's box is narrower than kReach.
  Domain(MPI_Comm comm, int n_cells);

  Fixed length() const { return length_; }  ///< length of an edge
  Fixed lattice_constant() const { return lattice_constant_; }
  double volume() const;  ///< sigma^3
  std::int64_t n_atoms() const { return n_atoms_; }
  int n_cells() const { return n_cells_; }

  Fixed low(int axis) const { return border(axis, part_[at(axis)]); }
  Fixed high(int axis) const { return border(axis, part_[at(axis)] + 1); }
  int part(int axis) const { return part_[at(axis)]; }
  int n_parts(int axis) const { return n_parts_[at(axis)]; }
  /// The part to which a position within [0, length) belongs.
  int part_of(int axis, Fixed position) const;
  bool is_mine(const Triple& position) const;
  /// The neighbouring rank; side 0: towards lower positions, 1: towards higher. It may be this
  /// rank.
  int neighbour(int axis, int side) const { return neighbour_[at(axis)][at(side)]; }
  /// The periodic image of the position within [0, length).
  Triple wrapped(Triple position) const;

  MPI_Comm comm() const { return comm_; }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  Fixed border(int axis, int part) const;

  MPI_Comm comm_;
  int n_cells_;
  std::int64_t n_atoms_;
  Fixed lattice_constant_;
  Fixed length_;
  std::array<int, 3> n_parts_{};
  std::array<int, 3> part_{};
  std::array<std::array<int, 2>, 3> neighbour_{};
};

/// This rank's part of a face-centred cubic lattice at kDensity with random velocities at
/// kTemperature, whose sum is exactly zero. The atoms are the same for any number of ranks.
/// Collective over the domain's communicator.
std::vector<Atom> first_atoms(const Domain& domain, std::uint64_t seed);

/// Moves every atom to the rank whose box contains it, and wraps positions. Collective. No atom may
/// have left its rank's box by more than the width of the neighbouring box.
void migrate(const Domain& domain, std::vector<Atom>& atoms);

/// Copies of other ranks' atoms within kReach of this rank's box, and of the periodic images.
/// choose() selects them; refresh() updates their positions, any number of times.
class Ghosts {
 public:
  explicit Ghosts(const Domain& domain) : domain_(domain) {}

  /// `positions` holds the own atoms; the ghosts are appended. Collective.
  void choose(std::vector<Triple>& positions);
  /// `positions` holds own atoms and ghosts, as left by choose(). Collective.
  void refresh(std::vector<Triple>& positions);

 private:
  struct Lane {  // atoms sent to one neighbour, and received from the opposite one
    std::vector<std::uint32_t> sent;
    std::size_t first_received = 0;
    std::size_t n_received = 0;
    Fixed shift = 0;  // along the lane's axis
  };
  void exchange(int axis, int side, Lane& lane, std::vector<Triple>& positions);

  const Domain& domain_;
  std::array<Lane, 6> lanes_;
  std::vector<Triple> out_;
};

}  // namespace md
