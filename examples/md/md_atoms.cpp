// The initial lattice, the division of the cube among ranks, and the exchange of atoms.
//
// Everything travels along x, then y, then z, each time only to the two neighbours. A rank forwards
// atoms received along one axis along the next, so that diagonal neighbours are reached, too
// (Plimpton 1995, as in miniMD).

#include "md_atoms.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "common/arguments.hpp"

namespace md {
namespace {

// splitmix64 (Steele, Lea and Flood 2014): a good random number for every counter.
std::uint64_t random_bits(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Within [-0.5, 0.5), as in miniMD: collisions turn it into a Maxwell distribution within 50 steps.
double random_number(std::uint64_t seed, std::int64_t id, int axis) {
  const std::uint64_t counter = random_bits(seed) + static_cast<std::uint64_t>(3 * id + axis);
  return static_cast<double>(random_bits(counter) >> 11) * 0x1p-53 - 0.5;
}

// Atoms k and k + n/2 move in opposite directions, so the total momentum is zero.
std::array<double, 3> random_direction(std::uint64_t seed, std::int64_t id, std::int64_t n) {
  const double sign = id < n / 2 ? 1 : -1;
  std::array<double, 3> direction{};
  for (int axis = 0; axis < 3; ++axis) {
    direction[static_cast<std::size_t>(axis)] = sign * random_number(seed, id % (n / 2), axis);
  }
  return direction;
}

std::size_t lane_index(int axis, int side) {
  return 2 * static_cast<std::size_t>(axis) + static_cast<std::size_t>(side);
}

std::vector<Atom> swap_atoms(const std::vector<Atom>& out, int to, int from, MPI_Comm comm) {
  const int n_out = static_cast<int>(out.size() * sizeof(Atom));
  int n_in = 0;
  MPI_Sendrecv(&n_out, 1, MPI_INT, to, 0, &n_in, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
  std::vector<Atom> in(static_cast<std::size_t>(n_in) / sizeof(Atom));
  MPI_Sendrecv(out.data(), n_out, MPI_BYTE, to, 1, in.data(), n_in, MPI_BYTE, from, 1, comm,
               MPI_STATUS_IGNORE);
  return in;
}

}  // namespace

Domain::Domain(MPI_Comm comm, int n_cells)
    : comm_(comm), n_cells_(n_cells), n_atoms_(std::int64_t{4} * n_cells * n_cells * n_cells) {
  // Even, so that half a lattice constant is a valid position, too.
  lattice_constant_ = 2 * position_of(std::cbrt(4 / kDensity) / 2);
  length_ = n_cells * lattice_constant_;
  int n_ranks = 1;
  int rank = 0;
  MPI_Comm_size(comm, &n_ranks);
  MPI_Comm_rank(comm, &rank);
  MPI_Dims_create(n_ranks, 3, n_parts_.data());
  part_ = {rank / (n_parts_[1] * n_parts_[2]), rank / n_parts_[2] % n_parts_[1],
           rank % n_parts_[2]};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int n = n_parts_[axis];
    if (length_ / n < position_of(kReach) || n_cells < 4) {
      throw app::Unavailable(
          "--cells " + std::to_string(n_cells) + ": a cube of " + std::to_string(n_cells) +
          " lattice cells along an edge, divided in " + std::to_string(n) +
          ", is too small; a part needs 2.8 sigma (1.7 lattice cells), the cube 4 cells");
    }
    for (std::size_t side = 0; side < 2; ++side) {
      std::array<int, 3> other = part_;
      other[axis] = (other[axis] + (side == 0 ? n - 1 : 1)) % n;
      neighbour_[axis][side] = (other[0] * n_parts_[1] + other[1]) * n_parts_[2] + other[2];
    }
  }
}

Fixed Domain::border(int axis, int part) const {
  // Avoids the product of a length and a number of parts, which could overflow.
  const int n = n_parts_[at(axis)];
  return length_ / n * part + length_ % n * part / n;
}

int Domain::part_of(int axis, Fixed position) const {
  const int n = n_parts_[at(axis)];
  auto part = static_cast<int>(std::min<Fixed>(position / (length_ / n), n - 1));
  while (part > 0 && position < border(axis, part)) --part;
  while (part < n - 1 && position >= border(axis, part + 1)) ++part;
  return part;
}

bool Domain::is_mine(const Triple& position) const {
  for (int axis = 0; axis < 3; ++axis) {
    const Fixed x = position[at(axis)];
    if (x < low(axis) || x >= high(axis)) return false;
  }
  return true;
}

double Domain::volume() const { return std::pow(static_cast<double>(length_) * kPositionUnit, 3); }

Triple Domain::wrapped(Triple position) const {
  for (Fixed& x : position) {
    x %= length_;
    if (x < 0) x += length_;
  }
  return position;
}

std::vector<Atom> first_atoms(const Domain& domain, std::uint64_t seed) {
  constexpr std::array<std::array<int, 3>, 4> kBasis{{{0, 0, 0}, {1, 1, 0}, {1, 0, 1}, {0, 1, 1}}};
  const std::int64_t n = domain.n_atoms();
  // Every rank adds up all atoms, in the same order: one pass over n numbers gives the same bits.
  double sum = 0;
  for (std::int64_t id = 0; id < n; ++id) {
    for (const double v : random_direction(seed, id, n)) sum += v * v;
  }
  const double scale = std::sqrt(3 * static_cast<double>(n - 1) * kTemperature / sum);

  std::vector<Atom> atoms;
  for (std::int64_t id = 0; id < n; ++id) {
    const std::int64_t cell = id / 4;
    const std::int64_t edge = domain.n_cells();
    const Triple cells{cell / (edge * edge), cell / edge % edge, cell % edge};
    Atom atom{{}, {}, id};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Fixed half = domain.lattice_constant() / 2;
      atom.position[axis] = cells[axis] * domain.lattice_constant() +
                            kBasis[static_cast<std::size_t>(id % 4)][axis] * half;
    }
    if (!domain.is_mine(atom.position)) continue;
    const std::array<double, 3> direction = random_direction(seed, id, n);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      atom.velocity[axis] = static_cast<Fixed>(direction[axis] * scale / kVelocityUnit);
    }
    atoms.push_back(atom);
  }
  return atoms;
}

