// Neighbour lists by cells, and the Lennard-Jones forces in fixed-point numbers.
//
// V(r) = 4 (r^-12 - r^-6) up to kCutoff, zero beyond. A force is computed in double precision from
// an exact difference of positions and then rounded to an integer, towards zero. The pair (j, i)
// gives exactly the negative of (i, j), on any rank.

#include "md_forces.hpp"

#include <algorithm>
#include <cmath>

namespace md {
namespace {

double squared(const Triple& difference) {
  double sum = 0;
  for (const Fixed d : difference) {
    const double x = static_cast<double>(d) * kPositionUnit;
    sum += x * x;
  }
  return sum;
}

Triple minus(const Triple& a, const Triple& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

}  // namespace

Cells::Cells(const Domain& domain) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Fixed reach = position_of(kReach);
    const int which = static_cast<int>(axis);
    low_[axis] = domain.low(which) - reach;
    const auto width = static_cast<double>(domain.high(which) + reach - low_[axis]);
    n_cells_[axis] = static_cast<std::size_t>(width / static_cast<double>(reach));
    cells_per_unit_[axis] = static_cast<double>(n_cells_[axis]) / width;
  }
}

std::size_t Cells::cell_of(const Triple& position) const {
  std::size_t cell = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto along = static_cast<double>(position[axis] - low_[axis]) * cells_per_unit_[axis];
    const auto last = static_cast<double>(n_cells_[axis] - 1);
    cell = cell * n_cells_[axis] + static_cast<std::size_t>(std::clamp(along, 0.0, last));
  }
  return cell;
}

void Cells::sort(std::vector<Atom>& atoms) const {
  struct Key {
    std::size_t cell;
    std::int64_t id;
    std::size_t index;
  };
  std::vector<Key> keys;
  keys.reserve(atoms.size());
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    keys.push_back({cell_of(atoms[i].position), atoms[i].id, i});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.id < b.id;
  });
  std::vector<Atom> sorted;
  sorted.reserve(atoms.size());
  for (const Key& key : keys) sorted.push_back(atoms[key.index]);
  atoms.swap(sorted);
}

void Cells::list(const std::vector<Triple>& positions, std::size_t n_own, Neighbours& neighbours) {
  // A counting sort of all positions by cell.
  std::vector<std::uint32_t> cell_of_atom(positions.size());
  first_in_cell_.assign(n_cells_[0] * n_cells_[1] * n_cells_[2] + 1, 0);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    cell_of_atom[i] = static_cast<std::uint32_t>(cell_of(positions[i]));
    ++first_in_cell_[cell_of_atom[i] + 1];
  }
  for (std::size_t c = 1; c < first_in_cell_.size(); ++c)
    first_in_cell_[c] += first_in_cell_[c - 1];
  std::vector<std::uint32_t> next(first_in_cell_.begin(), first_in_cell_.end() - 1);
  in_cell_.resize(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    in_cell_[next[cell_of_atom[i]]++] = static_cast<std::uint32_t>(i);
  }

  const std::size_t row = n_cells_[2];
  const std::size_t plane = n_cells_[1] * row;
  neighbours.first.assign(1, 0);
  neighbours.of.clear();
  for (std::size_t i = 0; i < n_own; ++i) {
    const Triple here = positions[i];
    const std::size_t cell = cell_of_atom[i];
    const std::size_t cx = cell / plane;
    const std::size_t cy = cell / row % n_cells_[1];
    const std::size_t cz = cell % row;
    const std::size_t z_begin = cz > 0 ? cz - 1 : 0;
    const std::size_t z_end = std::min(cz + 2, row);
    for (std::size_t x = cx > 0 ? cx - 1 : 0; x < std::min(cx + 2, n_cells_[0]); ++x) {
      for (std::size_t y = cy > 0 ? cy - 1 : 0; y < std::min(cy + 2, n_cells_[1]); ++y) {
        const std::size_t line = x * plane + y * row;
        // The cells of a row along z are consecutive in memory: one run of candidates.
        for (std::uint32_t k = first_in_cell_[line + z_begin]; k < first_in_cell_[line + z_end];
             ++k) {
          const std::uint32_t j = in_cell_[k];
          if (j <= i) continue;  // ghosts follow all own atoms, so they pass
          if (squared(minus(here, positions[j])) < kReach * kReach) neighbours.of.push_back(j);
        }
      }
    }
    neighbours.first.push_back(static_cast<std::uint32_t>(neighbours.of.size()));
  }
}

void forces(const std::vector<Triple>& positions, std::size_t n_own, const Neighbours& neighbours,
            double time_step, std::vector<Pull>& pulls) {
  const double kick_of_force = time_step / 2 / kVelocityUnit;
  pulls.assign(n_own, Pull{});
  for (std::size_t i = 0; i < n_own; ++i) {
    const Triple here = positions[i];
    Pull mine = pulls[i];
    for (std::uint32_t k = neighbours.first[i]; k < neighbours.first[i + 1]; ++k) {
      const std::uint32_t j = neighbours.of[k];
      const Triple apart = minus(here, positions[j]);
      const double r2 = squared(apart);
      if (r2 >= kCutoff * kCutoff) continue;
      const double s = 1 / r2;
      const double s3 = s * s * s;
      const double force_over_r = 48 * s3 * (s3 - 0.5) * s;
      const auto energy = static_cast<Fixed>(2 * s3 * (s3 - 1) / kEnergyUnit);
      const auto virial = static_cast<Fixed>(force_over_r * r2 / 2 / kEnergyUnit);
      Triple kick;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double distance = static_cast<double>(apart[axis]) * kPositionUnit;
        kick[axis] = static_cast<Fixed>(force_over_r * distance * kick_of_force);
        mine.kick[axis] += kick[axis];
      }
      mine.energy += energy;
      mine.virial += virial;
      ++mine.n_halves;
      if (j >= n_own) continue;  // the ghost's owner handles the pair from its side
      Pull& other = pulls[j];
      for (std::size_t axis = 0; axis < 3; ++axis) other.kick[axis] -= kick[axis];
      other.energy += energy;
      other.virial += virial;
      ++other.n_halves;
    }
    pulls[i] = mine;
  }
}

double potential_at_cutoff() {
  const double s3 = std::pow(kCutoff, -6);
  return 4 * s3 * (s3 - 1);
}

}  // namespace md
