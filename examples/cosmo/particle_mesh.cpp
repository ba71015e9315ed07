// The particles' kernels.

#include "cosmo/particle_mesh.hpp"

#include <algorithm>
#include <utility>

namespace cosmo {
namespace {

/// Calls `use(i, component, value)` with the field at each particle, component by component.
template <class Use>
void interpolate(const Slabs& slabs, const Particles& particles, const VectorMesh& field,
                 Use&& use) {
  for (std::size_t i = 0; i < particles.count(); ++i) {
    const Cloud cloud = cloud_at(slabs, particles, i);
    for (std::size_t d = 0; d < 3; ++d) {
      const double* const lower = field[d].plane(cloud.x);
      const double* const upper = field[d].plane(cloud.x + 1);
      double value = 0;
      for (std::size_t corner = 0; corner < 4; ++corner) {
        const std::size_t cell = cloud.cell[corner];
        value +=
            cloud.share[corner] * ((1 - cloud.upper) * lower[cell] + cloud.upper * upper[cell]);
      }
      use(i, d, value);
    }
  }
}

}  // namespace

void kick(const Slabs& slabs, Particles& particles, const VectorMesh& field, double factor) {
  interpolate(slabs, particles, field, [&](std::size_t i, std::size_t d, double value) {
    particles.p[d][i] += factor * value;
  });
}

void drift(const Slabs& slabs, Particles& particles, double cells_per_momentum) {
  const double n = slabs.n;
  for (std::size_t d = 0; d < 3; ++d) {
    for (std::size_t i = 0; i < particles.count(); ++i) {
      double at = particles.at[d][i] + cells_per_momentum * particles.p[d][i];
      if (at >= n) at -= n;
      if (at < 0) at += n;
      if (at >= n) at = 0;  // A tiny negative position may round up to n.
      particles.at[d][i] = at;
    }
  }
}

double sum_squares(const Particles& particles) {
  double sum = 0;
  for (const std::vector<double>& component : particles.p) {
    for (const double p : component) sum += p * p;
  }
  return sum;
}

void Migration::pack(Particles& particles) {
  std::vector<std::vector<double>> to(static_cast<std::size_t>(slabs_.n_ranks));
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < particles.count(); ++i) {
    const int owner = slabs_.owner(static_cast<int>(particles.at[0][i]));
    if (owner == slabs_.rank) {
      for (std::size_t d = 0; d < 3; ++d) {
        particles.at[d][n_kept] = particles.at[d][i];
        particles.p[d][n_kept] = particles.p[d][i];
      }
      ++n_kept;
    } else {
      std::vector<double>& numbers = to[static_cast<std::size_t>(owner)];
      for (std::size_t d = 0; d < 3; ++d) numbers.push_back(particles.at[d][i]);
      for (std::size_t d = 0; d < 3; ++d) numbers.push_back(particles.p[d][i]);
    }
  }
  for (std::size_t d = 0; d < 3; ++d) {
    particles.at[d].resize(n_kept);
    particles.p[d].resize(n_kept);
  }
  leaving_.clear();
  n_leaving_.clear();
  for (const std::vector<double>& numbers : to) {
    leaving_.insert(leaving_.end(), numbers.begin(), numbers.end());
    n_leaving_.push_back(static_cast<int>(numbers.size()));
  }
}

void Migration::travel() {
  std::vector<int> n_arriving(n_leaving_.size());
  MPI_Alltoall(n_leaving_.data(), 1, MPI_INT, n_arriving.data(), 1, MPI_INT, slabs_.comm);
  std::vector<int> from_place, to_place;
  int n_out = 0;
  int n_in = 0;
  for (std::size_t r = 0; r < n_leaving_.size(); ++r) {
    from_place.push_back(n_out);
    to_place.push_back(n_in);
    n_out += n_leaving_[r];
    n_in += n_arriving[r];
  }
  arriving_.resize(static_cast<std::size_t>(n_in));
  MPI_Alltoallv(leaving_.data(), n_leaving_.data(), from_place.data(), MPI_DOUBLE, arriving_.data(),
                n_arriving.data(), to_place.data(), MPI_DOUBLE, slabs_.comm);
}

void Migration::settle(Particles& particles) {
  for (std::size_t i = 0; i < arriving_.size(); i += kNumbers) {
    for (std::size_t d = 0; d < 3; ++d) particles.at[d].push_back(arriving_[i + d]);
    for (std::size_t d = 0; d < 3; ++d) particles.p[d].push_back(arriving_[i + 3 + d]);
  }
  // A counting sort, which is stable within a cell.
  const std::size_t n_cells = slabs_.plane_cells() * std::size_t(slabs_.count());
  std::vector<std::uint32_t> cell_of(particles.count());
  std::vector<std::uint32_t> place(n_cells + 1, 0);
  for (std::size_t i = 0; i < particles.count(); ++i) {
    const auto x = static_cast<std::size_t>(static_cast<int>(particles.at[0][i]) - slabs_.first());
    const auto y = static_cast<std::size_t>(particles.at[1][i]);
    const auto z = static_cast<std::size_t>(particles.at[2][i]);
    const auto n = static_cast<std::size_t>(slabs_.n);
    cell_of[i] = static_cast<std::uint32_t>((x * n + y) * n + z);
    ++place[cell_of[i] + 1];
  }
  for (std::size_t cell = 0; cell < n_cells; ++cell) place[cell + 1] += place[cell];
  std::vector<std::uint32_t> to(particles.count());
  for (std::size_t i = 0; i < particles.count(); ++i) to[i] = place[cell_of[i]]++;
  std::vector<double> sorted(particles.count());
  for (auto* vectors : {&particles.at, &particles.p}) {
    for (std::vector<double>& component : *vectors) {
      for (std::size_t i = 0; i < component.size(); ++i) sorted[to[i]] = component[i];
      std::swap(component, sorted);
    }
  }
}

}  // namespace cosmo
