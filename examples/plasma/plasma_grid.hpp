// The slab of a rank, and grids over it with halos.
//
// The plane is periodic and divided into slabs of complete rows. Positions are measured in cells:
// node (i, j) is at x = i, y = j, and cell (i, j) extends from there to (i + 1, j + 1).

#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plasma {

/// Cells around a slab that a particle of the slab can touch. Its shape extends 2 nodes from the
/// nearest one, which may be the first of the next slab.
constexpr int kHalo = 3;

/// Rows of the plane that a rank has.
struct Slab {
  MPI_Comm comm = MPI_COMM_NULL;
  int nx = 0, ny_all = 0;  // cells of the plane
  int first_row = 0, ny = 0;
  int down = 0, up = 0;  // neighbouring ranks; may be this rank
  int n_ranks = 1;

  /// Throws app::Unavailable on all ranks if a slab is thinner than kHalo.
  static Slab of_rank(MPI_Comm comm, int nx, int ny);
};

/// Values at the nodes of a slab and its halo.
template <class T>
class Grid {
 public:
  explicit Grid(const Slab& slab)
      : nx_(slab.nx),
        ny_(slab.ny),
        values_(static_cast<std::size_t>(row_length()) *
                static_cast<std::size_t>(ny_ + 2 * kHalo)) {}

  /// Value at (i, j), with i from -kHalo to nx + kHalo - 1. j counts from the slab's first row,
  /// with the same halo.
  T& at(int i, int j) { return values_[index(i, j)]; }
  T at(int i, int j) const { return values_[index(i, j)]; }
  T* row(int j) { return &values_[index(-kHalo, j)]; }  ///< Its row_length() values.

  int nx() const { return nx_; }
  int ny() const { return ny_; }
  int row_length() const { return nx_ + 2 * kHalo; }
  void clear() { values_.assign(values_.size(), T{}); }

 private:
  std::size_t index(int i, int j) const {
    return static_cast<std::size_t>(j + kHalo) * static_cast<std::size_t>(row_length()) +
           static_cast<std::size_t>(i + kHalo);
  }

  int nx_, ny_;
  std::vector<T> values_;
};

/// Unit of the integers in which currents and charges are summed. Such sums do not depend on the
/// order of particles or on their ranks. Densities up to 8192 times the mean fit.
constexpr double kChargeUnit = 0x1p-50;
using Counted = Grid<std::int64_t>;

/// Copies to the halos the values of the nodes that they represent. Collective.
void fill_halos(const Slab& slab, const std::vector<Grid<double>*>& grids);

/// Adds the halos to the nodes that they represent; halos are undefined afterwards. Collective.
void add_halos(const Slab& slab, const std::vector<Counted*>& grids);

}  // namespace plasma
