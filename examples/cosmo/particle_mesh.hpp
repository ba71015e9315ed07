// Particles, and their transfer to and from the mesh: cloud in cell in both directions. A particle
// therefore exerts no force on itself, and momentum is conserved (Hockney & Eastwood 1981, 5-3).
//
// Positions are in cells, [0, n); momenta in units of box * H0. A rank holds the particles whose
// integer position lies in its slab. All loops follow the order of the particles, which depends
// only on the number of ranks, so runs agree bit for bit.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cosmo/slab_mesh.hpp"

namespace cosmo {

struct Particles {
  std::array<std::vector<double>, 3> at;  ///< Cells.
  std::array<std::vector<double>, 3> p;   ///< a^2 dx/dt.

  std::size_t count() const { return at[0].size(); }
};

/// The three components of a vector on the mesh.
using VectorMesh = std::array<Mesh, 3>;
inline VectorMesh vector_mesh(const Slabs& slabs) {
  return {Mesh(slabs), Mesh(slabs), Mesh(slabs)};
}

/// Adds each particle's `value(i)` to the eight cells around it. Fills planes 0 to count; the last
/// one belongs to the next rank (add_upper_ghost).
template <class Value>
void deposit(const Slabs& slabs, const Particles& particles, Mesh& mesh, Value&& value);

/// Momenta += factor * field at the particles. Needs the field's plane above our last one.
void kick(const Slabs& slabs, Particles& particles, const VectorMesh& field, double factor);

/// Positions += cells_per_momentum * momenta, periodically.
void drift(const Slabs& slabs, Particles& particles, double cells_per_momentum);

/// Sum of p^2, in a fixed order.
double sum_squares(const Particles& particles);

/// Particles that change ranks: packed on the host, sent, and sorted into the order of the cells on
/// the host. The sort keeps particles that are near in the box near in memory.
class Migration {
 public:
  explicit Migration(const Slabs& slabs) : slabs_(slabs) {}
  /// Removes the particles that left our slab from `particles`.
  void pack(Particles& particles);
  void travel();  ///< Collective.
  /// Adds the received particles and sorts by cell.
  void settle(Particles& particles);

 private:
  static constexpr int kNumbers = 6;  ///< Numbers per moving particle: position and momentum.
  const Slabs slabs_;
  std::vector<double> leaving_, arriving_;
  std::vector<int> n_leaving_;  ///< Count of numbers for each rank.
};

/// The cells around a particle: a corner in a slab's local planes, and the weights of the far
/// sides.
struct Cloud {
  std::array<std::size_t, 4> cell;  ///< Offsets in a plane: (y,z), (y,z+1), (y+1,z), (y+1,z+1).
  std::array<double, 4> share;      ///< Weights of these cells, with sum 1.
  int x;                            ///< Local plane of the lower corner.
  double upper;                     ///< Weight of plane x + 1.
};
inline Cloud cloud_at(const Slabs& slabs, const Particles& particles, std::size_t i) {
  const int x = static_cast<int>(particles.at[0][i]);
  const int y = static_cast<int>(particles.at[1][i]);
  const int z = static_cast<int>(particles.at[2][i]);
  const double fy = particles.at[1][i] - y;
  const double fz = particles.at[2][i] - z;
  const int y1 = y + 1 == slabs.n ? 0 : y + 1;
  const int z1 = z + 1 == slabs.n ? 0 : z + 1;
  const auto in_plane = [&](int row, int column) {
    return std::size_t(row) * std::size_t(slabs.n) + std::size_t(column);
  };
  return {{in_plane(y, z), in_plane(y, z1), in_plane(y1, z), in_plane(y1, z1)},
          {(1 - fy) * (1 - fz), (1 - fy) * fz, fy * (1 - fz), fy * fz},
          x - slabs.first(),
          particles.at[0][i] - x};
}

template <class Value>
void deposit(const Slabs& slabs, const Particles& particles, Mesh& mesh, Value&& value) {
  mesh.clear();
  for (std::size_t i = 0; i < particles.count(); ++i) {
    const Cloud cloud = cloud_at(slabs, particles, i);
    const double all = value(i);
    double* const lower = mesh.plane(cloud.x);
    double* const upper = mesh.plane(cloud.x + 1);
    for (std::size_t corner = 0; corner < 4; ++corner) {
      const double part = all * cloud.share[corner];
      lower[cloud.cell[corner]] += part * (1 - cloud.upper);
      upper[cloud.cell[corner]] += part * cloud.upper;
    }
  }
}

}  // namespace cosmo
