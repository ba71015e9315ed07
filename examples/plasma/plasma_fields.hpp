// The electromagnetic field on Yee's grid, and Maxwell's equations.
//
// Units: the speed of light, the plasma frequency of all electrons together, the electron's mass
// and charge, and epsilon_0 are 1. Lengths are therefore in c/omega_p, times in 1/omega_p, fields
// in m c omega_p / e, densities in the mean density.

#pragma once

#include <array>
#include <complex>

#include "plasma_grid.hpp"

namespace plasma {

/// Positions of the components (Yee 1966), with (i, j) the indices of Grid:
///   ex, jx (i + 1/2, j)   ey, jy (i, j + 1/2)   ez, jz, rho (i, j);
///   bx (i, j + 1/2)       by (i + 1/2, j)       bz (i + 1/2, j + 1/2)
struct Fields {
  explicit Fields(const Slab& slab)
      : ex(slab),
        ey(slab),
        ez(slab),
        bx(slab),
        by(slab),
        bz(slab),
        jx(slab),
        jy(slab),
        jz(slab),
        rho(slab) {}
  Grid<double> ex, ey, ez, bx, by, bz;
  Grid<double> jx, jy, jz, rho;  // electrons and the resting ions; without halos

  std::vector<Grid<double>*> electric() { return {&ex, &ey, &ez}; }
  std::vector<Grid<double>*> magnetic() { return {&bx, &by, &bz}; }
};

/// Deposits of the particles on the grid in one step.
struct Deposits {
  explicit Deposits(const Slab& slab) : jx(slab), jy(slab), jz(slab), rho(slab) {}
  Counted jx, jy, jz, rho;
  std::vector<Counted*> all() { return {&jx, &jy, &jz, &rho}; }
  void clear() {
    for (Counted* grid : all()) grid->clear();
  }
};

/// Converts electrons' deposits, whose halos have been added, to jx, jy, jz and rho; ions of
/// density 1 rest.
void take_deposits(Deposits& deposits, Fields& fields);

/// Advances B by half a time step, from E. @param ratio  time step over cell width.
void advance_magnetic_by_half(double ratio, Fields& fields);
/// Advances E by a time step, from B and j.
void advance_electric(double ratio, double time_step, Fields& fields);

/// Largest |div E - rho| and |div B| of the slab, in units of the mean charge density. The halos of
/// E and B must be filled.
std::array<double, 2> largest_divergences(double cell_width, const Fields& fields);

/// Energies of E and B in the slab: half their squares, times the cell's area.
std::array<double, 2> field_energies(double cell_width, const Fields& fields);

/// The sum of grid(i, j) exp(-2 pi sqrt(-1) mode i / nx) over the slab.
std::complex<double> mode_sum(const Grid<double>& grid, int mode);

}  // namespace plasma
