// Time steps. Everything that changes the state is integer arithmetic and odd functions of it, so
// that a reversed motion retraces its path.

#include "md_melt.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace md {

Melt::Melt(MPI_Comm comm, int n_cells, double time_step, std::uint64_t seed)
    : domain_(comm, n_cells),
      time_step_(time_step),
      atoms_(first_atoms(domain_, seed)),
      cells_(domain_),
      ghosts_(domain_) {}

void Melt::prepare(app::Lanes& lanes) {
  rebuild(lanes);
  pull(lanes);
}

void Melt::advance(app::Lanes& lanes) {
  double way = 0;
  lanes.host([&] {
    kick();
    drift();
    way = largest_way_squared();
  });
  lanes.exchange(
      [&] { MPI_Allreduce(MPI_IN_PLACE, &way, 1, MPI_DOUBLE, MPI_MAX, domain_.comm()); });
  if (way > kSkin * kSkin / 4) {
    rebuild(lanes);
  } else {
    lanes.host([&] { copy_positions(); });
    lanes.exchange([&] { ghosts_.refresh(positions_); });
  }
  pull(lanes);
  lanes.host([&] { kick(); });
}

void Melt::kick() {
  for (std::size_t i = 0; i < atoms_.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) atoms_[i].velocity[axis] += pulls_[i].kick[axis];
  }
}

void Melt::drift() {
  const double way_of_velocity = time_step_ * kVelocityUnit / kPositionUnit;
  for (Atom& atom : atoms_) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto velocity = static_cast<double>(atom.velocity[axis]);
      atom.position[axis] += static_cast<Fixed>(velocity * way_of_velocity);
    }
  }
}

double Melt::largest_way_squared() const {
  double largest = 0;
  for (std::size_t i = 0; i < atoms_.size(); ++i) {
    double sum = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Fixed way = atoms_[i].position[axis] - built_from_[i][axis];
      const double sigma = static_cast<double>(way) * kPositionUnit;
      sum += sigma * sigma;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

void Melt::copy_positions() {
  for (std::size_t i = 0; i < atoms_.size(); ++i) positions_[i] = atoms_[i].position;
}

void Melt::rebuild(app::Lanes& lanes) {
  lanes.exchange([&] { migrate(domain_, atoms_); });
  lanes.host([&] {
    cells_.sort(atoms_);
    positions_.resize(atoms_.size());
    copy_positions();
    built_from_ = positions_;
  });
  lanes.exchange([&] { ghosts_.choose(positions_); });
  lanes.host([&] { cells_.list(positions_, atoms_.size(), neighbours_); });
  ++n_rebuilds_;
}

void Melt::pull(app::Lanes& lanes) {
  lanes.offload([&] { forces(positions_, atoms_.size(), neighbours_, time_step_, pulls_); });
}

Measures Melt::measure(app::Lanes& lanes) const {
  enum { kinetic, potential, virial, halves, count, momentum };  // momentum has three entries
  std::array<std::uint64_t, momentum + 3> sums{};  // unsigned: a sum may wrap before it becomes 0
  lanes.host([&] {
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
      double twice = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const Fixed v = atoms_[i].velocity[axis];
        const double speed = static_cast<double>(v) * kVelocityUnit;
        twice += speed * speed;
        sums[momentum + axis] += static_cast<std::uint64_t>(v);
      }
      sums[kinetic] += static_cast<std::uint64_t>(twice / 2 / kEnergyUnit);
      sums[potential] += static_cast<std::uint64_t>(pulls_[i].energy);
      sums[virial] += static_cast<std::uint64_t>(pulls_[i].virial);
      sums[halves] += static_cast<std::uint64_t>(pulls_[i].n_halves);
      ++sums[count];
    }
  });
  lanes.exchange([&] {
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_UINT64_T, MPI_SUM,
                  domain_.comm());
  });
  const auto value = [&](std::size_t which) {
    return static_cast<double>(static_cast<Fixed>(sums[which]));
  };
  const auto n = static_cast<double>(domain_.n_atoms());
  const double motion = value(kinetic) * kEnergyUnit;
  Measures measures;
  measures.temperature = 2 * motion / (3 * (n - 1));
  measures.potential = value(potential) * kEnergyUnit / n;
  measures.pressure = (2 * motion + value(virial) * kEnergyUnit) / (3 * domain_.volume());
  measures.conserved =
      motion / n + measures.potential - value(halves) / 2 * potential_at_cutoff() / n;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double sum = value(momentum + axis) * kVelocityUnit;
    measures.momentum = std::max(measures.momentum, std::abs(sum));
  }
  measures.n_atoms = static_cast<std::int64_t>(sums[count]);
  return measures;
}

void Melt::turn_back() {
  for (Atom& atom : atoms_) {
    for (Fixed& v : atom.velocity) v = -v;
  }
}

std::uint64_t Melt::state_hash() const {
  std::uint64_t sum = 0;  // over atoms, so that their order and ranks do not matter
  for (const Atom& atom : atoms_) {
    std::uint64_t hash = 0;
    const auto add = [&](std::int64_t value) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    };
    add(atom.id + 1);
    for (const Fixed x : domain_.wrapped(atom.position)) add(x);
    for (const Fixed v : atom.velocity) add(v);
    sum += hash * 0xbf58476d1ce4e5b9u;
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, domain_.comm());
  return sum;
}

}  // namespace md
