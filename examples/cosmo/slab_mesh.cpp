// Planes that travel between neighbours.

#include "cosmo/slab_mesh.hpp"

#include <algorithm>

namespace cosmo {

void fill_ghosts(const Slabs& slabs, const std::vector<Mesh*>& meshes) {
  const auto n = static_cast<int>(slabs.plane_cells()) * Mesh::kGhosts;
  const int top = slabs.count();
  for (Mesh* mesh : meshes) {
    MPI_Sendrecv(mesh->plane(top - Mesh::kGhosts), n, MPI_DOUBLE, slabs.next(), 0,
                 mesh->plane(-Mesh::kGhosts), n, MPI_DOUBLE, slabs.previous(), 0, slabs.comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(mesh->plane(0), n, MPI_DOUBLE, slabs.previous(), 1, mesh->plane(top), n,
                 MPI_DOUBLE, slabs.next(), 1, slabs.comm, MPI_STATUS_IGNORE);
  }
}

void add_upper_ghost(const Slabs& slabs, const std::vector<Mesh*>& meshes) {
  const std::size_t n = slabs.plane_cells();
  std::vector<double> arrived(n);
  for (Mesh* mesh : meshes) {
    MPI_Sendrecv(mesh->plane(slabs.count()), static_cast<int>(n), MPI_DOUBLE, slabs.next(), 2,
                 arrived.data(), static_cast<int>(n), MPI_DOUBLE, slabs.previous(), 2, slabs.comm,
                 MPI_STATUS_IGNORE);
    std::transform(arrived.begin(), arrived.end(), mesh->plane(0), mesh->plane(0),
                   [](double from_below, double own) { return own + from_below; });
  }
}

}  // namespace cosmo
