// Slabs of a periodic cubic mesh: each rank has some planes of it, and copies of its neighbours'.

#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace cosmo {

/// The planes (first index) of an n^3 mesh that each rank has, distributed as evenly as possible.
struct Slabs {
  int n = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, n_ranks = 1;

  Slabs(int cells, MPI_Comm ranks) : n(cells), comm(ranks) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n_ranks);
  }
  int first(int of_rank) const { return n * of_rank / n_ranks; }
  int count(int of_rank) const { return first(of_rank + 1) - first(of_rank); }
  int first() const { return first(rank); }
  int count() const { return count(rank); }
  int owner(int plane) const { return ((plane + 1) * n_ranks - 1) / n; }
  int next() const { return (rank + 1) % n_ranks; }
  int previous() const { return (rank + n_ranks - 1) % n_ranks; }
  std::size_t plane_cells() const { return std::size_t(n) * std::size_t(n); }
};

/// One number per cell, with kGhosts planes of the neighbours on either side.
class Mesh {
 public:
  static constexpr int kGhosts = 3;

  explicit Mesh(const Slabs& slabs)
      : plane_cells_(slabs.plane_cells()),
        values_(plane_cells_ * std::size_t(slabs.count() + 2 * kGhosts), 0.0) {}
  /// The n x n cells of a local plane, numbered from -kGhosts to count + kGhosts - 1.
  double* plane(int local) { return values_.data() + std::size_t(local + kGhosts) * plane_cells_; }
  const double* plane(int local) const {
    return values_.data() + std::size_t(local + kGhosts) * plane_cells_;
  }
  void clear() { values_.assign(values_.size(), 0.0); }
  /// Own planes and ghosts, plane after plane.
  std::vector<double>& values() { return values_; }

 private:
  std::size_t plane_cells_;
  std::vector<double> values_;
};

/// Copies the neighbours' outermost planes into the ghosts: kGhosts above and below. Collective.
/// Each rank needs at least kGhosts planes.
void fill_ghosts(const Slabs& slabs, const std::vector<Mesh*>& meshes);

/// Adds the plane above our last one, which a deposit has filled, to the next rank's first.
/// Collective.
void add_upper_ghost(const Slabs& slabs, const std::vector<Mesh*>& meshes);

/// The sum over our planes of a function of the plane's number and the cell's index in it, in a
/// fixed order.
template <class Of>
double sum_cells(const Slabs& slabs, Of&& of) {
  double sum = 0;
  for (int x = 0; x < slabs.count(); ++x) {
    double of_plane = 0;
    for (std::size_t cell = 0; cell < slabs.plane_cells(); ++cell) of_plane += of(x, cell);
    sum += of_plane;
  }
  return sum;
}

}  // namespace cosmo
