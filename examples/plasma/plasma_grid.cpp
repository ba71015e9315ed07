// Halo exchange: columns within the rank, then complete rows with the two neighbours.

#include "plasma_grid.hpp"

#include <algorithm>
#include <string>

#include "common/arguments.hpp"

namespace plasma {
namespace {

/// Rows [first, first + kHalo) of all grids, one after the other.
template <class T>
std::vector<T> packed(const std::vector<Grid<T>*>& grids, int first) {
  std::vector<T> values;
  for (Grid<T>* grid : grids) {
    values.insert(values.end(), grid->row(first), grid->row(first) + kHalo * grid->row_length());
  }
  return values;
}

/// Exchanges rows between neighbours: `out` goes to one, and the other one's rows are received.
template <class T>
std::vector<T> passed(const Slab& slab, int to, int from, std::vector<T> out, MPI_Datatype type) {
  if (slab.n_ranks == 1) return out;
  std::vector<T> in(out.size());
  const auto n = static_cast<int>(out.size());
  MPI_Sendrecv(out.data(), n, type, to, 0, in.data(), n, type, from, 0, slab.comm,
               MPI_STATUS_IGNORE);
  return in;
}

}  // namespace

Slab Slab::of_rank(MPI_Comm comm, int nx, int ny) {
  Slab slab;
  slab.comm = comm;
  slab.nx = nx;
  slab.ny_all = ny;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &slab.n_ranks);
  if (ny / slab.n_ranks < kHalo || nx < 2 * kHalo) {
    throw app::Unavailable("--nx " + std::to_string(nx) + ", --ny " + std::to_string(ny) +
                           ": at least 6 columns, and 3 rows for each of " +
                           std::to_string(slab.n_ranks) + " ranks, are expected");
  }
  const auto begin_of = [&](std::int64_t r) { return static_cast<int>(r * ny / slab.n_ranks); };
  slab.first_row = begin_of(rank);
  slab.ny = begin_of(rank + 1) - slab.first_row;
  slab.down = (rank + slab.n_ranks - 1) % slab.n_ranks;
  slab.up = (rank + 1) % slab.n_ranks;
  return slab;
}

void fill_halos(const Slab& slab, const std::vector<Grid<double>*>& grids) {
  for (Grid<double>* grid : grids) {
    for (int j = 0; j < grid->ny(); ++j) {
      for (int i = 0; i < kHalo; ++i) {
        grid->at(i - kHalo, j) = grid->at(grid->nx() + i - kHalo, j);
        grid->at(grid->nx() + i, j) = grid->at(i, j);
      }
    }
  }
  const auto unpack = [&](const std::vector<double>& values, int first) {
    auto from = values.begin();
    for (Grid<double>* grid : grids) {
      const auto n = kHalo * grid->row_length();
      std::copy(from, from + n, grid->row(first));
      from += n;
    }
  };
  unpack(passed(slab, slab.down, slab.up, packed(grids, 0), MPI_DOUBLE), slab.ny);
  unpack(passed(slab, slab.up, slab.down, packed(grids, slab.ny - kHalo), MPI_DOUBLE), -kHalo);
}

void add_halos(const Slab& slab, const std::vector<Counted*>& grids) {
  for (Counted* grid : grids) {
    for (int j = -kHalo; j < grid->ny() + kHalo; ++j) {
      for (int i = 0; i < kHalo; ++i) {
        grid->at(grid->nx() + i - kHalo, j) += grid->at(i - kHalo, j);
        grid->at(i, j) += grid->at(grid->nx() + i, j);
      }
    }
  }
  const auto add = [&](const std::vector<std::int64_t>& values, int first) {
    auto from = values.begin();
    for (Counted* grid : grids) {
      const auto n = kHalo * grid->row_length();
      std::transform(from, from + n, grid->row(first), grid->row(first), std::plus<>());
      from += n;
    }
  };
  const auto below = packed(grids, -kHalo);
  const auto above = packed(grids, slab.ny);
  add(passed(slab, slab.down, slab.up, below, MPI_INT64_T), slab.ny - kHalo);
  add(passed(slab, slab.up, slab.down, above, MPI_INT64_T), 0);
}

}  // namespace plasma