void migrate(const Domain& domain, std::vector<Atom>& atoms) {
  for (Atom& atom : atoms) atom.position = domain.wrapped(atom.position);
  for (int axis = 0; axis < 3; ++axis) {
    const int n = domain.n_parts(axis);
    if (n == 1) continue;
    std::array<std::vector<Atom>, 2> leaving;
    std::size_t n_kept = 0;
    for (const Atom& atom : atoms) {
      const int part = domain.part_of(axis, atom.position[static_cast<std::size_t>(axis)]);
      if (part == domain.part(axis)) {
        atoms[n_kept++] = atom;
      } else {
        leaving[part == (domain.part(axis) + 1) % n ? 1 : 0].push_back(atom);
      }
    }
    atoms.resize(n_kept);
    for (int side = 0; side < 2; ++side) {
      const std::vector<Atom> in =
          swap_atoms(leaving[static_cast<std::size_t>(side)], domain.neighbour(axis, side),
                     domain.neighbour(axis, 1 - side), domain.comm());
      atoms.insert(atoms.end(), in.begin(), in.end());
    }
  }
}

void Ghosts::exchange(int axis, int side, Lane& lane, std::vector<Triple>& positions) {
  out_.clear();
  for (const std::uint32_t i : lane.sent) {
    out_.push_back(positions[i]);
    out_.back()[static_cast<std::size_t>(axis)] += lane.shift;
  }
  Triple* const in = positions.data() + lane.first_received;
  if (domain_.n_parts(axis) == 1) {
    std::copy(out_.begin(), out_.end(), in);
    return;
  }
  MPI_Sendrecv(out_.data(), static_cast<int>(out_.size() * 3), MPI_INT64_T,
               domain_.neighbour(axis, side), 2, in, static_cast<int>(lane.n_received * 3),
               MPI_INT64_T, domain_.neighbour(axis, 1 - side), 2, domain_.comm(),
               MPI_STATUS_IGNORE);
}

void Ghosts::choose(std::vector<Triple>& positions) {
  for (int axis = 0; axis < 3; ++axis) {
    // Ghosts of this axis are not sent back along it: both sides send only earlier positions.
    const std::size_t n_before = positions.size();
    for (int side = 0; side < 2; ++side) {
      Lane& lane = lanes_[lane_index(axis, side)];
      const Fixed reach = position_of(kReach);
      lane.sent.clear();
      for (std::size_t i = 0; i < n_before; ++i) {
        const Fixed x = positions[i][static_cast<std::size_t>(axis)];
        if (side == 0 ? x < domain_.low(axis) + reach : x >= domain_.high(axis) - reach) {
          lane.sent.push_back(static_cast<std::uint32_t>(i));
        }
      }
      const bool at_end = domain_.part(axis) == (side == 0 ? 0 : domain_.n_parts(axis) - 1);
      const Fixed around = side == 0 ? domain_.length() : -domain_.length();
      lane.shift = at_end ? around : 0;
      const std::uint64_t n_out = lane.sent.size();
      std::uint64_t n_in = n_out;
      if (domain_.n_parts(axis) > 1) {
        MPI_Sendrecv(&n_out, 1, MPI_UINT64_T, domain_.neighbour(axis, side), 3, &n_in, 1,
                     MPI_UINT64_T, domain_.neighbour(axis, 1 - side), 3, domain_.comm(),
                     MPI_STATUS_IGNORE);
      }
      lane.first_received = positions.size();
      lane.n_received = n_in;
      positions.resize(positions.size() + n_in);
      exchange(axis, side, lane, positions);
    }
  }
}

void Ghosts::refresh(std::vector<Triple>& positions) {
  for (int axis = 0; axis < 3; ++axis) {
    for (int side = 0; side < 2; ++side) {
      exchange(axis, side, lanes_[lane_index(axis, side)], positions);
    }
  }
}

}  // namespace md
